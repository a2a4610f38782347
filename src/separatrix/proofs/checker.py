"""Checks a proof against the data alone, in exact rational arithmetic, without any code of the search.

`proof.py` says what is claimed, and why the checks suffice; `exact_examples.py` computes signs and sums. The sums of a
witness must be exactly 0, in integers.
"""

from __future__ import annotations

from fractions import Fraction
from math import lcm
from typing import Any

import numpy as np
from numpy.typing import NDArray

from separatrix.proofs.exact_examples import ExactExamples, Pause, multiplied
from separatrix.proofs.proof import Direction, MarginProof, Proof, Witness

_PRIME = (1 << 31) - 19
_ROUNDED = Fraction(101, 100)


def fault(proof: Proof, X: Any, codes: NDArray[Any], pause: Pause = lambda: None) -> str | None:
    """Return what is wrong with the proof for these examples, or None when every claim holds.

    `pause` is called now and then; it may raise, which ends the check.
    """
    examples = ExactExamples(X, codes, proof.n_classes, proof.bias, pause)
    if (examples.n, examples.d) != (proof.n, proof.d):
        return f"the proof is for {proof.n} × {proof.d} numbers, but the data have {examples.n} × {examples.d}"
    for check in (_well_formed, _verdict, _separation, _numbers):
        problem = check(proof, examples)
        if problem is not None:
            return problem
    return None


def _well_formed(proof: Proof, examples: ExactExamples) -> str | None:
    spanned = proof.spanning is not None or bool(proof.equations)
    directed = proof.direction is not None and proof.separation not in ("complete", "quasi-complete")
    if directed or (spanned and proof.separation != "overlap"):
        return "there is a direction or a spanning witness, but the separation that it would prove is not claimed"
    vectors = 1 if proof.n_classes == 2 else proof.n_classes
    directions = [proof.direction] + [part.direction for part in (proof.margin, proof.geometric) if part is not None]
    for direction in directions:
        if direction is None or isinstance(direction, Witness):
            continue
        if len(direction) != vectors or any(len(vector) != examples.m for vector in direction):
            return "a direction has the wrong shape"
    witnesses = [proof.witness, proof.spanning] + [p.weights for p in (proof.margin, proof.geometric) if p is not None]
    witnesses += [direction for direction in directions if isinstance(direction, Witness)]
    for witness in witnesses:
        if witness is None:
            continue
        if not len(witness.rows) == len(witness.rivals) == len(witness.weights) or not witness.rows:
            return "a witness is empty, or its rows, rivals and weights differ in number"
        for i, rival, weight in zip(witness.rows, witness.rivals, witness.weights, strict=True):
            if not 0 <= i < examples.n or not 0 <= rival < proof.n_classes or rival == examples.codes[i]:
                return f"a witness sets row {i} against class {rival}, but these data have no such pair"
            if weight <= 0:
                return f"a witness has a weight on row {i} that is not positive"
        if len(set(zip(witness.rows, witness.rivals, strict=True))) != len(witness.rows):
            return "a witness contains a pair twice"
    return None


def _is_loose(K: int, codes: NDArray[Any], ties: str) -> NDArray[np.bool_]:
    """Return for each pair of rows of these classes whether a lead of 0 is right under this meaning of ties."""
    if K == 2:
        return np.asarray(codes == (1 if ties == "+1" else 0))[:, None]
    return np.asarray(np.arange(K)[None, :] > codes[:, None])


def _loose_pairs(proof: Proof, examples: ExactExamples, ties: str) -> list[bool]:
    assert proof.witness is not None
    loose = _is_loose(examples.K, examples.codes[list(proof.witness.rows)], ties)
    return [bool(row[0 if examples.K == 2 else r]) for row, r in zip(loose, proof.witness.rivals, strict=True)]


