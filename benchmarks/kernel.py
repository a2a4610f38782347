"""The kernel perceptron on MNIST, all ten digits: `python -m benchmarks.kernel` from the project's root.

Polynomial kernels (1 + ⟨x,z⟩)^d of pixels in [0, 1], one training of ten passes a degree; every cell of the table follows
from its ledger. With `--svc`, four passes are timed side by side with scikit-learn's SVC. Writes docs/kernel-mnist.md.
"""

import argparse
import os
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import sklearn
from rich.console import Console
from rich.markdown import Markdown
from sklearn.svm import SVC

from benchmarks import datasets
from benchmarks.harness import Quality, Row
from benchmarks.timing import in_turns
from separatrix import KernelPerceptron
from separatrix.solvers.dual_votes import PREDICTIONS

PAGE = Path(__file__).parents[1] / "docs" / "kernel-mnist.md"
PASSES = (0.1, 1, 2, 4, 10)
BEST = 1.7
FASTER = 10
BESIDE = "`SVC` with its default settings but for the kernel; ours is the slower of two fits, just before and just after."
CONSOLE = Console(width=118)


class Timed(NamedTuple):
    """Seconds of one fit: on the clock, and of all its threads together, which a busy machine does not change."""

    wall: float
    cpu: float


class Trained(NamedTuple):
    degree: int
    model: KernelPerceptron
    time: Timed
    errors: dict[tuple[str, float], float]


class Race(NamedTuple):
    degree: int
    constant: int
    ours: Timed
    theirs: Timed
    our_error: float
    their_error: float

    @property
    def ratios(self) -> tuple[float, float]:
        return self.theirs.wall / self.ours.wall, self.theirs.cpu / self.ours.cpu


def learner(degree: int, passes: int) -> KernelPerceptron:
    return KernelPerceptron(
        kernel="poly", degree=degree, gamma=1, coef0=1, fit_intercept=False, max_iter=passes, random_state=0
    )


def timed(model: Any, X: Any, y: Any) -> Timed:
    wall, cpu = time.perf_counter(), time.process_time()
    model.fit(X, y)
    return Timed(time.perf_counter() - wall, time.process_time() - cpu)


def error(model: Any, X: Any, y: Any) -> float:
    return 100 * (1 - model.score(X, y))


def trained(degrees: list[int], counts: Sequence[float] = PASSES, n: int = 60_000, m: int = 10_000) -> Iterator[Trained]:
    """Train on the first n examples, and test on m, after each count of passes."""
    X, y, X_test, y_test = (part[:size] for part, size in zip(datasets.mnist(), (n, n, m, m), strict=True))
    learner(2, 1).fit(X[:2000], y[:2000])
    for degree in degrees:
        model, errors = learner(degree, int(max(counts))), {}
        took = timed(model, X, y)
        for passes in counts:
            then = model.after(min(round(passes * len(X)), model.n_seen_))
            for how in PREDICTIONS:
                errors[how, passes] = error(then.set_params(predict_with=how), X_test, y_test)
        yield Trained(degree, model, took, errors)


def races(degrees: list[int]) -> Iterator[Race]:
    X, y, X_test, y_test = datasets.mnist()
    learner(2, 1).fit(X[:2000], y[:2000])
    for degree in degrees:
        for constant in (0, 1):
            ours, theirs = learner(degree, 4), SVC(kernel="poly", degree=degree, gamma="scale", coef0=constant)
            before, other, after = timed(ours, X, y), timed(theirs, X, y), timed(ours, X, y)
            slower = Timed(max(before.wall, after.wall), max(before.cpu, after.cpu))
            yield Race(degree, constant, slower, other, error(ours, X_test, y_test), error(theirs, X_test, y_test))


def rows(quick: bool) -> Iterator[Row]:
    """The suite "kernel": degrees 2 and 4 beside SVC, on the first examples alone; docs/kernel-mnist.md has all 60,000."""
    if datasets.absent():
        yield Row.missing("MNIST, polynomial kernel", "SVC", datasets.absent())
        return
    X, y, X_test, y_test = datasets.mnist()
    n, X_test, y_test = (3000, X_test[:2000], y_test[:2000]) if quick else (10_000, X_test, y_test)
    for degree in (2, 4):
        ours, theirs = learner(degree, 4), SVC(kernel="poly", degree=degree, gamma="scale")
        fits = (lambda: ours.fit(X[:n], y[:n])), (lambda: theirs.fit(X[:n], y[:n]))  # noqa: B023
        fits[0]()
        (mine, other), _ = in_turns(*fits, repeats=2 if quick else 1)
        errors = (error(model, X_test, y_test) / 100 for model in (ours, theirs))
        quality = Quality.of_shares("test error", *errors, len(y_test), higher=False)
        what = f"MNIST, {n:,} examples, degree {degree}"
        note = f"SVC's time grows with the square of the examples: the promised {FASTER}× is for all 60,000"
        yield Row(what, "averaged kernel perceptron, 4 passes", "SVC", mine, other, quality=quality, note=note)


