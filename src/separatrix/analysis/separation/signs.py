"""Whether a coefficient has the same sign in every direction that separates the same rows; two classes.

Let w be 0 on the span L of the rows that overlap, and positive on all others. Its coefficient j has the sign of every such
direction if one separated pair a is a multiple of the unit vector eⱼ modulo L: then 0 < ⟨v,a⟩ = c·vⱼ for every direction v.
That is how a level with one outcome looks. Otherwise a proof of its own decides: the vector −sign(wⱼ)·eⱼ joins the pairs,
and the question is whether some direction is positive on it and on all that w separates.
"""

from __future__ import annotations

import time
from fractions import Fraction
from math import inf
from typing import Any

import numpy as np

from separatrix.analysis.separation.collinear import MOST_CELLS, Dependencies
from separatrix.engine.rows import Ints, Rows
from separatrix.kernels import modular
from separatrix.proofs.certificate import checked_proof
from separatrix.proofs.proof import Witness
from separatrix.proofs.search.exact_signs import exact_signs
from separatrix.proofs.search.pairs import Pairs
from separatrix.proofs.search.rationals import dependency, eliminated, independent, residues

_SIGN_CELLS = 1e6
"""Up to this many rows × columns² × coefficients each sign is examined by a proof of its own: about a second."""
_MOST_ROWS, _MOST_SOLVED = 300, 12
"""How many separated rows are compared with unit vectors, and how many of these are solved for exactly."""


def certain_signs(
    pairs: Pairs, w: list[Fraction], exact: Dependencies, signs: Any, deadline: float
) -> dict[int, bool | None]:
    """Return for each coefficient that was examined whether it has this sign in every direction; None if undecided.

    `signs` has those of ⟨w,a⟩, and w is 0 at the columns that depend on others.
    """
    columns = [j for j in range(pairs.m) if j not in exact]
    outside, inside = np.flatnonzero(signs > 0), np.flatnonzero(signs == 0)
    certain: dict[int, bool | None] = dict.fromkeys(_by_one_row(pairs, w, columns, inside, outside), True)
    open_ones = [j for j in columns if w[j] and j not in certain]
    if pairs.rows.n * float(pairs.m) ** 2 * len(open_ones) <= _SIGN_CELLS:
        certain |= _by_proofs(pairs, w, columns, open_ones, outside, deadline)
    return certain


def _by_one_row(pairs: Pairs, w: list[Fraction], columns: list[int], inside: Ints, outside: Ints) -> list[int]:
    """Return the coefficients whose unit vector is a multiple of a separated pair modulo L: found modulo p, then solved."""
    if not inside.size or len(inside) * float(pairs.m) ** 2 > MOST_CELLS:
        return []
    basis = inside[independent(pairs.whole(inside)[0])[0]]
    few = outside[:: max(1, len(outside) // _MOST_ROWS)]
    both = pairs.whole(np.concatenate([basis, few]))[0][:, columns]
    table = residues(both[: len(basis)])
    pivots = eliminated(table, table.shape[1], True)[1]
    free = np.setdiff1d(np.arange(len(columns)), pivots)
    echelon = table[: len(pivots)].astype(object)[:, free]
    rest = (both[len(basis) :][:, free] - both[len(basis) :][:, pivots] @ echelon) % modular.PRIME
    at_pivot = {int(j): row for row, j in enumerate(pivots)}
    proven: list[int] = []
    for t, j in enumerate(columns):
        if not w[j] or len(proven) == _MOST_SOLVED:
            continue
        unit = (free == t).astype(np.int64).astype(object)
        if t in at_pivot:
            unit = -echelon[at_pivot[t]] % modular.PRIME
        if not unit.any():
            continue
        place = int(np.flatnonzero(unit)[0])
        multiple = rest[:, place] * pow(int(unit[place]), -1, modular.PRIME) % modular.PRIME
        alike = np.flatnonzero((rest == multiple[:, None] * unit % modular.PRIME).all(axis=1) & (multiple != 0))
        if alike.size:
            vector = np.array([[int(k == t) for k in range(len(columns))]], object)
            joined = np.concatenate([both[: len(basis)], both[[len(basis) + int(alike[0])]], vector])
            weights = dependency(joined)
            if weights is not None and weights[-2] and not (np.array(weights, object) @ joined).any():
                proven.append(j)
    return proven


def _by_proofs(
    pairs: Pairs, w: list[Fraction], columns: list[int], open_ones: list[int], outside: Ints, deadline: float
) -> dict[int, bool | None]:
    """Tell by a proof for each coefficient whether a direction that separates the same rows gives it the other sign."""
    source = pairs.rows.source.toarray() if pairs.rows.sparse else np.asarray(pairs.rows.source)
    X = np.concatenate([source.astype(np.float64), np.ones((pairs.rows.n, int(pairs.bias)))], axis=1)[:, columns]
    codes = np.append(pairs.codes, 1)
    determined: dict[int, bool | None] = {}
    for j in open_ones:
        left = deadline - time.monotonic()
        if left <= 0:
            break
        opposite = np.zeros((1, len(columns)))
        opposite[0, columns.index(j)] = -1.0 if w[j] > 0 else 1.0
        rows = Rows(np.concatenate([X, opposite]))
        proof = checked_proof(rows, codes, 2, False, False, None if left == inf else left)
        if proof.separation is None:
            determined[j] = None
        elif proof.direction is None:
            determined[j] = True
        elif isinstance(proof.direction, Witness):
            determined[j] = None
        else:
            positive = exact_signs(Pairs(rows, codes, 2, False), list(proof.direction[0])) > 0
            determined[j] = not (positive[-1] and positive[outside].all())
    return determined
