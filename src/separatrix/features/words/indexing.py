"""Which column an n-gram belongs to, and what is learned of it: by its hash, or by an exact vocabulary."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from separatrix.data.arrow_arrays import number_array
from separatrix.engine.rows import Array, Floats, Ints, frozen
from separatrix.features.words.counts import CountedRows
from separatrix.features.words.ngrams import Grams
from separatrix.features.words.vocabulary import Names, Vocabulary, checked_array, column_numbers
from separatrix.kernels.text import counts as kernels


class Keys(NamedTuple):
    """What the rows of a block are counted by: the keys, where those of each row begin, and the bits of a column."""

    keys: Array
    ptr: Array
    bits: int


def inverse_frequency(n_texts: int, df: Array) -> Floats:
    """Return ln((1 + n)/(1 + df)) + 1, and 0 for a column that no text had: a learner knows nothing of it."""
    idf: Floats = np.where(df > 0, np.log((1.0 + n_texts) / (1.0 + df)) + 1.0, 0.0)
    return idf


def _bits(width: int) -> int:
    return max(1, (width - 1).bit_length())


class Hashed:
    """Column |h| mod d for the hash h of an n-gram; counts texts if `counting`, and keeps up to `keep_names` names."""

    def __init__(self, d: int, signed: bool, counting: bool, keep_names: int) -> None:
        self.width, self.signed, self.counting = d, signed, counting
        self.n_texts = 0
        self.df: Ints = np.zeros(d if counting else 0, np.int64)
        self.names = Names(d, keep_names) if keep_names else None

    def keys(self, grams: Grams, rows: CountedRows) -> Keys:
        """Return the keys of n-grams."""
        keys = rows.keys(len(grams.hashes))
        kernels.place(grams.hashes, grams.ptr, self.width, self.signed, keys)
        return Keys(keys, grams.ptr, _bits(self.width))

    def learn(self, grams: Grams, rows: CountedRows) -> Keys:
        """Return the keys of some more texts' n-grams, and keep the names that are new."""
        if self.names is not None:
            self.names.remember(grams)
        self.n_texts += grams.n_texts
        return self.keys(grams, rows)

    def count(self, rows: CountedRows) -> None:
        """Count the texts in which each column occurs."""
        if self.counting:
            kernels.count_texts(rows.columns, self.df)

    def count_one_by_one(self, rows: CountedRows) -> Floats:
        """Count likewise, and return the idf of each entry as of its own text, so that batches leave no trace."""
        factor = np.empty(rows.nnz if self.counting else 0)
        if self.counting:
            begins, ends = rows.ptr[: rows.n], rows.ptr[1 : rows.n + 1]
            kernels.count_texts_so_far(rows.columns, begins, ends, self.n_texts - rows.n, self.df, factor)
            np.log(factor, out=factor)
            factor += 1.0
        return factor

    def settle(self, rows: CountedRows) -> None:
        """Make the columns of rows that were counted while learning the final ones: they are."""

    def names_of(self, column: int) -> list[str]:
        """Return the names kept for a column."""
        return [] if self.names is None else self.names.of(column)

    def names_in(self, grams: Grams) -> dict[int, list[str]]:
        """Return which of some n-grams are hashed to each column, each once, in order."""
        columns = np.abs(grams.hashes.view(np.int32).astype(np.int64)) % self.width
        names: dict[int, dict[str, None]] = {}
        for column, begin, end in zip(columns.tolist(), grams.begin.tolist(), grams.end.tolist(), strict=True):
            names.setdefault(column, {})[grams.text[begin:end].tobytes().decode("utf-8", "replace")] = None
        return {column: list(each) for column, each in names.items()}

    def has_unnamed(self, column: int) -> bool:
        """Tell whether n-grams were hashed to the column without being named."""
        return self.names is not None and bool(self.names.more[column])

    def all_names(self) -> list[str]:
        """Return a name for each column."""
        names = [f"column {j}" for j in range(self.width)]
        if self.names is not None:
            for j in self.names.columns().tolist():
                names[j] = " | ".join(self.names_of(j) + ["…"] * self.has_unnamed(j))
        return names

    def state(self) -> dict[str, Array]:
        """Return what was learned as plain arrays."""
        columns = np.flatnonzero(self.df)
        state: dict[str, Array] = {"df_columns": columns.astype(np.int32), "df": self.df[columns]} if self.counting else {}
        if self.names is not None:
            state |= {f"names_{key}": value for key, value in self.names.state().items()}
        return state

    def restore(self, state: dict[str, Array]) -> None:
        """Take back what `state` gave."""
        if self.counting:
            columns = column_numbers(state, "df_columns", self.width)
            self.df[columns] = checked_array(state, "df", np.int64, columns.shape)
        if self.names is not None:
            self.names.restore({key.removeprefix("names_"): state[key] for key in state if key.startswith("names_")})


