"""McDonald, Hall and Mann 2010: mixing after every pass against averaging once, over ten shards.

Shards are worked on in turn here. A learner starts from mixed weights w by being shown w itself as its first example: from
zero that is a mistake, and its correction makes w the weights. On separable data their theorem bounds the mistakes, averaged
over shards and added over passes, by R²/γ²; γ is certified.
"""

from collections.abc import Iterator
from statistics import fmean
from typing import Any

import numpy as np
import scipy.sparse as sp

from benchmarks import certificates, datasets
from benchmarks.engine import SEEDS
from benchmarks.published.figures import Figure, main
from separatrix import Perceptron, certify

SOURCE = "McDonald, Hall, Mann 2010, Distributed Training Strategies for the Structured Perceptron"
SHARDS, PASSES, NEAR = 10, 10, 0.005


def pass_from(w: Any, X: Any, y: Any) -> tuple[Any, int]:
    """One pass over a shard from w; the weights then, and the mistakes."""
    model, begun = Perceptron(fit_intercept=False), int(w.any())
    if begun:
        model.partial_fit(sp.csr_matrix(w), [1], classes=[-1, 1])
    model.partial_fit(X, y, classes=[-1, 1])
    return model.coef_.copy(), model.n_mistakes_ - begun


def shards_of(X: Any, y: Any, seed: int) -> list[tuple[Any, Any]]:
    order = np.random.default_rng(seed).permutation(len(y))
    return [(datasets.with_narrow_indices(X[part]), y[part]) for part in np.array_split(order, SHARDS)]


def mixed(shards: list[tuple[Any, Any]], passes: int) -> tuple[Any, list[float]]:
    """Uniform mixing after every pass; the weights, and the mean mistakes of a shard in each pass."""
    w, mistakes = np.zeros((1, shards[0][0].shape[1])), []
    for _ in range(passes):
        found = [pass_from(w, X, y) for X, y in shards]
        w = np.mean([weights for weights, _ in found], axis=0)
        mistakes.append(float(np.mean([count for _, count in found])))
        if not mistakes[-1]:
            break
    return w, mistakes


def averaged_once(shards: list[tuple[Any, Any]], passes: int) -> Any:
    """Each shard alone for all its passes, and then the mean."""
    each = (Perceptron(fit_intercept=False, max_iter=passes, order="cyclic").fit(X, y).coef_ for X, y in shards)
    return np.mean(list(each), axis=0)


def with_bias(X: Any) -> Any:
    return datasets.with_narrow_indices(sp.hstack([X, np.ones((X.shape[0], 1))], format="csr"))


def accuracy(w: Any, X: Any, y: Any) -> float:
    return float(np.mean(np.where((X @ w.T).ravel() > 0, 1, -1) == y))


def compared(name: str, load: Any, quick: bool) -> Iterator[Figure]:
    found = []
    for seed in range(2 if quick else SEEDS):
        X, y, X_test, y_test = load(seed)
        X, X_test = with_bias(X), with_bias(X_test)
        shards = shards_of(X, y, seed)
        weights = mixed(shards, PASSES)[0], averaged_once(shards, PASSES)
        serial = Perceptron(fit_intercept=False, max_iter=PASSES, random_state=seed).fit(X, y)
        found.append([*(accuracy(w, X_test, y_test) for w in weights), serial.score(X_test, y_test)])
    every, once, serial = zip(*found, strict=True)
    protocol = f"{SHARDS} random shards, {PASSES} passes, last weights, test accuracy"
    yield Figure.ordering(f"{name}, mixing against averaging once", SOURCE, protocol, ("mixing", "once"), every, once)
    ours, holds = f"mixing {fmean(every):.4f}, one learner {fmean(serial):.4f}", fmean(every) >= fmean(serial) - NEAR
    said, protocol = f"mixing as good as one learner (here within {NEAR})", f"{protocol}, mean of {len(found)} seeds"
    yield Figure(f"{name}, mixing against one learner", SOURCE, protocol, said, ours, holds)


def two_classes(parts: tuple[Any, ...], positive: Any) -> tuple[Any, ...]:
    X, y, X_test, y_test = parts
    return X, np.where(y == positive, 1, -1), X_test, np.where(y_test == positive, 1, -1)


def rows(quick: bool) -> Iterator[Figure]:
    """Two data sets for the ordering, a separable one for the bound."""
    a9a = two_classes(datasets.a9a(), 1)
    yield from compared("a9a", lambda seed: a9a, quick)
    yield from compared("sms_spam", lambda seed: two_classes(datasets.sms_spam(seed), "spam"), quick)
    X, y = certificates.agaricus()
    X, y = with_bias(X), np.where(y == 1, 1, -1)
    certificate = certify(X, y, fit_intercept=False)
    _, mistakes = mixed(shards_of(X, y, 0), 200)
    bound, clean = certificate.mistake_bound, not mistakes[-1]
    yield Figure(
        "agaricus (separable), mistakes of a shard until a pass without any",
        SOURCE,
        f"{SHARDS} random shards, uniform mixing, mean over shards added over passes; bias as a feature",
        f"at most R²/γ² = {bound:,} and an end",
        f"{sum(mistakes):,.1f} in {len(mistakes)} passes" + ("" if clean else ", not yet clean"),
        clean and sum(mistakes) <= bound,
    )


if __name__ == "__main__":
    main(rows)
