"""How cost grows: time and memory of a fit against n, d, nonzeros, K, passes and mistakes, each alone, with the exponent.

    python -m benchmarks.growth [--quick]

Time is processor time, the least of several; memory is the greatest amount held at once beyond the data, as `tracemalloc`
counts it, NumPy's arrays included. The exponent is the slope of a least-squares line through the larger half of the sizes,
in logarithms: what is fixed (validation, a thread pool, a block) no longer hides what grows.
"""

import sys
import tracemalloc
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, NamedTuple

import numpy as np
import scipy.sparse as sp

from benchmarks.harness import MET, MISSED, QUICKLY, duration
from benchmarks.report import show
from benchmarks.timing import in_turns
from separatrix import AveragedPerceptron, KernelPerceptron, Perceptron, VotedPerceptron

ABOUT = (
    "Time is processor time, the least of several fits; memory is the most held at once beyond the data (`tracemalloc`). "
    "The exponent is the slope in logarithms through the larger half of the sizes, beside the one that is expected at most: "
    "where something fixed still counts (validation, a block of 10 MB) it is less. An exponent greater by more than 0.15 is "
    "a miss: something costs more than it should. Where data outgrow the caches, the limit is a plain product of NumPy or "
    "SciPy on as many numbers, in turn with ours: its exponent is in brackets, and counts where it is greater. "
    "What one more costs is the slope between the last two sizes."
)
SLACK = 0.15


class Trial(NamedTuple):
    """What is to be measured at one size: a task, how to read a size that is only known afterwards, and the task's limit."""

    task: Callable[[], Any]
    size: Callable[[Any], float] | None = None
    limit: Callable[[], Any] | None = None


@dataclass(frozen=True)
class Growth:
    """Costs at growing sizes."""

    columns: ClassVar = ("cost", "of", "against", "sizes", "costs", "one more costs", "exponent", "at most", "verdict")
    aside: ClassVar = frozenset({"of", "sizes", "costs", "one more costs"})

    cost: str
    of: str
    against: str
    sizes: Sequence[float]
    costs: Sequence[float]
    expected: float
    limits: Sequence[float] = ()
    """What the limit costs at each size, where it is measured."""
    promised: bool = True

    @property
    def exponent(self) -> float:
        return self._slope(self.costs)

    @property
    def limit(self) -> float | None:
        """The exponent of the limit."""
        return self._slope(self.limits) if self.limits else None

    def _slope(self, costs: Sequence[float]) -> float:
        half = len(self.sizes) // 2
        return float(np.polyfit(np.log(self.sizes[half:]), np.log(costs[half:]), 1)[0])

    @property
    def verdict(self) -> str:
        if self.exponent > max(self.expected, self.limit or 0.0) + SLACK:
            return MISSED if self.promised else QUICKLY
        return MET

    @property
    def one_more(self) -> float:
        """What one more of it costs at the end: of an example, a feature, a mistake."""
        return (self.costs[-1] - self.costs[-2]) / (self.sizes[-1] - self.sizes[-2])

    def told(self, cost: float) -> str:
        return duration(cost) if self.cost == "time" else f"{cost:,.3g} bytes" if cost < 1e6 else f"{cost / 1e6:,.3g} MB"

    def cells(self) -> tuple[str, ...]:
        sizes = f"{self.sizes[0]:,.0f} … {self.sizes[-1]:,.0f}"
        costs = f"{self.told(self.costs[0])} … {self.told(self.costs[-1])}"
        one_more = self.told(max(self.one_more, 0.0))
        beside = "" if self.limit is None else f" ({self.limit:.2f})"
        exponents = f"{self.exponent:.2f}", f"{self.expected:g}{beside}"
        return (self.cost, self.of, self.against, sizes, costs, one_more, *exponents, self.verdict)

    def below(self) -> list[str]:
        sizes, costs, one_more = self.cells()[3:6]
        return [self.of, f"{sizes} → {costs}; one more costs {one_more}"]

    def document(self) -> dict[str, Any]:
        told = {"cost": self.cost, "of": self.of, "against": self.against, "sizes": list(self.sizes)}
        return {
            **told,
            "costs": list(self.costs),
            "exponent": self.exponent,
            "expected": self.expected,
            "limits": list(self.limits),
            "limit": self.limit,
            "verdict": self.verdict,
        }


