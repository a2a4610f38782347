"""Class weights, side by side with scikit-learn: what they do to the predicted shares, and what "balanced" reaches.

shares     the mean share predicted as the weighted class, over ten seeds, on overlapping classes: for every rule and C, with
           averaged and with last weights, for two and for three classes. It should rise with the weight. An "x" marks a row
           in which it falls somewhere.
balanced   balanced accuracy with class_weight="balanced" on test data, less that of scikit-learn's LogisticRegression with
           the same weights on the same features: for the defaults of `separatrix train` (pa1, C=1, averaged, ten passes) and
           for every other rule.

    OMP_NUM_THREADS=1 python -m benchmarks.weights [shares] [balanced]
"""

import itertools
import sys
import warnings

import numpy as np
from sklearn.linear_model import LogisticRegression, PassiveAggressiveClassifier
from sklearn.metrics import balanced_accuracy_score
from sklearn.model_selection import train_test_split

from benchmarks.tables import adult, kdd, sms_spam, table_of
from separatrix import AveragedPerceptron, Perceptron, TableFeatures
from separatrix.engine.rules import RULES

SEEDS = range(10)
WEIGHTS = (1, 2, 5, 10, 50)
CS = (0.001, 0.1, 1.0, 100.0)
R2L = ("ftp_write", "guess_passwd", "imap", "multihop", "phf", "spy", "warezclient", "warezmaster")
"""The attacks of KDD that break in from outside: 0.23 % of the training rows."""


def overlapping(n_classes, seed, n=400, d=5, positives=0.25):
    """Gaussian classes that overlap, of which the last has a share of `positives`."""
    rng = np.random.default_rng([n_classes, seed])
    others = [(1 - positives) / (n_classes - 1)] * (n_classes - 1)
    means = 1.5 * np.eye(n_classes, d)
    y = rng.choice(n_classes, size=n, p=[*others, positives])
    return means[y] + rng.normal(size=(n, d)), y


def peer_shares(weight, loss, C):
    """The same of scikit-learn's passive-aggressive learner; None where its weights overflow."""
    found = []
    for seed in SEEDS:
        X, y = overlapping(2, seed)
        settings = {"loss": loss, "C": C, "max_iter": 10, "tol": None, "average": True, "random_state": seed}
        try:
            found.append(np.mean(PassiveAggressiveClassifier(class_weight={1: weight}, **settings).fit(X, y).predict(X)))
        except ValueError:
            return None
    return np.mean(found)


def share(learner, rule, C, weight, n_classes, multi_class):
    settings = {"rule": rule, "C": C, "max_iter": 10, "multi_class": multi_class}
    found = []
    for seed in SEEDS:
        X, y = overlapping(n_classes, seed)
        model = learner(class_weight={n_classes - 1: weight}, random_state=seed, **settings).fit(X, y)
        found.append(np.mean(model.predict(X) == n_classes - 1))
    return np.mean(found)


def shares():
    print("| rule | C | weights | classes |", " | ".join(f"weight {weight}" for weight in WEIGHTS), "| |")
    print("|---|---|---|---|" + "---|" * (len(WEIGHTS) + 1))
    problems = ((2, "joint"), (3, "joint"), (3, "ovr"))
    for rule, entry in RULES.items():
        for C, learner, (n_classes, how) in itertools.product(
            CS if entry.has_C else CS[2:3], (AveragedPerceptron, Perceptron), problems
        ):
            row = [share(learner, rule, C, weight, n_classes, how) for weight in WEIGHTS]
            used = "averaged" if learner is AveragedPerceptron else "last"
            classes = "2" if n_classes == 2 else f"{n_classes}, {how}"
            print_shares(rule, f"{C:g}" if entry.has_C else "", used, classes, row)
    for loss, C in itertools.product(("hinge", "squared_hinge"), CS):
        row = [peer_shares(weight, loss, C) for weight in WEIGHTS]
        print_shares(f"scikit-learn's PA, {loss}", f"{C:g}", "averaged", "2", row)


def print_shares(rule, C, used, classes, row):
    known = [share for share in row if share is not None]
    falls = len(known) < len(row) or np.any(np.diff(known) < 0)
    cells = " | ".join("overflow" if share is None else f"{share:.3f}" for share in row)
    print(f"| {rule} | {C} | {used} | {classes} | {cells} | {'x' if falls else ''} |", flush=True)


def of_table(table, y, test, y_test):
    """The features of `separatrix train`."""
    features = TableFeatures().fit(table)
    return features.transform(table), y, features.transform(test), y_test


def split(table, y, **sizes):
    train, test = train_test_split(np.arange(len(y)), random_state=0, stratify=y, **sizes)
    return of_table(table.take(train), y[train], table.take(test), y[test])


def gaussian(positives, d=10):
    """Two Gaussian classes 1.5 deviations apart."""
    rng = np.random.default_rng(round(positives * 100))
    parts = []
    for n in (20_000, 50_000):
        y = (rng.random(n) < positives).astype(int)
        parts += [rng.normal(size=(n, d)) + np.outer(y - 0.5, np.full(d, 1.5 / np.sqrt(d))), y]
    return parts


def imbalanced():
    """Every set as X, y, X_test, y_test; class 1 is the rare one."""
    table, y, test, y_test = adult()
    rich = sorted(set(y))[1]
    yield "adult", of_table(table, (y == rich).astype(int), test, (y_test == rich).astype(int))
    table, y = table_of("uci", "spambase.data.gz", label="c57")
    yield "spambase", split(table, (y == sorted(set(y))[1]).astype(int), test_size=0.3)
    table, y = sms_spam()
    yield "sms_spam", split(table, (y == "spam").astype(int), test_size=0.3)
    table, y, _, _ = kdd()
    labels = np.isin(np.char.rstrip(y.astype(str), "."), R2L).astype(int)
    yield "KDD 10 %, r2l against the rest", split(table, labels, train_size=100_000, test_size=100_000)
    for positives in (0.01, 0.02, 0.05, 0.1, 0.2):
        yield f"Gaussian, {positives:.0%}", gaussian(positives)


def balanced():
    print("| data | rare | LogisticRegression |", " | ".join(f"{rule}" for rule in RULES), "| pa1, no weights |")
    print("|---|---|---|" + "---|" * (len(RULES) + 1))
    for name, (X, y, X_test, y_test) in imbalanced():
        theirs = LogisticRegression(class_weight="balanced", max_iter=300).fit(X, y)
        peer = balanced_accuracy_score(y_test, theirs.predict(X_test))
        cells = []
        ways = [(rule, "balanced") for rule in RULES] + [("pa1", None)]
        for rule, weights in ways:
            if rule == "arow-full" and X.shape[1] > 100:
                cells.append("")
                continue
            ours = []
            for seed in range(3):
                model = AveragedPerceptron(rule=rule, max_iter=10, class_weight=weights, random_state=seed).fit(X, y)
                ours.append(balanced_accuracy_score(y_test, model.predict(X_test)) - peer)
            cells.append(f"{np.mean(ours):+.4f}")
        print(f"| {name} | {y.mean():.2%} | {peer:.4f} | {' | '.join(cells)} |", flush=True)


def main():
    warnings.filterwarnings("ignore", module="sklearn")
    for part in sys.argv[1:] or ["shares", "balanced"]:
        {"shares": shares, "balanced": balanced}[part]()
        print()


if __name__ == "__main__":
    main()
