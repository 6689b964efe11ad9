"""One reader for each corpus format: from a path to records and bad lines."""
