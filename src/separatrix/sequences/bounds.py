"""The mistake bounds of the structured perceptron (Collins 2002, theorems 1 and 2).

u has length 1, m_i = s_u(y_i) − max over z ≠ y_i of s_u(z) is the margin of sequence i, R the largest ‖φ(y) − φ(ẑ)‖ of the
corrections that were made.

    separable     γ = min m_i > 0:   k ≤ R²/γ²; with weights s of the sequences, (Σs)²/Σs² ≤ R²/γ², sums over the mistakes
    any data      k ≤ ((R + √T·D)/γ)² in T passes, for any γ > 0, where D² = Σ max(0, γ − m_i)²
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from math import inf, sqrt
from typing import TYPE_CHECKING, Any

import numpy as np

from separatrix.data.errors import counted
from separatrix.engine.rows import Array, Floats, frozen
from separatrix.kernels.sequences import paths
from separatrix.sequences.encoded import Encoded, PathWeights
from separatrix.sequences.run import room_for

if TYPE_CHECKING:
    from separatrix.sequences.tagger import SequenceTagger

CANDIDATES = 256


@dataclass(frozen=True)
class SequenceBounds:
    """What the theorems say of a run, in its own numbers.

    Attributes
    ----------
    mistakes : how many were made
    counted : what the theorem bounds: the mistakes, or (Σs)²/Σs² where sequences have weights s
    radius : R, the largest ‖φ(y) − φ(ẑ)‖ of a correction
    margin : γ of the separator that was found, less what rounding could have added; 0 where none was found
    bound : the smallest bound of a theorem that applies; infinite where none does
    theorem : which one, or why none does
    """

    mistakes: int
    counted: float
    radius: float
    margin: float
    bound: float
    theorem: str

    @property
    def holds(self) -> bool:
        """Whether the bound is not exceeded; true where no theorem applies."""
        return self.counted <= self.bound * (1 + 1e-9)

    def to_dict(self) -> dict[str, Any]:
        """Return all figures as JSON values; an infinite bound is None."""
        return asdict(self) | {"holds": self.holds, "bound": None if self.bound == inf else self.bound}

    def __str__(self) -> str:
        lines = [f"{counted(self.mistakes, 'mistake')}; {self.theorem}"]
        if self.bound < inf:
            lines.append(f"R = {self.radius:.6g}, γ = {self.margin:.6g}: at most {self.bound:,.1f}")
        return "\n".join(lines)


def sequence_bounds(model: SequenceTagger, encoded: Encoded, codes: Array) -> SequenceBounds:
    """Return the bound on the mistakes of a run over these sequences."""
    ledger, d = model.ledger_, model.n_features_in_
    k, correction = len(ledger), ledger.correction
    if ledger.absent:
        raise ValueError("the mistakes were not kept, on shards or in the model file: there is nothing to bound")
    if not ledger.has_tags(model.checked(encoded), codes):
        raise ValueError("y does not have the tags of the training: the true paths of the ledger's mistakes are others")
    counted = float(correction.sum() ** 2 / (correction**2).sum()) if k else 0.0
    if model.run_.rule != "perceptron":
        return SequenceBounds(k, counted, 0.0, 0.0, inf, f"no theorem bounds the corrections of rule={model.run_.rule!r}")
    radius = sqrt(ledger.squares(encoded, d).max(initial=0.0))
    candidates = [model.run_.weights(averaged) for averaged in (False, True)]
    measured = [margins_of(encoded, codes, weights, model.run_.forbidden, length_of(weights)) for weights in candidates]
    margins = max(measured, key=lambda margins: margins.min(initial=inf))
    gamma = float(margins.min(initial=inf))
    if 0.0 < gamma < inf:
        why = "Collins's first theorem: the sequences are separable, and k ≤ R²/γ²"
        return SequenceBounds(k, counted, radius, gamma, (radius / gamma) ** 2, why)
    if np.any(correction != 1.0):
        return SequenceBounds(k, counted, radius, 0.0, inf, "no separator was found, and sequences have weights: no bound")
    margins = max(measured, key=lambda margins: float(np.mean(np.maximum(margins, 0.0))))
    gamma, bound = _smallest(margins, radius, len(ledger.pass_starts))
    if bound == inf:
        return SequenceBounds(k, counted, radius, 0.0, inf, "no margin is positive under the weights found: no bound")
    why = "Collins's second theorem, for sequences that the weights found do not separate: k ≤ ((R + √T·D)/γ)²"
    return SequenceBounds(k, counted, radius, gamma, bound, why)


def length_of(weights: PathWeights) -> float:
    """Return the length of the weights of features and of transitions."""
    return sqrt(float((weights.W * weights.W).sum() + (weights.T * weights.T).sum()))


def margins_of(encoded: Encoded, codes: Array, weights: PathWeights, forbidden: Array, length: float) -> Floats:
    """Return the margin of each sequence for weights divided by their length, less a bound on the error of rounding."""
    margins = np.zeros(len(encoded))
    if not length:
        return margins
    (places, W, T), K = weights, weights.K
    room = room_for(encoded, K)
    paths.margins(encoded.rows, encoded.starts, codes, frozen(places), (W, T), forbidden, K, room, margins)
    # A sum of n terms of size M at most is off by n²·M·ε at most; two such sums are subtracted.
    terms = encoded.indptr[encoded.starts[1:]] - encoded.indptr[encoded.starts[:-1]] + np.diff(encoded.starts) + 1
    largest = max(float(np.abs(W).max(initial=0.0)), float(np.abs(T).max()))
    largest *= max(1.0, float(np.abs(encoded.data).max(initial=1.0)))
    error = 2.0 * np.finfo(np.float64).eps * terms.astype(np.float64) ** 2 * largest
    return (margins - error) / (length * (1 + 1e-12))


def _smallest(margins: Floats, radius: float, passes: int) -> tuple[float, float]:
    """Return γ and the bound of the second theorem that is smallest over some γ."""
    finite = margins[np.isfinite(margins)]
    best = (0.0, inf)
    if not np.any(finite > 0):
        return best
    for gamma in np.geomspace(finite.max() / 1e3, 4 * finite.max(), CANDIDATES).tolist():
        shortfall = sqrt(float((np.maximum(0.0, gamma - finite) ** 2).sum()))
        bound = ((radius + sqrt(passes) * shortfall) / gamma) ** 2
        if bound < best[1]:
            best = (gamma, bound)
    return best
