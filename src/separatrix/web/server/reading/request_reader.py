"""Parses and validates request bodies: one example, or one per line, as rows of features with their labels.

{"features": {"free": 1, "from": "bank"}, "label": "spam"}     numbers and booleans as they are; a string is `from=bank`
{"text": "free entry", "label": "spam"}                        if the model has a featurizer for texts
{"row": {"age": 37, "job": "cook"}, "label": "yes"}            if it has one for tables
{"vector": [0.1, -0.7], "label": "refund"}                     if the model is one of vectors
"""

from __future__ import annotations

import re
from collections.abc import Callable
from itertools import chain
from typing import Any, NamedTuple, NoReturn

import numpy as np
import orjson
import pyarrow as pa

from separatrix.data.arrow_arrays import text_array, value_array
from separatrix.data.kept_columns import flattened
from separatrix.engine.protocols import Featurizer
from separatrix.engine.rows import Floats, Ints
from separatrix.features.table import TableFeaturizer
from separatrix.features.text import TextFeaturizer
from separatrix.web.server.live.commits import SparseRows
from separatrix.web.server.reading.request_errors import RequestError as RequestError
from separatrix.web.server.reading.request_errors import check_fields
from separatrix.web.server.reading.vectors import VectorReader, packed_vector, unpacked

MOST_LETTERS = 1000
"""The longest allowed name or label, in characters."""
LARGEST = 1e100
"""The largest allowed absolute value of a feature."""
MARKS = ("until_right", "pin")
"""What a request to learn may ask for beside learning from an example: true or false, false by default."""
_NUMBERS = {int, float, bool}
_SAMPLES = {"features": '{"free": 1}', "text": '"free entry"', "row": '{"age": 37}', "vector": "[0.25, -0.5]"}
_PART = 1 << 17
"""Lines are parsed in parts of about so many bytes."""


class Limits(NamedTuple):
    """Limits on the size of a request, of the queue and of the model."""

    body: int = 8 << 20
    features: int = 10_000
    weights: int = 50_000_000
    classes: int = 5_000
    names: int = 256 << 20
    """The bytes of the names of all features."""
    scores: int = 20_000_000
    """The scores of a request: examples × classes."""
    waiting: int = 1_000
    """The number of requests that may wait to be learned from."""
    waiting_bytes: int = 64 << 20

    def check_scores(self, n: int, classes: int) -> None:
        """Raise RequestError if so many examples of a request need too many scores."""
        if n > 1 and n * classes > self.scores:
            remedy = f"send at most {max(1, self.scores // classes):,} examples at a time"
            limit = f"the limit of {self.scores:,} scores per request"
            raise RequestError(413, f"{n:,} examples × {classes:,} classes exceed {limit}: {remedy}")


class RequestExamples(NamedTuple):
    """The examples of a request: features by name, or by column if a featurizer made them."""

    names: list[str] | None
    indices: Ints
    data: Floats
    indptr: Ints
    labels: list[Any]
    sources: list[Any] | None
    until_right: tuple[int, ...] = ()
    """The positions of the examples that are to be corrected until they are judged right."""
    pinned: tuple[int, ...] = ()
    """The positions of the examples that join the regression set."""

    @property
    def n(self) -> int:
        """The number of examples."""
        return len(self.indptr) - 1

    def part(self, begin: int, end: int) -> RequestExamples:
        """Return some of the examples, to predict."""
        first, last = self.indptr[begin], self.indptr[end]
        return RequestExamples(
            None if self.names is None else self.names[first:last],
            self.indices[first:last],
            self.data[first:last],
            self.indptr[begin : end + 1] - first,
            [],
            None if self.sources is None else self.sources[begin:end],
        )

    def rows(self, columns: Ints) -> SparseRows:
        """Return the examples as rows, given the column of each value."""
        return SparseRows(self.data, columns, self.indptr)

    def known_rows(self, column_of: dict[str, int], width: int) -> SparseRows:
        """Return the examples as rows of the columns below `width`; unknown features are left out."""
        columns = self.indices
        if self.names is not None:
            columns = np.array([column_of.get(name, width) for name in self.names], dtype=np.int64)
        is_known = columns < width
        if is_known.all():
            return self.rows(columns)
        ends = np.concatenate([[0], np.cumsum(is_known)])
        return SparseRows(self.data[is_known], columns[is_known], ends[self.indptr])


