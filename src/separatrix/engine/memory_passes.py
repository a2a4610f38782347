"""The passes of a run over examples in memory, as `loop.py` asks for them."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Protocol

from separatrix.engine.orders import order_for, visits
from separatrix.engine.presenting import Problem
from separatrix.engine.rows import Array
from separatrix.engine.run import Run, Snapshot


class Watcher(Protocol):
    """Somebody who looks at a run after each pass."""

    def after_pass(self, run: Run, problem: Problem) -> None:
        """See the run as it is now."""

    def after_training(self, run: Run, problem: Problem) -> None:
        """See the run at its end, unless it went back to an earlier pass."""


class MemoryPasses:
    """The passes of a run over examples in memory."""

    def __init__(
        self,
        run: Run,
        problem: Problem,
        *,
        average_from: int = 1,
        accuracy: Callable[[], float] | None = None,
        prove: Callable[[float], str] = lambda seconds: "undecided",
        watcher: Watcher | None = None,
    ) -> None:
        self.run, self.problem, self.average_from = run, problem, average_from
        self._order = order_for(run.order, problem.rows, problem.codes)
        self._accuracy, self._prove, self._watcher = accuracy, prove, watcher
        run.last.lay(problem.rows.sparse)

    def make_pass(self, number: int) -> tuple[int, float]:
        """Present all examples once, in the order of this pass."""
        run, problem = self.run, self.problem
        run.begin_pass(number, self.average_from)
        steps, loss = run.ledger.steps, run.tally[1]
        mistakes = run.present(problem, visits(self._order, problem.rows, run.seed, number, run.gaps))
        if self._watcher is not None:
            self._watcher.after_pass(run, problem)
        return mistakes, float((run.tally[1] - loss) / max(1, run.ledger.steps - steps))

    def sweep_is_clean(self) -> bool:
        """Tell whether no example is a mistake under the last weights; an order that visits all has shown it."""
        return self.run.order != "random" or not self.run.training_mistakes(self.problem, self.run.last)

    def held_out_accuracy(self) -> float | None:
        """Return the accuracy on the held-out examples, if there are any."""
        return None if self._accuracy is None else self._accuracy()

    def snapshot(self, passes: int) -> Snapshot:
        """Return a copy of the weights and of the clock."""
        return self.run.snapshot(passes)

    def restore(self, snapshot: Snapshot) -> None:
        """Go back to an earlier pass."""
        self.run.restore(snapshot)

    def finish(self) -> None:
        """Show the run to its watcher."""
        if self._watcher is not None:
            self._watcher.after_training(self.run, self.problem)

    def state(self) -> tuple[Array, ...]:
        """Return the weights; with the perceptron rule they determine all that follows."""
        return self.run.last.W, self.run.last.b

    def past_states(self) -> Iterable[tuple[Array, ...]]:
        """Return nothing: a training in memory is not resumed."""
        return ()

    def cycle_start(self, period: int) -> int:
        """Return the first pass whose starting weights come back, by replaying the ledger at two places."""
        ledger, rows = self.run.ledger, self.problem.rows
        at = [mistakes for _, mistakes in ledger.pass_starts] + [len(ledger)]
        tail, head = (ledger.state(rows.sparse, ledger.start) for _ in range(2))
        ledger.replay_into(head, rows, ledger.example, slice(0, at[period]))
        first = 0
        while tail != head:
            ledger.replay_into(tail, rows, ledger.example, slice(at[first], at[first + 1]))
            ledger.replay_into(head, rows, ledger.example, slice(at[first + period], at[first + period + 1]))
            first += 1
        return first + 1

    def verdict(self, seconds: float) -> str:
        """Return what can be proven about the presented examples."""
        return self._prove(seconds)

    def is_finite(self) -> bool:
        """Tell whether weights and averages are finite."""
        return self.run.is_finite()
