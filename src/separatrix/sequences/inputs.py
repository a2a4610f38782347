"""What a structured perceptron is given, checked: sequences of one kind, their tags, and what is wrong with them."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import chain
from typing import Any

import numpy as np
import scipy.sparse as sp

from separatrix.engine.labels import check_labels, encode_as, newcomers
from separatrix.engine.rows import Array, Ints
from separatrix.sequences.attributes import AttributeFeatures, NumberFeatures
from separatrix.sequences.encoded import Encoded

Features = AttributeFeatures | NumberFeatures
KINDS = {"attributes": "dicts or lists of attributes", "numbers": "rows of numbers"}


def kind_of(X: Any) -> str | None:
    """Return the kind of the sequences, by the first token there is; None where there is no token."""
    for i, sequence in enumerate(X):
        if isinstance(sequence, str | bytes | Mapping):
            is_dict = isinstance(sequence, Mapping)
            what = "a dict: it must be a list of them" if is_dict else "a string: split it into tokens"
            raise TypeError(f"X[{i}] is {what}, since X is a list of sequences, and a sequence a list of tokens")
        if sp.issparse(sequence) or isinstance(sequence, np.ndarray):
            if sequence.shape[0]:
                return "numbers"
            continue
        for token in sequence:
            if isinstance(token, Mapping | set | frozenset):
                return "attributes"
            if isinstance(token, list):
                return "attributes" if all(isinstance(name, str) for name in token) else "numbers"
            if isinstance(token, np.ndarray):
                return "numbers"
            raise TypeError(
                f"X[{i}][0] is {token!r:.60}, a {type(token).__name__}: a token is a dict or list of attributes or a row of "
                "numbers"
            )
    return None


def new_features(kind: str) -> Features:
    """Return features of a kind, before anything was learned."""
    return AttributeFeatures() if kind == "attributes" else NumberFeatures()


def read_tags(y: Any, encoded: Encoded, who: str = "y") -> Array:
    """Return the tags of all tokens in one array; raise unless each token has one."""
    if y is None:
        raise ValueError(f"{who} is None: each sequence needs a list of tags")
    check_lengths(y, np.diff(encoded.starts).tolist(), who)
    flat = list(chain.from_iterable(y))
    labels = np.array(flat) if flat else np.empty(0, "U1")
    if labels.ndim != 1 or (labels.dtype.kind in "US") != all(isinstance(tag, str | bytes) for tag in flat):
        kinds = sorted({type(tag).__name__ for tag in flat})
        raise ValueError(
            f"the tags of {who} must be strings or whole numbers, all of one kind; they are: {', '.join(kinds)}"
        )
    check_labels(labels)
    return labels


def check_lengths(y: Any, lengths: list[int], who: str = "y") -> None:
    """Raise unless there is a list of tags for each sequence, and a tag for each of its tokens."""
    if len(y) != len(lengths):
        raise ValueError(f"X has {len(lengths)} sequences and {who} has {len(y)}")
    for i, (tags, n) in enumerate(zip(y, lengths, strict=True)):
        if isinstance(tags, str):
            raise ValueError(f"{who}[{i}] is the string {tags!r:.40}: it must be a list with a tag for each token")
        if len(tags) != n:
            raise ValueError(f"{who}[{i}] has {len(tags)} tags for {n} tokens")


def sorted_classes(labels: Array, declared: Any = None) -> Array:
    """Return the classes of some labels, and of those that were declared, sorted."""
    parts = [part for part in (labels, [] if declared is None else declared) if len(part)]
    return np.unique(np.concatenate(parts))


def codes_of(classes: Array, labels: Array) -> Array:
    """Return the code of each label."""
    return encode_as(classes, labels) if labels.size else np.empty(0, np.int32)


def late_tags(classes: Array, labels: Array) -> list[Any]:
    """Return the labels that are not among the classes, in the order of their first token."""
    return [label for _, label in newcomers(classes, labels)] if labels.size else []


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
