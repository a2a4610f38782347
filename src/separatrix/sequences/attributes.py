"""Tokens as attributes, named as python-crfsuite names them, and tokens as rows of numbers.

| token | attributes |
|---|---|
| `{"word": "Rome"}` | word:Rome with the value 1 |
| `{"length": 4}` | length with the value 4 (a number, of NumPy too) |
| `{"capital": True}` | capital with the value 1 (False: 0) |
| `{"word": {"Rome": 0.5}}` | word:Rome with the value 0.5 (the keys of a dict of any depth follow a colon) |
| `{"in": ["city", "it"]}` | in:city and in:it, 1 each (a list or set of strings) |
| `["word:Rome", "capital"]` | the names themselves, 1 each |
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from numbers import Real
from typing import Any

import numpy as np
import scipy.sparse as sp

from separatrix.engine.parcel import Parcel, State, StateError, whole
from separatrix.engine.rows import Floats, Rows
from separatrix.sequences.encoded import Encoded


def attributes_of(token: Any, prefix: str = "") -> Iterator[tuple[str, float]]:
    """Yield the name and the value of each attribute of a token.

    Examples
    --------
    >>> list(attributes_of({"word": "Rome", "capital": True, "in": ["city"], "is": {"name": 0.5}}))
    [('word:Rome', 1.0), ('capital', 1.0), ('in:city', 1.0), ('is:name', 0.5)]
    """
    if not isinstance(token, Mapping):
        if isinstance(token, str | bytes) or (isinstance(token, tuple) and not prefix):
            raise TypeError(
                f"{token!r:.60} is a {type(token).__name__}, and the first token is a dict or list of attributes"
            )
        for name in _in_order(token):
            if not isinstance(name, str | bytes):
                raise TypeError(f"{name!r:.60} in a list of attributes is no string")
            yield prefix + _decoded(name), 1.0
        return
    for key, value in ((_decoded(key), value) for key, value in token.items()):
        if not isinstance(key, str):
            raise TypeError(f"the attribute {key!r:.60} is named by a {type(key).__name__}: names must be strings")
        if isinstance(value, str | bytes):
            yield f"{prefix}{key}:{_decoded(value)}", 1.0
        elif isinstance(value, Real | np.bool_):
            if not math.isfinite(value):
                raise ValueError(f"the attribute {prefix + key!r} is {value}: values must be finite")
            yield prefix + key, float(value)
        elif isinstance(value, Mapping | list | set | frozenset | tuple):
            yield from attributes_of(value, f"{prefix}{key}:")
        else:
            raise TypeError(
                f"the attribute {prefix + key!r} is {value!r:.60}: values are strings, numbers, booleans, lists or dicts"
            )


def _decoded(name: Any) -> Any:
    return name.decode() if isinstance(name, bytes) else name


def _in_order(names: Any) -> Any:
    """Return names in their order: a set's, which depends on the process, is that of the alphabet."""
    return sorted(names, key=str) if isinstance(names, set | frozenset) else names


