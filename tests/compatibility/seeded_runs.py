"""Seeded runs and the digests of what they give: the same code must give the same digests, bit for bit.

`digests("quick")` makes a part of the runs, `digests("all")` all of them. Each run has a name that says what it is, and a
digest of one or two parts with a slash between: first what was learned (weights, mistakes, predictions), then the bytes of
the model file but for the version number in it. Only public names are used.

What LAPACK or BLAS computes on real numbers is rounded before it is hashed. Runs with "real" in their name have features
that are no whole numbers: there the order of additions shows, as it does in rules with a division and in scaled columns, and
another kind of processor gives other last bits. `conftest.py` has the kind for which the runs were recorded.

    NUMBA_CPU_NAME=x86-64-v3 NUMBA_CPU_FEATURES= OPENBLAS_CORETYPE=Haswell python seeded_runs.py all > seeded_runs.json
"""

from __future__ import annotations

import csv
import hashlib
import io
import json
import os
import random
import sys
import tempfile
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from functools import partial
from itertools import pairwise, product
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import scipy.sparse as sp

from separatrix import (
    AveragedPerceptron,
    FisherDiscriminant,
    KernelPerceptron,
    MaxMarginClassifier,
    Model,
    PassiveAggressive,
    Perceptron,
    PocketPerceptron,
    TableFeatures,
    TextFeatures,
    VotedPerceptron,
    certify,
    explain,
    load,
    save,
    suspects,
    trace,
)
from separatrix.cli import app
from separatrix.cluster import fit as fit_shards

LEARNERS = {"last": Perceptron, "averaged": AveragedPerceptron, "voted": VotedPerceptron, "pocket": PocketPerceptron}
RULES = ("perceptron", "margin", "pa", "pa1", "pa2", "arow", "arow-full")
ORDERS = ("shuffle", "permutation", "cyclic", "random")
KINDS = ("2 classes", "3 classes/joint", "4 classes/ovr")
FORMS = ("dense", "float32", "csr", "real dense", "real csr", "csr float32")


class Case(NamedTuple):
    """A run: its name, what makes it, and whether it is among the quick ones."""

    name: str
    make: Callable[[], str]
    quick: bool


# Hashing.


class Hash:
    """A short hash of values one after the other, each with its kind and shape."""

    def __init__(self) -> None:
        self._sum = hashlib.blake2b(digest_size=8)

    def add(self, *values: Any) -> Hash:
        for value in values:
            self._add(value)
        return self

    def _add(self, value: Any) -> None:
        if sp.issparse(value):
            value = sp.csr_matrix(value)
            self.add(value.shape, value.indptr, value.indices, value.data)
            return
        if isinstance(value, np.ndarray):
            kind = value.dtype.kind
            if kind in "OUS":
                self._add(json.dumps(value.tolist(), default=str))
                return
            told = value.astype({"f": np.float64, "b": np.int64, "i": np.int64, "u": np.int64}[kind])
            self._sum.update(f"{told.dtype.kind}{value.shape}".encode() + np.ascontiguousarray(told).tobytes())
            return
        if isinstance(value, bytes):
            self._sum.update(b"b%d:" % len(value) + value)
            return
        text = value if isinstance(value, str) else json.dumps(value, default=_plain)
        self._sum.update(f"s{len(text)}:{text}".encode())

    def __str__(self) -> str:
        return self._sum.hexdigest()


def _plain(value: Any) -> Any:
    if isinstance(value, np.generic):
        return value.item()
    if isinstance(value, np.ndarray):
        return value.tolist()
    return str(value)


def rounded(values: Any, digits: int = 6) -> np.ndarray:
    """Return numbers to so many digits, without a negative zero."""
    values = np.asarray(values, np.float64)
    scale = np.max(np.abs(values), initial=0.0) or 1.0
    return np.round(values / scale, digits) + 0.0


def file_digest(path: str | os.PathLike[str]) -> str:
    """Return the hash of a model file but for the version number: its header, its body, and the bytes of its arrays."""
    written = Path(path).read_bytes()
    length = int.from_bytes(written[:8], "little")
    header = json.loads(written[8 : 8 + length])
    body = json.loads(header["__metadata__"].pop("separatrix"))["body"]
    body["version"] = ""
    if "version" in body["facts"]:
        body["facts"]["version"] = ""
    told = [json.dumps(part, sort_keys=True) for part in (header, body)]
    return str(Hash().add(*told, written[8 + length :]))


def saved_digest(model: Any, **options: Any) -> str:
    with tempfile.TemporaryDirectory() as folder:
        save(model, Path(folder) / "m.sepx", **options)
        return file_digest(Path(folder) / "m.sepx")


def ledger_parts(ledger: Any) -> list[Any]:
    columns = [np.asarray(getattr(ledger, name)) for name in ("step", "example", "up", "down")]
    columns += [np.asarray(getattr(ledger, name)) for name in ("correction", "shrink", "score")]
    return [*columns, len(ledger), ledger.kept, ledger.cut, ledger.steps, list(map(tuple, ledger.pass_starts))]


def course(model: Any) -> list[Any]:
    """Return what a learner tells of its training."""
    cycle = None if model.cycle_ is None else list(model.cycle_)
    told = [model.mistakes_per_pass_, model.n_mistakes_, model.n_iter_, model.n_seen_, bool(model.converged_), cycle]
    names = ("n_errors_", "radius_", "validation_scores_", "C_", "C_scores_", "pocket_mistakes_", "progressive_errors_")
    for name in names:
        if hasattr(model, name):
            value = getattr(model, name)
            told.append(list(value.items()) if isinstance(value, dict) else value)
    return told


def linear_digest(model: Any, X: Any, *, file: bool = True) -> str:
    """Return the digest of a fitted linear learner, with its predictions of X."""
    found = Hash().add(model.classes_, model.coef_, model.intercept_, *ledger_parts(model.ledger_), *course(model))
    found.add(model.predict(X), model.decision_function(X))
    if getattr(model, "calibrate", None) is not None and hasattr(model, "slope_"):
        found.add(f"{model.slope_:.6g}", np.round(model.predict_proba(X), 6))
        file = False  # the slope, in its last bits, is SciPy's
    return f"{found}/{saved_digest(model)}" if file else str(found)


# Data.


