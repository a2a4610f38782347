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
import warnings

import numpy as np
import scipy.sparse as sp
from scipy.optimize import linprog
from sklearn.datasets import load_breast_cancer, load_digits, load_iris, load_svmlight_file
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import cross_val_predict
from sklearn.svm import SVC

from benchmarks import datasets
from benchmarks.datasets import DATA, absent, with_narrow_indices
from benchmarks.harness import Quality, Row, duration
from benchmarks.report import show
from benchmarks.timing import in_turns
from separatrix import Perceptron, certify, fewest_mistakes, suspects


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


def against_the_lp(name, load, allowed, repeats):
    """The verdict beside the LP; as a note the time of the whole certificate, its gap and what SVC gets wrong."""
    X, y = load()
    certificate = certify(X, y)
    (mine, full), (quick, _) = in_turns(lambda: certify(X, y, exact=False), lambda: certify(X, y), repeats=repeats)
    (theirs,), (answer,) = in_turns(lambda: feasible(X, y), repeats=min(repeats, 3) if X.shape[0] < 5000 else 1)
    checked = quick.verify(X, y) and certificate.verify(X, y) and quick.verdict == certificate.verdict
    says = f"{certificate.verdict}, proof checked exactly; the LP says {'yes' if answer else 'no'}"
    quality = Quality(says, checked and answer == (certificate.verdict == "separable"))
    gap = "" if certificate.margin is None else f", gap {1 - certificate.margin[0] / certificate.margin[1]:.0e}"
    note = f"whole certificate {duration(full.best)}{gap}; SVC errs on {mistakes_of_svc(X, y)}"
    return Row(
        f"{name}, {X.shape[0]:,} × {X.shape[1]:,}", "verdict", "LP (HiGHS)", mine, theirs, 1 / allowed, quality, note=note
    )


def mistakes_of_svc(X, y):
    if sp.issparse(X):
        X = with_narrow_indices(X.copy())
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return int((SVC(kernel="linear", C=1e10, max_iter=200_000).fit(X, y).predict(X) != y).sum())


def a_million(n=1_000_000):
    """A whole certificate counted in passes of a perceptron."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, 50))
    w = rng.normal(size=50)
    w /= np.linalg.norm(w)
    scores = X @ w
    X += (0.3 * np.sign(scores))[:, None] * w
    y = scores > 0
    learner = Perceptron(max_iter=1, random_state=0)
    (ours, one), (certificate, _) = in_turns(lambda: certify(X, y), lambda: learner.fit(X, y), repeats=2, warm_up=1)
    lower, upper = certificate.margin
    quality = Quality(f"{certificate.verdict}, gap {(upper - lower) / upper:.0e}", certificate.verify(X, y))
    note = f"{ours.best / one.best:.1f} passes, of 30 allowed"
    return Row(f"{n:,} × 50", "certificate", "a fit of one pass", ours, one, 1 / 30, quality, note=note)


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
        (took,), (found,) = in_turns(lambda X=X, y=y, s=seconds: fewest_mistakes(X, y, time_limit=s), repeats=1)
        print(f"{name:10s} between {found.lower} and {found.upper} mistakes, {took.best:.2f} s of {seconds}", flush=True)


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


def rows(quick, wanted=()):
    """The suite "certificates"."""
    for name, (load, allowed) in SETS.items():
        if (wanted and name not in wanted) or (quick and name == "MNIST 0-1"):
            continue
        if absent() and load not in (wdbc, digits_8):
            yield Row.missing(name, "LP (HiGHS)", absent())
        else:
            yield against_the_lp(name, load, allowed, 3 if quick else 5)
    if not wanted or "million" in wanted:
        yield a_million(100_000 if quick else 1_000_000)


if __name__ == "__main__":
    show(list(rows(False, sys.argv[1:])))
    for name, print_more in {"fewest": fewest, "flipped": flipped_labels}.items():
        if name in sys.argv or len(sys.argv) == 1:
            print_more()
