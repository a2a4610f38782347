"""One mistake of a tagger, shown: the trellis, the true and the predicted path, what was raised and what was lowered."""

from __future__ import annotations

from dataclasses import dataclass
from html import escape
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from separatrix.engine.rows import Floats
from separatrix.sequences.encoded import Encoded
from separatrix.sequences.ledger import PathMistake
from separatrix.sequences.tokens import Sentences

if TYPE_CHECKING:
    from separatrix.sequences.tagger import SequenceTagger

SHOWN_TAGS = 5
"""So many columns of the trellis are shown as text."""
WIDEST = 14
_STYLE = """
:root{color-scheme:light dark;--ink:#1b1f24;--paper:#fff;--head:#f6f8fa;--line:#d0d7de;--true:#dafbe1;--true-line:#1a7f37;
--predicted:#ffebe9;--predicted-line:#cf222e;--both:#ddf4ff}
@media(prefers-color-scheme:dark){:root{--ink:#e6edf3;--paper:#0d1117;--head:#161b22;--line:#3d444d;--true:#12361f;
--true-line:#3fb950;--predicted:#4b1a1c;--predicted-line:#f85149;--both:#10334f}}
body{font:15px/1.5 system-ui,sans-serif;margin:2rem auto;max-width:1200px;padding:0 1rem;color:var(--ink);
background:var(--paper)}
.wide{overflow-x:auto}td[colspan='2']{text-align:center}table{border-collapse:collapse}
th,td{padding:.3rem .6rem;text-align:right;border:1px solid var(--line);white-space:nowrap}
th{background:var(--head);font-weight:600}
th[scope=row]{position:sticky;left:0;text-align:left}
.true{background:var(--true);outline:2px solid var(--true-line);outline-offset:-2px}
.predicted{background:var(--predicted);outline:2px dashed var(--predicted-line);outline-offset:-2px}
.both{background:var(--both);font-weight:600}
.changes{display:grid;grid-template-columns:repeat(auto-fit,minmax(min(100%,24rem),1fr));gap:2rem}
.changes td:first-child,.changes th:first-child{text-align:left;white-space:normal;overflow-wrap:anywhere}
"""
_KINDS = {(True, True): "both", (True, False): "true", (False, True): "predicted", (False, False): ""}
_SPOKEN = {"both": "both paths", "true": "true path", "predicted": "predicted path"}


class Change(NamedTuple):
    """A weight that the correction changed: of a feature and a tag, or of a transition."""

    name: str
    tag: str
    amount: float


