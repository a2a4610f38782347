"""What is read from the model and its ledger: predictions, explanations, pages of mistakes."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import orjson

from separatrix.analysis.explaining import by_columns
from separatrix.analysis.explanation import BIAS, Explanation, Term
from separatrix.features.table import TableFeaturizer
from separatrix.features.text import TextFeaturizer
from separatrix.web.server.commits import Commit
from separatrix.web.server.double_buffer import DoubleBuffer
from separatrix.web.server.feature_index import FeatureIndex
from separatrix.web.server.live_model import LiveModel
from separatrix.web.server.request_reader import RequestExamples
from separatrix.web.server.store import CommitStore

MOST_SCORES = 10
"""Of how many classes a prediction tells the score, the highest first."""
_NO_CAUSES = "the mistakes are in the ledger"


def _rows(buffer: DoubleBuffer, machine: LiveModel, examples: RequestExamples) -> Any:
    return examples.known({} if buffer.index is None else buffer.index.column, machine.width)


def predictions(buffer: DoubleBuffer, examples: RequestExamples) -> list[dict[str, Any]]:
    """Return the label and the scores of each example; null before anything was learned."""
    with buffer.reading() as (machine, number):
        if machine.run is None:
            return [{"prediction": None, "scores": [], "commit": number}] * examples.n
        scores = machine.scores(_rows(buffer, machine, examples))
        decided, labels = machine.decide(scores), machine.run.classes.tolist()
    if len(labels) == 2:
        scores = np.column_stack([-scores[:, 0], scores[:, 0]])
    told = []
    for label, row in zip(decided, scores[:, : len(labels)].tolist(), strict=True):
        ranked = sorted(zip(row, labels, strict=True), key=lambda pair: -pair[0])[:MOST_SCORES]
        shown = [{"class": name, "score": score} for score, name in ranked]
        told.append({"prediction": label, "scores": shown, "commit": number})
    return told


def prediction_lines(buffer: DoubleBuffer, examples: RequestExamples) -> bytes:
    """Return the prediction of each example, a JSON object a line."""
    return b"".join(orjson.dumps(told, option=orjson.OPT_APPEND_NEWLINE) for told in predictions(buffer, examples))


def explanation(buffer: DoubleBuffer, examples: RequestExamples) -> dict[str, Any]:
    """Return why one example gets its score: the terms that it is the sum of."""
    with buffer.reading() as (machine, number):
        if machine.run is None or len(machine.classes) < 2:
            label = machine.classes[0] if machine.classes else None
            return Explanation(label, 0.0, {}, [], 0.0, no_causes=_NO_CAUSES).to_dict() | {"commit": number}
        row = _rows(buffer, machine, examples)
        scores = machine.scores(row)[0]
        W, b = machine.weights_of(row.indices)
        (label,) = machine.decide(scores[None])
        labels = machine.run.classes.tolist()
        bias = machine.run.bias
    winner = labels.index(label)
    if len(scores) == 1:
        w, offset, score, shown = W[:, 0], float(b[0]), float(scores[0]), {labels[1]: float(scores[0])}
    else:
        second = int(np.argmax(np.where(np.arange(len(scores)) == winner, -np.inf, scores)))
        w, offset = W[:, winner] - W[:, second], float(b[winner] - b[second])
        score, shown = float(scores[winner] - scores[second]), {labels[k]: float(scores[k]) for k in (winner, second)}
    name = _naming(machine, buffer.index, examples)
    products = (w * row.data).tolist()
    values = zip(row.indices.tolist(), row.data.tolist(), w.tolist(), products, strict=True)
    terms = [Term(name(j), value, weight, product) for j, value, weight, product in values if value]
    if bias:
        terms.append(Term(BIAS, 1.0, offset, offset))
    terms.sort(key=lambda term: -abs(term.product))
    total = math.fsum(term.product for term in terms)
    by = None
    if isinstance(machine.features, TableFeaturizer) and examples.sources is not None:
        by = by_columns(machine.features, examples.sources[0].get, row.indices, products, offset if bias else None)
    told = Explanation(label, score, shown, terms, total, no_causes=_NO_CAUSES, columns=by)
    return told.to_dict() | {"commit": number}


def _naming(machine: LiveModel, index: FeatureIndex | None, examples: RequestExamples) -> Callable[[int], str]:
    """Return the function that names a column; a hashed one is named by the words of the text in question."""
    if index is not None:
        return index.listed.__getitem__
    features = machine.features
    if isinstance(features, TextFeaturizer) and features.columns == "hashed" and not features.keep_names:
        features = TextFeaturizer(**(features.get_params() | {"idf": False, "keep_names": 1 << 20})).fit(examples.sources)
    return lambda j: " | ".join(features.names_of(j)) or f"column {j}"


def page(store: CommitStore, buffer: DoubleBuffer, before: int | None, limit: int) -> dict[str, Any]:
    """Return mistakes, the newest first, from those below number `before` on."""
    undone = store.undone()
    with buffer.reading() as (machine, _):
        classes, base = [*machine.classes, None], machine.steps - machine.progressive.examples
        total = machine.progressive.mistakes
    found = store.mistakes_page(1 << 62 if before is None else before, limit)
    told = []
    for number, when, at, commit in found:
        told.append(
            {
                "number": number,
                "time": when,
                "example": int(commit.step[at]) - base,
                "raised": classes[commit.up[at]],
                "lowered": classes[commit.down[at]],
                "correction": float(commit.correction[at]),
                "undone": number in undone,
                **_given(commit, at, buffer.index),
            }
        )
    following = told[-1]["number"] if told and told[-1]["number"] > 1 else None
    return {"mistakes": told, "total": total, "next": following}


def _given(commit: Commit, at: int, index: FeatureIndex | None) -> dict[str, Any]:
    """Return what a mistake was made on, as the request gave it."""
    if commit.sources is not None:
        source = commit.sources[at]
        return {"text" if isinstance(source, str) else "row": source}
    if index is None:
        return {}
    row = commit.rows.take(np.array([at]))
    return {"features": {index.listed[j]: value for j, value in zip(row.indices.tolist(), row.data.tolist(), strict=True)}}
