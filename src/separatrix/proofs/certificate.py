"""Whether a linear classifier can get all examples right, with a proof that can be checked (L1 4 and 8–10, L2 7, L4 5–7).

`verdict` and `separation` answer two questions. The verdict is about strict scores: *separable* if some w has every
⟨w,a⟩ > 0; *touching* if that needs a meaning for a score of 0; else *inseparable*. The separation is the statisticians'
distinction (Albert and Anderson 1984): *complete*; *quasi-complete* if some w has no negative ⟨w,a⟩, and not all are 0; else
*overlap*.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from fractions import Fraction
from math import inf
from numbers import Real
from pathlib import Path
from typing import Any

import numpy as np

from separatrix.data.atomic import replacing
from separatrix.engine.labels import check_two_classes, encode, encode_as
from separatrix.engine.rows import Array, Rows
from separatrix.proofs import checker
from separatrix.proofs.clock import TimeUp, begin, check_time, watched
from separatrix.proofs.document import as_json, from_text
from separatrix.proofs.inputs import read_examples
from separatrix.proofs.proof import Proof, Witness
from separatrix.proofs.prover import prove
from separatrix.proofs.search.pairs import Pairs
from separatrix.proofs.search.rationals import root
from separatrix.proofs.search.wide import summed
from separatrix.proofs.wording import as_html, lines

Progress = Callable[[str, str | None], None]
_GRACE = 5.0
"""The most seconds after the time limit that the check of a proof may take."""


class Certificate:
    """A proven answer about one data set. `certify` returns it, `verify` checks it, `to_json` saves it.

    Attributes
    ----------
    verdict : "separable", "touching", "inseparable" or "undecided".
    ties : the meaning of a tie under which touching data are separable ("+1", "-1"; "first" for K classes), or None.
    separation : "complete", "quasi-complete", "overlap", or None where undecided.
    separator : (w, b), or None. float64 where that is exact, else arrays of `Fraction`. Separable: every example is
        strictly right. Otherwise no example is strictly wrong and not all are at 0. Of more than 2,000 weights the proof
        states w as a sum of examples; then (w, b) is that sum rounded to float64, and needs the data: after reading a
        certificate from a file, call `verify` first.
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
        self._data: tuple[Rows, Any] | None = None
        """The examples, where they are known: a separator that is stated as a sum of examples is computed from them."""

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
        if isinstance(self.proof.direction, Witness):
            if self._data is None:
                raise ValueError(
                    "this certificate states its separator as a sum of examples: call verify(X, y) with these first"
                )
            coef, intercept = summed(Pairs(*self._data, self.proof.n_classes, self.proof.bias), self.proof.direction)
            return (coef[0], intercept[0]) if self.proof.n_classes == 2 else (coef, intercept)
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
        if isinstance(vectors, Witness):
            separator = self.separator
            assert separator is not None
            w, b = np.atleast_2d(separator[0]), np.atleast_1d(separator[1])
            columns = np.flatnonzero((w != (w[0] if len(w) > 1 else 0)).any(axis=0)).tolist()
            is_moving = self.proof.bias and bool((b != (b[0] if len(b) > 1 else 0)).any())
            return [names[j] for j in [*columns, *[self.proof.d] * is_moving]]
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

    def fault(self, X: Any, y: Any, feature_names: Sequence[str] | None = None) -> str | None:
        """Return what does not hold for these data, or None. `feature_names` are those of X, if X itself has none."""
        rows, labels, names = read_examples(X, y)
        names = names if feature_names is None else list(feature_names)
        if len(set(self.classes)) != self.proof.n_classes or sorted(self.classes) != self.classes:
            return "the classes are not sorted and unique"
        if self.feature_names is not None and len(self.feature_names) != self.proof.d:
            return f"there are {len(self.feature_names)} feature names for {self.proof.d} features"
        if None not in (self.feature_names, names) and self.feature_names != names:
            return "the feature names are not those of the data, in their order"
        try:
            codes = encode_as(np.asarray(self.classes), labels)
        except (ValueError, TypeError, ArithmeticError) as problem:
            return str(problem)
        fault = checker.fault(self.proof, rows.source, codes)
        if fault is None:
            self._data = rows, codes
        return fault

    def to_json(self, path: str | Path | None = None) -> str:
        """Return the certificate as JSON, every rational as "p/q"; also write it to `path` if given."""
        text = as_json(self)
        if path is not None:
            with replacing(path) as name:
                Path(name).write_text(text, encoding="utf-8")
        return text

    @classmethod
    def from_json(cls, source: str | Path) -> Certificate:
        """Read a certificate from JSON text, or from a file given as a `Path`."""
        return cls(*from_text(source.read_bytes() if isinstance(source, Path) else source))

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Certificate):
            return NotImplemented
        return self.proof == other.proof and self.classes == other.classes and self.feature_names == other.feature_names

    def __getstate__(self) -> dict[str, Any]:
        return self.__dict__ | {"_data": None}

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return "Certificate: " + "\n  ".join(lines(self))

    def _repr_html_(self) -> str:
        return as_html(self)


def certify(
    X: Any,
    y: Any,
    *,
    fit_intercept: bool = True,
    exact: bool | str = "auto",
    time_limit: float | None = None,
    progress: Progress | None = None,
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
    time_limit : in seconds, the check of the proof included; what is not decided by then stays "undecided", or open.
    progress : a function that is called with what is done now, and the verdict once it is proven (None before): "searching
        for a separator or a witness", None. The verdict is known before the margin and the kind of separation.

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
    begun = time.monotonic()
    if time_limit is not None and not (isinstance(time_limit, Real) and time_limit > 0):
        raise ValueError(f"time_limit must be a positive number of seconds or None, not {time_limit!r}")
    rows, labels, names = read_examples(X, y)
    classes, codes = encode(labels)
    check_two_classes(classes)
    if not all(isinstance(label, str | bool | int | float) for label in classes.tolist()):
        raise ValueError(
            f"labels must be strings or numbers to stand in a certificate, not {type(classes.tolist()[0]).__name__}"
        )
    left = None if time_limit is None else float(time_limit) - (time.monotonic() - begun)
    proof = checked_proof(rows, codes, len(classes), bool(fit_intercept), exact, left, progress)
    certificate = Certificate(proof, classes.tolist(), names)
    if isinstance(proof.direction, Witness):
        certificate._data = rows, codes
    return certificate


def checked_proof(
    rows: Rows,
    codes: Any,
    n_classes: int,
    bias: bool,
    exact: bool | str,
    time_limit: float | None,
    progress: Progress | None = None,
) -> Proof:
    """Return the best proof that the checker accepts in time, or one of "undecided"."""
    limit = inf if time_limit is None else time_limit
    deadline = time.monotonic() + limit
    accepted: list[Proof] = []

    def tell(activity: str) -> None:
        if progress is not None:
            progress(activity, accepted[-1].verdict if accepted else None)

    def offer(proof: Proof) -> None:
        if proof.verdict == "undecided":
            return
        with watched(deadline + min(_GRACE, limit / 10), tell):
            begin("checking the proof")
            if checker.fault(proof, rows.source, codes, check_time) is None:
                accepted.append(proof)
                tell("the verdict is proven")

    with watched(deadline, tell), suppress(TimeUp):
        offer(prove(rows, codes, n_classes, bias, exact, offer))
    if accepted:
        return accepted[-1]
    radius_squared = Pairs(rows, codes, n_classes, bias).radius_squared
    return Proof(rows.n, rows.d, n_classes, bias, "undecided", radius_squared=radius_squared)
