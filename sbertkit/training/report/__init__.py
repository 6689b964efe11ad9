"""What a trained model says of itself: its card and its training curves."""
