"""How an evaluation looks in a terminal and in a notebook."""

from __future__ import annotations

import io
from collections.abc import Iterator
from html import escape
from typing import TYPE_CHECKING, Any

import numpy as np

from separatrix.analysis.evaluating.probability_bins import BINS
from separatrix.data.errors import counted
from separatrix.estimators.notebook import cells_table, facts_table

if TYPE_CHECKING:
    from separatrix.analysis.evaluating.evaluation import Evaluation

MOST_CLASSES = 24
"""So many classes have a line of their own; of more, the ones with the lowest F1."""
MOST_MATRIX = 12
"""Up to so many classes the whole confusion matrix is shown; for more, this many of its largest entries."""
NAME_WIDTH = 24


def headline(evaluation: Evaluation) -> list[tuple[str, str]]:
    """Return the figures beside the accuracy with their names, the most important first."""
    low, high = evaluation.interval
    baseline = evaluation.baseline
    facts = [
        ("95 % interval", f"{low:.4f} to {high:.4f}  (of the accuracy, by Wilson)"),
        ("majority baseline", f"{baseline.accuracy:.4f}  (always predicting {short(baseline.label)})"),
        ("balanced accuracy", f"{evaluation.balanced_accuracy:.4f}"),
        ("macro F1", f"{evaluation.macro_f1:.4f}  (weighted by rows {evaluation.weighted_f1:.4f})"),
    ]
    which = (
        f"of {short(evaluation.names[evaluation.positive])}"
        if evaluation.two_classes
        else "mean of each class against the rest"
    )
    for name, value in (("ROC AUC", evaluation.roc_auc), ("average precision", evaluation.average_precision)):
        why = evaluation.undefined.get(name.lower().replace(" ", "_"))
        note = f"  ({which})" if name != "ROC AUC" or not evaluation.two_classes else ""
        facts.append((name, f"undefined: {why}" if value is None else f"{value:.4f}{note}"))
    if evaluation.calibration is not None:
        facts.append(("log loss", f"{evaluation.log_loss:.4f}  (Brier score {evaluation.brier:.4f})"))
        facts.append(("calibration error", f"{evaluation.calibration_error:.4f}  (ECE, {BINS} bins of equal width)"))
    if evaluation.two_classes and (evaluation.threshold or evaluation.chosen_by):
        share = evaluation.probability_threshold
        chosen = "" if share is None else f", p={share:.4f}"
        chosen += f", best for {evaluation.chosen_by}" if evaluation.chosen_by else ""
        positive = short(evaluation.names[evaluation.positive])
        facts.append(("threshold", f"{evaluation.threshold:.6g}  (score of {positive}{chosen})"))
    if evaluation.chosen_by and evaluation.chosen_by.startswith("cost="):
        facts.append(("cost", f"{evaluation.cost(evaluation.chosen_by):.6g}  (mean of a row, {evaluation.chosen_by})"))
    return facts


def class_rows(evaluation: Evaluation, most: int = MOST_CLASSES) -> tuple[list[list[str]], str]:
    """Return a line for each class, or for the worst of many, and a remark on the others."""
    lines = []
    for label, figures in evaluation.by_class.items():
        rates = [f"{value:.4f}" for value in (figures.precision, figures.recall, figures.f1)]
        ranked = ["" if value is None else f"{value:.4f}" for value in (figures.roc_auc, figures.average_precision)]
        lines.append((figures.f1, [short(label), *rates, *ranked, f"{figures.rows:,}"]))
    if len(lines) <= most:
        return [cells for _, cells in lines], ""
    worst = sorted(range(len(lines)), key=lambda k: lines[k][0])[:most]
    return [lines[k][1] for k in worst], f"the {most} of {len(lines)} classes with the lowest F1"


def confusions(evaluation: Evaluation, most: int = MOST_MATRIX) -> list[tuple[int, str, str]]:
    """Return the most frequent errors: how many rows of which class were predicted as which."""
    errors = evaluation.confusion - np.diag(np.diag(evaluation.confusion))
    places = [divmod(place, len(errors)) for place in np.argsort(-errors, axis=None, kind="stable")[:most].tolist()]
    names = evaluation.names
    return [(int(errors[i, j]), names[i], names[j]) for i, j in places if errors[i, j]]


