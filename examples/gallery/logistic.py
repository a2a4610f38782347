"""My logistic regression does not converge. Is it the data, the columns, or the number of steps? 569 breast tumours."""

import warnings

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_breast_cancer
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from separatrix import check_separation

tumours = load_breast_cancer(as_frame=True)
X, y = tumours.data, tumours.target_names[tumours.target]

with warnings.catch_warnings(record=True) as raised:
    warnings.simplefilter("always", ConvergenceWarning)
    LogisticRegression().fit(X, y)
print("scikit-learn says:", str(raised[0].message).splitlines()[0], "\n")

# The usual advice, scale the columns, makes the message go away; it does not make the coefficients mean something.
# The default solver would stop too early here and show coefficients that differ from machine to machine.
exact = {"solver": "newton-cg", "tol": 1e-9, "max_iter": 1_000}
strengths, largest = 10.0 ** np.arange(-2, 6), []
for C in strengths:
    model = make_pipeline(StandardScaler(), LogisticRegression(C=C, **exact)).fit(X, y)
    largest.append(abs(model[-1].coef_).max())
    print(f"penalty C = {C:<9g} largest coefficient {largest[-1]:9.2f}")

check = check_separation(model, X, y)
print(f"\n{check}")
print("proven, and checked by code that shares nothing with the search:", check.verify())

# Three columns overlap: there, the coefficients stop growing, and are estimates of something.
few = X[["mean radius", "mean texture", "mean smoothness"]]
print("\nthree columns:", check_separation(few, y).separation)
settled = [make_pipeline(StandardScaler(), LogisticRegression(C=C, **exact)).fit(few, y)[-1] for C in strengths]

plt.loglog(strengths, largest, "o-", label="30 columns: complete separation")
plt.loglog(strengths, [abs(each.coef_).max() for each in settled], "s--", label="3 columns: overlap")
plt.xlabel("C, the inverse of the penalty")
plt.ylabel("largest coefficient")
plt.legend()
plt.show()
