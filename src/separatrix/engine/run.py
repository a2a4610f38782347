"""Training: passes over the examples until a clean one, writing the ledger (L1 5, L2 4 and 9, L3 5, L4 2–8)."""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Iterable
from typing import Any, NamedTuple, Protocol

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from separatrix.engine.labels import Codes, with_newcomer
from separatrix.engine.ledger import NEVER, Ledger
from separatrix.engine.orders import Visits, visits
from separatrix.engine.rows import BLOCK_ROWS, NO_ORDER, NO_WEIGHT, Array, Floats, Ints, Rows, frozen, writable
from separatrix.engine.rules import RULES, Rule, tie_code
from separatrix.engine.weights import Flat, Weights, averaged
from separatrix.kernels.codes import TIE_IS_FIRST, TIE_IS_PLUS
from separatrix.kernels.learning import passes

PASS_CAP = 10_000
"""With `max_iter=None`, the passes after which training gives up on data that nothing could be proven about."""
SEPARABLE_PASS_CAP = 200_000
"""The same on data that are proven separable: a clean pass must come, but it may take longer than anybody can wait."""
FIRST_PROOF = 32
FIRST_PROOF_OF_CYCLIC = 1024
"""With `max_iter=None`, a proof is looked for after so many passes, and again as they double; a cycle may come first."""


WHY_IT_ENDED = {
    "inseparable": "the data are proven inseparable: no pass would ever be without a mistake, so training ended after {:,}. "
    "certify(X, y) shows the examples that make it impossible.",
    "touching": "the data are proven separable only by touching, with a margin of 0: nothing bounds the mistakes, so "
    "training ended after {:,} passes. certify(X, y) shows why.",
    "separable": "the data are proven separable, but {:,} passes were not enough: the margin is so small that the theorem "
    "allows more mistakes than can be waited for. Scale the features, or use MaxMarginClassifier(C=None).",
    "approached": "the data are proven separable, but {:,} passes were not enough: rule={!r} need not bring "
    "every lead to 1 in finitely many corrections. Set max_iter, or use MaxMarginClassifier(C=None).",
    "cycle": "the weights at the start of pass {1:,} come back, with a period of {2:,}: no pass would ever be without a "
    "mistake, so training ended after {0:,}.",
    "undecided": "{:,} passes did not separate the data, and nothing could be proven about them in that time. Either no "
    "linear boundary does, or the margin is so small that the perceptron needs longer. Set max_iter to go on.",
}


class Cycle(NamedTuple):
    """The weights at the start of pass `start` come back every `period` passes, for ever."""

    start: int
    period: int


class Problem(NamedTuple):
    """What is presented: rows, the code of each label, and the weight of each example (none: all 1)."""

    rows: Rows
    codes: Codes
    weight: Floats = NO_WEIGHT

    def taken(self, which: Ints) -> Problem:
        """Return some of the examples as a copy that the kernels can read."""
        weight = frozen(self.weight[which]) if self.weight.size else NO_WEIGHT
        return Problem(self.rows.take(which), frozen(self.codes[which]), weight)


class Snapshot(NamedTuple):
    """How things were after a pass."""

    passes: int
    steps: int
    mistakes: int
    kept: int | None
    last: Weights
    late: Weights
    spread: list[Array]


NO_FLAGS = np.empty(0, np.uint8)
"""For whom the number of examples misjudged is enough."""


def columns(size: int) -> tuple[Array, ...]:
    """Return room for so many mistakes, as the kernel writes them."""
    return tuple(np.empty(size, dtype) for dtype in ("i8", "i8", "i4", "i4", "i4", "f8", "f8", "f8"))


