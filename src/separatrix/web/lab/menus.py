"""What the controls of the lab offer: learners, update rules, orders, ties, feature maps, kernels and built-in data.

These tables are the only declaration. A `Recipe` is validated against them, and the page builds its menus from `menus()`.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from separatrix.data.lectures import EXAMPLES
from separatrix.engine.rules import RULES
from separatrix.estimators.kernel_perceptron import KernelPerceptron
from separatrix.estimators.linear import AveragedPerceptron, PassiveAggressive, Perceptron, PocketPerceptron, VotedPerceptron

DATA_SETS = ("iris", "wine", "breast_cancer")
ORDERS = {
    "cyclic": "in the given order",
    "permutation": "shuffled",
    "shuffle": "shuffled in blocks",
    "random": "random draws (L5)",
}
TWO_CLASS_TIES = {"mistake": "a mistake (L4)", "+1": "+1 (L1, L5)", "-1": "−1 (L2)"}
MULTI_CLASS_TIES = {"mistake": "a mistake", "first": "the first class"}
MAPS = {
    "none": "none",
    "disc": "disc (x, xᵀx, 1)",
    "products2": "degree 2",
    "products3": "degree 3",
    "fourier": "random Fourier",
}
KERNELS = {"rbf": "Gaussian (RBF)", "poly": "polynomial", "linear": "linear"}


class LearnerChoice(NamedTuple):
    """A learner of the menu, with the update rules and orders that it can be combined with."""

    title: str
    estimator: type
    rules: tuple[str, ...] = tuple(RULES)
    orders: tuple[str, ...] = tuple(ORDERS)


LEARNERS = {
    "perceptron": LearnerChoice("Perceptron", Perceptron),
    "averaged": LearnerChoice("Averaged perceptron", AveragedPerceptron),
    "voted": LearnerChoice("Voted perceptron", VotedPerceptron),
    "pocket": LearnerChoice("Pocket perceptron", PocketPerceptron),
    "passive-aggressive": LearnerChoice("Passive-aggressive", PassiveAggressive, ("pa1", "pa2"), ("cyclic", "shuffle")),
    "kernel": LearnerChoice("Kernel perceptron", KernelPerceptron, ()),
}


def menus() -> dict[str, Any]:
    """Return all menus as JSON values, in the order in which the page shows them."""
    return {
        "lectures": [{"name": example.name, "title": example.title} for example in EXAMPLES.values()],
        "sets": DATA_SETS,
        "learners": {
            name: {"title": learner.title, "rules": learner.rules, "orders": learner.orders}
            for name, learner in LEARNERS.items()
        },
        "rules": {
            rule.name: {"title": rule.title, "sentence": rule.sentence, "asks": rule.asks, "has_C": rule.has_C}
            for rule in RULES.values()
        },
        "orders": ORDERS,
        "two_class_ties": TWO_CLASS_TIES,
        "multi_class_ties": MULTI_CLASS_TIES,
        "maps": MAPS,
        "kernels": KERNELS,
    }
