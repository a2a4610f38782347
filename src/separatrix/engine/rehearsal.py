"""A training made again without some examples, from the ledger of the earlier one as far as that goes.

An example that made no mistake changed nothing but the number of steps. So up to the first mistake on a forgotten example
the new run makes the mistakes that the earlier one made, at earlier steps: only they are presented again. From there on all
examples that are left are presented. The result is that of presenting them from the beginning, bit for bit.

Where no mistake was made on a forgotten example, not even the scores of the mistakes are needed: the corrections of the
ledger are added up once more (`trusted`), since averaged weights depend on the steps.
"""

from __future__ import annotations

import numpy as np

from separatrix.engine.ledger import Ledger
from separatrix.engine.orders import FETCH_AHEAD, Gaps, Visits, sequence
from separatrix.engine.presenting import Mistakes, Problem
from separatrix.engine.rows import NO_ORDER, Array, Floats, Ints, frozen
from separatrix.engine.run import Run
from separatrix.engine.weights import Flat
from separatrix.kernels.learning import replays

BLANK = 1e-40
"""Rules that divide by the squared length of an example make no correction where it is 0; below this, it may be."""
OTHER_DATA = "the ledger does not fit these data and this order: they are not what the model was trained on"


class Rehearsal:
    """The mistakes of an earlier run on examples some of which are forgotten; a `Run` asks it to make its passes.

    Attributes
    ----------
    forgotten : the forgotten examples as the earlier run counts them, sorted
    first : the first mistake of the ledger that was made on one of them; the number of mistakes where there is none
    trusted : whether corrections are taken from the ledger, without scoring what they were made on
    steps : how many of the new steps were not presented, because the ledger says what happened
    """

    def __init__(self, earlier: Run, problem: Problem, gaps: Gaps, forgotten: Ints) -> None:
        """Take a whole ledger, the problem it was written on (rows of weight 0 were not presented) and its order."""
        self.earlier, self.gaps, self.forgotten = earlier, gaps, forgotten
        self._n = problem.rows.n
        self._is_forgotten = np.zeros(self._n, np.bool_)
        self._is_forgotten[forgotten] = True
        self._number = np.cumsum(~self._is_forgotten) - 1
        self._is_presented = _presented(problem)
        ledger = earlier.ledger
        if len(ledger) and int(ledger.example.max()) >= self._n:
            raise ValueError(OTHER_DATA)
        on_forgotten = np.flatnonzero(self._is_forgotten[ledger.example.astype(np.int64)])
        self.first = int(on_forgotten[0]) if on_forgotten.size else len(ledger)
        # Such an example has no entry in the ledger, but it may have been misjudged, and was counted.
        self._is_blank: Array | None = None
        if earlier.rule.entry.divides and not earlier.bias:
            self._is_blank = problem.rows.squared_norms() < BLANK
        self.trusted = False
        self.steps = 0
        self._late: Flat | None = None

    @property
    def reaches_end(self) -> bool:
        """Whether no forgotten example was misjudged, and all that the run did is in the ledger."""
        blank = self._is_blank is not None and bool(self._is_blank[self.forgotten].any())
        return self.first == len(self.earlier.ledger) and self.earlier.ledger.cut is None and not blank

    def make_pass(self, run: Run, problem: Problem) -> int | None:
        """Make the pass that `run` has begun, on the examples that are left; None: the ledger says nothing about it."""
        ledger, new = self.earlier.ledger, run.ledger
        number = len(new.pass_starts) - 1
        if number >= len(ledger.pass_starts):
            if number == len(ledger.pass_starts) and self.trusted:
                run.tally[:] = self.earlier.tally
            return None
        begin, end = _mistakes_of(ledger, number)
        if self.first < begin:
            return None
        visited, at = _visited(self.earlier, self._n, self._is_presented, self.gaps, number)
        is_left = ~self._is_forgotten[visited]
        before: Ints = np.cumsum(is_left) - is_left  # how many of the visits before each are left
        mistakes, steps, run.used = new.total, new.steps, None
        stop = min(end, self.first)
        restart = len(visited) if stop == end else int(at[stop - begin])
        mistaken = at[: stop - begin]
        if self.trusted and number > 0:  # of the first pass the errors are counted by themselves
            self._add_up(run, problem, slice(begin, stop), steps + 1 + before[mistaken])
        else:
            again = mistaken[np.diff(mistaken, prepend=-1) != 0]  # one-vs-rest may err twice on an example
            if self._is_blank is not None:
                again = np.union1d(again, np.flatnonzero((self._is_blank[visited] & is_left)[:restart]))
            self._present(run, problem, slice(begin, stop), frozen(self._number[visited[again]]), steps + 1 + before[again])
            if run.average and stop > begin:
                self._average(run, problem, slice(mistakes, new.total))
        new.steps = steps + int(np.count_nonzero(is_left[:restart]))
        self.steps += new.steps - steps
        if restart < len(visited):
            rest = frozen(self._number[visited[restart:][is_left[restart:]]])
            run.rehearsal = None
            block = problem.rows.block
            blocks = (Visits(rest, k, min(k + block, len(rest)), rest[FETCH_AHEAD:]) for k in range(0, len(rest), block))
            run.present(problem, blocks)
        elif self.trusted and number + 1 == len(ledger.pass_starts):
            run.tally[:] = self.earlier.tally
        return new.total - mistakes

    def _present(self, run: Run, problem: Problem, which: slice, order: Ints, steps: Ints) -> None:
        """Present some examples alone, each at its new step; they must make just these mistakes of the ledger again."""
        ledger, new = self.earlier.ledger, run.ledger
        examples = self._number[ledger.example[which].astype(np.int64)]
        expected = examples, ledger.up[which], ledger.down[which], _corrections(ledger, which)
        clock, begin = new.steps, new.total

        def record(mistakes: Mistakes, copied: Ints | None) -> None:
            step, example, _, up, down, correction, score, shrink = mistakes
            row = example if copied is None else copied[example]
            made = new.total - begin
            part = slice(made, made + len(step))
            same = zip((row, up, down, correction), expected, strict=True)
            if part.stop > len(examples) or not all(np.array_equal(now, then[part]) for now, then in same):
                raise ValueError(OTHER_DATA)
            new.append(steps[step - clock - 1], row, up, down, correction, score, shrink)

        with run.presenting(problem.rows) as presenter:
            assert presenter is not None
            presenter.late = Flat(run.last.K, 0, problem.rows.sparse)  # its clock does not show the new steps
            for k in range(0, len(order), problem.rows.block):
                visits = Visits(order, k, min(k + problem.rows.block, len(order)), order[FETCH_AHEAD:])
                presenter.present_anywhere(problem, visits, record)
        if new.total - begin != len(examples):
            raise ValueError(OTHER_DATA)

    def _average(self, run: Run, problem: Problem, which: slice) -> None:
        """Add mistakes of the new ledger to what the average is made from."""
        ledger, spread = run.ledger, bool(run.rule.spread)
        if self._late is None:
            run.late.lay(problem.rows.sparse)
            self._late = ledger.state(problem.rows.sparse, None) if spread else run.late
        scale = np.empty(which.stop)
        scale[which] = self._averaged(run, ledger.step[which])
        ledger.replay_into(self._late, problem.rows, ledger.example, which, frozen(scale))
        if spread:
            run.late.W[:], run.late.b[:] = self._late.W, self._late.b

    @staticmethod
    def _averaged(run: Run, steps: Array) -> Floats:
        averaged: Floats = steps.astype(np.float64) - 1.0 - run.ledger.average_after
        return averaged

    def _add_up(self, run: Run, problem: Problem, which: slice, steps: Ints) -> None:
        """Add corrections of the ledger to the weights, without scoring what they were made on."""
        ledger, new = self.earlier.ledger, run.ledger
        size, begin = which.stop - which.start, new.total
        if not size:
            return
        scores = ledger.score[which] if ledger.score.size else np.zeros(size)
        shrinks = ledger.shrink[which] if ledger.shrink.size else np.zeros(size)
        pair = ledger.up[which].astype(np.int32), ledger.down[which].astype(np.int32)
        examples = self._number[ledger.example[which].astype(np.int64)]
        new.append(steps, examples, *pair, _corrections(ledger, which), scores, shrinks)
        run.last.lay(problem.rows.sparse)
        run.late.lay(problem.rows.sparse)
        averaged = self._averaged(run, steps)
        for first in range(0, size, problem.rows.block):
            part = slice(first, min(first + problem.rows.block, size))
            rows, at = problem.rows, frozen(examples[part])
            if rows.parts is None:
                rows, at = rows.take(at), frozen(np.arange(part.stop - part.start))
            of_new = slice(begin + part.start, begin + part.stop)
            replays.resume(
                *(rows.parts, new.n_features, at, frozen(pair[0][part]), frozen(pair[1][part])),
                *(frozen(_corrections(new, of_new)), frozen(shrinks[part]), frozen(averaged[part])),
                *((run.last.W, run.last.b), (run.late.W, run.late.b), run.last.sigma, run.last.K, run.bias),
                run.rule.spread == "full",
            )


