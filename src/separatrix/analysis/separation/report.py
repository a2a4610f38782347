"""The result of `check_separation`: what was found, in words, as HTML and as plain values."""

from __future__ import annotations

import textwrap
from dataclasses import dataclass, field
from fractions import Fraction
from html import escape
from typing import Any, NamedTuple

from separatrix.analysis.separation.collinear import MOST_COLUMNS
from separatrix.analysis.separation.findings import EmptyCell, EmptyCells, InfiniteCoefficients
from separatrix.data.errors import counted, named
from separatrix.estimators.notebook import facts_table
from separatrix.proofs.certificate import Certificate

_SHOWN = 8
STATES = {
    "complete": "complete. Maximum likelihood has no finite estimates; every row can be predicted with probability 1",
    "quasi-complete": "quasi-complete. Maximum likelihood has no finite estimates for some coefficients",
    "overlap": "none (the classes overlap). Maximum likelihood has finite estimates",
    "undecided": "undecided",
}


class Collinear(NamedTuple):
    """A column that is exactly Σ coefficient × column over `terms`; `terms` is None where it is so within rounding only."""

    column: str
    terms: dict[str, Fraction] | None

    def __str__(self) -> str:
        if self.terms is None:
            return f"{named(self.column)} is a combination of columns before it, up to rounding"
        if not self.terms:
            return f"{named(self.column)} = 0 in every row"
        parts: list[str] = []
        for name, value in list(self.terms.items())[:_SHOWN]:
            size = "" if abs(value) == 1 else f"{_short(abs(value))} × "
            sign = ("− " if value < 0 else "+ ") if parts else ("−" if value < 0 else "")
            parts.append(f"{sign}{size}{named(name)}")
        more = f" + … {len(self.terms)} terms" if len(self.terms) > _SHOWN else ""
        return f"{named(self.column)} = {' '.join(parts)}{more}"


def _short(value: Fraction) -> str:
    return str(value) if max(abs(value.numerator), value.denominator) < 10**6 else f"{float(value):.6g}"


@dataclass(frozen=True, repr=False, eq=False)
class SeparationCheck:
    """Whether a logistic regression has finite estimates, and if not, why. `check_separation` returns it.

    Attributes
    ----------
    separation : "complete", "quasi-complete", "overlap" or "undecided".
    infinite : the coefficients that diverge along the direction of the certificate, with their signs, by name.
    rows : the rows that the direction separates strictly, counted from 0 in what was given: all of them where separation is
        complete, and those that cause it where it is quasi-complete.
    row_labels : the labels of these rows in a pandas frame, or None.
    empty : levels of categories that have no row of some class.
    collinear : columns that are combinations of columns before them; their coefficients are taken as 0 in `infinite`. None
        where there were too many columns to look, or no time.
    alone : the columns that separate two classes completely by themselves.
    advice : what to do.
    certificate : the proof; `verify()` checks it on X and y, the design matrix and the classes that it is about.

    Examples
    --------
    >>> from separatrix import check_separation
    >>> check = check_separation([[0, 1], [1, 0], [2, 1], [3, 0]], ["no", "no", "yes", "yes"])
    >>> check.separation, check.alone, check.finite, check.verify()
    ('complete', ['x0'], False, True)
    """

    certificate: Certificate
    infinite: InfiniteCoefficients
    rows: list[int]
    row_labels: list[Any] | None
    n_rows: int
    empty: EmptyCells
    collinear: list[Collinear] | None
    alone: list[str]
    names: list[str]
    outcome: str
    notes: list[str]
    X: Any = field(repr=False)
    y: Any = field(repr=False)

    @property
    def separation(self) -> str:
        """The kind of separation: "complete", "quasi-complete", "overlap" or "undecided"."""
        return self.certificate.separation or "undecided"

    @property
    def verdict(self) -> str:
        """The verdict of the certificate: "separable", "touching", "inseparable" or "undecided"."""
        return self.certificate.verdict

    @property
    def finite(self) -> bool | None:
        """Whether all estimates of maximum likelihood are finite; None if undecided. Collinear columns are left aside."""
        return None if self.separation == "undecided" else self.separation == "overlap"

    @property
    def advice(self) -> list[str]:
        """What to do, the most specific first."""
        return _advice(self)

    def verify(self) -> bool:
        """Return whether the certificate holds for X and y, checked exactly."""
        return self.certificate.verify(self.X, self.y)

    def to_dict(self) -> dict[str, Any]:
        """Return plain values, as JSON has them."""
        return {
            "separation": self.separation,
            "verdict": self.verdict,
            "infinite": [
                coefficient._asdict() | {"limit": "inf" if coefficient.limit > 0 else "-inf"}
                for coefficient in self.infinite
            ],
            "rows": self.rows,
            "row_labels": None if self.row_labels is None else [_plain(label) for label in self.row_labels],
            "n_rows": self.n_rows,
            "empty": [cell._asdict() for cell in self.empty],
            "collinear": None if self.collinear is None else [_written(each) for each in self.collinear],
            "alone": self.alone,
            "advice": self.advice,
            "notes": self.notes,
        }

    def facts(self, first_row: int = 0) -> list[tuple[str, str]]:
        """Return what there is to say, each with its heading; rows are counted from `first_row`."""
        facts: list[tuple[str, str]] = []
        if self.separation == "undecided":
            known = "not complete; quasi-complete or overlap" if self.verdict != "undecided" else "any kind"
            facts.append(("open", f"the search ended before it was decided ({known}): give it more time with time_limit="))
        facts += _coefficients(self.infinite)
        if self.infinite:
            facts.append(("rows", _rows(self, first_row)))
        cells = [_cell(cell, self.outcome) for cell in self.empty[:_SHOWN]]
        facts += [("empty level", text) for text in _some(cells, len(self.empty))]
        facts += [("collinear", text) for text in _some([str(each) for each in self.collinear or []])]
        if self.collinear is None:
            reason = (
                f", as there are {len(self.names):,} columns" if len(self.names) > MOST_COLUMNS else " within the time limit"
            )
            facts.append(("collinear", f"not examined{reason}"))
        facts += [("what to do", text) for text in self.advice]
        return facts + [("note", note) for note in self.notes]

    def text(self, width: int = 100, first_row: int = 0) -> str:
        """Return the report as text; rows are counted from `first_row`."""
        lines = textwrap.wrap(f"Separation: {STATES[self.separation]}", width, subsequent_indent="  ")
        for heading, text in _headed_once(self.facts(first_row)):
            begin = f"  {heading:<13}"
            lines += textwrap.wrap(text, width, initial_indent=begin, subsequent_indent=" " * 15, break_on_hyphens=False)
        return "\n".join(lines)

    def __repr__(self) -> str:
        return self.text()

    def _repr_html_(self) -> str:
        head = escape(f"Separation: {STATES[self.separation]}")
        return f"<div><strong>{head}</strong>{facts_table(_headed_once(self.facts()))}</div>"