class AttributeFeatures:
    """The attributes of tokens that were given as dicts or lists, each with its number; new ones follow as they come."""

    kind = "attributes"

    def __init__(self, names: list[str] | None = None) -> None:
        self.numbers: dict[str, int] = {name: i for i, name in enumerate(names or ())}

    @property
    def n(self) -> int:
        """How many features there are."""
        return len(self.numbers)

    def encode(self, X: Any, learn: bool) -> Encoded:
        """Return sequences of tokens; attributes that are new get a number (`learn`) or are left out."""
        starts, indptr = [0], [0]
        indices: list[int] = []
        data: list[float] = []
        numbers = self.numbers
        for i, sequence in enumerate(X):
            for t, token in enumerate(sequence):
                try:
                    # Ways of their own for strings, booleans and floats, which most attributes are: three times as fast.
                    for key, content in token.items() if type(token) is dict else ((None, token),):
                        kind = type(content)
                        if kind is str and type(key) is str:
                            pairs: Any = ((f"{key}:{content}", 1.0),)
                        elif type(key) is str and (kind is bool or (kind is float and math.isfinite(content))):
                            pairs = ((key, float(content)),)
                        else:
                            pairs = attributes_of(content if key is None and content is token else {key: content})
                        for name, value in pairs:
                            number = numbers.setdefault(name, len(numbers)) if learn else numbers.get(name, -1)
                            if number >= 0 and value:
                                indices.append(number)
                                data.append(value)
                except RecursionError:
                    raise ValueError(f"X[{i}][{t}]: the dicts in it are nested too deeply") from None
                except (TypeError, ValueError, OverflowError) as error:
                    kind = TypeError if isinstance(error, TypeError) else ValueError
                    raise kind(f"X[{i}][{t}]: {error}") from None
                indptr.append(len(indices))
            starts.append(len(indptr) - 1)
        return Encoded.of(np.array(starts), np.array(data), np.array(indices, np.int64), np.array(indptr))

    def names_of(self, X: Any, i: int, t: int) -> list[str]:
        """Return the names of the known attributes of token t of sequence i, in the order of the encoding."""
        return [name for name, value in attributes_of(X[i][t]) if name in self.numbers and value]

    def names(self) -> list[str]:
        """Return the name of every feature."""
        return list(self.numbers)

    def join(self, other: AttributeFeatures) -> None:
        """Take in the attributes that others met, in their order."""
        for name in other.numbers:
            self.numbers.setdefault(name, len(self.numbers))

    def pack(self, parcel: Parcel, at: str) -> State:
        """Put the names into a parcel."""
        parcel.put_strings(f"{at}.names", self.numbers)
        return {"kind": self.kind}

    @classmethod
    def unpack(cls, state: State, parcel: Parcel, at: str) -> AttributeFeatures:
        """Return the attributes that a parcel holds."""
        features = cls(names := parcel.take_strings(f"{at}.names"))
        if features.n != len(names):
            raise StateError(f"{at}.names has a name twice")
        return features


class NumberFeatures:
    """Tokens as rows of numbers, dense or sparse: feature j is column j."""

    kind = "numbers"

    def __init__(self, n: int | None = None) -> None:
        self.n = n or 0

    def encode(self, X: Any, learn: bool) -> Encoded:
        """Return sequences of tokens, whose number of columns is that of the first one that was learned from."""
        matrices = []
        for i, sequence in enumerate(X):
            try:
                matrices.append(sequence if sp.issparse(sequence) else np.asarray(sequence))
            except ValueError:
                raise ValueError(f"X[{i}] has rows of different lengths, or with something other than numbers") from None
        for i, matrix in enumerate(matrices):
            if matrix.ndim != 2 or matrix.dtype.kind not in "buif":
                raise ValueError(
                    f"X[{i}] is an array of {matrix.dtype} of shape {matrix.shape}: rows of numbers are expected"
                )
            if learn and not self.n and matrix.shape[0]:
                self.n = matrix.shape[1]
            if matrix.shape[1] != self.n and matrix.shape[0]:
                raise ValueError(f"X[{i}] has {matrix.shape[1]} columns, but {self.n} are expected")
        starts = np.append(0, np.cumsum([matrix.shape[0] for matrix in matrices]))
        tokens = [sp.csr_matrix(matrix) for matrix in matrices if matrix.shape[0]]
        if not tokens:
            return Encoded.of(starts, np.empty(0), np.empty(0), np.zeros(1))
        joined = sp.vstack(tokens, format="csr").astype(np.float64)
        joined.sum_duplicates()
        joined.eliminate_zeros()
        Rows(joined).survey()
        return Encoded.of(starts, joined.data, joined.indices, joined.indptr)

    def names_of(self, X: Any, i: int, t: int) -> list[str]:
        """Return the names of the columns of token t of sequence i that are not 0."""
        row: Floats = sp.csr_matrix(X[i])[[t]].toarray()[0] if sp.issparse(X[i]) else np.asarray(X[i])[t]
        return [f"x{j}" for j in np.flatnonzero(row)]

    def names(self) -> list[str]:
        """Return the name of every feature."""
        return [f"x{j}" for j in range(self.n)]

    def join(self, other: NumberFeatures) -> None:
        """Check that other tokens have as many columns."""
        if other.n != self.n:
            raise ValueError(f"some tokens have {self.n} columns, and others {other.n}")

    def pack(self, parcel: Parcel, at: str) -> State:
        """Return the number of columns."""
        return {"kind": self.kind, "n": self.n}

    @classmethod
    def unpack(cls, state: State, parcel: Parcel, at: str) -> NumberFeatures:
        """Return the columns that a state tells of."""
        return cls(whole(state, "n", 1, 2**31 - 1))
