"""From data to a proof: the perceptron first, then the search, then how far from separable.

A clean pass of the perceptron is a separator (Novikoff's theorem, L1 10: on separable data it must come, and it often comes
soon). Only where none comes does the search of `separator_search` run, with columns scaled by powers of two, which is exact;
where floating point cannot decide, that of `refinement`; and at last an exact one in other coordinates (`rescaling`). The
result is not checked here.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from functools import partial
from itertools import combinations
from typing import Any

import numpy as np

from separatrix.engine.rows import Floats, Ints, Rows
from separatrix.proofs.clock import TimeUp, begin, check_time
from separatrix.proofs.proof import MarginProof, Proof, Witness
from separatrix.proofs.search.exact_signs import blocks_of_signs
from separatrix.proofs.search.first_witness import first_witness, first_witness_with, together
from separatrix.proofs.search.joint_search import needs_descent, of_classes
from separatrix.proofs.search.margin_interval import at_least, flattened, interval, primitive, squared
from separatrix.proofs.search.pairs import Pairs
from separatrix.proofs.search.rationals import root_above, root_below
from separatrix.proofs.search.rescaling import (
    MovedPairs,
    at_ordinary_size,
    recoordinated,
)
from separatrix.proofs.search.separation import Face, Signs, climb, equations, lifted, one_sided
from separatrix.proofs.search.verdict import resized, separator_or_witness, widest_witness
from separatrix.proofs.search.wide import WIDE, WidePairs, separable, with_used_columns

Offer = Callable[[Proof], None]

_SOON = 20_000
"""From so many numbers on, the verdict is offered before the rest is known."""


def prove(rows: Rows, codes: Any, n_classes: int, bias: bool, exact: bool | str, offer: Offer) -> Proof:
    """Return a proof, or one of "undecided"; `certificate.checked_proof` checks it before anybody relies on it.

    As soon as the verdict can be proven, `offer` gets a proof of it: the margin and the kind of separation, which follow,
    may take much longer. `watched` sets the time limit, after which `TimeUp` is raised.
    """
    with np.errstate(all="ignore"):  # where floating point overflows, what it finds fails the exact checks
        pairs = Pairs(rows, codes, n_classes, bias)
        ordinary = at_ordinary_size(pairs)
        if ordinary is None:
            return _proven(pairs, exact, offer)
        scaled, e = ordinary

        def offer_original(proof: Proof) -> None:
            offer(_at_original_size(proof, rows.d, bias, e))

        proof = _proven(scaled, exact, offer_original)
        return _at_original_size(proof, rows.d, bias, e)


def _at_original_size(proof: Proof, d: int, bias: bool, e: int) -> Proof:
    """Return the proof about 2^e times the vectors; the bias, which was a column, is a bias again."""
    size = Fraction(2) ** e
    margin = None
    if proof.margin is not None:
        part, least = proof.margin, proof.margin.least * size
        if isinstance(part.direction, Witness):  # of longer vectors the same sum is longer, too
            ends = [Fraction(end) * size for end in (part.lower, part.upper)]
            margin = replace(part, least=least * size, lower=root_below(ends[0] ** 2), upper=root_above(ends[1] ** 2))
        else:
            square = squared(flattened(part.direction))
            lower, upper = root_below(least * least / square), root_above((Fraction(part.upper) * size) ** 2)
            margin = replace(part, least=least, lower=lower, upper=upper)
    geometric = margin if proof.geometric is not None and not bias else None
    radius_squared = proof.radius_squared * size * size
    return replace(proof, d=d, bias=bias, margin=margin, geometric=geometric, radius_squared=radius_squared)


def _proven(pairs: Pairs, exact: bool | str, offer: Offer) -> Proof:
    rows, n_classes, bias = pairs.rows, pairs.K, pairs.bias
    blank = Proof(rows.n, rows.d, n_classes, bias, "undecided", radius_squared=pairs.radius_squared)
    if pairs.dim > WIDE:
        return _proven_wide(pairs, blank, exact, offer)
    answer = separator_or_witness(pairs)
    if isinstance(answer, Face):
        return _not_separable(pairs, blank, answer, offer)
    return blank if answer is None else _separable(pairs, blank, answer, exact, offer)


def _proven_wide(pairs: Pairs, blank: Proof, exact: bool | str, offer: Offer) -> Proof:
    wide = WidePairs(with_used_columns(pairs))
    answer = wide.search()
    if isinstance(answer, Face):
        if not _is_decisive(pairs, answer.pairs):
            return blank
        proof = replace(blank, verdict="inseparable", witness=pairs.witness(answer.pairs, answer.weights))
        offer(proof)
        begin("looking for features that speak for or against a class")
        direction = one_sided(pairs)
        return proof if direction is None else replace(proof, separation="quasi-complete", direction=direction)
    if answer is None:
        return blank
    proof = separable(wide, blank, answer, answer)
    if exact is not False:
        offer(proof)
        begin("narrowing the margin")
        proof = separable(wide, blank, *wide.narrowed(answer))
    return proof


def _separable(pairs: Pairs, blank: Proof, w: Any, exact: bool | str, offer: Offer) -> Proof:
    separator = [Fraction(value) for value in w.tolist()] if isinstance(w, np.ndarray) else w
    floats = w if isinstance(w, np.ndarray) else _as_floats(separator)
    if exact is False:
        margin = at_least(pairs, interval(pairs, floats, False), separator)
        return _with_margin(pairs, blank, margin, None if pairs.bias else margin)
    is_large = pairs.rows.n * pairs.dim > _SOON
    if is_large:
        offer(_separable(pairs, blank, w, False, offer))
    begin("narrowing the margin")
    try:
        margin = interval(pairs, floats, exact)
    except TimeUp:  # the verdict stands; the margin of w itself is a wide interval, but a proven one
        if is_large:
            raise
        margin = interval(pairs, floats, False)
    margin = at_least(pairs, margin, separator)
    geometric = margin if not pairs.bias else _geometric(pairs, margin, exact)
    return _with_margin(pairs, blank, margin, geometric)


def _with_margin(pairs: Pairs, blank: Proof, margin: MarginProof, geometric: MarginProof | None) -> Proof:
    factor = 1 if pairs.K == 2 else 2
    square = squared(flattened(margin.direction))
    return replace(
        blank,
        verdict="separable",
        separation="complete",
        direction=margin.direction,
        margin=margin,
        geometric=geometric if pairs.K == 2 else None,
        mistake_bound=(factor * blank.radius_squared * square / margin.least**2).__floor__() if margin.least > 0 else None,
    )


def _geometric(pairs: Pairs, margin: MarginProof, exact: bool | str) -> MarginProof | None:
    """Return the margin with a free bias, for two classes, or None if time is up."""
    if pairs.K > 2:
        return None
    best = flattened(margin.direction)
    near = np.array(margin.weights.rows, np.int64)
    try:
        begin("narrowing the geometric margin")
        free = interval(pairs, _as_floats(best), exact, penalised=False, near=near)
    except TimeUp:
        return None
    proof = at_least(pairs, free, best, penalised=False)
    return proof if proof.least > 0 else None


def _as_floats(w: list[Fraction]) -> Floats:
    top = max(abs(value) for value in w)
    return np.array([float(value / top) for value in w])


def _sides(pairs: Pairs, which: Ints) -> set[bool]:
    """Return the sides that some pairs are on: the class for two classes, rival after own class or before for more."""
    if pairs.K == 2:
        return {bool(code == 1) for code in pairs.codes[which]}
    return {bool(rival > own) for rival, own in zip(which % pairs.K, pairs.codes[which // pairs.K], strict=True)}


def _is_decisive(pairs: Pairs, which: Ints) -> bool:
    """Tell whether a witness on these pairs proves "inseparable", whatever a tie means.

    With a bias it always does. Without one, pairs of a single side may all have the lead 0 and still be right under a
    meaning of ties that favours them: the data may be touching.
    """
    sides = _sides(pairs, which)
    return pairs.bias or (len(sides) == 2 if pairs.K == 2 else False in sides)


def _not_separable(pairs: Pairs, blank: Proof, found: Face, offer: Offer) -> Proof:
    def proven(face: Face) -> Proof:
        return replace(blank, verdict="inseparable", witness=pairs.witness(face.pairs, face.weights))

    def signs_of(w: list[Fraction]) -> Any:
        return blocks_of_signs(pairs, w)

    decided = proven(found) if _is_decisive(pairs, found.pairs) else blank
    if decided is not blank and pairs.rows.n * pairs.dim > _SOON:
        offer(decided)
    first = first_witness(pairs, found)
    decided = proven(first) if _is_decisive(pairs, first.pairs) else decided
    try:
        begin("telling overlap from quasi-complete separation")
        spanned = _joined_classes(pairs, first) if needs_descent(pairs) or pairs.are_many else first
        face = climb(pairs, spanned, pairs.column_scales(), signs_of, last_resort=False)
        wider = None if face.complete else widest_witness(pairs, first.pairs)
        if wider is not None:
            face = climb(pairs, wider, pairs.column_scales(), signs_of, last_resort=False)
        moved = recoordinated(pairs) if not face.complete else None
        if moved is not None:
            face = _climb_moved(moved, face, signs_of)
    except TimeUp:
        return decided
    if not _is_decisive(pairs, first.pairs):
        decided = _touching_or_not(pairs, decided, first, face)
    if not face.complete or decided.verdict == "undecided":
        return decided
    if face.direction is not None:
        return replace(decided, separation="quasi-complete", direction=pairs.direction(primitive(face.direction)))
    spanning: Witness = pairs.witness(face.pairs, face.weights)
    return replace(decided, separation="overlap", spanning=spanning, equations=equations(pairs, face))


def _joined_classes(pairs: Pairs, first: Face) -> Face:
    """Return a larger face: that of `first` and the faces of two classes at a time, until these connect all classes.

    Where the rows of two classes overlap, a weakly separating w gives every row the same score for both. So few faces
    often span all pairs, in d dimensions each where a search among all classes has K·d.
    """
    balanced = dict(zip(first.pairs.tolist(), first.weights, strict=True))
    group = list(range(pairs.K))
    for k, rival in combinations(range(pairs.K), 2):
        if group[k] == group[rival]:
            continue
        alone, numbers = of_classes(pairs, [k, rival])
        face = separator_or_witness(alone, lambda _: check_time())
        if not isinstance(face, Face):
            continue
        face = climb(alone, face, alone.column_scales(), partial(blocks_of_signs, alone), last_resort=False)
        for number, weight in zip(numbers[face.pairs].tolist(), face.weights, strict=True):
            balanced[number] = balanced.get(number, Fraction(0)) + weight
        if face.complete and face.direction is None:
            group = [group[rival] if other == group[k] else other for other in group]
    return Face(np.array(list(balanced), np.int64), list(balanced.values()), None)


def _climb_moved(moved: MovedPairs, face: Face, signs_of: Signs) -> Face:
    face = Face(face.pairs, resized(moved, face.pairs, face.weights, back=False), None)
    face = climb(moved, face, np.ones(moved.dim), lambda w: signs_of(moved.back(w)), last_resort=True)
    face.weights = resized(moved, face.pairs, face.weights, back=True)
    face.direction = None if face.direction is None else moved.back(face.direction)
    return face


def _touching_or_not(pairs: Pairs, decided: Proof, first: Face, face: Face) -> Proof:
    """Return the verdict without a bias, where the first witness has pairs of one side only; `decided` is what is known.

    If the final face holds a pair of the other side as well, the data are inseparable: the witness is the first one that has
    the first such pair, together with the first witness of all where that is needed. If not, and the direction is positive
    outside the face, they are touching.
    """
    if face.inside is None:  # the pairs are too many
        return decided
    inside = face.pairs if pairs.are_many else np.flatnonzero(face.inside & pairs.exist)
    for pair in inside:
        if not _is_decisive(pairs, np.append(first.pairs, pair)):
            continue
        enlarged = first_witness_with(pairs, inside, int(pair))
        if enlarged is None:
            enlarged = face if _is_decisive(pairs, face.pairs) else lifted(pairs, face, np.array([pair]))
        elif not _is_decisive(pairs, enlarged.pairs):
            enlarged = together(first, enlarged)
        if enlarged is not None:
            return replace(decided, verdict="inseparable", witness=pairs.witness(enlarged.pairs, enlarged.weights))
    if not face.complete or face.direction is None or decided.verdict == "inseparable":
        return decided
    (side,) = _sides(pairs, face.pairs)
    ties = "first" if pairs.K > 2 else ("+1" if side else "-1")
    return replace(decided, verdict="touching", ties=ties, witness=pairs.witness(first.pairs, first.weights))
