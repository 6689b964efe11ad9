"""Evaluation results as self-contained HTML pages."""

from sbertkit.evaluation.report.diagnosis import diagnosis_page
from sbertkit.evaluation.report.isotropy import isotropy_page
from sbertkit.evaluation.report.page import Page, write_page
from sbertkit.evaluation.report.retrieval import retrieval_page
from sbertkit.evaluation.report.sts import sts_page
from sbertkit.evaluation.report.suite import suite_page

__all__ = [
    "Page",
    "diagnosis_page",
    "isotropy_page",
    "retrieval_page",
    "sts_page",
    "suite_page",
    "write_page",
]