def examples(kind: str, form: str, seed: int, n: int = 150, d: int = 12, noise: float = 1.5) -> tuple[Any, np.ndarray]:
    """Return examples and labels which a linear rule gives, not quite; whole numbers unless the form is real."""
    rng = np.random.default_rng(seed)
    K = int(kind[0])
    real = "real" in form
    X = rng.normal(size=(n, d)) if real else rng.integers(-3, 4, size=(n, d)).astype(float)
    if "csr" in form:
        X *= rng.random((n, d)) < 0.4
    hidden = rng.integers(-2, 3, size=(d, K)).astype(float)
    hidden[0] += np.arange(K)
    scores = X @ hidden + noise * rng.normal(size=(n, K))
    codes = np.argmax(scores, axis=1)
    codes[:K] = np.arange(K)
    names = np.array([-1, 1]) if K == 2 else np.array(["ham", "spam", "other", "a bird"][:K])
    if "csr" in form:
        X = sp.csr_matrix(X)
    if "float32" in form:
        X = X.astype(np.float32)
    return X, names[codes]


def separable(form: str, seed: int, K: int = 2, n: int = 80, d: int = 6) -> tuple[Any, np.ndarray]:
    """Return examples of whole numbers that a linear rule gets right with a lead."""
    rng = np.random.default_rng(seed)
    X = rng.integers(-5, 6, size=(8 * n, d)).astype(float)
    hidden = rng.integers(-3, 4, size=(d, K)).astype(float)
    scores = np.sort(X @ hidden, axis=1)
    clear = np.flatnonzero(scores[:, -1] - scores[:, -2] >= 4)[:n]
    X, y = X[clear], np.argmax(X[clear] @ hidden, axis=1)
    return (sp.csr_matrix(X) if "csr" in form else X), y


# Linear learners in memory.


