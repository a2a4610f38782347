"""The engine against the memory, SciPy and scikit-learn: `python -m benchmarks.engine` from the project's root.

Every line is a ratio of two times measured alternately in this run, best of several; the floor is what we promise.
"""

import argparse
import os
import resource
import subprocess
import sys
import tempfile
import time
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp
import sklearn.linear_model as peers
from rich.console import Console
from rich.table import Table

from benchmarks import datasets
from separatrix import AveragedPerceptron, Perceptron, VotedPerceptron
from separatrix.orders import visits
from separatrix.rows import Rows, frozen
from separatrix.training import Problem, Run

warnings.filterwarnings("ignore", message="Maximum number of iteration")
CONSOLE = Console(width=118)
PASSES = 5


def best(*tasks: Callable[[], Any], repeats: int) -> list[float]:
    """Return the best time of each task, run in turn so that noise falls on all of them."""
    times = [np.inf] * len(tasks)
    for _ in range(repeats):
        for k, task in enumerate(tasks):
            begin = time.perf_counter()
            task()
            times[k] = min(times[k], time.perf_counter() - begin)
    return times


def table(title: str, *columns: str) -> Table:
    made = Table(title=title, title_justify="left", title_style="bold", box=None, pad_edge=False, header_style="dim")
    for k, name in enumerate(columns):
        made.add_column(name, justify="left" if k == 0 else "right", no_wrap=True)
    return made


def verdict(ratio: float, floor: float) -> str:
    return f"{ratio:.2f}", f"{floor:g}", "yes" if ratio >= floor else "NO"