class RequestReader:
    """Parses request bodies for one model: named features, texts, table rows or vectors.

    `settings` are those of a model that started from nothing: with "vectors", its examples are vectors.
    """

    def __init__(self, features: Featurizer | None, limits: Limits, settings: dict[str, Any] | None = None) -> None:
        self.features, self.limits = features, limits
        self.field = "features"
        self.vectors: VectorReader | None = None
        if (settings or {}).get("vectors"):
            self.field = "vector"
            self.vectors = VectorReader(bool((settings or {}).get("cosine")), limits.features)
        self._text_column: str | None = None
        if isinstance(features, TextFeaturizer):
            self.field = "text"
        elif isinstance(features, TableFeaturizer):
            self.field = "row"
            roles = {name: role for name, role in features.roles_.items() if role != "drop"}
            self._text_column = next(iter(roles)) if list(roles.values()) == ["text"] else None

    def one(self, body: bytes, labelled: bool) -> RequestExamples:
        """Parse one JSON object."""
        return self._examples([body], labelled, lambda _: "")

    def lines(self, body: bytes, labelled: bool) -> RequestExamples:
        """Parse one JSON object per line; blank lines are skipped."""
        parts: list[RequestExamples] = []
        start = n_before = 0
        while start < len(body):  # part after part: parsed JSON takes far more memory than rows
            end = body.find(b"\n", start + _PART) + 1 if self.field == "features" else 0
            all_lines = body[start : end or len(body)].split(b"\n")
            numbers = [number for number, line in enumerate(all_lines) if line and not line.isspace()]
            if numbers:
                lines, place = [all_lines[number] for number in numbers], _places(numbers, n_before + 1)
                parts.append(self._examples(lines, labelled, place))
            n_before += len(all_lines) - 1
            start = end or len(body)
        if not parts:
            raise RequestError(422, "the body contains no example: send one JSON object per line")
        return parts[0] if len(parts) == 1 else _joined(parts)

    def _examples(self, lines: list[bytes], labelled: bool, place: Callable[[int], str]) -> RequestExamples:
        inputs: list[Any] = []
        labels: list[Any] = []
        marks: dict[str, list[int]] = {name: [] for name in MARKS}
        field = self.field
        known = (field, "label", *(MARKS if labelled else ("cite",)), *(() if self._text_column is None else ("text",)))
        for i, line in enumerate(lines):
            try:
                fields = orjson.loads(line)
                inputs.append(self._row(fields) if field == "row" else fields[field])
                check_fields(fields, known, place(i))
                if labelled:
                    labels.append(fields["label"])
                    for name in MARKS:
                        if name in fields and _is_true(fields[name], f'{place(i)}"{name}"'):
                            marks[name].append(i)
            except (orjson.JSONDecodeError, KeyError, TypeError) as error:
                self._raise_for_line(line, error, labelled, place(i))
        if not set(map(type, labels)) <= {str, int}:
            labels = [self._checked_label(label, place(i)) for i, label in enumerate(labels)]
        self.check_labels(labels, place)
        ways = {"features": self._named, "vector": self._dense}
        read = ways.get(self.field, self._featurized)
        return read(inputs, labels, place)._replace(until_right=tuple(marks["until_right"]), pinned=tuple(marks["pin"]))

    @staticmethod
    def check_labels(labels: list[Any], place: Callable[[int], str]) -> None:
        """Raise RequestError for a string or an integer that cannot be a label."""
        for label in set(labels):
            if not (0 < len(label) <= MOST_LETTERS and "\0" not in label if isinstance(label, str) else abs(label) < 2**53):
                where = place(labels.index(label))
                raise RequestError(
                    422,
                    f"{where}a label must have 1 to {MOST_LETTERS} characters without NUL, or be an integer below 2^53",
                )

    def _row(self, fields: dict[str, Any]) -> Any:
        """Return the table row of an example; a table with one text column also accepts the text alone."""
        if self._text_column is not None and "row" not in fields:
            return {self._text_column: fields["text"]}
        return fields["row"]

    def _raise_for_line(self, line: bytes, error: Exception, labelled: bool, place: str) -> NoReturn:
        """Raise the RequestError that says what is wrong with a line."""
        if isinstance(error, orjson.JSONDecodeError):
            raise RequestError(400, f"{place}invalid JSON: {error}") from None
        fields = orjson.loads(line)
        if not isinstance(fields, dict):
            raise RequestError(422, f"{place}an example must be a JSON object, such as {self.sample(labelled)}")
        missing = "label" if labelled and "label" not in fields else self.field
        raise RequestError(422, f'{place}"{missing}" is missing: send for example {self.sample(labelled)}')

    def sample(self, labelled: bool) -> str:
        """Return a sample of a valid example, for error messages."""
        value = _SAMPLES[self.field]
        return f'{{"{self.field}": {value}' + (', "label": "spam"}' if labelled else "}")

    @staticmethod
    def _checked_label(label: Any, place: str) -> Any:
        """Return a label that is a string or an integer; JSON does not distinguish 1.0 from 1."""
        if isinstance(label, float) and label.is_integer():
            return int(label)
        if type(label) not in (str, int):
            raise RequestError(422, f"{place}a label must be a string or an integer")
        return label

    # Features by name.

    def _named(self, inputs: list[Any], labels: list[Any], place: Callable[[int], str]) -> RequestExamples:
        most = self.limits.features
        for i, features in enumerate(inputs):
            if type(features) is not dict:
                raise RequestError(422, f'{place(i)}"features" must be an object of feature names and values')
            if len(features) > most:
                raise RequestError(413, f"{place(i)}{len(features):,} features exceed the limit of {most:,} per example")
        values = list(chain.from_iterable(features.values() for features in inputs))
        if not set(map(type, values)) <= _NUMBERS:
            inputs = [self._with_indicators(features, place(i)) for i, features in enumerate(inputs)]
            values = list(chain.from_iterable(features.values() for features in inputs))
        data = np.array(values, dtype=np.float64)
        indptr = np.zeros(len(inputs) + 1, np.int64)
        np.cumsum([len(features) for features in inputs], out=indptr[1:])
        names = list(chain.from_iterable(inputs))
        if data.size:
            self._check_values(data, names, indptr, place)
        return RequestExamples(names, np.empty(0, np.int64), data, indptr, labels, None)

    @staticmethod
    def _with_indicators(features: dict[str, Any], place: str) -> dict[str, float]:
        """Return the features with each string value as an indicator feature `name=value`."""
        numbers: dict[str, float] = {}
        for name, value in features.items():
            if isinstance(value, str):
                name, value = f"{name}={value}", 1.0
            if type(value) not in _NUMBERS:
                raise RequestError(422, f"{place}feature {name!r:.60} must be a number, a boolean or a string")
            numbers[name] = numbers.get(name, 0.0) + value
        return numbers

    @staticmethod
    def _check_values(data: Floats, names: list[str], indptr: Ints, place: Callable[[int], str]) -> None:
        too_large = np.flatnonzero(~(np.abs(data) <= LARGEST))
        longest = max(map(len, names))
        if too_large.size or longest > MOST_LETTERS:
            at = int(too_large[0]) if too_large.size else next(k for k, name in enumerate(names) if len(name) > MOST_LETTERS)
            row = place(int(np.searchsorted(indptr, at, side="right")) - 1)
            if too_large.size:
                raise RequestError(422, f"{row}feature {names[at]!r:.60} is too large: the limit is {LARGEST:g}")
            raise RequestError(422, f"{row}the name {names[at]!r:.40}… has more than {MOST_LETTERS} characters")

    # Vectors.

    def _dense(self, inputs: list[Any], labels: list[Any], place: Callable[[int], str]) -> RequestExamples:
        assert self.vectors is not None
        data, indices, indptr = self.vectors.rows(inputs, place)
        return RequestExamples(None, indices, data, indptr, labels, None)

    # Examples that the store keeps.

    def source(self, examples: RequestExamples, at: int) -> dict[str, Any]:
        """Return an example in the form of a request."""
        here = slice(int(examples.indptr[at]), int(examples.indptr[at + 1]))
        if examples.sources is not None:
            return {self.field: examples.sources[at]}
        if examples.names is not None:
            return {self.field: dict(zip(examples.names[here], examples.data[here].tolist(), strict=True))}
        return {self.field: packed_vector(examples.data[here])}

    def stored(self, source: dict[str, Any]) -> RequestExamples:
        """Return the example of which `source` returned the form; a vector is not scaled again."""
        if self.vectors is None:
            return self.one(orjson.dumps(source), False)
        values = unpacked(source["vector"]).astype(np.float64)
        return RequestExamples(None, np.arange(len(values)), values, np.array([0, len(values)]), [], None)

    # Texts and table rows.

    def _featurized(self, inputs: list[Any], labels: list[Any], place: Callable[[int], str]) -> RequestExamples:
        assert self.features is not None
        expected, most = (str if self.field == "text" else dict), self.limits.features
        for i, value in enumerate(inputs):
            if type(value) is not expected:
                raise RequestError(422, f'{place(i)}"{self.field}" must be {"a string" if expected is str else "an object"}')
        try:
            X = self.features.transform(text_array(inputs) if expected is str else self._table(inputs, place))
        except (ValueError, TypeError, OverflowError, NotImplementedError, pa.ArrowException) as error:
            raise RequestError(422, _finding(str(error).split("\n")[0])[:300]) from None
        indptr = X.indptr.astype(np.int64)
        widest = int(np.argmax(np.diff(indptr)))
        if indptr[widest + 1] - indptr[widest] > most:
            raise RequestError(413, f"{place(widest)}the example exceeds the limit of {most:,} features")
        data = X.data.astype(np.float64)
        if not np.all(np.abs(data) <= LARGEST):
            raise RequestError(422, f"a value is too large: the limit is {LARGEST:g}")
        return RequestExamples(None, X.indices.astype(np.int64), data, indptr, labels, inputs)

    def _table(self, rows: list[dict[str, Any]], place: Callable[[int], str]) -> Any:
        assert isinstance(self.features, TableFeaturizer)
        columns = list(self.features.roles_)
        try:
            rows = [flattened(row, whole=self.features.roles_) for row in rows]
        except KeyError as twice:
            raise RequestError(422, f"two values are called {twice.args[0]!r:.60}: rename one") from None
        for i, row in enumerate(rows):
            unknown = row.keys() - set(columns)
            if unknown:
                raise RequestError(
                    422, f"{place(i)}unknown column {min(unknown)!r:.60}; the columns are {', '.join(columns[:20])}"
                )
        unused = set(self.features.left_out())
        table = {name: _column(name, [row.get(name) for row in rows], place) for name in columns if name not in unused}
        return _RequestTable(pa.table(table), _Lines(place))


