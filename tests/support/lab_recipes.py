"""Recipes of the lab, generated from a seed, and what the reference says of them: the oracle of the browser's engine."""

import random

import numpy as np

from separatrix import reference
from separatrix.engine.rules import RULES

ORDERS = ("cyclic", "permutation", "shuffle", "random")


def generated(count, seed=0):
    """Recipes over drawn points, random points and lectures, all rules, ties, orders, biases and maps without cos."""
    draw = random.Random(seed)
    return [_recipe(draw) for _ in range(count)]


def _recipe(draw):
    n_classes = draw.choice((2, 2, 3, 4))
    recipe = {"passes": draw.randint(1, 5), "seed": draw.randint(0, 2**31 - 1)}
    if draw.random() < 0.4:
        recipe |= {"data": "random", "n": draw.randint(5, 30), "classes": n_classes, "gap": draw.choice((0.0, 0.3))}
        recipe["noise"] = draw.choice((0.0, 0.1))
    else:
        labels = [str(k) for k in range(n_classes)]
        digits = draw.choice((0, 0, 1, 6))  # whole numbers have many ties, long fractions all roundings
        points = [
            [round(draw.uniform(-4, 4), digits), round(draw.uniform(-4, 4), digits), draw.choice(labels)] for _ in range(20)
        ]
        recipe |= {
            "data": "points",
            "points": [*points[: draw.randint(2, 18)], *([float(k), 1.0, labels[k]] for k in range(n_classes))],
        }
    recipe["learner"] = draw.choice(("perceptron", "averaged", "voted", "pocket", "passive-aggressive", "kernel"))
    recipe["order"] = draw.choice(ORDERS)
    if recipe["learner"] == "passive-aggressive":
        recipe |= {"rule": draw.choice(("pa1", "pa2")), "order": draw.choice(("cyclic", "shuffle"))}
    elif recipe["learner"] == "kernel":
        recipe |= {"kernel": draw.choice(("linear", "poly", "rbf")), "degree": draw.randint(1, 3), "gamma": 0.5}
    else:
        recipe |= {"rule": draw.choice(("perceptron", *RULES)), "margin": draw.choice((0.0, 1.0, 2.5))}
        recipe["map"] = draw.choice(("none", "none", "disc", "products2", "products3"))
    recipe["C"] = draw.choice((0.1, 1.0, 3.0))
    recipe["bias"] = draw.random() < 0.6
    recipe["tie"] = draw.choice(("mistake", "+1", "-1") if n_classes == 2 else ("mistake", "first"))
    if draw.random() < 0.15 and recipe["data"] == "random":
        recipe |= {"holdout": 0.3, "n": 40}
    return recipe


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
