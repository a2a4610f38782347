"""MaxMarginClassifier beside LIBLINEAR: time to the same duality gap, hinge loss, C = 1, same problem.

LinearSVC penalises the bias, so both run without one (`fit_intercept=False`); the last lines show ours with its free bias.
LinearSVC shows no multipliers: its gap is its objective less our best dual value, which bounds the same problem. For each of
its tolerances ours is asked for the gap that it reached. 20 newsgroups: one against the rest, and the K classes jointly
(LinearSVC's "crammer_singer").

    python -m benchmarks.margins [repeats]
"""

import sys
import warnings

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from sklearn.svm import LinearSVC

from benchmarks import datasets
from benchmarks.timing import best
from separatrix import MaxMarginClassifier

TOLERANCES = (1e-1, 1e-2)


def a9a():
    X, y, X_test, y_test = datasets.a9a()
    return X, (y > 0).astype(int), X_test, (y_test > 0).astype(int)


def newsgroups():
    X, y, X_test, y_test = datasets.newsgroups()
    names = np.unique(y)
    return X, np.searchsorted(names, y), X_test, np.searchsorted(names, y_test)


def objective(model, X, y):
    scores = X @ model.coef_.T
    penalty = 0.5 * np.sum(model.coef_**2)
    if scores.shape[1] == 1:
        return penalty + np.maximum(0, 1 - np.where(y == 1, 1, -1) * scores[:, 0]).sum()
    if model.multi_class == "ovr":
        return penalty + np.maximum(0, 1 - np.where(y[:, None] == np.arange(scores.shape[1]), 1, -1) * scores).sum()
    each, true = np.arange(len(y)), scores[np.arange(len(y)), y]
    scores += 1
    scores[each, y] = true
    return penalty + (scores.max(axis=1) - true).sum()


def compare(name, X, y, X_test, y_test, multi_class, repeats):
    theirs_class = {"ovr": "ovr", "joint": "crammer_singer"}[multi_class]
    closest = MaxMarginClassifier(fit_intercept=False, multi_class=multi_class, tol=1e-6, random_state=0).fit(X, y)
    dual = closest.objective_ - closest.dual_gap_
    for tol in TOLERANCES:
        theirs = LinearSVC(
            loss="hinge", tol=tol, fit_intercept=False, multi_class=theirs_class, random_state=0, max_iter=100_000
        )
        (their_time,) = best(lambda: theirs.fit(X, y), repeats=repeats)  # noqa: B023
        gap = (objective(theirs, X, y) - dual) / dual
        ours = MaxMarginClassifier(fit_intercept=False, multi_class=multi_class, tol=gap, random_state=0)
        (our_time,) = best(lambda: ours.fit(X, y), repeats=repeats)  # noqa: B023
        print(
            f"| {name} | {tol:g} | {gap:.1e} | {ours.dual_gap_ / ours.objective_:.1e} | {their_time:.3f} | {our_time:.3f} "
            f"| {their_time / our_time:.2f} | {theirs.score(X_test, y_test):.4f} | {ours.score(X_test, y_test):.4f} |",
            flush=True,
        )
    free = MaxMarginClassifier(multi_class=multi_class, tol=1e-3, random_state=0)
    (took,) = best(lambda: free.fit(X, y), repeats=repeats)
    gap, accuracy = free.dual_gap_ / free.objective_, free.score(X_test, y_test)
    print(f"| {name}, free bias | | | {gap:.1e} | | {took:.3f} | | | {accuracy:.4f} |", flush=True)


def main(repeats=3):
    warnings.simplefilter("ignore", ConvergenceWarning)
    print("| data | LinearSVC's tol | its gap | our gap | LinearSVC s | ours s | ratio | its accuracy | ours |")
    print("|---|---|---|---|---|---|---|---|---|")
    compare("a9a", *a9a(), "joint", repeats)
    parts = newsgroups()
    compare("20newsgroups ovr", *parts, "ovr", repeats)
    compare("20newsgroups joint", *parts, "joint", repeats)


if __name__ == "__main__":
    main(*(int(argument) for argument in sys.argv[1:]))