def table(header: list[str], rows: list[list[str]]) -> str:
    lines = [header, ["---"] * len(header), *rows]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines) + "\n"


def errors(results: list[Trained]) -> str:
    rows = []
    for result in results:
        for how in PREDICTIONS:
            name = f"{result.degree}" if how == PREDICTIONS[0] else ""
            rows.append([name, how, *(f"{result.errors[how, passes]:.2f}" for passes in PASSES)])
    return table(["degree", "prediction", *(f"{passes:g}" for passes in PASSES)], rows)


def sizes(results: list[Trained]) -> str:
    rows = []
    for degree, model, took, _ in results:
        mistakes = [f"{sum(model.mistakes_per_pass_[:passes]):,}" for passes in PASSES[1:]]
        passes = f"{model.n_iter_}" + (", the last one clean" if model.converged_ else "")
        rows.append([f"{degree}", *mistakes, f"{len(model.support_):,}", passes, f"{took.wall:.0f} s", f"{took.cpu:.0f} s"])
    counts = [f"mistakes in {passes}" for passes in PASSES[1:]]
    return table(["degree", *counts, "examples mistaken", "passes", "clock", "all threads"], rows)


def floors(results: list[Trained], raced: list[Race]) -> str:
    def mark(kept: bool) -> str:
        return "yes" if kept else "NO"

    early = [passes for passes in PASSES if passes <= 4]
    behind = [
        f"degree {r.degree}, {passes:g} passes"
        for r in results
        for passes in early
        if max(r.errors[how, passes] for how in ("averaged", "voted"))
        >= min(r.errors[how, passes] for how in ("last", "random"))
    ]
    best, how, passes, degree = min((e, how, passes, r.degree) for r in results for (how, passes), e in r.errors.items())
    rows = [
        ["averaged and voted beat last and random up to 4 passes", "; ".join(behind) or "in every cell", mark(not behind)],
        [f"best test error ≤ {BEST} %", f"{best:.2f} %: degree {degree}, {how}, {passes:g} passes", mark(best <= BEST)],
    ]
    for race in raced:
        if race.constant == 0:
            name = f'4 passes of degree {race.degree} ≥ {FASTER}× faster than `SVC(kernel="poly", gamma="scale")`'
            clock, threads = race.ratios
            rows.append([name, f"{clock:.0f}×; by all threads' time {threads:.0f}×", mark(min(race.ratios) >= FASTER)])
    return table(["floor", "measured", "kept"], rows)


def side_by_side(raced: list[Race]) -> str:
    rows = [
        [f"{r.degree}", f"{r.constant}", *both(r.ours), f"{r.our_error:.2f} %", *both(r.theirs), f"{r.their_error:.2f} %"]
        + [f"{ratio:.0f}×" for ratio in r.ratios]
        for r in raced
    ]
    header = [
        "degree",
        "SVC's coef0",
        "4 passes: clock",
        "all threads",
        "averaged error",
        "SVC: clock",
        "all threads",
        "error",
    ]
    return table([*header, "ratio: clock", "all threads"], rows)


def both(time: Timed) -> list[str]:
    return [f"{time.wall:.1f} s", f"{time.cpu:.1f} s"]


def page(results: list[Trained], raced: list[Race]) -> str:
    text = f"""# The kernel perceptron on MNIST

Written by `python -m benchmarks.kernel{" --svc" if raced else ""}`. All ten digits jointly, 60,000 training and 10,000 test
images, pixels divided by 255, kernel (1 + ⟨x,z⟩)^d, a new order each pass, nothing tuned. 0.1 pass is the first 6,000
examples. Each degree was trained once; all its cells follow from the ledger of that training (`model.after(step)` and
`set_params(predict_with=…)`).

## Test error, %, by passes

{errors(results)}
## What it took

{sizes(results)}
{os.cpu_count()} cores; NumPy {np.__version__}, scikit-learn {sklearn.__version__}. Times are of one run, on the
clock and of all threads together; other work on the machine lengthens the first more than the second.

"""
    if raced:
        text += f"## Beside a support vector machine\n\n{BESIDE}\n\n{side_by_side(raced)}\n"
    return text + f"## Floors\n\n{floors(results, raced)}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--degrees", type=int, nargs="*", default=[1, 2, 3, 4, 5])
    parser.add_argument("--svc", action="store_true", help="time four passes of degrees 2 and 4 beside SVC (minutes)")
    chosen = parser.parse_args()
    raced = list(races([2, 4])) if chosen.svc else []
    text = page(list(trained(chosen.degrees)), raced)
    PAGE.write_text(text)
    CONSOLE.print(Markdown(text))


if __name__ == "__main__":
    main()
