"""Kernels that read bytes: decimal numbers, svmlight lines, records of delimited text, JSON lines.

In come the bytes of a block of text, ending with a line end and room to read eight bytes at once; out go numbers, where
records begin, or the rows of a CSR matrix. What is rare or wrong is reported by its place, for slower code to read.
"""
