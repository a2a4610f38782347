"""Generated documents: sparse, wide rows of several classes."""

import numpy as np
import scipy.sparse as sp


def text(n, d, n_classes, seed=0, words=40):
    """Return rows like those of documents: common words, and words of the document's class; each of length 1."""
    rng = np.random.default_rng(seed)
    y = np.arange(n) % n_classes
    rows = np.repeat(np.arange(n), words)
    common = (d * rng.random(len(rows)) ** 6).astype(np.int64)
    own = (common % (d // n_classes)) * n_classes + y[rows]
    X = sp.csr_array((np.ones(len(rows)), (rows, np.where(rng.random(len(rows)) < 0.2, own, common))), shape=(n, d))
    X.sum_duplicates()
    lengths = np.sqrt(np.asarray(X.multiply(X).sum(axis=1))).reshape(-1)
    X.data /= np.repeat(lengths, np.diff(X.indptr))
    return X, y
