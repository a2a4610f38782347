"""Recipes of the lab, generated from a seed, and what the reference says of them: the oracle of the browser's engine."""

import random

import numpy as np

from separatrix import reference
from separatrix.data.lectures import EXAMPLES
from separatrix.engine.rules import RULES

ORDERS = ("cyclic", "permutation", "shuffle", "random")


LABELS = (
    ["0", "1", "2", "3"],
    ["-1", "1"],
    ["a", "b"],
    ["10", "9"],
    ["01", "1"],
    ["é", "z", "Z"],
    ["a b", "c,d", "e;f", "g"],
)


def generated(count, seed=0):
    """Recipes over all data, learners, rules, ties, orders, biases and maps without cos; some name what a learner lacks."""
    draw = random.Random(seed)
    return [_recipe(draw) for _ in range(count)]


def _recipe(draw):
    kind = draw.choice(("points", "points", "points", "random", "random", "random", "lecture", "set", "csv"))
    recipe = {"passes": draw.randint(1, 5), "seed": draw.randint(0, 2**31 - 1), **DATA[kind](draw)}
    recipe["learner"] = draw.choice(("perceptron", "averaged", "voted", "pocket", "passive-aggressive", "kernel"))
    recipe["order"] = draw.choice(ORDERS)
    recipe |= {"rule": draw.choice(("perceptron", *RULES)), "margin": draw.choice((0.0, 1.0, 2.5))}
    recipe |= {
        "kernel": draw.choice(("linear", "poly", "rbf")),
        "degree": draw.randint(1, 4),
        "gamma": draw.choice((0.1, 0.5, 2.0)),
    }
    recipe["map"] = draw.choice(("none", "none", "disc", "products2", "products3"))
    recipe["C"] = draw.choice((0.1, 1.0, 3.0))
    recipe["bias"] = draw.choice((True, True, False, None))
    recipe["tie"] = draw.choice(("mistake", "+1", "-1", "first", None))
    if kind == "lecture" and recipe["learner"] != "kernel" and draw.random() < 0.5:
        recipe |= {"rule": "perceptron", "passes": 0}
    if draw.random() < 0.15 and kind == "random":
        recipe |= {"holdout": 0.3, "n": 40, "classes": draw.choice((2, 3)), "gap": 0.0}
    return recipe


def _drawn(draw):
    labels = draw.choice(LABELS)
    digits = draw.choice((0, 0, 1, 6))  # whole numbers have many ties, long fractions all roundings
    points = [
        [round(draw.uniform(-4, 4), digits), round(draw.uniform(-4, 4), digits), draw.choice(labels)] for _ in range(20)
    ]
    return {
        "data": "points",
        "points": [*points[: draw.randint(2, 18)], *([float(k), 1.0, label] for k, label in enumerate(labels))],
    }


def _random_set(draw):
    recipe = {"data": "random", "n": draw.randint(5, 30), "classes": draw.choice((2, 2, 3, 4, 6))}
    return recipe | {"gap": draw.choice((0.0, 0.3, 1.0, 0.123456789)), "noise": draw.choice((0.0, 0.1, 0.5))}


def _lecture(draw):
    return {"data": f"lecture:{draw.choice(list(EXAMPLES))}"}


def _built_in(draw):
    name = draw.choice(("iris", "wine", "breast_cancer"))
    positive = (
        {"positive": draw.choice(("setosa", "versicolor", "virginica"))} if name == "iris" and draw.random() < 0.4 else {}
    )
    return {"data": name, "columns": draw.sample(range(4), 2), "passes": draw.randint(1, 2), **positive}


def _csv(draw):
    width, mark = draw.randint(1, 3), draw.choice((",", ";", "\t", " "))
    rows = [[*(str(round(draw.uniform(-5, 5), 3)) for _ in range(width)), "ab"[k % 2]] for k in range(draw.randint(2, 12))]
    titles = [[*(f"f{j}" for j in range(width)), "kind"]] if draw.random() < 0.5 else []
    return {"data": "csv", "csv": "\n".join(mark.join(row) for row in titles + rows) + draw.choice(("", "\n", "\n\n"))}


DATA = {"points": _drawn, "random": _random_set, "lecture": _lecture, "set": _built_in, "csv": _csv}


def badly_scaled(count, seed=0):
    """Small sets of which floating point cannot tell the margin: sizes far apart, or numbers that differ in few digits."""
    draw = random.Random(seed)
    recipes = []
    for k in range(count):
        labels = [str(c) for c in range(draw.choice((2, 2, 3)))]
        labels = [*labels, *(draw.choice(labels) for _ in range(draw.randint(0, 5)))]
        shapes = (
            lambda: [draw.randint(-3, 3) * 1e10, draw.randint(-3, 3) * 1e-3],
            lambda: [2000 + draw.randint(-3, 3), 0.1 + draw.randint(-3, 3) * 1e-6],
        )
        points = [[*shapes[k % 2](), label] for label in labels]
        recipes.append({"data": "points", "points": points, "bias": draw.random() < 0.5, "passes": 1})
    return recipes


def reference_run(experiment, order, gram=None):
    """The run of the reference over an order: its mistakes and the weights after each of them."""
    model, codes = experiment.model, np.unique(np.asarray(experiment.y), return_inverse=True)[1]
    n_classes = int(codes.max()) + 1
    tie = "first" if n_classes > 2 and model.tie == "-1" else model.tie
    if gram is not None:
        y = codes if n_classes > 2 else 2 * codes - 1
        return reference.kernel_perceptron(gram, y, n_classes, order, tie)
    Z = experiment.X if experiment.phi is None else np.asarray(experiment.phi.fit_transform(experiment.X))
    Z = reference.augment(Z) if model.fit_intercept else Z
    if model.rule.startswith("arow"):
        return reference.arow(Z, codes, n_classes, order, model.C, model.rule == "arow-full")
    settings = {"rule": model.rule, "margin": getattr(model, "margin", 1.0), "C": model.C}
    if n_classes == 2:
        return reference.perceptron(Z, 2 * codes - 1, order, tie, **settings)
    return reference.multiclass(Z, codes, n_classes, order, tie, **settings)
