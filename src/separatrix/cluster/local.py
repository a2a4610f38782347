"""The engine of worker processes on this machine: a thread of the driver and a pipe for each. A dead one is replaced."""

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

from separatrix.cluster.engines import Engine, ReportDone, Tree, pack, run_work
from separatrix.data.errors import DataError

MOST_DEATHS = 4
"""How many workers may die on a shard before it is given up."""


class Local(Engine):
    """An engine with a fixed number of worker processes."""

    def __init__(self, processes: int) -> None:
        super().__init__()
        self.processes = processes
        self.workers: list[subprocess.Popen[bytes] | None] = [None] * processes
        self._n_works = 0

    def _reduce(self, packed: bytes, numbers: list[int], report: ReportDone) -> bytes:
        self._n_works += 1
        work_file = self.folder / f"work-{self._n_works}"
        work_file.write_bytes(packed)
        tree, todo, errors = Tree(len(numbers)), queue.SimpleQueue[tuple[int, int]](), list[BaseException]()
        lock, done = threading.Lock(), 0
        for pair in enumerate(numbers):
            todo.put(pair)

        def drive(k: int) -> None:
            """Give shards to process k until none is left."""
            nonlocal done
            try:
                while not errors:
                    place, number = todo.get_nowait()
                    result = pickle.loads(self._run_on(k, work_file, number))
                    with lock:
                        tree.add(place, result)
                        done += 1
                        report(done)
            except queue.Empty:
                pass
            except BaseException as error:
                errors.append(error)

        n_threads = min(self.processes, len(numbers))
        threads = [threading.Thread(target=drive, args=(k,), daemon=True) for k in range(n_threads)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        work_file.unlink()
        if errors:
            raise errors[0]
        return pack(tree.root())

    def _run_on(self, k: int, work_file: Path, number: int) -> bytes:
        """Return the result of a shard from process k; if the process dies, it is replaced."""
        request = pack((work_file, self.shard(number, self.folder)))
        for _ in range(MOST_DEATHS):
            worker = self.workers[k] or self._start(k)
            assert worker.stdin is not None and worker.stdout is not None
            try:
                send(worker.stdin, request)
                return receive(worker.stdout)
            except (EOFError, OSError):
                _kill(worker)
                self.workers[k] = None
        raise DataError(
            f"{self.names[number]}: {MOST_DEATHS} workers died on this shard; it may need more memory than there is"
        )

    def _start(self, k: int) -> subprocess.Popen[bytes]:
        command = [sys.executable, "-c", "from separatrix.cluster.local import serve; serve()"]
        worker = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, start_new_session=True)
        self.workers[k] = worker
        return worker

    def close(self) -> None:
        """Kill the processes."""
        for worker in self.workers:
            if worker is not None:
                _kill(worker)
        self.workers = [None] * self.processes
        super().close()


def _kill(worker: subprocess.Popen[bytes]) -> None:
    """Kill a process; everything that it has can be computed again."""
    worker.kill()
    worker.wait()
    for pipe in (worker.stdin, worker.stdout):
        with suppress(OSError):  # bytes that were not written yet
            pipe.close()  # type: ignore[union-attr]


def send(pipe: Any, message: bytes) -> None:
    """Write the length of a message, then the message."""
    pipe.write(struct.pack("<q", len(message)))
    pipe.write(message)
    pipe.flush()


def receive(pipe: Any) -> bytes:
    """Read a message; raise EOFError if the other end is closed."""
    head = pipe.read(8)
    if len(head) < 8:
        raise EOFError
    (size,) = struct.unpack("<q", head)
    message: bytes = pipe.read(size)
    if len(message) < size:
        raise EOFError
    return message


def serve() -> None:
    """Run work until the driver closes the pipe: the main loop of a worker process."""
    results: BinaryIO = sys.stdout.buffer
    sys.stdout = sys.stderr
    current_file, packed = Path(), b""
    while True:
        try:
            work_file, shard = pickle.loads(receive(sys.stdin.buffer))
        except (EOFError, KeyboardInterrupt):
            return
        if current_file != work_file:
            current_file, packed = work_file, work_file.read_bytes()
        send(results, run_work(packed, shard))
