"""The result of `explain`: a score as a sum over features, over columns and over training mistakes, as text and as JSON."""

from __future__ import annotations

import io
import math
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

from separatrix.data.errors import counted

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from rich.console import Console, ConsoleOptions, RenderResult
    from rich.table import Table

BIAS = "BIAS"
SHOWN = 20
WIDTH = 40
"""The most characters of a value that are shown."""
SHARED = "a | b: both have the same hash, so that they share one feature and its weight"


class Term(NamedTuple):
    """The contribution of one feature to the score: product = weight · value."""

    name: str
    value: float
    weight: float
    product: float


class Part(NamedTuple):
    """The contribution of one column to the score, the sum of its terms; `value` is the row's value in that column."""

    column: str
    value: Any
    product: float


class Cause(NamedTuple):
    """The contribution of one training mistake to the score; `up` and `down` are the classes that it raised and lowered."""

    step: int
    example: int
    up: Any
    down: Any
    correction: float
    contribution: float


@dataclass(frozen=True)
class Explanation:
    """A score and the terms that add up to it.

    `score` is that of the class `of`, minus that of the class `against` unless that is None. By default it is, for two
    classes, what `decision_function` returns, the score of the second class, and for K classes the score of the predicted
    class minus that of the runner-up. `scores` has the scores of all classes, the highest first (two classes: that of the
    second). `terms` are sorted by size and include the bias; a hashed feature is named by what the example has of it.
    Each product is rounded once, and so is their sum, `total` (by `math.fsum`). The score is summed in another order, so the
    two agree to 2ε·(n + 2)·Σ|w·x| for n terms (K classes: of both), and exactly if all numbers are integers below 2⁵³. For a
    table, `columns` has the same sum by columns, the largest first: a binned number or a text has many terms.

    `causes` are the mistakes that contributed most, largest first. `caused` is the sum over all `n_mistakes` of them, plus
    `start`, the score of the initial weights: again the same score, up to rounding. All three are None if the mistakes are
    not available, and `no_causes` says why.

    Examples
    --------
    >>> from separatrix import Perceptron, explain
    >>> explanation = explain(Perceptron(order="cyclic").fit([[0, 1], [2, 0]], ["no", "yes"]), [1, 1])
    >>> explanation.prediction, explanation.score, [(term.name, term.product) for term in explanation.terms]
    ('yes', 1.0, [('x0', 2.0), ('x1', -1.0), ('BIAS', 0.0)])
    """

    prediction: Any
    score: float
    scores: dict[Any, float]
    terms: list[Term]
    total: float
    causes: list[Cause] | None = None
    caused: float | None = None
    start: float = 0.0
    n_mistakes: int | None = None
    no_causes: str = ""
    columns: list[Part] | None = None
    of: Any = None
    against: Any = None
    threshold: float | None = None
    """What the score of the second of two classes must exceed for it to be predicted, if that is not 0."""

    def to_dict(self) -> dict[str, Any]:
        """Return plain values, as JSON has them."""
        document = asdict(self)
        document["scores"] = [{"class": label, "score": score} for label, score in self.scores.items()]
        document["terms"] = [term._asdict() for term in self.terms]
        if self.columns is not None:
            document["columns"] = [part._asdict() | {"value": _plain(part.value)} for part in self.columns]
        document["causes"] = None if self.causes is None else [cause._asdict() for cause in self.causes]
        return document

    def table(self, most: int = SHOWN) -> Table:
        """Return the terms as a table; those beyond `most` are summed in one line."""
        rows = [(term.name, *(f"{number:.6g}" for number in term[1:])) for term in self.terms[:most]]
        heads = ("feature", "value", "weight", "value × weight")
        return self._table(heads, rows, [term.product for term in self.terms[most:]])

    def table_of_columns(self, most: int = SHOWN) -> Table | None:
        """Return the sum by columns as a table; None if it adds nothing: for one column, or one term in each column."""
        columns = self.columns or []
        if sum(part.column != BIAS for part in columns) < 2 or len(columns) >= len(self.terms):
            return None
        rows = [(part.column, _short(part.value), f"{part.product:.6g}") for part in columns[:most]]
        return self._table(("column", "value", "its part"), rows, [part.product for part in columns[most:]])

    def _table(self, heads: Sequence[str], rows: Sequence[tuple[str, ...]], rest: list[float]) -> Table:
        table, blank = lined_table(heads, rows), [""] * (len(heads) - 2)
        if rest:
            table.add_row(f"… {len(rest):,} more", *blank, f"{math.fsum(rest):.6g}")
        table.add_section()
        table.add_row("score" if self.against is None else "lead", *blank, f"{self.score:.6g}")
        return table

    def verdict(self) -> str:
        """Return the decision and the score that is explained in a sentence."""
        if len(self.scores) < 2:
            of = self.prediction if self.of is None else self.of
            whose = "" if of == self.prediction else f" of {of}"
            bound = f"; {next(iter(self.scores))} needs a score above {self.threshold:.6g}" if self.threshold else ""
            return f"{self.prediction}: the score{whose} is {self.score:.6g}{bound}"
        (winner, high), (second, low) = list(self.scores.items())[:2]
        if (self.of, self.against) == (winner, second):
            return f"{winner}: {high:.6g}, against {low:.6g} for {second}"
        decision = f"{winner}: the score is {high:.6g}"
        if self.against is None:
            rank = list(self.scores).index(self.of) + 1
            place = f"{_ordinal(rank)} of {len(self.scores)}"
            return decision if rank == 1 else f"{decision}; that of {self.of}, the {place}, is {self.score:.6g}"
        compared = f"{self.scores[self.of]:.6g}, against {self.scores[self.against]:.6g} for {self.against}"
        return f"{decision}; explained is {self.of}: {compared}"

    def because(self, first_example: int = 0) -> str:
        """Return the mistakes that contributed most, one on each line, or why they are not available."""
        if self.causes is None or self.caused is None:
            return f"the mistakes behind it are unavailable: {self.no_causes}"
        most = f"the {len(self.causes)} of {counted(self.n_mistakes or 0, 'mistake')} that contributed most"
        lines = [f"{most}, examples counted among the rows trained on, from {first_example}:"]
        for cause in self.causes:
            raised = f"{cause.up} raised" if cause.up is not None else ""
            lowered = f"{cause.down} lowered" if cause.down is not None else ""
            moved = ", ".join(part for part in (raised, lowered) if part)
            lines.append(
                f"  {cause.contribution:+.6g}  example {first_example + cause.example} at step {cause.step:,} ({moved})"
            )
        start = f", of which {self.start:.6g} from the initial weights" if self.start else ""
        return "\n".join([*lines, f"all of them together: {self.caused:.6g}{start}"])

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        from rich.text import Text

        yield Text(self.verdict())
        yield from filter(None, (self.table_of_columns(), self.table()))
        if any(" | " in term.name for term in self.terms[:SHOWN]):
            yield Text(f"{SHARED}\n")
        yield Text(self.because())

    def text(self, most: int = SHOWN, first_example: int = 0, width: int = 120) -> str:
        """Return all of it as text, with `most` terms at most; the examples of mistakes are counted from `first_example`."""
        tables = filter(None, (self.table_of_columns(most), self.table(most)))
        shared = [f"{SHARED}\n"] * any(" | " in term.name for term in self.terms[:most])
        return printed_text(self.verdict(), *tables, *shared, self.because(first_example), width=width)

    def __repr__(self) -> str:
        return self.text()