def _verdict(proof: Proof, examples: ExactExamples) -> str | None:
    meanings = ("+1", "-1") if proof.n_classes == 2 else ("first",)
    if (proof.ties is not None) != (proof.verdict == "touching"):
        return "a meaning of ties must be given for touching data, and only for these"
    if proof.verdict == "separable":
        if proof.direction is None or proof.witness is not None:
            return 'the verdict "separable" needs a separator and no witness'
        same = proof.margin is not None and proof.direction == proof.margin.direction  # _margin compares its leads
        return None if same else "the separator is not the direction whose margin is proven"
    if proof.verdict not in ("touching", "inseparable"):
        return f"{proof.verdict!r} is not a verdict that can be proven"
    if proof.witness is None:
        return f"the verdict {proof.verdict!r} needs a witness"
    if examples.combination(proof.witness):
        return "the witness does not add up to zero"
    if proof.verdict == "inseparable":
        allowed = [ties for ties in meanings if not proof.bias and all(_loose_pairs(proof, examples, ties))]
        return f"the witness does not exclude a separator under ties that mean {allowed[0]!r}" if allowed else None
    if proof.ties is None or proof.ties not in meanings or not all(_loose_pairs(proof, examples, proof.ties)):
        return "the witness is not on the side that the ties favour"
    if proof.direction is None:
        return 'the verdict "touching" needs an exact direction'
    for begin, end, signs in examples.signs(proof.direction, Fraction(0)):
        codes = examples.codes[begin:end]
        loose = _is_loose(examples.K, codes, proof.ties)
        if (signs < 0).any() or ((signs == 0) & ~loose & ~_own(examples.K, codes)).any():
            return "the direction does not separate under that meaning of a tie"
    return None


def _own(K: int, codes: NDArray[Any]) -> NDArray[np.bool_]:
    if K == 2:
        return np.zeros((len(codes), 1), bool)
    return np.asarray(np.arange(K)[None, :] == codes[:, None])


def _separation(proof: Proof, examples: ExactExamples) -> str | None:
    if (proof.separation == "complete") != (proof.verdict == "separable"):
        return '"complete" separation must come with the verdict "separable", and only with it'
    if proof.separation in (None, "complete"):
        return None
    if proof.separation == "quasi-complete":
        if proof.direction is None:
            return "quasi-complete separation needs an exact direction"
        ends = [(signs.min(), signs.max()) for _, _, signs in examples.signs(proof.direction, Fraction(0))]
        fine = min(ends)[0] >= 0 and max(top for _, top in ends) > 0
        return None if fine else "the direction has a negative lead, or none that is positive"
    if proof.separation != "overlap" or proof.spanning is None:
        return f"{proof.separation!r} is not proven"
    return _overlap(proof, proof.spanning, examples)


def _overlap(proof: Proof, spanning: Witness, examples: ExactExamples) -> str | None:
    """Check λ > 0 and Σλa = 0 on rows that span all rows: a w without a negative lead is 0 on these, hence on every row.

    The rows span all rows if their rank and the number of independent equations ⟨v,x̃⟩ = 0, which hold for every row, add up
    to the number of columns. For K classes this counts for each of K − 1 blocks, as the blocks of a pair add up to 0.
    """
    if examples.combination(spanning):
        return "the spanning witness does not add up to zero"
    for equation in proof.equations:
        if len(equation) != examples.m:
            return "an equation has the wrong length"
        single = ExactExamples(examples.X, np.ones(examples.n), 2, proof.bias, examples.pause)
        if any(signs.any() for _, _, signs in single.signs((equation,), Fraction(0))):
            return "an equation does not hold for every row"
    blocks = 1 if proof.n_classes == 2 else proof.n_classes - 1
    scales = [lcm(1, *(number.denominator for number in equation)) for equation in proof.equations]
    table = [multiplied(equation, scale) for equation, scale in zip(proof.equations, scales, strict=True)]
    if proof.equations and _rank(np.array(table, object), examples.pause) < len(proof.equations):
        return "the equations are not independent"
    rows, _ = examples.whole_rows(spanning.rows)
    if proof.n_classes > 2:
        own, rivals = examples.codes[list(spanning.rows)][:, None], np.array(spanning.rivals)[:, None]
        signs = [((own == block).astype(object) + 0) - ((rivals == block) + 0) for block in range(1, proof.n_classes)]
        rows = np.concatenate([sign * rows for sign in signs], axis=1)
    if _rank(rows, examples.pause) + blocks * len(proof.equations) < blocks * examples.m:
        return "the spanning witness does not span all rows"
    return None


