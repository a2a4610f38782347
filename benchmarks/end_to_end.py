"""From a file to a model: five passes over 200,000 rows of about 63 nonzeros, beside Vowpal Wabbit and LIBLINEAR.

    python -m benchmarks.end_to_end [rows] [repeats]

Times are wall-clock seconds, best of several, measured in turn: in process (imports done, kernels compiled) and as
a whole command, start-up included. Each learner reads the same numbers from a text file and is judged on 20,000 other rows.
Vowpal Wabbit runs with hinge loss, 18 bits, five passes and its cache, from its Python package; LIBLINEAR with its default
solver through its Python package, which reads the file in Python: that time is shown apart. A peer that is not installed is
a row that says so.
"""

import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

from benchmarks.harness import Quality, Row, installed
from benchmarks.report import show
from benchmarks.startup import KERNEL
from benchmarks.timing import Times, in_turns

PASSES = 5
TEST_ROWS = 20_000
SEPARATRIX = [sys.executable, "-m", "separatrix"]


def write(folder, rows):
    """Write the same examples as svmlight and as Vowpal Wabbit's text."""
    rng = np.random.default_rng(0)
    weights = rng.normal(size=100_000) * (rng.random(100_000) < 0.3)
    for name, n in (("train", rows), ("test", TEST_ROWS)):
        with open(folder / f"{name}.svm", "w") as ours, open(folder / f"{name}.vw", "w") as theirs:
            for _ in range(n):
                columns = np.unique((100_000 * rng.random(rng.poisson(63)) ** 2).astype(np.int64))
                values = rng.normal(size=len(columns))
                label = 1 if values @ weights[columns] + rng.normal() > 0 else -1
                text = " ".join(f"{j + 1}:{v:.16g}" for j, v in zip(columns.tolist(), values.tolist(), strict=True))
                ours.write(f"{label} {text}\n")
                theirs.write(f"{label} | {text}\n")


def our_rows(folder):
    from separatrix.data.reading import open_source
    from separatrix.files.ingest import read_blocks

    return read_blocks(open_source(str(folder / "train.svm")), None, memory=1 << 31)


def our_passes(rule, found):
    from separatrix.estimators.linear import AveragedPerceptron
    from separatrix.files.out_of_core import begin, resume

    learner = AveragedPerceptron(rule=rule, max_iter=PASSES, random_state=0)
    return resume(learner, found.blocks, None, begin(learner, found.blocks, found.classes, None))


def ours_in_process(folder, rule):
    found = our_rows(folder)
    learner = our_passes(rule, found)
    found.close()
    return learner


def our_pieces(folder, rule, found):
    """Do what training from a file cannot do without: its numbers in memory, and the passes over those `found` there."""
    from benchmarks.parsing import copied

    copied(str(folder / "train.svm"), found.blocks.entries, None)
    our_passes(rule, found)


def our_command(folder, rule):
    command = [*SEPARATRIX, "train", str(folder / "train.svm"), "--rule", rule, "--passes", str(PASSES), "--quiet"]
    subprocess.run([*command, "-o", str(folder / "m.sepx")], check=True, capture_output=True)


def our_error(folder):
    done = subprocess.run(
        [*SEPARATRIX, "evaluate", str(folder / "m.sepx"), str(folder / "test.svm"), "--json"],
        check=True,
        capture_output=True,
    )
    return 1 - json.loads(done.stdout)["accuracy"]


def vw_options(folder):
    data, cache, model = folder / "train.vw", folder / "vw.cache", folder / "vw.model"
    return f"-d {data} --loss_function hinge --passes {PASSES} --cache_file {cache} -f {model} -b 18 --quiet --holdout_off"


def vw_in_process(folder):
    from vowpalwabbit import Workspace

    Workspace(vw_options(folder)).finish()


def vw_command(folder):
    code = f"from vowpalwabbit import Workspace; Workspace({vw_options(folder)!r}).finish()"
    subprocess.run([sys.executable, "-c", code], check=True, capture_output=True)


def vw_error(folder):
    from vowpalwabbit import Workspace

    Workspace(f"-t -d {folder / 'test.vw'} -i {folder / 'vw.model'} -p {folder / 'vw.out'} --quiet").finish()
    said = np.loadtxt(folder / "vw.out") > 0
    true = np.array([int(line.split(" ", 1)[0]) > 0 for line in open(folder / "test.vw")])
    return float(np.mean(said != true))


