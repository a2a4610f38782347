"""Saving and loading: one safe file, no pickle, the same bytes for the same training.

In goes a fitted classifier, with its featurizer if it has one; out comes a `.sepx` file, and from it the same classifier,
bit for bit.
"""