def sizes(least: float, most: float, quick: bool) -> list[int]:
    """Sizes evenly spaced in logarithms; a quick run has fewer and goes a quarter as far."""
    return np.geomspace(least, most / 4 if quick else most, 4 if quick else 6).round().astype(int).tolist()


def dense(n: int, d: int, K: int = 2, noise: float = 0.0) -> tuple[Any, Any]:
    """Examples of K classes by linear scores; a share of the labels is drawn at random."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((n, d))
    y = np.argmax(X @ rng.standard_normal((d, K)), axis=1)
    wrong = rng.random(n) < noise
    y[wrong] = rng.integers(K, size=wrong.sum())
    return X, y


def sparse(n: int, d: int, nonzeros: int) -> tuple[Any, Any]:
    rng = np.random.default_rng(0)
    indices = np.sort(rng.integers(d // nonzeros, size=(n, nonzeros)) + np.arange(nonzeros) * (d // nonzeros), axis=1)
    indptr = np.arange(0, n * nonzeros + 1, nonzeros, dtype=np.int32)
    X = sp.csr_matrix((rng.standard_normal(n * nonzeros), indices.ravel().astype(np.int32), indptr), shape=(n, d))
    return X, rng.integers(2, size=n)


def of_classes(data: tuple[Any, Any], K: int) -> tuple[Any, Any]:
    """The same rows with other labels: each of K classes equally often."""
    X, y = data
    return X, np.random.default_rng(0).permutation(np.arange(len(y)) % K)


def averaged(data: tuple[Any, Any], passes: int = 3, order: str = "shuffle") -> Trial:
    return Trial(lambda: AveragedPerceptron(max_iter=passes, order=order, random_state=0).fit(*data))


def beside_products(data: tuple[Any, Any], passes: int) -> Trial:
    """Passes over sparse rows, whose limit is as many products of SciPy."""
    X, w = data[0], np.ones(data[0].shape[1])
    return averaged(data, passes)._replace(limit=lambda: [X @ w for _ in range(passes)])


def kernel(n: int) -> Trial:
    """Labels at random: every second example is a mistake, so that mistakes grow with n, and time with their product.

    The cache of products, which only saves time, is kept small.
    """
    X, y = dense(n, 100, noise=1.0)
    model = KernelPerceptron(kernel="rbf", gamma=0.005, max_iter=1, cache_mb=8, random_state=0)
    return Trial(lambda: model.fit(X, y), lambda fitted: fitted.n_mistakes_)


def votes(n: int) -> Trial:
    X, y = dense(n, 20, noise=1.0)
    model = VotedPerceptron(max_iter=1, random_state=0).fit(X, y)
    asked = dense(500, 20)[0]
    voters, survived = np.random.default_rng(0).standard_normal((model.n_mistakes_, 20)), np.ones(model.n_mistakes_)
    return Trial(
        lambda: model.predict(asked), lambda _: model.n_mistakes_, lambda: np.sign(asked @ voters.T, order="C") @ survived
    )


def voted(n: int) -> Trial:
    X, y = dense(n, 20, noise=1.0)
    return Trial(lambda: VotedPerceptron(max_iter=2, random_state=0).fit(X, y), lambda fitted: fitted.n_mistakes_)


def plans(quick: bool) -> Iterator[tuple[str, str, str, float, dict[int, Callable[[], Trial]]]]:
    """What is measured: the cost, of what, against what, the exponent to expect, and a trial for each size."""

    def over(values: Sequence[int], make: Callable[[int], Trial]) -> dict[int, Callable[[], Trial]]:
        return {value: lambda value=value: make(value) for value in values}

    n = over(sizes(60_000, 960_000, quick), lambda n: averaged(dense(n, 64)))
    yield "time", "3 passes, dense, 64 features", "n", 1, n
    d = over(sizes(128, 2048, quick), lambda d: averaged(dense(20_000, d)))
    yield "time", "3 passes, dense, 20,000 examples", "d", 1, d
    nonzeros = over(sizes(20, 640, quick), lambda k: beside_products(sparse(10_000, 20_480, k), 10))
    yield "time", "10 passes, CSR, 10,000 examples", "nonzeros a row", 1, nonzeros
    classes = over(sizes(8, 10_000, quick), lambda K: averaged(of_classes(dense(10_000, 64), K)))
    yield "time", "3 passes, dense, 10,000 × 64", "K", 1, classes
    classes = over(sizes(8, 10_000, quick), lambda K: averaged(of_classes(sparse(10_000, 2000, 10), K)))
    yield "time", "3 passes, CSR, 10,000 × 2,000, 10 nonzeros a row", "K", 1, classes
    hashed = over(sizes(10_000, 10**8, quick), lambda d: averaged(sparse(500, d, 10)))
    yield "time", "3 passes, CSR, 500 examples, 10 nonzeros a row", "d", 1, hashed
    again = dense(20_000, 64, noise=0.2)
    yield "time", "a fit, dense, 20,000 × 64", "passes", 1, over(sizes(4, 128, quick), lambda k: averaged(again, k))
    yield "time", "votes on 500 examples", "mistakes", 1, over(sizes(1000, 32_000, quick), votes)
    mistakes = over(sizes(2000, 16_000, quick), kernel)
    yield "time", "1 pass, RBF kernel, labels at random", "mistakes", 2, mistakes
    yield "memory", "1 pass, RBF kernel, labels at random", "mistakes", 1, mistakes
    n = over(sizes(200_000, 3_200_000, quick), lambda n: averaged(dense(n, 4), order="cyclic"))
    yield "memory", "3 passes in order, dense, 4 features", "n", 1, n
    yield "memory", "3 passes, CSR, 500 examples", "d", 1, hashed
    yield "memory", "3 passes, CSR, 10,000 × 2,000", "K", 1, classes
    clean = dense(50_000, 20)
    passes = over(sizes(2, 64, quick), lambda k: averaged(clean, k))
    yield "memory", "a fit with few mistakes, 50,000 × 20", "passes", 0, passes
    yield "memory", "2 passes, voted, 20 features", "mistakes", 1, over(sizes(2000, 64_000, quick), voted)


def measured(cost: str, trial: Trial) -> tuple[Any, list[float]]:
    """What the task gave, and its cost, with that of the limit if there is one."""
    if cost == "time":
        tasks = [trial.task] if trial.limit is None else [trial.task, trial.limit]
        times, (gave, *_) = in_turns(*tasks, repeats=3, warm_up=1)
        return gave, [max(min(one.cpu), 1e-6) for one in times]
    trial.task()
    tracemalloc.start()
    try:
        gave = trial.task()
        return gave, [tracemalloc.get_traced_memory()[1]]
    finally:
        tracemalloc.stop()


def rows(quick: bool) -> Iterator[Growth]:
    """The suite "growth"."""
    Perceptron(max_iter=1).fit(*dense(100, 4))
    for cost, of, against, expected, trials in plans(quick):
        at, costs = [], []
        for size, make in trials.items():
            trial = make()
            gave, paid = measured(cost, trial)
            at.append(float(size if trial.size is None else trial.size(gave)))
            costs.append(paid)
        ours, *limits = zip(*costs, strict=True)
        yield Growth(cost, of, against, at, ours, expected, *limits)


def charts(lines: Sequence[Any], folder: Path) -> list[tuple[str, str]]:
    from benchmarks.charts import growth

    return growth([line for line in lines if isinstance(line, Growth)], folder)


if __name__ == "__main__":
    show(list(rows("--quick" in sys.argv)))
