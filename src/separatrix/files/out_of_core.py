"""Training on blocks that need not fit in memory: passes, held-out examples, early stopping, and going on after an end.

With one block, and in cyclic order with any number of them, the model is bit for bit that of `fit` on all examples at
once; other orders shuffle the blocks, and the examples within each. The state of training at the end of a block is all that
is needed to go on from there, to the same model, bit for bit.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from separatrix.engine.inputs import HeldOut
from separatrix.engine.labels import Codes
from separatrix.engine.orders import visits
from separatrix.engine.rows import NO_ORDER, NO_WEIGHT, Array, Floats, Ints, frozen
from separatrix.engine.run import Problem, Run, Snapshot
from separatrix.engine.weights import Weights
from separatrix.estimators.online import OnlineLearner
from separatrix.files.blocks import Blocks
from separatrix.learners.calibration import find_slope

LEDGER_BYTES = 1 << 28
"""What the ledger of a streamed training may take; one that outgrows it is given up, and says so."""


@dataclass
class State:
    """How far training has come: the run, the pass (from 0), the block within it, and what was found on the way."""

    run: Run
    seed: int
    number: int = 0
    block: int = 0
    per_pass: list[int] = field(default_factory=lambda: [0])
    scores: list[float] = field(default_factory=list)
    best: Snapshot | None = None
    errors: int = 0
    """Examples misjudged in the first pass, before they were learned from: the progressive error."""
    C_scores: dict[float, float] | None = None
    ended: bool = False

    def told(self) -> dict[str, Any]:
        """Return what a checkpoint says of the state, beside the run and its arrays."""
        best = self.best
        return {
            "seed": self.seed,
            "number": self.number,
            "block": self.block,
            "per_pass": self.per_pass,
            "scores": self.scores,
            "errors": self.errors,
            "ended": self.ended,
            "C_scores": None if self.C_scores is None else list(self.C_scores.items()),
            "best": None if best is None else [best.passes, best.steps, best.mistakes],
        }

    def arrays(self) -> dict[str, Array]:
        """Return the weights of the best pass so far, where there is one."""
        if self.best is None:
            return {}
        parts = {"last": [*self.best.last], "late": [*self.best.late], "spread": self.best.spread}
        return {f"best.{name}.{k}": array for name, arrays in parts.items() for k, array in enumerate(arrays)}

    @classmethod
    def resumed(cls, run: Run, told: dict[str, Any], arrays: dict[str, Array]) -> State:
        """Return the state that a checkpoint tells of."""
        run.ledger.limit = LEDGER_BYTES // 32
        best = None
        if told["best"] is not None:
            parts = [[arrays[f"best.{name}.{k}"] for k in range(2)] for name in ("last", "late")]
            spread = [arrays[key] for key in ("best.spread.0", "best.spread.1") if key in arrays]
            passes, steps, mistakes = told["best"]
            best = Snapshot(passes, steps, mistakes, None, Weights(*parts[0]), Weights(*parts[1]), spread)
        C_scores = None if told["C_scores"] is None else {float(C): float(s) for C, s in told["C_scores"]}
        return cls(
            run,
            told["seed"],
            told["number"],
            told["block"],
            list(told["per_pass"]),
            list(told["scores"]),
            best,
            told["errors"],
            C_scores,
            told["ended"],
        )


def begin(learner: OnlineLearner, blocks: Blocks, classes: Array, held_out: Blocks | None) -> State:
    """Return the state before the first example."""
    learner._validate_params()
    if len(classes) < 2:
        raise ValueError(f"a boundary needs two classes, but there is only 1 class: {classes.tolist()}")
    learner.n_features_in_ = blocks.d
    seed, C, told = learner._seed(), learner.C, None
    if C == "auto":
        out = None
        if held_out is not None and len(held_out):
            examples = held_out.read(0)
            out = HeldOut(examples.rows, NO_ORDER, examples.codes)
        C, told = learner._choose(classes, weighted(learner, classes, blocks.read(0), blocks), out, None, seed)
    run = learner._new_run(classes, blocks.d, C)
    run.order, run.seed = learner.order, seed
    run.ledger.limit = LEDGER_BYTES // 32
    run.ledger.weighted = learner.class_weight is not None
    return State(run, seed, C_scores=told)


def weighted(learner: OnlineLearner, classes: Array, problem: Problem, blocks: Blocks) -> Problem:
    """Return the problem with the weights that its classes have."""
    if learner.class_weight is None:
        return problem
    by_class = learner.class_weight
    if by_class == "balanced":
        counts = blocks.class_counts()
        factors: Floats = counts.sum() / (np.count_nonzero(counts) * np.maximum(counts, 1))
    else:
        factors = learner._weight(None, classes, classes)
    return problem._replace(weight=frozen(factors[problem.codes]))


def block_order(order: str, blocks: int, seed: int, number: int) -> Ints:
    """Return the order of the blocks in pass `number`."""
    if order == "cyclic" or blocks == 1:
        return np.arange(blocks)
    return np.random.default_rng([seed, number, blocks]).permutation(blocks)


def go_on(
    learner: OnlineLearner,
    blocks: Blocks,
    held_out: Blocks | None,
    state: State,
    *,
    after_block: Callable[[State, int], None] = lambda state, n: None,
) -> OnlineLearner:
    """Train from `state` to the end; `after_block` is called after each block, with its number of examples."""
    run, starts = state.run, blocks.starts()
    limit = learner.max_iter or 1
    while not state.ended:
        if state.block == 0:
            if state.number + 1 == getattr(learner, "average_from", 1):
                run.average_from_here()
            run.ledger.begin_pass()
        for k in block_order(learner.order, len(blocks), state.seed, state.number)[state.block :].tolist():
            problem = weighted(learner, run.classes, blocks.read(k), blocks)
            if state.number == 0:
                run.radius_squared = max(run.radius_squared, problem.rows.survey(problem.weight))
            order = visits(learner.order, problem.rows, state.seed, state.number * len(blocks) + k)
            state.per_pass[-1] += run.present(problem, order, int(starts[k]))
            state.block += 1
            if state.block == len(blocks):
                state.ended = _end_of_pass(learner, blocks, held_out, state, limit)
            after_block(state, problem.rows.n)
    _publish(learner, blocks, held_out, state)
    return learner


def _end_of_pass(learner: OnlineLearner, blocks: Blocks, held_out: Blocks | None, state: State, limit: int) -> bool:
    """Judge the pass on the held-out examples; return whether it was the last one."""
    run = state.run
    if state.number == 0:
        state.errors = run.errors
    ended = _converged(learner, blocks, state)
    if held_out is not None:
        state.scores.append(accuracy(learner, run, held_out))
        if learner.early_stopping:
            best = state.best
            if best is None or state.scores[-1] > state.scores[best.passes - 1]:
                parts = run.last.weights(), run.late.weights(), run.last.spreads()
                state.best = Snapshot(len(state.scores), run.ledger.steps, run.ledger.total, None, *parts)
            elif len(state.scores) - best.passes >= learner.n_iter_no_change:
                ended = True
    state.number, state.block = state.number + 1, 0
    if ended or state.number == limit:
        return True
    state.per_pass.append(0)
    return False


def _converged(learner: OnlineLearner, blocks: Blocks, state: State) -> bool:
    if state.per_pass[-1]:
        return False
    return learner.order != "random" or not any(state.run.training_mistakes(problem, state.run.last) for problem in blocks)


def scores_of(run: Run, blocks: Blocks) -> tuple[Floats, Codes]:
    """Return the scores of all examples under the weights that would be used now, and their classes."""
    parts = [(problem.rows.scores(*run.weights()), problem.codes) for problem in blocks]
    return np.concatenate([scores for scores, _ in parts]), np.concatenate([codes for _, codes in parts])


def accuracy(learner: OnlineLearner, run: Run, blocks: Blocks) -> float:
    """Return the share of examples that the weights used now get right."""
    right = 0
    for problem in blocks:
        scores = problem.rows.scores(*run.weights())
        right += int(np.count_nonzero(learner._decide(scores, len(run.classes)) == problem.codes))
    return right / max(1, blocks.n)


def _publish(learner: OnlineLearner, blocks: Blocks, held_out: Blocks | None, state: State) -> None:
    run = state.run
    if state.best is not None and state.best.passes < len(state.scores):
        run.restore(state.best)
    if not (np.isfinite(run.last.W).all() and np.isfinite(run.late.W).all()):
        raise ValueError("the weights outgrew float64: scale the features down")
    run.rows_seen = blocks.n
    if run.keeps_rows and not run.ledger.absent:
        numbers = np.unique(run.ledger.example.astype(np.int64))
        run.ledger.keep_examples(numbers, blocks.take(numbers))
    learner._publish(run, list(state.per_pass))
    learner.converged_ = not state.per_pass[-1] and run.ledger.cut is None
    learner.cycle_ = None
    learner.progressive_errors_ = state.errors
    if learner.C == "auto":
        learner.C_ = run.rule.C
        learner.C_scores_ = state.C_scores or {}
    if held_out is not None:
        learner.validation_scores_ = list(state.scores)
    if learner.calibrate is not None:
        if held_out is None:
            raise ValueError("calibrated probabilities need held-out examples")
        scores, codes = scores_of(run, held_out)
        learner.slope_ = find_slope(scores[codes >= 0], codes[codes >= 0], NO_WEIGHT)
