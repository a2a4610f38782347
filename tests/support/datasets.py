"""Small data sets, and the forms in which rows may come: for tests in several rooms."""

import numpy as np
import scipy.sparse as sp
from sklearn.datasets import load_breast_cancer, load_iris

IRIS, SPECIES = load_iris(return_X_y=True)
PAIRS = [(IRIS[SPECIES != k], SPECIES[SPECIES != k]) for k in range(3)]
WDBC = load_breast_cancer(return_X_y=True)
FORMS = {"dense": np.asarray, "single": lambda X: X.astype(np.float32), "csr": sp.csr_matrix}
