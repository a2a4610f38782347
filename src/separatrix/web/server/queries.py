"""Requests that only read: predictions, explanations, and pages of the ledger of mistakes."""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Iterable
from itertools import repeat
from typing import Any

import numpy as np
import orjson
import pyarrow as pa

from separatrix.analysis.explaining import by_columns, feature_namer, lead_of, ranked_scores
from separatrix.analysis.explanation import BIAS, Explanation, Term
from separatrix.data.arrow_arrays import text_array, value_array
from separatrix.engine.asking import asking_probability, margins
from separatrix.engine.rows import Ints
from separatrix.features.table import TableFeaturizer
from separatrix.features.text import TextFeaturizer
from separatrix.web.server.forgetting.numbers import forgotten_numbers, numbers_of
from separatrix.web.server.live.commits import Commit, SparseRows
from separatrix.web.server.live.double_buffer import DoubleBuffer
from separatrix.web.server.live.live_model import LiveModel
from separatrix.web.server.reading.feature_index import FeatureIndex
from separatrix.web.server.reading.request_reader import RequestError, RequestExamples
from separatrix.web.server.reading.vectors import packed_vector
from separatrix.web.server.storage.pins import read_pins
from separatrix.web.server.storage.store import CommitStore
from separatrix.web.server.storage.store_rows import StoredCommit

MOST_SCORES = 10
"""A prediction lists the scores of at most so many classes, the highest first."""
PAGE_BYTES = 4 << 20
"""A page of mistakes ends after so many bytes, however many were asked for."""
_READ_AT_ONCE = 20
_NO_CAUSES = "the mistakes are in the ledger"


def known_rows(buffer: DoubleBuffer, live_model: LiveModel, examples: RequestExamples) -> SparseRows:
    """Return the examples as rows of the columns that the model has."""
    return examples.known_rows({} if buffer.index is None else buffer.index.column, live_model.width)


def predictions(buffer: DoubleBuffer, examples: RequestExamples, ask: float | None = None) -> list[dict[str, Any]]:
    """Return the label, the margin and the scores of each example; the label is None before anything was learned.

    With `ask`, the b of selective sampling, also whether its label is worth asking for (`engine/asking.py`).
    """
    with buffer.reading() as (live_model, number):
        if live_model.run is None:
            nothing: dict[str, Any] = {"prediction": None, "margin": None, "scores": [], "commit": number}
            return [nothing | ({} if ask is None else {"ask": True, "ask_probability": 1.0})] * examples.n
        rows = known_rows(buffer, live_model, examples)
        scores = live_model.scores(rows)
        decisions, labels = live_model.decide(scores), list(live_model.labels)
        threshold = live_model.learner.threshold_ or 0.0
        last = live_model.scores(rows, last=True) if ask is not None and live_model.learner.averages else scores
    certain = len(labels) > 1
    leads: list[Any] = (
        margins(scores - threshold if len(labels) == 2 else scores).tolist() if certain else [None] * examples.n
    )
    chances = asking_probability(margins(last), ask).tolist() if ask is not None and certain else repeat(1.0)
    if len(labels) == 2:
        scores = np.column_stack([-scores[:, 0], scores[:, 0]])
    scores = scores[:, : len(labels)]
    orders: Iterable[list[int]] = repeat(list(range(len(labels))))
    if len(labels) > MOST_SCORES:
        orders = np.argsort(-scores, axis=1, kind="stable")[:, :MOST_SCORES].tolist()
    replies = []
    for label, lead, chance, row, order in zip(decisions, leads, chances, scores.tolist(), orders, strict=False):
        ranked = sorted(((row[k], labels[k]) for k in order), key=lambda pair: -pair[0])
        listed = [{"class": name, "score": score} for score, name in ranked]
        reply = {"prediction": label, "margin": lead, "scores": listed, "commit": number}
        if ask is not None:
            reply |= {"ask": random.random() < chance, "ask_probability": chance}
        replies.append(reply)
    return replies


def prediction_lines(buffer: DoubleBuffer, examples: RequestExamples, ask: float | None = None) -> bytes:
    """Return the prediction of each example, one JSON object per line."""
    replies = predictions(buffer, examples, ask)
    return b"".join(orjson.dumps(reply, option=orjson.OPT_APPEND_NEWLINE) for reply in replies)


