"""The time limit of a proof, and who is told how far it is.

`watched` sets the limit for everything that is called inside it. Loops that may take long call `check_time`, so no function
has to hand a deadline on to the next; a step that cannot be interrupted asks `seconds_left` whether it would end in time.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from math import inf

Tell = Callable[[str], None]


class TimeUp(Exception):  # noqa: N818
    """The time limit was reached."""


_DEADLINE: ContextVar[float] = ContextVar("_DEADLINE", default=inf)
_TELL: ContextVar[Tell | None] = ContextVar("_TELL", default=None)


@contextmanager
def watched(deadline: float, tell: Tell | None = None) -> Iterator[None]:
    """Let `check_time` raise after the deadline, a time of `time.monotonic`, and `begin` call `tell`."""
    tokens = _DEADLINE.set(deadline), _TELL.set(tell)
    try:
        yield
    finally:
        _DEADLINE.reset(tokens[0])
        _TELL.reset(tokens[1])


def seconds_left() -> float:
    """Return the seconds until the deadline; infinity without one."""
    return _DEADLINE.get() - time.monotonic()


def check_time(deadline: float = inf) -> None:
    """Raise once the time limit is reached, or an earlier deadline that is given."""
    if time.monotonic() > min(deadline, _DEADLINE.get()):
        raise TimeUp


def begin(activity: str) -> None:
    """Tell what is done from now on, and check the time."""
    tell = _TELL.get()
    if tell is not None:
        tell(activity)
    check_time()