def _places(numbers: list[int], first: int) -> Callable[[int], str]:
    """Return a function that names the place of an example, given the numbers of the lines from line `first` on."""
    return lambda i: f"line {numbers[i] + first}: "


def _is_true(value: Any, name: str) -> bool:
    if type(value) is not bool:
        raise RequestError(422, f"{name} must be true or false")
    return value


def _joined(parts: list[RequestExamples]) -> RequestExamples:
    """Return examples of named features that were parsed in parts."""
    starts = np.cumsum([0, *(part.n for part in parts)]).tolist()
    ends = np.cumsum([0, *(len(part.data) for part in parts)])
    return RequestExamples(
        list(chain.from_iterable(part.names or () for part in parts)),
        np.empty(0, np.int64),
        np.concatenate([part.data for part in parts]),
        np.concatenate([[0], *(part.indptr[1:] + end for part, end in zip(parts, ends, strict=False))]),
        list(chain.from_iterable(part.labels for part in parts)),
        None,
        tuple(start + i for start, part in zip(starts, parts, strict=False) for i in part.until_right),
        tuple(start + i for start, part in zip(starts, parts, strict=False) for i in part.pinned),
    )


class _Lines(NamedTuple):
    """Where rows come from, for messages: the lines of the body, or the only row in it."""

    prefix: Callable[[int], str]

    def place(self, i: int) -> str:
        """Name the place of row i."""
        return self.prefix(i).removesuffix(": ") or '"row"'


