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
from separatrix.features.columns.arrow_columns import ARROW, TEXT, Frame, TableBlocks, as_kind, floats, kind_of
from separatrix.features.columns.categories import BooleanColumn, CategoryColumn, SetColumn
from separatrix.features.columns.date_forms import DateForm
from separatrix.features.columns.dates import DateColumn
from separatrix.features.columns.misfits import Misfits, refused
from separatrix.features.columns.notations import Notation, is_written
from separatrix.features.columns.numbers import SAMPLE, SAMPLES, NumberColumn, row_keys
from separatrix.features.columns.roles import DROP, KIND_FOR, ROLES, Form, Role, chosen, inferred
from separatrix.features.columns.texts import TextColumn, balance
from separatrix.features.text import TextFeaturizer
from separatrix.kernels.text import tables as kernels

LAID_OUT = 1 << 20
BINS, FEWEST_BINS, ALL_BINS = 32, 4, 2048
"""How many bins a column of numbers has unless asked: 32, or, where that is more than 2,048 in all, fewer, down to 4."""
TEXT_WIDTH = 1 << 20


class Settings(NamedTuple):
    """How the columns become features."""

    roles: Mapping[str, str]
    numbers: str
    n_bins: int | None
    thermometer: bool
    most: int
    n_hashed: int
    text: TextFeaturizer | None


Part = NumberColumn | CategoryColumn | BooleanColumn | DateColumn | TextColumn
IN_MATRICES = ("set", "text")
"""The roles of columns of which a row has any number of features. They come last."""


