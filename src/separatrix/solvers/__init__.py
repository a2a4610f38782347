"""Solvers that the other estimators stand on: margins, moments, and training in the space of a kernel.

In come rows and class codes as the engine has them; out go weights, or dual coefficients with their ledger.
"""
