"""What a fitted classifier consists of, as JSON values and arrays: enough to predict, to go on learning, and to replay."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from types import SimpleNamespace
from typing import Any, NamedTuple

import numpy as np

from separatrix.engine.stopping import Cycle
from separatrix.engine.weights import Weights, n_outputs
from separatrix.estimators.fisher import _Discriminant
from separatrix.modelfile.parcel import MOST, ModelFileError, Parcel, flag, number, whole, word
from separatrix.modelfile.runs import (
    State,
    pack_ledger,
    pack_rows,
    pack_run,
    pack_weights,
    unpack_ledger,
    unpack_rows,
    unpack_run,
    unpack_weights,
)
from separatrix.solvers.class_moments import Moments
from separatrix.solvers.dual_ledger import DualLedger
from separatrix.solvers.dual_votes import Voters
from separatrix.solvers.fisher_directions import Directions
from separatrix.solvers.kernel_matrix import KINDS, Kernel


class Kind(NamedTuple):
    """How a class of objects is put into a parcel, at a name, with its ledger or without, and taken out again."""

    home: str
    pack: Callable[[Any, Parcel, str, bool], State]
    unpack: Callable[[type[Any], State, Parcel, str], Any]


# Objects that tell their own state.


def pack_stated(thing: Any, parcel: Parcel, at: str, ledger: bool) -> State:
    """Put in what `get_state` tells."""
    state, arrays = thing.get_state()
    for name, array in arrays.items():
        parcel.put(f"{at}.{name}", array)
    return {"state": state, "arrays": sorted(arrays)}


def unpack_stated(kind: type[Any], state: State, parcel: Parcel, at: str) -> Any:
    """Take out what `from_state` wants."""
    names = state["arrays"]
    missing = [name for name in names if f"{at}.{name}" not in parcel.arrays]
    if missing:
        raise ModelFileError(f"{at}.{missing[0]} is missing")
    arrays = {name: parcel.arrays[f"{at}.{name}"] for name in names}
    return kind.from_state(state["state"], {k: v.astype(v.dtype.newbyteorder("="), copy=False) for k, v in arrays.items()})


# What all our classifiers have.


def _pack_schema(model: Any, parcel: Parcel, at: str) -> State:
    parameters = {name: parcel.put_value(f"{at}.{name}", value) for name, value in model.get_params(deep=False).items()}
    names = getattr(model, "feature_names_in_", None)
    if names is not None:
        parcel.put_strings(f"{at}.feature_names", names.tolist())
    classes = parcel.put_labels(f"{at}.classes", model.classes_)
    return {
        "parameters": parameters,
        "n_features": int(model.n_features_in_),
        "named": names is not None,
        "classes": classes,
    }


def _unpack_schema(kind: type[Any], state: State, parcel: Parcel, at: str) -> Any:
    model = kind(**{name: parcel.take_value(f"{at}.{name}", value) for name, value in state["parameters"].items()})
    model.check_parameters()
    model.n_features_in_ = whole(state, "n_features", 1)
    if flag(state, "named"):
        names = parcel.take_strings(f"{at}.feature_names")
        if len(names) != model.n_features_in_:
            raise ModelFileError(f"{len(names)} feature names for {model.n_features_in_} features")
        model.feature_names_in_ = np.array(names, dtype=object)
    model.classes_ = parcel.take_labels(f"{at}.classes", state["classes"])
    return model


def _pack_end(model: Any) -> State:
    """How training ended."""
    return {"converged": bool(model.converged_), "cycle": None if model.cycle_ is None else [*model.cycle_]}


def _unpack_end(model: Any, state: State) -> None:
    model.converged_ = flag(state, "converged")
    model.cycle_ = None if state["cycle"] is None else Cycle(*(whole(state["cycle"], i) for i in (0, 1)))  # type: ignore[arg-type]


# The linear learners: a run, or one for each C still tried, and its ledger.

_NUMBERS = ("slope_", "C_", "pocket_mistakes_")


def pack_learner(model: Any, parcel: Parcel, at: str, ledger: bool) -> State:
    """Put in a linear learner."""
    if not ledger and model.stores_rows:
        raise ModelFileError(f"a {type(model).__name__} predicts with its mistakes: the ledger cannot be left out")
    runs = getattr(model, "_runs", [])
    runs = runs if any(run is model.run_ for run in runs) else [model.run_]
    state = _pack_schema(model, parcel, at)
    state |= _pack_end(model)
    state["numbers"] = {name: float(getattr(model, name)) for name in _NUMBERS if hasattr(model, name)}
    if hasattr(model, "C_scores_"):
        parcel.put(f"{at}.C_scores", np.array([*model.C_scores_.items()], dtype=np.float64).reshape(-1, 2))
    if hasattr(model, "validation_scores_"):
        parcel.put(f"{at}.validation_scores", np.array(model.validation_scores_, dtype=np.float64))
    if hasattr(model, "shard_mistakes_"):
        parcel.put(f"{at}.shard_mistakes", model.shard_mistakes_)
        state["mix"] = model.mix_
    state["chosen"] = next(i for i, run in enumerate(runs) if run is model.run_)
    state["runs"] = [pack_run(run, parcel, f"{at}.run{i}", ledger) for i, run in enumerate(runs)]
    return state


def unpack_learner(kind: type[Any], state: State, parcel: Parcel, at: str) -> Any:
    """Take out a linear learner."""
    model = _unpack_schema(kind, state, parcel, at)
    d = model.n_features_in_
    runs = [unpack_run(model.classes_, d, one, parcel, f"{at}.run{i}") for i, one in enumerate(state["runs"])]
    if len(runs) > 1:
        model._runs = runs
    run = runs[whole(state, "chosen", 0, len(runs) - 1)]
    if model.stores_rows and (run.ledger.stored is None or run.ledger.absent):
        raise ModelFileError("the mistakes that it predicts with are missing")
    model.publish(run, run.per_pass)
    _unpack_end(model, state)
    for name in _NUMBERS:
        if name in state["numbers"]:
            setattr(model, name, number(state["numbers"], name))
    if f"{at}.C_scores" in parcel.arrays:
        model.C_scores_ = dict(parcel.take(f"{at}.C_scores", "f8", (-1, 2)).tolist())
    if f"{at}.validation_scores" in parcel.arrays:
        model.validation_scores_ = parcel.take(f"{at}.validation_scores", "f8", (-1,)).tolist()
    if f"{at}.shard_mistakes" in parcel.arrays:
        model.shard_mistakes_ = parcel.take(f"{at}.shard_mistakes", "i8", (-1, -1), low=0, high=MOST)
        model.mix_ = word(state, "mix", ("features", "uniform", "mistakes"))
    return model


# The others.

_MARGIN_NUMBERS = ("objective_", "dual_gap_")


def pack_margin(model: Any, parcel: Parcel, at: str, ledger: bool) -> State:
    """Put in a max-margin classifier."""
    state = _pack_schema(model, parcel, at)
    pack_weights(Weights(model.coef_, model.intercept_), parcel, at)
    parcel.put(f"{at}.support", model.support_)
    parcel.put(f"{at}.dual_coef", model.dual_coef_)
    state["found"] = {name: float(getattr(model, name)) for name in _MARGIN_NUMBERS}
    return state | {"n_iter": int(model.n_iter_), "margin": parcel.put_value("margin", model.margin_)}


def unpack_margin(kind: type[Any], state: State, parcel: Parcel, at: str) -> Any:
    """Take out a max-margin classifier."""
    model = _unpack_schema(kind, state, parcel, at)
    K = n_outputs(len(model.classes_))
    model.coef_, model.intercept_ = unpack_weights(parcel, at, K, model.n_features_in_)
    model.support_ = parcel.take(f"{at}.support", "i8", (-1,), low=0, high=MOST)
    model.dual_coef_ = parcel.take(f"{at}.dual_coef", "f8", (-1, len(model.support_)))
    for name in _MARGIN_NUMBERS:
        setattr(model, name, number(state["found"], name))
    model.n_iter_ = whole(state, "n_iter")
    margin = parcel.take_value("margin", state["margin"])
    model.margin_ = np.array(margin, dtype=np.float64) if isinstance(margin, list) else float(margin)
    return model


_SETTINGS = {
    "shrinkage": "given_shrinkage",
    "threshold": "threshold",
    "priors": "given_priors",
    "n_components": "n_components",
}


def pack_fisher(model: Any, parcel: Parcel, at: str, ledger: bool) -> State:
    """Put in a Fisher discriminant: the moments, and what was found from them, so that no other LAPACK finds it again."""
    state, found = _pack_schema(model, parcel, at), model._discriminant
    parcel.put(f"{at}.n", found.class_count)
    parcel.put(f"{at}.mean", found.means)
    parcel.put(f"{at}.scatter", np.array([m.scatter for m in found.moments]))
    state["settings"] = {name: parcel.put_value(name, getattr(found, field)) for name, field in _SETTINGS.items()}
    try:
        weights, directions = found.weights, found.directions
    except ValueError:  # of a stream that has not shown two classes yet
        return state | {"directed": False}
    pack_weights(weights, parcel, at)
    parcel.put(f"{at}.directions", directions.A)
    parcel.put(f"{at}.quotients", directions.quotients)
    return state | {"directed": True, "shrinkage": float(directions.shrinkage)}


def unpack_fisher(kind: type[Any], state: State, parcel: Parcel, at: str) -> Any:
    """Take out a Fisher discriminant."""
    model = _unpack_schema(kind, state, parcel, at)
    K, d = len(model.classes_), model.n_features_in_
    n = parcel.take(f"{at}.n", "f8", (K,), low=0.0)
    mean = parcel.take(f"{at}.mean", "f8", (K, d))
    scatter = parcel.take(f"{at}.scatter", "f8", (K, d, d))
    moments = [Moments(d) for _ in range(K)]
    for k, m in enumerate(moments):
        m.n, m.mean, m.scatter = float(n[k]), mean[k].copy(), scatter[k].copy()
    settings = {name: parcel.take_value(name, state["settings"][name]) for name in _SETTINGS}
    kind(**settings).check_parameters()
    model._discriminant = _Discriminant(model.classes_, moments, SimpleNamespace(**settings))  # type: ignore[arg-type]
    if flag(state, "directed"):
        quotients = parcel.take(f"{at}.quotients", "f8", (-1,))
        A = parcel.take(f"{at}.directions", "f8", (d, len(quotients)))
        model._discriminant.directions = Directions(A, quotients, number(state, "shrinkage"))
        model._discriminant.weights = unpack_weights(parcel, at, n_outputs(K), d)
    return model


# The kernel perceptron: its mistakes, and the rows of the examples on which they were made.

_ENDS = ("mistakes_per_pass_", "validation_scores_")


def pack_kernel(model: Any, parcel: Parcel, at: str, ledger: bool) -> State:
    """Put in a kernel perceptron."""
    if not ledger:
        raise ModelFileError("a KernelPerceptron predicts with its mistakes: the ledger cannot be left out")
    told: DualLedger = model.ledger_
    kernel, voters = told.kernel, model._voters
    if kernel.function is not None:
        raise ModelFileError(
            "a kernel of your own is a function, which a model file cannot keep: name one, or precompute it"
        )
    state = _pack_schema(model, parcel, at)
    for name in _ENDS:
        if hasattr(model, name):
            parcel.put(f"{at}.{name}", np.array(getattr(model, name)))
    parcel.put(f"{at}.basis", np.array(told.basis, np.int64))
    parcel.put(f"{at}.lost", told._lost.values[: len(told)])
    if told._combinations is not None:
        kept = told._combinations[: len(told)]
        parcel.put(f"{at}.combinations", np.concatenate([np.empty(0), *kept]))
        parcel.put(f"{at}.lengths", np.array([len(one) for one in kept], np.int64))
    if voters._coefficients is not None:
        parcel.put(f"{at}.coefficients", np.array(voters._coefficients))
    _, gamma, constant, degree, bias = kernel.form
    return (
        state
        | _pack_end(model)
        | {
            "kernel": "precomputed"
            if kernel.precomputed
            else next(k for k, code in KINDS.items() if code == kernel.form[0]),
            "gamma": gamma,
            "constant": constant,
            "degree": degree,
            "double": bool(kernel.double),
            "bias": bool(bias),
            "n": int(told.n_features),
            "tie": int(told.tie),
            "joint": bool(model._joint),
            "budget": told.budget,
            "seed": int(model._draw),
            "seen": int(model.n_seen_),
            "rows": "none" if voters.rows is None else pack_rows(voters.rows, parcel, f"{at}.rows"),
            "ledger": pack_ledger(told, parcel, f"{at}.ledger", True),
        }
    )


def unpack_kernel(kind: type[Any], state: State, parcel: Parcel, at: str) -> Any:
    """Take out a kernel perceptron."""
    model = _unpack_schema(kind, state, parcel, at)
    numbers = (number(state, "gamma"), number(state, "constant"), whole(state, "degree", 0, 1 << 20), flag(state, "bias"))
    kernel = Kernel(word(state, "kernel", (*KINDS, "precomputed")), *numbers)
    kernel.double = flag(state, "double")
    budget = None if state["budget"] is None else whole(state, "budget", 1)
    scored, n = flag(state["ledger"], "scored"), whole(state, "n", 1)
    told = DualLedger(model.classes_, n, kernel, tie=whole(state, "tie", 0, 2), scored=scored, budget=budget)
    unpack_ledger(told, state["ledger"], parcel, f"{at}.ledger")
    if told.absent or (len(told) and int(told.example.max()) >= n):
        raise ModelFileError("its mistakes are missing, or on examples that there are not")
    _unpack_budget(told, parcel, at)
    coefficients = None
    if not told.recorded:
        shape = (2, told.n_outputs, len(told.basis))
        coefficients = tuple(parcel.take(f"{at}.coefficients", "f8", shape))
    support = np.unique(told.example).astype(np.int64) if budget is None else np.array(told.basis, np.int64)
    rows = None
    if not kernel.precomputed:
        rows = unpack_rows(word(state, "rows", ("dense", "csr")), parcel, f"{at}.rows", model.n_features_in_)
        if rows.n != len(support):
            raise ModelFileError(f"{rows.n} rows for {len(support)} examples")
    elif len(support) and int(support.max()) >= model.n_features_in_:
        raise ModelFileError("it needs kernel values that there are not")
    model._joint, model._draw = flag(state, "joint"), whole(state, "seed", 0, 1 << 128)
    model._voters = Voters(told, model._joint, rows, support, coefficients)
    model.ledger_, model.gamma_, model.n_seen_ = told, kernel.form[1], whole(state, "seen")
    model.mistakes_per_pass_ = parcel.take(f"{at}.mistakes_per_pass_", "i8", (-1,), low=0, high=MOST).tolist()
    model.n_mistakes_, model.n_iter_ = sum(model.mistakes_per_pass_), len(model.mistakes_per_pass_)
    _unpack_end(model, state)
    if f"{at}.validation_scores_" in parcel.arrays:
        model.validation_scores_ = parcel.take(f"{at}.validation_scores_", "f8", (-1,)).tolist()
    return model


def _unpack_budget(told: DualLedger, parcel: Parcel, at: str) -> None:
    """Take out what a budget stored, and of each mistake what it lost."""
    told.basis = parcel.take(f"{at}.basis", "i8", (-1,), low=0, high=told.n_features - 1).tolist()
    if len(told.basis) > (told.budget or 0) or len(set(told.basis)) < len(told.basis):
        raise ModelFileError("more is stored than the budget allows, or twice")
    told._lost.fill(parcel.take(f"{at}.lost", "f8", (len(told) if told.budget else 0,)))
    if told._combinations is not None:
        lengths = parcel.take(f"{at}.lengths", "i8", (len(told) if told.budget else 0,), low=0, high=len(told.basis))
        flat = parcel.take(f"{at}.combinations", "f8", (int(lengths.sum()),))
        told._combinations = np.split(flat, np.cumsum(lengths)[:-1]) if len(lengths) else []


_LEARNERS = ("Perceptron", "AveragedPerceptron", "VotedPerceptron", "PocketPerceptron", "PassiveAggressive")
CLASSIFIERS = {
    **{name: Kind("estimators.linear", pack_learner, unpack_learner) for name in _LEARNERS},
    "KernelPerceptron": Kind("estimators.kernel_perceptron", pack_kernel, unpack_kernel),
    "FisherDiscriminant": Kind("estimators.fisher", pack_fisher, unpack_fisher),
    "MaxMarginClassifier": Kind("estimators.max_margin", pack_margin, unpack_margin),
}
FEATURES = {
    "TableFeatures": Kind("estimators.featurizers", pack_stated, unpack_stated),
    "TextFeatures": Kind("estimators.featurizers", pack_stated, unpack_stated),
}
"""What a model file can hold. A class with `get_state` and `from_state` is one more entry with `pack_stated`."""


def pack(thing: Any, kinds: dict[str, Kind], parcel: Parcel, at: str, ledger: bool = True) -> State:
    """Put a classifier or a featurizer into a parcel."""
    name = getattr(thing, "saved_as", "") or type(thing).__name__
    if name not in kinds or not issubclass(_class(name, kinds), type(thing)):
        raise ModelFileError(f"a {type(thing).__name__} cannot be put in a model file; these can: {', '.join(kinds)}")
    return {"class": name, **kinds[name].pack(thing, parcel, at, ledger)}


def unpack(state: State, kinds: dict[str, Kind], parcel: Parcel, at: str) -> Any:
    """Take it out again."""
    name = word(state, "class", kinds)
    return kinds[name].unpack(_class(name, kinds), state, parcel, at)


def _class(name: str, kinds: dict[str, Kind]) -> type[Any]:
    found: type[Any] = getattr(import_module(f"separatrix.{kinds[name].home}"), name)
    return found
