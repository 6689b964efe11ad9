"""Vector segments: how unit vectors are stored and searched; knows row numbers, never texts."""
