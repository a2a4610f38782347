"""Parts of a computation on as many threads as BLAS would take, each with a BLAS of one thread.

The threads of BLAS itself wait for each other after every product, which costs more than they gain on a busy machine. The
parts do not depend on the number of threads, so the result does not either.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import cache
from typing import Any

from threadpoolctl import ThreadpoolController

ForEach = Callable[[Callable[..., Any], Iterable[Any]], None]
"""A function that calls a task with each of some parts, and returns when all calls have returned."""


def one_by_one(task: Callable[..., Any], parts: Iterable[Any]) -> None:
    """Call the task with each part in this thread."""
    for part in parts:
        task(part)


@cache
def _blas_libraries() -> ThreadpoolController:
    return ThreadpoolController().select(user_api="blas")


@contextmanager
def in_threads(large: bool) -> Iterator[ForEach]:
    """Yield a `ForEach` that uses threads if the work is large; BLAS uses one thread in any case."""
    threads = max((library.num_threads for library in _blas_libraries().lib_controllers), default=1)
    with _blas_libraries().limit(limits=1):
        if not large or threads == 1:
            yield one_by_one
            return
        with ThreadPoolExecutor(threads) as pool:

            def for_each(task: Callable[..., Any], parts: Iterable[Any]) -> None:
                for future in [pool.submit(task, part) for part in parts]:
                    future.result()

            yield for_each
