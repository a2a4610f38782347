"""A separator of all pairs, or the face of a witness: the perceptron first, then one search after the other.

Floating point searches, at the sizes and in the coordinates in which it sees the data best; exact arithmetic accepts what it
finds, and decides small sets at last.
"""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from functools import partial
from typing import Any

import numpy as np

from separatrix.engine.rows import Floats, Ints
from separatrix.proofs.clock import begin, check_time
from separatrix.proofs.search.exact_signs import blocks_of_signs
from separatrix.proofs.search.joint_search import confused_classes, descend, needs_descent, of_classes
from separatrix.proofs.search.pairs import Leads, Pairs
from separatrix.proofs.search.perceptron import smallest_leads, trained_perceptron
from separatrix.proofs.search.rationals import Whole, dependency
from separatrix.proofs.search.refinement import search as refined_search
from separatrix.proofs.search.rescaling import (
    MOST_CELLS,
    ORDINARY,
    MovedPairs,
    recoordinated,
    with_columns_divided,
    with_rows_at_one_size,
)
from separatrix.proofs.search.separation import Face, balanced
from separatrix.proofs.search.separator_search import Failures, Field, decide, decide_exactly, widest_balance

_UNEVEN, _SCATTERED = 1e6, 1e30
"""Where norms differ by such factors, rows are searched at one size: after a first search, or at once.

Of rows so scattered, refined linear programs take long and often fail.
"""
_WIDEST_CELLS = 1_000_000
"""The widest witness is sought among so many numbers at most."""
_MOST_FAILURES = 1 << 20
"""Of very many pairs, about so many on which a separator fails are looked for."""


def separator_or_witness(pairs: Pairs, tell: Callable[[str], None] = begin) -> Any:
    """Return a separator w (floats or fractions), or the face of a first witness, or None; `tell` what is done now."""
    sized = None if pairs.is_tiny else with_rows_at_one_size(pairs, _SCATTERED)
    if sized is not None:
        return _at_original_lengths(pairs, *sized, tell)
    tell("training a perceptron")
    shifts: list[list[int]] = [[]]

    def accept_whole(w: Any) -> Any:
        bad = _not_positive(pairs, w)
        return Failures(bad) if bad.size else w

    w, clean = trained_perceptron(pairs) if pairs.exponent <= ORDINARY else (None, False)
    accepted = accept_whole(w) if clean else None  # rounding can make a lead of 0 positive
    if accepted is not None and not isinstance(accepted, Failures):
        return accepted
    scales = pairs.column_scales()
    at_columns_size = with_columns_divided(pairs, scales)
    searched = pairs if at_columns_size is None else at_columns_size
    if w is None or searched is not pairs:
        w, clean = trained_perceptron(searched)
        accepted = accept_whole(_divided(w, scales)) if clean else None
        if accepted is not None and not isinstance(accepted, Failures):
            return accepted
    hard = smallest_leads(searched, w)

    def accept_separator(v: Any) -> Any:
        if not isinstance(v, np.ndarray):
            w: Any = [value * (1 << shift) for value, shift in zip(v, shifts[0], strict=True)]
        else:
            w = v / scales if searched is pairs else _divided(v, scales)
        return accept_whole(w)

    def accept_witness(which: Ints, weights: list[Fraction] | None) -> Face | None:
        weights = dependency(pairs.whole(which)[0]) if weights is None else weights
        if weights is None or min(weights) < 0 or not any(weights):
            return None
        positive = [t for t, weight in enumerate(weights) if weight]
        return Face(which[positive], [weights[t] for t in positive], None)

    def whole(which: Ints) -> tuple[Whole, Whole]:
        table, shifts[0] = pairs.whole(which)
        return table, table[:0]

    if searched is pairs:
        field = Field(pairs.dim, lambda v: Leads(pairs, v / scales), lambda which: pairs.vectors(which) / scales, whole)
    else:
        field = Field(pairs.dim, partial(Leads, searched), searched.vectors, whole)
    tell("searching for a separator or a witness")
    if needs_descent(pairs) and searched is pairs:
        descent = descend(pairs, scales)
        result = accept_separator(descent.w) if descent.separates else None
        if result is not None and not isinstance(result, Failures):
            return result
        for classes in confused_classes(pairs, descent) if tell is begin else ():
            alone, numbers = of_classes(pairs, classes)
            face = separator_or_witness(alone, lambda _: check_time())
            if isinstance(face, Face):
                return Face(numbers[face.pairs], face.weights, None)
        which, weights = descent.nearly_balanced(pairs.K, 4 * pairs.dim)
        exact = balanced(pairs, which, weights) if which.size else None
        if exact is not None:
            return Face(which, exact, None)
        hard = np.union1d(hard, descent.hardest(2 * pairs.dim))
    answer = decide(field, hard, accept_separator, accept_witness, last_resort=False)
    simple = decide_exactly(field, hard, accept_separator, accept_witness) if answer is None and pairs.is_tiny else None
    sized = with_rows_at_one_size(pairs, _UNEVEN) if answer is None and simple is None else None
    if sized is not None:
        answer = _at_original_lengths(pairs, *sized, tell)
    answer = widest_witness(pairs, hard) if answer is None and simple is None else answer
    is_last = isinstance(simple, Face) or bool(pairs.norms.max() > _SCATTERED * pairs.norms.min())
    if answer is None and (simple is None or not is_last):  # a refined separator has a better margin than a vertex
        tell("refining linear programs")
        answer = refined_search(pairs, hard, accept_whole, accept_witness if simple is None else None)
    answer = simple if answer is None else answer
    if answer is None and not pairs.is_tiny and pairs.rows.n * pairs.m <= MOST_CELLS:
        tell("searching in exact arithmetic")
        skip = pairs.m if pairs.K > 2 else 0  # adding the same vector to the weights of all classes changes no lead

        def whole_but_first(which: Ints) -> tuple[Whole, Whole]:
            table, free = whole(which)
            return table[:, skip:], free[:, skip:]

        def accept_rest(v: Any) -> Any:
            return accept_separator([Fraction(0)] * skip + v)

        smaller = Field(pairs.dim - skip, field.leads, field.vectors, whole_but_first)
        answer = decide_exactly(smaller, hard, accept_rest, accept_witness)
    moved = recoordinated(pairs) if answer is None else None
    if answer is not None or moved is None:
        return answer

    def accept_moved(v: Any) -> Any:
        return accept_whole(moved.back(v))

    def moved_witness(which: Ints, weights: list[Fraction] | None) -> Face | None:
        return accept_witness(which, None if weights is None else resized(moved, which, weights, back=True))

    def moved_whole(which: Ints) -> tuple[Whole, Whole]:
        table, _ = moved.whole(which)
        return table, table[:0]

    other = Field(moved.dim, partial(Leads, moved), moved.vectors, moved_whole)
    return decide(other, hard, accept_moved, moved_witness)


