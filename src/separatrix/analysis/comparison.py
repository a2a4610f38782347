"""The result of comparing classifiers: one row for each model, grouped by the view it takes (L1 1, L2 9 and 11, L5 1)."""

from __future__ import annotations

import io
import json
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, field
from html import escape
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from separatrix.data.errors import counted
from separatrix.estimators.notebook import cells_table

if TYPE_CHECKING:
    from rich.console import Console, ConsoleOptions, RenderResult
    from rich.table import Table

VIEWS = {
    "generative": "models p(x, y) = p(x | y) p(y), and could draw new examples",
    "discriminative": "models p(y | x) alone",
    "discriminant function": "models no probability: the boundary itself",
}
HEADS = ("model", "view", "learns by", "accuracy", "spread", "fit", "predict", "parameters", "note")
WORTH_SAYING = 0.01
FULL_HEIGHT = 0.04
BARS, MOST_BARS = "▁▂▃▄▅▆▇█", 20
"""The bars of a sparkline, and the most passes that a curve shows in the terminal: of more, some are left out."""


class Pass(NamedTuple):
    """The accuracy of the weights after a pass, on training and on held-out examples, as the mean of the folds."""

    number: int
    training: float
    held_out: float


@dataclass(frozen=True)
class Row:
    """One model: cross-validated accuracy, spread (standard deviation of the folds), seconds per fold (median), size.

    A model that failed, or was `dropped` because it exceeds the time budget, has the reason in `failure` and no numbers.
    `note` has its warnings. There is no spread of one fold.
    """

    model: str
    view: str
    learns: str
    accuracies: tuple[float, ...] = ()
    accuracy: float | None = None
    spread: float | None = None
    fit_seconds: float | None = None
    predict_seconds: float | None = None
    parameters: int | None = None
    note: str = ""
    failure: str | None = None
    dropped: bool = False

    @property
    def outcome(self) -> str:
        """What became of a model that has no numbers."""
        return "dropped" if self.dropped else "failed"

    def cells(self) -> list[str]:
        """Return the row as text, in the order of `HEADS`."""
        names = [self.model, self.view, self.learns]
        if self.accuracy is None or self.parameters is None:
            return [*names, self.outcome, "", "", "", "", self.failure or ""]
        times = [duration(self.fit_seconds or 0.0), duration(self.predict_seconds or 0.0)]
        spread = "" if self.spread is None else f"{self.spread:.3f}"
        return [*names, f"{self.accuracy:.3f}", spread, *times, f"{self.parameters:,}", self.note]