class Schema:
    """The columns of a table: their kinds, as they come; their roles, by the first block; what is learned of each."""

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self.names: list[str] = []
        self.kinds: dict[str, str | None] = {}
        self.spelled: dict[str, bool] = {}
        self.roles: dict[str, Role] = {}
        self.parts: dict[str, Part] = {}
        self.misfits: dict[str, Misfits] = {}
        """Of the columns in which something that is not written as their values are was learned from as missing."""
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
        if self.roles:
            table = self._read(table)
        while table.num_rows:
            table = table.slice(self.blocks.fill(table))
            if self.blocks.full:
                is_first = not self.roles
                self._learn()
                table = self._read(table) if is_first else table.select(list(self.parts))
        self.blocks.keep()

    def adopt_roles(self, other: Schema) -> None:
        """Take over what the columns are for and how they are written; what they hold is still to be learned."""
        self.names, self.kinds, self.spelled = other.names, dict(other.kinds), dict(other.spelled)
        self.roles, self.misfits = dict(other.roles), dict(other.misfits)
        self.make_parts()

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
                self.kinds[name] = KIND_FOR[role] if role in KIND_FOR else kind_of(arrow, name)
                if role == "number" and kind_of(arrow, name) == TEXT and is_written(as_kind(frame, name, TEXT, True)):
                    self.kinds[name] = TEXT
                self.spelled[name] = bool(role) or kinds.is_dictionary(arrow)
                if kinds.is_dictionary(arrow) and not role:
                    self.kinds[name] = TEXT

    def _absent(self, name: str, there: list[str]) -> ValueError:
        message = no_column(name, there)
        advice = f"add it (empty, where its values are not known), or train without it: roles={{{name!r}: 'drop'}}"
        return ValueError(f"{message} If not, {advice}" if message.endswith("?") else f"{message}; {advice}")

    def _wanted(self, name: str) -> bool:
        role = self.roles[name].role if name in self.roles else self.settings.roles.get(name)
        return role != DROP

    def _column(self, frame: Frame, name: str) -> Any:
        """Return a column by its kind, or, where its role says how it is written, by the kind in which it came."""
        kind = self.kinds[name]
        if kind is None:
            return pa.nulls(frame.n)
        if (form := self._form(name)) is not None:
            came = kind_of(frame.table.schema.field(name).type, name) or kind
            kind = came if came in form.kinds else form.kinds[0]
        column = as_kind(frame, name, kind, self.spelled[name])
        if ARROW[kind] == pa.float64():
            floats(column, frame.place, name)
        return column

    def _form(self, name: str) -> Form | None:
        """Return how the numbers or dates of a column are written, where that is known and must be."""
        form = self.roles[name].form if name in self.roles else None
        return None if isinstance(form, str) else form

    def is_in_notation(self, name: str) -> bool:
        """Tell whether a column was read as text that stands for numbers."""
        return self.kinds[name] == TEXT and isinstance(self._form(name), Notation)

    def is_spelled_out(self, name: str) -> bool:
        """Tell whether a column was read as text, and holds numbers that would not be the same if they were read as such."""
        part = self.parts.get(name)
        has_numerals = self.kinds[name] == TEXT and isinstance(part, CategoryColumn) and part.has_numerals()
        return has_numerals or self.is_in_notation(name)

    def _read(self, table: Any) -> Any:
        """Return the columns that are used as their parts learn them; note values that cannot be read."""
        columns = {}
        for name in self.parts:
            column, form = table.column(name), self._form(name)
            if form is not None:
                column, written = form.parsed(whole := _whole(column)), whole
                if column.null_count > written.null_count:
                    self.misfits[name] = self.misfits.get(name, Misfits()) + Misfits.of(written, column)
            columns[name] = column
        return pa.table(columns)

    def _learn(self) -> None:
        """Learn from the rows of a block; what the columns are for, from the first."""
        block = self.blocks.whole()
        if not self.roles:
            self.roles = self._roles(block)
            self.make_parts()
            block = self._read(block)
        self.blocks.clear()
        keys = row_keys(self.n_rows, block.num_rows)
        self.n_rows += block.num_rows
        for name, part in self.parts.items():
            column = _whole(block.column(name))
            part.learn(numpy_array(column) if isinstance(part, NumberColumn) else column, keys)

    def _roles(self, block: Any) -> dict[str, Role]:
        """Return the role of each column, by the first block."""
        roles, wanted = {}, self.settings.roles
        for name in self.names:
            if wanted.get(name) == DROP:
                roles[name] = Role(DROP)
            elif name in wanted:
                roles[name] = chosen(name, wanted[name], self.kinds[name], _whole(block.column(name)))
            else:
                column = _whole(block.column(name))
                roles[name] = inferred(name, self.kinds[name], column, self.spelled[name], self.names)
        if all(role.role == DROP for role in roles.values()):
            raise ValueError("there is no column to learn from" + "".join(f"; {role.note}" for role in roles.values()))
        return roles

    def check(self) -> None:
        """Raise where there is nothing to learn from."""
        self._check_rows()
        if not self.roles:
            self._roles(self.blocks.whole())

    def _check_rows(self) -> None:
        if not self.n_rows and not self.blocks.rows:
            raise ValueError("there are no rows to learn from: 0 sample(s) where a minimum of 1 is required")

    def make_parts(self) -> None:
        """Make a part for each column that is used: those of text come last."""
        used = [(name, role.role) for name, role in self.roles.items() if role.role != DROP]
        n_texts = sum(role == "text" for _, role in used)
        n_numbers = sum(role in ("number", "date") for _, role in used)
        for name, role in sorted(used, key=lambda pair: (pair[1] in IN_MATRICES, pair[1] == "text")):
            self.parts[name] = self._part(name, role, n_numbers, n_texts)
        if len(used) == 1 and n_texts:
            self.parts[used[0][0]].alone = True  # type: ignore[union-attr]

    def _part(self, name: str, role: str, n_numbers: int, n_texts: int) -> Part:
        how = self.settings
        form = self.roles[name].form
        if role in ("number", "date"):
            sample = min(SAMPLE, max(1024, SAMPLES // n_numbers))
            n_bins = how.n_bins or max(FEWEST_BINS, min(BINS, ALL_BINS // n_numbers))
            if role == "date":
                is_time = isinstance(form, DateForm) and form.is_time
                return DateColumn(name, is_time, how.numbers, n_bins, how.thermometer, sample)
            return NumberColumn(name, how.numbers, n_bins, how.thermometer, sample)
        if role == "set":
            return SetColumn(name, str(form), how.most, how.n_hashed)
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
        misfits = {name: misfits.note(name, form) for name, misfits in self.misfits.items() if (form := self._form(name))}
        notes = ((role.note, misfits.get(name, "")) for name, role in self.roles.items())
        return [note for pair in notes for note in pair if note]

    def add_note(self, name: str, note: str) -> None:
        """Say something more about a column."""
        role = self.roles[name]
        self.roles[name] = role._replace(note="; ".join(filter(None, (role.note, note))))

    def settle(self) -> None:
        """Learn from the rows that are left over and fix the features."""
        if self.settled:
            return
        self._check_rows()
        self.learn_rest()
        for part in self.parts.values():
            part.settle()
        balance(self.parts.values())
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
        columns = {name: self._transformed(frame, name) for name in self.parts}
        apart = [(name, part) for name, part in self.parts.items() if isinstance(part, SetColumn | TextColumn)]
        matrices = [part.matrix(columns[name], dtype) for name, part in apart]
        if len(matrices) == len(self.parts) == 1:
            return matrices[0].astype(dtype, copy=False)
        width = self.width
        if width > np.iinfo(np.int32).max:
            raise ValueError(f"there are {width:,} features, more than a matrix may have columns; drop or hash some columns")
        if len(apart) < len(self.parts):
            matrices.insert(0, self._laid_out(columns, frame.n, dtype))
        return _beside(matrices, width, dtype)

    def names_in(self, frame: Frame) -> dict[int, list[str]]:
        """Return what hashed features stand for in some rows."""
        names: dict[int, list[str]] = {}
        for name, part in self.parts.items():
            if isinstance(part, CategoryColumn | TextColumn):
                in_column = part.names_in(self._transformed(frame, name))
                names |= {self.bases[name] + k: meanings for k, meanings in in_column.items()}
        return names

    def values(self, frame: Frame) -> dict[str, Any]:
        """Return the values, of the columns of a table that are used, of which their features are made: Arrow arrays.

        Dates are numbers of seconds.
        """
        there = set(frame.names)
        columns = {name: self._transformed(frame, name) for name in self.parts if name in there}
        dates = {name: columns[name] for name in columns if isinstance(self.parts[name], DateColumn)}
        return columns | {name: column.cast(pa.int64()).cast(pa.float64()) for name, column in dates.items()}

    def _transformed(self, frame: Frame, name: str) -> Any:
        """Return a column as its part takes it; raise for the first value that is not written as those learned from.

        Where such values were learned from, they are missing.
        """
        column, form = self._column(frame, name), self._form(name)
        if form is None:
            return column
        values = form.parsed(column)
        if (misfits := refused(column, values, form, name in self.misfits)) is not None:
            raise misfits.error(name, form, frame.place)
        return values

    def _laid_out(self, columns: dict[str, Any], n: int, dtype: Any) -> sp.csr_matrix:
        """Return the features of the columns of which a row has one run of features, block by block."""
        parts: list[tuple[Any, Any, int]] = []
        for name, part in self.parts.items():
            if isinstance(part, DateColumn):
                parts += part.parts(columns[name], self.bases[name])
            elif part.role not in IN_MATRICES:
                parts.append((part, columns[name], self.bases[name]))
        width = sum(part.width for part, _, _ in parts)
        rows = max(1, min(n, LAID_OUT // len(parts)))
        ptr = np.zeros(n + 1, np.int64)
        indices, data = [], []
        for begin in range(0, n, rows):
            size = min(rows, n - begin)
            start, count = (np.zeros((len(parts), size), np.int32) for _ in range(2))
            value, all_ones = np.empty((len(parts), size)), np.ones(len(parts), np.bool_)
            for j, (part, whole, base) in enumerate(parts):
                column = whole.slice(begin, size)
                values = numpy_array(column) if isinstance(part, NumberColumn) else column
                all_ones[j] = part.runs(values, base, start[j], count[j], value[j])
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


def _beside(matrices: list[sp.csr_matrix], width: int, dtype: Any) -> sp.csr_matrix:
    """Return matrices side by side, `width` columns in all."""
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
