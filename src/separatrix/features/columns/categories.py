"""Columns of categories, of sets and of truth values: a 0/1 feature for each value that was met.

A dictionary of bounded size holds the categories in the order in which they were first met. Those that come when it is full
share hashed features, whose names are kept as far as a second bound allows. A category that was never met has no feature,
or, where the dictionary overflowed, the hashed one that it falls on.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import scipy.sparse as sp

from separatrix.data.arrow_arrays import number_array, numpy_array, text_array
from separatrix.engine.rows import Array, Floats, Ints
from separatrix.features.columns.samples import strings
from separatrix.features.words.arrow_text import texts_of
from separatrix.features.words.ngrams import Grams
from separatrix.features.words.vocabulary import Dictionary, Names
from separatrix.kernels.text import tokens as hashing

_SPARE_BYTES = 8
_UNKNOWN = number_array(np.array([-1], np.int32))[0]
_NOTHING = text_array([b""], pa.large_binary())[0]
_NONE = number_array(np.zeros(1, np.int64))[0]
_NUMERAL, _SPELLED = r"^[+-]?(\d+\.?\d*|\.\d+)$", r"^-?(0|[1-9]\d*)(\.\d*[1-9])?$"
UNIT = "\x1f"
"""What separates the items of a list that is written as text."""


def hashed(values: Any) -> Grams:
    """Return Arrow's bytes laid end to end, with their hashes."""
    column = pa.concat_arrays([values, text_array([bytes(_SPARE_BYTES)], pa.large_binary())])
    texts = texts_of(column)[0]
    begin, end = (bounds[:-1].astype(np.uint32) for bounds in (texts.begin, texts.end))
    data, hashes = texts.data.copy(), np.empty(len(values), np.uint32)
    hashing.hash_grams(data, begin, end, hashes)
    return Grams(data, begin, end, hashes, np.arange(len(values) + 1))


