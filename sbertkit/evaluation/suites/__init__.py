"""Suites: named lists of data sets that an encoder is measured on, with published rows."""

from sbertkit.evaluation.suites.definition import PublishedRow, Suite, read_suite, suite_names
from sbertkit.evaluation.suites.runner import SetScore, SuiteResult, run_suite

__all__ = [
    "PublishedRow",
    "SetScore",
    "Suite",
    "SuiteResult",
    "read_suite",
    "run_suite",
    "suite_names",
]
