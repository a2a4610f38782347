"""Parts of a computation on several threads: the kernels hold no lock of Python, so they run side by side.

Nothing here decides what the parts are. Whoever divides work does so in parts that do not depend on the number of threads,
or whose results do not, so that one thread and many give the same bits.
"""

from __future__ import annotations

import os
import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from typing import TypeVar

Task = TypeVar("Task")
Result = TypeVar("Result")

LARGE = 1 << 27
"""Threads are worth starting from so many bytes of work on."""
_worker = threading.local()


def cores() -> int:
    """Return how many cores this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def threads_of(n_jobs: int | None = None, work: int = LARGE) -> int:
    """Return how many threads `n_jobs` means for work that costs as much as reading so many bytes.

    None is the number in the environment variable OMP_NUM_THREADS, or all cores without it, and one for little work and for
    work that is itself a part of divided work; −1 is all cores, −2 all but one.
    """
    if n_jobs is not None and n_jobs != 0:
        return n_jobs if n_jobs > 0 else max(1, cores() + 1 + n_jobs)
    if work < LARGE or getattr(_worker, "active", False):
        return 1
    told = os.environ.get("OMP_NUM_THREADS", "").split(",")[0].strip()
    return int(told) if told.isdecimal() and int(told) > 0 else cores()


def in_order(work: Callable[[Task], Result], tasks: Iterable[Task], threads: int) -> Iterator[Result]:
    """Yield work(each) in order, `threads` of them at a time."""
    if threads < 2:
        yield from map(work, tasks)
        return
    waiting: deque[Future[Result]] = deque()
    with ThreadPoolExecutor(threads, initializer=_begin_worker) as pool:
        try:
            for task in tasks:
                waiting.append(pool.submit(work, task))
                if len(waiting) > threads:
                    yield waiting.popleft().result()
            while waiting:
                yield waiting.popleft().result()
        finally:
            for future in waiting:
                future.cancel()


def _begin_worker() -> None:
    _worker.active = True
