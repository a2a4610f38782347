"""Why a token got its tag: the terms of its emission and of its transitions, and the training mistakes behind them.

A tag leads over another by what the path's score would lose if this token alone had the other tag:

    lead = ⟨w_tag − w_rival, x⟩ + T[before, tag] + T[tag, after] − T[before, rival] − T[rival, after]

Weights are sums of corrections, so the lead is also a sum over mistakes: a mistake adds its correction times the same sum
for φ(y) − φ(ẑ) of its sequence; for averaged weights, times the share of all steps since it was made.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from separatrix.engine.rows import Array, Floats
from separatrix.sequences.encoded import Encoded
from separatrix.sequences.run import best_paths

if TYPE_CHECKING:
    from separatrix.sequences.tagger import SequenceTagger


class TokenTerm(NamedTuple):
    """What one feature or transition adds to the lead."""

    name: str
    value: float
    weight: float
    product: float


class TokenCause(NamedTuple):
    """What one training mistake adds to the lead."""

    step: int
    sequence: int
    true: list[Any]
    predicted: list[Any]
    contribution: float


@dataclass(frozen=True)
class TokenExplanation:
    """Why a token has its tag, and not the next best one.

    Attributes
    ----------
    token, tag, against : the number of the token, its tag, and the tag that it is compared with
    lead : by how much the score of the predicted path is above that with the other tag at this token
    terms : the emission's and the transitions' terms, the largest first; they add up to the lead
    causes : the training mistakes that added most, empty where they were not kept
    path : the whole predicted path
    """

    token: int
    tag: Any
    against: Any
    lead: float
    terms: list[TokenTerm]
    causes: list[TokenCause]
    path: list[Any]

    def to_dict(self) -> dict[str, Any]:
        """Return everything as JSON values."""
        return asdict(self) | {
            "terms": [term._asdict() for term in self.terms],
            "causes": [cause._asdict() for cause in self.causes],
        }

    def __str__(self) -> str:
        return self.text()

    def text(self, first: int = 0) -> str:
        """Return the explanation as text; tokens and sequences are numbered from `first`."""
        lines = [f"token {self.token + first}: {self.tag}, ahead of {self.against} by {self.lead:.4g}"]
        lines += [f"  {term.product:>+10.4g}  {term.name}" for term in self.terms]
        if self.causes:
            lines.append("the mistakes behind it:")
            for cause in self.causes:
                wrong = [(t, p) for t, p in zip(cause.true, cause.predicted, strict=True) if t != p]
                shown = ", ".join(f"{predicted} → {true}" for true, predicted in wrong[:4])
                more = f" and {len(wrong) - 4} more" if len(wrong) > 4 else ""
                lines.append(
                    f"  {cause.contribution:>+10.4g}  step {cause.step:,}, sequence {cause.sequence + first}: {shown}{more}"
                )
        return "\n".join(lines)


def explain_token(
    model: SequenceTagger, sequence: Any, token: int, against: Any = None, training: Encoded | None = None, n: int = 10
) -> TokenExplanation:
    """Return why a token has its tag; `training` are the sequences of the fit, None: those that were stored."""
    encoded = model.encode([sequence])
    length, classes = int(encoded.starts[-1]), model.classes_.tolist()
    if not -length <= token < length:
        raise ValueError(f"the sequence has {length} tokens; there is no token {token}")
    token %= length
    if len(classes) < 2:
        raise ValueError(f"there is only one tag, {classes[0]!r}: it has no rival")
    weights = model.path_weights()
    path, T = best_paths(encoded, weights, model.run_.forbidden), weights.links
    K, tag = len(classes), int(path[token])
    before = int(path[token - 1]) if token else K
    after = int(path[token + 1]) if token + 1 < length else K
    features = slice(int(encoded.indptr[token]), int(encoded.indptr[token + 1]))
    numbers = encoded.indices[features]
    values = encoded.data[features] if encoded.data.size else np.ones(len(numbers))
    W = weights.at(numbers)
    scores = values @ W + T[before, :K] + T[:K, after]
    if against is not None and against not in classes:
        raise ValueError(f"{against!r} is not among the tags {classes[:8]}")
    others = np.delete(np.arange(K), tag)
    rival = int(others[np.argmax(scores[others])]) if against is None else classes.index(against)
    if rival == tag:
        raise ValueError(f"token {token} has the tag {against!r} itself: name another one")
    names = model.features_.names_of([sequence], 0, token)
    leads = W[:, tag] - W[:, rival]
    terms = [TokenTerm(*term, term[1] * term[2]) for term in zip(names, values.tolist(), leads.tolist(), strict=True)]
    stations = [*classes, None]
    for name, place in (("after", before), ("before", after)):
        other = T[place, [tag, rival]] if name == "after" else T[[tag, rival], place]
        station = ("the start" if name == "after" else "the end") if stations[place] is None else stations[place]
        weight = float(other[0] - other[1])
        terms.append(TokenTerm(f"{name} {station}", 1.0, weight, weight))
    terms.sort(key=lambda term: -abs(term.product))
    causes = _causes(model, training, (numbers, values), (tag, rival, before, after), n)
    lead = float(scores[tag] - scores[rival])
    return TokenExplanation(token, classes[tag], classes[rival], lead, terms[:n], causes, model.classes_[path].tolist())


def contributions(model: SequenceTagger, training: Encoded | None, token: Any, tags: tuple[int, int, int, int]) -> Floats:
    """Return what each mistake adds to a lead; `token` has its features and their values, `tags` the lead's four tags."""
    ledger, K = model.ledger_, len(model.classes_)
    encoded, sequence = ledger.mistaken(training)
    numbers, values = token
    x = np.zeros(model.n_features_in_)
    np.add.at(x, numbers, values)
    products = x[encoded.indices] * (encoded.data if encoded.data.size else 1.0)
    sums = np.append(0.0, np.cumsum(products))
    dots = sums[encoded.indptr[1:]] - sums[encoded.indptr[:-1]]
    lengths = np.diff(ledger.ends, prepend=0)
    mistake = np.repeat(np.arange(len(ledger)), lengths)
    place = np.arange(len(mistake)) - np.repeat(ledger.ends - lengths, lengths)
    tag, rival, before, after = tags
    of_pair = np.zeros((K + 1, K + 1))
    for a, b, sign in ((before, tag, 1.0), (tag, after, 1.0), (before, rival, -1.0), (rival, after, -1.0)):
        of_pair[a, b] += sign
    added = np.zeros(len(ledger))
    for codes, sign in ((ledger.true, 1.0), (ledger.predicted, -1.0)):
        emitted = dots[encoded.starts[sequence[mistake]] + place] * ((codes == tag) * 1.0 - (codes == rival))
        previous = _previous(codes, place, K)
        last = codes[ledger.ends - 1] if len(ledger) else codes
        added += sign * np.bincount(mistake, emitted + of_pair[previous, codes], len(ledger))
        added += sign * of_pair[last, K]
    survival = 1.0 - np.maximum(ledger.step - 1, 0) / ledger.steps if model.averaged and ledger.steps else 1.0
    total: Floats = added * ledger.correction * survival
    return total


def _previous(codes: Array, place: Array, K: int) -> Array:
    previous = np.append(K, codes[:-1])[: len(codes)]
    previous[place == 0] = K
    return previous


def _causes(
    model: SequenceTagger, training: Encoded | None, token: Any, tags: tuple[int, int, int, int], n: int
) -> list[TokenCause]:
    ledger = model.ledger_
    if ledger.absent or (training is None and not len(ledger.stored)):
        return []
    added = contributions(model, training, token, tags)
    largest = [int(m) for m in np.argsort(-np.abs(added), kind="stable")[:n] if added[m]]
    causes = []
    for m in largest:
        begin, end = int(ledger.ends[m - 1]) if m else 0, int(ledger.ends[m])
        true, predicted = (model.classes_[codes[begin:end]].tolist() for codes in (ledger.true, ledger.predicted))
        causes.append(TokenCause(int(ledger.step[m]), int(ledger.sequence[m]), true, predicted, float(added[m])))
    return causes
