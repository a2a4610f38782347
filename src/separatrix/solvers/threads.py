"""Many hands: parts of a computation on as many threads as BLAS would take, each with a BLAS of one thread.

The threads of BLAS itself wait for each other at every product, which on a busy machine costs more than they bring. The
parts are the same whatever the number of hands, so the result is too.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import cache
from typing import Any

from threadpoolctl import ThreadpoolController

Crew = Callable[[Callable[..., Any], Iterable[Any]], None]
"""A function that calls another one on each of some parts, and returns when all are done."""


def alone(task: Callable[..., Any], parts: Iterable[Any]) -> None:
    """Do the parts one after the other."""
    for part in parts:
        task(part)


@cache
def _libraries() -> ThreadpoolController:
    return ThreadpoolController().select(user_api="blas")


@contextmanager
def crew(large: bool) -> Iterator[Crew]:
    """Yield a crew for the work inside; work that is not large is done alone, with a BLAS of one thread all the same."""
    hands = max((library.num_threads for library in _libraries().lib_controllers), default=1)
    with _libraries().limit(limits=1):
        if not large or hands == 1:
            yield alone
            return
        with ThreadPoolExecutor(hands) as pool:

            def together(task: Callable[..., Any], parts: Iterable[Any]) -> None:
                for done in [pool.submit(task, part) for part in parts]:
                    done.result()

            yield together
