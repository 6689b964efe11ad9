"""Which pooling, layer and post-processor suit an encoder on the user's texts, without labels."""

from sbertkit.evaluation.diagnosis.candidates import Candidate
from sbertkit.evaluation.diagnosis.diagnose import CandidateScore, Diagnosis, diagnose

__all__ = ["Candidate", "CandidateScore", "Diagnosis", "diagnose"]
