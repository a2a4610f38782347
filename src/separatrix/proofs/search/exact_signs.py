"""The exact sign of ⟨w,a⟩ for every pair, and whether a combination Σλa is exactly zero: what the search relies on.

Scores are first computed in floating point. For a row of m numbers the error is at most (m+8)·u·‖x̃‖‖w‖ with u = 2⁻⁵³, in
whatever order the products are added, and twice that with rounded inputs. A pair whose lead is not beyond this bound, or
whose row is too short or too long for it, is computed again with integers. The checker has its own implementation of both,
on purpose.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from fractions import Fraction
from math import lcm
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from separatrix.engine.rows import Floats, Ints
from separatrix.proofs.clock import check_time
from separatrix.proofs.search.pairs import Pairs
from separatrix.proofs.search.rationals import Whole, whole_columns

Signs = NDArray[np.int8]

_UNIT = 2.0**-53
_TINY = 1e-290
"""More than underflow can take away."""
_SHORTEST, _LONGEST = 1e-130, 1e130
"""Norms of rows that neither underflow nor overflow when squared; the bound holds for these."""
_CHUNK_CELLS = 200_000


def exact_signs(pairs: Pairs, w: Sequence[Fraction] | Floats) -> Signs:
    """Return the sign of ⟨w,a⟩ by the number of the pair; 0 at a row's own class."""
    signs = np.zeros(pairs.rows.n * pairs.blocks, np.int8)
    with np.errstate(all="ignore"):
        for begin, end, block in blocks_of_signs(pairs, w):
            signs[begin * pairs.blocks : end * pairs.blocks] = block
    return signs


def blocks_of_signs(pairs: Pairs, w: Sequence[Fraction] | Floats) -> Iterator[tuple[int, int, Signs]]:
    """Yield blocks of rows, begin and end, with the signs of their pairs."""
    if isinstance(w, np.ndarray):  # of wide data, these are too many numbers to write out as integers
        whole: Whole | Floats = w
        floats = np.ldexp(w, -int(np.frexp(np.abs(w).max(initial=0.0))[1]))
    else:
        numbers, _ = _cleared(w)
        top = 1 << max(1, max(abs(number).bit_length() for number in numbers))
        whole, floats = np.array(numbers, object), np.array([number / top for number in numbers])
    if not floats.any():
        for begin, end in pairs.row_blocks():
            yield begin, end, np.zeros((end - begin) * pairs.blocks, np.int8)
        return
    length = float(np.sqrt(np.sum(floats.reshape(pairs.blocks, -1) ** 2, axis=1).max())) + _TINY
    for begin, end, signs, doubtful in _blocks_of_rounded_signs(pairs, floats, length):
        if doubtful.size:
            signs[doubtful] = _signs_of_whole_floats(pairs, begin * pairs.blocks + doubtful, whole)
        yield begin, end, signs


def _blocks_of_rounded_signs(pairs: Pairs, floats: Floats, length: float) -> Iterator[tuple[int, int, Signs, Ints]]:
    """Yield blocks of the signs of ⟨w,a⟩ in floating point, w of vectors up to this length, and which may be wrong."""
    scores_per_lead = 1 if pairs.K == 2 else 2
    with np.errstate(all="ignore"):
        error = 2.02 * scores_per_lead * (pairs.m + 8) * _UNIT * (pairs.norms + _TINY) * length + _TINY
        error[~((pairs.norms > _SHORTEST) & (pairs.norms < _LONGEST))] = np.inf
    for begin, end, leads in pairs.blocks_of_leads(floats):
        with np.errstate(all="ignore"):
            there = pairs.existing(begin, end)
            signs = np.where(leads > 0, np.int8(1), np.int8(-1)) * there
            doubtful = np.flatnonzero(~(np.abs(leads) > np.repeat(error[begin:end], pairs.blocks)) & there)
        yield begin, end, signs, doubtful