def check_order(run: Run, problem: Problem, gaps: Gaps) -> None:
    """Raise where the first pass of a run did not visit these examples in this order."""
    if run.ledger.pass_starts:
        _visited(run, problem.rows.n, _presented(problem), gaps, 0)


def check_mistakes(run: Run, problem: Problem, gaps: Gaps) -> None:
    """Raise where the ledger of a run shows that it was trained on other examples, labels or weights.

    The labels must be those that its mistakes were corrected towards, and its corrections must add up to its last weights.
    An example that made no mistake leaves no trace, so that a change of it goes unnoticed.
    """
    ledger, codes = run.ledger, problem.codes
    example = ledger.example.astype(np.int64)
    if example.size and int(example.max()) >= problem.rows.n:
        raise ValueError(OTHER_DATA)
    up, true = ledger.up.astype(np.int64), codes[example]
    is_label = np.where(up >= 0, up == true, ledger.down != true)  # one-vs-rest lowers an output of another class alone
    weighted = bool(np.any((problem.weight != 0.0) & (problem.weight != 1.0)))
    if weighted != ledger.weighted:
        raise ValueError("sample_weight is not what the model was trained on")
    if not is_label.all():
        raise ValueError(OTHER_DATA)
    state = ledger.state(problem.rows.sparse, None)
    ledger.replay_into(state, problem.rows, ledger.example, slice(0, len(ledger)))
    _check_weights(state, run)
    is_relative = run.heaviest.size > 0 and float(problem.weight.max(initial=0.0)) > 1.0
    if weighted and not run.rule.spread and not is_relative:  # else other examples than the mistaken ones matter, too
        _check_presented(run, problem, gaps)


