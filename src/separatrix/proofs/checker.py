"""Checks a proof against the data alone, in exact rational arithmetic, without any code of the search.

A float is an exact rational. The sign of ⟨w,a⟩ is first computed in floating point, where the error is at most
(m+8)·u·‖x‖‖w‖ (u = 2⁻⁵³, any order of summation); a row whose score lies within that bound of the threshold is decided again
with integers, and so is a row so short or so long that its norm is lost to underflow or overflow. The sums of a witness must
be exactly 0, in integers. `proof.py` says what is claimed, and why that suffices.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from fractions import Fraction
from math import lcm
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from separatrix.proofs.proof import Direction, MarginProof, Proof, Witness

Signs = NDArray[np.int8]

_UNIT = 2.0**-53
_TINY = 1e-290
_SHORTEST, _LONGEST = 1e-130, 1e130
"""Norms of rows whose squares are lost neither to underflow, which takes less than _TINY, nor to overflow."""
_BLOCK, _CELLS = 1 << 21, 1 << 18
_PRIME = (1 << 31) - 19


class ExactExamples:
    """The rows x̃ of X, with a 1 appended where there is a bias, and the class of each."""

    def __init__(self, X: Any, codes: NDArray[Any], n_classes: int, bias: bool) -> None:
        self.X: Any = sp.csr_array(X) if sp.issparse(X) else np.asarray(X)
        self.codes = np.asarray(codes, np.int64)
        self.n, self.d = self.X.shape
        self.K, self.bias, self.m = n_classes, bias, self.X.shape[1] + bias
        self._norms: NDArray[np.float64] | None = None

    def blocks(self) -> Iterator[tuple[int, int, Any]]:
        """Yield (begin, end, rows as float64); integers above 2⁵³ are rounded, once."""
        step = max(1, _BLOCK // max(1, self.d))
        for begin in range(0, self.n, step):
            end = min(self.n, begin + step)
            block = self.X if end - begin == self.n else self.X[begin:end]  # slicing CSR copies it
            yield begin, end, block.astype(np.float64, copy=False)

    @property
    def norms(self) -> NDArray[np.float64]:
        """‖x̃‖ of each row, with a relative error far below 1/1000."""
        if self._norms is None:
            squares = np.empty(self.n)
            with np.errstate(all="ignore"):
                for begin, end, block in self.blocks():
                    if sp.issparse(block):
                        squares[begin:end] = np.asarray(block.multiply(block).sum(axis=1)).reshape(-1)
                    else:
                        squares[begin:end] = np.einsum("ij,ij->i", block, block)
                self._norms = np.sqrt(squares + self.bias)
        return self._norms

    def occupied(self, which: NDArray[Any]) -> NDArray[Any]:
        """Return the columns in which some rows x̃ can differ from 0."""
        columns = np.unique(self.X[which].indices) if sp.issparse(self.X) else np.arange(self.d)
        return np.append(columns, self.d) if self.bias else columns

    def signs(self, direction: Direction, threshold: Fraction) -> Signs:
        """Return the sign of ⟨w,a⟩ − threshold: one column for two classes, one for each rival for more (own class: 0)."""
        scale = lcm(threshold.denominator, *{number.denominator for vector in direction for number in vector})
        W = [_cleared(vector, scale) for vector in direction]
        (c,) = _cleared([threshold], scale)
        top = 1 << max(1, abs(c).bit_length(), *(abs(number).bit_length() for vector in W for number in vector))
        floats = np.array([[number / top for number in vector] for vector in W])
        coef = np.ascontiguousarray(floats[0, : self.d] if self.K == 2 else floats[:, : self.d].T)
        intercept = floats[:, self.d] if self.bias else np.zeros(len(W))
        size = float(np.max(np.sqrt(np.sum(floats * floats, axis=1)))) + _TINY
        limit = c / top
        out = np.zeros((self.n, 1 if self.K == 2 else self.K), np.int8)
        for begin, end, block in self.blocks():
            codes = self.codes[begin:end]
            with np.errstate(all="ignore"):
                scores = np.asarray(block @ coef).reshape(end - begin, -1) + intercept
                error = 2.02 * (self.m + 8) * _UNIT * (self.norms[begin:end] + _TINY)[:, None] * size + _TINY
                if self.K == 2:
                    leads = scores * np.where(codes == 1, 1.0, -1.0)[:, None]
                else:
                    leads = scores[np.arange(end - begin), codes][:, None] - scores
                    error = 2 * error
                error = error + 8 * _UNIT * abs(limit)
                leads = leads - limit
                norms = self.norms[begin:end, None]
                sure = (np.abs(leads) > error) & (norms > _SHORTEST) & (norms < _LONGEST)
            signs = np.where(leads > 0, 1, -1).astype(np.int8)
            if self.K > 2:
                sure[np.arange(end - begin), codes] = True
                signs[np.arange(end - begin), codes] = 0
            doubtful = np.flatnonzero(~sure.all(axis=1))
            if doubtful.size:
                self._decide(begin, doubtful, W, c, sure, signs)
            out[begin:end] = signs
        return out

    def _decide(self, begin: int, doubtful: NDArray[Any], W: list[list[int]], c: int, sure: Any, signs: Signs) -> None:
        """Replace the doubtful signs by exact ones."""
        if self._decide_in_whole_floats(begin, doubtful, W, c, signs):
            return
        vectors = np.array(W, object)
        used = np.flatnonzero([vector.any() for vector in vectors.T])
        for part in np.array_split(doubtful, 1 + len(doubtful) * min(len(used), 1 << 12) // _CELLS):
            columns = np.intersect1d(used, self.occupied(begin + part))
            table, cleared = self.whole_rows(begin + part, columns)
            scale = max(cleared, default=1)  # powers of two
            scores = table @ (vectors[:, columns] * np.array([scale // each for each in cleared], object)).T
            own = self.codes[begin + part]
            if self.K == 2:
                leads = scores * np.where(own == 1, 1, -1).astype(object)[:, None]
            else:
                leads = scores[np.arange(len(part)), own][:, None] - scores
            exact = (leads > c * scale).astype(np.int8) - (leads < c * scale)
            signs[part] = np.where(sure[part], signs[part], exact)

    def _decide_in_whole_floats(self, begin: int, doubtful: NDArray[Any], W: list[list[int]], c: int, signs: Signs) -> bool:
        """Decide with floats if they are exact: integers whose products and sums stay below 2⁵³. Return whether it did."""
        if max((abs(number) for vector in W for number in vector), default=0) >= 1 << 52 or abs(c) >= 1 << 50:
            return False
        rows = self.X[begin + doubtful].astype(np.float64)
        values = rows.data if sp.issparse(rows) else rows
        floats = np.array(W, dtype=np.float64)
        size = float(np.max(np.sqrt(np.sum(floats * floats, axis=1))))
        with np.errstate(all="ignore"):
            if not (values == np.floor(values)).all() or not (self.norms[begin + doubtful] * size < 2.0**50).all():
                return False
        scores = np.asarray(rows @ np.ascontiguousarray(floats[:, : self.d].T)) + (floats[:, self.d] if self.bias else 0.0)
        codes = self.codes[begin + doubtful]
        if self.K == 2:
            leads = scores * np.where(codes == 1, 1.0, -1.0)[:, None]
        else:
            leads = scores[np.arange(len(codes)), codes][:, None] - scores
        signs[doubtful] = np.sign(leads - c).astype(np.int8)
        if self.K > 2:
            signs[doubtful, codes] = 0
        return True

    def whole_rows(self, which: Any, columns: NDArray[Any] | None = None) -> tuple[NDArray[Any], list[int]]:
        """Return rows x̃, or some columns of them, as Python integers, and the denominator cleared from each column."""
        columns = np.arange(self.m) if columns is None else columns
        table = self.X[np.asarray(which)][:, columns[columns < self.d]]
        table = table.toarray() if sp.issparse(table) else table
        d = table.shape[1]
        whole, scales = np.ones((len(table), len(columns)), object), [1] * len(columns)
        if table.dtype.kind in "iub":
            whole[:, :d] = table.astype(object) + 0
            return whole, scales
        mantissas, exponents = np.frexp(table.astype(np.float64))
        exponents = np.where(mantissas != 0, exponents - 53, 1024)
        lowest = np.minimum(exponents.min(axis=0, initial=0), 0)
        raised = np.where(mantissas != 0, exponents - lowest, 0)
        whole[:, :d] = (mantissas * 2.0**53).astype(np.int64).astype(object) << raised.astype(object)
        scales[:d] = [1 << -int(exponent) for exponent in lowest]
        return whole, scales

    def combination(self, witness: Witness) -> dict[tuple[int, int], Fraction]:
        """Return the nonzero numbers of Σλa by (block, column); two classes share block 0."""
        scale = lcm(1, *(weight.denominator for weight in witness.weights))
        weights = np.array(_cleared(witness.weights, scale), object)
        rows, cleared = self.whole_rows(witness.rows)
        own, rivals = self.codes[list(witness.rows)], np.array(witness.rivals)
        total: dict[tuple[int, int], Fraction] = {}
        for block in range(1 if self.K == 2 else self.K):
            signs = np.where(own == 1, 1, -1) if self.K == 2 else (own == block).astype(int) - (rivals == block)
            for j, value in enumerate((weights * signs.astype(object)) @ rows):
                if value:
                    total[block, j] = Fraction(int(value), cleared[j] * scale)
        return total

    def within_radius(self, claimed: Fraction) -> bool:
        """Return whether every ‖x̃‖² is at most `claimed`, and the largest agrees with it to nine digits."""
        longest = float(np.max(self.norms))
        if not _SHORTEST < longest < _LONGEST:
            largest = max(map(self._square, range(self.n)))
            return largest <= claimed <= largest * (1 + Fraction(1, 10**9))
        if not claimed <= Fraction(longest * longest) * (1 + Fraction(1, 10**9)):
            return False
        squares, top = self.norms * self.norms, float(claimed)
        error = 2.02 * (self.m + 8) * _UNIT * squares + _TINY
        doubtful = np.flatnonzero(~(squares + error < top))
        if doubtful.size and top < 2.0**50:
            rows = self.X[doubtful].astype(np.float64)
            values = rows.data if sp.issparse(rows) else rows
            if (values == np.floor(values)).all():
                whole = rows.multiply(rows).sum(axis=1) if sp.issparse(rows) else np.einsum("ij,ij->i", rows, rows)
                return int(np.max(np.asarray(whole))) + self.bias <= claimed
        return all(self._square(i) <= claimed for i in doubtful.tolist())

    def _square(self, i: int) -> Fraction:
        (row,), cleared = self.whole_rows([i], self.occupied(np.array([i])))
        return sum((Fraction(int(value), scale) ** 2 for value, scale in zip(row, cleared, strict=True)), Fraction(0))


def fault(proof: Proof, X: Any, codes: NDArray[Any]) -> str | None:
    """Return what is wrong with the proof for these examples, or None when every claim holds."""
    examples = ExactExamples(X, codes, proof.n_classes, proof.bias)
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
        if direction is not None and (len(direction) != vectors or any(len(vector) != examples.m for vector in direction)):
            return "a direction has the wrong shape"
    witnesses = [proof.witness, proof.spanning] + [p.weights for p in (proof.margin, proof.geometric) if p is not None]
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


def _is_loose(examples: ExactExamples, ties: str) -> NDArray[np.bool_]:
    """Return for each pair whether a lead of 0 is right under this meaning of ties."""
    if examples.K == 2:
        return np.asarray(examples.codes == (1 if ties == "+1" else 0))[:, None]
    return np.asarray(np.arange(examples.K)[None, :] > examples.codes[:, None])


def _loose_pairs(proof: Proof, examples: ExactExamples, ties: str) -> list[bool]:
    assert proof.witness is not None
    loose = _is_loose(examples, ties)
    pairs = zip(proof.witness.rows, proof.witness.rivals, strict=True)
    return [bool(loose[i, 0 if examples.K == 2 else r]) for i, r in pairs]


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
    signs, loose = examples.signs(proof.direction, Fraction(0)), _is_loose(examples, proof.ties)
    if (signs < 0).any() or ((signs == 0) & ~loose & ~_own(examples)).any():
        return "the direction does not separate under that meaning of a tie"
    return None


def _own(examples: ExactExamples) -> NDArray[np.bool_]:
    if examples.K == 2:
        return np.zeros((examples.n, 1), bool)
    return np.asarray(np.arange(examples.K)[None, :] == examples.codes[:, None])


def _separation(proof: Proof, examples: ExactExamples) -> str | None:
    if (proof.separation == "complete") != (proof.verdict == "separable"):
        return '"complete" separation must come with the verdict "separable", and only with it'
    if proof.separation in (None, "complete"):
        return None
    if proof.separation == "quasi-complete":
        if proof.direction is None:
            return "quasi-complete separation needs an exact direction"
        signs = examples.signs(proof.direction, Fraction(0))
        fine = (signs >= 0).all() and (signs > 0).any()
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
        single = ExactExamples(examples.X, np.ones(examples.n), 2, proof.bias)
        if single.signs((equation,), Fraction(0)).any():
            return "an equation does not hold for every row"
    blocks = 1 if proof.n_classes == 2 else proof.n_classes - 1
    scales = [lcm(1, *(number.denominator for number in equation)) for equation in proof.equations]
    table = [_cleared(equation, scale) for equation, scale in zip(proof.equations, scales, strict=True)]
    if proof.equations and _rank(np.array(table, object)) < len(proof.equations):
        return "the equations are not independent"
    rows, _ = examples.whole_rows(spanning.rows)
    if proof.n_classes > 2:
        own, rivals = examples.codes[list(spanning.rows)][:, None], np.array(spanning.rivals)[:, None]
        signs = [((own == block).astype(object) + 0) - ((rivals == block) + 0) for block in range(1, proof.n_classes)]
        rows = np.concatenate([sign * rows for sign in signs], axis=1)
    if _rank(rows) + blocks * len(proof.equations) < blocks * examples.m:
        return "the spanning witness does not span all rows"
    return None


def _rank(whole: NDArray[Any]) -> int:
    """Return the rank modulo a prime, which is never above the true one."""
    table, rank = (whole % _PRIME).astype(np.int64), 0
    for j in range(table.shape[1]):
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
    bound = factor * proof.radius_squared * _square(proof.margin.direction, examples.m) / proof.margin.least**2
    return None if proof.mistake_bound == bound.__floor__() else "the mistake bound is not the floor of R²/γ²"


def _square(direction: Direction, width: int) -> Fraction:
    scale = lcm(1, *(number.denominator for vector in direction for number in vector))
    return Fraction(sum(whole * whole for vector in direction for whole in _cleared(vector[:width], scale)), scale * scale)


def _cleared(numbers: Iterable[Fraction], scale: int) -> list[int]:
    """Return numbers × scale, for a scale that every denominator divides."""
    return [number.numerator * (scale // number.denominator) for number in numbers]


def _margin(part: MarginProof, examples: ExactExamples, penalised: bool) -> str | None:
    width = examples.m if penalised else examples.d
    if not penalised and examples.K > 2:
        return "a geometric margin is defined for two classes only"
    if part.least <= 0 or not 0 <= part.lower <= part.upper:
        return "a margin interval must be positive, with its ends in order"
    if (examples.signs(part.direction, part.least) < 0).any():
        return "a lead is below the smallest one that is claimed"
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
