"""Encoders as one ONNX file, from token ids to the vector: written, checked, cached and read."""
