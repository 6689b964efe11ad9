"""Which pooling, layer and post-processing suit an encoder on one's own texts, without labels."""

from sbertkit.evaluation.diagnosis.candidates import Candidate
from sbertkit.evaluation.diagnosis.diagnose import Diagnosis, Judged, configured, diagnose

__all__ = ["Candidate", "Diagnosis", "Judged", "configured", "diagnose"]
