"""A sparse set of the size that GPU users ask for, from files to a model on two cores, beside Vowpal Wabbit and LIBLINEAR.

    python -m benchmarks.record [share of the rows]

847,000 rows of 359,000 features, about 0.3·10⁹ nonzeros, drawn with a seed: features as words are (their chance falls with
their rank), values 1, 2 or 3, labels by hidden weights with noise. They are written as sixteen shards of svmlight text, and
once more as one file of Vowpal Wabbit's text; 20,000 further rows judge the models. Everybody runs as a process of its own,
start-up included, and the memory is the most that the process held. Vowpal Wabbit makes as many passes, by its cache. Where
LIBLINEAR has its rows from is left to its favour: they are read by our reader, and only the time that its solver takes on
rows in memory is compared, with the time of our whole run; it is stopped after a limit, which then is the time shown.
A virtual machine gets its memory from the host when it is first used, here ten times as slowly as a file is parsed. So a
process that only writes to memory goes first, and nobody pays for that.
"""

import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ProcessPoolExecutor
from contextlib import ExitStack
from pathlib import Path
from typing import NamedTuple

import numpy as np
import psutil

from benchmarks.harness import Quality, Row, installed
from benchmarks.report import show
from benchmarks.timing import Times

ABOUT = (
    "847,000 rows of 359,000 features, about 0.3·10⁹ nonzeros, generated from a seed, in sixteen shards of svmlight text. "
    "Each run is a process of its own, from the files to a saved model, start-up included."
)
N, D, WORDS, SHARDS, HELD = 847_000, 359_000, 470, 16, 20_000
PASSES = 3
MEMORY = "8G"
"""What our command may use for the rows: they fit, so that nothing goes to the disk."""
PATIENCE = 60
"""The seconds after which LIBLINEAR's solver is stopped."""
TOUCHED = 10
"""How many gigabytes are written to first, where so many are free."""
WIDTH = 10
"""The bytes of the longest token, as in "359000:3 "."""
LINE = {"svm": ("\n-1 ", "\n1 "), "vw": ("\n-1 | ", "\n1 | ")}


class Run(NamedTuple):
    """What a process needed, and what it printed."""

    seconds: float
    processor: float
    memory: float
    output: str


def drawn(n, seed):
    """Return the number of each entry's feature, sorted in each row, its value, the ends of the rows, and the labels."""
    rng = np.random.default_rng(seed)
    hidden = np.random.default_rng(99).standard_normal(D, np.float32)
    features = (D ** rng.random((n, WORDS), np.float32)).astype(np.int32)
    np.minimum(features, D - 1, out=features)
    features = (features.astype(np.int64) * 7919 % D).astype(np.int32)  # frequent ones are not neighbours
    features.sort(axis=1)
    first = np.ones(features.shape, np.bool_)
    np.not_equal(features[:, 1:], features[:, :-1], out=first[:, 1:])
    values = np.where(rng.random((n, WORDS), np.float32) < 0.8, 1, rng.integers(2, 4, (n, WORDS))).astype(np.int32)
    scores = (hidden[features] * values * first).sum(axis=1)
    labels = scores + np.sqrt(WORDS) / 3 * rng.standard_normal(n) > 0
    return features[first], values[first], first.sum(axis=1), labels


def write(path, n, seed):
    """Write some rows in both formats; return the number of nonzeros."""
    entries = [f"{j + 1}:{value} " for value in (1, 2, 3) for j in range(D)]
    nonzeros = 0
    with ExitStack() as stack:
        formats = []
        for form, line in LINE.items():
            tokens = np.array([*entries, *line], f"S{WIDTH}").view(np.uint8).reshape(-1, WIDTH)
            formats.append((tokens, stack.enter_context(open(f"{path}.{form}", "wb"))))
        for begin in range(0, n, 4000):
            features, values, lengths, labels = drawn(min(4000, n - begin), [seed, begin])
            sequence = np.insert(features + (values - 1) * D, np.cumsum(lengths) - lengths, 3 * D + labels)
            for tokens, file in formats:
                text = tokens[sequence].reshape(-1)
                file.write(text[text != 0].tobytes().removeprefix(b"" if begin else b"\n"))
            nonzeros += len(features)
        for _, file in formats:
            file.write(b"\n")
    return nonzeros


