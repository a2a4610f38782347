"""The requests to learn that become one commit: their examples one after another, and what they ask for beside learning."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from separatrix.web.server.live.commits import Commit, SparseRows, stacked
from separatrix.web.server.reading.request_reader import RequestError, RequestExamples
from separatrix.web.server.storage.store_rows import FORGOTTEN_REQUEST
from separatrix.web.server.writing.jobs import LearnRequest, replies_to
from separatrix.web.server.writing.regressions import Changes, Marks

if TYPE_CHECKING:
    from separatrix.web.server.writing.writer import Writer


class LearnGroup:
    """Requests that were admitted, in order."""

    def __init__(self) -> None:
        self.requests: list[LearnRequest] = []
        self.marks = Marks()
        self._blocks: list[SparseRows] = []
        self._labels: list[Any] = []
        self._names: list[str] = []
        self._sources: list[Any] = []
        self._new_classes: dict[Any, None] = {}

    def admit(self, writer: Writer, request: LearnRequest) -> None:
        """Add a request; raises RequestError, and adds nothing, if it cannot be learned from."""

        def check(examples: RequestExamples) -> None:
            writer.regressions.check_room(examples, self.marks.n_pinned)

        examples, block, new_names = writer.admission.admitted(
            *(writer.buffer, request.examples, request.raw, self._new_classes), check
        )
        self.marks.add(examples, len(self._labels), writer.reader)
        self.requests.append(request)
        self._blocks.append(block)
        self._names += new_names
        self._labels += examples.labels
        self._sources += examples.sources or []

    def learned(self, writer: Writer) -> Commit:
        """Learn from the examples; return the commit, which is not written yet."""
        persistent = np.array(self.marks.persistent, np.int64)
        given = (stacked(self._blocks), self._labels, self._names, self._sources or None)
        return writer.buffer.learning.learn(*given, writer.keep_all, lambda: writer.stopping, persistent)

    def replies(self, commit: Commit, examples: int, mistakes_before: int, changes: Changes) -> list[bytes]:
        """Return the reply to each request, after `examples` examples and before the last commit's mistakes."""
        return replies_to(commit, [block.n for block in self._blocks], examples, mistakes_before, changes.broken)


def answered_before(writer: Writer, request: LearnRequest) -> bool:
    """Answer a request whose key was used before; return whether it was."""
    original = writer.store.reply_under(request.key)
    if original is None:
        return False
    writer.keyed_again += 1
    if original[0] == FORGOTTEN_REQUEST:
        reason = "examples that were sent under this Idempotency-Key were forgotten, and are not learned again"
        raise RequestError(410, f"{reason}; send what is to be learned under another key")
    if original[0] != request.body:
        raise RequestError(422, "this Idempotency-Key was used for another request")
    request.answer.set_result(original[1])
    return True