def matrix_rows(evaluation: Evaluation) -> list[list[str]]:
    """Return the confusion matrix as text, a line for each true class; a last one for labels that are no class."""
    lines = [
        [short(name), *(f"{n:,}" for n in row)] for name, row in zip(evaluation.names, evaluation.confusion, strict=True)
    ]
    if evaluation.unknown_labels:
        lines.append(["(unknown)", *(f"{n:,}" for n in evaluation.of_unknown)])
    return lines


HEADS = ("class", "precision", "recall", "F1", "ROC AUC", "av. prec.", "rows")


def shown(evaluation: Evaluation, width: int = 80) -> Iterator[Any]:
    """Yield what a terminal shows."""
    from rich.text import Text

    accuracy = (f"{evaluation.accuracy:.4f}", "bold")
    yield Text.assemble(f"{evaluation.name}: {counted(evaluation.rows, 'row')}, accuracy ", accuracy)
    yield _table(None, [[name, value] for name, value in headline(evaluation)], left=2)
    for remark in evaluation.remarks():
        yield Text(remark, "yellow")
    yield ""
    lines, remark = class_rows(evaluation)
    yield _table(HEADS, lines)
    if remark:
        yield Text(remark, "dim")
    matrix = matrix_rows(evaluation)
    heads = [short(name) for name in evaluation.names]
    needed = max(len(line[0]) for line in matrix) + sum(
        2 + max(len(head), *(len(line[k + 1]) for line in matrix)) for k, head in enumerate(heads)
    )
    yield ""
    if len(heads) <= MOST_MATRIX and needed <= width:
        yield Text("confusion: a line for each true class, a column for each predicted one", "dim")
        yield _table(("", *heads), matrix)
    elif errors := confusions(evaluation):
        yield Text("the most frequent confusions", "dim")
        yield _table(
            ("rows", "true class", "predicted class"), [[f"{n:,}", short(i), short(j)] for n, i, j in errors], left=0
        )


def short(name: Any) -> str:
    """Return a name without what cannot be printed, cut to a column's width."""
    text = "".join(letter if letter.isprintable() else " " for letter in str(name))
    return text if len(text) <= NAME_WIDTH else text[: NAME_WIDTH - 1] + "…"


def _table(heads: tuple[str, ...] | None, lines: list[list[str]], left: int = 1) -> Any:
    """Return a table whose first `left` columns are aligned left; where it is 0, all but the first."""
    from rich.table import Table
    from rich.text import Text

    table = Table(box=None, pad_edge=False, show_header=heads is not None, header_style="dim")
    for k, head in enumerate(heads or [""] * len(lines[0])):
        aligned_left = k < left if left else k > 0
        table.add_column(Text(head), justify="left" if aligned_left else "right", overflow="fold")
    for cells in lines:
        table.add_row(*map(Text, cells))
    return table


def as_text(evaluation: Evaluation, width: int = 80) -> str:
    """Return what a terminal shows, without colours."""
    from rich.console import Console

    out = io.StringIO()
    console = Console(file=out, width=width, color_system=None, highlight=False)
    for part in shown(evaluation, width):
        console.print(part)
    return "\n".join(line.rstrip() for line in out.getvalue().rstrip().splitlines())


def as_html(evaluation: Evaluation) -> str:
    """Return what a notebook shows."""
    title = (
        f"{escape(evaluation.name)}: {counted(evaluation.rows, 'row')}, accuracy <strong>{evaluation.accuracy:.4f}</strong>"
    )
    remarks = "".join(f"<li>{escape(remark)}</li>" for remark in evaluation.remarks())
    lines, remark = class_rows(evaluation)
    parts = [f"<p>{title}</p>", facts_table(headline(evaluation)), f"<ul>{remarks}</ul>" if remarks else ""]
    parts.append(cells_table(HEADS, lines) + (f"<p>{escape(remark)}</p>" if remark else ""))
    if len(evaluation.classes) <= MOST_MATRIX:
        parts.append("<p>confusion: a line for each true class, a column for each predicted one</p>")
        parts.append(cells_table(("", *map(short, evaluation.names)), matrix_rows(evaluation)))
    else:
        errors = [[f"{n:,}", short(i), short(j)] for n, i, j in confusions(evaluation)]
        parts.append(cells_table(("rows", "true class", "predicted class"), errors))
    return "".join(parts)