@dataclass
class Comparison:
    """The result of `compare`.

    `rows` are the models, the most accurate first, those that failed last; `curves` has, for each learner that makes passes,
    a list of (pass, training accuracy, held-out accuracy), as means of the folds.
    """

    rows: list[Row]
    curves: dict[str, list[Pass]]
    examples: int
    columns: str
    classes: list[Any]
    folds: int
    baseline: float
    notes: list[str] = field(default_factory=list)
    name: str = "the data"
    interrupted: bool = False

    def __getitem__(self, model: str) -> Row:
        """Return the row of a model."""
        for row in self.rows:
            if row.model == model:
                return row
        raise KeyError(f"{model!r} is not in this comparison; there are {', '.join(row.model for row in self.rows)}")

    # As other things.

    def to_dict(self) -> dict[str, Any]:
        """Return everything as plain lists, dicts, strings and numbers."""
        return {
            "name": self.name,
            "examples": self.examples,
            "columns": self.columns,
            "classes": [value.item() if hasattr(value, "item") else value for value in self.classes],
            "folds": self.folds,
            "baseline": self.baseline,
            "interrupted": self.interrupted,
            "notes": self.notes,
            "rows": [asdict(row) | {"accuracies": list(row.accuracies)} for row in self.rows],
            "curves": {model: [step._asdict() for step in curve] for model, curve in self.curves.items()},
        }

    def to_json(self) -> str:
        """Return everything as JSON."""
        return json.dumps(self.to_dict(), ensure_ascii=False)

    def to_frame(self) -> Any:
        """Return the rows as a pandas data frame."""
        try:
            import pandas as pd  # type: ignore[import-untyped]
        except ImportError:
            raise ImportError("to_frame needs pandas: pip install pandas; or use .rows or .to_dict()") from None
        return pd.DataFrame([asdict(row) for row in self.rows]).drop(columns="accuracies")

    def to_markdown(self) -> str:
        """Return a Markdown table with a summary above it and notes below it."""
        lines = [
            list(HEADS),
            ["---"] * 3 + ["---:"] * 5 + ["---"],
            *([c.replace("|", "\\|") for c in r.cells()] for r in self.rows),
        ]
        table = "\n".join("| " + " | ".join(line) + " |" for line in lines)
        notes = "\n".join(f"- {line}" for line in [*self.notes, *self._passes()])
        return f"{self.summary()}\n\n{table}\n" + (f"\n{notes}\n" if notes else "")

    def _repr_html_(self) -> str:
        items = "".join(f"<li>{escape(text)}</li>" for text in [*self.notes, *self._passes()])
        summary = escape(self.summary()).replace("\n", "<br>")
        return f"<p>{summary}</p>{cells_table(HEADS, [row.cells() for row in self.rows])}<ul>{items}</ul>"

    # In words.

    def summary(self) -> str:
        """Return what was compared, and the accuracy of always guessing the largest class."""
        return (
            f"{self.name}: {counted(self.examples, 'example')}, {self.columns}, {counted(len(self.classes), 'class')}\n"
            f"{self.folds}-fold stratified cross-validation; always guessing the largest class: {self.baseline:.3f}"
        )

    def remarks(self) -> list[str]:
        """Return notes, warnings of the models, and why some failed."""
        models_of: dict[str, list[str]] = {}
        for row in self.rows:
            text = f"{row.outcome}: {row.failure}" if row.failure else row.note
            if row.accuracy is not None and row.spread is not None and row.accuracy + 2 * row.spread < self.baseline:
                text = "; ".join(filter(None, (text, "less accurate than always guessing the largest class")))
            models_of.setdefault(text, []).append(row.model)
        models_of.pop("", None)
        return [*self.notes, *(f"{', '.join(models)}: {text}" for text, models in models_of.items())]

    def _passes(self) -> list[str]:
        """Return, for each learner that makes passes, when its held-out accuracy was best (L2 9)."""
        sentences = []
        for model, curve in self.curves.items():
            best, last = _best(curve), curve[-1]
            text = f"{model}: held-out accuracy is best after pass {best.number}, {best.held_out:.3f}"
            if best is not last:
                text += (
                    f", and {last.held_out:.3f} after pass {last.number}; "
                    f"training accuracy is {best.training:.3f} there and {last.training:.3f} here"
                )
            sentences.append(text)
        return sentences

    def tables(self) -> Iterator[Any]:
        """Yield the rows for the terminal, a table for each view under its heading."""
        from rich.text import Text

        heads = ("", "accuracy", "fit", "predict", "params", "learns by")
        best = max((row.accuracy for row in self.rows if row.accuracy is not None), default=None)
        lines: dict[str, list[tuple[str, list[str]]]] = {}
        for row in self.rows:
            _, _, learns, accuracy, spread, *rest, _, _ = row.cells()
            rest.append("" if row.parameters is None else _short(row.parameters))
            result = accuracy + (f" ±{spread}" if spread else "")
            style = "yellow" if row.failure is not None else "bold green" if row.accuracy == best else ""
            lines.setdefault(row.view, []).append((style, [row.model, result, *rest, learns]))
        cells = [heads, *(row for members in lines.values() for _, row in members)]
        widths = [max(len(row[j]) for row in cells) for j in range(len(heads))]
        yield _table([("dim", list(heads))], widths)
        for view in (*VIEWS, *(other for other in lines if other not in VIEWS)):
            if view in lines:
                yield Text.assemble((view, "bold"), (f": {VIEWS[view]}" if view in VIEWS else "", "dim"))
                yield _table(lines[view], widths)

    def curves_table(self) -> Table:
        """Return held-out accuracy against passes as a table for the terminal."""
        lines = [("dim", ["", "after each pass", "best", "at pass", "last", "training"])]
        for model, curve in self.curves.items():
            best, last = _best(curve), curve[-1]
            numbers = [f"{best.held_out:.3f}", str(best.number), f"{last.held_out:.3f}", f"{last.training:.3f}"]
            style = "yellow" if best.held_out - last.held_out >= WORTH_SAYING else ""
            shown = np.unique(np.linspace(0, len(curve) - 1, min(len(curve), MOST_BARS)).round().astype(int))
            lines.append((style, [model, sparkline([curve[j].held_out for j in shown]), *numbers]))
        return _table(lines, [max(len(row[j]) for _, row in lines) for j in range(6)], left=(0, 1))

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        from rich.text import Text

        yield Text(self.summary())
        yield ""
        yield from self.tables()
        if self.curves:
            yield ""
            yield Text.assemble(("held-out accuracy of the learners that make passes", "bold"))
            yield self.curves_table()
        yield ""
        yield Text("accuracy: mean ±deviation of the folds; times: of the model alone, median fold", "dim")
        remarks = self.remarks()
        yield from [""] if remarks else []
        for remark in remarks:
            yield Text(remark, "yellow")

    def __repr__(self) -> str:
        from rich.console import Console

        out = io.StringIO()
        Console(file=out, width=120, color_system=None).print(self)
        return "\n".join(line.rstrip() for line in out.getvalue().rstrip().splitlines())


def _best(curve: list[Pass]) -> Pass:
    """Return the first pass with the highest held-out accuracy, up to rounding."""
    return max(curve, key=lambda step: round(step.held_out, 9))


def _table(lines: Sequence[tuple[str, list[str]]], widths: Sequence[int], left: Sequence[int] = (0, 5)) -> Table:
    """Return a table without a header of lines (style, cells); columns are aligned right except those in `left`."""
    from rich.table import Table

    table = Table(box=None, pad_edge=False, show_header=False)
    for j, width in enumerate(widths):
        last = j == len(widths) - 1
        table.add_column(justify="left" if j in left else "right", min_width=None if last else width, no_wrap=not last)
    for style, cells in lines:
        table.add_row(*cells, style=style)
    return table


def _short(number: int) -> str:
    """Return a number as a table for the terminal has it."""
    return f"{number:,}" if number < 1_000_000 else f"{number / 1e6:,.1f}M"


def duration(seconds: float) -> str:
    """Return a time in the unit that suits it."""
    if seconds >= 1.0:
        return f"{seconds:.1f} s" if seconds < 100 else f"{seconds:,.0f} s"
    return f"{1e3 * seconds:.1f} ms" if seconds < 0.1 else f"{1e3 * seconds:.0f} ms"


def sparkline(values: list[float]) -> str:
    """Return the values as a line of bars; at least `FULL_HEIGHT` spans the full height, so small differences look small."""
    low = min(values)
    height = max(max(values) - low, FULL_HEIGHT)
    return "".join(BARS[round((value - low) / height * (len(BARS) - 1))] for value in values)
