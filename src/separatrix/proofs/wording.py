"""A certificate in words: what was proven, by which theorem, in the reader's own numbers."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from typing import Any

from separatrix.estimators.notebook import facts_table

Certificate = Any
"""A `separatrix.Certificate`, which imports this file."""

_SHOWN = 8


def _number(value: float) -> str:
    return f"{value:.9g}".replace("-", "−")


def _vector(values: Sequence[object]) -> str:
    shown = [_number(float(value)) for value in values[:_SHOWN]]  # type: ignore[arg-type]
    return "(" + ", ".join(shown) + (f", … {len(values)} numbers)" if len(values) > _SHOWN else ")")


def lines(certificate: Certificate) -> list[str]:
    """Return the statement, a sentence or two a line."""
    proof = certificate.proof
    space = "(x, 1)" if proof.bias else "x"
    features = f"{proof.d} feature{'s' * (proof.d != 1)}"
    said = [f"{certificate.verdict}: {proof.n} examples, {features}, {proof.n_classes} classes, in the space of {space}"]
    if certificate.verdict == "undecided":
        return [*said, "neither a separator nor a witness was found in the time given"]
    if certificate.verdict == "separable":
        said += _separable(certificate)
    elif certificate.verdict == "touching":
        said += _touching(certificate)
    else:
        said += _inseparable(certificate)
    return said + _separation(certificate)


def _separable(certificate: Certificate) -> list[str]:
    proof = certificate.proof
    assert certificate.margin is not None and proof.margin is not None
    lower, upper = certificate.margin
    said = []
    if proof.n_classes == 2 and certificate.separator is not None:
        w, b = certificate.separator
        rule = f"⟨w,x⟩ {'+ b ' if proof.bias else ''}> 0 exactly on the examples of class {certificate.classes[1]!r}"
        said.append(f"w = {_vector(list(w))}" + (f", b = {_number(float(b))}" if proof.bias else "") + f" has {rule}")
    else:
        said.append("there are weights with which each example's own class scores strictly highest")
    said.append(f"margin: {_number(lower)} ≤ γ ≤ {_number(upper)}; radius: R = {_number(certificate.radius)}")
    factor = "" if proof.n_classes == 2 else "2"
    said.append(
        f"so a perceptron that starts from 0 makes at most {factor}R²/γ² ≤ {certificate.mistake_bound:,} mistakes on these "
        "examples, in whatever order, however often they come"
    )
    if certificate.geometric_margin is not None and proof.bias:
        low, high = certificate.geometric_margin
        said.append(f"geometric margin, the bias free: between {_number(low)} and {_number(high)}")
    return said


def _rows(certificate: Certificate) -> str:
    assert certificate.witness is not None
    witness = certificate.witness
    shown = []
    for i, rival, weight in list(zip(witness.rows, witness.rivals, witness.weights, strict=True))[:_SHOWN]:
        short = str(weight) if len(str(weight)) <= 12 else f"≈{float(weight):.4g}"
        against = f" against {certificate.classes[rival]!r}" if certificate.proof.n_classes > 2 else ""
        shown.append(f"{short} × row {i}{against}")
    more = f", … {len(witness)} in all" if len(witness) > _SHOWN else ""
    return ", ".join(shown) + more


def _touching(certificate: Certificate) -> list[str]:
    return [
        f"only by touching: under tie={certificate.ties!r} every example is right, but some lie exactly on the boundary",
        f"witness: {_rows(certificate)} add up to exactly 0, so no w is positive on all of them",
        "the margin is 0: no bound on the mistakes follows, and a perceptron may go on for ever",
    ]


def _inseparable(certificate: Certificate) -> list[str]:
    what = "Σλyx̃" if certificate.proof.n_classes == 2 else "Σλa over pairs of an example and a rival class"
    return [
        f"witness: {_rows(certificate)}: {what} is exactly 0",
        "any w that got all of these right would give that sum a positive score; 0 scores 0, so there is no such w",
    ]


def _separation(certificate: Certificate) -> list[str]:
    kind, infinite = certificate.separation, certificate.infinite
    if kind is None:
        return ["complete, quasi-complete or overlap: not decided in the time given"]
    if kind == "overlap":
        return ["overlap: every coefficient of a logistic regression that the data determine is finite"]
    names = ", ".join(str(name) for name in infinite[:_SHOWN]) + (
        f", … {len(infinite)} in all" if len(infinite) > _SHOWN else ""
    )
    return [f"{kind} separation: a logistic regression has no finite best coefficients; these grow without end: {names}"]


def as_html(certificate: Certificate) -> str:
    """Return the statement as a small HTML table."""
    return f"<div><strong>{escape(lines(certificate)[0])}</strong>{facts_table(_facts(certificate))}</div>"


def _facts(certificate: Certificate) -> list[tuple[str, str]]:
    """Return the numbers of the statement, each with its name."""
    proof, facts = certificate.proof, []
    if certificate.separator is not None and proof.n_classes == 2 and proof.verdict != "inseparable":
        w, b = certificate.separator
        facts.append(("w", _vector(list(w))))
        facts += [("b", _number(float(b)))] if proof.bias else []
    for name, interval in (("margin γ", certificate.margin), ("geometric margin", certificate.geometric_margin)):
        if interval is not None:
            facts.append((name, " to ".join(dict.fromkeys(_number(end) for end in interval))))
    if proof.verdict != "undecided":
        facts.append(("radius R", _number(certificate.radius)))
    if certificate.mistake_bound is not None:
        facts.append(("mistakes at most", f"{certificate.mistake_bound:,}"))
    if certificate.ties is not None:
        facts.append(("every example is right", f"under tie={certificate.ties!r}"))
    if certificate.witness is not None:
        facts.append(("witness", f"{_rows(certificate)}: they add up to exactly 0"))
    if proof.verdict == "undecided":
        return [("why", lines(certificate)[1])]
    return [*facts, ("logistic regression", _separation(certificate)[0])]