class _RequestTable(NamedTuple):
    """The rows of a request as a table, as a batch of a reader has them."""

    table: Any
    origin: _Lines


def _column(name: str, values: list[Any], place: Callable[[int], str]) -> Any:
    """Return a column of a table; raise RequestError where its values have no type in common."""
    try:
        return value_array(values)
    except (pa.ArrowException, TypeError, OverflowError):
        kinds = [type(value).__name__ for value in values]
        first = next((i for i, kind in enumerate(kinds) if kind not in (kinds[0], "NoneType")), 0)
        what = "no number, string, boolean or list of strings" if first == 0 else "of another kind than the one before"
        raise RequestError(422, f"{place(first)}column {name!r:.60} holds a value that is {what}") from None


_REMEDY = re.compile(r"""(?<!\w)(?:'(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*")|[;:] [^;:'"]*\b[a-z_]+=[^;]*""")


def _finding(message: str) -> str:
    """Return a message without the remedy that it names as a parameter of Python: who sends a request trains no model.

    Examples
    --------
    >>> _finding("line 3, column 'age': 'old' is text; mend it, or train with roles={'age': 'category'}")
    "line 3, column 'age': 'old' is text"
    """
    return _REMEDY.sub(lambda part: part[0] if part[0][0] in "'\"" else "", message)
