"""Averaged weights against the last ones, at the same passes: the remedy for noise (lecture L2, item 9)."""

from collections.abc import Iterator

from benchmarks.engine import SEEDS, data_sets
from benchmarks.published.figures import Figure, main
from separatrix import AveragedPerceptron, Perceptron

SOURCE = "lecture L2, item 9; Freund, Schapire 1999"


def rows(quick: bool) -> Iterator[Figure]:
    """Mean test accuracies over seeds, after one pass and after five."""
    for name, load in data_sets():
        for passes in (1, 5):
            scores: dict[type, list[float]] = {AveragedPerceptron: [], Perceptron: []}
            for seed in range(2 if quick else SEEDS):
                X, y, X_test, y_test = load(seed)
                for kind, found in scores.items():
                    found.append(kind(max_iter=passes, random_state=seed).fit(X, y).score(X_test, y_test))
            what, names = f"{name}, {passes} {'pass' if passes == 1 else 'passes'}", ("averaged", "last")
            yield Figure.ordering(what, SOURCE, "test accuracy, the same orders for both", names, *scores.values())


if __name__ == "__main__":
    main(rows)
