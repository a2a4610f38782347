"""Calibrated probabilities, side by side: log loss and expected calibration error (15 bins) on test data.

One slope on cross-fitted scores (what `calibrate="sigmoid"` does) beside the same on a held-out part of the training data,
which the final model then lacks, on the training scores themselves, and beside scikit-learn's sigmoid with an offset, whose
most probable class may be another than the predicted one ("disagree"). Digits and breast_cancer: mean of five splits.

    python -m benchmarks.calibration
"""

import numpy as np
from sklearn.calibration import CalibratedClassifierCV
from sklearn.datasets import load_breast_cancer, load_digits
from sklearn.metrics import log_loss
from sklearn.model_selection import train_test_split
from sklearn.preprocessing import StandardScaler

from benchmarks import datasets
from separatrix import AveragedPerceptron, Perceptron, PocketPerceptron, VotedPerceptron
from separatrix.engine.rows import NO_WEIGHT
from separatrix.learners.calibration import find_slope, probabilities


def a9a():
    X, y, X_test, y_test = datasets.a9a()
    return [(X, (y > 0).astype(int), X_test, (y_test > 0).astype(int))]


def splits(load):
    X, y = load(return_X_y=True)
    parts = []
    for seed in range(5):
        train, test, y_train, y_test = train_test_split(X, y, test_size=0.3, random_state=seed, stratify=y)
        scaler = StandardScaler().fit(train)
        parts.append((scaler.transform(train), y_train, scaler.transform(test), y_test))
    return parts


def sms_spam():
    parts = [datasets.sms_spam(seed) for seed in range(5)]
    return [(X, (y == "spam").astype(int), X_test, (y_test == "spam").astype(int)) for X, y, X_test, y_test in parts]


def calibration_error(shares, y, bins=15):
    told, right = shares.max(axis=1), shares.argmax(axis=1) == y
    place = np.minimum((told * bins).astype(int), bins - 1)
    parts = [place == k for k in range(bins) if np.any(place == k)]
    return sum(abs(told[part].mean() - right[part].mean()) * part.mean() for part in parts)


def sloped(model, X, y, X_test):
    """Calibrate a fitted model on some examples."""
    n_classes = len(model.classes_)
    slope = find_slope(model.decision_function(X).reshape(len(y), -1), y.astype(np.int32), NO_WEIGHT)
    scores = model.decision_function(X_test).reshape(X_test.shape[0], -1)
    return probabilities(scores, slope, model.decide(scores, n_classes))


def ways(learner, X, y, X_test):
    def new(**parameters):
        return learner(random_state=0, **parameters)

    cross = new(calibrate="sigmoid").fit(X, y)
    yield "slope, cross-fitted", cross, cross.predict_proba(X_test)
    for part in (0.1, 0.2):
        train, held = train_test_split(np.arange(len(y)), test_size=part, random_state=0, stratify=y)
        model = new().fit(X[train], y[train])
        yield f"slope, {part:.0%} held out", model, sloped(model, X[held], y[held], X_test)
    model = new().fit(X, y)
    yield "slope, training scores", model, sloped(model, X, y, X_test)
    offset = CalibratedClassifierCV(new(), method="sigmoid", cv=5, ensemble=False).fit(X, y)
    yield "slope and offset, cross-fitted", model, offset.predict_proba(X_test)
    yield "class shares", model, np.tile(np.bincount(y) / len(y), (X_test.shape[0], 1))


def main():
    print("| data | learner | calibrated by | log loss | ECE | disagree |\n|---|---|---|---|---|---|")
    sets = {
        "a9a": (a9a(), (Perceptron, AveragedPerceptron)),
        "sms_spam": (sms_spam(), (Perceptron, AveragedPerceptron)),
        "digits": (splits(load_digits), (Perceptron, AveragedPerceptron, VotedPerceptron, PocketPerceptron)),
        "breast_cancer": (splits(load_breast_cancer), (Perceptron, AveragedPerceptron, VotedPerceptron, PocketPerceptron)),
    }
    for name, (parts, learners) in sets.items():
        for learner in learners:
            found: dict[str, list[tuple[float, float, float]]] = {}
            for X, y, X_test, y_test in parts:
                for way, model, shares in ways(learner, X, y, X_test):
                    differ = np.mean(model.classes_[shares.argmax(axis=1)] != model.predict(X_test))
                    row = log_loss(y_test, shares), calibration_error(shares, y_test), float(differ)
                    found.setdefault(way, []).append(row)
            for way, rows in found.items():
                loss, error, differ = np.mean(rows, axis=0)
                print(f"| {name} | {learner.__name__} | {way} | {loss:.4f} | {error:.4f} | {differ:.1%} |", flush=True)


if __name__ == "__main__":
    main()