def product_cases() -> Iterator[Case]:
    """All learners with all rules and kinds of classes; data, orders, ties and bias take turns."""
    rng = random.Random(7)
    for number, (learner, rule, kind) in enumerate(product(LEARNERS, RULES, KINDS)):
        for turn in range(3):
            form = FORMS[(number + 2 * turn + number // 6) % 6]
            order = ORDERS[(number + turn + number // 4) % 4]
            tie = rng.choice(["mistake", "first", "+1"] if kind != "3 classes/joint" else ["mistake", "first"])
            bias, passes, seed = rng.random() < 0.7, rng.choice([1, 3, 6]), rng.randrange(1000)
            record, C = rng.random() < 0.25, rng.choice([0.01, 0.25, 1.0, 8.0])
            told = [learner, rule, form, kind, order, f"tie {tie}", "bias" if bias else "no bias", f"{passes} passes"]
            name = "/".join([*told, f"C {C:g}", *(["record"] if record else []), f"seed {seed}"])
            settings = {"rule": rule, "C": C, "margin": 2.0, "tie": tie, "order": order, "fit_intercept": bias}
            settings |= {"multi_class": kind[10:] or "joint", "max_iter": passes, "random_state": seed, "record": record}
            yield Case(
                name, partial(_fitted, LEARNERS[learner](**settings), kind, form, seed), turn == 0 and number % 2 == 0
            )


def _fitted(model: Any, kind: str, form: str, seed: int, **given: Any) -> str:
    X, y = examples(kind, form, seed)
    n = X.shape[0]
    if given.pop("weighed", False):
        rng = np.random.default_rng(seed + 1)
        given["sample_weight"] = rng.integers(0, 4, n) / 2.0
    if given.pop("held_out", False):
        given["X_val"], given["y_val"] = examples(kind, form, seed + 2, n=60)
    return linear_digest(model.fit(X, y, **given), X)


def special_cases() -> Iterator[Case]:
    """Weights, held-out examples, the choice of C, probabilities, and what else `fit` is asked for."""

    def case(name: str, model: Any, form: str = "dense", kind: str = "3 classes/joint", quick: bool = False, **given: Any):
        model.set_params(random_state=5)
        if hasattr(model, "rule") and not isinstance(model, PassiveAggressive):
            name = f"{name}/{model.rule}"
        named = {Perceptron: "last", PassiveAggressive: "passive-aggressive"}
        learner = named.get(type(model), type(model).__name__.removesuffix("Perceptron").lower())
        return Case(f"{learner}/{name}/{form}/{kind}", partial(_fitted, model, kind, form, 11, **given), quick)

    for rule in RULES:
        yield case("sample weights", AveragedPerceptron(rule=rule, max_iter=4), "csr", weighed=True, quick=rule == "pa1")
        yield case("class weights balanced", Perceptron(rule=rule, max_iter=4, class_weight="balanced"), kind=KINDS[2])
        yield case(
            "early stopping", AveragedPerceptron(rule=rule, max_iter=12, early_stopping=True, n_iter_no_change=2), "csr"
        )
        yield case("held-out examples", Perceptron(rule=rule, max_iter=4), kind=KINDS[0], held_out=True)
        yield case("average from pass 3", AveragedPerceptron(rule=rule, max_iter=5, average_from=3), quick=rule == "pa1")
    for rule in ("pa1", "pa2", "arow", "arow-full"):
        for learner in (Perceptron, AveragedPerceptron):
            yield case("C auto", learner(rule=rule, C="auto", max_iter=4), "csr", quick=rule == "arow")
        yield case("C auto and held-out examples", AveragedPerceptron(rule=rule, C="auto", max_iter=4), held_out=True)
        yield case("C auto, many classes", AveragedPerceptron(rule=rule, C="auto", max_iter=3), "real dense", KINDS[2])
    weights = {"ham": 2.0, "spam": 0.5}
    for name, learner in LEARNERS.items():
        quick = name == "voted"
        stops = {"early_stopping": True, "n_iter_no_change": 2, "max_iter": 15}
        yield case("class weights", learner(class_weight=weights, max_iter=3), "csr", weighed=True, quick=quick)
        yield case("early stopping, validation a third", learner(validation_fraction=0.33, **stops), "csr", quick=quick)
        yield case("early stopping on held-out examples", learner(**stops), "float32", KINDS[2], held_out=True)
        yield case("early stopping, real", learner(rule="pa1", **stops), "real dense", KINDS[0])
        yield case("early stopping, weights", learner(rule="margin", **stops), "csr", weighed=True)
        yield case("probabilities", learner(calibrate="sigmoid", max_iter=3), kind=KINDS[0], quick=quick)
        yield case("probabilities from held-out examples", learner(calibrate="sigmoid", max_iter=3), "csr", held_out=True)
        yield case("record", learner(record=True, max_iter=3), "csr", quick=quick)
        yield case("record, dense", learner(record=True, max_iter=3, rule="pa2"), kind=KINDS[2])
    for loss, average in product(("hinge", "squared_hinge"), (False, True, 50)):
        made = partial(PassiveAggressive, loss=loss, average=average)
        yield case(f"{loss}/average {average}", made(max_iter=40), "csr", KINDS[0], quick=average is True)
        yield case(f"{loss}/average {average}/cyclic", made(max_iter=6, tol=None, shuffle=False), kind=KINDS[2])
        yield case(f"{loss}/average {average}/tol 0.01", made(tol=0.01, n_iter_no_change=2), "real dense")
    yield case("C auto", PassiveAggressive(C="auto", max_iter=5), "csr")
    yield case("early stopping", PassiveAggressive(early_stopping=True, n_iter_no_change=2, max_iter=20), "csr")
    yield case("probabilities", PassiveAggressive(calibrate="sigmoid", max_iter=4))


def ending_cases() -> Iterator[Case]:
    """Runs until something is proven: a clean pass, a cycle, or that there can be none."""
    xor = (np.array([[1.0, 1], [1, -1], [-1, 1], [-1, -1]]), np.array([1, -1, -1, 1]))
    for (name, learner), order in product(LEARNERS.items(), ORDERS):
        for form, K in (("dense", 2), ("csr", 3)):
            model = learner(max_iter=None, order=order, random_state=3, multi_class="joint")
            make = partial(_ended, model, partial(separable, form, 21, K))
            yield Case(f"{name}/until a clean pass/{form}/{K} classes/{order}", make, order == "cyclic" and name == "last")
        for bias in (False, True):
            model = learner(max_iter=None, order=order, random_state=3, fit_intercept=bias)
            make = partial(_ended, model, lambda: xor)
            quick = order == "cyclic"
            yield Case(f"{name}/XOR until a proof or a cycle/{'bias' if bias else 'no bias'}/{order}", make, quick)
    for multi_class, form in product(("joint", "ovr"), ("dense", "csr")):
        for order in ("cyclic", "shuffle"):
            model = AveragedPerceptron(max_iter=None, order=order, random_state=3, multi_class=multi_class)
            make = partial(_ended, model, partial(examples, "3 classes", form, 23, n=60, d=3))
            yield Case(f"averaged/inseparable until a proof or a cycle/{form}/3 classes/{multi_class}/{order}", make, False)
    for rule in ("margin", "pa", "pa1"):
        model = Perceptron(rule=rule, max_iter=None, random_state=3, C=4.0)
        yield Case(
            f"last/until a clean pass/{rule}/dense/2 classes", partial(_ended, model, partial(separable, "dense", 25)), False
        )


def _ended(model: Any, data: Callable[[], tuple[Any, np.ndarray]]) -> str:
    X, y = data()
    return linear_digest(model.fit(X, y), X)


def going_on_cases() -> Iterator[Case]:
    """Warm starts, streams in batches with classes that come late, models that learn on from a file."""
    streams: dict[str, Any] = {
        "last": Perceptron,
        "averaged": AveragedPerceptron,
        "voted": VotedPerceptron,
        "passive-aggressive": PassiveAggressive,
    }
    for (name, learner), rule in product(LEARNERS.items(), ("perceptron", "pa1", "arow", "arow-full")):
        model = learner(rule=rule, warm_start=True, max_iter=3, random_state=1)
        yield Case(f"{name}/warm start/{rule}/csr", partial(_warm, model), rule == "pa1")
    for (name, learner), rule in product(streams.items(), RULES):
        if name == "passive-aggressive":
            if rule not in ("pa1", "pa2"):
                continue
            settings: dict[str, Any] = {"loss": "hinge" if rule == "pa1" else "squared_hinge", "average": rule == "pa2"}
        else:
            settings = {"rule": rule}
        for number, multi_class in enumerate(("joint", "ovr")):
            form = FORMS[(RULES.index(rule) + number) % 6]
            model = learner(multi_class=multi_class, random_state=1, record=rule == "margin", **settings)
            make = partial(_streamed, model, form, rule == "pa")
            yield Case(f"{name}/stream with late classes/{rule}/{form}/{multi_class}", make, rule in ("margin", "arow"))
    for rule in ("pa1", "arow"):
        model = AveragedPerceptron(rule=rule, C="auto")
        yield Case(f"averaged/stream/{rule}/C auto/csr", partial(_streamed, model, "csr", False), False)
    for rule in RULES:
        make = partial(_learned_on, AveragedPerceptron(rule=rule, max_iter=2, random_state=1))
        yield Case(f"averaged/saved, loaded, learned on/{rule}/csr", make, rule == "pa2")


def _warm(model: Any) -> str:
    X, y = examples("3 classes", "csr", 31)
    told = [linear_digest(model.fit(X, y), X), linear_digest(model.fit(X[:70], y[:70]), X)]
    return str(Hash().add(*told))


def _streamed(model: Any, form: str, weighed: bool) -> str:
    X, y = examples("4 classes", form, 33)
    order = np.argsort(np.where(np.isin(y, ["a bird", "other"]), 60, 0) + np.arange(len(y)), kind="stable")
    X, y = X[order], y[order]
    weight = np.random.default_rng(2).integers(1, 4, len(y)) / 2.0
    for begin, end in ((0, 1), (1, 2), (2, 40), (40, 41), (41, 150)):
        given = {"sample_weight": weight[begin:end]} if weighed else {}
        model.partial_fit(X[begin:end], y[begin:end], **given)
    return linear_digest(model, X)


def _learned_on(model: Any) -> str:
    X, y = examples("3 classes", "csr", 35)
    model.fit(X, y)
    with tempfile.TemporaryDirectory() as folder:
        save(model, Path(folder) / "m.sepx", ledger=False)
        first = file_digest(Path(folder) / "m.sepx")
        model = load(Path(folder) / "m.sepx").estimator
    model.partial_fit(X[:50], y[:50])
    return str(Hash().add(first, model.coef_, model.intercept_, model.n_seen_, model.predict(X), saved_digest(model)))


# Kernel perceptrons, and the classifiers of linear algebra.


def kernel_cases() -> Iterator[Case]:
    """Whole numbers and the kernels that keep them whole are hashed by the bit; others are rounded."""

    def case(name: str, form: str = "dense", kind: str = "3 classes/joint", quick: bool = False, **settings: Any) -> Case:
        settings = {"random_state": 4, "max_iter": 3, "multi_class": kind[10:] or "joint"} | settings
        return Case(f"kernel/{name}/{form}/{kind}", partial(_kernel, settings, kind, form), quick)

    for form, kind, order in zip(("dense", "csr", "float32", "csr"), (*KINDS, KINDS[0]), ORDERS, strict=True):
        yield case(f"linear/{order}", form, kind, quick=True, kernel="linear", order=order)
        yield case(f"poly/{order}", form, kind, kernel="poly", degree=2, gamma=1.0, coef0=1.0, order=order)
        yield case(f"rbf/{order}", form, kind, quick=order == "shuffle", kernel="rbf", order=order)
        yield case(f"rbf/auto/no bias/{order}", form, kind, kernel="rbf", gamma="auto", fit_intercept=False, order=order)
    yield case("function", kernel=_product)
    yield case("precomputed", kernel="precomputed")
    for form in ("dense", "csr"):
        whole = {"kernel": "poly", "degree": 2, "gamma": 1.0, "coef0": 1.0}
        for budget in (5, 30):
            yield case(f"poly/budget {budget}", form, budget=budget, **whole)
            yield case(f"rbf/budget {budget}/record", form, KINDS[0], quick=budget == 5, budget=budget, record=True)
        yield case("poly/record", form, record=True, **whole)
        yield case("poly/small cache", form, cache_mb=0.001, **whole)
        stops = {"early_stopping": True, "n_iter_no_change": 2, "max_iter": 12}
        yield case("poly/early stopping", form, quick=form == "csr", **stops, **whole)
        yield case("poly/early stopping, last", form, predict_with="last", **stops, **whole)
        yield case("poly/early stopping, voted", form, KINDS[0], predict_with="voted", **stops, **whole)
        yield case("poly/early stopping, budget", form, budget=20, **stops, **whole)
        yield case("poly/class weights", form, class_weight="balanced", **whole)
    yield case("poly/until a clean pass", "dense", KINDS[0], kernel="poly", degree=3, gamma=1.0, max_iter=None)
    for tie in ("mistake", "first", "+1"):
        yield case(f"linear/tie {tie}", kind=KINDS[0], kernel="linear", tie=tie, fit_intercept=False)
    xor = (np.array([[1.0, 1], [1, -1], [-1, 1], [-1, -1]]), np.array([1, -1, -1, 1]))
    for order in ("cyclic", "shuffle"):
        settings = {"kernel": "linear", "order": order, "max_iter": None if order == "cyclic" else 9, "random_state": 4}
        yield Case(f"kernel/linear/XOR/{order}", partial(_kernel, settings, "", "", xor), True)


def _product(A: Any, B: Any) -> Any:
    return (A @ B.T + 1.0) ** 2


def _kernel(settings: dict[str, Any], kind: str, form: str, data: Any = None) -> str:
    X, y = examples(kind, form, 41, n=100, d=6) if data is None else data
    kernel = settings["kernel"] if "kernel" in settings else "rbf"
    if kernel == "precomputed":
        X = X @ X.T
    model = KernelPerceptron(**settings).fit(X, y)
    exact = kernel in ("linear", "poly", "precomputed") and settings.get("budget") is None
    ledger = model.ledger_
    found = Hash().add(model.classes_, *(np.asarray(getattr(ledger, name)) for name in ("step", "example", "up", "down")))
    found.add(*course(model), ledger.kept, ledger.cut, model.support_, f"{model.gamma_:.10g}", model.dropped_.mistake)
    found.add(model.dropped_.example, np.round(model.dropped_.lost, 5) + 0.0)
    modes = ("averaged", "last", "voted", "random")
    for mode in modes if settings.get("budget") is None or settings.get("record") else modes[:2]:
        model.set_params(predict_with=mode)
        scores = model.decision_function(X)
        found.add(model.dual_coef_, model.intercept_, scores) if exact else found.add(
            rounded(model.dual_coef_), rounded(model.intercept_), rounded(scores)
        )
        if exact:
            found.add(model.predict(X))
    model.set_params(predict_with="averaged")
    if callable(kernel) or settings.get("budget") is not None:
        return str(found)
    return f"{found}/{saved_digest(model)}"


def algebra_cases() -> Iterator[Case]:
    for form, kind in product(("dense", "csr"), KINDS):
        for shrinkage in (0.0, 0.1, "auto"):
            make = partial(_algebra, FisherDiscriminant(shrinkage=shrinkage), form, kind)
            yield Case(f"fisher/shrinkage {shrinkage}/{form}/{kind[:9]}", make, form == "dense" and shrinkage == "auto")
        for C, bias in ((1.0, True), (0.1, "augmented"), (10.0, False)):
            model = MaxMarginClassifier(C=C, fit_intercept=bias, multi_class=kind[10:] or "joint", random_state=0, tol=1e-8)
            yield Case(f"max margin/C {C:g}/bias {bias}/{form}/{kind}", partial(_algebra, model, form, kind), C == 1.0)
    for form, bias in product(("dense", "csr"), (True, "augmented", False)):
        model = MaxMarginClassifier(C=None, fit_intercept=bias, random_state=0)
        make = partial(_algebra, model, form, "2 classes", hard=True)
        yield Case(f"max margin/hard/bias {bias}/{form}/2 classes", make, bias is True)
    for kind in KINDS[:2]:
        make = partial(_algebra, FisherDiscriminant(), "dense", kind, stream=True)
        yield Case(f"fisher/stream/dense/{kind[:9]}", make, False)


def _algebra(model: Any, form: str, kind: str, hard: bool = False, stream: bool = False) -> str:
    X, y = separable(form, 21) if hard else examples(kind, form, 43, n=90, d=5)
    if stream:
        for begin in range(0, 90, 30):
            model.partial_fit(X[begin : begin + 30], y[begin : begin + 30], classes=np.unique(y))
    else:
        model.fit(X, y)
    found = Hash().add(model.classes_, rounded(model.coef_, 4), rounded(model.decision_function(X), 4))
    return str(found.add(model.support_)) if hard else str(found)


# Features of texts and tables.


def text_of(seed: int, n: int) -> list[str]:
    rng = random.Random(seed)
    words = (
        "free money call now! see you at noon, the meeting isn't in room 4; Grüße aus Köln — привет 你好 naïve £100".split()
    )
    return [" ".join(rng.choices(words, k=rng.randrange(0, 12))) for _ in range(n)]


def table_of(seed: int, n: int) -> dict[str, list[Any]]:
    """Return columns of a table: text, categories, numbers with gaps, truth values, and a label that follows from them."""
    rng = random.Random(seed)
    table: dict[str, list[Any]] = {name: [] for name in ("age", "gain", "job", "member", "note", "kind")}
    for note in text_of(seed + 1, n):
        age = None if rng.random() < 0.1 else rng.randrange(18, 80)
        gain = 0.0 if rng.random() < 0.6 else rng.randrange(1, 4000) / 8
        job = None if rng.random() < 0.05 else rng.choice(["clerk", "cook", "pilot", "nurse, day", 'the "boss"'])
        member = rng.random() < 0.4
        points = ("free" in note) * 2 + ("money" in note) - member + (job == "cook") + (age or 40) / 40 + rng.random()
        kind = "spam" if points > 3 else "ham" if points > 1.7 else "other"
        for name, value in zip(table, (age, gain, job, member, note or "none", kind), strict=True):
            table[name].append(value)
    return table


def feature_cases() -> Iterator[Case]:
    texts: list[dict[str, Any]] = [
        {"n_features": 512},
        {"n_features": 512, "alternate_sign": True, "idf": False, "norm": None},
        {"columns": "vocabulary", "min_df": 2},
        {"columns": "vocabulary", "max_features": 20, "tf": "count", "lowercase": False},
        {"analyzer": "char", "ngram_range": (2, 3), "n_features": 1024, "tf": "binary"},
        {"analyzer": "char_wb", "ngram_range": (1, 3), "columns": "vocabulary", "dtype": np.float32},
        {"token_pattern": r"\w+", "ngram_range": (1, 1), "n_features": 256},
        {"token_pattern": r"(?u)\b\w\w+\b", "columns": "vocabulary"},
        {"token_pattern": r"\S+", "ngram_range": (1, 3), "n_features": 300},
    ]
    for settings in texts:
        told = ", ".join(f"{name} {getattr(value, '__name__', value)}" for name, value in settings.items())
        yield Case(f"features of texts/{told}", partial(_texts, settings), True)
    for settings in ({"numbers": numbers} for numbers in ("bins", "standard", "max-abs", "none")):
        yield Case(f"features of a table/numbers {settings['numbers']}", partial(_table, settings), True)
    for code, bins in (("one-hot", 5), ("thermometer", 3)):
        settings = {"code": code, "n_bins": bins, "max_categories": 2, "n_hashed": 16, "dtype": np.float32}
        yield Case(f"features of a table/{code}, {bins} bins, few categories", partial(_table, settings), True)


def _texts(settings: dict[str, Any]) -> str:
    features = TextFeatures(**settings).fit(text_of(51, 60))
    X = features.transform(text_of(52, 30))
    y = np.arange(60) % 3
    model = AveragedPerceptron(max_iter=2, random_state=0).fit(features.transform(text_of(51, 60)), y)
    return f"{Hash().add(X, str(X.dtype))}/{saved_digest(Model(model, features))}"


def _table(settings: dict[str, Any]) -> str:
    table = table_of(53, 120)
    y = np.array(table.pop("kind"))
    features = TableFeatures(text=TextFeatures(n_features=256), **settings).fit(pa.table(table))
    X = features.transform(pa.table(table))
    other = features.transform(pa.table({name: value for name, value in table_of(54, 40).items() if name != "kind"}))
    model = AveragedPerceptron(rule="pa1", max_iter=2, random_state=0).fit(X, y)
    found = Hash().add(X, other, features.get_feature_names_out())
    return f"{found}/{saved_digest(Model(model, features))}"


# Files and the command line.


def call(*arguments: Any, status: int = 0) -> str:
    """Run a command of ours in this process; return what it wrote to standard output."""
    printed = io.TextIOWrapper(io.BytesIO(), encoding="utf-8")
    with redirect_stdout(printed), redirect_stderr(io.StringIO()) as errors:
        try:
            ended = app([str(argument) for argument in arguments])
        except SystemExit as end:
            ended = end.code
    printed.seek(0)
    text = printed.read()
    if (ended or 0) != status:
        raise AssertionError(f"{arguments}: exit status {ended}, not {status}: {text} {errors.getvalue()}")
    return text


def write_csv(path: Path, seed: int, n: int) -> Path:
    table, text = table_of(seed, n), io.StringIO(newline="")
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(table)
    writer.writerows([["" if value is None else value for value in row] for row in zip(*table.values(), strict=True)])
    path.write_text(text.getvalue(), encoding="utf-8")
    return path


def write_jsonl(path: Path, seed: int, n: int) -> Path:
    table = table_of(seed, n)
    rows = (dict(zip(table, row, strict=True)) for row in zip(*table.values(), strict=True))
    path.write_text("".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows), encoding="utf-8")
    return path


def write_parquet(path: Path, seed: int, n: int) -> Path:
    pq.write_table(pa.table(table_of(seed, n)), path)
    return path


def write_svmlight(path: Path, seed: int, n: int, d: int = 200, filled: int = 10, K: int = 3, also: int = 0) -> Path:
    """Write rows of small whole numbers, made by Python's own generator; `also` gives other rows under the same rule."""
    rng = random.Random(seed)
    hidden = [[rng.randrange(-3, 4) for _ in range(K)] for _ in range(d)]
    rng = random.Random(1000 * seed + also)
    lines = []
    for _ in range(n):
        row = sorted((rng.randrange(d), rng.randrange(1, 4)) for _ in range(filled))
        row = list(dict(row).items())
        scores = [sum(value * hidden[j][k] for j, value in row) + rng.randrange(-3, 4) for k in range(K)]
        told = " ".join(f"{j + 1}:{value}" for j, value in row)
        lines.append(f"{scores.index(max(scores))} {told}\n")
    path.write_text("".join(lines))
    return path


WRITERS: dict[str, Callable[[Path, int, int], Path]] = {
    "csv": write_csv,
    "jsonl": write_jsonl,
    "parquet": write_parquet,
    "svm": write_svmlight,
}
SMALL_BITS = ("--bits", 9)
BIG = {"n": 3200, "d": 500, "filled": 30}
"""Rows of a file that fills a block of a megabyte, which --memory 1k does not leave in memory."""


def command_cases() -> Iterator[Case]:
    options: list[tuple[Any, ...]] = [
        (),
        ("--learner", "last", "--rule", "perceptron", "--passes", 3),
        ("--learner", "voted", "--rule", "margin", "--margin", 0.5, "--passes", 2),
        ("--learner", "pocket", "--rule", "perceptron", "--order", "permutation"),
        ("--holdout", 0.2, "--early-stopping", "--patience", 2, "--passes", 15, "--rule", "pa2"),
        ("--holdout", 0.25, "--rule", "arow", "--seed", 3, "--order", "random"),
        ("--order", "cyclic", "--multi-class", "ovr", "--no-bias", "--average-from", 3, "--passes", 5),
        ("-C", "auto", "--rule", "arow", "--passes", 4),
        ("-C", "auto", "--learner", "last", "--holdout", 0.2, "--passes", 4),
        ("--class-weight", "balanced", "--tie", "first", "--record", "--passes", 2),
        ("--memory", "1k", "--order", "shuffle", "--passes", 3),
    ]
    for (kind, _), (number, given) in product(WRITERS.items(), enumerate(options)):
        name = " ".join(map(str, given)) or "as it comes"
        quick = number == 1 or (kind == "csv" and number in (0, 4))
        yield Case(f"train/{kind}/{name}", partial(_trained, kind, given), quick)
    for kind in ("csv", "svm"):
        given = ("--holdout", 0.25, "--calibrate", "--passes", 3)
        yield Case(
            f"train/{kind}/--holdout 0.25 --calibrate, predicted", partial(_probabilities, kind, given), kind == "csv"
        )
    for numbers in ("standard", "max-abs", "none"):
        given = ("--numbers", numbers, "--drop", "note", "--categorical", "age", "--rule", "pa", "--passes", 2)
        yield Case(f"train/csv/numbers {numbers}, columns given", partial(_trained, "csv", given), False)
    yield Case("train/csv/a file to validate on", partial(_validated), False)
    yield Case("train/two csv files/on-error skip", partial(_skipping), False)
    for order, rule, learner in (
        ("shuffle", "pa1", "averaged"),
        ("cyclic", "arow", "averaged"),
        ("random", "margin", "last"),
    ):
        given = ("--order", order, "--rule", rule, "--learner", learner, "--passes", 3, "--memory", "1k")
        yield Case(f"train/blocks that spill/{learner}/{rule}/{order}", partial(_spilled, given), False)
        yield Case(f"train/resumed within a pass/{learner}/{rule}/{order}", partial(_resumed, given), False)
    given = ("--holdout", 0.1, "--early-stopping", "--passes", 6, "--memory", "1k", "--order", "permutation")
    yield Case("train/resumed within a pass/early stopping", partial(_resumed, given), False)
    for given in ((), ("-C", "auto", "--rule", "arow"), ("--learner", "last", "--rule", "pa2", "--holdout", 0.2)):
        name = " ".join(map(str, given)) or "as it comes"
        yield Case(f"train/csv/resumed after a pass/{name}", partial(_resumed_table, given), not given)


@contextmanager
def in_folder() -> Iterator[Path]:
    with tempfile.TemporaryDirectory() as name:
        yield Path(name)


def train(folder: Path, data: Any, *given: Any, spilled: bool = False) -> str:
    """Train by the command line, and return the digest of the model file and what was said of the course."""
    table = not str(data).endswith(".svm")
    bits = SMALL_BITS if table else ()
    label = ("--label", "kind") if table else ()
    told = json.loads(call("train", data, *label, "-o", folder / "m.sepx", "--json", *bits, *given))
    names = ("rows", "held_out", "features", "classes", "skipped", "learner", "passes", "converged", "mistakes_per_pass")
    if spilled and not told["spilled_bytes"]:
        raise AssertionError("nothing was spilled")
    found = [told[name] for name in names] + [told.get(name) for name in ("progressive_error", "held_out_accuracies", "C")]
    return f"{Hash().add(*found)}/{file_digest(folder / 'm.sepx')}"


def _trained(kind: str, given: tuple[Any, ...]) -> str:
    with in_folder() as folder:
        data = WRITERS[kind](folder / f"data.{kind}", 61, 250)
        return train(folder, data, *given)


def _probabilities(kind: str, given: tuple[Any, ...]) -> str:
    """Return the digest of the predictions: the slope itself is SciPy's in its last bits."""
    with in_folder() as folder:
        data = WRITERS[kind](folder / f"data.{kind}", 61, 250)
        course = train(folder, data, *given).partition("/")[0]
        call("predict", folder / "m.sepx", data, "--scores", "-o", folder / "out.jsonl")
        rows = [json.loads(line) for line in (folder / "out.jsonl").read_text().splitlines()]
        shown = [[round(value, 6) if isinstance(value, float) else value for value in row.values()] for row in rows]
        return str(Hash().add(course, shown))


def _validated() -> str:
    with in_folder() as folder:
        data, other = write_csv(folder / "data.csv", 61, 250), write_csv(folder / "other.csv", 62, 80)
        return train(folder, data, "--validate", other, "--early-stopping", "--patience", 2)


def _skipping() -> str:
    with in_folder() as folder:
        for number in (1, 2):
            path = write_csv(folder / f"part-{number}.csv", 60 + number, 120)
            lines = path.read_text(encoding="utf-8").splitlines(keepends=True)
            path.write_text("".join([*lines[:50], 'one,too,many,"fields",in,this,line\n', *lines[50:]]), encoding="utf-8")
        return train(folder, folder / "part-*.csv", "--on-error", "skip", "--passes", 2)


def write_blocks(folder: Path) -> Path:
    """Write three files that make a block each; return their pattern."""
    for number in range(3):
        write_svmlight(folder / f"part-{number}.svm", 63, **BIG, also=number)
    return folder / "part-*.svm"


def _spilled(given: tuple[Any, ...]) -> str:
    with in_folder() as folder:
        return train(folder, write_blocks(folder), *given, spilled=True)


@contextmanager
def interrupted_after(checkpoint: Path, times: int) -> Iterator[None]:
    """Interrupt the run, as Ctrl-C does, when its checkpoint has been written so many times."""
    replace, left = os.replace, times

    def counting(source: Any, target: Any, **options: Any) -> None:
        nonlocal left
        replace(source, target, **options)
        if os.path.realpath(target) == os.path.realpath(checkpoint):
            left -= 1
            if not left:
                raise KeyboardInterrupt

    os.replace = counting
    try:
        yield
    finally:
        os.replace = replace


def checkpointed(folder: Path, data: Path, times: int, *given: Any) -> Path:
    """Leave a checkpoint of a run that was interrupted; return where."""
    path = folder / "run.ckpt"
    label = () if data.suffix == ".svm" else ("--label", "kind", *SMALL_BITS)
    with interrupted_after(path, times):
        call(
            "train", data, *label, "-o", folder / "m.sepx", "--checkpoint", path, "--checkpoint-every", 0, *given, status=130
        )
    if not path.exists() or (folder / "m.sepx").exists():
        raise AssertionError("the run was not interrupted on its way")
    return path


def _resumed(given: tuple[Any, ...]) -> str:
    with in_folder() as folder:
        data = write_blocks(folder)
        path = checkpointed(folder, data, 5, *given)
        return train(folder, data, "--checkpoint", path, *given, spilled=True).partition("/")[2]


def _resumed_table(given: tuple[Any, ...]) -> str:
    with in_folder() as folder:
        data = write_csv(folder / "data.csv", 61, 250)
        path = checkpointed(folder, data, 2, *given)
        return train(folder, data, "--checkpoint", path, *given).partition("/")[2]


# Shards.


def shard_cases() -> Iterator[Case]:
    for (name, learner), rule, mix in product(
        (("last", Perceptron), ("averaged", AveragedPerceptron)),
        ("perceptron", "pa1", "arow"),
        ("features", "uniform", "mistakes"),
    ):
        for form in ("dense", "csr"):
            model = learner(rule=rule, max_iter=4, random_state=2)
            quick = mix == "features" and form == "csr" and name == "averaged"
            yield Case(f"shards/{name}/{rule}/mix {mix}/{form}", partial(_shards, model, form, None, mix), quick)
    stops = {"early_stopping": True, "n_iter_no_change": 2, "max_iter": 10, "random_state": 2}
    for rule in ("perceptron", "pa1", "arow"):
        model = AveragedPerceptron(rule=rule, **stops)
        yield Case(
            f"shards/averaged/{rule}/early stopping/csr", partial(_shards, model, "csr", None, "features"), rule == "pa1"
        )
    model = AveragedPerceptron(rule="pa1", C="auto", max_iter=3, random_state=2)
    yield Case("shards/averaged/pa1/C auto/csr", partial(_shards, model, "csr", None, "features", holdout=0.25), False)
    model = PassiveAggressive(average=True, max_iter=4, random_state=2)
    yield Case("shards/passive-aggressive/csr", partial(_shards, model, "csr", None, "features"), False)
    separated = Perceptron(max_iter=None, random_state=2, order="cyclic")
    yield Case("shards/last/until a clean pass", partial(_shards, separated, "separable", None, "uniform"), True)
    for rule, mix in (("pa1", "features"), ("arow", "mistakes")):
        model = AveragedPerceptron(rule=rule, max_iter=3, random_state=2)
        yield Case(f"shards/averaged/{rule}/mix {mix}/csr/local:2", partial(_shards, model, "csr", "local:2", mix), False)
    for engine in (None, "local:2"):
        yield Case(f"shards/files of csv/{engine}", partial(_shard_files, engine), False)
    yield Case("shards/resumed after a pass", _shards_resumed, True)


def cut(X: Any, y: np.ndarray, parts: int) -> list[tuple[Any, np.ndarray]]:
    ends = np.linspace(0, len(y), parts + 1).astype(int)
    return [(X[a:b], y[a:b]) for a, b in pairwise(ends)]


def _shards(model: Any, form: str, engine: str | None, mix: str, **given: Any) -> str:
    X, y = separable("dense", 21) if form == "separable" else examples("3 classes", form, 71, n=240)
    fitted = fit_shards(model, cut(X, y, 6), engine=engine, mix=mix, **given)
    return shards_digest(fitted, X)


def shards_digest(fitted: Model, X: Any) -> str:
    model = fitted.estimator
    found = Hash().add(model.coef_, model.intercept_, *course(model), model.shard_mistakes_, model.predict(X))
    return f"{found}/{saved_digest(fitted)}"


def _shard_files(engine: str | None) -> str:
    with in_folder() as folder:
        for number in range(4):
            write_csv(folder / f"part-{number}.csv", 80 + number, 60)
        features = TableFeatures(text=TextFeatures(n_features=256))
        model = AveragedPerceptron(rule="pa1", max_iter=3, random_state=2)
        pattern = str(folder / "part-*.csv")
        fitted = fit_shards(model, pattern, engine=engine, label="kind", features=features, holdout=0.25)
        return saved_digest(fitted)


class StoppedError(Exception):
    """Ends a training on shards on its way."""


def _shards_resumed() -> str:
    X, y = examples("3 classes", "csr", 71, n=240)
    with in_folder() as folder:

        def stop(doing: str, done: int, total: int) -> None:
            if doing == "pass 3" and done == 2:
                raise StoppedError

        def model() -> Any:
            return AveragedPerceptron(rule="arow", max_iter=5, random_state=2)

        try:
            fit_shards(model(), cut(X, y, 6), checkpoint=folder / "run.ckpt", working=stop)
        except StoppedError:
            assert (folder / "run.ckpt").exists()
        fitted = fit_shards(model(), cut(X, y, 6), checkpoint=folder / "run.ckpt")
        return shards_digest(fitted, X)


# Certificates, traces, explanations.

LECTURES = {
    "L1.8": (((0, 1), (0, -1), (-1, 0.5)), (1, 1, -1)),
    "L2.4": (((3, 2), (-2, 2), (-2, -3)), (1, -1, 1)),
    "L4.1": (((4, 0), (1, 1), (0, 1), (-2, -2)), (1, -1, -1, 1)),
    "L4.xor": (((1, 1), (1, -1), (-1, 1), (-1, -1)), (1, -1, -1, 1)),
    "L4.6": (((1, -1), (-1, -1), (0.01, 0), (-1, 0)), (1, 1, 1, -1)),
}


def proof_cases() -> Iterator[Case]:
    for (name, data), bias in product(LECTURES.items(), (False, True)):
        named = f"certificate/{name}/{'bias' if bias else 'no bias'}"
        yield Case(named, partial(_certified, lambda data=data: data, fit_intercept=bias), True)
    sets: dict[str, Callable[[], Any]] = {
        "separable, 2 classes": partial(separable, "dense", 91, n=40, d=3),
        "separable, 3 classes, csr": partial(separable, "csr", 92, K=3, n=40, d=4),
        "inseparable, 2 classes": partial(examples, "2 classes", "dense", 93, n=40, d=3),
        "inseparable, 3 classes": partial(examples, "3 classes", "dense", 94, n=60, d=3),
        "quasi-complete": lambda: (np.array([[0.0, 1], [0, -1], [1, 0], [2, 1], [-1, 0], [-3, 2]]), [0, 1, 1, 1, 0, 0]),
    }
    for name, data in sets.items():
        for exact in ("auto", True, False):
            yield Case(f"certificate/{name}/exact {exact}", partial(_certified, data, exact=exact), exact == "auto")
    for name, order in product(("L4.1", "L4.xor", "L2.4"), ("cyclic", "shuffle")):
        model = Perceptron(order=order, fit_intercept=name == "L4.xor", max_iter=6, random_state=1)
        yield Case(f"trace/{name}/{order}", partial(_traced, model, lambda name=name: LECTURES[name]), True)
    model = Perceptron(max_iter=3, random_state=1)
    yield Case("trace/3 classes", partial(_traced, model, partial(separable, "dense", 95, K=3, n=20, d=3)), False)
    for name in ("L4.1", "L4.xor"):
        yield Case(f"trace by the command line/{name}", partial(_traced_by_command, name), True)
    for name in ("last", "averaged", "pocket"):
        yield Case(f"explanation/{name}", partial(_explained, LEARNERS[name](record=True, max_iter=3, random_state=1)), True)
    yield Case("suspects", _suspected, True)
    for rule in ("perceptron", "margin", "pa1"):
        yield Case(f"bounds/{rule}", partial(_bounded, rule), rule == "perceptron")


def _certified(data: Callable[[], Any], **options: Any) -> str:
    """First what is true of the data however it is found, to nine digits; then the certificate as it is."""
    X, y = data()
    found = certify(X, y, **options)
    if not found.verify(X, y):
        raise AssertionError("the certificate does not verify")
    widths = [None if ends is None else [f"{end:.9g}" for end in ends] for ends in (found.margin, found.geometric_margin)]
    if options.get("exact") is False:
        widths = []
    told = Hash().add(found.verdict, found.ties, found.separation, widths, found.radius)
    return f"{told}/{Hash().add(found.to_json())}"


def _traced(model: Any, data: Callable[[], Any]) -> str:
    X, y = data()
    steps = trace(model, np.asarray(X, float), np.asarray(y))
    found = json.loads(steps.to_json())
    rows = found.pop("steps")
    for name in ("separator", "gamma", "bound", "radius"):
        value = found.pop(name)
        found[name] = None if value is None else np.round(value, 6).tolist()
    kept = [[row[name] for name in ("pass", "step", "example", "label", "score", "mistake", "rival", "w")] for row in rows]
    proof = [[row.get(name) for name in ("k", "norm2", "k_R2", "holds")] for row in rows]
    return str(Hash().add(sorted(found.items()), kept, proof))


def _traced_by_command(name: str) -> str:
    rows = csv.DictReader(io.StringIO(call("trace", f"lecture:{name}", "--format", "csv")))
    exact = ("pass", "step", "example", "label", "score", "mistake", "rival", "w", "k", "norm2", "k_R2", "holds")
    return str(Hash().add([[row[column] for column in exact] for row in rows]))


def _explained(model: Any) -> str:
    X, y = examples("2 classes", "dense", 97, n=60, d=5)
    told = explain(model.fit(X, y), X[:1]).to_dict()
    del told["of"], told["against"], told["threshold"]  # which the first version did not have
    return str(Hash().add(json.dumps(told, sort_keys=True, default=_plain)))


def _suspected() -> str:
    X, y = examples("3 classes", "dense", 98, n=100, d=5, noise=0.5)
    told = [(one.row, str(one.label), str(one.suggested)) for one in suspects(X, y)[:20]]
    return str(Hash().add(told))


def _bounded(rule: str) -> str:
    X, y = separable("dense", 99, n=40, d=3)
    bounds = Perceptron(rule=rule, max_iter=50, random_state=1).fit(X, y).bounds(X, y)
    numbers = [bounds.mistakes, bounds.passes, *(f"{value:.6g}" for value in (bounds.radius, bounds.gamma, bounds.bound))]
    return str(Hash().add([*numbers, bool(bounds.holds)]))


PARTS = (
    product_cases,
    special_cases,
    ending_cases,
    going_on_cases,
    kernel_cases,
    algebra_cases,
    feature_cases,
    command_cases,
    shard_cases,
    proof_cases,
)


def cases(group: str = "all") -> list[Case]:
    """Return the runs of a group, "quick" or "all"."""
    found = [case for part in PARTS for case in part()]
    names = [case.name for case in found]
    twice = {name for name in names if names.count(name) > 1}
    if twice:
        raise AssertionError(f"two runs have the same name: {sorted(twice)}")
    return [case for case in found if case.quick or group == "all"]


def digests(group: str = "all") -> dict[str, str]:
    """Make the runs of a group; return the digest of each by name."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return {case.name: case.make() for case in cases(group)}


if __name__ == "__main__":
    print(json.dumps(digests(*sys.argv[1:2]), indent=0, ensure_ascii=False, sort_keys=True))