class Run:
    """The state of one training: its weights, its clock and its ledger."""

    def __init__(
        self,
        classes: Array,
        n_features: int,
        *,
        bias: bool,
        tie: str,
        multi_class: str,
        average: bool,
        scored: bool,
        rule: Rule | None = None,
        keeps_rows: bool = False,
        start: Weights | None = None,
    ) -> None:
        self.bias, self.tie, self.multi_class, self.average = bias, tie, multi_class, average
        self.keeps_rows = keeps_rows
        self.rule = rule or Rule()
        self.ledger = Ledger(
            *(classes, n_features),
            bias=bias,
            tie=tie_code(tie, len(classes), multi_class),
            scored=scored,
            start=start,
            rule=self.rule,
            joint=len(classes) > 2 and multi_class == "joint",
        )
        self.last = self.ledger.state(False, start)
        self.late = Flat(self.last.K, n_features if average else 0, False)
        self.tally = np.zeros(2)
        self.per_pass: list[int] = []
        self.rows_seen = 0
        self.steps_dropped = 0
        self.radius_squared = 0.0
        self.streaming = False
        self.order, self.seed = "cyclic", 0
        self.left_out: Ints = NO_ORDER
        self.used: Weights | None = None
        self._out: tuple[Array, ...] = ()

    @property
    def classes(self) -> Array:
        """The classes met or declared so far, sorted."""
        return self.ledger.classes

    @property
    def joint(self) -> bool:
        """Whether K > 2 classes are corrected in pairs."""
        return self.ledger.joint

    @property
    def errors(self) -> int:
        """How many examples would have been given another class than their own, when they were presented."""
        return int(self.tally[0])

    def add_class(self, label: Any) -> None:
        """Meet a class for the first time: it starts from zero weights."""
        before = len(self.classes)
        classes, place = with_newcomer(self.classes, label)
        self.ledger.tie = tie_code(self.tie, len(classes), self.multi_class)
        for flat in (self.last, self.late):
            flat.add_class(before, place)
        self.ledger.insert_class(classes, place)
        self.ledger.joint = len(classes) > 2 and self.multi_class == "joint"
        self.used = None

    def resize(self, d: int) -> None:
        """Make room for d features, or leave out all but the first d."""
        self.last.resize(d)
        if self.average:
            self.late.resize(d)
        self.ledger.resize(d)
        self.used = None

    def stream(self) -> None:
        """Begin the one pass that a stream is, unless it has begun."""
        if not self.streaming:
            if self.ledger.average_after == NEVER:
                self.average_from_here()
            self.streaming = True
            self.ledger.begin_pass()
            self.per_pass.append(0)

    def average_from_here(self) -> None:
        """Let the average begin with the next step."""
        if self.average:
            self.ledger.average_after = self.ledger.steps

    def weights(self) -> Weights:
        """Return the weights that the learner will use: averaged where it averages and has begun to, else the last."""
        if self.used is None:
            elapsed = self.ledger.steps - self.ledger.average_after
            last = self.last.weights()
            self.used = averaged(last, self.late.weights(), elapsed) if elapsed > 0 else last
        return self.used

    def restore(self, then: Snapshot) -> None:
        """Go back to how things were after an earlier pass."""
        self.steps_dropped = self.ledger.steps - then.steps
        self.ledger.cut_to(then.passes, then.steps, then.mistakes)
        self.ledger.kept = then.kept
        self.last.load(then.last)
        self.late.load(then.late)
        if then.spread:
            self.last.load_spread(then.spread)
        self.used = None

    def present(self, problem: Problem, blocks: Iterable[Visits], offset: int = 0) -> int:
        """Present blocks of visits, writing the ledger; return the number of mistakes. Row 0 is example `offset`."""
        if problem.rows.d != self.last.d:
            raise ValueError(f"the weights are for {self.last.d} features, but X has {problem.rows.d}: fit again")
        before, self.used = self.ledger.total, None
        self.last.lay(problem.rows.sparse)
        self.late.lay(problem.rows.sparse)
        for block in blocks:
            if problem.rows.parts is None:
                order, begin, end, _ = block
                which = order[begin:end] if order.size else np.arange(begin, end)
                self._present(problem.taken(which), Visits(NO_ORDER, 0, end - begin), which + offset)
            else:
                self._present(problem, block, offset)
        self.last.check_spread()
        return self.ledger.total - before

    def _present(self, problem: Problem, block: Visits, names: Ints | int) -> None:
        """Present one block; `names` are the examples' numbers in the ledger, or what to add to the row's."""
        ledger, rows = self.ledger, problem.rows
        order, begin, end, soon = block
        if len(self.classes) < 2:
            ledger.steps += int(np.count_nonzero(problem.weight[begin:end])) if problem.weight.size else end - begin
            return
        K = self.last.K
        each = 1 if self.joint else K
        for first in range(begin, end, max(1, BLOCK_ROWS // each)):
            stop = min(first + max(1, BLOCK_ROWS // each), end)
            out = self._columns((stop - first) * each)
            m, steps = passes.present(
                *(rows.parts, rows.d, problem.codes, problem.weight, order, soon, first, stop),
                *((self.last.W, self.last.b), (self.late.W, self.late.b), self.last.sigma, None if K == 1 else np.empty(K)),
                *((self.bias, self.joint, ledger.tie, self.rule.code, self.rule.margin), np.array([self.rule.C])),
                *(ledger.steps, ledger.average_after, out, self.tally, NO_FLAGS),
            )
            ledger.steps = int(steps)
            if m:
                step, example, _, *rest = (column[: int(m)] for column in out)
                ledger.append(step, example + names if isinstance(names, int) else names[example], *rest)

    def _columns(self, size: int) -> tuple[Array, ...]:
        if not self._out or len(self._out[0]) < size:
            self._out = columns(size)
        return self._out

    def training_mistakes(self, problem: Problem, flat: Flat, *, decided: bool = False) -> float:
        """Return the weight of the examples that are mistakes to the rule under some weights, correcting nothing.

        With `decided`, it is the decision that counts, whatever the rule: the sign, or the highest of the outputs.
        """
        total = 0.0
        joint, tie = self.joint or (decided and flat.K > 1), self.ledger.tie
        rule = (RULES["perceptron"].code, 0.0) if decided else (self.rule.code, self.rule.margin)
        if decided and flat.K > 1 and tie == TIE_IS_PLUS:
            tie = TIE_IS_FIRST
        flat.lay(problem.rows.sparse)
        for begin, end, rows, at in problem.rows.blocks():
            here = problem if at == begin else problem.taken(np.arange(begin, end))
            total += passes.count_mistakes(
                *(rows.parts, rows.d, here.codes, here.weight, at, at + end - begin),
                *(flat.W, flat.b, np.empty(flat.K), self.bias, joint, tie, *rule),
            )
        return total

    def __getstate__(self) -> dict[str, Any]:
        return self.__dict__ | {"_out": ()}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state, tally=writable(state["tally"]))


class CycleFinder:
    """Brent's algorithm on the weights at the start of each pass: equal weights mean the run repeats for ever."""

    def __init__(self) -> None:
        self._saved: tuple[Floats, Floats] | None = None
        self._power = self._lag = 1

    def period(self, flat: Flat) -> int | None:
        """Look at the weights as a pass starts; return the period once they have come back."""
        if self._saved is not None:
            if np.array_equal(flat.W, self._saved[0]) and np.array_equal(flat.b, self._saved[1]):
                return self._lag
            if self._lag < self._power:
                self._lag += 1
                return None
            self._power, self._lag = 2 * self._power, 1
        self._saved = flat.W.copy(), flat.b.copy()
        return None


def cycle_start(ledger: Ledger, rows: Rows, period: int) -> int:
    """Return the first pass whose starting weights come back, by replaying the ledger at two places, `period` apart."""
    at = [mistakes for _, mistakes in ledger.pass_starts] + [len(ledger)]
    tail, head = (ledger.state(rows.sparse, ledger.start) for _ in range(2))
    ledger.replay_into(head, rows, ledger.example, slice(0, at[period]))
    first = 0
    while tail != head:
        ledger.replay_into(tail, rows, ledger.example, slice(at[first], at[first + 1]))
        ledger.replay_into(head, rows, ledger.example, slice(at[first + period], at[first + period + 1]))
        first += 1
    return first + 1


class Watcher(Protocol):
    """Somebody who looks at a run after each pass."""

    def after_pass(self, run: Run, problem: Problem) -> None:
        """See the run as it is now."""

    def after_training(self, run: Run, problem: Problem) -> None:
        """See the run at its end, unless it went back to an earlier pass."""


class Outcome(NamedTuple):
    """How training ended."""

    mistakes_per_pass: list[int]
    converged: bool
    cycle: Cycle | None
    validation_scores: list[float]


def train(
    run: Run,
    problem: Problem,
    *,
    order: str,
    seed: int,
    max_iter: int | None,
    average_from: int,
    early_stopping: bool,
    patience: int,
    tol: float | None,
    held_out_score: Callable[[], float] | None,
    watcher: Watcher | None,
    verdict: Callable[[float], str],
    progress: Callable[[int, float | None], None],
) -> Outcome:
    """Make passes until one is clean, a cycle is found, or `max_iter`.

    With `early_stopping`, also until the held-out accuracy has not risen for `patience` passes; else, with `tol`, until the
    mean loss of a pass has not fallen by `tol` below its best for so many.
    With `max_iter=None`, `verdict(seconds)` is asked as the passes double: on separable data a clean pass must come, so it
    is waited for longer; on other data nothing is waited for.
    """
    ledger, rows = run.ledger, problem.rows
    per_pass: list[int] = []
    scores: list[float] = []
    finder, cycle, converged = CycleFinder(), None, False
    best: Snapshot | None = None
    least, stalled = np.inf, 0
    limit = PASS_CAP if max_iter is None else max_iter
    next_proof = FIRST_PROOF_OF_CYCLIC if order == "cyclic" else FIRST_PROOF
    proven, began = "undecided", time.monotonic()
    while len(per_pass) < limit and not converged:
        number = len(per_pass)
        if order == "cyclic" and not run.rule.spread and cycle is None and (period := finder.period(run.last)):
            cycle = Cycle(cycle_start(ledger, rows, period), period)
        if cycle is not None and max_iter is None:
            break
        if max_iter is None and number == next_proof and proven == "undecided":
            proven, next_proof = verdict(max(1.0, time.monotonic() - began)), 2 * next_proof
            if proven == "separable":
                limit = SEPARABLE_PASS_CAP if run.rule.entry.ends else PASS_CAP
            elif proven != "undecided":
                break
        if number + 1 == average_from:
            run.average_from_here()
        ledger.begin_pass()
        steps, loss = ledger.steps, run.tally[1]
        per_pass.append(run.present(problem, visits(order, rows, seed, number)))
        converged = not per_pass[-1] and (order != "random" or not run.training_mistakes(problem, run.last))
        if watcher is not None:
            watcher.after_pass(run, problem)
        if held_out_score is not None:
            scores.append(held_out_score())
            if early_stopping:
                if best is None or scores[-1] > scores[best.passes - 1]:
                    state = run.last.weights(), run.late.weights(), run.last.spreads()
                    best = Snapshot(len(scores), ledger.steps, len(ledger), ledger.kept, *state)
                elif len(scores) - best.passes >= patience:
                    progress(per_pass[-1], scores[-1])
                    break
        progress(per_pass[-1], scores[-1] if scores else None)
        if tol is not None and not early_stopping:
            loss = (run.tally[1] - loss) / max(1, ledger.steps - steps)
            stalled = stalled + 1 if loss > least - tol else 0
            least = min(least, loss)
            if stalled >= patience:
                break
    if best is not None and best.passes < len(scores):
        run.restore(best)
    elif watcher is not None and not early_stopping:
        watcher.after_training(run, problem)
    if not (np.isfinite(run.last.W).all() and np.isfinite(run.late.W).all()):
        raise ValueError("the weights outgrew float64: scale the features or the sample weights down")
    if max_iter is None and not converged:
        ended = "cycle" if cycle is not None else proven
        if ended == "separable" and not run.rule.entry.ends:
            ended = "approached"
        if ended in ("cycle", "inseparable", "touching") or len(per_pass) == limit:
            told = WHY_IT_ENDED[ended].format(len(per_pass), *(cycle or (run.rule.name,)))
            warnings.warn(told, ConvergenceWarning, stacklevel=4)
    return Outcome(per_pass, converged, cycle, scores)
