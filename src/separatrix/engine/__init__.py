"""Training in memory: one example after the other, mistakes written into a ledger.

In come rows (`rows`), class codes (`labels`) and a rule (`rules`); out go weights, and a ledger from which everything else
follows. It needs NumPy, SciPy and the kernels; no scikit-learn, no pandas.
"""
