"""What is learned of a table, column by column, as a stream of blocks; and its rows as features."""

from __future__ import annotations

from collections.abc import Mapping
from copy import copy
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.types as kinds
import scipy.sparse as sp

from separatrix.data.arrow_arrays import numpy_array
from separatrix.data.errors import no_column
from separatrix.engine.rows import Array, frozen
from separatrix.features.columns.arrow_columns import ARROW, DATE, TEXT, Frame, TableBlocks, as_kind, floats, kind_of
from separatrix.features.columns.categories import BooleanColumn, CategoryColumn
from separatrix.features.columns.numbers import SAMPLE, SAMPLES, NumberColumn, row_keys
from separatrix.features.columns.roles import DROP, KIND_FOR, ROLES, Role, inferred
from separatrix.features.text import TextFeaturizer
from separatrix.kernels.text import tables as kernels

LAID_OUT = 1 << 20
BINS, FEWEST_BINS, ALL_BINS = 32, 4, 2048
"""How many bins a column of numbers has unless asked: 32, or, where that is more than 2,048 in all, fewer, down to 4."""
TEXT_WIDTH = 1 << 20


class TextColumn:
    """One column of texts: its features are those of `TextFeaturizer`."""

    role = "text"

    def __init__(self, name: str, features: TextFeaturizer) -> None:
        self.name, self.features = name, features
        self.n = self.n_missing = 0
        self.alone = False

    def learn(self, column: Any, keys: Array) -> None:
        """Learn from a block of texts."""
        self.n_missing += column.null_count
        self.n += len(column) - column.null_count
        self.features.partial_fit(column)

    def settle(self) -> None:
        """Fix the features: they are."""

    @property
    def width(self) -> int:
        """How many features there are."""
        return self.features.n_features_out_

    def names_of(self, k: int) -> list[str]:
        """Return the n-grams of feature k."""
        names = self.features.names_of(k)
        return names if self.alone else [f"{self.name}: {name}" for name in names]

    def all_names(self) -> list[str]:
        """Return a name for each feature."""
        names = self.features.get_feature_names_out().tolist()
        return names if self.alone else [f"{self.name}: {name}" for name in names]

    def has_unnamed(self, k: int) -> bool:
        """Tell whether n-grams without a name were hashed to feature k."""
        return self.features.has_unnamed(k)

    def state(self) -> tuple[dict[str, Any], dict[str, Array]]:
        """Return what was learned."""
        state, arrays = self.features.get_state()
        return {"n": self.n, "n_missing": self.n_missing, "text": state}, arrays

    def restore(self, state: dict[str, Any], arrays: dict[str, Array]) -> None:
        """Take back what `state` gave."""
        self.n, self.n_missing = int(state["n"]), int(state["n_missing"])
        self.features = TextFeaturizer.from_state(state["text"], arrays)


class Settings(NamedTuple):
    """How the columns become features."""

    roles: Mapping[str, str]
    numbers: str
    n_bins: int | None
    thermometer: bool
    most: int
    n_hashed: int
    text: TextFeaturizer | None


Part = NumberColumn | CategoryColumn | BooleanColumn | TextColumn