def _check_presented(earlier: Run, problem: Problem, gaps: Gaps) -> None:
    """Raise where the mistakes of a run, presented alone, are not corrected as they were."""
    run = Run(
        *(earlier.classes, earlier.last.d),
        bias=earlier.bias,
        tie=earlier.tie,
        multi_class=earlier.multi_class,
        average=False,
        scored=False,
        rule=earlier.rule,
    )
    run.heaviest = np.ones(earlier.heaviest.size)
    rehearsal = Rehearsal(earlier, problem, gaps, NO_ORDER)
    for _ in earlier.ledger.pass_starts:
        run.ledger.begin_pass()
        rehearsal.make_pass(run, problem)
    _check_weights(run.last, earlier)


def _check_weights(state: Flat, run: Run) -> None:
    now, then = state.weights(), run.last.weights()
    if not np.array_equal(now.coef, then.coef) or not np.array_equal(now.intercept, then.intercept):
        raise ValueError(OTHER_DATA)


def _presented(problem: Problem) -> Array | None:
    return problem.weight != 0.0 if problem.weight.size else None


def _mistakes_of(ledger: Ledger, number: int) -> tuple[int, int]:
    """Return the first mistake of a pass, and the first of the next one."""
    last = number + 1 == len(ledger.pass_starts)
    return ledger.pass_starts[number][1], len(ledger) if last else ledger.pass_starts[number + 1][1]


def _visited(run: Run, n: int, is_presented: Array | None, gaps: Gaps, number: int) -> tuple[Ints, Ints]:
    """Return the presentations of a pass, and which of them were mistakes; raise where the ledger says otherwise."""
    visited = sequence(run.order, n, run.seed, number, gaps)
    if is_presented is not None:
        visited = visited[is_presented[visited]]
    which = slice(*_mistakes_of(run.ledger, number))
    at = run.ledger.step[which].astype(np.int64) - 1 - run.ledger.pass_starts[number][0]
    if np.any(at >= len(visited)) or np.any(visited[at] != run.ledger.example[which]):
        raise ValueError(OTHER_DATA)
    return visited, at


def _corrections(ledger: Ledger, which: slice) -> Floats:
    """Return some corrections, also where all of them are 1."""
    return ledger.correction[which] if ledger.correction.size else np.ones(which.stop - which.start)
