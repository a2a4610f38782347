"""The memory of the process: what models and requests may use together, so that the server refuses before it is killed.

Memory is claimed before it is used. Requests share one budget and models another, so that a burst of requests cannot keep
a model from growing, nor a model leave no room to answer.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from threading import Lock
from typing import NamedTuple

REQUESTS = 512 << 20
"""Requests share at most so much, and at most half of what is left at the start."""
SHARE = 0.75
"""By default the process may use this share of the memory of the machine, or of its container."""
_GROUPS = Path("/sys/fs/cgroup")


class MemoryLimitError(MemoryError):
    """There is no room for what was claimed; `never` says that there would be none if everything else were released."""

    def __init__(self, needed: int, limit: int, never: bool) -> None:
        super().__init__(f"{megabytes(needed)} are needed, and the limit is {megabytes(limit)}")
        self.needed, self.limit, self.never = needed, limit, never


class MemoryBudget:
    """A number of bytes that several claim parts of, from any thread.

    Parameters
    ----------
    limit : the most bytes that may be claimed at a time
    process_limit : the most bytes that the process may hold, measured at each claim; 0: not measured
    """

    def __init__(self, limit: int, process_limit: int = 0) -> None:
        self.limit, self.process_limit = limit, process_limit
        self.claimed = 0
        self.make_room: Callable[[], bool] = lambda: False
        """Called when there is no room, as often as it returns True: it may let others release what they have claimed."""
        self._lock = Lock()

    def claim(self, n_bytes: int) -> None:
        """Claim bytes; raises MemoryLimitError, and claims nothing, if there are not so many. A negative number releases."""
        if n_bytes <= 0:
            self.release(-n_bytes)
            return
        while True:
            try:
                return self._claim(n_bytes)
            except MemoryLimitError as error:
                if error.never or not self.make_room():
                    raise

    def _claim(self, n_bytes: int) -> None:
        with self._lock:
            if self.claimed + n_bytes > self.limit:
                raise MemoryLimitError(self.claimed + n_bytes, self.limit, n_bytes > self.limit)
            if self.process_limit and (held := resident()) + n_bytes > self.process_limit:
                raise MemoryLimitError(held + n_bytes, self.process_limit, False)
            self.claimed += n_bytes

    def release(self, n_bytes: int) -> None:
        """Give back what was claimed."""
        with self._lock:
            self.claimed -= n_bytes


class ProcessMemory(NamedTuple):
    """The budgets of a process: that of its requests, and that of its models."""

    limit: int
    requests: MemoryBudget
    models: MemoryBudget

    @classmethod
    def of(cls, limit: int | None = None, start: int = 0) -> ProcessMemory:
        """Return the budgets of a process that holds `start` bytes before models and requests.

        Without a limit, it is a share of the memory of the machine; a machine that does not say how much it has sets none.
        """
        limit = limit or int(SHARE * machine_memory()) or sys.maxsize
        left = max(0, limit - start)
        for_requests = min(REQUESTS, left // 2)
        return cls(limit, MemoryBudget(for_requests), MemoryBudget(left - for_requests, limit))


def machine_memory() -> int:
    """Return the bytes of memory of the container or the machine; 0 if they are not known."""
    sizes = []
    with suppress(AttributeError, ValueError, OSError):
        sizes.append(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"))
    own = Path()
    with suppress(OSError, ValueError):  # of a service, the group is not the root: 0::/system.slice/name.service
        own = Path(Path("/proc/self/cgroup").read_text().partition("0::/")[2].split("\n")[0])
    for group in (own, *own.parents):
        for name in ("memory.max", "memory/memory.limit_in_bytes"):
            with suppress(OSError, ValueError):  # without a limit, the file says "max"
                sizes.append(int((_GROUPS / group / name).read_text()))
    return min(sizes, default=0)


def resident() -> int:
    """Return the bytes of memory that the process holds; 0 where the system does not tell."""
    try:
        return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    except (OSError, AttributeError):
        return 0


def megabytes(n_bytes: int) -> str:
    """Return a number of bytes for people.

    Examples
    --------
    >>> megabytes(3_500_000_000), megabytes(200)
    ('3,500 MB', '1 MB')
    """
    return f"{max(1, round(n_bytes / 1e6)):,} MB"
