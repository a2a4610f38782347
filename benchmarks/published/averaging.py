"""Averaged weights against the last ones, at the same passes: the remedy for noise (lecture L2, item 9)."""

from collections.abc import Iterator

import numpy as np

from benchmarks.engine import data_sets
from benchmarks.published.figures import Figure, main
from separatrix import AveragedPerceptron, Perceptron

SOURCE = "lecture L2, item 9; Freund, Schapire 1999"


def rows(quick: bool) -> Iterator[Figure]:
    """Mean test accuracies over seeds, after one pass and after five."""
    for name, load in data_sets():
        for passes in (1, 5):
            scores: dict[type, list[float]] = {AveragedPerceptron: [], Perceptron: []}
            for seed in range(2 if quick else 5):
                X, y, X_test, y_test = load(seed)
                for kind, found in scores.items():
                    found.append(kind(max_iter=passes, random_state=seed).fit(X, y).score(X_test, y_test))
            (averaged, last), number = (np.mean(found) for found in scores.values()), len(scores[Perceptron])
            yield Figure(
                f"{name}, {passes} {'pass' if passes == 1 else 'passes'}",
                SOURCE,
                f"test accuracy, mean of {number} seeds, the same orders for both",
                "averaged above last",
                f"averaged {averaged:.4f}, last {last:.4f}",
                bool(averaged > last),
            )


if __name__ == "__main__":
    main(rows)
