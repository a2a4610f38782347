"""Runs a store and its writer while the n-th call of a seam fails, n = 1, 2, …, and checks the promises after each.

    LD_PRELOAD=faults.so python fault_runner.py faults.so FOLDER STRIDE

The seams open, write, fsync, rename and mmap are calls of the C library on files of the store, those of SQLite included;
`growth` is an array that NumPy cannot make. Each case opens a store, learns, writes a snapshot, compacts, undoes, learns
again and forgets. One line of JSON per seam says how many cases there were, and what was wrong.
"""

import contextlib
import ctypes
import errno
import itertools
import json
import logging
import shutil
import sqlite3
import subprocess
import sys
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[1]))

from separatrix import AveragedPerceptron, Model
from separatrix.engine import run, weights
from separatrix.web.server import warming
from separatrix.web.server.forgetting import erasing
from separatrix.web.server.live import commits, live_model
from separatrix.web.server.reading import feature_index
from separatrix.web.server.reading.request_reader import RequestError
from separatrix.web.server.storage import snapshots
from separatrix.web.server.storage.store import CommitStore
from separatrix.web.server.writing import writer
from support.served_store import ServedStore
from support.server_process import examples

CALLS = {"open": 1, "write": 2, "fsync": 3, "rename": 4, "mmap": 5}
MAKERS = ("zeros", "ones", "empty", "full", "concatenate", "append", "pad")
MODULES = (commits, feature_index, live_model, writer, run, weights)
STREAM = [({f"id-{i}": 1.0, **x}, y) for i, (x, y) in enumerate(examples(60))]


class FailingNumpy:
    """NumPy, whose n-th new array does not fit into memory."""

    def __init__(self):
        self.calls, self.failing_call, self.lasts = 0, 0, False

    def __getattr__(self, name):
        attribute = getattr(np, name)
        if name not in MAKERS:
            return attribute

        def make(*arguments, **options):
            self.calls += 1
            if self.calls == self.failing_call:
                raise MemoryError(f"no room for the array of call {self.calls}")
            return attribute(*arguments, **options)

        return make


class Faults:
    """Arms one seam at a time."""

    def __init__(self, library):
        self.library = ctypes.CDLL(library)
        self.library.disarm.restype = ctypes.c_long
        self.numpy = FailingNumpy()
        for module in MODULES:
            module.np = self.numpy

    def arm(self, seam, n, lasts, folder):
        self.seam = seam
        if seam == "growth":
            self.numpy.calls, self.numpy.failing_call = 0, n
        else:
            error = errno.ENOSPC if seam == "write" else errno.EIO
            self.library.arm(CALLS[seam], ctypes.c_long(n), error, int(lasts), str(folder).encode())

    def disarm(self):
        """Return how many calls there were."""
        if self.seam == "growth":
            self.numpy.failing_call = 0
            return self.numpy.calls
        return self.library.disarm()


class Case:
    """What one store acknowledged and refused."""

    def __init__(self, folder):
        self.folder, self.at = folder, 0
        self.acknowledged, self.refused, self.unknown = [], [], []

    def learn(self, one):
        batch = range(self.at, self.at + 5)
        self.at += 5
        try:
            self.number = one.learn([STREAM[i] for i in batch], key=f"batch-{batch[0]}")["examples"]
            self.acknowledged += batch
        except RequestError as error:
            assert error.status in (500, 503), error
            (self.unknown if "it is not known" in error.message else self.refused).extend(batch)
            self.check_killed()

    def forget(self, one):
        """Forget the last example that was acknowledged; where that fails, it is not known whether it is there."""
        if len(self.acknowledged) < 10:
            return
        last = self.acknowledged.pop()
        try:
            one.forget(self.number)
        except RequestError as error:
            assert error.status in (409, 500, 503), error
            self.unknown.append(last)
            self.check_killed()

    def check_killed(self):
        """What a kill at this moment leaves has all that was acknowledged, and nothing that was refused for certain."""
        copy = self.folder.with_name("killed")
        shutil.rmtree(copy, ignore_errors=True)
        subprocess.run(["cp", "-r", self.folder, copy], check=True)  # another process, whose calls do not fail
        stored = self.stored(copy)[0]
        assert set(self.acknowledged) <= set(stored), "acknowledged and lost after a kill"
        assert set(stored) <= {*self.acknowledged, *self.unknown}, "refused, and there after a kill"

    def stored(self, folder):
        with contextlib.closing(CommitStore(folder, writing=False)) as store:
            if not store.last:
                return [], None
            model, names, _ = snapshots.recover(store)
            stored = [int(name[3:]) for name in names if name.startswith("id-")]
            assert len(stored) == len(set(stored)) == model.progressive.examples, "counted twice, or half there"
            return stored, model.state()


def opened(folder):
    try:
        return ServedStore(folder, snapshot_seconds=3600)
    except (OSError, MemoryError, sqlite3.Error):
        return None


def check(faults, seam, n, lasts, root):
    """Run a case; return how many calls the seam had."""
    folder = root / "s"
    shutil.rmtree(folder, ignore_errors=True)
    case = Case(folder)
    faults.arm(seam, n, lasts, folder)
    one = opened(folder)
    if one is not None:
        case.learn(one)
        case.learn(one)
        one.writer._maybe_snapshot()
        one.store.sync_head()
        one.writer._compacted(one.store.last)
        case.learn(one)
        with contextlib.suppress(RequestError):
            one.undo(1)
        one.writer.keep_all = True
        case.learn(one)
        case.forget(one)
    calls = faults.disarm()
    if one is None:
        one = opened(folder)
        assert one is not None, "it does not open after the failure is gone"
    case.learn(one)
    assert not set(case.acknowledged[-5:]) - {*range(case.at - 5, case.at)}, "it does not learn after the failure is gone"
    assert one.writer._thread.is_alive() and one.writer._maintenance.is_alive(), "a thread has died"
    assert not one.writer.trouble and not one.store.problem(), "it is not ready after the failure is gone"
    one.writer._compacted(0)  # which the writer's thread does after all else
    stored, state = case.stored(folder)
    assert set(case.acknowledged) <= set(stored) <= {*case.acknowledged, *case.unknown}, (stored, case.acknowledged)
    assert one.live_model.state() == one.writer.buffer.learning.state() == state, "the copies differ"
    one.crash()
    assert case.stored(folder) == (stored, state), "a restart gives something else"
    with contextlib.closing(CommitStore(folder)) as store:
        erasing.erase(store)
        assert not erasing.has_traces(store), "what was forgotten cannot be erased"
    again = ServedStore(folder)
    assert again.learn([STREAM[i] for i in stored[:5]], key=f"batch-{stored[0]}") and again.live_model.state() == state
    again.crash()
    return calls


def main(library, folder, stride):
    logging.getLogger("separatrix.serve").setLevel(logging.CRITICAL + 1)
    warming.warm(live_model.LiveModel(Model(AveragedPerceptron())))
    faults, root = Faults(library), Path(folder).resolve()
    for seam, lasts in [*itertools.product(CALLS, (False, True)), ("growth", False)]:
        wrong, n, cases = [], 1, 0
        while True:
            try:
                calls = check(faults, seam, n, lasts, root)
            except Exception as error:
                calls = faults.disarm()
                wrong.append(f"call {n}: {type(error).__name__}: {error}")
            cases += 1
            if calls < n:
                break
            n += int(stride)
        print(json.dumps({"seam": seam, "lasts": lasts, "cases": cases, "calls": calls, "wrong": wrong}), flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