@dataclass(frozen=True)
class SequenceTrace:
    """One mistake of a training: `print` shows it, and `to_html` is a page.

    Attributes
    ----------
    mistake : the step, the sequence, both paths, the correction and the lead
    number : which mistake it was, from 1
    tokens : how the tokens are shown
    tags : the tags, the columns of the trellis
    trellis : the score of the best path to each token and tag before the correction
    changes : what was raised and lowered, the largest first
    """

    mistake: PathMistake
    number: int
    tokens: list[str]
    tags: list[Any]
    trellis: Floats
    changes: list[Change]

    def __str__(self) -> str:
        return self.text()

    def text(self, first: int = 0) -> str:
        """Return the trace as text; sequences are numbered from `first`."""
        m = self.mistake
        lines = [
            f"mistake {self.number:,}: pass {m.pass_number}, step {m.step:,}, sequence {m.sequence + first}; the true path "
            f"leads by {m.lead:.4g}, the correction is {m.correction:.4g}",
            "",
        ]
        columns = self._columns()
        width = min(WIDEST, max(5, *(len(token) for token in self.tokens)))
        tag_width = max(9, *(len(str(tag)) for tag in self.tags))
        head = f"{'token':<{width}}  {'true':<{tag_width}}  {'predicted':<{tag_width}}"
        lines.append(head + "".join(f"  {str(self.tags[k])[:8]:>8}" for k in columns))
        for t, (token, true, predicted) in enumerate(zip(self.tokens, m.true, m.predicted, strict=True)):
            mark = " " if true == predicted else "×"
            row = f"{token[:width]:<{width}}  {true!s:<{tag_width}}  {predicted!s:<{tag_width - 1}}{mark}"
            lines.append(row + "".join(f"  {self.trellis[t, k]:>8.4g}" for k in columns))
        if len(columns) < len(self.tags):
            lines.append(f"(of {len(self.tags)} tags, those in dispute are shown first)")
        for title, sign in (("raised", 1.0), ("lowered", -1.0)):
            changes = [change for change in self.changes if change.amount * sign > 0]
            lines += ["", f"{title}:", *(f"  {c.amount:>+7.4g}  {c.name} for {c.tag}" for c in changes[:10])]
            lines += [f"  … and {len(changes) - 10:,} more"] if len(changes) > 10 else []
        return "\n".join(lines)

    def _columns(self) -> list[int]:
        """Return the tags that a text shows: those in dispute first, then others of both paths, then the best at the end."""
        pairs = list(zip(self.mistake.true, self.mistake.predicted, strict=True))
        in_dispute = [tag for true, predicted in pairs if true != predicted for tag in (true, predicted)]
        on_paths = [tag for pair in pairs for tag in pair]
        others = [self.tags[int(k)] for k in np.argsort(-self.trellis[-1])]
        chosen = list(dict.fromkeys([*in_dispute, *on_paths, *others]))[:SHOWN_TAGS]
        return sorted(self.tags.index(tag) for tag in chosen)

    def to_html(self, first: int = 0) -> str:
        """Return a page that a browser opens from disk; sequences are numbered from `first`."""
        m = self.mistake
        # The tags of the two paths come first: of many, the others are out of sight.
        on_paths = {*m.true, *m.predicted}
        columns = sorted(range(len(self.tags)), key=lambda k: (self.tags[k] not in on_paths, k))
        head = "".join(f"<th>{escape(str(self.tags[k]))}</th>" for k in columns)
        rows = []
        for t, (token, true, predicted) in enumerate(zip(self.tokens, m.true, m.predicted, strict=True)):
            marked = {"both": true} if true == predicted else {"true": true, "predicted": predicted}
            span = f' colspan="{3 - len(marked)}"'
            cells = [f'<td class="{kind}"{span}>{escape(str(tag))}</td>' for kind, tag in marked.items()]
            for k in columns:
                kind = _KINDS[self.tags[k] == true, self.tags[k] == predicted]
                mark = f' class="{kind}" title="{_SPOKEN[kind]}"' if kind else ""
                cells.append(f"<td{mark}>{self.trellis[t, k]:.4g}</td>")
            rows.append(f'<tr><th scope="row">{escape(token)}</th>{"".join(cells)}</tr>')
        blocks = []
        for title, sign in (("Raised", 1.0), ("Lowered", -1.0)):
            changes = [change for change in self.changes if change.amount * sign > 0]
            body = "".join(
                f"<tr><td>{escape(c.name)}</td><td>{escape(c.tag)}</td><td>{c.amount:+.4g}</td></tr>" for c in changes
            )
            table = f"<table><tr><th>feature</th><th>tag</th><th>change</th></tr>{body}</table>"
            blocks.append(f'<section class="wide"><h2>{title}</h2>{table}</section>')
        key = "".join(f'<td class="{kind}">{spoken}</td>' for kind, spoken in _SPOKEN.items())
        return (
            f'<!doctype html><html lang="en"><meta charset="utf-8"><title>Mistake {self.number:,}</title>'
            f'<meta name="viewport" content="width=device-width"><style>{_STYLE}</style>'
            f"<h1>Mistake {self.number:,}</h1><p>Pass {m.pass_number}, step {m.step:,}, sequence {m.sequence + first}. The "
            f"true path leads by {m.lead:.4g}; the correction is {m.correction:.4g}. A cell is the score of the best path "
            "that ends with this token and tag, before the correction.</p>"
            f'<div class="wide"><table><tr>{key}</tr></table></div>'
            '<h2>Trellis</h2><div class="wide"><table><tr><th scope="row">token</th><th>true</th><th>predicted</th>'
            f'{head}</tr>{"".join(rows)}</table></div><div class="changes">{"".join(blocks)}</div></html>\n'
        )


