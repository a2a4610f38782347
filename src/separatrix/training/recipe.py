"""`train` as a function: what the command `train` does, with the same options, on files or on data in memory."""

from __future__ import annotations

import os
from numbers import Integral, Real
from pathlib import Path
from typing import Any

import numpy as np

from separatrix.data.errors import DataError, did_you_mean
from separatrix.data.labels import labels_at, without_label
from separatrix.engine.labels import check_no_name
from separatrix.engine.parameters import ParameterError
from separatrix.engine.rules import in_words
from separatrix.engine.user_warnings import warn_user
from separatrix.files.blocks import LabelIndex
from separatrix.files.ingest import read_blocks
from separatrix.learners.inputs import example_weight
from separatrix.modelfile.model import Model
from separatrix.training.memory import TEXT, InMemory, is_in_memory, is_matrix, table_of
from separatrix.training.options import Declared, TrainOptions, declared_options
from separatrix.training.parts import default_features
from separatrix.training.run import Training
from separatrix.training.summary import Summary, facts_of

ALL_MEMORY = 1 << 62
ROLE_OPTIONS = ("text", "categorical", "number", "date", "set", "drop")
_TYPES: dict[Any, tuple[Any, str]] = {
    bool: ((bool, np.bool_), "True or False"),
    int: (Integral, "a whole number"),
    float: (Real, "a number"),
    str: (str, "a string"),
    Path: ((str, os.PathLike), "a path"),
}
"""What may be given for an option of a type, and how that is said."""


class TrainingWarning(UserWarning):
    """What a person should know of a training: how the data were read, what was left out, how well the model does."""


def train(data: Any, *, label: Any = None, **options: Any) -> Model:
    """Train a classifier, as the command `separatrix train` does: the same options, defaults, and bytes of the model file.

    What the command prints is `model.summary`, and is shown by `print(model.summary)`; its notes and warnings are warnings
    of the category `TrainingWarning`.

    Parameters
    ----------
    data : a path, a pattern such as "part-*.csv", a list of paths, or a built-in name, as on the command line; or data in
        memory: a data frame of pandas or polars, an Arrow table or a dict of columns (read as a Parquet file of it would
        be), an array or a sparse matrix of numbers (read as an .npz archive), or a list of texts
    label : the label column, by name or by number from 0, by default the last one; or, for data in memory, the labels
    options : those below; one that the command may be given several times is a list of names, or one name. `roles`, a dict
        such as {"age": "category", "id": "drop"}, says the same as `text`, `categorical`, `number`, `date`, `set` and `drop`

    Examples
    --------
    >>> from separatrix import train
    >>> table = {"age": [22, 38, 26, 35], "job": ["clerk", "cook", "clerk", "cook"], "pay": ["low", "high", "low", "high"]}
    >>> model = train(table, label="pay", passes=5)
    >>> model.predict({"age": [30], "job": ["cook"]}).tolist()
    ['high']
    >>> model.summary["rows"], model.summary["training_error"]
    (4, 0.0)
    """
    given = _with_roles(options)
    is_path = isinstance(data, str | os.PathLike) and not is_in_memory(given.get("validate", ""))
    if given.get("sequence") and not is_path:
        raise DataError("sequence=True reads a CoNLL file; for data in memory call SequencePerceptron().fit(X, y)")
    if is_in_memory(data, label):
        data = InMemory(data, label)
        label = data.label
        if data.is_texts:
            given["text"] = [*_listed(given.get("text")), TEXT]
    if is_in_memory(given.get("validate", "")):
        held_out = given["validate"]
        pair = isinstance(held_out, tuple) and len(held_out) == 2
        given["validate"] = InMemory(*held_out) if pair else InMemory(held_out, label)
    model = Training(options_from(data, label, given)).run()
    _warn(model.summary)
    return model


def _with_roles(options: dict[str, Any]) -> dict[str, Any]:
    """Return the options with the dict `roles`, of which messages speak, as the options that give columns a role."""
    given = dict(options)
    for column, role in dict(given.pop("roles", None) or {}).items():
        option = {"category": "categorical"}.get(role, role)
        if option not in ROLE_OPTIONS:
            choices = [{"categorical": "category"}.get(name, name) for name in ROLE_OPTIONS]
            raise _wrong("roles", {column: role}, f"roles among {in_words(map(repr, choices))}")
        given[option] = [*_listed(given.get(option)), column]
    return given


def _warn(summary: Summary) -> None:
    """Warn of what the command would print as notes and warnings."""
    skipped = f"skipped {summary['skipped']:,} lines, the first: {summary['problems'][0]}" if summary["skipped"] else ""
    notes = [line.removeprefix("note: ") for line in summary["columns"] if line.startswith("note: ")]
    for message in (summary.doubt(), skipped, *summary["notes"], *notes, *summary["warnings"]):
        if message:
            warn_user(message, TrainingWarning)


