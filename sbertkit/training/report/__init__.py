"""What is written about a trained model: its card and its training curves."""
