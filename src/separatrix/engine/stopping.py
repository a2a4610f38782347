"""When training ends: one class for each reason, and the history of a training that they look at.

    clean      a pass without a mistake
    cycle      the weights at the start of a pass come back, in cyclic order: the run would repeat for ever
    proof      the data are proven not to be separable, or separable only by touching: no pass will ever be clean
    held-out   the accuracy on held-out examples has not risen for so many passes
    loss       the mean loss of a pass has not fallen by `tol` for so many passes
    limit      so many passes were made

Each reason is asked before a pass (`before`) and after it (`after`), and answers whether training ends. All they know is the
`History` and what they may ask of the `Passes` that are being made, so each can be tested alone.
"""

from __future__ import annotations

import hashlib
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple, Protocol

import numpy as np

from separatrix.engine.rows import Array

PASS_CAP = 10_000
"""With `max_iter=None`, training ends after so many passes on data about which nothing could be proven."""
SEPARABLE_PASS_CAP = 200_000
"""The same on data that are proven separable: a clean pass must come, but it may take longer than anybody can wait."""
FIRST_PROOF = 32
FIRST_PROOF_OF_CYCLIC = 1024
"""With `max_iter=None`, a proof is looked for after so many passes, and again as they double; a cycle may come first."""
FIRST_PROOF_SECONDS, PROOF_SECONDS = 10.0, 1.0
"""The least seconds for the first proof, in which kernels may have to be compiled, and for each later one: else the same
training could end later in the first process that ever runs it than in the next."""


class Cycle(NamedTuple):
    """The weights at the start of pass `start` come back every `period` passes, for ever."""

    start: int
    period: int


@dataclass
class History:
    """What has happened in a training so far; a checkpoint stores it and training resumes from it."""

    mistakes: list[int] = field(default_factory=list)
    """The mistakes of each pass."""
    losses: list[float] = field(default_factory=list)
    """The mean loss of each pass."""
    scores: list[float] = field(default_factory=list)
    """The accuracy on held-out examples after each pass; empty where there are none."""
    best: Any = None
    """How things were after the pass with the best score, as `Passes.snapshot` returned it."""
    cycle: Cycle | None = None
    verdict: str = "undecided"
    """What is proven about the data: "separable", "touching", "inseparable" or "undecided"."""
    ended: str = ""
    """The reason to end: "clean", "cycle", "proof", "held-out", "loss" or "limit"; empty while training goes on."""

    @property
    def passes(self) -> int:
        """The number of passes made."""
        return len(self.mistakes)

    def news(self) -> tuple[int, float | None]:
        """Return the mistakes of the last pass and its held-out score, for a progress bar."""
        return self.mistakes[-1], self.scores[-1] if self.scores else None

    @property
    def best_pass(self) -> int:
        """The pass, from 1, with the best held-out score, the first of equals; 0 where there is none."""
        return 1 + int(np.argmax(self.scores)) if self.scores else 0


class Passes(Protocol):
    """Somebody who makes the passes of a training: in memory, from blocks of a file, on shards, or in the dual."""

    def make_pass(self, number: int) -> tuple[int, float]:
        """Make pass `number`, from 0; return its mistakes and its mean loss."""

    def sweep_is_clean(self) -> bool:
        """Tell whether no example is a mistake now: what a pass without a mistake shows, unless examples were drawn."""

    def held_out_accuracy(self) -> float | None:
        """Return the accuracy on the held-out examples with the weights that would be used now; None without any."""

    def snapshot(self, passes: int) -> Any:
        """Return how things are after so many passes, for `restore`."""

    def restore(self, snapshot: Any) -> None:
        """Go back to an earlier pass."""

    def finish(self) -> None:
        """Do what is due at the end of a training that does not go back to an earlier pass."""

    def state(self) -> tuple[Array, ...]:
        """Return the numbers that determine all that follows in cyclic order."""

    def past_states(self) -> Iterable[tuple[Array, ...]]:
        """Return the states of the passes before a training was resumed, or what stands for them; else nothing."""

    def cycle_start(self, period: int) -> int:
        """Return the first pass, from 1, whose starting state comes back after `period` passes."""

    def verdict(self, seconds: float) -> str:
        """Return what can be proven about the data in so many seconds."""

    def is_finite(self) -> bool:
        """Tell whether no number has outgrown float64."""


class Reason(Protocol):
    """A reason to end a training."""

    name: str

    def before(self, history: History, passes: Passes) -> bool:
        """Tell whether training ends before the next pass."""

    def after(self, history: History, passes: Passes) -> bool:
        """Tell whether training ends with the pass that was just made."""