def rows_at_once(n_classes: int) -> int:
    """Return how many examples are predicted at a time, so that their scores take little memory and time."""
    return max(1, min(1000, 1_000_000 // max(1, n_classes)))


def explanation(
    buffer: DoubleBuffer, examples: RequestExamples, of: str | None = None, against: str | None = None
) -> dict[str, Any]:
    """Return the terms whose sum is the score of an example: of a class, minus that of another one, if they are named."""
    with buffer.reading() as (live_model, number):
        if live_model.run is None or len(live_model.classes) < 2:
            label = live_model.classes[0] if live_model.classes else None
            return Explanation(label, 0.0, {}, [], 0.0, no_causes=_NO_CAUSES).to_dict() | {"commit": number}
        row = known_rows(buffer, live_model, examples)
        scores = live_model.scores(row)[0]
        (label,) = live_model.decide(scores[None])
        labels = list(live_model.labels)
        winner = labels.index(label)
        second = int(np.argmax(np.where(np.arange(len(scores)) == winner, -np.inf, scores)))
        try:
            lead = lead_of(labels, winner, second, of, against)
        except ValueError as error:
            raise RequestError(422, str(error)) from None
        W, b = live_model.weights_of(row.indices, np.array([lead.of, lead.of if lead.against is None else lead.against]))
        bias = live_model.run.bias
        threshold = live_model.learner.threshold_ if len(labels) == 2 else None
    both = lead if len(b) == 1 else lead._replace(of=0, against=None if lead.against is None else 1)
    w, offset, score = both.taken(W.T), float(both.taken(b)), float(lead.taken(scores))
    name_of = _column_namer(live_model, buffer.index, examples)
    products = (w * row.data).tolist()
    values = zip(row.indices.tolist(), row.data.tolist(), w.tolist(), products, strict=True)
    terms = [Term(name_of(j), value, weight, product) for j, value, weight, product in values if value]
    if bias:
        terms.append(Term(BIAS, 1.0, offset, offset))
    terms.sort(key=lambda term: -abs(term.product))
    total = math.fsum(term.product for term in terms)
    by = None
    if isinstance(live_model.features, TableFeaturizer) and examples.sources is not None:
        by = by_columns(live_model.features, examples.sources[0].get, row.indices, products, offset if bias else None)
    decision = (label, score, ranked_scores(labels, scores), terms, total)
    classes = (labels[lead.of], None if lead.against is None else labels[lead.against])
    result = Explanation(*decision, no_causes=_NO_CAUSES, columns=by, of=classes[0], against=classes[1], threshold=threshold)
    return result.to_dict() | {"commit": number}


def _column_namer(live_model: LiveModel, index: FeatureIndex | None, examples: RequestExamples) -> Callable[[int], str]:
    """Return a function that names a column; a hashed column is named by the words of the example in question."""
    if index is not None:
        return index.listed.__getitem__
    features, sources = live_model.features, examples.sources or []
    rows: Any = text_array(sources) if isinstance(features, TextFeaturizer) else None
    if isinstance(features, TableFeaturizer):
        names = features.roles_.keys() - set(features.left_out())
        rows = pa.table({name: value_array([row.get(name) for row in sources]) for name in names})
    return feature_namer(None, features, rows, online=True)


def ledger_page(store: CommitStore, buffer: DoubleBuffer, before: int | None, limit: int) -> dict[str, Any]:
    """Return a page of mistakes with numbers below `before`, newest first."""
    undone = store.undone()
    with buffer.reading() as (live_model, _):
        classes, total = [*live_model.classes, None], live_model.progressive.mistakes
    forgotten = forgotten_numbers(store.forgettings)
    mistakes: list[dict[str, Any]] = []
    size, before = 0, 1 << 62 if before is None else before
    while len(mistakes) < limit and size < PAGE_BYTES:
        page = store.mistakes_page(before, min(_READ_AT_ONCE, limit - len(mistakes)))
        if not page:
            break
        before = page[-1][0]
        for number, stored, at, commit in page:
            mistake = {
                "number": number,
                "time": stored.time,
                "example": example_of(stored, commit, at, forgotten),
                "raised": classes[commit.up[at]],
                "lowered": classes[commit.down[at]],
                "correction": float(commit.correction[at]),
                "undone": number in undone,
                **source_of(commit, at, buffer.index),
            }
            mistakes.append(mistake)
            size += len(orjson.dumps(mistake))
            if size >= PAGE_BYTES:
                break
    following = mistakes[-1]["number"] if mistakes and mistakes[-1]["number"] > 1 else None
    return {"mistakes": mistakes, "total": total, "next": following}


def regressions_page(store: CommitStore) -> dict[str, Any]:
    """Return the numbers of the pinned examples, and those that are predicted wrongly, the latest first."""
    pins = list(read_pins(store.db))
    broken = sorted((pin for pin in pins if pin.broken), key=lambda pin: -(pin.broken or {})["commit"])
    listed: list[dict[str, Any]] = []
    size = 0
    for pin in broken:
        entry = {"example": pin.example, "label": pin.label, **(pin.broken or {})}
        entry |= pin.source if size < PAGE_BYTES else {}
        size += len(orjson.dumps(entry))
        listed.append(entry)
    return {"pinned": [pin.example for pin in pins], "regressions": listed}


def example_of(stored: StoredCommit, commit: Commit, at: int, forgotten: Ints) -> int:
    """Return the number of the example of mistake `at` of a commit."""
    return int(numbers_of(stored.examples, commit.n, forgotten)[commit.positions[at]])


def source_of(commit: Commit, at: int, index: FeatureIndex | None) -> dict[str, Any]:
    """Return the example of a mistake in the form of the request."""
    if commit.sources is not None:
        source = commit.sources[at]
        if source is None:  # its mistake was only made when another example was forgotten
            return {}
        return {"text" if isinstance(source, str) else "row": source}
    if index is None:
        here = slice(int(commit.rows.indptr[at]), int(commit.rows.indptr[at + 1]))
        return {"vector": packed_vector(commit.rows.data[here])}
    row = commit.rows.take(np.array([at]))
    return {"features": {index.listed[j]: value for j, value in zip(row.indices.tolist(), row.data.tolist(), strict=True)}}
