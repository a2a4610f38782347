"""The contents of a certificate: exact numbers, and the examples that they belong to.

Let aᵢ = yᵢx̃ᵢ for two classes; for K classes a pair (row i, rival r) has x̃ᵢ in the block of its own class and −x̃ᵢ in that of
the rival. Everything a certificate claims follows from *directions* w with signs of ⟨w,a⟩, and from *witnesses*: weights
λ > 0 on a few pairs whose combination Σλa is zero, or short.

What is claimed, and why the checks suffice (a stands for yx̃, or for the pair of an example and a rival):

    separable       ⟨w,a⟩ ≥ least > 0 for every a; the mistake bound R²‖w‖²/least² is Novikoff's theorem
    inseparable     λ > 0 with Σλa = 0: a w positive on all these a would give 0 = ⟨w,Σλa⟩ > 0 (Gordan)
    touching        the same, on pairs that are right at a score of 0, and a w that is right on all others
    quasi-complete  ⟨w,a⟩ ≥ 0 for every a, not all 0 (Albert and Anderson 1984)
    overlap         λ > 0 with Σλa = 0 on rows that span all rows: a w without a negative lead is 0 on every row
    margin          least/‖w‖ ≤ γ ≤ ‖Σλa‖/Σλ
"""

from __future__ import annotations

from dataclasses import dataclass, field
from fractions import Fraction


@dataclass(frozen=True)
class Witness:
    """Rows with exact positive weights; `rivals` has for each the index of the class that it is set against."""

    rows: tuple[int, ...]
    rivals: tuple[int, ...]
    weights: tuple[Fraction, ...]

    def __len__(self) -> int:
        """Return the number of weighted pairs."""
        return len(self.rows)

    def normalised(self) -> Witness:
        """Return the same witness with weights that add up to 1."""
        total = sum(self.weights, Fraction(0))
        return Witness(self.rows, self.rivals, tuple(weight / total for weight in self.weights))


Direction = tuple[tuple[Fraction, ...], ...]
"""One vector in the space of x̃ for two classes, one for each class for more; the bias, if there is one, comes last.

Where these would be very many numbers, a direction is a sum of examples, w = Σλa, and stated by a `Witness`."""


@dataclass(frozen=True)
class MarginProof:
    """lower ≤ γ ≤ upper: every lead ⟨w,a⟩ is at least `least`, and the combination Σλa is short.

    lower ≤ least/‖w‖ and ‖Σλa‖/Σλ ≤ upper. For the geometric margin the norms leave the bias out, and Σλy = 0.
    """

    direction: Direction | Witness
    least: Fraction
    weights: Witness
    lower: float
    upper: float


@dataclass(frozen=True)
class Proof:
    """The claims about one data set, and what proves them.

    `direction` is a separator, or proves quasi-complete separation. `witness` proves that there is no strict separator.
    `spanning` and `equations` prove overlap: a witness whose rows span all rows, and the linear equations of that span.
    """

    n: int
    d: int
    n_classes: int
    bias: bool
    verdict: str
    ties: str | None = None
    separation: str | None = None
    direction: Direction | Witness | None = None
    margin: MarginProof | None = None
    geometric: MarginProof | None = None
    radius_squared: Fraction = Fraction(0)
    mistake_bound: int | None = None
    witness: Witness | None = None
    spanning: Witness | None = None
    equations: tuple[tuple[Fraction, ...], ...] = field(default=())
