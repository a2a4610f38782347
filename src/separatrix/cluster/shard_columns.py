"""The columns of a table learned shard by shard, and merged in the order of the shards.

The roles of the columns are decided from the first rows of the first shard that has any. Every shard then learns its
categories, scales and words with these roles, and the results of two shards add up: counts and frequencies as numbers,
categories and names in the order in which they first occurred, quantiles by the rows with the smallest keys. A single shard
learns the same as a single machine.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from separatrix.data.batches import TableBatch
from separatrix.features.columns.arrow_columns import BLOCK_ROWS, frame_of
from separatrix.features.columns.categories import BooleanColumn, CategoryColumn, hashed
from separatrix.features.columns.dates import DateColumn
from separatrix.features.columns.misfits import Misfits
from separatrix.features.columns.numbers import NumberColumn
from separatrix.features.columns.schema import Part, Schema
from separatrix.features.columns.texts import TextColumn
from separatrix.features.table import TableFeaturizer
from separatrix.features.words.indexing import Hashed, Listed
from separatrix.features.words.ngrams import Grams
from separatrix.features.words.vocabulary import Dictionary, Names
from separatrix.kernels.text.counts import ROW_SHIFT

FIRST_ROW = 1 << 40
"""The rows of shard s are numbered from s times this on, so that the keys of all rows differ."""


@dataclass
class LearnedSchema:
    """A schema that has learned from some shards; None if they have no rows."""

    schema: Schema | None

    def __add__(self, other: LearnedSchema) -> LearnedSchema:
        if self.schema is None or other.schema is None:
            return self if other.schema is None else other
        for name, column in self.schema.parts.items():
            add_column(column, other.schema.parts[name])
        for name, misfits in other.schema.misfits.items():
            self.schema.misfits[name] = self.schema.misfits.get(name, Misfits()) + misfits
        self.schema.n_rows += other.schema.n_rows
        return self


def schema_of_first_rows(features: TableFeaturizer, batches: Iterable[TableBatch]) -> Schema | None:
    """Return a schema that has the columns and their roles, decided from the first rows, and has learned nothing else."""
    schema, n = features.new_schema(), 0
    for batch in batches:
        schema.take(frame_of(batch[: BLOCK_ROWS - n]))
        n += min(len(batch), BLOCK_ROWS - n)
        if n == BLOCK_ROWS or schema.roles:
            break
    if not n:
        return None
    schema.settle()
    return _empty_like(schema, 0)


def _empty_like(schema: Schema, first_row: int) -> Schema:
    """Return a schema with the same columns and roles that has learned nothing."""
    empty = Schema(schema.settings)
    empty.names, empty.kinds, empty.spelled = list(schema.names), dict(schema.kinds), dict(schema.spelled)
    empty.roles, empty.n_rows = dict(schema.roles), first_row
    empty.make_parts()
    return empty


def learn_schema(roles: Schema, number: int, batches: Iterable[TableBatch]) -> LearnedSchema:
    """Learn from the rows of the shard with this number, with the columns and roles of a schema."""
    schema = _empty_like(roles, number * FIRST_ROW)
    for batch in batches:
        schema.take(frame_of(batch))
    schema.learn_rest()
    schema.n_rows -= number * FIRST_ROW
    return LearnedSchema(schema if schema.n_rows else None)


def add_column(column: Part, other: Part) -> None:
    """Add what another shard learned about a column."""
    if isinstance(column, NumberColumn):
        _add_numbers(column, other)
        return
    if isinstance(column, DateColumn):
        for key, part in column.columns.items():
            add_column(part, other.columns[key])  # type: ignore[union-attr]
        return
    column.n, column.n_missing = column.n + other.n, column.n_missing + other.n_missing
    if isinstance(column, TextColumn):
        mine, theirs = column.features, other.features  # type: ignore[union-attr]
        if mine.is_fitted() and theirs.is_fitted():
            _add_words(mine.index, theirs.index)
            mine.adopt(mine.index)
        elif theirs.is_fitted():
            column.features = theirs
    elif isinstance(column, CategoryColumn):
        _add_categories(column, other)
    else:
        assert isinstance(column, BooleanColumn)


def _add_numbers(column: NumberColumn, other: Any) -> None:
    column.n_missing, column.n_zeros = column.n_missing + other.n_missing, column.n_zeros + other.n_zeros
    column.sample.offer(other.sample.keys, other.sample.values)
    if not other.n:
        return
    # The mean and the sum of squared deviations of the union (Chan, Golub and LeVeque 1979).
    total, difference = column.n + other.n, other.mean - column.mean
    column.squares += other.squares + difference * difference * (column.n * other.n / total)
    column.mean += difference * (other.n / total)
    column.n, column.largest = total, max(column.largest, other.largest)


def _add_categories(column: CategoryColumn, other: Any) -> None:
    new = _not_among(other.values, column.values)
    room = column.most - len(column.values)
    column.values = pa.concat_arrays([column.values, new.slice(0, room)])
    late = new.slice(room)
    if other.others is not None:
        late = pa.concat_arrays([late, other.others.packed()])
    if len(late := _not_among(late, column.values)):
        column.others = column.others or Names(column.n_hashed, column.most)
        column.others.remember(hashed(late))
    if other.others is not None and column.others is not None:
        column.others.more |= other.others.more


def _not_among(values: Any, listed: Any) -> Any:
    return values.filter(pc.is_null(pc.index_in(values, listed)))


def _add_words(mine: Hashed | Listed, theirs: Any) -> None:
    if isinstance(mine, Hashed):
        mine.df += theirs.df
        if mine.names is not None:
            mine.names.remember(_grams(theirs.names))
            mine.names.more |= theirs.names.more
    else:
        words = mine.vocabulary
        grams = _grams(theirs.vocabulary)
        keys = np.empty(len(grams.hashes), np.uint64)
        words.tally[:, 2] = -1  # the last text in which each occurred: none of those that follow
        words.learn(grams, 0, keys)
        numbers = (keys & np.uint64((1 << int(ROW_SHIFT)) - 1)).astype(np.int64)
        words.tally[numbers, :2] += theirs.vocabulary.tally[: theirs.vocabulary.n, :2] - 1
        mine._order = None
    mine.n_texts += theirs.n_texts


def _grams(names: Dictionary) -> Grams:
    """Return names as n-grams, each a text of its own."""
    ends = names.offsets[: names.n + 1].astype(np.uint32)
    return Grams(names.arena, ends[:-1].copy(), ends[1:].copy(), names.hash_of[: names.n].copy(), np.arange(names.n + 1))
