"""Linear systems of integers solved exactly: p-adic lifting (Dixon 1982), and elimination where there are few unknowns.

    x = x₀ + x₁p + x₂p² + …,   xₖ = M⁻¹rₖ mod p,   r₀ = b,   rₖ₊₁ = (rₖ − M·xₖ)/p

One inverse modulo p, then one matrix–vector product for each digit; the residuals stay as small as M and b. By Cramer's
rule numerators and denominators of x are determinants, which Hadamard's inequality bounds by B; once p^k > 2B², Euclid's
algorithm recovers each fraction uniquely. Large numbers occur only in that last step, so 500 unknowns are no problem.
The number of digits grows with the length of the numbers in M, and so does the work for each digit: for up to 20 unknowns,
elimination without fractions (Bareiss 1968) is faster, a hundred times where the numbers have a thousand bits.
"""

from __future__ import annotations

from fractions import Fraction
from math import inf, isqrt, lcm, ldexp, nextafter, sqrt
from typing import Any

import numpy as np
from numpy.typing import NDArray

from separatrix.kernels import modular
from separatrix.proofs.clock import check_time

Whole = NDArray[Any]
"""An array of Python integers (dtype object)."""

_LIMB = 24
"""Binary digits of a part of a number: products with 16 digits, summed over up to 2¹³ unknowns, are exact in float64."""
_FEW = 20
"""Systems with so many unknowns are solved by elimination; for larger ones it was measured to be the slower method."""
_CELLS_AT_ONCE = 10_000_000
"""About so many numbers are eliminated between two looks at the clock."""
_PRODUCTS_AT_ONCE = 1_000_000
"""About so many products of long integers are added up between two looks at the clock."""


def whole_columns(table: NDArray[Any]) -> tuple[Whole, list[int]]:
    """Return the numbers of a float or integer table as Python integers, column j multiplied by 2^shifts[j]."""
    if table.dtype.kind in "iub":
        return table.astype(object), [0] * table.shape[1]
    mantissa, exponent = np.frexp(table.astype(np.float64))
    odd = (mantissa * 2.0**53).astype(np.int64)
    zeros = np.frexp((odd & -odd).astype(np.float64))[1] - 1
    lowest = np.where(odd != 0, exponent - 53 + zeros, 0)
    shifts = np.maximum(-lowest.min(axis=0, initial=0), 0)
    left = np.where(odd != 0, lowest + shifts, 0)
    whole = np.where(odd != 0, odd >> np.maximum(zeros, 0), 0).astype(object) << left.astype(object)
    return whole, shifts.tolist()