def options_from(data: Any, label: Any, given: dict[str, Any]) -> TrainOptions:
    """Return the options that keyword arguments mean; raise for an unknown one, and for a value that is not allowed."""
    declared = declared_options()
    values: dict[str, Any] = {}
    for name, value in given.items():
        if name not in declared:
            raise TypeError(f"train() has no option {name!r}{did_you_mean(name, declared)}")
        if value is not None or declared[name].default is not None:
            values[declared[name].field] = _value(name, value, declared[name])
    return TrainOptions(data, None if label is None else str(label), **values)


def _value(name: str, value: Any, declared: Declared) -> Any:
    """Return the value of an option as the command line would give it."""
    kind, option = declared.kind, declared.option
    if declared.several:
        return [*map(str, _listed(value))] or None
    if isinstance(value, InMemory) or name == "engine" or (name == "class_weight" and isinstance(value, dict)):
        return value
    if name == "C" and isinstance(value, Real) and not isinstance(value, bool):
        return repr(float(value)).removesuffix(".0")
    if name == "validate" and isinstance(value, list):
        return value
    if name == "validate" or (name == "memory" and isinstance(value, Integral)):
        return str(value)
    types, wanted = _TYPES[kind]
    if not isinstance(value, types) or (isinstance(value, bool) and kind is not bool):
        raise _wrong(name, value, wanted)
    if option.choices and value not in (*option.choices, *option.aliases):
        raise _wrong(name, value, f"one of {in_words(map(repr, option.choices))}", did_you_mean(value, option.choices))
    if kind in (int, float) and not (_or(option.min, -np.inf) <= value <= _or(option.max, np.inf)):
        limits = [f"at least {option.min}"] if option.min is not None else []
        raise _wrong(name, value, " and ".join([*limits, *([f"at most {option.max}"] if option.max is not None else [])]))
    return kind(value)


def _or(limit: float | None, otherwise: float) -> float:
    return otherwise if limit is None else limit


def _wrong(name: str, value: Any, wanted: str, hint: str = "") -> ParameterError:
    return ParameterError(f"{name}={value!r} must be {wanted}{hint}")


def _listed(value: Any) -> list[Any]:
    return [] if value is None else [value] if isinstance(value, str | int) else list(value)


def fit_model(estimator: Any, features: Any, X: Any, y: Any, **settings: Any) -> tuple[dict[str, Any], dict[str, Any]]:
    """Fit a classifier, and table features that are not fitted or, for "auto", those of `train`, on data in memory.

    Return both by name, and facts about the data. With "auto", the numbers of an array or a sparse matrix are taken as they
    are. A table is read as `train` reads it; labels stay as they are, blanks included, so that predictions equal them.
    """
    automatic = isinstance(features, str)
    if automatic and is_matrix(X):
        return {"estimator": estimator.fit(X, y, **settings), "features": None}, {}
    check_no_name(y)
    if y is None or isinstance(y, int):
        raise ValueError("Model requires y to be passed, the label of each row, but the target y is None")
    data = InMemory(X, y, as_table=True)
    source, features = data.source(data.label), default_features() if automatic else features
    if data.is_texts and automatic:
        features.roles = {TEXT: "text"}
    gathered = read_blocks(source, features, memory=ALL_MEMORY, mixed=False)
    try:
        assert gathered.features is not None
        features = type(features).like(gathered.features)
        missing = without_label(data.labels)
        labelled = np.arange(data.n) if missing is None else np.flatnonzero(~missing)
        if settings.get("sample_weight") is not None:
            settings["sample_weight"] = example_weight(settings["sample_weight"], data.n)[labelled]
        if settings.get("X_val") is not None:
            settings["X_val"] = features.transform(table_of(settings["X_val"]))
        index = LabelIndex()
        codes = index.codes(labels_at(data.labels, labelled))
        classes, places = index.settled()
        estimator.fit(gathered.blocks.together(), classes[places[codes]], **settings)
        facts = facts_of(source, gathered)
    finally:
        gathered.close()
    for note in (*gathered.notes, *features.notes_):
        warn_user(note, TrainingWarning)
    return {"estimator": estimator, "features": features}, facts


def _options_in_words() -> str:
    """Return the options as the docstring of `train` lists them."""
    lines = []
    for name, (_, kind, several, default, option) in declared_options().items():
        choices = f" ({in_words(map(repr, option.choices))})" if option.choices else ""
        value = "names of columns" if several else "path" if kind is Path else kind.__name__
        lines.append(f"    {name} : {value}, by default {default!r}{choices}\n        {option.help}")
    return "\n".join(lines)


train.__doc__ = (train.__doc__ or "").replace(
    "\n\n    Examples\n", f"\n\n    Options\n    -------\n{_options_in_words()}\n\n    Examples\n", 1
)
