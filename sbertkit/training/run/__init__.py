"""One run: from a loaded encoder, over checkpoints, to a trained model."""
