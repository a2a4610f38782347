"""What may be learned: reads the examples of a request, and refuses those for which the model would grow too large."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from separatrix.web.server.live.commits import SparseRows
from separatrix.web.server.live.double_buffer import DoubleBuffer
from separatrix.web.server.memory_budget import MemoryBudget, MemoryLimitError, megabytes
from separatrix.web.server.reading.request_reader import RequestError, RequestExamples, RequestReader

_PER_NAME, _PER_LETTER = 250, 6
"""The bytes of memory that the name of a feature takes: in the index, and while a snapshot is written."""


class Admission:
    """Reads requests to learn, in the writer's thread, and claims the memory that the model will need."""

    def __init__(self, reader: RequestReader, models: MemoryBudget) -> None:
        self.reader, self.limits, self.models = reader, reader.limits, models
        self.claimed = 0

    def resume(self, buffer: DoubleBuffer) -> None:
        """Take up the model of a buffer: claim its memory; vectors have as many values as it has columns."""
        if self.reader.vectors is not None:
            self.reader.vectors.dimension = buffer.learning.n_names
        self.claim(buffer)

    def claim(self, buffer: DoubleBuffer, classes: int = 0) -> None:
        """Claim what a model needs with the features of its index and so many classes; raises MemoryLimitError."""
        index, live_model = buffer.index, buffer.learning
        names = self._width(buffer)
        need = live_model.bytes_for(names, max(classes, len(live_model.classes)))
        if index is not None:
            need += _PER_NAME * names + _PER_LETTER * index.n_bytes
        self.models.claim(need - self.claimed)  # less than nothing, after growth has failed
        self.claimed = need

    def admitted(
        self,
        buffer: DoubleBuffer,
        examples: RequestExamples | None,
        body: bytes,
        new_classes: dict[Any, None],
        check: Callable[[RequestExamples], None] = lambda examples: None,
    ) -> tuple[RequestExamples, SparseRows, list[str]]:
        """Return the examples of a request, their rows, and the features that get a column now.

        Raises RequestError, with no feature added, if they cannot be read or the model would become too large. The classes
        that are new in this group of requests are added to `new_classes`. `check` may raise RequestError, too.
        """
        index = buffer.index
        n_before = 0 if index is None else len(index.listed)
        dimension = 0 if self.reader.vectors is None else self.reader.vectors.dimension
        try:
            examples = self._examples(buffer, body) if examples is None else examples
            check(examples)
            columns = examples.indices
            if index is not None and examples.names is not None:
                columns = index.columns_of(examples.names)
            new_names = self._fixed_dimension(examples) if index is None else index.listed[n_before:]
            new_classes.update(self._unseen_classes(buffer, examples, new_classes, bool(new_names)))
        except BaseException:
            if index is not None:
                index.truncate(n_before)
            if self.reader.vectors is not None:
                self.reader.vectors.dimension = dimension
            raise
        return examples, examples.rows(columns), new_names

    def _fixed_dimension(self, examples: RequestExamples) -> list[str]:
        """Return the columns that get weights now: those of the first vector, which fixes the dimension."""
        vectors = self.reader.vectors
        if vectors is None:
            return []
        vectors.check_known(examples.indptr)
        if vectors.dimension:
            return []
        vectors.dimension = int(examples.indptr[1])
        return [str(column) for column in range(vectors.dimension)]

    def _width(self, buffer: DoubleBuffer) -> int:
        """Return the number of columns that have weights, or will have them after this group of requests."""
        if buffer.index is not None:
            return len(buffer.index.listed)
        return max(buffer.learning.n_names, 0 if self.reader.vectors is None else self.reader.vectors.dimension)

    def _examples(self, buffer: DoubleBuffer, body: bytes) -> RequestExamples:
        """Return the examples of lines; those of named features are parsed by a kernel, unless they are unusual."""
        index = buffer.index
        lines = None if index is None else index.read(body, self.limits.features)
        if lines is None:
            return self.reader.lines(body, True)
        self.reader.check_labels(lines.labels, lambda k: f"line {int(np.argmax(lines.label == k)) + 1}: ")
        labels = [lines.labels[k] for k in lines.label.tolist()]
        return RequestExamples(None, lines.indices, lines.data, lines.indptr, labels, None)

    def _unseen_classes(
        self, buffer: DoubleBuffer, examples: RequestExamples, new: dict[Any, None], has_new_names: bool
    ) -> dict[Any, None]:
        """Return the labels that are not classes yet; raises RequestError if they cannot be, or the model gets too large."""
        live_model, limits = buffer.learning, self.limits
        distinct = dict.fromkeys(examples.labels)
        unseen = dict.fromkeys(label for label in distinct if label not in live_model.table.number and label not in new)
        outputs = len(live_model.classes) + len(new) + len(unseen)
        try:
            if len({isinstance(label, str) for label in (*live_model.classes[:1], *list(new)[:1], *distinct)}) > 1:
                raise ValueError("the labels of a model must be all strings or all integers")
            live_model.check(list(unseen), outputs)
        except ValueError as error:
            raise RequestError(422, str(error)) from None
        if unseen and outputs > limits.classes:
            raise RequestError(
                422, f"{outputs:,} classes exceed the limit of {limits.classes:,} (--max-classes); nothing was learned"
            )
        limits.check_scores(examples.n, outputs)
        if unseen or has_new_names:
            self._check_growth(buffer, outputs)
        return unseen

    def _check_growth(self, buffer: DoubleBuffer, outputs: int) -> None:
        """Raise RequestError if the model, with so many classes, gets too many names or weights, or needs too much."""
        limits, index = self.limits, buffer.index
        width = self._width(buffer)
        if width * outputs > limits.weights:
            limit = f"the limit of {limits.weights:,} weights (--weight-limit); nothing was learned"
            raise RequestError(422, f"{outputs:,} classes and {width:,} features need more than {limit}")
        if index is not None and index.n_bytes > limits.names:
            limit = f"the limit of {megabytes(limits.names)} (--name-limit); nothing was learned"
            raise RequestError(422, f"the names of {width:,} features take {megabytes(index.n_bytes)} and exceed {limit}")
        try:
            self.claim(buffer, outputs)
        except MemoryLimitError as error:
            raise RequestError(
                422,
                f"{outputs:,} classes and {width:,} features need more memory than models may use (--max-memory): {error}; "
                "nothing was learned. Examples without new classes and features are still learned from",
            ) from None
