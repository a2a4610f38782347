"""A certificate in words: what was proven, by which theorem, in the numbers of the data."""

from __future__ import annotations

from collections.abc import Sequence
from decimal import MAX_EMAX, MIN_EMIN, ROUND_CEILING, Decimal, localcontext
from fractions import Fraction
from html import escape
from typing import TYPE_CHECKING

from separatrix.data.errors import counted
from separatrix.estimators.notebook import facts_table
from separatrix.proofs.proof import Witness

if TYPE_CHECKING:
    from separatrix.proofs.certificate import Certificate

_SHOWN = 8


_LONG = 1 << 63


def _number(value: float | Fraction) -> str:
    if isinstance(value, Fraction) and max(abs(value.numerator), value.denominator) >= _LONG:
        with localcontext(prec=15, Emax=MAX_EMAX, Emin=MIN_EMIN):  # which has no limit that such a number could reach
            return f"{Decimal(value.numerator) / Decimal(value.denominator):.9g}".replace("-", "−")
    return f"{float(value):.9g}".replace("-", "−")


def _bound(mistakes: int) -> str:
    """Return a bound in full, or, where it is very large, rounded up to four digits."""
    if mistakes < 10**24:
        return f"{mistakes:,}"
    with localcontext(prec=4, rounding=ROUND_CEILING, Emax=MAX_EMAX):
        return f"{+Decimal(mistakes):.3e}"


def _vector(values: Sequence[float | Fraction]) -> str:
    numbers = [_number(value) for value in values[:_SHOWN]]
    return "(" + ", ".join(numbers) + (f", … {len(values)} numbers)" if len(values) > _SHOWN else ")")


def headline(verdict: str, n: int, d: int, n_classes: int, bias: bool) -> str:
    """Return the first line: the verdict, and about what."""
    size = ", ".join(counted(*each) for each in ((n, "example"), (d, "feature"), (n_classes, "class")))
    return f"{verdict}: {size}, in the space of {'(x, 1)' if bias else 'x'}"


def lines(certificate: Certificate, first_row: int = 0) -> list[str]:
    """Return the statement, a sentence or two on each line; rows are counted from `first_row`."""
    proof = certificate.proof
    first = headline(certificate.verdict, proof.n, proof.d, proof.n_classes, proof.bias)
    if certificate.verdict == "undecided":
        return [first, "neither a separator nor a witness was found within the time limit"]
    describe = {"separable": _separable, "touching": _touching, "inseparable": _inseparable}[certificate.verdict]
    return [first, *describe(certificate, first_row), *_separation(certificate)]


def _separable(certificate: Certificate, first_row: int) -> list[str]:
    proof = certificate.proof
    assert certificate.margin is not None and proof.margin is not None
    lower, upper = certificate.margin
    if isinstance(proof.direction, Witness):
        right = "lies on its own side" if proof.n_classes == 2 else "has the highest score in its own class"
        separator = f"w is a weighted sum of {counted(len(set(proof.direction.rows)), 'example')}; each example {right}"
    elif proof.n_classes == 2 and certificate.separator is not None:
        w, b = certificate.separator
        rule = f"⟨w,x⟩ {'+ b ' if proof.bias else ''}> 0 exactly on the examples of class {certificate.classes[1]!r}"
        separator = f"w = {_vector(list(w))}" + (f", b = {_number(b)}" if proof.bias else "") + f" has {rule}"
    else:
        separator = "there are weights for which each example's own class has strictly the highest score"
    factor = "" if proof.n_classes == 2 else "2"
    statement = [
        separator,
        f"margin: {_number(lower)} ≤ γ ≤ {_number(upper)}; radius: R = {_number(certificate.radius)}",
        f"so a perceptron that starts from 0 makes at most {factor}R²/γ² ≤ {_bound(certificate.mistake_bound or 0)} "
        "mistakes on these examples, in any order and any number of passes",
    ]
    if certificate.geometric_margin is not None and proof.bias:
        low, high = certificate.geometric_margin
        statement.append(f"geometric margin (bias not penalised): between {_number(low)} and {_number(high)}")
    return statement