def _at_original_lengths(pairs: Pairs, sized: Pairs, exponents: Ints, tell: Callable[[str], None]) -> Any:
    """Return the answer about rows divided by 2^exponents as one about the rows themselves.

    Where there is none, a separator through the origin may exist. A search with a bias may miss it: beside rows of length
    10⁻¹⁵ a bias must be as small as that.
    """
    answer = separator_or_witness(sized, tell)
    if answer is None and pairs.bias:
        through_origin = separator_or_witness(Pairs(pairs.rows, pairs.codes, pairs.K, False), tell)
        if through_origin is None or isinstance(through_origin, Face):
            return None
        W = np.array(through_origin, object).reshape(pairs.blocks, pairs.rows.d)
        return [Fraction(value) for value in np.hstack([W, np.zeros((pairs.blocks, 1), object)]).reshape(-1)]
    if not isinstance(answer, Face):
        return answer
    down = exponents[pairs.row_of(answer.pairs)].tolist()
    weights = [weight * Fraction(2) ** -e for weight, e in zip(answer.weights, down, strict=True)]
    return Face(answer.pairs, weights, None)


def widest_witness(pairs: Pairs, hard: Ints) -> Face | None:
    """Return a witness on as many pairs as possible: of the hardest and a sample, or of all, where these are few enough.

    Smaller witnesses of vectors of very different lengths balance up to rounding only, and with as many unknowns as
    equations nothing is left to adjust. Here the weights of a basis are adjusted until the sum is exactly 0.
    """
    from scipy.linalg import qr  # loading it takes longer than most proofs

    first = pairs.m if pairs.K > 2 else 0  # the blocks of a pair add up to 0
    tried = [np.union1d(hard, pairs.some(4 * pairs.dim, np.random.default_rng(2)))]
    if pairs.count * pairs.dim <= _WIDEST_CELLS:
        tried.append(np.flatnonzero(pairs.exist))
    for which in tried:
        check_time()
        if len(which) * pairs.dim > _WIDEST_CELLS:
            return None
        Z, bits = pairs.vectors(which)[:, first:], np.zeros(len(which), np.int64)
        for axis in (1, 0, 1):  # rows of one size, then columns, which changes the rows again
            sizes = np.abs(Z).max(axis=axis, keepdims=True)
            up = -np.frexp(sizes)[1].astype(np.int64)
            Z, bits = np.ldexp(Z, up), bits - (up[:, 0] if axis else 0)
        if not (sizes.all() and np.isfinite(sizes).all()):
            return None
        weights = widest_balance(Z)
        support = np.flatnonzero(weights > 0) if weights is not None else np.arange(0)
        if weights is None or not support.size:
            continue
        support = support[qr(Z[support].T, mode="r", pivoting=True)[1]]  # a basis first, well conditioned
        each = zip(weights[support].tolist(), bits[support].tolist(), strict=True)
        numbers = [Fraction(weight) * Fraction(2) ** -e for weight, e in each]
        exact = balanced(pairs, which[support], numbers)
        if exact is not None:
            return Face(which[support], exact, None)
    return None


def _not_positive(pairs: Pairs, w: Any) -> Ints:
    """Return the pairs without a positive lead, exactly; where the pairs are very many, the first million or so."""
    parts, count = [], 0
    for first, last, signs in blocks_of_signs(pairs, w):
        parts.append(first * pairs.blocks + np.flatnonzero((signs <= 0) & pairs.existing(first, last)))
        count += len(parts[-1])
        if pairs.are_many and count > _MOST_FAILURES:
            break
    return np.concatenate(parts)


def _divided(w: Floats, scales: Floats) -> list[Fraction]:
    """Return w / scales exactly, where floating point would overflow or underflow."""
    return [Fraction(value) / Fraction(scale) for value, scale in zip(w.tolist(), scales.tolist(), strict=True)]


def resized(moved: MovedPairs, which: Ints, weights: list[Fraction], back: bool) -> list[Fraction]:
    """Return weights of the same witness: a row is `sizes` times longer in the moved table than in the data."""
    sizes = [moved.sizes[i] for i in moved.row_of(which).tolist()]
    return [weight * size if back else weight / size for weight, size in zip(weights, sizes, strict=True)]