def dense_data(n: int, d: int, dtype: Any) -> tuple[Any, Any]:
    """Few mistakes, but never a clean pass: a wide margin and ten flipped labels."""
    rng = np.random.default_rng(0)
    X, w = rng.standard_normal((n, d), dtype=np.float32).astype(dtype), rng.standard_normal(d).astype(dtype)
    y = np.where(X @ w > 0, 1, -1)
    X += 0.3 * y[:, None].astype(dtype) * w
    y[:: n // 10] *= -1
    return X, y


def sparse_data(n: int, d: int) -> tuple[Any, Any]:
    rng = np.random.default_rng(0)
    indptr = np.concatenate([[0], np.cumsum(rng.integers(74, 93, size=n))])  # 60–75 are left once repeated ones are summed
    indices = np.minimum(np.exp(rng.uniform(0, np.log(d), size=indptr[-1])).astype(np.int32), d - 1)
    X = sp.csr_matrix((rng.random(len(indices)), indices, indptr.astype(np.int32)), shape=(n, d))
    X.sum_duplicates()
    y = np.where(X @ rng.standard_normal(d) > 0, 1, -1)
    return X, y


def a_pass(X: Any, y: Any, order: str) -> Callable[[], None]:
    """One pass of an averaging learner that has already settled."""
    rows = Rows(X)
    run = Run(np.array([-1, 1]), X.shape[1], bias=True, tie="mistake", multi_class="joint", average=True, scored=False)
    run.average_from_here()
    problem, numbers = Problem(rows, frozen((y > 0).astype(np.int32))), iter(range(10**6))

    def one() -> None:
        run.present(problem, visits(order, rows, 0, next(numbers)))

    for _ in range(4):
        one()
    return one


def passes(repeats: int) -> None:
    shown = table(
        "One pass against reading the data (averaging on, few mistakes)", "data", "order", "ratio", "floor", "ok", ""
    )
    for dtype in (np.float64, np.float32):
        X, y = dense_data(400_000, 256, dtype)
        orders = {"cyclic": 0.8, "shuffle": 0.4, "permutation": 0.0}
        tasks = [a_pass(X, y, order) for order in orders]
        read, *took = best(X.sum, *tasks, repeats=repeats)
        for (order, floor), seconds in zip(orders.items(), took, strict=True):
            size = f"{X.nbytes / seconds / 1e9:.1f} GB/s, X.sum() {X.nbytes / read / 1e9:.1f}"
            floors = verdict(read / seconds, floor) if floor else (f"{read / seconds:.2f}", "–", "")
            shown.add_row(f"dense 400,000 × 256 {np.dtype(dtype).name}", order, *floors, size)
        del X
    X, y = sparse_data(700_000, 47_000)
    w = np.random.default_rng(1).standard_normal(X.shape[1])
    orders = {"cyclic": 0.9, "shuffle": 0.0, "permutation": 0.0}
    matvec, *took = best(lambda: X @ w, *(a_pass(X, y, order) for order in orders), repeats=repeats)
    for (order, floor), seconds in zip(orders.items(), took, strict=True):
        floors = verdict(matvec / seconds, floor) if floor else (f"{matvec / seconds:.2f}", "–", "")
        rate = f"{X.nnz / seconds / 1e9:.2f} G nonzeros/s, SciPy's matvec {X.nnz / matvec / 1e9:.2f}"
        shown.add_row(f"CSR 700,000 × 47,000, {X.nnz / X.shape[0]:.0f} a row", order, *floors, rate)
    CONSOLE.print(shown, "")


def against_scikit_learn(repeats: int) -> None:
    """Time whole fits, validation included. `limit` is their time over the bare reads that so many passes need."""
    shown = table(
        f"Whole fits of {PASSES} passes against sklearn.linear_model.Perceptron",
        *("data", "shuffled", "ratio", "floor", "ok", "ours", "theirs", "at the limit"),
    )

    def compare(name: str, X: Any, y: Any, floor: float, shuffled: bool, read: Callable[[], Any]) -> None:
        ours = Perceptron(max_iter=PASSES, order="shuffle" if shuffled else "cyclic", random_state=0)
        theirs = peers.Perceptron(max_iter=PASSES, tol=None, shuffle=shuffled, random_state=0)
        mine, other, once = best(lambda: ours.fit(X, y), lambda: theirs.fit(X, y), read, repeats=repeats)
        assert ours.n_iter_ == PASSES
        times = f"{mine:.3f} s", f"{other:.3f} s", f"{other / (PASSES * once):.1f}"
        shown.add_row(name, "both" if shuffled else "neither", *verdict(other / mine, floor), *times)

    X, y = dense_data(400_000, 64, np.float32)
    compare("dense 400,000 × 64 float32", X, y, 7, False, X.sum)
    compare("dense 400,000 × 64 float32", X, y, 7, True, X.sum)
    X, y = sparse_data(700_000, 47_000)
    w = np.random.default_rng(1).standard_normal(X.shape[1])
    compare("CSR 700,000 × 47,000", X, y, 6, False, lambda: X @ w)
    compare("CSR 700,000 × 47,000", X, y, 6, True, lambda: X @ w)
    rng = np.random.default_rng(0)
    X = rng.random((60_000, 784), dtype=np.float32)
    y = np.argmax(X @ rng.standard_normal((784, 10), dtype=np.float32) + rng.standard_normal((60_000, 10)), axis=1)
    compare("dense 60,000 × 784, 10 classes", X, y, 10, True, X.sum)
    note = (
        "   (at the limit: their time over that of X.sum(), for CSR SciPy's matvec, once a pass: what no learner can exceed)"
    )
    CONSOLE.print(shown, note, "")


def data_sets() -> Iterator[tuple[str, Callable[[int], tuple[Any, ...]]]]:
    if not datasets.DATA.is_dir():
        CONSOLE.print(f"[yellow]no real data at {datasets.DATA}: set SEPARATRIX_DATA[/yellow]")
        return
    fixed = {"a9a": datasets.a9a(), "MNIST": datasets.mnist()}
    for name, parts in fixed.items():
        yield name, lambda seed, parts=parts: parts
    yield "sms_spam", datasets.sms_spam


def accuracy() -> None:
    shown = table(f"Held-out accuracy after {PASSES} passes, mean ± sd of 10 seeds", "learner", "a9a", "MNIST", "sms_spam")
    learners: dict[str, Callable[[int], Any]] = {
        "AveragedPerceptron": lambda seed: AveragedPerceptron(max_iter=PASSES, random_state=seed),
        "VotedPerceptron": lambda seed: VotedPerceptron(max_iter=PASSES, random_state=seed),
        "Perceptron": lambda seed: Perceptron(max_iter=PASSES, random_state=seed),
        "sklearn Perceptron": lambda seed: peers.Perceptron(max_iter=PASSES, tol=None, random_state=seed),
    }
    sets = list(data_sets())
    for name, make in learners.items():
        cells = []
        for data, load in sets:
            if data == "MNIST" and name == "VotedPerceptron":
                cells.append("–")
                continue
            scores = []
            for seed in range(10 if data != "MNIST" else 3 if name.startswith("sklearn") else 10):
                X, y, X_test, y_test = load(seed)
                scores.append(make(seed).fit(X, y).score(X_test, y_test))
            cells.append(f"{np.mean(scores):.4f} ± {np.std(scores):.4f}")
        shown.add_row(name, *cells)
    CONSOLE.print(shown, "   (the promise: the averaged perceptron on a9a ≥ 0.845; sklearn on MNIST: 3 seeds)", "")


def mixing() -> None:
    shown = table(
        "Does the shuffle mix? Class-sorted data, held-out accuracy over 10 seeds",
        *("data", "learner", "passes", "shuffle", "uniform permutation", "in order"),
    )
    for name, load in data_sets():
        if name == "sms_spam":
            continue
        X, y, X_test, y_test = load(0)
        if name == "a9a":  # 13 copies, so that the rows are enough to be visited in runs
            name, X, y = "a9a × 13", sp.vstack([X] * 13, format="csr"), np.tile(y, 13)
        ranked = np.argsort(y, kind="stable")
        X, y = X[ranked], y[ranked]
        for learner in (AveragedPerceptron, Perceptron):
            for number in (1, PASSES):
                cells = []
                for order in ("shuffle", "permutation", "cyclic"):
                    seeds = range(10) if order != "cyclic" else range(1)
                    models = (learner(order=order, max_iter=number, random_state=seed) for seed in seeds)
                    scores = [model.fit(X, y).score(X_test, y_test) for model in models]
                    cells.append(f"{np.mean(scores):.4f}" + (f" ± {np.std(scores):.4f}" if len(scores) > 1 else ""))
                shown.add_row(name, learner.__name__, str(number), *cells)
    CONSOLE.print(shown, "")


MEASURE = """
import sys, numpy as np
from separatrix import AveragedPerceptron
kind, n, d = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
def peak(reset=False):
    if reset:
        open("/proc/self/clear_refs", "w").write("5")
    return 1024 * int(next(line for line in open("/proc/self/status") if line.startswith("VmHWM")).split()[1])
AveragedPerceptron(random_state=0).fit(np.eye(4), [0, 1, 0, 1])
AveragedPerceptron(random_state=0).fit(np.eye(4, dtype=np.float32), [0, 1, 0, 1])
rng = np.random.default_rng(0)
X = np.empty((n, d), np.float64 if kind != "float32" else np.float32)
for i in range(0, n, 1000):
    X[i : i + 1000] = rng.standard_normal((min(1000, n - i), d))
y = (X[:, 0] > 0).astype(np.int8); y[:: n // 10] ^= 1
if kind == "fortran":
    X = np.asfortranarray(X)
before = peak(reset=True)
model = AveragedPerceptron(random_state=0, max_iter=3).fit(X, y)
print(peak() - before, model.ledger_.nbytes, X.nbytes)
"""


def memory() -> None:
    shown = table(
        "Peak memory of a fit beyond the data (resident, MB)", "data", "beyond", "of it ledger", "the data", "share"
    )
    for kind, n, d in (
        ("float64", 400_000, 128),
        ("float32", 400_000, 128),
        ("fortran", 100_000, 128),
        ("float64", 100_000, 512),
    ):
        done = subprocess.run(
            [sys.executable, "-c", MEASURE, kind, str(n), str(d)], capture_output=True, text=True, check=True
        )
        beyond, ledger, data = (int(v) / 1e6 for v in done.stdout.split())
        shown.add_row(f"{kind} {n:,} × {d}", f"{beyond:.1f}", f"{ledger:.2f}", f"{data:.0f}", f"{beyond / data:.1%}")
    CONSOLE.print(
        shown,
        "   (beyond the ledger: weights and sums, a block's visits, 4 bytes of label code and 1/8 visit an example)",
        "",
    )


FIRST_FIT = """
import time; begin = time.perf_counter()
import numpy as np
from separatrix import AveragedPerceptron
AveragedPerceptron().fit(np.random.default_rng(0).normal(size=(100, 5)), np.arange(100) % 2)
print(time.perf_counter() - begin)
"""
IMPORT = "import time, numpy; begin = time.perf_counter(); import separatrix; print(time.perf_counter() - begin)"


def start_up(repeats: int) -> None:
    def run(code: str, cache: str) -> float:
        environment = os.environ | {"NUMBA_CACHE_DIR": cache}
        done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=environment, check=True)
        return float(done.stdout)

    shown = table("Start-up, seconds (best of several new processes)", "what", "seconds", "at most", "ok")
    with tempfile.TemporaryDirectory() as folder:
        kept = str(Path(folder) / "kept")
        run(FIRST_FIT, kept)
        rows = (
            ("import separatrix, over import numpy", [run(IMPORT, kept) for _ in range(repeats)], 0.1),
            ("first fit, imports included, compiled before", [run(FIRST_FIT, kept) for _ in range(repeats)], 1.2),
            ("first fit, imports included, nothing compiled", [run(FIRST_FIT, f"{folder}/{k}") for k in range(3)], 4.0),
        )
    for name, seconds, limit in rows:
        shown.add_row(name, f"{min(seconds):.3f}", f"{limit:g}", "yes" if min(seconds) <= limit else "NO")
    CONSOLE.print(shown, "")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    suites = {
        "passes": lambda r: passes(r),
        "sklearn": lambda r: against_scikit_learn(max(2, r // 2)),
        "accuracy": lambda _: accuracy(),
        "mixing": lambda _: mixing(),
        "memory": lambda _: memory(),
        "startup": lambda r: start_up(r),
    }
    parser.add_argument("suite", nargs="*", choices=[*suites, []], help="which tables (all of them by default)")
    parser.add_argument("--repeats", type=int, default=7)
    chosen = parser.parse_args()
    CONSOLE.print(
        f"{os.cpu_count()} cores; NumPy {np.__version__}; {resource.getpagesize()}-byte pages; best of {chosen.repeats}\n"
    )
    for name in chosen.suite or suites:
        suites[name](chosen.repeats)


if __name__ == "__main__":
    main()
