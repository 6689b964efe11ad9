"""Evaluation results as self-contained HTML pages, one module per result."""
