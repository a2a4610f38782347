"""FIFOs and device nodes in a test's own folder, and threads at their other ends."""

import os
import stat
import threading
from contextlib import contextmanager

import pytest


def device(path, minor):
    """Make a node of a memory device: 3 is the null device, 7 the full one. Skips where that takes rights we lack."""
    try:
        os.mknod(path, stat.S_IFCHR | 0o666, os.makedev(1, minor))
        with open(path, "wb"):
            pass
    except OSError as error:
        pytest.skip(f"no device nodes can be made and opened here: {error.strerror}")
    return path


@contextmanager
def fed(path, data):
    """Make a FIFO into which a thread writes `data`, once."""
    os.mkfifo(path)

    def write():
        try:
            with open(path, "wb") as file:
                file.write(data)
        except BrokenPipeError:  # the reader stopped early
            pass

    with _running(path, write, os.O_RDONLY):
        yield path


@contextmanager
def drained(path):
    """Make a FIFO that a thread reads to its end; gives a list with what it read, once the block is left."""
    os.mkfifo(path)
    parts = []

    def read():
        with open(path, "rb") as file:
            parts.append(file.read())

    with _running(path, read, os.O_WRONLY):
        yield parts


@contextmanager
def _running(path, target, other_end):
    thread = threading.Thread(target=target, daemon=True)
    thread.start()
    try:
        yield
    finally:
        thread.join(2.0)
        if thread.is_alive():  # nobody opened the other end
            os.close(os.open(path, other_end | os.O_NONBLOCK))
            thread.join()
