"""The labels of natural language inference, for modules that must stay light."""

NLI_LABELS = ("entailment", "neutral", "contradiction")
"""The names of the label numbers 0, 1 and 2."""
