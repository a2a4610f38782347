"""The engine against the memory, SciPy and scikit-learn: `python -m benchmarks.engine` from the project's root.

Every line is a ratio of two times measured alternately in this run, best of several; the floor is what we promise.
"""

import argparse
import os
import resource
import subprocess
import sys
import tempfile
import warnings
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp
import sklearn.linear_model as peers
from rich.console import Console
from rich.table import Table
from sklearn.base import clone

from benchmarks import datasets
from benchmarks.harness import Quality, Row, installed
from benchmarks.report import show
from benchmarks.timing import in_turns
from separatrix import AveragedPerceptron, Perceptron, TextFeatures, VotedPerceptron, train
from separatrix.engine.orders import order_for, visits
from separatrix.engine.presenting import Problem
from separatrix.engine.rows import Rows, frozen
from separatrix.engine.run import Run
from separatrix.engine.weights import Weights

warnings.filterwarnings("ignore", message="Maximum number of iteration")
CONSOLE = Console(width=118)
PASSES = 5
SEEDS = 24
"""The last weights of shuffled passes vary by seed, ± 0.025 on the sparse data: fewer seeds cannot tell equals apart."""
SLACK = 0.001
"""A difference in training accuracy that nobody notices."""


def table(title: str, *columns: str) -> Table:
    made = Table(title=title, title_justify="left", title_style="bold", box=None, pad_edge=False, header_style="dim")
    for k, name in enumerate(columns):
        made.add_column(name, justify="left" if k == 0 else "right", no_wrap=True)
    return made


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


def a_pass(X: Any, y: Any, order: str, start: Weights | None = None) -> Callable[[], None]:
    """One pass of an averaging learner that has already settled; from weights that are right, it corrects nothing."""
    rows = Rows(X)
    classes, codes = np.unique(y, return_inverse=True)
    run = Run(classes, X.shape[1], bias=True, tie="mistake", multi_class="joint", average=True, scored=False)
    if start is not None:
        run.last.load(start)
    run.average_from_here()
    chosen_order = order_for(order, rows, codes)
    problem, numbers = Problem(rows, frozen(codes.astype(np.int32))), iter(range(10**6))

    def one() -> None:
        run.present(problem, visits(chosen_order, rows, 0, next(numbers)))

    for _ in range(4):
        one()
    return one


