"""What a structured perceptron is given, checked: sequences of one kind, their tags, and what is wrong with them."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import chain
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

from separatrix.engine.labels import check_labels, newcomers, with_newcomer
from separatrix.engine.rows import Array, Ints, frozen
from separatrix.sequences.attributes import AttributeFeatures, NumberFeatures
from separatrix.sequences.encoded import Encoded
from separatrix.sequences.templates import DEFAULT, TemplateFeatures
from separatrix.sequences.tokens import Sentences, TagSequences

Features = AttributeFeatures | NumberFeatures | TemplateFeatures
FEATURES: dict[str, type[Features]] = {each.kind: each for each in (AttributeFeatures, NumberFeatures, TemplateFeatures)}
LARGEST = 1e100
KINDS = {
    "attributes": "dicts or lists of attributes",
    "columns": "strings or tuples of strings",
    "numbers": "rows of numbers",
}


def kind_of(X: Any) -> str | None:
    """Return the kind of the sequences, by the first token there is; None where there is no token."""
    if isinstance(X, Sentences):
        return "columns" if X.starts[-1] else None
    if isinstance(X, str | bytes | Mapping):
        raise TypeError(f"X is a {type(X).__name__}: it must be a list of sequences, and a sequence a list of tokens")
    if not hasattr(X, "__len__"):
        once = ", and this can be read only once: make a list of it" if hasattr(X, "__iter__") else ""
        raise TypeError(f"X is a {type(X).__name__}: it must be a list of sequences{once}")
    for i, sequence in enumerate(X):
        if not hasattr(sequence, "__len__") and not sp.issparse(sequence):
            raise TypeError(f"X[{i}] is a {type(sequence).__name__}: a sequence is a list of tokens")
        if isinstance(sequence, str | bytes | Mapping):
            is_dict = isinstance(sequence, Mapping)
            what = "a dict: it must be a list of them" if is_dict else "a string: split it into tokens"
            raise TypeError(f"X[{i}] is {what}, since X is a list of sequences, and a sequence a list of tokens")
        if isinstance(sequence, set | frozenset):
            raise TypeError(f"X[{i}] is a {type(sequence).__name__}, whose tokens have no order: make a list of them")
        is_array, is_table = isinstance(sequence, np.ndarray), len(getattr(sequence, "shape", ())) > 1  # a data frame, too
        if sp.issparse(sequence) or is_table or (is_array and not (sequence.ndim == 1 and sequence.dtype.kind in "UO")):
            if sequence.shape[0]:
                return "numbers"
            continue
        for token in sequence:
            if isinstance(token, str | tuple):
                return "columns"
            if isinstance(token, Mapping | set | frozenset):
                return "attributes"
            if isinstance(token, list) and all(isinstance(name, str) for name in token):
                return "attributes"
            is_row = isinstance(token, list) and not any(isinstance(value, str | Mapping | list) for value in token)
            if is_row or isinstance(token, np.ndarray):
                return "numbers"
            raise TypeError(
                f"X[{i}][0] is {token!r:.60}, a {type(token).__name__}: a token is a string or a tuple of strings, a dict "
                "or a list of attributes, or a row of numbers"
            )
    return None


def new_features(kind: str, templates: Any, n_features: int | None) -> Features:
    """Return features of a kind, before anything was learned."""
    if kind == "columns":
        return TemplateFeatures(templates, n_features)
    if n_features is not None or templates != DEFAULT:
        name = "templates" if n_features is None else "n_features"
        raise ValueError(f"{name} is for tokens that are strings or tuples of strings, and X has {KINDS[kind]}")
    return AttributeFeatures() if kind == "attributes" else NumberFeatures()


class Tags(NamedTuple):
    """The distinct tags of some sequences, sorted, and the place of each token's tag among them."""

    names: Array
    codes: Array

    def among(self, classes: Array) -> Array:
        """Return the code of each token's tag among all classes, which include these."""
        return frozen(np.searchsorted(classes, self.names).astype(np.int32)[self.codes])

    def known_among(self, classes: Array) -> Array:
        """Return the code of each token's tag among some classes, −1 where it is none of them."""
        places = {tag: code for code, tag in enumerate(classes.tolist())}
        known = np.array([places.get(tag, -1) for tag in self.names.tolist()], np.int32)
        return frozen(known[self.codes])


