"""Training on blocks that need not fit in memory: passes, held-out examples, early stopping, and resuming after an end.

With one block, which is all that fits in memory, and in cyclic order with any number of them, the model is bit for bit that
of `fit` on all examples at once; other orders shuffle the blocks, which are random samples of all examples, and the examples
within each. The state of training at the end of a block is all that is needed to resume from there, to the same model, bit
for bit.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from separatrix.engine.labels import Codes, check_two_classes
from separatrix.engine.loop import train
from separatrix.engine.orders import order_for, visits
from separatrix.engine.presenting import Problem
from separatrix.engine.rows import NO_ORDER, NO_WEIGHT, Array, Floats, Ints, Rows, frozen
from separatrix.engine.run import Run, Snapshot
from separatrix.engine.stopping import Cycle, History, Reason, StateDigests
from separatrix.engine.weights import Weights
from separatrix.files.blocks import Blocks
from separatrix.learners.calibration import cross_fitted_slope, find_slope
from separatrix.learners.inputs import HeldOut
from separatrix.learners.online import OnlineLearner

LEDGER_BYTES = 1 << 28
"""What the ledger of a streamed training may take; one that outgrows it is given up, and says so."""


@dataclass
class TrainingState:
    """How far training has come: what a checkpoint stores, and what training resumes from."""

    run: Run
    history: History = field(default_factory=History)
    block: int = 0
    """How many blocks of the unfinished pass were presented."""
    partial: int | None = 0
    """The mistakes of the unfinished pass; None where passes are never interrupted."""
    loss_before: float = 0.0
    """The sum of the losses before the unfinished pass."""
    errors: int = 0
    """Examples misjudged in the first pass, before they were learned from: the progressive error."""
    C_scores: dict[float, float] | None = None
    digests: StateDigests = field(default_factory=StateDigests)

    @property
    def ended(self) -> bool:
        """Whether the last pass was made."""
        return bool(self.history.ended)

    def facts(self) -> dict[str, Any]:
        """Return what a checkpoint stores of the state as JSON, beside the run and its arrays."""
        history, best = self.history, self.history.best
        unfinished = [] if self.partial is None or self.ended else [self.partial]
        return {
            "seed": self.run.seed,
            "number": history.passes,
            "block": self.block,
            "per_pass": history.mistakes + unfinished,
            "loss_before": self.loss_before,
            "scores": history.scores,
            "losses": history.losses,
            "errors": self.errors,
            "ended": self.ended,
            "reason": history.ended,
            "cycle": None if history.cycle is None else [*history.cycle],
            "digests": self.digests.digests,
            "verdict": history.verdict,
            "C_scores": None if self.C_scores is None else list(self.C_scores.items()),
            "best": None if best is None else [best.passes, best.steps, best.mistakes],
        }

    def arrays(self) -> dict[str, Array]:
        """Return the weights of the best pass so far, where there is one."""
        best = self.history.best
        if best is None:
            return {}
        parts = {"last": [*best.last], "late": [*best.late], "spread": best.spread}
        return {f"best.{name}.{k}": array for name, arrays in parts.items() for k, array in enumerate(arrays)}

    @classmethod
    def resumed(cls, run: Run, facts: dict[str, Any], arrays: Mapping[str, Array]) -> TrainingState:
        """Return the state that a checkpoint stores."""
        run.ledger.limit = LEDGER_BYTES // 32
        best = None
        if facts["best"] is not None:
            parts = [[arrays[f"best.{name}.{k}"] for k in range(2)] for name in ("last", "late")]
            spread = [arrays[key] for key in ("best.spread.0", "best.spread.1") if key in arrays]
            passes, steps, mistakes = facts["best"]
            best = Snapshot(passes, steps, mistakes, None, Weights(*parts[0]), Weights(*parts[1]), spread)
        number = facts["number"]
        mistakes = facts["per_pass"]
        # The first checkpoints had no reason to end: a pass without a mistake was one, and the others count as a limit.
        ended_before = ("limit" if mistakes[-1] else "clean") if facts["ended"] else ""
        history = History(
            mistakes[:number],
            facts.get("losses", []),
            list(facts["scores"]),
            best,
            None if facts.get("cycle") is None else Cycle(*facts["cycle"]),
            facts.get("verdict", "undecided"),
            ended=facts.get("reason", ended_before),
        )
        C_scores = None if facts["C_scores"] is None else {float(C): float(s) for C, s in facts["C_scores"]}
        partial = mistakes[number] if len(mistakes) > number else 0
        # The first checkpoints had no digests: numbers stand for those of their passes, which no digest is equal to.
        begun = number + (facts["block"] > 0)
        digests = StateDigests(list(facts.get("digests", [f"{k:08x}" for k in range(begun)])))
        loss_before = facts.get("loss_before", 0.0)
        return cls(run, history, facts["block"], partial, loss_before, facts["errors"], C_scores, digests)


def begin(learner: OnlineLearner, blocks: Blocks, classes: Array, held_out: Blocks | None) -> TrainingState:
    """Return the state before the first example."""
    learner.check_parameters()
    check_two_classes(classes)
    if learner.calibrate is not None and held_out is None and blocks.spilled:
        raise ValueError(
            "calibrate=True trains on parts of the rows in turn, and these do not fit in memory: hold some out with "
            "holdout=0.05, which costs little where there are so many, or increase memory="
        )
    learner.n_features_in_ = blocks.d
    seed, C, C_scores = learner.seed(), learner.C, None
    if C == "auto":
        chooser = None
        if held_out is not None and len(held_out):
            examples = held_out.read(0)
            chooser = HeldOut(examples.rows, NO_ORDER, examples.codes)
        C, C_scores = learner.choose_c(classes, weighted(learner, classes, blocks.read(0), blocks), chooser, None, seed)
    run = learner.new_run(classes, blocks.d, C)
    run.order, run.seed = learner.order, seed
    run.ledger.limit = LEDGER_BYTES // 32
    run.ledger.weighted = learner.class_weight is not None
    return TrainingState(run, C_scores=C_scores)


def weighted(learner: OnlineLearner, classes: Array, problem: Problem, blocks: Blocks) -> Problem:
    """Return the problem with the weights that its classes have."""
    if learner.class_weight is None:
        return problem
    if learner.class_weight == "balanced":
        counts = blocks.class_counts()
        factors: Floats = counts.sum() / (np.count_nonzero(counts) * np.maximum(counts, 1))
    else:
        factors = learner.example_weight(None, classes, classes)
    return problem._replace(weight=frozen(factors[problem.codes]))


def block_order(order: str, blocks: int, seed: int, number: int) -> Ints:
    """Return the order of the blocks in pass `number`."""
    if order == "cyclic" or blocks == 1:
        return np.arange(blocks)
    return np.random.default_rng([seed, number, blocks]).permutation(blocks)


class BlockPasses:
    """The passes of a training on blocks."""

    def __init__(
        self,
        learner: OnlineLearner,
        blocks: Blocks,
        held_out: Blocks | None,
        state: TrainingState,
        after_block: Callable[[TrainingState, int], None],
    ) -> None:
        self.learner, self.blocks, self.held_out, self.state_ = learner, blocks, held_out, state
        self.run, self._after_block = state.run, after_block
        self._last_rows = 0

    def reasons(self) -> Sequence[Reason]:
        """Return the reasons to end."""
        return self.learner.reasons(self.run)

    def make_pass(self, number: int) -> tuple[int, float]:
        """Present the blocks that the pass has not presented yet."""
        state, run, learner = self.state_, self.run, self.learner
        if state.block == 0:
            run.begin_pass(number, learner.average_from)
            state.loss_before = float(run.tally[1])
        steps_before, _ = run.ledger.pass_starts[-1]
        order = block_order(learner.order, len(self.blocks), run.seed, number)
        assert state.partial is not None
        for k in order[state.block :].tolist():
            problem = weighted(learner, run.classes, self.blocks.read(k), self.blocks)
            if number == 0:
                run.radius_squared = max(run.radius_squared, problem.rows.survey(problem.weight))
            turn = number * len(self.blocks) + k
            visited = visits(order_for(learner.order, *problem[:2]), problem.rows, run.seed, turn, run.gaps)
            state.partial += run.present(problem, visited, self.blocks.numbers(k))
            state.block += 1
            if state.block < len(self.blocks):
                self._after_block(state, problem.rows.n)
            self._last_rows = problem.rows.n
        mistakes, state.partial, state.block = state.partial, 0, 0
        if number == 0:
            state.errors = run.errors
        return mistakes, float((run.tally[1] - state.loss_before) / max(1, run.ledger.steps - steps_before))

    def after_pass(self, history: History) -> None:
        """Tell of the last block of the pass, now that it is known whether it was the last pass."""
        self._after_block(self.state_, self._last_rows)

    def sweep_is_clean(self) -> bool:
        """Tell whether no example is a mistake under the last weights; an order that visits all has shown it."""
        run = self.run
        if run.order != "random":
            return True
        problems = (weighted(self.learner, run.classes, problem, self.blocks) for problem in self.blocks)
        return not any(run.training_mistakes(problem, run.last) for problem in problems)

    def held_out_accuracy(self) -> float | None:
        """Return the accuracy on the held-out examples, if there are any."""
        return None if self.held_out is None else accuracy(self.learner, self.run, self.held_out)

    def snapshot(self, passes: int) -> Snapshot:
        """Return a copy of the weights and of the clock."""
        return self.run.snapshot(passes)

    def restore(self, snapshot: Snapshot) -> None:
        """Go back to an earlier pass."""
        self.run.restore(snapshot)

    def finish(self) -> None:
        """Do nothing more."""

    def state(self) -> tuple[Array, ...]:
        """Return a digest of the weights at the start of the pass: they determine all that follows."""
        if self.state_.block:  # the pass was interrupted: its digest is in the checkpoint
            return self.state_.digests.states()[-1]
        return self.state_.digests.add(self.run.last.W, self.run.last.b)

    def past_states(self) -> Iterable[tuple[Array, ...]]:
        """Return the digests of the finished passes that a checkpoint stored."""
        return self.state_.digests.states()[: self.state_.history.passes]

    def cycle_start(self, period: int) -> int:
        """Return the first pass whose starting weights come back."""
        return self.state_.digests.first_repeated(period)

    def verdict(self, seconds: float) -> str:
        """Return what can be proven about the examples, as long as all of them are in memory."""
        if self.blocks.spilled:
            return "undecided"
        codes = np.concatenate([problem.codes for problem in self.blocks])
        problem = Problem(Rows(self.blocks.together()), frozen(codes))
        return self.learner.prove(self.run, weighted(self.learner, self.run.classes, problem, self.blocks), seconds)

    def is_finite(self) -> bool:
        """Tell whether weights and averages are finite."""
        return self.run.is_finite()


def resume(
    learner: OnlineLearner,
    blocks: Blocks,
    held_out: Blocks | None,
    state: TrainingState,
    *,
    after_block: Callable[[TrainingState, int], None] = lambda state, n: None,
    passes: BlockPasses | None = None,
) -> OnlineLearner:
    """Train from `state` to the end; `after_block` is called after each block, with its number of examples.

    `passes` are others than the usual ones, of the same state.
    """
    passes = passes or BlockPasses(learner, blocks, held_out, state, after_block)
    train(passes, passes.reasons(), state.history, after_pass=passes.after_pass)
    run = state.run
    run.rows_seen = blocks.n
    if run.keeps_rows and not run.ledger.absent:
        numbers = np.unique(run.ledger.example.astype(np.int64))
        run.ledger.keep_examples(numbers, blocks.take(numbers))
    slope = None
    if learner.calibrate is not None:
        slope = _slope(learner, run, blocks, held_out)
    learner.publish(
        *(run, list(state.history.mistakes), state.history),
        progressive_errors_=state.errors,
        C_=run.rule.C if learner.C == "auto" else None,
        C_scores_=state.C_scores or {} if learner.C == "auto" else None,
        validation_scores_=None if held_out is None else list(state.history.scores),
        slope_=slope,
    )
    learner.warn_unless_converged(state.history)
    return learner


def _slope(learner: OnlineLearner, run: Run, blocks: Blocks, held_out: Blocks | None) -> float:
    """Return the slope of the probabilities, found on held-out examples or else, as `fit` does, by cross-fitting."""
    if held_out is not None:
        scores, codes = scores_of(run, held_out)
        return find_slope(scores[codes >= 0], codes[codes >= 0], NO_WEIGHT)
    problem = weighted(learner, run.classes, blocks.read(0), blocks)
    return cross_fitted_slope(learner, run.rule.C, *problem, run.seed)


def scores_of(run: Run, blocks: Blocks) -> tuple[Floats, Codes]:
    """Return the scores of all examples under the weights that would be used now, and their classes."""
    parts = [(problem.rows.scores(*run.weights()), problem.codes) for problem in blocks]
    return np.concatenate([scores for scores, _ in parts]), np.concatenate([codes for _, codes in parts])


def accuracy(learner: OnlineLearner, run: Run, blocks: Blocks) -> float:
    """Return the share of examples that the weights used now get right."""
    K = len(run.classes)
    _, right = counts_by_class(blocks, K, lambda rows: learner.decide(rows.scores(*run.weights()), K))
    return int(right.sum()) / max(1, blocks.n)


def counts_by_class(problems: Iterable[Problem], n_classes: int, decide: Callable[[Rows], Ints]) -> tuple[Ints, Ints]:
    """Return how many examples each class has, and how many of them are decided rightly."""
    counts, right = np.zeros((2, n_classes), np.int64)
    for problem in problems:
        is_right = decide(problem.rows) == problem.codes
        counts += np.bincount(problem.codes[problem.codes >= 0], minlength=n_classes)
        right += np.bincount(problem.codes[is_right], minlength=n_classes)
    return counts, right