def _cleared(numbers: Sequence[Fraction] | Floats) -> tuple[list[int], int]:
    """Return the numbers multiplied by the least common denominator, and that denominator."""
    fractions = [Fraction(number) for number in (numbers.tolist() if isinstance(numbers, np.ndarray) else numbers)]
    scale = lcm(1, *{number.denominator for number in fractions})
    return [number.numerator * (scale // number.denominator) for number in fractions], scale


def _signs_of_whole_floats(pairs: Pairs, which: Ints, w: Whole | Floats) -> Signs:
    """Return the signs of some pairs, in floating point where that is exact, else in integers.

    Floating point is exact where all numbers are integers and ‖x̃‖‖w‖ < 2⁵⁰: by Cauchy and Schwarz no sum of some of the
    products exceeds that, whatever the order.
    """
    rows = np.unique(pairs.row_of(which))
    if np.abs(w).max() < 1 << 52 and (w.dtype == object or bool((w == np.floor(w)).all())):
        floats = w.astype(np.float64)
        length = float(np.sqrt(np.sum(floats.reshape(pairs.blocks, -1) ** 2, axis=1).max()))
        with np.errstate(over="ignore"):
            is_exact = bool((pairs.norms[rows] * length < 2.0**50).all()) and pairs.is_whole(rows)
        if is_exact:
            return np.sign(pairs.leads_of(floats, which)).astype(np.int8)
    return _signs_of_integers(pairs, which, w)


def _signs_of_integers(pairs: Pairs, which: Ints, w: Whole | Floats) -> Signs:
    """Return the signs of some pairs from integer products, a few rows at a time."""
    W = w.reshape(pairs.blocks, pairs.m)
    signs = np.empty(len(which), np.int8)
    row_of, rival_of = pairs.row_of(which), pairs.rival_of(which)
    step = max(1, _CHUNK_CELLS // max(pairs.m, pairs.blocks))
    if pairs.rows.sparse:  # rows of q numbers each have up to q·step columns together
        step = max(step, int((_CHUNK_CELLS * pairs.rows.n / max(1, pairs.rows.source.nnz)) ** 0.5))
    for begin in range(0, len(which), step):
        check_time()
        part = slice(begin, begin + step)
        rows, place = np.unique(row_of[part], return_inverse=True)
        scores = _integer_scores(pairs, rows, W)[place]
        if pairs.K == 2:
            leads = scores[:, 0] * pairs.signs[row_of[part]].astype(np.int64).astype(object)
        else:
            every = np.arange(len(scores))
            leads = scores[every, pairs.codes[row_of[part]]] - scores[every, rival_of[part]]
        signs[part] = (leads > 0).astype(np.int8) - (leads < 0).astype(np.int8)
    return signs


def _integer_scores(pairs: Pairs, rows: Ints, W: Whole | Floats) -> Whole:
    """Return the scores of some rows, each times the same power of two."""
    taken = pairs.rows.source[rows]
    columns = np.unique(taken.indices) if sp.issparse(taken) else np.arange(pairs.rows.d)
    columns = columns[(W[:, columns] != 0).any(axis=0)]
    taken = taken[:, columns]
    bias: Any = W[:, pairs.rows.d :]
    if W.dtype != object:
        used = np.concatenate([W[:, columns], bias], axis=1)
        whole = np.array(_cleared(used.reshape(-1))[0], object).reshape(used.shape)
        products, bias = whole[:, : len(columns)], whole[:, len(columns) :]
    else:
        products = W[:, columns]
    taken = taken.toarray() if sp.issparse(taken) else taken
    table, shifts = whole_columns(np.asarray(taken))
    common = max(shifts, default=0)
    raised = [1 << (common - shift) for shift in shifts]
    scores: Whole = (table * np.array(raised, object)) @ products.T
    return scores + (bias[:, 0] << common) if pairs.bias else scores


def is_balanced(pairs: Pairs, which: Ints, weights: Sequence[Fraction]) -> bool:
    """Tell whether Σλa is exactly zero."""
    whole, _ = _cleared(weights)
    table, _ = pairs.whole(which)
    return not (np.array(whole, object) @ table).any()
