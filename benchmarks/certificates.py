"""Certificates against a feasibility LP (SciPy's HiGHS) and SVC(kernel="linear", C=1e10), on the same data in the same run.

    python -m benchmarks.certificates [NAME …]

The LP's time is for a bare yes or no in floating point. "verdict" is `certify(exact=False)`: the answer with its proof,
checked exactly; "full" is `certify` as it comes, with the margin narrowed to 1e-9, by exact arithmetic where that needs it.
Goals are on the verdict's time. SVC may take 200,000 steps. Then the fewest mistakes, and how many flipped labels are found.
"""

from __future__ import annotations

import csv
import gzip
import sys
import time
import warnings

import numpy as np
import scipy.sparse as sp
from scipy.optimize import linprog
from sklearn.datasets import load_breast_cancer, load_digits, load_iris, load_svmlight_file
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import cross_val_predict
from sklearn.svm import SVC

from benchmarks import datasets
from benchmarks.datasets import DATA, with_narrow_indices
from separatrix import Perceptron, certify, fewest_mistakes, suspects


def best(function, repeats):
    times = []
    for _ in range(repeats):
        begin = time.perf_counter()
        result = function()
        times.append(time.perf_counter() - begin)
    return min(times), result


def feasible(X, y):
    """Solve y(⟨w,x⟩ + b) ≥ 1 as an LP; return whether it has a solution."""
    signs = np.where(y == np.unique(y)[1], 1.0, -1.0)
    if sp.issparse(X):
        A = -sp.diags(signs) @ sp.hstack([X, np.ones((X.shape[0], 1))], format="csr")
    else:
        A = -signs[:, None] * np.column_stack([X, np.ones(len(X))])
    answer = linprog(np.zeros(A.shape[1]), A_ub=A, b_ub=-np.ones(A.shape[0]), bounds=(None, None), method="highs")
    return answer.status == 0


def sonar():
    with open(DATA / "uci" / "sonar.csv", newline="") as file:
        rows = [row for row in csv.reader(file) if row]
    return np.array([row[:-1] for row in rows], float), np.array([row[-1] for row in rows])


def agaricus():
    with gzip.open(DATA / "libsvm" / "agaricus.txt.train.gz") as file:
        return load_svmlight_file(file)


def mnist():
    X, y, _, _ = datasets.mnist()
    return X[y < 2].astype(np.float64), y[y < 2]


def wdbc():
    return load_breast_cancer(return_X_y=True)


def digits_8():
    X, y = load_digits(return_X_y=True)
    return X, y == 8


SETS = {
    "sonar": (sonar, 2),
    "WDBC raw": (wdbc, 2),
    "digits 8": (digits_8, 2),
    "agaricus": (agaricus, 1 / 5),
    "MNIST 0-1": (mnist, 1 / 30),
}


def against_the_lp(name, load, allowed):
    X, y = load()
    certify(X, y)
    full, certificate = best(lambda: certify(X, y), 5)
    ours, quick = best(lambda: certify(X, y, exact=False), 5)
    theirs, answer = best(lambda: feasible(X, y), 3 if X.shape[0] < 5000 else 1)
    assert quick.verify(X, y) and certificate.verify(X, y) and quick.verdict == certificate.verdict
    gap = "" if certificate.margin is None else f"{1 - certificate.margin[0] / certificate.margin[1]:.0e}"
    print(
        f"{name:10s} {certificate.verdict:12s} verdict {ours:7.4f} s  full {full:7.4f} s  gap {gap:5s}  LP {theirs:7.4f} s "
        f"({'yes' if answer else 'no'})  LP/verdict {theirs / ours:6.1f}, goal {1 / allowed:4.1f}: "
        f"{'met' if ours <= allowed * theirs else 'NOT MET'}; SVC errs on {mistakes_of_svc(X, y)}",
        flush=True,
    )


def mistakes_of_svc(X, y):
    if sp.issparse(X):
        X = with_narrow_indices(X.copy())
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return int((SVC(kernel="linear", C=1e10, max_iter=200_000).fit(X, y).predict(X) != y).sum())


def a_million():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(1_000_000, 50))
    w = rng.normal(size=50)
    w /= np.linalg.norm(w)
    scores = X @ w
    X += (0.3 * np.sign(scores))[:, None] * w
    y = scores > 0
    learner = Perceptron(max_iter=1, random_state=0)
    learner.fit(X[:1000], y[:1000])
    one, _ = best(lambda: learner.fit(X, y), 3)
    ours, certificate = best(lambda: certify(X, y), 2)
    lower, upper = certificate.margin
    print(
        f"1e6 × 50   {certificate.verdict:12s} full {ours:.4f} s  a fit of one pass {one:.4f} s  = {ours / one:.1f} passes, "
        f"goal 30: {'met' if ours <= 30 * one else 'NOT MET'}; gap {(upper - lower) / upper:.0e}"
    )


def banknote():
    table = np.genfromtxt(DATA / "uci" / "banknote_authentication.csv", delimiter=",")
    table = table[~np.isnan(table).any(axis=1)]
    return table[:, :4], table[:, 4].astype(int)


def versicolor():
    X, y = load_iris(return_X_y=True)
    return X[y > 0], y[y > 0]


def fewest():
    sets = {"iris 1-2": (versicolor, 5), "banknote": (banknote, 30), "heart": (heart, 30)}
    for name, (load, seconds) in sets.items():
        X, y = load()
        took, found = best(lambda X=X, y=y, seconds=seconds: fewest_mistakes(X, y, time_limit=seconds), 1)
        print(f"{name:10s} between {found.lower} and {found.upper} mistakes, {took:.2f} s of {seconds}", flush=True)


def heart():
    return load_svmlight_file(str(DATA / "libsvm" / "heart_scale"))


def flipped_labels():
    """Precision among the most suspicious 2 % where 2 % of the labels were flipped; beside it a logistic regression's."""
    images, digits = load_digits(return_X_y=True)
    texts, kinds, _, _ = datasets.sms_spam(0)
    for name, X, y in (("digits", images / 16, digits), ("sms_spam", texts, (kinds == "spam").astype(int))):
        ours, held_out, trained = [], [], []
        for seed in range(5):
            rng = np.random.default_rng(seed)
            bad = rng.choice(len(y), round(0.02 * len(y)), replace=False)
            noisy = y.copy()
            noisy[bad] = (y[bad] + rng.integers(1, y.max() + 1, size=len(bad))) % (y.max() + 1)
            ours.append(np.isin(suspects(X, noisy).rows[: len(bad)], bad).mean())
            model = LogisticRegression(max_iter=300)
            every = np.arange(len(y)), noisy
            for kept, likely in (
                (held_out, cross_val_predict(model, X, noisy, cv=5, method="predict_proba")[every]),
                (trained, model.fit(X, noisy).predict_proba(X)[every]),
            ):
                kept.append(np.isin(np.argsort(likely)[: len(bad)], bad).mean())
        print(
            f"{name:10s} flipped labels found: suspects {np.mean(ours):.3f}, logistic regression's least likely "
            f"{np.mean(held_out):.3f} held out, {np.mean(trained):.3f} on the training data",
            flush=True,
        )


if __name__ == "__main__":
    wanted = sys.argv[1:]
    for name, (load, allowed) in SETS.items():
        if not wanted or name in wanted:
            against_the_lp(name, load, allowed)
    for name, show in {"million": a_million, "fewest": fewest, "flipped": flipped_labels}.items():
        if not wanted or name in wanted:
            show()
