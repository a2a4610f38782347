"""The columns of a table learned shard by shard, and put together in the order of the shards.

What the columns are for is told by the first rows of the first shard that has any; every shard then learns its categories,
scales and words with these roles, and two of them add up: counts and frequencies as numbers, categories and names in the
order in which they were first met, quantiles by the rows with the smallest keys. One shard learns what one machine does.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from separatrix.features.columns.arrow_columns import BLOCK_ROWS, frame_of
from separatrix.features.columns.categories import BooleanColumn, CategoryColumn, hashed
from separatrix.features.columns.numbers import NumberColumn
from separatrix.features.columns.schema import Part, Schema, TextColumn
from separatrix.features.table import TableFeaturizer
from separatrix.features.words.indexing import Hashed, Listed
from separatrix.features.words.ngrams import Grams
from separatrix.features.words.vocabulary import Dictionary, Names
from separatrix.kernels.text.counts import ROW_SHIFT

FIRST_ROW = 1 << 40
"""The rows of shard s are counted from s times this on: their keys are all different."""


@dataclass
class Columns:
    """A schema that has learned from some shards; None where they have no rows."""

    schema: Schema | None

    def __add__(self, other: Columns) -> Columns:
        if self.schema is None or other.schema is None:
            return self if other.schema is None else other
        for name, part in self.schema.parts.items():
            add(part, other.schema.parts[name])
        self.schema.n_rows += other.schema.n_rows
        return self


def begun(features: TableFeaturizer, tables: Iterable[Any]) -> Schema | None:
    """Return a schema that knows the columns and their roles by the first rows, and has learned nothing else."""
    schema, n = features.new_schema(), 0
    for table in tables:
        schema.take(frame_of(table.slice(0, BLOCK_ROWS - n)))
        n += min(table.num_rows, BLOCK_ROWS - n)
        if n == BLOCK_ROWS or schema.roles:
            break
    if not n:
        return None
    schema.settle()
    return _afresh(schema, 0)


def _afresh(known: Schema, first: int) -> Schema:
    schema = Schema(known.settings)
    schema.names, schema.kinds, schema.spelled = list(known.names), dict(known.kinds), dict(known.spelled)
    schema.roles, schema.n_rows = dict(known.roles), first
    schema.make_parts()
    return schema


def learned(known: Schema, number: int, tables: Iterable[Any]) -> Columns:
    """Learn from the rows of a shard."""
    schema = _afresh(known, number * FIRST_ROW)
    for table in tables:
        schema.take(frame_of(table))
    schema.learn_rest()
    schema.n_rows -= number * FIRST_ROW
    return Columns(schema if schema.n_rows else None)


def add(part: Part, other: Part) -> None:
    """Add what was learned of a column elsewhere."""
    if isinstance(part, NumberColumn):
        _add_numbers(part, other)
        return
    part.n, part.n_missing = part.n + other.n, part.n_missing + other.n_missing
    if isinstance(part, TextColumn):
        mine, theirs = part.features, other.features  # type: ignore[union-attr]
        if mine.is_fitted() and theirs.is_fitted():
            _add_words(mine.index, theirs.index)
            mine.adopt(mine.index)
        elif theirs.is_fitted():
            part.features = theirs
    elif isinstance(part, CategoryColumn):
        _add_categories(part, other)
    else:
        assert isinstance(part, BooleanColumn)


def _add_numbers(part: NumberColumn, other: Any) -> None:
    part.n_missing, part.n_zeros = part.n_missing + other.n_missing, part.n_zeros + other.n_zeros
    part.sample.offer(other.sample.keys, other.sample.values)
    if not other.n:
        return
    total, apart = part.n + other.n, other.mean - part.mean
    part.squares += other.squares + apart * apart * (part.n * other.n / total)
    part.mean += apart * (other.n / total)
    part.n, part.largest = total, max(part.largest, other.largest)


def _add_categories(part: CategoryColumn, other: Any) -> None:
    new = _strange(other.values, part.values)
    room = part.most - len(part.values)
    part.values = pa.concat_arrays([part.values, new.slice(0, room)])
    late = new.slice(room)
    if other.others is not None:
        late = pa.concat_arrays([late, other.others.packed()])
    if len(late := _strange(late, part.values)):
        part.others = part.others or Names(part.n_hashed, part.most)
        part.others.remember(hashed(late))
    if other.others is not None and part.others is not None:
        part.others.more |= other.others.more


def _strange(values: Any, known: Any) -> Any:
    return values.filter(pc.is_null(pc.index_in(values, known)))


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
        words.tally[:, 2] = -1  # the last text of each: none that comes now
        words.learn(grams, 0, keys)
        numbers = (keys & np.uint64((1 << int(ROW_SHIFT)) - 1)).astype(np.int64)
        words.tally[numbers, :2] += theirs.vocabulary.tally[: theirs.vocabulary.n, :2] - 1
        mine._order = None
    mine.n_texts += theirs.n_texts


def _grams(names: Dictionary) -> Grams:
    """Return names as n-grams, each a text by itself."""
    ends = names.offsets[: names.n + 1].astype(np.uint32)
    return Grams(names.arena, ends[:-1].copy(), ends[1:].copy(), names.hash_of[: names.n].copy(), np.arange(names.n + 1))
