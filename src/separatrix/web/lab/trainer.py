"""The process in which the lab trains: a run that takes too long is ended with it, and so is any run when the lab ends.

Threads cannot be ended, and neither many labels nor a large CSV file says beforehand how long it takes. This module is also
the program of that process: a recipe in JSON comes in on a line of standard input; a status, a length and a document in
JSON go out.
"""

from __future__ import annotations

import signal
import subprocess
import sys
import threading
from collections.abc import Sequence
from typing import IO

from starlette.exceptions import HTTPException

SECONDS = 60.0
"""A run that takes longer is ended."""
START_SECONDS = 180.0
"""The first start on a machine compiles the kernels."""
COMMAND = (sys.executable, "-m", "separatrix.web.lab.trainer")
REMEDY = "use fewer examples, labels or passes"
READY = b"ready\n"


class Trainer:
    """Trains in another process, one recipe at a time."""

    def __init__(self, seconds: float = SECONDS, command: Sequence[str] = COMMAND) -> None:
        self.seconds, self.command = seconds, command
        self._process: subprocess.Popen[bytes] | None = None
        self._busy = threading.Lock()
        self._closed = False

    def run(self, recipe: str) -> bytes:
        """Return the document of a recipe, both as JSON; raises HTTPException."""
        if not self._busy.acquire(timeout=self.seconds):
            raise HTTPException(503, "other runs are still under way: try again later")
        try:
            process = self._started()
            assert process.stdin is not None and process.stdout is not None
            with _killed_after(self.seconds, process) as limit:
                try:
                    process.stdin.write(recipe.encode() + b"\n")
                    process.stdin.flush()
                    status, content = _answer(process.stdout)
                except OSError:
                    status, content = 0, b""
            if status == 200:
                return content
            if status:
                raise HTTPException(status, content.decode())
            self._end(process)
            raise HTTPException(*self._reason(limit))
        finally:
            self._busy.release()

    def close(self) -> None:
        """End the process, whatever it is doing, and start no other; a signal handler may call this."""
        self._closed = True
        if self._process is not None:
            self._process.kill()

    def finish(self) -> None:
        """End the process, and wait until it has ended."""
        self.close()
        if self._process is not None:
            self._end(self._process)

    def _reason(self, limit: _killed_after) -> tuple[int, str]:
        if self._closed:
            return 503, "the lab is shutting down"
        if limit.expired:
            return 400, f"this took longer than {self.seconds:g} seconds and was ended: {REMEDY}"
        return 500, f"the process that trains has ended, perhaps for want of memory: {REMEDY}"

    def _started(self) -> subprocess.Popen[bytes]:
        if self._process is None or self._process.poll() is not None:
            if self._closed:
                raise HTTPException(503, "the lab is shutting down")
            process = subprocess.Popen([*self.command, str(self.seconds)], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
            self._process = process
            assert process.stdout is not None
            with _killed_after(START_SECONDS, process) as limit:
                is_ready = process.stdout.readline() == READY
            if not is_ready:
                self._end(process)
                raise HTTPException(*self._reason(limit))
        return self._process

    @staticmethod
    def _end(process: subprocess.Popen[bytes]) -> None:
        process.kill()
        process.wait()
        for pipe in (process.stdin, process.stdout):
            assert pipe is not None
            try:
                pipe.close()
            except BrokenPipeError:  # a recipe that nobody will read
                pass


class _killed_after:  # noqa: N801
    """Ends a process unless the block is left within some seconds; `expired` says whether it did."""

    def __init__(self, seconds: float, process: subprocess.Popen[bytes]) -> None:
        self.expired = False
        self._process = process
        self._timer = threading.Timer(seconds, self._kill)
        self._timer.daemon = True

    def _kill(self) -> None:
        self.expired = True
        self._process.kill()

    def __enter__(self) -> _killed_after:
        self._timer.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._timer.cancel()


def _answer(pipe: IO[bytes]) -> tuple[int, bytes]:
    """Return the status and the content of an answer; status 0 where the process ended before it was complete."""
    words = pipe.readline().split()
    if len(words) != 2:
        return 0, b""
    status, length = map(int, words)
    content = pipe.read(length)
    return (status, content) if len(content) == length else (0, b"")


def main() -> None:
    """Answer recipes until there are no more."""
    import io
    import os
    import traceback

    import orjson

    from separatrix.web.lab.document import document
    from separatrix.web.lab.recipe import Recipe

    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the lab, which ends this process
    out = io.FileIO(os.dup(1), "w")
    os.dup2(2, 1)  # whatever is printed does not disturb the answers
    document(Recipe().experiment())  # loads the kernels, or compiles them
    out.write(READY)
    for line in sys.stdin.buffer:
        if hasattr(signal, "alarm"):  # should the lab be killed meanwhile, nobody else ends this process
            signal.alarm(int(float(sys.argv[1])) + 10)
        try:
            recipe = Recipe.model_validate_json(line)
            content, status = orjson.dumps(document(recipe.experiment()), option=orjson.OPT_SERIALIZE_NUMPY), 200
        except ValueError as problem:
            content, status = " ".join(str(problem).split()).encode(), 400
        except Exception:
            traceback.print_exc()
            content, status = b"internal error; see the terminal of the lab", 500
        if hasattr(signal, "alarm"):
            signal.alarm(0)
        with io.BufferedWriter(io.FileIO(os.dup(out.fileno()), "w")) as answer:
            answer.write(b"%d %d\n" % (status, len(content)) + content)


if __name__ == "__main__":
    main()
