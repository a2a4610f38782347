"""Kernels of tagged sequences: the best path, a pass of the structured perceptron, columns of tokens, feature templates.

Arrays of tokens, features and tags come in; paths, corrected weights and feature numbers go out, in arrays of the caller.
"""