class CleanPass:
    """End with a pass without a mistake."""

    name = "clean"

    def before(self, history: History, passes: Passes) -> bool:
        """Never end before a pass."""
        return False

    def after(self, history: History, passes: Passes) -> bool:
        """End if the pass made no mistake and a sweep over all examples would make none either."""
        return not history.mistakes[-1] and passes.sweep_is_clean()


class CycleFinder:
    """Brent's algorithm on the state at the start of each pass: an equal state means that the run repeats for ever."""

    def __init__(self) -> None:
        self._saved: tuple[Array, ...] | None = None
        self._power = self._lag = 1

    def period(self, state: Sequence[Array]) -> int | None:
        """Look at the state as a pass starts; return the period once it has come back."""
        if self._saved is not None:
            if all(np.array_equal(now, then) for now, then in zip(state, self._saved, strict=True)):
                return self._lag
            if self._lag < self._power:
                self._lag += 1
                return None
            self._power, self._lag = 2 * self._power, 1
        self._saved = tuple(array.copy() for array in state)
        return None


class StateDigests:
    """Digests that stand for the state at the start of each pass, where the states themselves would take too much room."""

    def __init__(self, digests: list[str] | None = None) -> None:
        self.digests: list[str] = [] if digests is None else digests

    def add(self, *arrays: Array) -> tuple[Array, ...]:
        """Add the digest of a state, in which −0 is 0; return it as an array."""
        digest = hashlib.blake2b(digest_size=16)
        for array in arrays:
            digest.update((array + 0.0).tobytes())
        self.digests.append(digest.hexdigest())
        return self.states()[-1]

    def states(self) -> list[tuple[Array, ...]]:
        """Return the digests as arrays."""
        return [(np.frombuffer(bytes.fromhex(digest), np.uint8),) for digest in self.digests]

    def first_repeated(self, period: int) -> int:
        """Return the first pass, from 1, whose state comes back after `period` passes."""
        pairs = zip(self.digests, self.digests[period:], strict=False)
        return 1 + next(number for number, (then, now) in enumerate(pairs) if then == now)


class WeightsRepeat:
    """Find the cycle of a run in cyclic order; end there if training is to go on until convergence."""

    name = "cycle"

    def __init__(self, ends: bool) -> None:
        self.ends = ends
        self._finder: CycleFinder | None = None

    def before(self, history: History, passes: Passes) -> bool:
        """Look for the state of an earlier pass."""
        if self._finder is None:
            self._finder = CycleFinder()
            for state in passes.past_states():
                self._finder.period(state)
        if history.cycle is None and (period := self._finder.period(passes.state())):
            history.cycle = Cycle(passes.cycle_start(period), period)
        return self.ends and history.cycle is not None

    def after(self, history: History, passes: Passes) -> bool:
        """Never end after a pass: the state at its start is what counts."""
        return False


class ProvenInseparable:
    """End where it is proven that no pass will ever be clean. Proofs are looked for as the passes double."""

    name = "proof"

    def __init__(self, first: int, clock: Callable[[], float] = time.monotonic) -> None:
        self._next, self._clock, self._began = first, clock, clock()
        self._least_seconds = FIRST_PROOF_SECONDS

    def before(self, history: History, passes: Passes) -> bool:
        """Ask for a proof, for as long as training has taken so far, but at least for a while."""
        while self._next < history.passes:  # asked for before training was interrupted
            self._next *= 2
        if history.passes == self._next and history.verdict == "undecided":
            history.verdict = passes.verdict(max(self._least_seconds, self._clock() - self._began))
            self._least_seconds = PROOF_SECONDS
            self._next *= 2
        return history.verdict in ("inseparable", "touching")

    def after(self, history: History, passes: Passes) -> bool:
        """Never end after a pass."""
        return False


class HeldOutStall:
    """End when the held-out accuracy has not risen for `patience` passes, and keep the state of the best pass."""

    name = "held-out"

    def __init__(self, patience: int) -> None:
        self.patience = patience

    def before(self, history: History, passes: Passes) -> bool:
        """Never end before a pass."""
        return False

    def after(self, history: History, passes: Passes) -> bool:
        """Remember the pass if it is the best so far; else end if the best one was too long ago."""
        if not history.scores:
            return False
        if history.best_pass == history.passes:
            history.best = passes.snapshot(history.passes)
            return False
        return history.passes - history.best_pass >= self.patience