def read_tags(y: Any, encoded: Encoded, who: str = "y") -> Tags:
    """Return the tags of all tokens; raise unless each token has one."""
    if y is None:
        raise ValueError(f"{who} is None: each sequence needs a list of tags")
    if isinstance(y, TagSequences) and np.array_equal(y.starts, encoded.starts):
        present = np.flatnonzero(np.bincount(y.codes, minlength=len(y.names)))
        return Tags(y.names[present], np.searchsorted(present, y.codes))
    check_lengths(y, np.diff(encoded.starts).tolist(), who)
    flat = list(chain.from_iterable(y))
    types = set(map(type, flat))
    kinds = sorted({"str" if issubclass(kind, str) else kind.__name__ for kind in types})
    several = len(kinds) > 1 and ("str" in kinds or "NoneType" in kinds)
    if several or any(issubclass(kind, tuple) or kind.__hash__ is None for kind in types):
        raise ValueError(f"the tags of {who} must be strings or whole numbers, all of one kind; they are {', '.join(kinds)}")
    try:
        distinct = sorted(set(flat))
    except TypeError:
        raise ValueError(f"the tags of {who} must be strings or whole numbers; they are {', '.join(kinds)}") from None
    if cut := [tag for tag in distinct if isinstance(tag, str) and tag.endswith("\0")]:
        raise ValueError(
            f"the tag {cut[0]!r} of {who} ends with a zero byte, which arrays of tags do not keep: leave it out"
        )
    names = np.array(distinct) if distinct else np.empty(0, np.str_)
    check_labels(names)
    place_of = {tag: place for place, tag in enumerate(distinct)}
    return Tags(names, np.fromiter(map(place_of.__getitem__, flat), np.int64, len(flat)))


def check_lengths(y: Any, lengths: list[int], who: str = "y") -> None:
    """Raise unless there is a list of tags for each sequence, and a tag for each of its tokens."""
    if not hasattr(y, "__len__"):
        raise TypeError(f"{who} is a {type(y).__name__}: it must be a list with a list of tags for each sequence")
    if len(y) != len(lengths):
        raise ValueError(f"X has {len(lengths)} sequences and {who} has {len(y)}")
    for i, (tags, n) in enumerate(zip(y, lengths, strict=True)):
        if isinstance(tags, str):
            raise ValueError(f"{who}[{i}] is the string {tags!r:.40}: it must be a list with a tag for each token")
        if not hasattr(tags, "__len__"):
            raise TypeError(f"{who}[{i}] is {tags!r:.40}: it must be a list with a tag for each token")
        if len(tags) != n:
            raise ValueError(f"{who}[{i}] has {len(tags)} tags for {n} tokens")


def with_declared(names: Array, declared: Any) -> Array:
    """Return the classes of some tags and of those that were declared, sorted."""
    if declared is None or not len(declared):
        return np.unique(names)
    classes = np.array(declared if isinstance(declared, str) else list(declared))
    if classes.ndim != 1 or (names.size and (classes.dtype.kind == "U") != (names.dtype.kind == "U")):
        raise ValueError(f"classes is {declared!r:.60}: it must be a list of tags of the kind of those of y")
    return np.unique(np.concatenate([names, classes]) if names.size else classes)


def check_sizes(encoded: Encoded, weight: Array) -> None:
    """Raise for numbers whose squares and sums would outgrow float64."""
    for what, values in (("a value of X", encoded.data), ("a sample_weight", weight)):
        if (largest := float(np.abs(values).max(initial=0.0))) > LARGEST:
            raise ValueError(
                f"{what} is {largest:.3g}, beyond ±{LARGEST:g}: the weights would outgrow float64; scale it down"
            )


def late_tags(classes: Array, labels: Array) -> list[Any]:
    """Return the labels that are not among the classes, in the order of their first token."""
    return [label for _, label in newcomers(classes, labels)] if labels.size else []


def grown(classes: Array, *tags: Any) -> list[tuple[Array, int]]:
    """Return the classes as they become with each late tag, and its place; the first pair is the classes as they are."""
    steps = [(classes, -1)]
    for names in tags:
        for tag in late_tags(steps[-1][0], np.asarray([] if names is None else names)):
            steps.append(with_newcomer(steps[-1][0], tag))
    return steps


def held_out_sequences(n: int, fraction: float, weight: Array, seed: int) -> Ints:
    """Return the numbers of the sequences to hold out: a fraction of those that have a weight, drawn by the seed."""
    candidates = np.flatnonzero(weight) if weight.size else np.arange(n)
    count = min(round(fraction * len(candidates)), len(candidates) - 1)
    if count < 1:
        raise ValueError(
            f"validation_fraction={fraction} of {len(candidates)} sequences leaves none to hold out: give more sequences, a "
            "larger fraction, or X_val and y_val"
        )
    return np.sort(np.random.default_rng([seed, n]).permutation(candidates)[:count])
