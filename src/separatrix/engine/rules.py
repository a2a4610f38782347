"""When a presentation is a mistake and how large the correction is (L1 2 and 5, L2 4–6, L4 2, L5 2–3).

The kernels read plain integers; this file gives them their names. A rule is one entry in `RULES`, one branch in
`kernels/passes.py` and one in `reference.py`. With the lead m = y·s (K classes: the true class's score less its rival's),
the hinge loss ℓ = max(0, 1 − m) and q = ‖x̃‖² (K classes: 2‖x̃‖²):

    perceptron   a mistake when m ≤ 0, or as the tie says   correction 1
    margin       when m ≤ `margin`                          1
    pa           when ℓ > 0                                 ℓ/q
    pa1          when ℓ > 0                                 min(C, ℓ/q)
    pa2          when ℓ > 0                                 ℓ/(q + 1/2C)
    arow         when ℓ > 0                                 ℓ/(v + 1/C) of Σx̃, where v = x̃ᵀΣx̃; Σ shrinks by Σx̃x̃ᵀΣ/(v + 1/C)

pa, pa1 and pa2 are Crammer and others' passive-aggressive rules (2006); arow is Crammer, Kulesza and Dredze's (2009), with a
variance for each weight, or with the whole matrix Σ (`"arow-full"`). An example of zero length corrects nothing, so it is no
mistake to the rules that divide by its length.

Where examples have weights, a weight multiplies the correction of the first two rules, and C in the rules that have one:
there it is the weight of the loss. "pa", which allows no loss, takes a weight below 1 as the part of the way to go.
"""

from typing import Final, NamedTuple

from separatrix.kernels.codes import (
    AROW,
    AROW_FULL,
    MARGIN,
    PA,
    PA1,
    PA2,
    PERCEPTRON,
    TIE_IS_FIRST,
    TIE_IS_MISTAKE,
    TIE_IS_PLUS,
)

RULES: Final = {
    "perceptron": PERCEPTRON,
    "margin": MARGIN,
    "pa": PA,
    "pa1": PA1,
    "pa2": PA2,
    "arow": AROW,
    "arow-full": AROW_FULL,
}

WITH_C: Final = ("pa1", "pa2", "arow", "arow-full")
"""The rules that have a C."""


class Rule(NamedTuple):
    """A rule with its settings."""

    name: str = "perceptron"
    margin: float = 0.0
    C: float = 1.0

    @property
    def code(self) -> int:
        """The kernels' code."""
        return RULES[self.name]

    @property
    def spread(self) -> str:
        """What the rule keeps about how sure the weights are: nothing, a "diagonal" of variances, or the "full" matrix."""
        return {"arow": "diagonal", "arow-full": "full"}.get(self.name, "")


TIES: Final = {"mistake": TIE_IS_MISTAKE, "+1": TIE_IS_PLUS, "-1": TIE_IS_FIRST, "first": TIE_IS_FIRST}
"""What a score of 0, or a tie for the highest score, means.

`"mistake"`: wrong whatever the label (L4). `"+1"`: the second of two classes (L1, L5). `"-1"`, which is `"first"`: the
class that sorts first (L2); for K classes the first of the tied ones, as argmax takes it.
"""


def tie_code(tie: str, n_classes: int, multi_class: str) -> int:
    """Return the kernels' code for `tie`, refusing a meaning that K > 2 joint classes cannot have."""
    if tie == "+1" and n_classes > 2 and multi_class == "joint":
        raise ValueError(
            f'tie="+1" says what a score of 0 means for two classes, but there are {n_classes}; '
            'use tie="mistake" or tie="first", or multi_class="ovr"'
        )
    return TIES[tie]