def _rank(whole: NDArray[Any], pause: Pause) -> int:
    """Return the rank modulo a prime, which is never above the true one."""
    table, rank = (whole % _PRIME).astype(np.int64), 0
    for j in range(table.shape[1]):
        pause()
        nonzero = np.flatnonzero(table[rank:, j])
        if not nonzero.size:
            continue
        pivot = rank + int(nonzero[0])
        table[[rank, pivot]] = table[[pivot, rank]]
        table[rank] = table[rank] * pow(int(table[rank, j]), -1, _PRIME) % _PRIME
        below = rank + 1 + np.flatnonzero(table[rank + 1 :, j])
        table[below] = (table[below] - table[below, j][:, None] * table[rank] % _PRIME) % _PRIME
        rank += 1
        if rank == len(table):
            break
    return rank


def _numbers(proof: Proof, examples: ExactExamples) -> str | None:
    if not examples.within_radius(proof.radius_squared):
        return "the radius is not the largest norm"
    if proof.verdict != "separable":
        claimed = proof.margin is not None or proof.geometric is not None or proof.mistake_bound is not None
        return "a margin or a mistake bound is claimed, but the data are not separable" if claimed else None
    if proof.margin is None or proof.mistake_bound is None:
        return 'the verdict "separable" needs a margin and a mistake bound'
    problem = _margin(proof.margin, examples, penalised=True)
    if problem is None and proof.geometric is not None:
        problem = _margin(proof.geometric, examples, penalised=False)
    if problem is not None:
        return problem
    factor = 1 if proof.n_classes == 2 else 2
    direction = proof.margin.direction
    if isinstance(direction, Witness):  # ‖w‖ is known up to rounding, and so is the bound
        bound = factor * proof.radius_squared * examples.total(direction).length() ** 2 / proof.margin.least**2
        is_bound = bound.__floor__() <= proof.mistake_bound <= bound * _ROUNDED + 1
        return None if is_bound else "the mistake bound is below R²/γ², or far above it"
    bound = factor * proof.radius_squared * _square(direction, examples.m) / proof.margin.least**2
    return None if proof.mistake_bound == bound.__floor__() else "the mistake bound is not the floor of R²/γ²"


def _square(direction: Direction, width: int) -> Fraction:
    scale = lcm(1, *(number.denominator for vector in direction for number in vector))
    return Fraction(sum(whole * whole for vector in direction for whole in multiplied(vector[:width], scale)), scale * scale)


def _margin(part: MarginProof, examples: ExactExamples, penalised: bool) -> str | None:
    width = examples.m if penalised else examples.d
    if not penalised and examples.K > 2:
        return "a geometric margin is defined for two classes only"
    if part.least <= 0 or not 0 <= part.lower <= part.upper:
        return "a margin interval must be positive, with its ends in order"
    if any((signs < 0).any() for _, _, signs in examples.signs(part.direction, part.least)):
        return "a lead is below the smallest one that is claimed"
    if isinstance(part.direction, Witness):
        return _margin_of_sum(part, part.direction, examples, penalised)
    norm = _square(part.direction, width)
    if Fraction(part.lower) ** 2 * norm > part.least**2:
        return "the lower end of a margin is above least/‖w‖"
    total = sum(part.weights.weights, Fraction(0))
    combination = examples.combination(part.weights)
    if not penalised and examples.bias and (0, examples.d) in combination:
        return "the weights of the geometric margin do not balance the classes"
    length = sum((value * value for (_, j), value in combination.items() if j < width), Fraction(0))
    if length > (Fraction(part.upper) * total) ** 2:
        return "the upper end of a margin is below ‖Σλa‖/Σλ"
    return None


def _margin_of_sum(part: MarginProof, direction: Witness, examples: ExactExamples, penalised: bool) -> str | None:
    """Check the ends of a margin whose direction is a sum of examples; its leads have been compared."""
    if not penalised and examples.bias:
        return "a geometric margin needs a direction in full"
    if Fraction(part.lower) * examples.total(direction).length() > part.least:
        return "the lower end of a margin is above least/‖w‖"
    if examples.total(part.weights).length() > Fraction(part.upper) * sum(part.weights.weights, Fraction(0)):
        return "the upper end of a margin is below ‖Σλa‖/Σλ"
    return None
