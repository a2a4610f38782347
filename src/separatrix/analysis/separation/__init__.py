"""Separation as a statistician meets it: which coefficients of a logistic regression are infinite, and why.

In: data, a formula and a frame, a model of statsmodels or scikit-learn. Out: a `SeparationCheck`, by `check_separation`.
"""
