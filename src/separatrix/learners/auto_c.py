"""`C="auto"`: machines with a grid of C's learn side by side from one read of the data; held-out examples choose.

The grid is 4⁻⁵ … 4² over the mean of ‖x̃‖², rounded to a power of two, because that is what C is measured against. Where the
caller holds nothing out, a fraction of each class is held out for the choice alone, and with few examples five folds
take turns; the model is then trained on all of them, and is bit for bit the one that the chosen C gives by itself.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import NamedTuple

import numpy as np

from separatrix.engine.orders import order_for, visits
from separatrix.engine.presenting import Mistakes, Presenter, Problem
from separatrix.engine.rows import Array, Floats, Ints, Rows, frozen
from separatrix.engine.run import Run
from separatrix.engine.weights import Flat, Weights, averaged
from separatrix.kernels.threads import in_order, threads_of
from separatrix.learners.inputs import HeldOut

POWERS = range(-5, 3)
ENOUGH = 400
"""Held-out examples that can tell one C from another; where a fraction has fewer, five folds take turns."""
FOLDS = 5
MOST_PASSES = 5
MOST_BYTES = 1 << 26
"""What the weights of the machines that learn side by side may take; more of them learn in groups."""


class Choice(NamedTuple):
    """The C that did best on held-out examples (of equals the one nearest to 1/‖x̃‖²), and how each of the grid did."""

    C: float
    accuracy: dict[float, float]


def choose(
    template: Run,
    problem: Problem,
    held_out: HeldOut | None,
    *,
    order: str,
    max_iter: int | None,
    fraction: float,
    decide: Callable[[Floats], Ints],
) -> Choice:
    """Train every C of the grid as `template` would be trained, and return the one whose held-out accuracy is best."""
    grid = grid_for(problem.rows, template.bias)
    right, seen = np.zeros(len(grid)), 0
    n_passes = min(max_iter or MOST_PASSES, MOST_PASSES)
    splits = [(problem, held_out)] if held_out is not None else list(_splits(problem, fraction, template.seed))
    threads = threads_of(None, problem.rows.n * problem.rows.row_bytes * n_passes * len(splits))
    size = template.last.W.nbytes * (1 + bool(template.late.W.size)) + template.last.V.nbytes
    # Folds are parts enough for the threads; one split is not.
    groups = groups_of(grid, MOST_BYTES // max(1, size), threads if len(splits) == 1 else 1)

    def tried(task: tuple[Problem, HeldOut, list[float]]) -> list[int]:
        shown, out, group = task
        trained = Machines(template, group).train(shown, order, n_passes)
        return [int(np.count_nonzero(decide(out.rows.scores(*weights, out.which)) == out.codes)) for weights in trained]

    counts = list(in_order(tried, ((*split, group) for split in splits for group in groups), threads))
    for number, (_, out) in enumerate(splits):
        right += [count for group in counts[number * len(groups) : (number + 1) * len(groups)] for count in group]
        seen += len(out.codes)
    accuracy = dict(zip(grid, (right / max(1, seen)).tolist(), strict=True))
    best = max(range(len(grid)), key=lambda k: (right[k], -abs(POWERS[k])))
    return Choice(grid[best], accuracy)


def grid_for(rows: Rows, bias: bool) -> list[float]:
    """Return the C's worth trying: powers of four over the mean of ‖x̃‖² of 10,000 rows or fewer, to a power of two."""
    mean = float(rows.take(np.arange(0, rows.n, -(-rows.n // 10_000))).squared_norms().mean()) + bias or 1.0
    return [4.0**k / 2.0 ** round(np.log2(mean)) for k in POWERS]


def _splits(problem: Problem, fraction: float, seed: int) -> Iterator[tuple[Problem, HeldOut]]:
    """Yield problems with some examples of each class held out: a fraction once, or a fifth five times."""
    weight = problem.weight if problem.weight.size else np.ones(problem.rows.n)
    folds = FOLDS if fraction * np.count_nonzero(weight) < ENOUGH else 1
    share = 1 / FOLDS if folds > 1 else fraction
    rng = np.random.default_rng([seed, len(weight)])
    members = [rng.permutation(np.flatnonzero((problem.codes == k) & (weight != 0.0))) for k in np.unique(problem.codes)]
    for fold in range(folds):
        parts = [of[round(fold * share * len(of)) : round((fold + 1) * share * len(of))] for of in members]
        which = np.sort(np.concatenate(parts))
        if which.size and which.size < np.count_nonzero(weight):
            kept = weight.copy()
            kept[which] = 0.0
            yield problem._replace(weight=frozen(kept)), HeldOut(problem.rows, frozen(which), problem.codes[which])


def groups_of(Cs: list[float], at_once: int, threads: int) -> list[list[float]]:
    """Return the C's in groups whose machines learn side by side, at most so many; with threads, a group for each of them.

    The kernel scores four outputs at a time, and a machine is scored among the same ones in any group that begins after a
    multiple of four machines: the number of threads changes no bit.

    Examples
    --------
    >>> groups_of([1.0, 2.0, 4.0, 8.0, 16.0, 32.0], at_once=9, threads=2)
    [[1.0, 2.0, 4.0, 8.0], [16.0, 32.0]]
    """
    if at_once >= len(Cs):
        at_once = max(1, min(len(Cs), 4 * -(-len(Cs) // (4 * threads))))
        if len(Cs) % at_once == 1:  # one output alone is scored by other code than one among several
            at_once = len(Cs)
    at_once = max(1, at_once)
    return [Cs[begin : begin + at_once] for begin in range(0, len(Cs), at_once)]


class Machines:
    """Runs that differ in C, as one block of weights: machine g has the outputs g·K … g·K + K − 1. They keep no ledger."""

    def __init__(self, template: Run, Cs: list[float]) -> None:
        self.template = template
        K, d, sparse = template.last.K, template.last.d, template.last.sparse
        last, many = template.last.weights(), len(Cs)
        start = Weights(np.tile(last.coef, (many, 1)), np.tile(last.intercept, many))
        self.presenter = Presenter(
            Flat(many * K, d, sparse, start, spread=template.rule.spread),
            Flat(many * K, template.late.d, sparse),
            *(template.rule, template.bias, template.joint, template.ledger.tie, np.array(Cs)),
            *(0, 0, template.heaviest.copy(), np.zeros(2 * many)),
        )

    def train(self, problem: Problem, order: str, n_passes: int) -> list[Weights]:
        """Make passes; return the weights of each machine."""
        for _ in self.passes(problem, order, n_passes):
            pass
        coef, intercept = self.weights()
        K = self.template.last.K
        return [Weights(coef[g : g + K], intercept[g : g + K]) for g in range(0, len(coef), K)]

    def passes(self, problem: Problem, order: str, n_passes: int) -> Iterator[Array]:
        """Make passes until none of the machines makes a mistake; after each, yield which of them made one."""
        presenter, chosen_order = self.presenter, order_for(order, problem.rows, problem.codes)
        presenter.last.lay(problem.rows.sparse)
        presenter.late.lay(problem.rows.sparse)
        for number in range(n_passes):
            presenter.tally[:] = 0.0
            for block in visits(chosen_order, problem.rows, self.template.seed, number):
                presenter.present_anywhere(problem, block, _forget)
            mistaken: Array = np.any(presenter.tally.reshape(-1, 2), axis=1)
            yield mistaken
            if not mistaken.any():
                break

    def weights(self) -> Weights:
        """Return the weights of all machines, one after another: averaged where the run averages, else the last."""
        presenter = self.presenter
        last = presenter.last.weights()
        return averaged(last, presenter.late.weights(), max(1, presenter.steps)) if presenter.late.d else last


def _forget(mistakes: Mistakes, copied: Ints | None) -> None:
    """Let mistakes go: only the weights matter to a choice."""
