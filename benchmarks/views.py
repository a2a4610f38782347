"""The map of classifiers on Auto MPG, iris and WDBC: one table each, with the wall time; written to docs/views.md.

python -m benchmarks.views
"""

import time
from pathlib import Path

import numpy as np
from sklearn.datasets import load_breast_cancer, load_iris, make_classification

from benchmarks import datasets
from separatrix import compare

PAGE = Path(__file__).parents[1] / "docs" / "views.md"
LIMIT = 60.0
OPENING = """# Three views, side by side

What `separatrix compare` finds on three small sets. Naive Bayes and its kin describe how the examples of each class come
about, and learn in one pass; logistic regression, k-NN and trees describe the label given the example; perceptrons and
margins describe the boundary alone. Accuracy is the mean of five stratified folds, spread their
standard deviation; what a column is for is told as `train` tells it, and its scale, bins, categories and words are learned
inside the fold; times are of the model alone. "separatrix train" is the learner of `separatrix train` on its features, bins
of numbers and tf-idf of words; of an array of numbers, as here of iris and WDBC, it takes the numbers as they are.

Written by `python -m benchmarks.views`. Times and the order of rows within a hundredth of accuracy say little."""
OVERTRAINING = """## Overtraining

Three in ten labels are drawn at random, 5 of 100 features matter. Training accuracy rises pass after pass; held-out accuracy
rises and then falls: the case for stopping where it is best (`early_stopping=True`). From `compare(X, y).curves`:"""


def auto_mpg():
    table, y = datasets.auto_mpg()
    return np.array(list(zip(*table.values(), strict=True))), y, list(table)


def main():
    parts, slowest = [OPENING], 0.0
    sets = {
        "Auto MPG, good or bad by the median": auto_mpg(),
        "iris": (*load_iris(return_X_y=True), None),
        "WDBC": (*load_breast_cancer(return_X_y=True), None),
    }
    for name, (X, y, names) in sets.items():
        begin = time.perf_counter()
        found = compare(X, y, feature_names=names, verbose=1)
        took = time.perf_counter() - begin
        slowest = max(slowest, took)
        found.name = name
        print(f"{found!r}\n\n{name}: {took:.1f} s\n", flush=True)
        assert all(row.failure is None for row in found.rows), name
        parts.append(f"## {name.split(',')[0]}\n\n{found.to_markdown()}\nAll of it in {took:.1f} s.")
    parts.append(overtraining())
    assert slowest < LIMIT
    PAGE.write_text("\n\n".join(parts) + "\n")


def overtraining():
    X, y = make_classification(300, 100, n_informative=5, n_redundant=0, flip_y=0.3, random_state=0)
    curve = compare(X, y, models=["AveragedPerceptron"]).curves["AveragedPerceptron"]
    lines = ["| pass | training | held-out |", "|---:|---:|---:|"]
    lines += [f"| {number} | {training:.3f} | {held_out:.3f} |" for number, training, held_out in curve]
    return OVERTRAINING + "\n\n" + "\n".join(lines)


if __name__ == "__main__":
    main()
