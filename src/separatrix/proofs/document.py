"""A certificate as a JSON document: every rational as "p/q", every field proven by the checkers or absent."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from fractions import Fraction
from itertools import pairwise
from math import isfinite
from typing import TYPE_CHECKING, Any, TypeVar

from separatrix.proofs.proof import Direction, MarginProof, Proof, Witness

if TYPE_CHECKING:
    from separatrix.proofs.certificate import Certificate

Kind = TypeVar("Kind")
FORMAT = "separatrix certificate 1"
FIELDS = (
    *("format", "examples", "features", "feature_names", "classes", "bias", "verdict", "ties", "separation", "direction"),
    *("margin", "geometric_margin", "radius_squared", "mistake_bound", "witness", "spanning", "equations"),
)
_LONG = 2000
"""Numbers of more bits are written in hexadecimal; Python may refuse decimal ones of 640 digits."""
_WHOLE = r"(?:0x[0-9a-f]+|\d+)"


def as_json(certificate: Certificate) -> str:
    """Return the certificate as JSON."""
    proof = certificate.proof
    document = {
        "format": FORMAT,
        "examples": proof.n,
        "features": proof.d,
        "feature_names": certificate.feature_names,
        "classes": certificate.classes,
        "bias": proof.bias,
        "verdict": proof.verdict,
        "ties": proof.ties,
        "separation": proof.separation,
        "direction": _direction_out(proof.direction),
        "margin": _margin_out(proof.margin),
        "geometric_margin": _margin_out(proof.geometric),
        "radius_squared": _written(proof.radius_squared),
        "mistake_bound": _written_bound(proof.mistake_bound),
        "witness": _witness_out(proof.witness),
        "spanning": _witness_out(proof.spanning),
        "equations": _direction_out(proof.equations),
    }
    return json.dumps(document, ensure_ascii=False, indent=1) + "\n"


def from_text(text: str | bytes) -> tuple[Proof, list[Any], list[str] | None]:
    """Return proof, classes and feature names of a JSON document; raise ValueError for anything else."""
    try:
        document = json.loads(text)
        if document["format"] != FORMAT:
            raise ValueError(f"the format is {document['format']!r}, not {FORMAT!r}")
        _check_fields(document, FIELDS)
        classes, names = _classes(document["classes"]), document["feature_names"]
        if names is not None and not all(isinstance(name, str) for name in _of(list, names)):
            raise ValueError("feature_names must be strings")
        proof = Proof(
            n=_of(int, document["examples"]),
            d=_of(int, document["features"]),
            n_classes=len(classes),
            bias=_of(bool, document["bias"]),
            verdict=_of(str, document["verdict"]),
            ties=_none_or(str, document["ties"]),
            separation=_none_or(str, document["separation"]),
            direction=None if document["direction"] is None else _any_direction_in(document["direction"]),
            margin=_margin_in(document["margin"]),
            geometric=_margin_in(document["geometric_margin"]),
            radius_squared=_rational(document["radius_squared"]),
            mistake_bound=_bound(document["mistake_bound"]),
            witness=_witness_in(document["witness"]),
            spanning=_witness_in(document["spanning"]),
            equations=_direction_in(document["equations"]),
        )
        return proof, classes, names
    except (KeyError, TypeError, ValueError, ArithmeticError, AttributeError, RecursionError) as problem:
        what = f"{problem} is missing" if isinstance(problem, KeyError) else str(problem).split("\n")[0]
        raise ValueError(f"this is not a certificate: {what:.200}") from None


def _direction_out(direction: Direction | Witness | None) -> Any:
    if isinstance(direction, Witness):
        return _witness_out(direction)
    return None if direction is None else [[_written(number) for number in vector] for vector in direction]


def _any_direction_in(part: Any) -> Direction | Witness:
    witness = _witness_in(part) if isinstance(part, dict) else None
    return _direction_in(part) if witness is None else witness


def _direction_in(vectors: Any) -> Direction:
    return tuple(tuple(_rational(number) for number in _of(list, vector)) for vector in _of(list, vectors))


def _witness_out(witness: Witness | None) -> dict[str, Any] | None:
    if witness is None:
        return None
    return {"rows": witness.rows, "rivals": witness.rivals, "weights": [_written(weight) for weight in witness.weights]}


def _witness_in(part: Any) -> Witness | None:
    if part is None:
        return None
    _check_fields(part, ("rows", "rivals", "weights"))
    rows, rivals = (tuple(_of(int, i) for i in _of(list, part[name])) for name in ("rows", "rivals"))
    return Witness(rows, rivals, tuple(_rational(weight) for weight in _of(list, part["weights"])))


def _margin_out(part: MarginProof | None) -> dict[str, Any] | None:
    if part is None:
        return None
    return {
        "lower": part.lower,
        "upper": part.upper,
        "direction": _direction_out(part.direction),
        "least": _written(part.least),
        "weights": _witness_out(part.weights),
    }


def _margin_in(part: Any) -> MarginProof | None:
    if part is None:
        return None
    _check_fields(part, ("lower", "upper", "direction", "least", "weights"))
    weights = _witness_in(part["weights"])
    if weights is None:
        raise ValueError("a margin has no weights")
    lower, upper = part["lower"], part["upper"]
    if not all(type(end) in (int, float) and isfinite(end) for end in (lower, upper)):
        raise ValueError("a margin must be a finite number")
    return MarginProof(_any_direction_in(part["direction"]), _rational(part["least"]), weights, float(lower), float(upper))


def _of(kind: type[Kind], value: Any) -> Kind:
    """Return a value that must have exactly this type: True is not a number, and 3.9 is not a row."""
    if type(value) is not kind:
        raise ValueError(f"a value of type {type(value).__name__} should be of type {kind.__name__}")
    return value


def _check_fields(part: dict[str, Any], fields: Sequence[str]) -> None:
    """Raise for a field that says something nobody proves."""
    if unknown := set(part) - set(fields):
        raise ValueError(f"{sorted(unknown)[0]!r:.60} is not a field of a certificate")


def _none_or(kind: type[Kind], value: Any) -> Kind | None:
    return None if value is None else _of(kind, value)


def _classes(labels: Any) -> list[Any]:
    """Return the classes; raise unless there are two or more, all of them strings, numbers or truth values, in order."""
    kinds = {type(label) for label in _of(list, labels)}
    if len(labels) < 2 or not (kinds in ({str}, {bool}) or kinds <= {int, float}):
        raise ValueError("classes must be two or more strings, numbers or truth values")
    if not all(low < high for low, high in pairwise(labels)):
        raise ValueError("classes must be sorted and unique")
    return list(labels)


def _written(number: Fraction) -> str:
    """Return "p" or "p/q"; long numbers are hexadecimal, because Python refuses to write long decimal ones."""
    parts = [number.numerator] if number.denominator == 1 else [number.numerator, number.denominator]
    return "/".join(hex(part) if part.bit_length() > _LONG else str(part) for part in parts)


def _written_bound(bound: int | None) -> int | str | None:
    return bound if bound is None or bound.bit_length() <= _LONG else hex(bound)


def _rational(text: Any) -> Fraction:
    """Return the number written as "p" or "p/q"; exponents are refused, as a short one stands for a huge number."""
    if not isinstance(text, str) or not re.fullmatch(rf"-?{_WHOLE}(/{_WHOLE})?", text, re.ASCII):
        raise ValueError(f"{text!r:.60} is not an integer or a fraction p/q")
    return Fraction(*(int(part, 16 if "x" in part else 10) for part in text.split("/")))


def _bound(value: Any) -> int | None:
    if value is None or (isinstance(value, str) and re.fullmatch(_WHOLE, value, re.ASCII)):
        return None if value is None else _rational(value).numerator
    return _of(int, value)