def _weighted_rows(certificate: Certificate, first_row: int = 0) -> str:
    assert certificate.witness is not None
    witness = certificate.witness
    terms = []
    for i, rival, weight in list(zip(witness.rows, witness.rivals, witness.weights, strict=True))[:_SHOWN]:
        is_short = weight.denominator < 10**12 and len(str(weight)) <= 12
        short = str(weight) if is_short else f"≈{float(weight):.4g}"
        against = f" against {certificate.classes[rival]!r}" if certificate.proof.n_classes > 2 else ""
        terms.append(f"{short} × row {first_row + i}{against}")
    more = f", … {len(witness)} in all" if len(witness) > _SHOWN else ""
    return ", ".join(terms) + more


def _touching(certificate: Certificate, first_row: int) -> list[str]:
    tie = f"tie={certificate.ties!r}"
    return [
        f"separable only with ties: under {tie} every example is right, but some lie exactly on the boundary",
        f"witness: {_weighted_rows(certificate, first_row)} add up to exactly 0, "
        "so no w has a positive score on all of them",
        "the margin is 0, so no bound on the mistakes follows, and a perceptron may never stop making them",
    ]


def _inseparable(certificate: Certificate, first_row: int) -> list[str]:
    what = "Σλyx̃" if certificate.proof.n_classes == 2 else "Σλa over pairs of an example and a rival class"
    return [
        f"witness: {_weighted_rows(certificate, first_row)}: {what} is exactly 0",
        "a w that gets all of these right would give that sum a positive score, but the score of 0 is 0: no such w exists",
    ]


def _separation(certificate: Certificate) -> list[str]:
    kind = certificate.separation
    if kind is None:
        return ["complete, quasi-complete or overlap: not decided within the time limit, or for so many weights"]
    if isinstance(certificate.proof.direction, Witness):
        return [f"{kind} separation: a logistic regression has no finite best coefficients"]
    infinite = certificate.infinite
    if kind == "overlap":
        return ["overlap: a logistic regression has finite coefficients, as far as the data determine them"]
    names = ", ".join(str(name) for name in infinite[:_SHOWN])
    more = f", … {len(infinite)} in all" if len(infinite) > _SHOWN else ""
    return [f"{kind} separation: a logistic regression has no finite best coefficients; these diverge: {names}{more}"]


def as_html(certificate: Certificate) -> str:
    """Return the statement as a small HTML table."""
    return f"<div><strong>{escape(lines(certificate)[0])}</strong>{facts_table(_facts(certificate))}</div>"


def _facts(certificate: Certificate) -> list[tuple[str, str]]:
    """Return the numbers of the statement, each with its name."""
    proof, facts = certificate.proof, []
    if isinstance(proof.direction, Witness):
        facts.append(("w", f"a weighted sum of {counted(len(set(proof.direction.rows)), 'example')}"))
    elif certificate.separator is not None and proof.n_classes == 2 and proof.verdict != "inseparable":
        w, b = certificate.separator
        facts.append(("w", _vector(list(w))))
        facts += [("b", _number(b))] if proof.bias else []
    for name, interval in (("margin γ", certificate.margin), ("geometric margin", certificate.geometric_margin)):
        if interval is not None:
            facts.append((name, " to ".join(dict.fromkeys(_number(end) for end in interval))))
    if proof.verdict != "undecided":
        facts.append(("radius R", _number(certificate.radius)))
    if certificate.mistake_bound is not None:
        facts.append(("mistakes at most", _bound(certificate.mistake_bound)))
    if certificate.ties is not None:
        facts.append(("every example is right", f"under tie={certificate.ties!r}"))
    if certificate.witness is not None:
        facts.append(("witness", f"{_weighted_rows(certificate)}: they add up to exactly 0"))
    if proof.verdict == "undecided":
        return [("why", lines(certificate)[1])]
    return [*facts, ("logistic regression", _separation(certificate)[0])]
