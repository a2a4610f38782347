"""Tasks timed in turn, so that what else the machine does falls on all of them: the times kept, not only the best."""

import statistics
import time
from collections.abc import Callable
from typing import Any, NamedTuple


class Times(NamedTuple):
    """The times of one task: on the clock, and of all its threads together, which a busy machine changes less."""

    wall: list[float]
    cpu: list[float]

    @property
    def best(self) -> float:
        return min(self.wall)

    @property
    def median(self) -> float:
        return statistics.median(self.wall)

    @property
    def worst(self) -> float:
        return max(self.wall)


def in_turns(
    *tasks: Callable[[], Any], repeats: int, warm_up: int = 0, prepare: Callable[[], Any] = lambda: None
) -> tuple[list[Times], list[Any]]:
    """Run every task once a round; return their times and what each gave last.

    The first `warm_up` rounds are not kept. `prepare` runs before each task and is not timed.
    """
    times, gave = [Times([], []) for _ in tasks], [None] * len(tasks)
    for turn in range(warm_up + repeats):
        for k, task in enumerate(tasks):
            prepare()
            wall, cpu = time.perf_counter(), time.process_time()
            gave[k] = task()
            if turn >= warm_up:
                times[k].wall.append(time.perf_counter() - wall)
                times[k].cpu.append(time.process_time() - cpu)
    return times, gave


def best(*tasks: Callable[[], Any], repeats: int) -> list[float]:
    """Return the best time of each task."""
    return [times.best for times in in_turns(*tasks, repeats=repeats)[0]]
