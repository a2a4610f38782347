"""A training run as one JSON document: the examples, their order, the ledger, and what is proven.

The page computes every step that it shows from this document alone.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np

from separatrix.analysis import bounds as mistake_bounds
from separatrix.analysis.best_separator import best_separator
from separatrix.analysis.tracing import presentations
from separatrix.data.errors import DataError
from separatrix.engine.labels import as_labels, encode, encode_as
from separatrix.engine.presenting import Problem
from separatrix.engine.rows import Floats, Rows, as_rows
from separatrix.engine.weights import Weights
from separatrix.learners.classifier import random_generator
from separatrix.learners.linear_base import LinearLearner
from separatrix.proofs.certificate import Certificate, certify
from separatrix.proofs.wording import lines
from separatrix.solvers.dual import visited
from separatrix.solvers.hard_margin import Inseparable, solve_margin
from separatrix.solvers.soft_margin import ABSENT, FREE, MarginProblem
from separatrix.web.lab.experiment import Experiment
from separatrix.web.lab.plane import plane

if TYPE_CHECKING:  # for models with a kernel, which need scikit-learn
    from separatrix.estimators.kernel_perceptron import KernelPerceptron

FORMAT = "separatrix run 1"
MOST_NUMBERS = 1_000_000
"""The limit on the numbers in a document, for the examples and for the weights after each mistake."""
MOST_STEPS = 200_000
MOST_KERNEL_MISTAKES = 3_000
"""With a kernel, a score is a sum over the mistakes, which the page computes."""
MOST_FOR_BOUNDS = 5_000
"""The most examples for which the bound for inseparable data is evaluated; on more it takes too long."""
PATIENCE = 20.0
"""The time limit of a certificate, in seconds. The first one on a machine compiles kernels for about five."""
PREDICTS = {"AveragedPerceptron": "averaged", "VotedPerceptron": "voted", "PocketPerceptron": "pocket"}


def document(experiment: Experiment) -> dict[str, Any]:
    """Train, and return everything that the page shows, as plain numbers."""
    if experiment.X.size > MOST_NUMBERS:
        n, d = experiment.X.shape
        raise DataError(f"{experiment.name} is too large for a page: {n:,} examples of {d:,} features")
    labels = as_labels(np.asarray(experiment.y))
    Z = experiment.X if experiment.phi is None else np.asarray(experiment.phi.fit_transform(experiment.X), np.float64)
    model = _fitted(experiment, Z, labels)
    ledger = model.ledger_
    classes, codes = encode(labels)
    steps, starts = _order(experiment, model, as_rows(Z), codes)
    path, k = _path(experiment, model, as_rows(Z))
    n_steps = int(ledger.step[k]) - 1 if k < len(ledger) else len(steps)
    steps = steps[:n_steps]
    X, y = experiment.X, codes
    if experiment.held_out is not None:
        X, y = (
            np.vstack([X, experiment.held_out[0]]),
            np.append(codes, encode_as(classes, as_labels(np.asarray(experiment.held_out[1])))),
        )
    last = path[-1] if path is not None else None
    return {
        "format": FORMAT,
        "name": experiment.name,
        "recipe": {key: value for key, value in experiment.recipe.items() if key not in ("csv", "points")},
        "source": experiment.source,
        "snippet": experiment.snippet(),
        "features": list(experiment.features),
        "classes": classes.tolist(),
        "n_train": len(experiment.X),
        "x": X.tolist(),
        "y": y.tolist(),
        "map": _map(experiment, Z),
        "bias": bool(model.fit_intercept),
        "learner": model.public_name(),
        "predicts": PREDICTS.get(model.public_name(), "last"),
        "rule": ledger.rule._asdict() | {"asks": ledger.rule.entry.asks, "spread": ledger.rule.spread},
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
        "kernel": _kernel(model) if experiment.has_kernel else None,
        "kept": getattr(ledger, "kept", None),
        "n_mistakes": int(model.n_mistakes_),
        "mistakes_per_pass": list(model.mistakes_per_pass_),
        "converged": bool(model.converged_),
        "cycle": None if model.cycle_ is None else list(model.cycle_),
        "held_out": list(model.validation_scores_) if experiment.held_out is not None else None,
        "plane": plane(experiment, last, len(classes)),
        **_proof(experiment, model, Z, labels, codes, len(classes)),
        **_certified(experiment, model, Z, labels),
    }


def _fitted(experiment: Experiment, Z: Floats, labels: Any) -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # that training did not converge: the page shows it
        if experiment.held_out is None:
            return experiment.model.fit(Z, labels)
        X_val, y_val = experiment.held_out
        mapped = X_val if experiment.phi is None else experiment.phi.transform(X_val)
        return experiment.model.fit(Z, labels, X_val=mapped, y_val=y_val)


def _order(experiment: Experiment, model: Any, rows: Rows, codes: Any) -> tuple[Any, list[int]]:
    """Return the presented examples in order, and the number of presentations before each pass."""
    steps: list[Any] = []
    starts: list[int] = []
    seen = 0
    for number, indices in _passes(experiment, model, rows, codes):
        if number > len(starts):
            starts.append(seen)
        steps.append(indices)
        seen += len(indices)
        if seen >= MOST_STEPS:
            break
    return np.concatenate(steps)[:MOST_STEPS], starts


def _passes(experiment: Experiment, model: Any, rows: Rows, codes: Any) -> Iterator[tuple[int, Any]]:
    """Yield the number of a pass, from 1, and examples in the order of presentation."""
    if not experiment.has_kernel:
        yield from ((number, indices.copy()) for number, indices in presentations(model, rows, codes))
        return
    problem = Problem(rows, codes, np.empty(0))
    for number in range(len(model.ledger_.pass_starts)):
        yield number + 1, visited(model.order, problem, model._draw, number)


def _path(experiment: Experiment, model: Any, rows: Rows) -> tuple[Any, int]:
    """Return the weights after 0, 1, 2 … mistakes, each output with its bias last, and the number of mistakes included."""
    ledger = model.ledger_
    early = int(np.searchsorted(ledger.step, MOST_STEPS, side="right"))
    if experiment.has_kernel:
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
    """Return weights as one vector: output after output, each with its bias last, if there is one."""
    together = np.hstack([weights.coef, weights.intercept[:, None]]) if bias else weights.coef
    return together.reshape(-1)


def _map(experiment: Experiment, Z: Floats) -> dict[str, Any]:
    phi = experiment.phi
    if phi is None:
        return {"kind": "none", "names": list(experiment.features)}
    from separatrix.features import DiscMap, PolynomialMap, RandomFourier

    plain_names = None if isinstance(phi, RandomFourier) else [name.replace(" ", "_") for name in experiment.features]
    names = [str(name) for name in phi.get_feature_names_out(plain_names)]
    if isinstance(phi, DiscMap):
        return {"kind": "disc", "names": names}
    if isinstance(phi, PolynomialMap):
        return {"kind": "products", "names": names, "powers": phi.powers_.tolist()}
    draws = {"directions": phi.random_weights_.tolist(), "phases": phi.random_offset_.tolist()}
    return {"kind": "fourier", "names": [f"φ{j + 1}" for j in range(Z.shape[1])], **draws}


def _kernel(model: KernelPerceptron) -> dict[str, Any]:
    return {"kind": model.kernel, "gamma": model.gamma_, "coef0": model.coef0, "degree": model.degree}


def _proof(experiment: Experiment, model: Any, Z: Floats, labels: Any, codes: Any, K: int) -> dict[str, Any]:
    """Return R² of line 1 of the proof, the unit separator u with its margin γ, and the theorems that apply to the run."""
    if experiment.has_kernel:
        return {
            "R2": None,
            "separator": None,
            "proof": True,
            "bounds": [],
            "why_no_bound": "the margin in the kernel's space is not computed",
        }
    rows = as_rows(Z)
    separator = best_separator(rows, codes, K, bias=model.fit_intercept)
    bounds = None
    if len(Z) <= MOST_FOR_BOUNDS:
        bounds = mistake_bounds.report(model, Z, labels, None)
    return {
        "R2": model.radius_**2 * (2.0 if K > 2 else 1.0),
        "separator": None
        if separator is None
        else {"u": _flat(separator.weights, model.fit_intercept).tolist(), "gamma": separator.gamma},
        "proof": model.ledger_.rule.entry.theorem == "perceptron",
        "bounds": []
        if bounds is None
        else [
            {"theorem": bound.theorem, "quantity": bound.quantity, "made": bound.made, "possible": bound.possible}
            for bound in bounds.applying
        ],
        "why_no_bound": "" if bounds is None else bounds.why_none,
    }


def _certified(experiment: Experiment, model: LinearLearner | KernelPerceptron, Z: Floats, labels: Any) -> dict[str, Any]:
    if experiment.has_kernel:
        return {"certificate": None, "max_margin": None}
    bias = bool(model.fit_intercept)
    certificate = certify(Z, labels, fit_intercept=bias, time_limit=PATIENCE)
    return {
        "certificate": certificate_part(certificate),
        "max_margin": _widest(as_rows(Z), labels, bias) if certificate.verdict == "separable" else None,
    }


def _widest(rows: Rows, labels: Any, bias: bool) -> dict[str, Any] | None:
    """Return the separator of largest margin, its support and its margin, as `MaxMarginClassifier` finds them."""
    classes, codes = encode(labels)
    problem = MarginProblem(rows, codes, len(classes), np.full(rows.n, np.inf), FREE if bias else ABSENT)
    try:
        solution = solve_margin(problem, 1e-6, 10_000, int(random_generator(0).randint(np.iinfo(np.int32).max)))
    except Inseparable:  # separable, but by a margin that floating point cannot distinguish from 0
        return None
    return {
        "w": _flat(solution.weights, bias).tolist(),
        "support": np.flatnonzero(np.any(solution.alpha.reshape(rows.n, -1) != 0.0, axis=1)).tolist(),
        "margin": 1.0 / float(np.sqrt(2.0 * solution.primal)),
    }


def certificate_part(certificate: Certificate) -> dict[str, Any]:
    """Return a certificate as the page shows it."""
    witness = certificate.witness
    rows = [] if witness is None else zip(witness.rows, witness.rivals, witness.weights, strict=True)
    return {
        "verdict": certificate.verdict,
        "ties": certificate.ties,
        "separation": certificate.separation,
        "margin": None if certificate.margin is None else list(certificate.margin),
        "mistake_bound": certificate.mistake_bound,
        "radius": certificate.radius,
        "witness": [{"row": int(i), "rival": int(rival), "weight": _short(weight)} for i, rival, weight in rows],
        "lines": lines(certificate),
    }


def _short(weight: Any) -> str:
    """Return an exact weight of a witness, or an approximation if it is long."""
    exact = str(weight)
    return exact if len(exact) <= 9 else f"≈{float(weight):.3g}"
