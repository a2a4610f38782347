"""Published figures, each beside ours.

python -m benchmarks.published [--quick]        all of them
python -m benchmarks.published.sol [--quick]    one
"""

from collections.abc import Iterator
from importlib import import_module

from benchmarks import datasets
from benchmarks.harness import Line, Row

ABOUT = (
    "Each is a script of `benchmarks/published/`. A figure is met when ours is as good as the published one within the "
    "spread given; an ordering, when ours comes out the same. Where the means of an ordering differ by at most twice the "
    "standard error of their difference, seed by seed, the verdict is equal: it is neither confirmed nor refuted."
)
SCRIPTS = {
    "LIBOL's svmguide3": "svmguide3",
    "SOL's a1a and MNIST": "sol",
    "kernel perceptrons on MNIST": "kernel_perceptron",
    "averaged against last": "averaging",
    "parameter mixing": "mixing",
}


def rows(quick: bool) -> Iterator[Line]:
    """The suite "published"."""
    for name, script in SCRIPTS.items():
        if datasets.absent():
            yield Row.missing(name, "", datasets.absent())
        else:
            yield from import_module(f"benchmarks.published.{script}").rows(quick)
