"""LIBOL's online mistake rates on svmguide3 (its manual, table 3)."""

from collections.abc import Iterator

from benchmarks import datasets
from benchmarks.published.figures import Figure, main
from benchmarks.rules import ORDERS, POWERS, PUBLISHED, over_the_grid

SOURCE = "LIBOL's manual, table 3"
PROTOCOL = f"one pass, no bias, raw features, mean of {ORDERS} random orders; C the best of 2⁻¹⁰ … 2⁴"
SPREAD = 0.012
MORE = {"perceptron": " ± 0.012 (412.4 ± 14.7 updates)"}
RULES = ("perceptron", "margin", "pa", "pa1", "pa2", "arow", "arow-full")


def rows(quick: bool) -> Iterator[Figure]:
    """The mistake rate of every rule; the published deviation of the perceptron's, 0.012, is the spread allowed."""
    X, y = datasets.svmguide3()
    for rule in RULES:
        curve, least = over_the_grid(X, y, rule)
        rate, deviation, updates = curve[least]
        C = f", C = 2^{POWERS[least]}" if len(curve) > 1 else ""
        published = PUBLISHED.get(rule)
        holds = None if published is None else bool(rate <= published + SPREAD)
        ours = f"{rate:.3f} ± {deviation:.3f} ({updates:.1f} updates{C})"
        said = "no figure at hand" if published is None else f"{published:.3f}{MORE.get(rule, '')}"
        yield Figure(f"svmguide3, mistake rate, {rule}", SOURCE, PROTOCOL, said, ours, holds)


if __name__ == "__main__":
    main(rows)