class CategoryColumn:
    """One column of categories."""

    role = "category"
    variance = 1.0
    """At most the sum of the variances of its features (of a set: of each of its items)."""
    between = "="
    """What stands between the column and the category in the name of a feature."""

    def __init__(self, name: str, most: int, n_hashed: int) -> None:
        self.name, self.most, self.n_hashed = name, most, n_hashed
        self.n = self.n_missing = 0
        self.values: Any = pa.nulls(0, pa.large_binary())
        self.others: Names | None = None

    def learn(self, column: Any, keys: Array) -> None:
        """Learn from a block of categories."""
        self.n_missing += column.null_count
        self.n += len(column) - column.null_count
        self._meet(column.drop_null().unique())

    def _meet(self, categories: Any) -> None:
        """Take up those of some different categories that are new."""
        new = categories.filter(pc.is_null(pc.index_in(categories, self.values)))
        room = self.most - len(self.values)
        if len(new):
            self.values = pa.concat_arrays([self.values, new.slice(0, room)])
        if len(new) > room:
            self.others = self.others or Names(self.n_hashed, self.most)
            self.others.remember(hashed(new.slice(room)))

    def settle(self) -> None:
        """Fix the features: they are."""

    @property
    def n_values(self) -> int:
        """How many features the values have, the missing ones apart."""
        return len(self.values) + (0 if self.others is None else self.n_hashed)

    @property
    def width(self) -> int:
        """How many features there are."""
        return self.n_values + (self.n_missing > 0 and self.n > 0)

    def has_numerals(self) -> bool:
        """Tell whether a category is a number that is written otherwise than numbers are spelled here: 02139, 1.50."""
        words = strings(self.values)
        plain, spelled = (pc.match_substring_regex(words, pattern) for pattern in (_NUMERAL, _SPELLED))
        return bool(pc.any(pc.and_not(plain, spelled)).as_py())

    def runs(self, column: Any, base: int, start: Array, count: Array, value: Array) -> bool:
        """Write the feature of each category, from feature `base` on; their values are all 1."""
        coded = column.dictionary_encode()
        feature_of = self._features(coded.dictionary)
        codes = numpy_array(coded.indices)
        if coded.indices.null_count:
            missing = self.n_values if self.width > self.n_values else -1
            feature_of = np.append(feature_of, missing)
            codes = np.where(np.isnan(codes), len(feature_of) - 1, codes).astype(np.int64)
        feature = feature_of[codes]
        start[:] = feature + base
        count[:] = feature >= 0
        return True

    def _features(self, values: Any) -> Ints:
        """Return the feature of each value, −1: none."""
        places = pc.index_in(values, self.values)
        features: Ints = numpy_array(pc.fill_null(places, _UNKNOWN)).astype(np.int64)
        if self.others is not None and places.null_count:
            hashes = hashed(values.filter(places.is_null())).hashes
            features[features < 0] = len(self.values) + np.abs(hashes.view(np.int32).astype(np.int64)) % self.n_hashed
        return features

    def names_of(self, k: int) -> list[str]:
        """Return the categories of feature k."""
        if k >= self.n_values:
            return [f"{self.name} is missing"]
        if k < len(self.values):
            return [f"{self.name}{self.between}{self.values[k].as_py().decode('utf-8', 'replace')}"]
        beyond = k - len(self.values)
        return [] if self.others is None else [f"{self.name}{self.between}{other}" for other in self.others.of(beyond)]

    def names_in(self, column: Any) -> dict[int, list[str]]:
        """Return the categories of some rows by their features, as far as those are hashed."""
        return self._hashed_names(column.drop_null().unique())

    def _hashed_names(self, values: Any) -> dict[int, list[str]]:
        names: dict[int, list[str]] = {}
        if self.others is not None:
            for k, value in zip(self._features(values).tolist(), values.to_pylist(), strict=True):
                if k >= len(self.values):
                    names.setdefault(k, []).append(f"{self.name}{self.between}{value.decode('utf-8', 'replace')}")
        return names

    def spread(self, weights: Floats) -> float | None:
        """Return the largest less the smallest part of a score (K classes: of the class where that is largest)."""
        return float(np.ptp(weights, axis=1).max()) if self.width else 0.0

    def has_unnamed(self, k: int) -> bool:
        """Tell whether categories without a name were hashed to feature k."""
        beyond = k - len(self.values)
        return self.others is not None and 0 <= beyond < self.n_hashed and bool(self.others.more[beyond])

    def state(self) -> tuple[dict[str, Any], dict[str, Array]]:
        """Return what was learned."""
        texts = texts_of(self.values)
        arrays: dict[str, Array] = {
            "bytes": texts[0].data[texts[0].begin[0] : texts[0].end[-1]].copy() if texts else np.empty(0, np.uint8),
            "lengths": (texts[0].end - texts[0].begin).astype(np.uint32) if texts else np.empty(0, np.uint32),
            "hashes": hashed(self.values).hashes,
        }
        if self.others is not None:
            arrays |= {f"others_{key}": array for key, array in self.others.state().items()}
        return {"n": self.n, "n_missing": self.n_missing, "overflowed": self.others is not None}, arrays

    def restore(self, state: dict[str, Any], arrays: dict[str, Array]) -> None:
        """Take back what `state` gave."""
        self.n, self.n_missing = int(state["n"]), int(state["n_missing"])
        categories = Dictionary()
        categories.restore(arrays)
        self.values = pa.concat_arrays([categories.packed()])
        if state["overflowed"]:
            self.others = Names(self.n_hashed, self.most)
            self.others.restore({key.removeprefix("others_"): arrays[key] for key in arrays if key.startswith("others_")})


class SetColumn(CategoryColumn):
    """One column of sets, written with a delimiter between their items: a feature for each item, and several in a row."""

    role = "set"
    between = " has "

    def __init__(self, name: str, delimiter: str, most: int, n_hashed: int) -> None:
        super().__init__(name, most, n_hashed)
        self.delimiter = delimiter

    def learn(self, column: Any, keys: Array) -> None:
        """Learn from a block of sets."""
        self.n_missing += column.null_count
        self.n += len(column) - column.null_count
        self._meet(items_of(column, self.delimiter)[0].unique())

    def names_in(self, column: Any) -> dict[int, list[str]]:
        """Return the items of some sets by their features, as far as those are hashed."""
        return self._hashed_names(items_of(column, self.delimiter)[0].unique())

    def spread(self, weights: Floats) -> float | None:
        """Return None: how much the part of a set in a score varies cannot be told without sets."""
        return None

    def matrix(self, column: Any, dtype: Any) -> sp.csr_matrix:
        """Return the features of each set, a row each."""
        items, rows = items_of(column, self.delimiter)
        coded = items.dictionary_encode()
        features = self._features(coded.dictionary)[numpy_array(coded.indices)]
        rows, features = rows[features >= 0], features[features >= 0]
        if self.width > self.n_values:
            missing = np.flatnonzero(~numpy_array(column.is_valid()))
            rows, features = np.append(rows, missing), np.append(features, np.full(len(missing), self.n_values))
        places = np.unique(rows * max(1, self.width) + features)
        ptr = np.searchsorted(places, np.arange(len(column) + 1) * max(1, self.width))
        indices = (places % max(1, self.width)).astype(np.int32)
        X = sp.csr_matrix((np.ones(len(indices), dtype), indices, ptr.astype(np.int32)), shape=(len(column), self.width))
        X.has_canonical_format = True
        return X