def lined_table(heads: Sequence[str], rows: Iterable[tuple[str, ...]], numbers: int | None = None) -> Table:
    """Return a table of which the last `numbers` columns are flush right, by default all but the first."""
    from rich import box
    from rich.table import Table
    from rich.text import Text

    table, words = Table(box=box.SIMPLE_HEAD, pad_edge=False), 1 if numbers is None else len(heads) - numbers
    for k, head in enumerate(heads):
        table.add_column(Text(head), justify="left" if k < words else "right", overflow="fold")
    for row in rows:
        table.add_row(*(Text("".join(letter if letter.isprintable() else " " for letter in cell)) for cell in row))
    return table


def printed_text(*parts: Any, width: int = 120) -> str:
    """Return what a console of some width prints, without colours and blank ends."""
    from rich.console import Console

    out = io.StringIO()
    Console(file=out, width=width, color_system=None, markup=False, highlight=False).print(*parts, sep="\n")
    written = "\n".join(line.rstrip() for line in out.getvalue().splitlines()).strip("\n")
    return written.replace("\n\n\n", "\n\n")


def _ordinal(n: int) -> str:
    ending = "th" if n % 100 in (11, 12, 13) else {1: "st", 2: "nd", 3: "rd"}.get(n % 10, "th")
    return f"{n}{ending}"


def _plain(value: Any) -> Any:
    if isinstance(value, bytes):
        return value.decode("utf-8", "replace")
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value if value is None or isinstance(value, bool | int | float | str) else str(value)


def _number(value: float) -> str:
    """A whole number keeps all its digits, as a time in seconds needs; others are rounded to six."""
    return f"{value:.0f}" if value.is_integer() and abs(value) < 1e15 else f"{value:.6g}"


def _short(value: Any) -> str:
    plain = _plain(value)
    written = "" if plain is None else _number(plain) if isinstance(plain, float) else str(plain)
    return written if len(written) <= WIDTH else written[: WIDTH - 1] + "…"
