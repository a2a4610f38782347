"""What a certificate is made of: exact numbers, and the examples they stand beside.

Let aᵢ = yᵢx̃ᵢ for two classes; for K classes a pair (row i, rival r) has x̃ᵢ in the block of its own class and −x̃ᵢ in that of
the rival. Everything a certificate claims follows from *directions* w with signs of ⟨w,a⟩, and from *witnesses*: weights
λ > 0 on a few pairs whose combination Σλa is zero, or short.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from fractions import Fraction


@dataclass(frozen=True)
class Witness:
    """Examples with exact positive weights; `rivals` are the classes (by place) that each row is set against."""

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
"""One vector of x̃-space for two classes, one a class for more; the bias, where there is one, comes last."""


@dataclass(frozen=True)
class MarginProof:
    """lower ≤ γ ≤ upper: every lead ⟨w,a⟩ is at least `least`, and the combination Σλa is short.

    lower = least/‖w‖ and upper = ‖Σλa‖/Σλ. For the geometric margin the norms leave the bias out and Σλy = 0.
    """

    direction: Direction
    least: Fraction
    weights: Witness
    lower: float
    upper: float


@dataclass(frozen=True)
class Proof:
    """The claims about one data set, and what proves them."""

    n: int
    d: int
    n_classes: int
    bias: bool
    verdict: str
    ties: str | None = None
    separation: str | None = None
    direction: Direction | None = None
    margin: MarginProof | None = None
    geometric: MarginProof | None = None
    radius_squared: Fraction = Fraction(0)
    mistake_bound: int | None = None
    witness: Witness | None = None
    spanning: Witness | None = None
    equations: tuple[tuple[Fraction, ...], ...] = field(default=())
