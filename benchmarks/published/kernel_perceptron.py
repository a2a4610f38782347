"""Freund and Schapire 1999: with polynomial kernels on MNIST, averaged and voted predictions beat the last and a random one.

They train one against the rest, we the ten digits jointly; the table of all degrees and passes is docs/kernel-mnist.md.
"""

from collections.abc import Iterator

from benchmarks.kernel import trained
from benchmarks.published.figures import Figure, main

SOURCE = "Freund, Schapire 1999, Large Margin Classification Using the Perceptron Algorithm, the MNIST experiments"


def rows(quick: bool) -> Iterator[Figure]:
    """The four predictions of one training, after each count of passes."""
    n, m, degrees, counts = (3000, 2000, [2], (1, 4)) if quick else (60_000, 10_000, [2, 4], (0.1, 1, 4))
    for result in trained(degrees, counts, n, m):
        for passes in counts:
            last, averaged, voted, random = (result.errors[how, passes] for how in ("last", "averaged", "voted", "random"))
            yield Figure(
                f"MNIST, kernel of degree {result.degree}, {passes:g} {'pass' if passes == 1 else 'passes'}",
                SOURCE,
                f"the first {n:,} examples, (1 + ⟨x,z⟩)^{result.degree}, joint, {m:,} test examples, one order",
                "error of averaged and voted below that of last and random",
                f"averaged {averaged:.2f} %, voted {voted:.2f} %; last {last:.2f} %, random {random:.2f} %",
                max(averaged, voted) < min(last, random),
            )


if __name__ == "__main__":
    main(rows)