def liblinear(folder):
    """Return (seconds reading, seconds training, error)."""
    from liblinear.liblinearutil import predict, svm_read_problem, train

    begin = time.perf_counter()
    y, x = svm_read_problem(str(folder / "train.svm"), return_scipy=True)
    read = time.perf_counter()
    model = train(y, x, "-q")
    done = time.perf_counter()
    y_test, x_test = svm_read_problem(str(folder / "test.svm"), return_scipy=True)
    return read - begin, done - read, 1 - predict(y_test, x_test, model, "-q")[1][0] / 100


def rows(quick, n=None, repeats=None):
    """The suite "end-to-end": ours with two rules, each in turn with the peers."""
    n, repeats = n or (20_000 if quick else 200_000), repeats or (2 if quick else 3)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        write(folder, n)
        size = f"{n:,} rows, {(folder / 'train.svm').stat().st_size / 1e6:,.0f} MB, {PASSES} passes"
        for rule in ("pa1",) if quick else ("perceptron", "pa1"):
            yield from against_vowpal_wabbit(folder, rule, size, repeats)
        yield from against_liblinear(folder, "pa1", size)


def against_vowpal_wabbit(folder, rule, size, repeats):
    peer = "Vowpal Wabbit, hinge"
    if not installed("vowpalwabbit"):
        yield Row.missing(f"file to model, {size}", peer, "vowpalwabbit is not installed")
        return

    def clear():
        (folder / "vw.cache").unlink(missing_ok=True)

    ours_in_process(folder, rule)
    found = our_rows(folder)
    pieces, peers = lambda: our_pieces(folder, rule, found), lambda: vw_in_process(folder)
    tasks = (lambda: ours_in_process(folder, rule), peers, pieces, peers)  # both of ours right behind the peer
    (mine, theirs, parts, _), _ = in_turns(*tasks, repeats=repeats, prepare=clear)
    found.close()
    (my_command, their_command), _ = in_turns(
        lambda: our_command(folder, rule), lambda: vw_command(folder), repeats=repeats, prepare=clear
    )
    quality = Quality.of_shares("test error", our_error(folder), vw_error(folder), TEST_ROWS, higher=False)
    ours = f"averaged {rule}"
    what = "a stream of the file copied into arrays of the right length, and the passes alone"
    note = f"at the limit {theirs.best / parts.best:.1f}: {what}"
    yield Row(f"file to model, {size}, in process", ours, peer, mine, theirs, 4, quality, note=note)
    limit = mine.best + start_of_numba(folder, repeats)
    note = f"at the limit {their_command.best / limit:.1f}: our time in process, and a program that calls one empty kernel"
    yield Row(f"file to model, {size}, whole command", ours, peer, my_command, their_command, 1.6, quality, note=note)


def start_of_numba(folder, repeats):
    """Return the seconds of a program that imports Numba and calls one empty kernel that was compiled before."""
    program = folder / "kernel.py"
    program.write_text(KERNEL)
    command = [sys.executable, str(program)]
    (times,), _ = in_turns(lambda: subprocess.run(command, check=True), repeats=repeats, warm_up=1)
    return times.best


def against_liblinear(folder, rule, size):
    peer = "LIBLINEAR"
    if not installed("liblinear"):
        yield Row.missing(f"file to model, {size}", peer, "liblinear-official is not installed")
        return
    (mine, theirs), (_, (read, train, error)) = in_turns(
        lambda: ours_in_process(folder, rule), lambda: liblinear(folder), repeats=1, warm_up=0
    )
    our_command(folder, rule)
    quality = Quality.of_shares("test error", our_error(folder), error, TEST_ROWS, higher=False)
    theirs = Times([read + train], [read + train])
    note = f"its Python reader takes {read:.1f} s of it; training alone {train / mine.best:.1f}× ours"
    yield Row(f"file to model, {size}, in process", f"averaged {rule}", peer, mine, theirs, 10, quality, note=note)


if __name__ == "__main__":
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    show(list(rows(False, *(int(argument) for argument in sys.argv[1:]))))