def against_reading(quick: bool, repeats: int) -> Iterator[Row]:
    """One pass of an averaging learner beside one read of the same data."""
    n, ours = 100_000 if quick else 400_000, "one pass, averaging"
    for dtype in (np.float64, np.float32):
        X, y = dense_data(n, 256, dtype)
        orders = {"cyclic": 0.8, "shuffle": 0.4, "permutation": None}
        (read, *took), _ = in_turns(X.sum, *(a_pass(X, y, order) for order in orders), repeats=repeats, warm_up=1)
        for (order, floor), times in zip(orders.items(), took, strict=True):
            rate = f"{X.nbytes / times.best / 1e9:.1f} GB/s"
            what = f"dense {n:,} × 256 {np.dtype(dtype).name}, {order}"
            yield Row(what, ours, "X.sum()", times, read, floor, note=rate)
        del X
    X, y = sparse_data(n * 7 // 4, 47_000)
    w = np.random.default_rng(1).standard_normal(X.shape[1])
    orders = {"cyclic": 0.9, "shuffle": 0.8, "permutation": None}
    right = Weights(w[None], np.zeros(1))
    passes = [a_pass(X, y, order) for order in orders] + [a_pass(X, X @ w > 0, order, right) for order in orders]
    (read, *took), _ = in_turns(lambda: X @ w, *passes, repeats=repeats, warm_up=1)
    for (order, floor), times, clean in zip(orders.items(), took, took[len(orders) :], strict=False):
        rate = f"{X.nnz / times.best / 1e9:.2f} G nonzeros/s"
        rate += f"; at the limit {read.best / clean.best:.2f}: a pass without a mistake"
        what = f"CSR {X.shape[0]:,} × 47,000, {X.nnz / X.shape[0]:.0f} a row, {order}"
        yield Row(what, ours, "SciPy's X @ w", times, read, floor, note=rate)
    X, _ = sparse_data(n // 4, 1 << 18)
    W = np.random.default_rng(1).standard_normal((X.shape[1], 20))
    y = np.argmax(X @ W, axis=1)
    (read, *took), _ = in_turns(lambda: X @ W, *(a_pass(X, y, order) for order in orders), repeats=repeats, warm_up=1)
    for order, times in zip(orders, took, strict=True):
        rate = f"{X.nnz / times.best / 1e9:.3f} G nonzeros/s"
        what = f"CSR {X.shape[0]:,} × 262,144, {X.nnz / X.shape[0]:.0f} a row, 20 classes, {order}"
        yield Row(what, ours, "SciPy's X @ W", times, read, 1, note=rate)


def accuracies(model: Any, X: Any, y: Any, seeds: Sequence[int]) -> list[float]:
    """Training accuracy by seed, on all cores: only the times are measured alone."""
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        return list(pool.map(lambda seed: clone(model).set_params(random_state=seed).fit(X, y).score(X, y), seeds))


def against_scikit_learn(quick: bool, repeats: int) -> Iterator[Row]:
    """Whole fits, validation included. The limit is their time over so many bare reads, or of K classes float32 products.

    What is right by the last weights depends on the last examples: of shuffled passes it is the mean over seeds.
    """

    def compare(name: str, X: Any, y: Any, floor: float, shuffled: bool, read: Callable[[], Any], bare: str) -> Row:
        ours = Perceptron(max_iter=PASSES, order="shuffle" if shuffled else "cyclic", random_state=0)
        theirs = peers.Perceptron(max_iter=PASSES, tol=None, shuffle=shuffled, random_state=0)
        (mine, other, once), _ = in_turns(lambda: ours.fit(X, y), lambda: theirs.fit(X, y), read, repeats=repeats, warm_up=1)
        assert ours.n_iter_ == PASSES
        if shuffled:
            right = (accuracies(model, X, y, range(5 if quick else SEEDS)) for model in (ours, theirs))
            quality = Quality.of_seeds("training accuracy", *right, slack=SLACK)
        else:
            quality = Quality.compared("training accuracy", ours.score(X, y), theirs.score(X, y), slack=SLACK)
        note = f"at the limit {other.best / (PASSES * once.best):.1f}: {bare}"
        what = f"{name}, {'shuffled' if shuffled else 'in order'}"
        return Row(what, f"Perceptron, {PASSES} passes", "scikit-learn's Perceptron", mine, other, floor, quality, note=note)

    n = 100_000 if quick else 400_000
    X, y = dense_data(n, 64, np.float32)
    for shuffled in (False, True):
        yield compare(f"dense {n:,} × 64 float32", X, y, 7, shuffled, X.sum, "reads by X.sum()")
    X, y = sparse_data(n * 7 // 4, 47_000)
    w = np.random.default_rng(1).standard_normal(X.shape[1])
    for shuffled in (False, True):
        yield compare(f"CSR {X.shape[0]:,} × 47,000", X, y, 6, shuffled, lambda: X @ w, "reads by X @ w")
    rng, n = np.random.default_rng(0), n * 3 // 20
    X = rng.random((n, 784), dtype=np.float32)
    W = rng.standard_normal((784, 10), dtype=np.float32)
    y = np.argmax(X @ W + rng.standard_normal((n, 10)), axis=1)
    yield compare(f"dense {n:,} × 784, 10 classes", X, y, 16, True, lambda: X @ W, "products X @ W in float32 by BLAS")


def two_threads(quick: bool, repeats: int) -> Iterator[Row]:
    """The same work, with the same bits, in two threads and in one."""
    rng, n = np.random.default_rng(0), 100_000 if quick else 400_000
    X, y = dense_data(n, 64, np.float32)
    S, labels = sparse_data(n // 2, 47_000)
    D = rng.random((n // 10, 784), dtype=np.float32)
    digits = np.argmax(D @ rng.standard_normal((784, 10), dtype=np.float32) + rng.standard_normal((len(D), 10)), axis=1)
    words = np.array([f"w{k}" for k in range(5000)])
    texts = [" ".join(words[rng.integers(5000, size=60)]) for _ in range(n // 20)]
    of_X, of_S, of_D = (
        AveragedPerceptron(max_iter=1, random_state=0).fit(*data) for data in ((X, y), (S, labels), (D, digits))
    )
    features = TextFeatures().fit(texts)
    auto, few = AveragedPerceptron(rule="pa1", C="auto", max_iter=2, random_state=0), X[: n // 4]
    of_few = y[: n // 4]
    tasks: dict[str, Callable[[], Any]] = {
        f"decision_function, dense {n:,} × 64": lambda: of_X.decision_function(X),
        f"decision_function, CSR {n // 2:,} × 47,000": lambda: of_S.decision_function(S),
        f"decision_function, dense {n // 10:,} × 784, 10 classes": lambda: of_D.decision_function(D),
        f'fit with C="auto", dense {n:,} × 64': lambda: auto.fit(X, y).coef_,
        f"train(folds=4), CSR {n // 2:,} × 47,000": lambda: train(S, label=labels, passes=2, folds=4).estimator.coef_,
        f"train(tune=True), dense {n // 4:,} × 64": lambda: train(few, label=of_few, passes=2, tune=True).estimator.coef_,
        f"TextFeatures.transform, {n // 20:,} texts": lambda: features.transform(texts).data,
    }
    before = os.environ.get("OMP_NUM_THREADS")

    def told(threads: str, task: Callable[[], Any]) -> Any:
        os.environ["OMP_NUM_THREADS"] = threads
        return task()

    try:
        for what, task in tasks.items():
            both = [partial(told, threads, task) for threads in ("2", "1")]
            (two, one), (mine, alone) = in_turns(*both, repeats=repeats, warm_up=1)
            assert np.array_equal(mine, alone), what
            yield Row(what, "two threads", "one thread", two, one, note=f"{os.cpu_count()} cores; the same bits")
    finally:
        os.environ.pop("OMP_NUM_THREADS")
        if before is not None:
            os.environ["OMP_NUM_THREADS"] = before


def rows(quick: bool) -> Iterator[Row]:
    """The suite "passes"."""
    yield from against_reading(quick, 3 if quick else 7)
    yield from against_scikit_learn(quick, 2)
    yield from two_threads(quick, 2 if quick else 5)
    yield from start_up(1 if quick else 4)


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


def short_rows() -> Iterator[tuple[str, tuple[Any, ...]]]:
    """Data with so many and so short rows that the shuffle visits windows of runs: copies, and images of 7 × 7."""
    if not datasets.DATA.is_dir():
        return
    X, y, X_test, y_test = datasets.a9a()
    yield "a9a × 13", (sp.vstack([X] * 13, format="csr"), np.tile(y, 13), X_test, y_test)
    X, y, X_test, y_test = datasets.mnist()
    small = [images.reshape(-1, 7, 4, 7, 4).mean(axis=(2, 4)).reshape(-1, 49).astype(np.float32) for images in (X, X_test)]
    yield "MNIST 7 × 7, × 6", (np.tile(small[0], (6, 1)), np.tile(y, 6), small[1], y_test)


def mixing() -> None:
    """The shuffle beside a permutation, with what it does: where it is a permutation, the figures are the same by design."""
    shown = table(
        f"Does the shuffle mix? Held-out accuracy over {SEEDS} seeds, and the difference with its standard error",
        *("data", "sorted by", "weights", "passes", "visits", "shuffle", "permuted", "difference", "in order"),
    )
    warnings.filterwarnings("ignore", message="the rows are sorted by label")
    for name, (X, y, X_test, y_test) in short_rows():
        direction = np.random.default_rng(0).standard_normal(X.shape[1])
        for by, key in (("–", np.zeros(len(y))), ("a direction", X @ direction), ("class", y)):
            at = np.argsort(key, kind="stable")
            rows, labels = X[at], y[at]
            visited = order_for("shuffle", Rows(rows), np.unique(labels, return_inverse=True)[1])
            visited = "windows" if visited == "shuffle" else "permuted"
            for learner, number in product((AveragedPerceptron, Perceptron), (1, PASSES)):
                scores = {}
                for order in ("shuffle", "permutation", "cyclic"):
                    models = [learner(order=order, max_iter=number, random_state=seed) for seed in range(SEEDS)]
                    models = models[:1] if order == "cyclic" else models
                    scores[order] = [model.fit(rows, labels).score(X_test, y_test) for model in models]
                means = {order: np.mean(found) for order, found in scores.items()}
                error = np.sqrt(sum(np.var(scores[order], ddof=1) / SEEDS for order in ("shuffle", "permutation")))
                difference = f"{means['shuffle'] - means['permutation']:+.4f} ± {error:.4f}"
                weights = "averaged" if learner is AveragedPerceptron else "last"
                told = name, by, weights, str(number), visited, f"{means['shuffle']:.4f}"
                shown.add_row(*told, f"{means['permutation']:.4f}", difference, f"{means['cyclic']:.4f}")
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


def start_up(repeats: int) -> Iterator[Row]:
    """How long a new process takes, the best of several."""

    def run(code: str, cache: str) -> float:
        environment = os.environ | {"NUMBA_CACHE_DIR": cache}
        done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=environment, check=True)
        return float(done.stdout)

    with tempfile.TemporaryDirectory() as folder:
        kept = str(Path(folder) / "kept")
        cold = [run(FIRST_FIT, kept), *(run(FIRST_FIT, f"{folder}/{k}") for k in range(repeats - 1))]
        found = (
            ("import separatrix, over import numpy", [run(IMPORT, kept) for _ in range(repeats)], 0.1),
            ("first fit, imports included, compiled before", [run(FIRST_FIT, kept) for _ in range(repeats)], 1.2),
            ("first fit, imports included, nothing compiled", cold, 4.0),
        )
    for name, seconds, limit in found:
        note = "scikit-learn imports pandas, which is installed here" if "fit" in name and installed("pandas") else ""
        yield Row(name, "a new process", value=min(seconds), unit="s", at_most=limit, note=note)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    suites = {
        "passes": lambda r: show(list(against_reading(False, r))),
        "threads": lambda r: show(list(two_threads(False, r))),
        "sklearn": lambda r: show(list(against_scikit_learn(False, max(2, r // 2)))),
        "accuracy": lambda _: accuracy(),
        "mixing": lambda _: mixing(),
        "memory": lambda _: memory(),
        "startup": lambda r: show(list(start_up(r))),
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
