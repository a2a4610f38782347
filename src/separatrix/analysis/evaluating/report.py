"""An evaluation as one page of HTML that stands alone: no script, nothing fetched, every name and value escaped."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from html import escape
from typing import TYPE_CHECKING, Any

import numpy as np

from separatrix.analysis.evaluating.charts import interval_bar, reliability, score_histogram, share_curve
from separatrix.analysis.evaluating.display import HEADS, confusions, headline
from separatrix.analysis.evaluating.document import plain
from separatrix.data.atomic import replacing
from separatrix.data.errors import counted
from separatrix.engine.rows import Floats

if TYPE_CHECKING:
    from separatrix.analysis.evaluating.evaluation import Evaluation, RowError

MOST_MATRIX = 20
"""Up to so many classes the confusion matrix is drawn; of more, its largest entries are listed."""
MOST_HEADS = 60
"""The columns of the confusion matrix have names of so many characters in all; longer ones are numbered."""
MOST_CONFUSIONS = 30
MOST_CHARACTERS = 400
"""A value of a row is cut after so many characters."""
WEIGHTS, WEIGHTS_OF_MANY = 24, 8
"""How many weights are listed, for two classes, and for each of more."""
POLICY = "default-src 'none'; style-src 'unsafe-inline'"
"""What the page may load: nothing but its own style."""
STYLE = """
:root { color-scheme: light dark; --ink: #1c2430; --soft: #55606e; --paper: #fff; --card: #f4f6f9; --rule: #d5dbe3;
  --a: #1f5fa8; --b: #b45f06; --heat: 31 95 168; --warn: #fff3d6; --warn-ink: #5c4300; }
@media (prefers-color-scheme: dark) { :root { --ink: #e8ecf2; --soft: #a9b4c2; --paper: #12161c; --card: #1b2129;
  --rule: #343d49; --a: #7db4f0; --b: #f0a64b; --heat: 125 180 240; --warn: #3a2f12; --warn-ink: #f7dfa4; } }
* { box-sizing: border-box; }
body { margin: 0; background: var(--paper); color: var(--ink); font: 16px/1.5 system-ui, sans-serif; }
main { max-width: 1080px; margin: 0 auto; padding: 24px 16px 64px; }
h1 { font-size: 1.6rem; line-height: 1.25; margin: 0 0 4px; overflow-wrap: anywhere; }
h2 { font-size: 1.2rem; margin: 40px 0 8px; border-top: 1px solid var(--rule); padding-top: 16px; }
h3 { font-size: 1rem; margin: 0 0 4px; }
p { margin: 4px 0 12px; max-width: 70ch; } .soft, figcaption { color: var(--soft); font-size: .9rem; }
.tiles { display: grid; grid-template-columns: repeat(auto-fill, minmax(155px, 1fr)); gap: 12px; margin: 16px 0; }
.tiles div { background: var(--card); border-radius: 8px; padding: 10px 14px; }
.tiles dt { color: var(--soft); font-size: .9rem; } .tiles dd { margin: 0; font-size: 1.5rem; font-weight: 600; }
.tiles small { display: block; font-size: .8rem; font-weight: 400; color: var(--soft); overflow-wrap: anywhere; }
.tiles .first { grid-column: span 2; } .tiles .first dd { font-size: 2.1rem; line-height: 1.2; }
.remarks { background: var(--warn); color: var(--warn-ink); border-radius: 8px; padding: 10px 14px 10px 34px; }
.figures { display: grid; grid-template-columns: repeat(auto-fill, minmax(min(100%, 400px), 1fr)); gap: 24px 32px; }
figure { margin: 0; } svg { width: 100%; max-width: 520px; height: auto; display: block; }
svg text { fill: var(--soft); font: 11px system-ui, sans-serif; } .grid { stroke: var(--rule); stroke-width: 1; }
.curve { fill: none; stroke: var(--a); stroke-width: 2; } .chance { fill: none; stroke: var(--soft); stroke-dasharray: 4 4; }
.here { fill: var(--b); } .bin { fill: var(--a); fill-opacity: .55; } .axis { stroke: var(--soft); stroke-width: 1; }
.first-class, rect.first { fill: var(--a); } .second-class, rect.second { fill: var(--b); }
.threshold { stroke: var(--ink); stroke-width: 1.5; stroke-dasharray: 5 3; } .span { stroke: var(--a); stroke-width: 6; }
.interval { max-width: 300px; margin-top: 4px; }
.key { display: inline-block; width: .8em; height: .8em; border-radius: 2px; margin: 0 .3em 0 .8em; }
.key.a { background: var(--a); } .key.b { background: var(--b); }
.scroll { overflow-x: auto; } .scroll:focus-visible { outline: 2px solid var(--a); }
table { border-collapse: collapse; font-size: .9rem; font-variant-numeric: tabular-nums; }
th { font-weight: 600; text-align: left; }
th, td { padding: 4px 10px 4px 0; border-bottom: 1px solid var(--rule); vertical-align: top; }
td.n, th.n { text-align: right; } thead th { color: var(--soft); font-weight: 500; }
.matrix td, .matrix thead th { text-align: right; padding: 4px 6px; } .matrix tbody th { padding-right: 12px; }
.matrix th { white-space: nowrap; max-width: 16em; overflow: hidden; text-overflow: ellipsis; }
.errors { padding-left: 1.6em; } .errors li { margin: 0 0 12px; overflow-wrap: anywhere; } .errors p { margin: 2px 0; }
.errors small { color: var(--soft); margin-left: .6em; } .errors p { font-size: .9rem; max-width: none; }
.errors span { margin-right: .8em; } .errors b { font-weight: 500; color: var(--soft); }
.weight { display: grid; grid-template-columns: minmax(0, 1fr) 5.5em 90px; gap: 8px; font-size: .9rem; padding: 2px 0; }
.weight span:first-child { overflow-wrap: anywhere; } .weight span:nth-child(2) { text-align: right; }
.weight i { height: .8em; align-self: center; border-radius: 2px; }
.plus { background: var(--b); } .minus { background: var(--a); }
"""


def write_report(evaluation: Evaluation, path: str | os.PathLike[str], model: Any = None) -> None:
    """Write the page to a file, which appears whole or not at all."""
    page = report_page(evaluation, model)
    with replacing(path) as temporary, open(temporary, "w", encoding="utf-8", newline="\n") as file:
        file.write(page)


def report_page(evaluation: Evaluation, model: Any = None) -> str:
    """Return the page."""
    title = f"Evaluation on {evaluation.name}"
    described = "" if model is None else f" by {_model_name(model)}"
    classes = counted(len(evaluation.classes), "class")
    sections = [
        f"<header><h1>{escape(title)}</h1>"
        f'<p class="soft">{counted(evaluation.rows, "row")}, {classes}, predicted{escape(described)}</p></header>',
        _tiles(evaluation),
        _remarks([*evaluation.remarks(), *evaluation.notes]),
        *_curves(evaluation),
        _confusion(evaluation),
        _by_class(evaluation),
        _errors(evaluation),
        *_weights(model),
    ]
    head = (
        f'<meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">'
        f'<meta http-equiv="Content-Security-Policy" content="{POLICY}">'
        f"<title>{escape(title)}</title><style>{STYLE}</style>"
    )
    body = "\n".join(section for section in sections if section)
    return f'<!doctype html>\n<html lang="en"><head>{head}</head>\n<body><main>\n{body}\n</main></body></html>\n'


def _model_name(model: Any) -> str:
    estimator, features = getattr(model, "estimator", model), getattr(model, "features", None)
    named = [part for part in (features, estimator) if part is not None]
    return " → ".join(part.public_name() if hasattr(part, "public_name") else type(part).__name__ for part in named)


def _tiles(evaluation: Evaluation) -> str:
    low, high = evaluation.interval
    bar = interval_bar(low, evaluation.accuracy, high, evaluation.baseline.accuracy)
    note = f"<small>95 % interval {low:.4f} to {high:.4f} (Wilson); dashed: the majority baseline</small>"
    tiles = [f'<div class="first"><dt>accuracy</dt><dd>{evaluation.accuracy:.4f} {note}{bar}</dd></div>']
    for name, text in headline(evaluation)[1:]:
        value, _, remark = text.partition("  ")
        if value.startswith("undefined"):
            value, remark = "undefined", value.removeprefix("undefined: ")
        tiles.append(f"<div><dt>{name}</dt><dd>{escape(value)}<small>{escape(remark.strip('()'))}</small></dd></div>")
    return f'<dl class="tiles">{"".join(tiles)}</dl>'


def _remarks(remarks: Sequence[str]) -> str:
    return f'<ul class="remarks">{"".join(f"<li>{escape(remark)}</li>" for remark in remarks)}</ul>' if remarks else ""


def _figure(title: str, picture: str, caption: str) -> str:
    return f"<figure><h3>{escape(title)}</h3>{picture}<figcaption>{caption}</figcaption></figure>"


def _curves(evaluation: Evaluation) -> list[str]:
    """Return the section of pictures: curves of two classes, scores and calibration."""
    figures = []
    if evaluation.two_classes and evaluation.roc_auc is not None:
        figures += _two_class_curves(evaluation)
    figures += _scores(evaluation)
    if evaluation.calibration is not None and evaluation.calibration.n:
        of = evaluation.names[evaluation.positive] if evaluation.two_classes else "the predicted class"
        caption = "On the dashed line predictions are right as often as they claim. "
        caption += f"Calibration error {evaluation.calibration_error:.4f}: "
        caption += "the mean distance from it, weighted by the rows of the bins; larger dots have more rows."
        figures.append(_figure("Calibration", reliability(evaluation.calibration.bins(), of), escape(caption)))
    return ["<h2>Scores</h2>", f'<div class="figures">{"".join(figures)}</div>'] if figures else []


def _two_class_curves(evaluation: Evaluation) -> list[str]:
    k, name = evaluation.positive, evaluation.names[evaluation.positive]
    curves, figures = evaluation.curves(300)[name], evaluation.by_class[evaluation.classes[k]]
    matrix, rows = evaluation.confusion, evaluation.confusion.sum(axis=1)
    share = float(rows[k] / rows.sum())
    false_rate = float(matrix[1 - k, k] / max(1, rows[1 - k]))
    known = float(matrix[k, k] / max(1, matrix[:, k].sum()))
    chance = np.array([[0.0, 0.0], [1.0, 1.0]])
    roc = share_curve(curves["roc"], ("false positive rate", "true positive rate"), (false_rate, figures.recall), chance)
    level = np.array([[0.0, share], [1.0, share]])
    pr = share_curve(curves["precision_recall"], ("recall", "precision"), (figures.recall, known), level)
    dot = f"The dot is the threshold of {evaluation.threshold:.4g}; dashed: chance."
    return [
        _figure(f"ROC curve of {name}", roc, f"Area {figures.roc_auc:.4f}. {dot}"),
        _figure(f"Precision and recall of {name}", pr, f"Average precision {figures.average_precision:.4f}. {dot}"),
    ]


def _scores(evaluation: Evaluation) -> list[str]:
    """Return how scores are distributed: by class, or for K classes the lead of the true class, right and wrong."""
    if evaluation.sample is None:
        return []
    known = evaluation.sample.codes >= 0
    codes, scores = evaluation.sample.codes[known], evaluation.sample.scores[known]
    groups: list[Floats]
    if evaluation.two_classes:
        k = evaluation.positive
        column = scores[:, 0] if k else -scores[:, 0]
        groups, names = [column[codes != k], column[codes == k]], [evaluation.names[1 - k], evaluation.names[k]]
        label, threshold = f"score of {names[1]}", evaluation.threshold or 0.0
        caption = f"Rows of {names[1]} above the axis, of {names[0]} below it; dashed: the threshold."
    else:
        rows = np.arange(len(codes))
        others = scores.copy()
        others[rows, codes] = -np.inf
        lead = scores[rows, codes] - others.max(axis=1)
        groups, names = [lead[lead <= 0], lead[lead > 0]], ["wrong", "right"]
        label, threshold = "lead of the true class", 0.0
        caption = "The score of the true class less the highest of the others: rows below 0 are predicted wrongly."
    keys = "".join(f'<span class="key {key}"></span>{escape(name)}' for key, name in zip("ab", names, strict=True))
    return [_figure("Scores by class", score_histogram(groups, label, threshold), f"{escape(caption)}{keys}")]


def _table(caption: str, heads: Sequence[str], lines: Iterable[str], style: str = "", words: int = 1) -> str:
    """Return a table that can be scrolled sideways; the first `words` columns are words, the others numbers."""
    cells = "".join(f'<th scope="col"{"" if k < words else " class=n"}>{escape(head)}</th>' for k, head in enumerate(heads))
    body = f"<thead><tr>{cells}</tr></thead><tbody>{''.join(lines)}</tbody>"
    inner = f'<table class="{style}">{body}</table>'
    region = f'<div class="scroll" tabindex="0" role="region" aria-label="{escape(caption)}">{inner}</div>'
    return f'<p class="soft">{escape(caption)}</p>{region}'


def _confusion(evaluation: Evaluation) -> str:
    if len(evaluation.classes) > MOST_MATRIX:
        lines = [
            f"<tr><td class=n>{n:,}</td><td>{escape(i)}</td><td>{escape(j)}</td></tr>"
            for n, i, j in confusions(evaluation, MOST_CONFUSIONS)
        ]
        table = _table("The most frequent confusions", ("rows", "true class", "predicted class"), lines, words=3)
        return f"<h2>Confusion</h2>{table}"
    lines = []
    matrix, names, heads = evaluation.confusion.tolist(), evaluation.names, evaluation.names
    if sum(map(len, names)) > MOST_HEADS:
        heads = [str(k + 1) for k in range(len(names))]
        names = [f"{k + 1} {name}" for k, name in enumerate(names)]
    if evaluation.unknown_labels:
        matrix, names = [*matrix, evaluation.of_unknown.tolist()], [*names, "(unknown to the model)"]
    for name, counts in zip(names, matrix, strict=True):
        total = max(1, sum(counts))
        cells = "".join(
            f'<td style="background: rgb(var(--heat) / {0.45 * n / total:.3f})">{f"{n:,}" if n else "·"}</td>'
            for n in counts
        )
        lines.append(f'<tr><th scope="row">{escape(name)}</th>{cells}</tr>')
    caption = "A line for each true class, a column for each predicted one; the shade is the share of the line"
    return f"<h2>Confusion</h2>{_table(caption, ('true class', *heads), lines, 'matrix')}"


def _by_class(evaluation: Evaluation) -> str:
    lines = []
    for label, figures in evaluation.by_class.items():
        values = ["" if value is None else f"{value:.4f}" for value in (*figures[:3], *figures[4:])]
        cells = "".join(f"<td class=n>{value}</td>" for value in [*values, f"{figures.rows:,}"])
        lines.append(f'<tr><th scope="row">{escape(str(label))}</th>{cells}</tr>')
    table = _table("ROC AUC and average precision: of the class against the rest, from the scores", HEADS, lines)
    return f"<h2>Classes</h2>{table}"


def _errors(evaluation: Evaluation) -> str:
    if not evaluation.errors:
        return ""
    farthest = "the farthest beyond the threshold first"
    if not evaluation.two_classes:
        farthest = "those first whose predicted class has the largest lead over the true one"
    lines = "".join(_error(evaluation, error) for error in evaluation.errors)
    caption = f'<p class="soft">Rows that are predicted wrongly, {farthest}.</p>'
    return f'<h2>Most confident errors</h2>{caption}<ol class="errors">{lines}</ol>'


def _error(evaluation: Evaluation, error: RowError) -> str:
    place = error.place.removeprefix(f"{evaluation.name}, ")
    of = f"score of {evaluation.names[1]}" if evaluation.two_classes else "lead"
    facts = f"{place}; {of} {error.score:.4g}"
    if error.probabilities is not None:
        facts += f", probability of the prediction {error.probabilities[error.predicted]:.4f}"
    true, predicted = (escape(evaluation.names[k]) for k in (error.true, error.predicted))
    values = " ".join(f"<span><b>{escape(name)}</b> {escape(_cut(value))}</span>" for name, value in error.values.items())
    title = f"<strong>{true}</strong>, predicted as <strong>{predicted}</strong>"
    return f"<li>{title} <small>{escape(facts)}</small><p>{values}</p></li>"


def _cut(value: Any) -> str:
    value = plain(value)
    text = "–" if value is None else f"{value:.6g}" if isinstance(value, float) else str(value)
    return text if len(text) <= MOST_CHARACTERS else text[: MOST_CHARACTERS - 1] + "…"


def _weights(model: Any) -> list[str]:
    """Return the largest weights by name, of each class; nothing where the model is not linear."""
    from separatrix.analysis.importances import importances

    try:
        largest = None if model is None else importances(model, WEIGHTS if len(model.classes_) == 2 else WEIGHTS_OF_MANY)
    except ValueError:
        largest = None
    if largest is None:
        return []
    figures = []
    for label, weights in largest.by_class.items():
        if not weights:
            continue
        most = max(abs(one.weight) for one in weights) or 1.0
        lines = "".join(
            f'<div class="weight"><span>{escape(one.name)}</span><span>{one.weight:+.4g}</span>'
            f'<i class="{"plus" if one.weight > 0 else "minus"}" style="width: {100 * abs(one.weight) / most:.0f}%"></i>'
            "</div>"
            for one in sorted(weights, key=lambda one: (one.weight < 0, -abs(one.weight)))
        )
        against = f" (negative: {escape(str(largest.negative))})" if largest.negative is not None else ""
        figures.append(f"<figure><h3>{escape(str(label))}{against}</h3>{lines}</figure>")
    caption = f'<p class="soft">The largest by {escape(largest.measure)}.</p>'
    return ["<h2>Weights</h2>", caption, f'<div class="figures">{"".join(figures)}</div>']