def trace_mistake(model: SequenceTagger, X: Any, number: int | None = None) -> SequenceTrace:
    """Return one mistake of a fit on X, by its number from 1; None: the last one."""
    X = X if isinstance(X, Sentences) else list(X)
    ledger = model.ledger_
    if not len(ledger):
        kept = ", since they were not kept, on shards or in the model file" if ledger.absent else ""
        raise ValueError(f"there is no mistake to show{kept}")
    number = len(ledger) if number is None else number
    if not 1 <= number <= len(ledger):
        raise ValueError(f"there are {len(ledger):,} mistakes; there is no mistake {number:,}")
    mistake = next(each for m, each in enumerate(ledger, 1) if m == number)
    encoded = model.checked(model.encode(X))
    W, T = ledger.replay(encoded, model.n_features_in_, averaged=False, mistakes=number - 1)
    sentence = encoded.take([mistake.sequence])
    trellis = _trellis(sentence, W, T, model.run_.forbidden)
    changes = _changes(model, X, sentence, mistake)
    tokens = _shown(model, X[mistake.sequence], len(mistake.true))
    return SequenceTrace(mistake, number, tokens, model.classes_.tolist(), trellis, changes)


def _trellis(sentence: Encoded, W: Floats, T: Floats, forbidden: Any) -> Floats:
    """Return the score of the best path to each token and tag."""
    K, n = T.shape[0] - 1, int(sentence.starts[-1])
    links = T.copy()
    if forbidden.size:
        links[forbidden.reshape(K + 1, K + 1) != 0] = -np.inf
    scores = np.empty((n, K))
    for t in range(n):
        features = slice(int(sentence.indptr[t]), int(sentence.indptr[t + 1]))
        values = sentence.data[features] if sentence.data.size else np.ones(features.stop - features.start)
        emitted = values @ W[sentence.indices[features]]
        scores[t] = emitted + (links[K, :K] if t == 0 else (scores[t - 1][:, None] + links[:K, :K]).max(axis=0))
    return scores


def _changes(model: SequenceTagger, X: Any, sentence: Encoded, mistake: PathMistake) -> list[Change]:
    """Return what the correction added to each weight."""
    total: dict[tuple[str, str], float] = {}
    c = mistake.correction
    for t, (true, predicted) in enumerate(zip(mistake.true, mistake.predicted, strict=True)):
        if true != predicted:
            names = model.features_.names_of(X, mistake.sequence, t)
            features = slice(int(sentence.indptr[t]), int(sentence.indptr[t + 1]))
            values = sentence.data[features].tolist() if sentence.data.size else [1.0] * len(names)
            for name, value in zip(names, values, strict=True):
                total[name, str(true)] = total.get((name, str(true)), 0.0) + c * value
                total[name, str(predicted)] = total.get((name, str(predicted)), 0.0) - c * value
    for path, sign in ((mistake.true, c), (mistake.predicted, -c)):
        for before, after in zip(["the start", *path], [*path, "the end"], strict=True):
            key = (f"after {before}", str(after))
            total[key] = total.get(key, 0.0) + sign
    changes = [Change(*key, amount) for key, amount in total.items() if amount]
    return sorted(changes, key=lambda change: -abs(change.amount))


def _shown(model: SequenceTagger, sequence: Any, n: int) -> list[str]:
    """Return a short name of each of n tokens: its word, or its first attribute."""
    if model.features_.kind == "columns":
        return [token if isinstance(token, str) else token[0] for token in sequence]
    if model.features_.kind == "numbers":
        return [f"row {t}" for t in range(n)]
    return [next((name for name in model.features_.names_of([sequence], 0, t)), f"token {t}") for t in range(n)]