def items_of(column: Any, delimiter: str) -> tuple[Any, Ints]:
    """Return the items of a column of sets as bytes, without blanks around them and empty ones, and the row of each.

    Items may also be separated as those of `joined` lists are.
    """
    text = column.fill_null(_NOTHING)
    if delimiter != UNIT:
        text = pc.replace_substring(text, UNIT, delimiter)
    lists = pc.split_pattern(text, delimiter)
    items = pc.ascii_trim_whitespace(strings(lists.flatten())).cast(pa.large_binary())
    rows: Ints = np.repeat(np.arange(len(column)), numpy_array(pc.list_value_length(lists)))
    there = pc.not_equal(items, _NOTHING)
    return items.filter(there), rows[numpy_array(there)]


def joined(column: Any) -> Any:
    """Return a column of lists as bytes, their items with `UNIT` in between; a list that is null is null."""
    items = column.flatten()
    lengths = numpy_array(pc.fill_null(pc.list_value_length(column).cast(pa.int64()), _NONE))
    words = items.cast(pa.large_string()).cast(pa.large_binary())
    there = numpy_array(words.is_valid())
    ends = np.concatenate([[0], np.cumsum(there)])[np.concatenate([[0], np.cumsum(lengths)])]
    lists = pa.LargeListArray.from_arrays(number_array(ends), words.drop_null())
    texts = pc.binary_join(lists, text_array([UNIT], pa.large_binary())[0])
    return pc.if_else(column.is_valid(), texts, pa.NA)


class BooleanColumn:
    """One column of truth values: a feature for true, and one for missing where some were."""

    role = "boolean"
    variance = 0.25
    """At most the variance of its feature."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.n = self.n_missing = 0

    def learn(self, column: Any, keys: Array) -> None:
        """Learn from a block of truth values."""
        self.n_missing += column.null_count
        self.n += len(column) - column.null_count

    def settle(self) -> None:
        """Fix the features: they are."""

    @property
    def width(self) -> int:
        """How many features there are."""
        return 1 + (self.n_missing > 0) if self.n else 0

    def runs(self, column: Any, base: int, start: Array, count: Array, value: Array) -> bool:
        """Write the feature of each truth value, from feature `base` on; their values are all 1."""
        truth: Floats = numpy_array(column.cast(pa.float64()))
        missing = np.isnan(truth)
        start[:] = base + missing
        count[:] = np.where(missing, self.width == 2, truth == 1.0) & (self.width > 0)
        return True

    def names_of(self, k: int) -> list[str]:
        """Return the name of feature k."""
        return [f"{self.name} is missing" if k else self.name]

    def spread(self, weights: Floats) -> float | None:
        """Return the largest less the smallest part of a score (K classes: of the class where that is largest)."""
        return float(np.ptp(np.pad(weights, ((0, 0), (1, 0))), axis=1).max())

    def has_unnamed(self, k: int) -> bool:
        """Tell whether feature k stands for more than its names: never."""
        return False

    def state(self) -> tuple[dict[str, Any], dict[str, Array]]:
        """Return what was learned."""
        return {"n": self.n, "n_missing": self.n_missing}, {}

    def restore(self, state: dict[str, Any], arrays: dict[str, Array]) -> None:
        """Take back what `state` gave."""
        self.n, self.n_missing = int(state["n"]), int(state["n_missing"])
