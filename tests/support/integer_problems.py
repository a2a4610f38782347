"""Small problems of whole numbers, the forms in which their rows may come, and the ledger as the reference writes it."""

import numpy as np
import scipy.sparse as sp
from hypothesis import strategies as st


@st.composite
def integer_problems(draw, max_classes=5):
    n, d = draw(st.integers(2, 12)), draw(st.integers(1, 5))
    K = draw(st.integers(2, max_classes))
    X = np.asarray(draw(st.lists(st.lists(st.integers(-9, 9), min_size=d, max_size=d), min_size=n, max_size=n)))
    y = np.asarray(draw(st.lists(st.integers(0, K - 1), min_size=n, max_size=n)))
    y[: min(n, 2)] = [0, 1]
    return X, y


def as_columns(mistakes):
    return [(m.step, m.example, m.up, m.down, m.correction, m.score) for m in mistakes]


def recorded(model):
    """The ledger as the reference writes it: classes by their place."""
    places = {label: k for k, label in enumerate(model.classes_.tolist())}
    return [(m.step, m.example, places.get(m.up, -1), places.get(m.down, -1), m.correction, m.score) for m in model.ledger_]


FORMS = {
    "dense64": lambda X: X.astype(np.float64),
    "dense32": lambda X: X.astype(np.float32),
    "integers": lambda X: X,
    "fortran": lambda X: np.asfortranarray(X.astype(np.float64)),
    "strided": lambda X: np.repeat(X.astype(np.float64), 2, axis=0)[::2],
    "csr64": lambda X: sp.csr_matrix(X.astype(np.float64)),
    "csr32": lambda X: sp.csr_array(X.astype(np.float32)),
    "wide indices": lambda X: with_wide_indices(sp.csr_array(X.astype(np.float64))),
    "csc": lambda X: sp.csc_matrix(X.astype(np.float64)),
    "integer csr": lambda X: sp.csr_matrix(X),
}


def with_wide_indices(X):
    X.indices, X.indptr = X.indices.astype(np.int64), X.indptr.astype(np.int64)
    return X
