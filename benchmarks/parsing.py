"""Reading text: svmlight beside scikit-learn's loader, CSV beside pandas and pyarrow. MB/s, the best of several, in turn.

The svmlight file has 200,000 rows of about 63 nonzeros, 16 significant digits each, as scikit-learn writes them (300 MB);
the CSV as many rows, 20 columns of numbers and 4 of text. Each is written into a temporary folder and read once before it is
timed, so that the disk's speed does not count. One core means one thread, for the peers too; where others share the machine,
processor time tells more. pandas rounds numbers quickly and not always correctly, which the others do.

    python -m benchmarks.parsing [rows] [repeats]
"""

import os
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.csv as arrow_csv
from sklearn.datasets import load_svmlight_file

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


def best_of(readers, size, repeats):
    """Time the readers in turn; return MB a second and MB a second of processor time, each reader's best."""
    best = {name: [np.inf, np.inf] for name in readers}
    for _ in range(repeats):
        for name, read in readers.items():
            begin, begin_cpu = time.perf_counter(), time.process_time()
            read()
            took = time.perf_counter() - begin, time.process_time() - begin_cpu
            best[name] = [min(pair) for pair in zip(best[name], took, strict=True)]
    return {name: [size / took / 1e6 for took in pair] for name, pair in best.items()}


def show(title, speeds, peer):
    print(f"\n{title}\n\n| reader | MB/s | times {peer} | MB/s of processor time | times |\n|---|---|---|---|---|")
    for name, (wall, cpu) in speeds.items():
        print(
            f"| {name} | {wall:.0f} | {wall / speeds[peer][0]:.2f} | {cpu:.0f} | {cpu / speeds[peer][1]:.2f} |", flush=True
        )


def compare_svmlight(path, repeats):
    ours, theirs = load_svmlight(path), load_svmlight_file(str(path))
    assert np.array_equal(ours[0].data, theirs[0].data) and np.array_equal(ours[0].indices, theirs[0].indices)
    assert np.array_equal(ours[0].indptr, theirs[0].indptr) and np.array_equal(ours[1], theirs[1])
    del ours, theirs
    readers = {
        "load_svmlight_file": lambda: load_svmlight_file(str(path)),
        "load_svmlight, one core": lambda: load_svmlight(path, threads=1),
        "load_svmlight, two": lambda: load_svmlight(path, threads=2),
        "stream, one core": lambda: drained(path, 1),
        "stream, two": lambda: drained(path, 2),
    }
    size = path.stat().st_size
    show(f"svmlight, {size / 1e6:.0f} MB, the same bits", best_of(readers, size, repeats), "load_svmlight_file")


def compare_csv(path, repeats):
    def arrow(threads):
        return arrow_csv.read_csv(path, arrow_csv.ReadOptions(use_threads=threads > 1))

    assert np.array_equal(
        np.concatenate([batch.table["number 7"].to_numpy() for batch in open_source(path)]), arrow(1)["number 7"].to_numpy()
    )
    pa.set_cpu_count(2)
    readers = {
        "pandas.read_csv": lambda: pd.read_csv(path, engine="c"),
        "pyarrow, one core": lambda: arrow(1),
        "pyarrow, two": lambda: arrow(2),
        "stream, one core": lambda: drained(path, 1),
        "stream, two": lambda: drained(path, 2),
    }
    size = path.stat().st_size
    show(f"CSV, {size / 1e6:.0f} MB", best_of(readers, size, repeats), "pyarrow, one core")


def main(rows=200_000, repeats=5):
    print(f"{os.cpu_count()} cores")
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "data"
        write_svmlight(path, rows)
        compare_svmlight(path, repeats)
        write_csv(path, rows)
        compare_csv(path, repeats)


if __name__ == "__main__":
    main(*(int(argument) for argument in sys.argv[1:]))