def product(A: Whole, B: Whole) -> Whole:
    """Return A·B, looking at the clock now and then."""
    parts = []
    for rows in np.array_split(A, max(1, min(len(A), A.size * B.shape[1] // _PRODUCTS_AT_ONCE))):
        check_time()
        parts.append(rows @ B)
    return np.concatenate(parts)


def residues(M: Whole) -> NDArray[np.uint64]:
    """Return M mod p."""
    return (M % modular.PRIME).astype(np.uint64)


def independent(M: Whole) -> tuple[list[int], list[int]]:
    """Return rows and columns of M, as many as its rank, that make a nonsingular square (modulo p, hence truly)."""
    order, pivots = eliminated(residues(M), M.shape[1], False)
    return order[: len(pivots)].tolist(), pivots.tolist()


def eliminated(table: NDArray[np.uint64], width: int, upward: bool) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Bring the first `width` columns of a table modulo p into echelon form; return the order of rows, and the pivots."""
    order, pivots, rank = np.arange(len(table)), np.empty(max(1, min(table.shape)), np.int64), 0
    step = max(1, _CELLS_AT_ONCE // max(1, table.size))
    for first in range(0, width, step):
        check_time()
        rank = int(modular.eliminate(table, first, min(width, first + step), upward, rank, order, pivots))
    return order, pivots[:rank]


class System:
    """A nonsingular square matrix of integers, ready to be solved."""

    def __init__(self, M: Whole) -> None:
        self.M, self.size = M, len(M)
        joined = np.concatenate([residues(M), np.eye(self.size, dtype=np.uint64)], axis=1)
        if len(eliminated(joined, self.size, True)[1]) < self.size:
            raise ValueError("the system is singular modulo p")
        inverse = joined[:, self.size :].astype(np.int64)
        self.inverse = [(inverse & 0xFFFF).astype(np.float64), (inverse >> 16).astype(np.float64)]
        self.limbs: list[NDArray[np.float64]] = []
        rest, sign = np.abs(M), np.where(M < 0, -1, 1)
        while self.size > _FEW and (rest != 0).any():
            self.limbs.append(((rest & ((1 << _LIMB) - 1)) * sign).astype(np.float64))
            rest = rest >> _LIMB

    def _times(self, digits: NDArray[np.int64]) -> Whole:
        """Return M·digits for digits below 2³¹."""
        halves, total = _halves(digits), np.zeros(self.size, object)
        for place, limb in enumerate(self.limbs):
            low, high = ((limb @ half).astype(np.int64).astype(object) for half in halves)
            total += (low + (high << 16)) << (place * _LIMB)
        return total

    def _inverse_times(self, r: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return M⁻¹r modulo p."""
        p, halves, total = modular.PRIME, _halves(r), np.zeros(self.size, np.int64)
        for place, part in enumerate(self.inverse):
            low, high = ((part @ half).astype(np.int64) % p for half in halves)
            total += (high * (1 << 16) + low) % p * (1 << (16 * place)) % p
        return np.asarray(total % p)

    def solve(self, b: Whole) -> list[Fraction]:
        """Return the exact x with M·x = b."""
        if self.size <= _FEW:
            return _eliminated_exactly(self.M, b)
        p, bound = modular.PRIME, 1
        for row in self.M:
            check_time()
            bound *= isqrt(int((row * row).sum())) + 1
        top = bound * (isqrt(int((b * b).sum())) + 1)
        enough = 2 * top * top + 1
        digits: list[NDArray[np.int64]] = []
        residual, modulus = b.astype(object), 1
        while modulus < enough:
            check_time()
            x = self._inverse_times((residual % p).astype(np.int64))
            residual = (residual - self._times(x)) // p
            digits.append(x)
            modulus *= p
            if not residual.any():
                break
        return _fractions(digits, modulus, exact=not residual.any())


def _halves(digits: NDArray[np.int64]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return the lower and the upper 16 binary digits; products with one column at a time are the fastest of BLAS."""
    return (digits & 0xFFFF).astype(np.float64), (digits >> 16).astype(np.float64)


def _eliminated_exactly(M: Whole, b: Whole) -> list[Fraction]:
    """Return the x with M·x = b by Bareiss' elimination: each division is exact, because its result is a determinant."""
    rows = [[int(value) for value in (*row, right)] for row, right in zip(M, b, strict=True)]
    last = 1
    for k in range(len(rows)):
        check_time()
        pivot = next(t for t in range(k, len(rows)) if rows[t][k])
        rows[k], rows[pivot] = rows[pivot], rows[k]
        top = rows[k][k]
        for row in rows[k + 1 :]:
            first = row[k]
            for j in range(k + 1, len(row)):
                row[j] = (row[j] * top - first * rows[k][j]) // last
        last = top
    # M's determinant is the last pivot. It times x is whole by Cramer's rule, so no fraction is needed here either.
    multiples = [0] * len(rows)
    for k in reversed(range(len(rows))):
        known = sum(rows[k][j] * multiples[j] for j in range(k + 1, len(rows)))
        multiples[k] = (rows[k][-1] * last - known) // rows[k][k]
    return [Fraction(value, last) for value in multiples]


def _fractions(digits: list[NDArray[np.int64]], modulus: int, exact: bool) -> list[Fraction]:
    """Return the fractions that p-adic digits stand for; the denominator of one is tried on the next, as most share it."""
    out: list[Fraction] = []
    denominator, limit = 1, isqrt(modulus // 2)
    joined: list[Any] = [block.astype(object) for block in digits]
    base = modular.PRIME
    while len(joined) > 1:  # two by two, so that long numbers are multiplied few times
        check_time()
        pairs = zip(joined[::2], [*joined[1::2], 0][: len(joined[::2])], strict=True)
        joined, base = [low + high * base for low, high in pairs], base * base
    for value in joined[0].tolist():
        check_time()
        if exact:
            out.append(Fraction(value))
            continue
        numerator = value * denominator % modulus
        numerator -= modulus if 2 * numerator > modulus else 0
        if max(abs(numerator), denominator) <= limit:
            out.append(Fraction(numerator, denominator))
            continue
        top, bottom = _reconstruct(value, modulus)
        denominator = lcm(denominator, bottom)
        out.append(Fraction(top, bottom))
    return out


def _reconstruct(value: int, modulus: int) -> tuple[int, int]:
    """Return (p, q) with p ≡ q·value and both below the root of half the modulus."""
    limit = isqrt(modulus // 2)
    a, b, s, t = modulus, value, 0, 1
    while b > limit:
        quotient = a // b
        a, b, s, t = b, a - quotient * b, t, s - quotient * t
    return (b, t) if t > 0 else (-b, -t)


def dependency(V: Whole) -> list[Fraction] | None:
    """Return the λ with Σλv = 0 over the rows v of V, unique up to its scale, or None if there is not exactly one."""
    rows, columns = independent(V)
    if len(rows) != len(V) - 1:
        return None
    (dependent,) = set(range(len(V))) - set(rows)
    if not rows:
        return None if V.any() else [Fraction(1)]
    solution = System(V[np.ix_(rows, columns)].T.copy()).solve(-V[dependent, columns])
    weights = [Fraction(1)] * len(V)
    for row, weight in zip(rows, solution, strict=True):
        weights[row] = weight
    size = lcm(*(weight.denominator for weight in weights))
    multiples = np.array([weight.numerator * (size // weight.denominator) for weight in weights], object)
    return None if (multiples @ V).any() else weights  # the rank modulo p may be too low


def root_below(square: Fraction) -> float:
    """Return a float that is at most the root of `square`, within two floats of it."""
    guess = root(square)
    while guess > 0 and Fraction(guess) ** 2 > square:
        guess = nextafter(guess, 0.0)
    return guess


def root_above(square: Fraction) -> float:
    """Return a float that is at least the root of `square`, within two floats of it."""
    guess = root(square)
    while Fraction(guess) ** 2 < square:
        guess = nextafter(guess, inf)
    return guess


def root(square: Fraction) -> float:
    """Return the root of `square`, correct to about one float."""
    shift = (square.numerator.bit_length() - square.denominator.bit_length()) // 2
    even = square / Fraction(4) ** shift
    return ldexp(sqrt(float(even)), shift)