def _headed_once(facts: list[tuple[str, str]]) -> list[tuple[str, str]]:
    """Return facts with a heading only where it changes."""
    headings = [heading for heading, _ in facts]
    return [("" if before == now else now, text) for before, (now, text) in zip(["", *headings], facts, strict=False)]


def _plain(value: Any) -> Any:
    value = value.item() if hasattr(value, "item") else value
    return value if isinstance(value, str | bool | int | float) or value is None else str(value)


def _written(collinear: Collinear) -> dict[str, Any]:
    terms = collinear.terms
    return {"column": collinear.column, "terms": None if terms is None else {name: _short(c) for name, c in terms.items()}}


def _some(texts: list[str], count: int | None = None) -> list[str]:
    """Return the first of some texts, and how many there are: `count`, where the others are not among them."""
    count = len(texts) if count is None else count
    return texts[:_SHOWN] + ([f"… {count:,} in all"] if count > _SHOWN else [])


def _coefficients(infinite: InfiniteCoefficients) -> list[tuple[str, str]]:
    """Return the infinite coefficients, those of a certain sign first."""
    groups = {
        True: "",
        False: "; in this direction, while others that separate the same rows have the other sign",
        None: "; these are the signs in the direction of the certificate, others were not examined",
    }
    facts = []
    for certain, remark in groups.items():
        count, first = infinite.of(certain)
        if count:
            facts.append(("infinite", ", ".join(_some([str(each) for each in first], count)) + remark))
    return facts


def _rows(check: SeparationCheck, first_row: int) -> str:
    if check.separation == "complete":
        return f"all {counted(check.n_rows, 'row')}"
    labels = [first_row + i for i in check.rows] if check.row_labels is None else check.row_labels
    listed = ", ".join(_some([named(label) for label in labels[:_SHOWN]])) + (", …" if len(labels) > _SHOWN else "")
    return f"{len(check.rows):,} of {check.n_rows:,} are separated: {listed}"


def _cell(cell: EmptyCell, outcome: str) -> str:
    rows = counted(cell.n_rows, "row")
    level = cell.level if cell.level == "the reference level" else named(cell.level)
    return f"{named(cell.column)} = {level} ({rows}) has no row with {named(outcome)} = {named(cell.label)}"


def _advice(check: SeparationCheck) -> list[str]:
    advice = []
    if check.alone:
        which = ", ".join(_some([named(name) for name in check.alone]))
        verb = "alone separates" if len(check.alone) == 1 else "separate, each of them alone,"
        advice.append(f"{which} {verb} the classes: make sure that this is no consequence of the outcome, or drop it")
    causes = check.empty.columns
    if check.separation == "quasi-complete":
        if causes:
            advice.append("merge the empty level with one that resembles it, or leave its rows out if the question allows")
        advice.append("do not read standard errors or Wald tests of infinite coefficients: use likelihood-ratio tests")
        if len(check.certificate.classes) == 2:
            advice.append("what is finite is estimated by a fit to the rows that are not separated")
    if check.separation in ("complete", "quasi-complete"):
        advice.append(
            "keep the model and penalise it: Firth's likelihood (firthmodels in Python, logistf in R) gives finite "
            "estimates and intervals; with few rows, exact logistic regression; with prior knowledge, a Bayesian prior"
        )
    if check.collinear:
        advice.append(f"drop {', '.join(_some([named(each.column) for each in check.collinear]))}: "
                      "the others determine it, and the estimates are not unique")  # fmt: skip
    if not advice and check.separation == "overlap" and check.collinear is not None:
        advice.append("nothing: if a fit fails, it is for another reason, such as the scale of the columns or too few steps")
    return advice