def held_out(n):
    """How many further rows judge a model of n rows."""
    return max(1000, HELD * n // N)


def make_files(folder, n):
    """Write all files with two processes; return the number of nonzeros."""
    sizes = [n // SHARDS + (s < n % SHARDS) for s in range(SHARDS)]
    names = [folder / f"part-{s:02}" for s in range(SHARDS)] + [folder / "test"]
    with ProcessPoolExecutor(2) as pool:
        nonzeros = list(pool.map(write, names, [*sizes, held_out(n)], range(SHARDS + 1)))
    with open(folder / "train.vw", "wb") as whole:
        for path in sorted(folder.glob("part-*.vw")):
            whole.write(path.read_bytes())
            path.unlink()
    return sum(nonzeros[:-1])


def run(*command):
    """Run a command in a process of its own; None if it stopped itself, since it was not done in time."""
    with tempfile.TemporaryFile() as output:
        began = time.perf_counter()
        process = subprocess.Popen(list(map(str, command)), stdout=output, stderr=subprocess.STDOUT)
        _, status, usage = os.wait4(process.pid, 0)
        seconds = time.perf_counter() - began
        process.returncode = os.waitstatus_to_exitcode(status)
        if process.returncode == -signal.SIGALRM:
            return None
        output.seek(0)
        text = output.read().decode()
    if process.returncode:
        raise RuntimeError(f"{command[0]} … ended with {process.returncode}: {text[-500:]}")
    return Run(seconds, usage.ru_utime + usage.ru_stime, usage.ru_maxrss * 1024, text)


def python(code, *arguments):
    return run(sys.executable, "-c", code, *arguments)


def touch_memory():
    """Have a process write to as much memory as is free, up to a limit."""
    size = min(TOUCHED * 10**9, int(0.8 * psutil.virtual_memory().available))
    python("import sys, numpy as np; np.empty(int(sys.argv[1]), np.uint8).fill(1)", size)


def ours(folder):
    options = ["--rule", "pa1", "--passes", PASSES, "--memory", MEMORY, "--seed", 0, "--quiet", "-o", folder / "m.sepx"]
    done = run(sys.executable, "-m", "separatrix", "train", f"{folder}/part-*.svm", *options)
    told = run(sys.executable, "-m", "separatrix", "evaluate", folder / "m.sepx", folder / "test.svm", "--json")
    return done, json.loads(told.output)["accuracy"]


def vowpal_wabbit(folder):
    options = f"-d {folder}/train.vw --loss_function hinge --passes {PASSES} --cache_file {folder}/vw.cache"
    options += f" -f {folder}/vw.model -b 19 --quiet --holdout_off"
    done = python(f"from vowpalwabbit import Workspace; Workspace({options!r}).finish()")
    (folder / "vw.cache").unlink()
    judging = f"-t -d {folder}/test.vw -i {folder}/vw.model -p {folder}/vw.out --quiet"
    python(f"from vowpalwabbit import Workspace; Workspace({judging!r}).finish()")
    true = np.array([line.startswith(b"1") for line in open(folder / "test.vw", "rb")])
    return done, float(np.mean((np.loadtxt(folder / "vw.out") > 0) == true))


LIBLINEAR = """
import signal, sys, time
from liblinear.liblinearutil import predict, train
from separatrix import load_svmlight
import glob, numpy as np, scipy.sparse as sp
d = int(sys.argv[2])
parts = [load_svmlight(name, n_features=d, zero_based=False) for name in sorted(glob.glob(sys.argv[1] + "/part-*.svm"))]
X, y = sp.vstack([X for X, _ in parts], format="csr"), np.concatenate([y for _, y in parts]).astype(float)
del parts
signal.alarm(int(sys.argv[3]))
wall, processor = time.perf_counter(), time.process_time()
model = train(y, X, "-q")
wall, processor = time.perf_counter() - wall, time.process_time() - processor
signal.alarm(0)
X, y = load_svmlight(sys.argv[1] + "/test.svm", n_features=d, zero_based=False)
print(wall, processor, predict(y.astype(float), X, model, "-q")[1][0] / 100)
"""


def liblinear(folder):
    """Return the process with the seconds of its solver only, and its accuracy; None where the limit was reached."""
    done = python(LIBLINEAR, folder, D, PATIENCE)
    if done is None:
        return None
    seconds, processor, accuracy = map(float, done.output.split()[-3:])
    return done._replace(seconds=seconds, processor=processor), accuracy


def rows(quick, share=None):
    """The suite "record"."""
    n = int(N * (share or (0.01 if quick else 1)))
    with tempfile.TemporaryDirectory() as name:
        nonzeros = make_files(Path(name), n)
        touch_memory()
        yield from measured(Path(name), n, nonzeros)


def measured(folder, n, nonzeros):
    """Train on the files by ours, and then by the peers."""
    size = sum(path.stat().st_size for path in folder.glob("part-*.svm"))
    what = f"{n:,} × {D:,}, {nonzeros / 1e6:,.0f} M nonzeros, {size / 1e9:.2g} GB of text"
    mine, accuracy = ours(folder)
    settings = f"averaged pa1, {PASSES} passes"
    said = f"{settings}: {mine.seconds:.1f} s ({mine.processor:.1f} of a core), held-out accuracy {accuracy:.4f}"
    yield Row(f"{what}: nonzeros a second, text to model", value=nonzeros / mine.seconds / 1e6, unit="M", note=said)
    yield Row(f"{what}: memory", value=mine.memory / 1e9, unit="GB", note="the most that the process held")
    times = Times([mine.seconds], [mine.processor])

    def beside(peer, done, theirs, note=""):
        quality = Quality.of_shares("held-out accuracy", accuracy, theirs, held_out(n))
        said = f"in processor time {done.processor / mine.processor:.1f}; "
        said += f"{mine.memory / 1e9:.2g} GB beside {done.memory / 1e9:.2g} GB{note}"
        return Row(what, settings, peer, times, Times([done.seconds], [done.processor]), quality=quality, note=said)

    peer = f"Vowpal Wabbit, hinge, {PASSES} passes"
    if installed("vowpalwabbit"):
        done, theirs = vowpal_wabbit(folder)
        yield beside(peer, done, theirs)
    else:
        yield Row.missing(what, peer, "vowpalwabbit is not installed")
    peer = "LIBLINEAR, its solver on rows in memory"
    if not installed("liblinear"):
        yield Row.missing(what, peer, "liblinear-official is not installed")
        return
    found = liblinear(folder)
    if found is None:
        note = f"the solver was stopped after {PATIENCE} s and had no model: the ratio is the least that it can be"
        yield Row(what, settings, peer, times, Times([PATIENCE], [PATIENCE]), note=note)
        return
    yield beside(peer, *found, "; ours is the whole run, from the files on")


if __name__ == "__main__":
    show(list(rows(False, *map(float, sys.argv[1:]))))