class Listed:
    """One column for each n-gram of a vocabulary, in the order of their characters."""

    counting = False

    def __init__(self, min_df: int, max_features: int | None) -> None:
        self.min_df, self.max_features = min_df, max_features
        self.n_texts = 0
        self.vocabulary = Vocabulary()
        self._order: Ints | None = None
        self._column: Ints = np.empty(0, np.int64)

    @property
    def order(self) -> Ints:
        """The n-gram of each column, as its number in the vocabulary."""
        if self._order is None:
            order = self.vocabulary.chosen(self.min_df, self.max_features)
            if not order.size:
                seen = f"{self.vocabulary.n} n-grams in {self.n_texts} texts"
                raise ValueError(f"the vocabulary is empty: {seen}, none of them in min_df={self.min_df} or more")
            self._column = np.full(self.vocabulary.n, -1, np.int64)
            self._column[order] = np.arange(len(order))
            self._order = order
        return self._order

    @property
    def width(self) -> int:
        """How many columns there are."""
        return len(self.order)

    @property
    def df(self) -> Ints:
        """In how many texts each column occurred."""
        df: Ints = self.vocabulary.tally[self.order, 1]
        return df

    def keys(self, grams: Grams, rows: CountedRows) -> Keys:
        """Return the keys of the n-grams that have a column."""
        bits = _bits(self.width)
        keys, ptr = rows.keys(len(grams.hashes)), np.empty(len(grams.ptr), np.int64)
        self.vocabulary.find(grams, frozen(self._column), keys, ptr)
        return Keys(keys, ptr, bits)

    def learn(self, grams: Grams, rows: CountedRows) -> Keys:
        """Count some more texts' n-grams, and return their keys: the columns are known after `settle`."""
        keys = rows.keys(len(grams.hashes))
        self.vocabulary.learn(grams, self.n_texts, keys)
        self.n_texts += grams.n_texts
        self._order = None
        return Keys(keys, grams.ptr, _bits(self.vocabulary.n))

    def count(self, rows: CountedRows) -> None:
        """Count the texts in which each column occurs: the vocabulary has done so."""

    def settle(self, rows: CountedRows) -> None:
        """Make the columns of rows that were counted while learning the final ones."""
        width = self.width
        rows.rename(self._column, width)

    def names_of(self, column: int) -> list[str]:
        """Return the n-gram of a column."""
        return [self.vocabulary.name(int(self.order[column]))]

    def has_unnamed(self, column: int) -> bool:
        """Tell whether a column has n-grams that are not named: never."""
        return False

    def all_names(self) -> list[str]:
        """Return the n-gram of each column."""
        names = self.vocabulary.packed().take(number_array(self.order))
        return [name.decode("utf-8", "replace") for name in names.to_pylist()]

    def state(self) -> dict[str, Array]:
        """Return what was learned as plain arrays."""
        return {f"vocabulary_{key}": value for key, value in self.vocabulary.state().items()}

    def restore(self, state: dict[str, Array]) -> None:
        """Take back what `state` gave."""
        self.vocabulary.restore({key.removeprefix("vocabulary_"): value for key, value in state.items()})


ColumnIndex = Hashed | Listed
