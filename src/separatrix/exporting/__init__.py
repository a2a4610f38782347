"""A linear classifier for other programs: a scikit-learn object, an ONNX graph, an SQL expression."""