class LossStall:
    """End when the mean loss of a pass has not fallen by `tol` below its best for `patience` passes."""

    name = "loss"

    def __init__(self, tol: float, patience: int) -> None:
        self.tol, self.patience = tol, patience

    def before(self, history: History, passes: Passes) -> bool:
        """Never end before a pass."""
        return False

    def after(self, history: History, passes: Passes) -> bool:
        """Count the passes in a row whose loss was not below the best so far by `tol`."""
        least, stalled = np.inf, 0
        for loss in history.losses:
            stalled = stalled + 1 if loss > least - self.tol else 0
            least = min(least, loss)
        return stalled >= self.patience


class PassLimit:
    """End after `max_iter` passes; None: after a cap, which is higher where a clean pass is proven to come."""

    name = "limit"

    def __init__(self, max_iter: int | None, *, ends_on_separable: bool = True) -> None:
        self.max_iter, self.ends_on_separable = max_iter, ends_on_separable

    def limit(self, history: History) -> int:
        """Return the number of passes allowed."""
        if self.max_iter is not None:
            return self.max_iter
        return SEPARABLE_PASS_CAP if history.verdict == "separable" and self.ends_on_separable else PASS_CAP

    def before(self, history: History, passes: Passes) -> bool:
        """End where a resumed training has made its passes already."""
        return history.passes >= self.limit(history)

    def after(self, history: History, passes: Passes) -> bool:
        """End with the last pass allowed."""
        return history.passes >= self.limit(history)


def reasons(
    *,
    order: str,
    max_iter: int | None,
    patience: int,
    early_stopping: bool = False,
    tol: float | None = None,
    repeats: bool = True,
    ends_on_separable: bool = True,
) -> list[Reason]:
    """Return the reasons to end that some parameters mean, in the order in which they are asked.

    Parameters
    ----------
    order, max_iter, early_stopping, tol : as the learners have them
    patience : their `n_iter_no_change`
    repeats : whether the weights determine what follows; not where a rule keeps variances that shrink for ever
    ends_on_separable : whether the rule makes finitely many corrections on separable data
    """
    chosen: list[Reason] = [CleanPass()]
    if order == "cyclic" and repeats:
        chosen.append(WeightsRepeat(ends=max_iter is None))
    if max_iter is None:
        chosen.append(ProvenInseparable(FIRST_PROOF_OF_CYCLIC if order == "cyclic" else FIRST_PROOF))
    if early_stopping:
        chosen.append(HeldOutStall(patience))
    elif tol is not None:
        chosen.append(LossStall(tol, patience))
    return [*chosen, PassLimit(max_iter, ends_on_separable=ends_on_separable)]


_WHY = {
    "inseparable": "the data are proven inseparable: no pass would ever be without a mistake, so training ended after {n:,} "
    "passes. certify(X, y) shows the examples that make it impossible.",
    "touching": "the data are proven separable only by touching, with a margin of 0: nothing bounds the mistakes, so "
    "training ended after {n:,} passes. certify(X, y) shows why.",
    "separable": "the data are proven separable, but {n:,} passes were not enough: the margin is so small that the theorem "
    "allows more mistakes than can be waited for. Scale the features, or use MaxMarginClassifier(C=None).",
    "approached": "the data are proven separable, but {n:,} passes were not enough: rule={rule!r} need not bring "
    "every lead to 1 in finitely many corrections. Set max_iter, or use MaxMarginClassifier(C=None).",
    "cycle": "the {what} at the start of pass {start:,} come back, with a period of {period:,}: no pass of this run would "
    "ever be without a mistake, so training ended after {n:,}. certify(X, y) proves whether another boundary separates the "
    "data.",
    "undecided": "{n:,} passes did not separate the data{where}, and nothing could be proven about them in that time. "
    "Either no boundary does, or the margin is so small that the perceptron needs longer. Set max_iter to make more passes.",
}


def why_not_converged(history: History, *, rule: str, ends_on_separable: bool = True, kernel: bool = False) -> str | None:
    """Return the warning of a training until convergence that ended otherwise, or None where it converged."""
    if history.ended in ("clean", "held-out", "loss"):
        return None
    why = "cycle" if history.ended == "cycle" else history.verdict
    if why == "separable" and not ends_on_separable:
        why = "approached"
    start, period = history.cycle or (0, 0)
    where, what = (" in the space of the kernel", "scores") if kernel else ("", "weights")
    return _WHY[why].format(n=history.passes, rule=rule, start=start, period=period, where=where, what=what)