class Schema:
    """The columns of a table: their kinds, as they come; their roles, by the first block; what is learned of each."""

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self.names: list[str] = []
        self.kinds: dict[str, str | None] = {}
        self.spelled: dict[str, bool] = {}
        self.roles: dict[str, Role] = {}
        self.parts: dict[str, Part] = {}
        self.blocks = TableBlocks()
        self.n_rows = 0
        self.settled = False

    def take(self, frame: Frame) -> None:
        """Learn from some more rows; nothing is learned where one of them cannot be used."""
        if not self.names:
            self._begin(frame)
        if not frame.n:
            return
        self._meet(frame)
        columns = {name: self._column(frame, name) for name in self.names if self._wanted(name)}
        table = pa.table(columns)
        while table.num_rows:
            table = table.slice(self.blocks.fill(table))
            if self.blocks.full:
                self._learn()
                table = table.select(list(self.parts))
        self.blocks.keep()

    def _begin(self, frame: Frame) -> None:
        for name, role in self.settings.roles.items():
            if name not in frame.names:
                raise ValueError(f"{no_column(name, frame.names)} (roles names it)")
            if role not in ROLES:
                raise ValueError(f"roles[{name!r}] is {role!r}, not one of {', '.join(ROLES)}")
        if all(self.settings.roles.get(name) == DROP for name in frame.names):
            raise ValueError("there is no column to learn from: all are to be dropped")
        self.names = frame.names
        self.kinds = dict.fromkeys(self.names)

    def _meet(self, frame: Frame) -> None:
        """Note the kind of columns of which nothing was known yet."""
        if not frame.named and len(frame.names) != len(self.names):
            raise ValueError(
                f"X has {len(frame.names)} features, but TableFeatures is expecting {len(self.names)} features as input"
            )
        present = set(frame.names)
        for name in self.names:
            if not self._wanted(name):
                continue
            if name not in present:
                raise self._absent(name, frame.names)
            if self.kinds[name] is None:
                arrow = frame.table.schema.field(name).type
                role = self.settings.roles.get(name)
                self.kinds[name] = KIND_FOR[role] if role else kind_of(arrow, name)
                self.spelled[name] = bool(role) or kinds.is_dictionary(arrow)
                if kinds.is_dictionary(arrow) and not role:
                    self.kinds[name] = TEXT

    def _absent(self, name: str, there: list[str]) -> ValueError:
        return ValueError(
            f"{no_column(name, there)}; add it (empty, where its values are not known), "
            f"or train without it: roles={{{name!r}: 'drop'}}"
        )

    def _wanted(self, name: str) -> bool:
        role = self.roles[name].role if name in self.roles else self.settings.roles.get(name)
        return role != DROP

    def _column(self, frame: Frame, name: str) -> Any:
        kind = self.kinds[name]
        if kind is None or kind == DATE:
            return pa.nulls(frame.n)
        column = as_kind(frame, name, kind, self.spelled[name])
        if ARROW[kind] == pa.float64():
            floats(column, frame.place, name)
        return column

    def _learn(self) -> None:
        """Learn from the rows of a block; what the columns are for, from the first."""
        block = self.blocks.whole()
        self.blocks.clear()
        if not self.roles:
            self.roles = self._roles(block)
            self.make_parts()
        keys = row_keys(self.n_rows, block.num_rows)
        self.n_rows += block.num_rows
        for name, part in self.parts.items():
            column = _whole(block.column(name))
            part.learn(numpy_array(column) if isinstance(part, NumberColumn) else column, keys)

    def _roles(self, block: Any) -> dict[str, Role]:
        """Return the role of each column, by the first block."""
        roles, wanted = {}, self.settings.roles
        for name in self.names:
            if name in wanted:
                roles[name] = Role(wanted[name])
            else:
                column = _whole(block.column(name))
                roles[name] = inferred(name, self.kinds[name], column, self.spelled[name], self.names)
        if all(role.role == DROP for role in roles.values()):
            raise ValueError("there is no column to learn from" + "".join(f"; {role.note}" for role in roles.values()))
        return roles

    def check(self) -> None:
        """Raise where there is nothing to learn from."""
        if not self.n_rows and not self.blocks.rows:
            raise ValueError("there are no rows to learn from: 0 sample(s) where a minimum of 1 is required")
        if not self.roles:
            self._roles(self.blocks.whole())

    def make_parts(self) -> None:
        """Make a part for each column that is used: those of text come last."""
        used = [(name, role.role) for name, role in self.roles.items() if role.role != DROP]
        n_numbers, n_texts = (sum(role == which for _, role in used) for which in ("number", "text"))
        for name, role in sorted(used, key=lambda pair: pair[1] == "text"):
            self.parts[name] = self._part(name, role, n_numbers, n_texts)
        if len(used) == 1 and n_texts:
            self.parts[used[0][0]].alone = True  # type: ignore[union-attr]

    def _part(self, name: str, role: str, n_numbers: int, n_texts: int) -> Part:
        how = self.settings
        if role == "number":
            sample = min(SAMPLE, max(1024, SAMPLES // n_numbers))
            n_bins = how.n_bins or max(FEWEST_BINS, min(BINS, ALL_BINS // n_numbers))
            return NumberColumn(name, how.numbers, n_bins, how.thermometer, sample)
        if role == "category":
            return CategoryColumn(name, how.most, how.n_hashed)
        if role == "boolean":
            return BooleanColumn(name)
        shared = {"n_features": TEXT_WIDTH >> (n_texts - 1).bit_length()}
        return TextColumn(name, TextFeaturizer(**(how.text.get_params() if how.text is not None else shared)))

    def without_names(self) -> Schema:
        """Return the same schema without the names of hashed words."""
        schema = copy(self)
        schema.parts = dict(self.parts)
        for name, part in self.parts.items():
            if isinstance(part, TextColumn):
                schema.parts[name] = text = copy(part)
                text.features = part.features.without_names()
        return schema

    def learn_rest(self) -> None:
        """Learn from the rows that do not fill a block, as the last of a stream."""
        if self.blocks.rows:
            self._learn()

    @property
    def notes(self) -> list[str]:
        """What there is to say about the columns."""
        return [role.note for role in self.roles.values() if role.note]

    def add_note(self, name: str, note: str) -> None:
        """Say something more about a column."""
        role = self.roles[name]
        self.roles[name] = role._replace(note="; ".join(filter(None, (role.note, note))))

    def settle(self) -> None:
        """Learn from the rows that are left over and fix the features."""
        if self.settled:
            return
        self.check()
        self.learn_rest()
        for part in self.parts.values():
            part.settle()
        self.settled = True

    @cached_property
    def bases(self) -> dict[str, int]:
        """The first feature of each column, once they are settled."""
        ends = np.cumsum([0, *(part.width for part in self.parts.values())]).tolist()
        return dict(zip(self.parts, ends, strict=False))

    @cached_property
    def width(self) -> int:
        """How many features there are, once they are settled."""
        return sum(part.width for part in self.parts.values())

    def features(self, frame: Frame, dtype: Any) -> sp.csr_matrix:
        """Return the features of the rows of a table."""
        self._meet(frame)
        columns = {name: self._column(frame, name) for name in self.parts}
        texts = [(name, part) for name, part in self.parts.items() if isinstance(part, TextColumn)]
        matrices = [part.features.transform(columns[name]) for name, part in texts]
        if len(matrices) == len(self.parts) == 1:
            return matrices[0].astype(dtype, copy=False)
        width = self.width
        if width > np.iinfo(np.int32).max:
            raise ValueError(f"there are {width:,} features, more than a matrix may have columns; drop or hash some columns")
        others = [part for part in self.parts.values() if not isinstance(part, TextColumn)]
        if others:
            matrices.insert(0, self._laid_out(columns, others, frame.n, dtype))
        return _beside(matrices, frame.n, width, dtype)

    def values(self, frame: Frame) -> dict[str, Any]:
        """Return the values, of the columns of a table that are used, of which their features are made: Arrow arrays."""
        return {name: self._column(frame, name) for name in self.parts if name in frame.names}

    def _laid_out(self, columns: dict[str, Any], parts: list[Any], n: int, dtype: Any) -> sp.csr_matrix:
        """Return the features of the columns that are not of text, block by block."""
        bases, width = self.bases, sum(part.width for part in parts)
        rows = max(1, min(n, LAID_OUT // len(parts)))
        ptr = np.zeros(n + 1, np.int64)
        indices, data = [], []
        for begin in range(0, n, rows):
            size = min(rows, n - begin)
            start, count = (np.zeros((len(parts), size), np.int32) for _ in range(2))
            value, all_ones = np.empty((len(parts), size)), np.ones(len(parts), np.bool_)
            for j, part in enumerate(parts):
                column = columns[part.name].slice(begin, size)
                values = numpy_array(column) if isinstance(part, NumberColumn) else column
                all_ones[j] = part.runs(values, bases[part.name], start[j], count[j], value[j])
            total = int(count.sum(dtype=np.int64))
            indices.append(np.empty(total, np.int32))
            data.append(np.empty(total, dtype))
            ends = np.zeros(size + 1, np.int64)
            flat = (frozen(array.reshape(-1)) for array in (start, count, value))
            kernels.lay_out(*flat, frozen(all_ones), len(parts), indices[-1], data[-1], ends)
            ptr[begin + 1 : begin + size + 1] = ptr[begin] + ends[1:]
        return _matrix(_joined(data, dtype), _joined(indices, np.int32), ptr, width)


def _whole(column: Any) -> Any:
    """Return a column of a block as one array."""
    return column.chunk(0) if column.num_chunks == 1 else pa.concat_arrays(column.chunks)


def _joined(arrays: list[Array], dtype: Any) -> Array:
    return arrays[0] if len(arrays) == 1 else np.concatenate([np.empty(0, dtype), *arrays])


def _matrix(data: Array, indices: Array, ptr: Array, width: int) -> sp.csr_matrix:
    if len(data) <= np.iinfo(np.int32).max:
        ptr = ptr.astype(np.int32)
    X = sp.csr_matrix((data, indices, ptr), shape=(len(ptr) - 1, width))
    X.has_canonical_format = True
    return X


def _beside(matrices: list[sp.csr_matrix], n: int, width: int, dtype: Any) -> sp.csr_matrix:
    """Return matrices of n rows side by side."""
    if len(matrices) == 1:
        return matrices[0].astype(dtype, copy=False)
    ptr = np.sum([X.indptr.astype(np.int64) for X in matrices], axis=0)
    indices, data = np.empty(ptr[-1], np.int32), np.empty(ptr[-1], dtype)
    at, base = ptr[:-1].copy(), 0
    for X in matrices:
        lengths = np.diff(X.indptr)
        places = np.repeat(at - X.indptr[:-1], lengths) + np.arange(X.nnz)
        indices[places], data[places] = X.indices + np.int32(base), X.data
        at, base = at + lengths, base + X.shape[1]
    return _matrix(data, indices, ptr, width)
