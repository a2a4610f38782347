"""Processes on this machine: one thread of the driver for each, a pipe in between. One that dies is replaced."""

from __future__ import annotations

import pickle
import queue
import struct
import subprocess
import sys
import threading
from contextlib import suppress
from pathlib import Path
from typing import Any, BinaryIO

from separatrix.cluster.engines import Engine, Told, Tree, pack, run
from separatrix.data.errors import DataError

LIVES = 4
"""How many workers may die over a shard before it is given up."""


class Local(Engine):
    """An engine of so many processes."""

    def __init__(self, processes: int) -> None:
        super().__init__()
        self.processes = processes
        self.workers: list[subprocess.Popen[bytes] | None] = [None] * processes
        self._works = 0

    def _reduce(self, packed: bytes, which: list[int], told: Told) -> bytes:
        self._works += 1
        place_of_work = self.folder / f"work-{self._works}"
        place_of_work.write_bytes(packed)
        tree, left, faults = Tree(len(which)), queue.SimpleQueue[tuple[int, int]](), list[BaseException]()
        lock, done = threading.Lock(), 0
        for pair in enumerate(which):
            left.put(pair)

        def serve(k: int) -> None:
            nonlocal done
            try:
                while not faults:
                    place, number = left.get_nowait()
                    part = pickle.loads(self._asked(k, place_of_work, number))
                    with lock:
                        tree.add(place, part)
                        done += 1
                        told(done)
            except queue.Empty:
                pass
            except BaseException as fault:
                faults.append(fault)

        threads = [threading.Thread(target=serve, args=(k,), daemon=True) for k in range(min(self.processes, len(which)))]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        place_of_work.unlink()
        if faults:
            raise faults[0]
        return pack(tree.root())

    def _asked(self, k: int, work: Path, number: int) -> bytes:
        """Have process k do the work on a shard; where it dies, another one."""
        request = pack((work, self.shard(number, self.folder)))
        for _ in range(LIVES):
            worker = self.workers[k] or self._started(k)
            assert worker.stdin is not None and worker.stdout is not None
            try:
                send(worker.stdin, request)
                return receive(worker.stdout)
            except (EOFError, OSError):
                _end(worker)
                self.workers[k] = None
        raise DataError(f"{self.names[number]}: {LIVES} workers died over this shard; it may need more memory than there is")

    def _started(self, k: int) -> subprocess.Popen[bytes]:
        command = [sys.executable, "-c", "from separatrix.cluster.local import serve; serve()"]
        worker = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, start_new_session=True)
        self.workers[k] = worker
        return worker

    def close(self) -> None:
        """End the processes."""
        for worker in self.workers:
            if worker is not None:
                _end(worker)
        self.workers = [None] * self.processes
        super().close()


def _end(worker: subprocess.Popen[bytes]) -> None:
    """End a process, which holds nothing that is not held elsewhere."""
    worker.kill()
    worker.wait()
    for pipe in (worker.stdin, worker.stdout):
        with suppress(OSError):  # what was not written yet
            pipe.close()  # type: ignore[union-attr]


def send(pipe: Any, message: bytes) -> None:
    """Write a message with its length before it."""
    pipe.write(struct.pack("<q", len(message)))
    pipe.write(message)
    pipe.flush()


def receive(pipe: Any) -> bytes:
    """Read a message; raise EOFError where the other end is gone."""
    head = pipe.read(8)
    if len(head) < 8:
        raise EOFError
    (size,) = struct.unpack("<q", head)
    message: bytes = pipe.read(size)
    if len(message) < size:
        raise EOFError
    return message


def serve() -> None:
    """Do the work that is asked for until the driver is gone: what a process of this engine is."""
    answers: BinaryIO = sys.stdout.buffer
    sys.stdout = sys.stderr
    opened: tuple[Path, bytes] = Path(), b""
    while True:
        try:
            work, shard = pickle.loads(receive(sys.stdin.buffer))
        except (EOFError, KeyboardInterrupt):
            return
        if opened[0] != work:
            opened = work, work.read_bytes()
        send(answers, run(opened[1], shard))
