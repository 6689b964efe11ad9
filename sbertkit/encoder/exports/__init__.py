"""Encoders as ONE ONNX graph file, from token ids to the vector: made, checked, kept and read."""
