"""The perceptron on the pairs of a data set: the first attempt at a separator, and where a search may begin."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator

import numpy as np

from separatrix.engine.orders import Visits, order_for, visits
from separatrix.engine.presenting import Problem
from separatrix.engine.rows import Floats, Ints, frozen
from separatrix.engine.run import Run
from separatrix.proofs.clock import check_time, seconds_left
from separatrix.proofs.search.joint_search import needs_descent
from separatrix.proofs.search.pairs import Pairs

_CYCLIC_PASSES = 20
"""In the order of the rows: the quickest, unless the classes come sorted."""
_SHUFFLED_PASSES = 30
_JOINT_PASSES = 200
"""With more classes the hull has so many dimensions that many passes cost less than one nearest point."""
_FEW_MISTAKES = 0.01
"""Of the rows: a pass with fewer is likely to be followed by a clean one, sooner than another search would end."""


def trained_perceptron(pairs: Pairs) -> tuple[Floats, bool]:
    """Return the perceptron's last weights, and whether its last pass was without a mistake."""
    w, clean = _weights(pairs, "cyclic", _CYCLIC_PASSES)
    if not clean:
        many = pairs.K > 2 and not needs_descent(pairs) and not pairs.is_tiny
        passes = _JOINT_PASSES if many else _SHUFFLED_PASSES
        w, clean = _weights(pairs, "shuffle", passes)
    return w, clean


def _weights(pairs: Pairs, order: str, passes: int) -> tuple[Floats, bool]:
    """Return the perceptron's last weights, and whether its last pass was without a mistake."""
    run, clean = perceptron_run(pairs, order, passes)
    coef, intercept = run.weights()
    W = np.concatenate([coef, intercept[:, None]], axis=1) if pairs.bias else coef
    return np.ascontiguousarray(W).reshape(-1), clean


def smallest_leads(pairs: Pairs, w: Floats) -> Ints:
    """Return the pairs of each class with the smallest leads."""
    by_row, numbers = pairs.smallest_leads(w)
    chosen: list[Ints] = []
    each = max(5, (50 + pairs.m) // pairs.K)
    for k in range(pairs.K):
        members = np.flatnonzero(pairs.codes == k)
        chosen.append(members[np.argsort(by_row[members], kind="stable")[:each]])
    return numbers[np.sort(np.concatenate(chosen))]


def perceptron_run(pairs: Pairs, order: str, passes: int, most: int = 0) -> tuple[Run, bool]:
    """Return a run of the perceptron on all pairs, and whether its last pass was without a mistake.

    It may take a quarter of the time that is left. While a pass makes few mistakes, there may be more, up to `most`.
    """
    stop = time.monotonic() + seconds_left() / 4
    classes = np.arange(pairs.K)
    run = Run(classes, pairs.rows.d, bias=pairs.bias, tie="mistake", multi_class="joint", average=False, scored=False)
    problem = Problem(pairs.rows, frozen(pairs.codes.astype(np.int32)))
    chosen_order, clean = order_for(order, *problem[:2]), False
    for number in range(max(passes, most)):
        before = len(run.ledger)
        run.ledger.begin_pass()
        clean = not run.present(problem, _in_time(visits(chosen_order, problem.rows, 0, number)))
        is_late = number + 1 >= passes and len(run.ledger) - before > _FEW_MISTAKES * pairs.rows.n
        if clean or is_late or time.monotonic() > stop:
            break
    return run, clean


def _in_time(blocks: Iterable[Visits]) -> Iterator[Visits]:
    """Yield blocks of visits, until time is up."""
    for block in blocks:
        check_time()
        yield block
