"""What a request holds, read and checked: one example or a line each, as rows of features with their labels.

{"features": {"free": 1, "from": "bank"}, "label": "spam"}     numbers and truth values as they are, a string is `from=bank`
{"text": "free entry", "label": "spam"}                        where the model has a featurizer for texts
{"row": {"age": 37, "job": "cook"}, "label": "yes"}            where it has one for tables
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import chain
from typing import Any, NamedTuple, NoReturn

import numpy as np
import orjson
import pyarrow as pa

from separatrix.engine.rows import Floats, Ints
from separatrix.features.table import TableFeaturizer
from separatrix.features.text import TextFeaturizer
from separatrix.web.server.commits import SparseRows

MOST_LETTERS = 1000
"""Of a name or of a label."""
LARGEST = 1e100
_NUMBERS = {int, float, bool}


class RequestError(Exception):
    """A request that cannot be answered: a status and a sentence."""

    def __init__(self, status: int, message: str, wait: int | None = None) -> None:
        super().__init__(message)
        self.status, self.message, self.wait = status, message, wait


class Limits(NamedTuple):
    """How much one request, and the model, may hold."""

    body: int = 8 << 20
    features: int = 10_000
    weights: int = 50_000_000
    waiting: int = 1_000
    """How many requests may wait to be learned from."""
    waiting_bytes: int = 64 << 20


class RequestExamples(NamedTuple):
    """Examples as a request gave them: features by name, or by column where a featurizer made them."""

    names: list[str] | None
    indices: Ints
    data: Floats
    indptr: Ints
    labels: list[Any]
    sources: list[Any] | None

    @property
    def n(self) -> int:
        """How many there are."""
        return len(self.indptr) - 1

    def block(self, columns: Ints) -> SparseRows:
        """Return them as rows, given the column of each name."""
        return SparseRows(self.data, columns, self.indptr)

    def known(self, index: dict[str, int], width: int) -> SparseRows:
        """Return them as rows of the columns below `width`; names that were never met are left out."""
        columns = self.indices
        if self.names is not None:
            columns = np.array([index.get(name, width) for name in self.names], dtype=np.int64)
        held = columns < width
        if held.all():
            return self.block(columns)
        ends = np.concatenate([[0], np.cumsum(held)])
        return SparseRows(self.data[held], columns[held], ends[self.indptr])


class RequestReader:
    """Reads requests as one model wants them."""

    def __init__(self, features: Any, limits: Limits) -> None:
        self.features, self.limits = features, limits
        self.field = "features"
        self._text_column: str | None = None
        if isinstance(features, TextFeaturizer):
            self.field = "text"
        elif isinstance(features, TableFeaturizer):
            self.field = "row"
            roles = {name: role for name, role in features.roles_.items() if role != "drop"}
            self._text_column = next(iter(roles)) if list(roles.values()) == ["text"] else None

    def one(self, body: bytes, labelled: bool) -> RequestExamples:
        """Read one JSON object."""
        return self._examples([body], labelled, lambda _: "")

    def lines(self, body: bytes, labelled: bool) -> RequestExamples:
        """Read a JSON object a line; blank lines are passed over."""
        lines = [line for line in body.split(b"\n") if line and not line.isspace()]
        if not lines:
            raise RequestError(422, "there is no example: send a JSON object a line")
        return self._examples(lines, labelled, lambda i: f"line {i + 1}: ")

    def _examples(self, lines: list[bytes], labelled: bool, place: Callable[[int], str]) -> RequestExamples:
        given: list[Any] = []
        labels: list[Any] = []
        field = self.field
        for i, line in enumerate(lines):
            try:
                told = orjson.loads(line)
                given.append(self._row(told) if field == "row" else told[field])
                if labelled:
                    labels.append(told["label"])
            except (orjson.JSONDecodeError, KeyError, TypeError) as error:
                self._complain(line, error, labelled, place(i))
        if not set(map(type, labels)) <= {str, int}:
            labels = [self._whole(label, place(i)) for i, label in enumerate(labels)]
        self.check_labels(labels, place)
        if self.field == "features":
            return self._named(given, labels, place)
        return self._made(given, labels, place)

    @staticmethod
    def check_labels(labels: list[Any], place: Callable[[int], str]) -> None:
        """Raise for a string or a whole number that cannot be a label."""
        for label in set(labels):
            if not (0 < len(label) <= MOST_LETTERS and "\0" not in label if isinstance(label, str) else abs(label) < 2**53):
                where = place(labels.index(label))
                raise RequestError(
                    422, f"{where}a label has 1 to {MOST_LETTERS} letters, none of them NUL, or is below 2^53"
                )

    def _row(self, told: dict[str, Any]) -> Any:
        """Return a table row; where its one column is a text, that alone will do."""
        if self._text_column is not None and "row" not in told:
            return {self._text_column: told["text"]}
        return told["row"]

    def _complain(self, line: bytes, error: Exception, labelled: bool, place: str) -> NoReturn:
        """Say what is wrong with a line."""
        if isinstance(error, orjson.JSONDecodeError):
            raise RequestError(400, f"{place}this is not JSON: {error}") from None
        told = orjson.loads(line)
        if not isinstance(told, dict):
            raise RequestError(422, f"{place}an example is a JSON object, such as {self.sample(labelled)}")
        missing = "label" if labelled and "label" not in told else self.field
        raise RequestError(422, f'{place}"{missing}" is missing: an example is {self.sample(labelled)}')

    def sample(self, labelled: bool) -> str:
        """Return an example of an example."""
        shown = {"features": '{"free": 1}', "text": '"free entry"', "row": '{"age": 37}'}[self.field]
        return f'{{"{self.field}": {shown}' + (', "label": "spam"}' if labelled else "}")

    @staticmethod
    def _whole(label: Any, place: str) -> Any:
        """Return a label that is a string or a whole number; JSON does not tell 1.0 from 1."""
        if isinstance(label, float) and label.is_integer():
            return int(label)
        if type(label) not in (str, int):
            raise RequestError(422, f"{place}a label is a string or a whole number")
        return label

    # Features by name.

    def _named(self, given: list[Any], labels: list[Any], place: Callable[[int], str]) -> RequestExamples:
        most = self.limits.features
        for i, features in enumerate(given):
            if type(features) is not dict:
                raise RequestError(422, f'{place(i)}"features" must be an object of names and values')
            if len(features) > most:
                raise RequestError(413, f"{place(i)}{len(features):,} features are more than the {most:,} that are taken")
        values = list(chain.from_iterable(features.values() for features in given))
        if not set(map(type, values)) <= _NUMBERS:
            given = [self._spelled(features, place(i)) for i, features in enumerate(given)]
            values = list(chain.from_iterable(features.values() for features in given))
        data = np.array(values, dtype=np.float64)
        indptr = np.zeros(len(given) + 1, np.int64)
        np.cumsum([len(features) for features in given], out=indptr[1:])
        names = list(chain.from_iterable(given))
        if data.size:
            self._check_values(data, names, indptr, place)
        return RequestExamples(names, np.empty(0, np.int64), data, indptr, labels, None)

    @staticmethod
    def _spelled(features: dict[str, Any], place: str) -> dict[str, float]:
        """Return features with strings as features of their own."""
        spelled: dict[str, float] = {}
        for name, value in features.items():
            if isinstance(value, str):
                name, value = f"{name}={value}", 1.0
            if type(value) not in _NUMBERS:
                raise RequestError(422, f"{place}feature {name!r:.60} must be a number, a truth value or a string")
            spelled[name] = spelled.get(name, 0.0) + value
        return spelled

    @staticmethod
    def _check_values(data: Floats, names: list[str], indptr: Ints, place: Callable[[int], str]) -> None:
        wrong = np.flatnonzero(~(np.abs(data) <= LARGEST))
        longest = max(map(len, names))
        if wrong.size or longest > MOST_LETTERS:
            at = int(wrong[0]) if wrong.size else next(k for k, name in enumerate(names) if len(name) > MOST_LETTERS)
            row = place(int(np.searchsorted(indptr, at, side="right")) - 1)
            if wrong.size:
                raise RequestError(422, f"{row}feature {names[at]!r:.60} is too large: values go up to {LARGEST:g}")
            raise RequestError(422, f"{row}the name {names[at]!r:.40}… has more than {MOST_LETTERS} letters")

    # Texts and table rows.

    def _made(self, given: list[Any], labels: list[Any], place: Callable[[int], str]) -> RequestExamples:
        wanted, most = (str if self.field == "text" else dict), self.limits.features
        for i, one in enumerate(given):
            if type(one) is not wanted:
                raise RequestError(422, f'{place(i)}"{self.field}" must be {"a string" if wanted is str else "an object"}')
        try:
            X = self.features.transform(given if wanted is str else self._table(given, place))
        except (ValueError, TypeError, OverflowError, NotImplementedError, pa.ArrowException) as error:
            raise RequestError(422, str(error).split("\n")[0][:300]) from None
        indptr = X.indptr.astype(np.int64)
        widest = int(np.argmax(np.diff(indptr)))
        if indptr[widest + 1] - indptr[widest] > most:
            raise RequestError(413, f"{place(widest)}more features than the {most:,} that are taken")
        data = X.data.astype(np.float64)
        if not np.all(np.abs(data) <= LARGEST):
            raise RequestError(422, f"a value is too large: values go up to {LARGEST:g}")
        return RequestExamples(None, X.indices.astype(np.int64), data, indptr, labels, given)

    def _table(self, rows: list[dict[str, Any]], place: Callable[[int], str]) -> Any:
        wanted = list(self.features.roles_)
        for i, row in enumerate(rows):
            strangers = row.keys() - set(wanted)
            if strangers:
                raise RequestError(
                    422, f"{place(i)}there is no column {min(strangers)!r:.60}; there are {', '.join(wanted[:20])}"
                )
        return pa.table({name: pa.array([row.get(name) for row in rows]) for name in wanted})
