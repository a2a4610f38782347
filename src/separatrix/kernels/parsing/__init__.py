"""Compiled readers of bytes: numbers, svmlight lines, CSV records, JSON lines."""
