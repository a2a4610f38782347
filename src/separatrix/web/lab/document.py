"""A run as one JSON document: the examples, the order, the ledger, and what is proven. The page scrubs it by itself."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from typing import Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from separatrix.analysis.best_separator import best_separator
from separatrix.analysis.tracing import presentations
from separatrix.data.errors import DataError
from separatrix.engine.labels import encode, encode_as, plain
from separatrix.engine.presenting import Problem
from separatrix.engine.rows import Floats, Rows, as_rows
from separatrix.engine.weights import Weights
from separatrix.estimators.max_margin import MaxMarginClassifier
from separatrix.features import DiscMap, PolynomialMap, RandomFourier
from separatrix.proofs.certificate import Certificate, certify
from separatrix.proofs.wording import lines
from separatrix.solvers.dual import visited
from separatrix.solvers.hard_margin import Inseparable
from separatrix.web.lab.experiment import Experiment
from separatrix.web.lab.plane import plane

FORMAT = "separatrix run 1"
MOST_NUMBERS = 1_000_000
"""Of the examples, and of the weights after each mistake, in a document."""
MOST_STEPS = 200_000
MOST_KERNEL_MISTAKES = 3_000
"""With a kernel, a score is a sum over the mistakes, which the page adds up."""
MOST_FOR_BOUNDS = 5_000
"""Examples up to which the theorem for data that are not separable is evaluated; it takes long on more."""
PATIENCE = 5.0
"""Seconds that a certificate may take."""
PREDICTS = {"AveragedPerceptron": "averaged", "VotedPerceptron": "voted", "PocketPerceptron": "pocket"}


def document(setup: Experiment) -> dict[str, Any]:
    """Train, and return everything that the page shows, in plain numbers."""
    if setup.X.size > MOST_NUMBERS:
        n, d = setup.X.shape
        raise DataError(f"{setup.name} is too large for a page: {n:,} examples of {d:,} features")
    labels = plain(np.asarray(setup.y))
    Z = setup.X if setup.phi is None else np.asarray(setup.phi.fit_transform(setup.X), np.float64)
    model = _fitted(setup, Z, labels)
    ledger = model.ledger_
    classes, codes = encode(labels)
    steps, starts = _order(setup, model, as_rows(Z), codes)
    path, k = _path(setup, model, as_rows(Z))
    shown = int(ledger.step[k]) - 1 if k < len(ledger) else len(steps)
    steps = steps[:shown]
    X, y = setup.X, codes
    if setup.held_out is not None:
        X, y = np.vstack([X, setup.held_out[0]]), np.append(codes, encode_as(classes, plain(np.asarray(setup.held_out[1]))))
    last = path[-1] if path is not None else None
    return {
        "format": FORMAT,
        "name": setup.name,
        "recipe": {key: value for key, value in setup.recipe.items() if key not in ("csv", "points")},
        "source": setup.source,
        "snippet": setup.snippet(),
        "features": list(setup.features),
        "classes": classes.tolist(),
        "n_train": len(setup.X),
        "x": X.tolist(),
        "y": y.tolist(),
        "map": _map(setup, Z),
        "bias": bool(model.fit_intercept),
        "learner": type(model).__name__,
        "predicts": PREDICTS.get(type(model).__name__, "last"),
        "rule": ledger.rule._asdict(),
        "tie": model.tie,
        "order": model.order,
        "steps": steps.tolist(),
        "pass_starts": [start for start in starts if start < len(steps)],
        "complete": len(steps) == ledger.steps,
        "n_steps": int(ledger.steps),
        "mistakes": {
            "step": ledger.step[:k].tolist(),
            "up": ledger.up[:k].tolist(),
            "down": ledger.down[:k].tolist(),
            "by": ledger.correction[:k].tolist() if ledger.correction.size else None,
        },
        "w": None if path is None else path.tolist(),
        "kernel": _kernel(model) if setup.kernel else None,
        "kept": getattr(ledger, "kept", None),
        "n_mistakes": int(model.n_mistakes_),
        "mistakes_per_pass": list(model.mistakes_per_pass_),
        "converged": bool(model.converged_),
        "cycle": None if model.cycle_ is None else list(model.cycle_),
        "held_out": list(model.validation_scores_) if setup.held_out is not None else None,
        "plane": plane(setup, last, len(classes)),
        **_proof(setup, model, Z, labels, codes, len(classes)),
        **_certified(setup, model, Z, labels),
    }


def _fitted(setup: Experiment, Z: Floats, labels: Any) -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        if setup.held_out is None:
            return setup.model.fit(Z, labels)
        X_val, y_val = setup.held_out
        mapped = X_val if setup.phi is None else setup.phi.transform(X_val)
        return setup.model.fit(Z, labels, X_val=mapped, y_val=y_val)


def _order(setup: Experiment, model: Any, rows: Rows, codes: Any) -> tuple[Any, list[int]]:
    """Return the first examples in the order of their presentation, and how many were presented before each pass."""
    steps: list[Any] = []
    starts: list[int] = []
    seen = 0
    for number, which in _passes(setup, model, rows, codes):
        if number > len(starts):
            starts.append(seen)
        steps.append(which)
        seen += len(which)
        if seen >= MOST_STEPS:
            break
    return np.concatenate(steps)[:MOST_STEPS], starts


def _passes(setup: Experiment, model: Any, rows: Rows, codes: Any) -> Iterator[tuple[int, Any]]:
    """Yield the number of a pass, from 1, and examples in the order of their presentation."""
    if not setup.kernel:
        yield from ((number, which.copy()) for number, which in presentations(model, rows))
        return
    problem = Problem(rows, codes, np.empty(0))
    for number in range(len(model.ledger_.pass_starts)):
        yield number + 1, visited(model.order, problem, model._draw, number)


def _path(setup: Experiment, model: Any, rows: Rows) -> tuple[Any, int]:
    """Return the weights after 0, 1, 2 … mistakes, the bias of each output last, and after how many of them it ends."""
    ledger = model.ledger_
    early = int(np.searchsorted(ledger.step, MOST_STEPS, side="right"))
    if setup.kernel:
        return None, min(early, MOST_KERNEL_MISTAKES)
    state = ledger.state(rows.sparse, ledger.start)
    first = _flat(state.weights(), ledger.bias)
    most = min(early, max(1, MOST_NUMBERS // first.size))
    path = np.empty((most + 1, first.size))
    path[0] = first
    for m in range(most):
        ledger.replay_into(state, rows, ledger.example, slice(m, m + 1))
        path[m + 1] = _flat(state.weights(), ledger.bias)
    return path, most


def _flat(weights: Weights, bias: bool) -> Floats:
    """Return weights as one vector: output after output, each with its bias last where there is one."""
    together = np.hstack([weights.coef, weights.intercept[:, None]]) if bias else weights.coef
    return together.reshape(-1)


def _map(setup: Experiment, Z: Floats) -> dict[str, Any]:
    phi = setup.phi
    if phi is None:
        return {"kind": "none", "names": list(setup.features)}
    names = [str(name) for name in phi.get_feature_names_out(_plain_names(setup) if _named(phi) else None)]
    if isinstance(phi, DiscMap):
        return {"kind": "disc", "names": names}
    if isinstance(phi, PolynomialMap):
        return {"kind": "products", "names": names, "powers": phi.powers_.tolist()}
    draws = {"directions": phi.random_weights_.tolist(), "phases": phi.random_offset_.tolist()}
    return {"kind": "fourier", "names": [f"φ{j + 1}" for j in range(Z.shape[1])], **draws}


def _named(phi: Any) -> bool:
    return not isinstance(phi, RandomFourier)


def _plain_names(setup: Experiment) -> list[str]:
    return [name.replace(" ", "_") for name in setup.features]


def _kernel(model: Any) -> dict[str, Any]:
    return {"kind": model.kernel, "gamma": model.gamma_, "coef0": model.coef0, "degree": model.degree}


def _proof(setup: Experiment, model: Any, Z: Floats, labels: Any, codes: Any, K: int) -> dict[str, Any]:
    """Return R² of line 1, the separator u of length 1 with its margin γ, and the theorems that speak of the run."""
    if setup.kernel:
        return {"R2": None, "separator": None, "proof": True, "bounds": [], "why_no_bound": "no margin is known here"}
    rows = as_rows(Z)
    separator = best_separator(rows, codes, K, bias=model.fit_intercept)
    known = None
    if len(Z) <= MOST_FOR_BOUNDS:
        known = model.bounds(Z, labels)
    return {
        "R2": model.radius_**2 * (2.0 if K > 2 else 1.0),
        "separator": None
        if separator is None
        else {"u": _flat(separator.weights, model.fit_intercept).tolist(), "gamma": separator.gamma},
        "proof": model.ledger_.rule.entry.theorem == "perceptron",
        "bounds": []
        if known is None
        else [
            {"theorem": one.theorem, "quantity": one.quantity, "made": one.made, "possible": one.possible}
            for one in known.applying
        ],
        "why_no_bound": "" if known is None else known.why_none,
    }


def _certified(setup: Experiment, model: Any, Z: Floats, labels: Any) -> dict[str, Any]:
    if setup.kernel:
        return {"certificate": None, "max_margin": None}
    bias = bool(model.fit_intercept)
    found = certify(Z, labels, fit_intercept=bias, time_limit=PATIENCE)
    widest = None
    if found.verdict == "separable":
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            try:
                street = MaxMarginClassifier(C=None, fit_intercept=bias, tol=1e-6, random_state=0).fit(Z, labels)
                widest = {
                    "w": _flat(Weights(street.coef_, street.intercept_), bias).tolist(),
                    "support": street.support_.tolist(),
                    "margin": float(np.max(street.margin_)),
                }
            except Inseparable:  # separable, but by less than floating point can tell from 0
                pass
    return {"certificate": _certificate(found), "max_margin": widest}


def _certificate(found: Certificate) -> dict[str, Any]:
    witness = found.witness
    rows = [] if witness is None else zip(witness.rows, witness.rivals, witness.weights, strict=True)
    return {
        "verdict": found.verdict,
        "ties": found.ties,
        "separation": found.separation,
        "margin": None if found.margin is None else list(found.margin),
        "mistake_bound": found.mistake_bound,
        "radius": found.radius,
        "witness": [{"row": int(i), "rival": int(rival), "weight": _short(weight)} for i, rival, weight in rows],
        "lines": lines(found),
    }


def _short(weight: Any) -> str:
    exact = str(weight)
    return exact if len(exact) <= 9 else f"≈{float(weight):.3g}"
