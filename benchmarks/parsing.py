"""Reading text: svmlight beside scikit-learn's loader, CSV beside pandas and pyarrow, in turn.

The svmlight file has 200,000 rows of about 63 nonzeros, 16 significant digits each, as scikit-learn writes them (300 MB);
the CSV as many rows, 20 columns of numbers and 4 of text. Each is written into a temporary folder and read once before it is
timed, so that the disk's speed does not count. One core means one thread, for the peers too; where others share the machine,
processor time tells more. pandas rounds numbers quickly and not always correctly, which the others do.

    python -m benchmarks.parsing [rows] [repeats]
"""

import sys
import tempfile
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.csv as arrow_csv
from sklearn.datasets import load_svmlight_file

from benchmarks.harness import Quality, Row
from benchmarks.report import show
from benchmarks.timing import in_turns
from separatrix import load_svmlight
from separatrix.data.reading import open_source


def write_svmlight(path, rows):
    rng = np.random.default_rng(0)
    with path.open("w") as file:
        for _ in range(rows):
            indices = np.unique(rng.integers(1, 100_000, size=rng.poisson(63)))
            pairs = zip(indices.tolist(), rng.normal(size=len(indices)).tolist(), strict=True)
            file.write(f"{rng.choice([-1, 1])} " + " ".join(f"{j}:{value:.16g}" for j, value in pairs) + "\n")


def write_csv(path, rows):
    rng = np.random.default_rng(0)
    table = pd.DataFrame(rng.normal(size=(rows, 20)), columns=[f"number {j}" for j in range(20)])
    for j in range(4):
        table[f"text {j}"] = rng.choice(["red", "green", "blue", "a longer word, quoted"], rows)
    table["kind"] = rng.integers(2, size=rows)
    table.to_csv(path, index=False)


def drained(path, threads):
    return sum(len(batch) for batch in open_source(path, threads=threads))


def copied(path, entries, threads):
    """Copy the entries of a stream of rows into arrays of just that length: the least that one matrix of them takes."""
    values, indices, at = np.empty(entries), np.empty(entries, np.int32), 0
    for batch in open_source(path, threads=threads):
        end = at + batch.X.nnz
        values[at:end], indices[at:end] = batch.X.data, batch.X.indices
        at = end
    return values, indices


def compared(title, size, readers, peer, floors, repeats, quality, limits):
    """Time the readers in turn; yield a row for each of ours, beside the peer, with a note in processor time.

    `limits`: of some readers a task that does only what they must, and what that is. Each is run behind the peer: the
    memory of a virtual machine goes back to its host where it was free for two seconds, and is slow when it is next written.
    """
    tasks = [task for task, _ in limits.values()]
    behind_peer = [each for task in tasks for each in (readers[peer], task)]
    measured, _ = in_turns(*readers.values(), *behind_peer, repeats=repeats, warm_up=1)
    times = dict(zip(readers, measured, strict=False))
    least = dict(zip(limits, measured[len(readers) + 1 :: 2], strict=True))
    theirs = times[peer]
    for name, mine in times.items():
        if name != peer:
            note = f"{size / mine.best / 1e6:.0f} MB/s; by processor time {min(theirs.cpu) / min(mine.cpu):.1f}×"
            if name in limits:
                note += f"; at the limit {theirs.best / least[name].best:.3g}: {limits[name][1]}"
            yield Row(title, name, peer, mine, theirs, floors.get(name), quality, note=note)


def svmlight_rows(path, repeats):
    ours, theirs = load_svmlight(path), load_svmlight_file(str(path))
    same = all(np.array_equal(getattr(ours[0], part), getattr(theirs[0], part)) for part in ("data", "indices", "indptr"))
    quality = Quality("the same matrix and labels, bit for bit", same and np.array_equal(ours[1], theirs[1]))
    entries = ours[0].nnz
    del ours, theirs
    readers = {
        "load_svmlight_file": lambda: load_svmlight_file(str(path)),
        "load_svmlight, one core": lambda: load_svmlight(path, threads=1),
        "load_svmlight, two": lambda: load_svmlight(path, threads=2),
        "stream, one core": lambda: drained(path, 1),
        "stream, two": lambda: drained(path, 2),
    }
    size = path.stat().st_size
    name, peer = "load_svmlight, one core", "load_svmlight_file"
    limits = {name: (lambda: copied(path, entries, 1), "the stream, copied into two arrays of the right length")}
    yield from compared(f"svmlight, {size / 1e6:.0f} MB", size, readers, peer, {name: 12}, repeats, quality, limits)


def csv_rows(path, repeats):
    def arrow(threads):
        return arrow_csv.read_csv(path, arrow_csv.ReadOptions(use_threads=threads > 1))

    ours = np.concatenate([batch.table["number 7"].to_numpy() for batch in open_source(path)])
    quality = Quality("the same numbers, bit for bit", np.array_equal(ours, arrow(1)["number 7"].to_numpy()))
    pa.set_cpu_count(2)
    size = path.stat().st_size
    opened = open_source(path, threads=1)

    def recognised():
        return sum(len(batch) for batch in opened)

    streams = {
        "stream, one core": lambda: drained(path, 1),
        "stream, one core, the table recognised before": recognised,
        "stream, two": lambda: drained(path, 2),
    }
    peers = {"pyarrow, one core": lambda: arrow(1), "pandas.read_csv": lambda: pd.read_csv(path, engine="c")}
    for peer, read in peers.items():
        is_arrow = peer.startswith("pyarrow")
        bounds = 1.0, (recognised, "the table recognised before")
        floors, limits = ({"stream, one core": bound} if is_arrow else {} for bound in bounds)
        title, readers = f"CSV, {size / 1e6:.0f} MB", {peer: read, **streams}
        yield from compared(title, size, readers, peer, floors, repeats, quality, limits)


def rows(quick, n=None, repeats=None):
    """The suite "parsing"."""
    n, repeats = n or (20_000 if quick else 200_000), repeats or 3
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "data"
        write_svmlight(path, n)
        yield from svmlight_rows(path, repeats)
        write_csv(path, n)
        yield from csv_rows(path, repeats)


if __name__ == "__main__":
    show(list(rows(False, *(int(argument) for argument in sys.argv[1:]))))
