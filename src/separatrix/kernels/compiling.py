"""One way of compiling for all kernels, and a cache of what was compiled.

- `fastmath={"reassoc", "nsz"}` lets a sum be reordered into vector lanes and nothing else, so NaN and infinity stay honest
  in sums and comparisons. But `np.isfinite(x)`, which asks whether x − x is a number, is reordered away: compare with the
  largest float instead.
- `_nrt=False` leaves out the counting of references to arrays, which would cost as much as a short row. Hence no kernel
  allocates.
- Every array index is cast to `np.uint64`: a signed one makes Numba emit a wrap-around check, 2.5–3.5× on sparse rows.
- Arrays that a kernel only reads arrive as read-only views: one signature for each pair of value and index type.

Compiled code is kept on disk. Numba does not notice that a kernel in *another* file changed, so the directory is keyed by
a hash of this folder with its sub-folders; where none can be written, a private temporary one serves, and then none:
importing never fails.
"""

import hashlib
import os
import stat
import sys
import tempfile
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import Any

from numba import config, njit
from numba.core import event

OPTIONS: dict[str, Any] = {"nogil": True, "_nrt": False, "error_model": "numpy", "fastmath": {"reassoc", "nsz"}}

_COMPILING = event.TimingListener()
event.register("numba:compile", _COMPILING)


def seconds_compiling() -> float:
    """Return how long this process has compiled so far; what comes from the cache costs nothing."""
    return float(_COMPILING.duration) if _COMPILING.done else 0.0


def fingerprint(folder: Path) -> str:
    """Return a short hash of the Python files below `folder`: paths and contents."""
    digest = hashlib.blake2b(digest_size=8)
    for file in sorted(folder.rglob("*.py")):
        digest.update(file.relative_to(folder).as_posix().encode() + b"\0" + file.read_bytes() + b"\0")
    return digest.hexdigest()


def _homes() -> Iterator[Path]:
    """Yield the folders in which the cache may live, best first."""
    if config.CACHE_DIR:
        yield Path(config.CACHE_DIR)
    elif sys.platform == "win32":
        yield Path(os.environ.get("LOCALAPPDATA") or Path.home() / "AppData" / "Local")
    elif sys.platform == "darwin":
        yield Path.home() / "Library" / "Caches"
    else:
        yield Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    yield Path(tempfile.gettempdir())


def _is_private(folder: Path) -> bool:
    """Tell whether only this user can write to `folder`: cached code is loaded, hence trusted."""
    if sys.platform == "win32":
        return True
    status = folder.lstat()
    return stat.S_ISDIR(status.st_mode) and status.st_uid == os.getuid() and not status.st_mode & 0o022


@cache
def cache_directory() -> Path | None:
    """Return the folder for compiled kernels, or None where no private folder can be written."""
    key = fingerprint(Path(__file__).parent)
    user = "user" if sys.platform == "win32" else os.getuid()
    homes = _homes()
    while True:
        try:
            folder = next(homes) / f"separatrix-{user}-{key}"
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            with tempfile.TemporaryFile(dir=folder):
                pass
            if _is_private(folder):
                return folder
        except (OSError, RuntimeError):  # RuntimeError: no home directory can be told
            continue
        except StopIteration:
            return None


def kernel(function: Callable[..., Any]) -> Any:
    """Compile `function` on its first call, keeping the result for the next process."""
    folder = cache_directory()
    if folder is None:
        return njit(**OPTIONS)(function)
    before = config.CACHE_DIR
    config.CACHE_DIR = str(folder)
    try:
        return njit(cache=True, **OPTIONS)(function)
    finally:
        config.CACHE_DIR = before


def _inlined(function: Callable[..., Any], **changed: Any) -> Any:
    return njit(forceinline=True, no_cpython_wrapper=True, no_cfunc_wrapper=True, **OPTIONS | changed)(function)


def part(function: Callable[..., Any]) -> Any:
    """Compile `function` as a part of the kernels that call it: no Python caller, and kept on disk within them."""
    return _inlined(function)


def summing_part(function: Callable[..., Any]) -> Any:
    """Compile a part that only sums products: each product may be added unrounded, which is faster and no less exact."""
    return _inlined(function, fastmath={"reassoc", "nsz", "contract"})


def ordered_part(function: Callable[..., Any]) -> Any:
    """Compile a part whose sums are added in the order in which they are written, in every kernel that calls it."""
    return _inlined(function, fastmath=False)
