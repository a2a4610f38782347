"""Whether a linear classifier can get all examples right, with a proof that can be checked (L1 4 and 8–10, L2 7, L4 5–7).

`verdict` and `separation` answer two questions. The verdict is about strict scores: *separable* if some w has every
⟨w,a⟩ > 0; *touching* if that needs a meaning for a score of 0; else *inseparable*. The separation is the statisticians'
distinction (Albert and Anderson 1984): *complete*; *quasi-complete* if some w has no negative ⟨w,a⟩, and not all are 0; else
*overlap*.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from fractions import Fraction
from itertools import pairwise
from math import isfinite
from numbers import Real
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from separatrix.engine.labels import check_two_classes, encode, encode_as
from separatrix.engine.rows import Array, Rows
from separatrix.proofs import checker
from separatrix.proofs.inputs import read_examples
from separatrix.proofs.proof import Direction, MarginProof, Proof, Witness
from separatrix.proofs.prover import prove
from separatrix.proofs.rationals import root
from separatrix.proofs.wording import as_html, lines

Kind = TypeVar("Kind")
FORMAT = "separatrix certificate 1"
FIELDS = (
    *("format", "examples", "features", "feature_names", "classes", "bias", "verdict", "ties", "separation", "direction"),
    *("margin", "geometric_margin", "radius_squared", "mistake_bound", "witness", "spanning", "equations"),
)
_LONG = 2000
"""Numbers of more bits are written in hexadecimal; Python may refuse decimal ones of 640 digits."""
_WHOLE = r"(?:0x[0-9a-f]+|\d+)"


class Certificate:
    """A proven answer about one data set. `certify` returns it, `verify` checks it, `to_json` saves it.

    Attributes
    ----------
    verdict : "separable", "touching", "inseparable" or "undecided".
    ties : the meaning of a tie under which touching data are separable ("+1", "-1"; "first" for K classes), or None.
    separation : "complete", "quasi-complete", "overlap", or None where undecided.
    separator : (w, b), or None. float64 where that is exact, else arrays of `Fraction`. Separable: every example is
        strictly right. Otherwise no example is strictly wrong and not all are at 0.
    margin : (lower, upper) for the best margin γ in the space of (x, 1), where the theorem lives; (0, 0) where touching.
    geometric_margin : (lower, upper) with the bias unpenalised, for two classes: half the width of the widest street.
    radius : R, the largest norm of (x, 1), of x without a bias.
    mistake_bound : floor of R²/γ² (K classes: 2R²/γ²) for the proven lower γ.
    witness : rows, rivals and exact weights with Σλa = 0, or None.
    infinite : coefficients of a logistic regression that diverge along `separator`, by name or number.
    classes : the labels, sorted; rivals are indices into it.
    proof : all claims and what proves them, in exact numbers.

    Examples
    --------
    >>> from separatrix import Certificate, certify
    >>> X, y = [[3, 2], [-2, 2], [-2, -3]], [1, -1, 1]
    >>> text = certify(X, y, fit_intercept=False).to_json()
    >>> certificate = Certificate.from_json(text)
    >>> certificate.verdict, certificate.verify(X, y)
    ('separable', True)
    """

    def __init__(self, proof: Proof, classes: list[Any], feature_names: list[str] | None = None) -> None:
        self.proof = proof
        self.classes = classes
        self.feature_names = feature_names

    @property
    def verdict(self) -> str:
        """The answer: "separable", "touching", "inseparable" or "undecided"."""
        return self.proof.verdict

    @property
    def ties(self) -> str | None:
        """The meaning of a tie under which touching data are separable."""
        return self.proof.ties

    @property
    def separation(self) -> str | None:
        """The kind of separation: "complete", "quasi-complete", "overlap", or None where undecided."""
        return self.proof.separation

    @property
    def separator(self) -> tuple[Array, Any] | None:
        """The weights and the bias."""
        if self.proof.direction is None:
            return None
        numbers = [number for vector in self.proof.direction for number in vector]
        are_floats = all(abs(number) < 1 << 1000 and Fraction(float(number)) == number for number in numbers)
        table = np.array([[float(n) if are_floats else n for n in vector] for vector in self.proof.direction])
        w, b = table[:, : self.proof.d], table[:, self.proof.d] if self.proof.bias else np.zeros(len(table))
        return (w[0], b[0]) if self.proof.n_classes == 2 else (w, b)

    @property
    def margin(self) -> tuple[float, float] | None:
        """The interval of the best margin, or None where there is none."""
        if self.verdict == "touching":
            return 0.0, 0.0
        return None if self.proof.margin is None else (self.proof.margin.lower, self.proof.margin.upper)

    @property
    def geometric_margin(self) -> tuple[float, float] | None:
        """The interval of the best margin with the bias unpenalised, or None where there is none."""
        return None if self.proof.geometric is None else (self.proof.geometric.lower, self.proof.geometric.upper)

    @property
    def radius(self) -> float:
        """The largest norm."""
        return root(self.proof.radius_squared)

    @property
    def mistake_bound(self) -> int | None:
        """The largest number of mistakes that a perceptron can make, or None where nothing bounds it."""
        return self.proof.mistake_bound

    @property
    def witness(self) -> Witness | None:
        """The examples that rule out a strict separator, with their exact weights."""
        return self.proof.witness

    @property
    def infinite(self) -> list[Any]:
        """The coefficients, by name or number, of a logistic regression that diverge along `separator`."""
        if self.proof.direction is None:
            return []
        names: list[Any] = list(self.feature_names or range(self.proof.d)) + ["intercept"] * self.proof.bias
        vectors = self.proof.direction
        moving = [any(vector[j] != vectors[0][j] for vector in vectors) if len(vectors) > 1 else vectors[0][j] != 0
                  for j in range(len(names))]  # fmt: skip
        return [name for name, moves in zip(names, moving, strict=True) if moves]

    def verify(self, X: Any, y: Any) -> bool:
        """Return whether every claim holds for the data, checked exactly, without the code that found it.

        "undecided" claims nothing that could be checked, and does not verify.

        Examples
        --------
        >>> from separatrix import certify
        >>> X, y = [[1, 1], [1, -1], [-1, 1], [-1, -1]], [1, -1, -1, 1]
        >>> certify(X, y).verify(X, y), certify(X, y).verify(X, [1, 1, -1, -1])
        (True, False)
        """
        return self.fault(X, y) is None

    def fault(self, X: Any, y: Any) -> str | None:
        """Return what does not hold for these data, or None."""
        rows, labels, _ = read_examples(X, y)
        if len(set(self.classes)) != self.proof.n_classes or sorted(self.classes) != self.classes:
            return "the classes are not sorted and unique"
        if self.feature_names is not None and len(self.feature_names) != self.proof.d:
            return f"there are {len(self.feature_names)} feature names for {self.proof.d} features"
        try:
            codes = encode_as(np.asarray(self.classes), labels)
        except (ValueError, TypeError, ArithmeticError) as problem:
            return str(problem)
        return checker.fault(self.proof, rows.source, codes)

    def to_json(self, path: str | Path | None = None) -> str:
        """Return the certificate as JSON, every rational as "p/q"; also write it to `path` if given."""
        proof = self.proof
        document = {
            "format": FORMAT,
            "examples": proof.n,
            "features": proof.d,
            "feature_names": self.feature_names,
            "classes": self.classes,
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
        text = json.dumps(document, ensure_ascii=False, indent=1) + "\n"
        if path is not None:
            Path(path).write_text(text, encoding="utf-8")
        return text

    @classmethod
    def from_json(cls, source: str | Path) -> Certificate:
        """Read a certificate from JSON text, or from a file given as a `Path`."""
        try:
            document = json.loads(source.read_text(encoding="utf-8") if isinstance(source, Path) else source)
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
                direction=None if document["direction"] is None else _direction_in(document["direction"]),
                margin=_margin_in(document["margin"]),
                geometric=_margin_in(document["geometric_margin"]),
                radius_squared=_rational(document["radius_squared"]),
                mistake_bound=_bound(document["mistake_bound"]),
                witness=_witness_in(document["witness"]),
                spanning=_witness_in(document["spanning"]),
                equations=_direction_in(document["equations"]),
            )
            return cls(proof, classes, names)
        except (KeyError, TypeError, ValueError, ArithmeticError, AttributeError, RecursionError) as problem:
            what = f"{problem} is missing" if isinstance(problem, KeyError) else str(problem).split("\n")[0]
            raise ValueError(f"this is not a certificate: {what:.200}") from None

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Certificate):
            return NotImplemented
        return self.proof == other.proof and self.classes == other.classes and self.feature_names == other.feature_names

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return "Certificate: " + "\n  ".join(lines(self))

    def _repr_html_(self) -> str:
        return as_html(self)


def certify(
    X: Any, y: Any, *, fit_intercept: bool = True, exact: bool | str = "auto", time_limit: float | None = None
) -> Certificate:
    """Prove whether a linear classifier can get every example right, by what margin, or which few examples forbid it.

    Parameters
    ----------
    X : array, CSR matrix or data frame of shape (n_examples, n_features)
    y : labels; two classes, or K classes jointly (L2 5)
    fit_intercept : allow a bias, by augmenting x with a 1.
    exact : how the margin is computed. "auto" narrows its interval to about nine digits, with exact arithmetic where
        floating point stalls. True always uses exact arithmetic. False, if the verdict is enough, reports the margin of the
        first separator, an upper end that is easy to prove, and with a bias no geometric margin. The proof is always exact.
    time_limit : in seconds; what is not decided by then stays "undecided".

    Examples
    --------
    Example 1 of L4 is separable; the margin is 4/√26 and R = 4, so no perceptron ever makes more than 26 mistakes on it.

    >>> from separatrix import certify
    >>> certificate = certify([[4, 0], [1, 1], [0, 1], [-2, -2]], [1, -1, -1, 1], fit_intercept=False)
    >>> certificate.verdict, certificate.mistake_bound
    ('separable', 26)

    XOR is not separable, and it takes all four points to prove it.

    >>> certificate = certify([[1, 1], [1, -1], [-1, 1], [-1, -1]], [1, -1, -1, 1])
    >>> certificate.verdict, certificate.witness.rows, [str(weight) for weight in certificate.witness.weights]
    ('inseparable', (0, 1, 2, 3), ['1/4', '1/4', '1/4', '1/4'])
    """
    if exact not in ("auto", True, False):
        raise ValueError(f"exact must be 'auto', True or False, not {exact!r}")
    if not isinstance(fit_intercept, bool | np.bool_):
        raise ValueError(f"fit_intercept must be True or False, not {fit_intercept!r}")
    if time_limit is not None and not (isinstance(time_limit, Real) and time_limit > 0):
        raise ValueError(f"time_limit must be a positive number of seconds or None, not {time_limit!r}")
    rows, labels, names = read_examples(X, y)
    classes, codes = encode(labels)
    check_two_classes(classes)
    if not all(isinstance(label, str | bool | int | float) for label in classes.tolist()):
        raise ValueError(
            f"labels must be strings or numbers to stand in a certificate, not {type(classes.tolist()[0]).__name__}"
        )
    proof = checked_proof(rows, codes, len(classes), bool(fit_intercept), exact, time_limit)
    return Certificate(proof, classes.tolist(), names)


def checked_proof(rows: Rows, codes: Any, n_classes: int, bias: bool, exact: bool | str, time_limit: float | None) -> Proof:
    """Return a proof that the checker accepts, or one of "undecided"."""
    proof = prove(rows, codes, n_classes, bias, exact, time_limit)
    if proof.verdict == "undecided" or checker.fault(proof, rows.source, codes) is None:
        return proof
    return Proof(proof.n, proof.d, proof.n_classes, proof.bias, "undecided", radius_squared=proof.radius_squared)


def _direction_out(direction: Direction | None) -> list[list[str]] | None:
    return None if direction is None else [[_written(number) for number in vector] for vector in direction]


def _direction_in(vectors: Any) -> Direction:
    return tuple(tuple(_rational(number) for number in vector) for vector in vectors)


def _witness_out(witness: Witness | None) -> dict[str, Any] | None:
    if witness is None:
        return None
    return {"rows": witness.rows, "rivals": witness.rivals, "weights": [_written(weight) for weight in witness.weights]}


def _witness_in(part: Any) -> Witness | None:
    if part is None:
        return None
    _check_fields(part, ("rows", "rivals", "weights"))
    rows, rivals = (tuple(_of(int, i) for i in part[name]) for name in ("rows", "rivals"))
    return Witness(rows, rivals, tuple(_rational(weight) for weight in part["weights"]))


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
    return MarginProof(_direction_in(part["direction"]), _rational(part["least"]), weights, float(lower), float(upper))


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
