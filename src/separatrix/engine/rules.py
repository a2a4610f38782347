"""When a presentation is a mistake and how large the correction is (L1 2 and 5, L2 4–6, L4 2, L5 2–3).

A new rule takes four edits: an entry in `RULES`, a branch in `kernels/learning/passes.py`, a function in `reference.py` and
a line in the lab's `engine/machine.js`. With the lead m = y·s (K classes: the true class's score
less its rival's), the hinge loss ℓ = max(0, 1 − m) and q = ‖x̃‖² (K classes: 2‖x̃‖²):

    perceptron   a mistake when m ≤ 0, or as the tie says   correction 1
    margin       when m ≤ `margin`                          1
    pa           when ℓ > 0                                 ℓ/q
    pa1          when ℓ > 0                                 min(C, ℓ/q)
    pa2          when ℓ > 0                                 ℓ/(q + 1/2C)
    arow         when ℓ > 0                                 ℓ/(v + 1/C) of Σx̃, where v = x̃ᵀΣx̃; Σ shrinks by Σx̃x̃ᵀΣ/(v + 1/C)

pa, pa1 and pa2 are Crammer and others' passive-aggressive rules (2006); arow is Crammer, Kulesza and Dredze's (2009), with a
variance for each weight, or with the whole matrix Σ (`"arow-full"`). An example of zero length corrects nothing, so it is no
mistake to the rules that divide by its length. The lead is the one computed in float64: where it is exactly `margin` the
example is a mistake to the margin rule, and where it is exactly 1 it is none to the rules of the loss, in every path (dense,
sparse, stream, replay). A lead that would be such a tie in exact arithmetic may be rounded to either side.

A weight multiplies the correction, and in arow the shrinkage of Σ too. An example of weight 0 is not presented. In pa, pa2
and arow nothing caps the correction, and one of more than twice ℓ/q would carry the lead farther beyond 1 than it was below,
again and again: there a weight counts relative to the heaviest presented so far, where that is above 1, so that the heaviest
examples are corrected as without weights and the others less.
"""

from collections.abc import Iterable
from typing import Final, NamedTuple

from separatrix.kernels import codes


class RuleEntry(NamedTuple):
    """What the package knows of a rule: help texts, menus, bounds and kernels read it here."""

    name: str
    title: str
    """A short name for menus and legends."""
    sentence: str
    """What it does, for help texts."""
    asks: str = "loss"
    """What lead is enough: one of the right "sign", one above the setting "margin", or one of at least 1, without "loss"."""
    has_C: bool = False  # noqa: N815
    spread: str = ""
    """What it keeps of Σ, how sure the weights are: nothing, a "diagonal" of variances, or the "full" matrix."""
    relative: bool = False
    """Whether a weight counts relative to the heaviest so far: nothing caps the correction."""
    theorem: str = ""
    """Which mistake bound of `analysis/bounds.py` speaks of it, if any."""

    @property
    def code(self) -> int:
        """The integer by which kernels know it."""
        return codes.rule_code(self.name)

    @property
    def divides(self) -> bool:
        """Whether it divides by the length of the example, so that an example of zero length is no mistake."""
        return self.asks == "loss"

    @property
    def ends(self) -> bool:
        """Whether separable data are learned in finitely many updates; the other rules may only approach a lead of 1."""
        return self.asks != "loss"


def _by_name(*entries: RuleEntry) -> dict[str, RuleEntry]:
    return {entry.name: entry for entry in entries}


RULES: Final = _by_name(
    RuleEntry(
        "perceptron",
        "perceptron",
        "Add the example whenever the sign of its score is wrong.",
        asks="sign",
        theorem="perceptron",
    ),
    RuleEntry(
        "margin",
        "with a margin",
        "Add the example whenever its lead is not above the margin.",
        asks="margin",
        theorem="margin",
    ),
    RuleEntry(
        "pa",
        "passive-aggressive",
        "Add as much of the example as brings its lead to 1.",
        relative=True,
        theorem="pa",
    ),
    RuleEntry(
        "pa1",
        "PA-I",
        "Add as much of the example as brings its lead to 1, but at most C times the example.",
        has_C=True,
        theorem="pa1",
    ),
    RuleEntry(
        "pa2",
        "PA-II",
        "Move towards a lead of 1, and stop the sooner the smaller C is.",
        has_C=True,
        relative=True,
        theorem="pa2",
    ),
    RuleEntry(
        "arow",
        "AROW",
        "Change uncertain weights most, with a variance for each weight; C is 1/r.",
        has_C=True,
        spread="diagonal",
        relative=True,
    ),
    RuleEntry(
        "arow-full",
        "AROW, whole Σ",
        "AROW with the whole covariance matrix, for few features.",
        has_C=True,
        spread="full",
        relative=True,
    ),
)
"""The rules, by name."""


class Rule(NamedTuple):
    """A rule with its settings."""

    name: str = "perceptron"
    margin: float = 0.0
    C: float = 1.0

    @property
    def entry(self) -> RuleEntry:
        """What the table says of the rule."""
        return RULES[self.name]

    @property
    def code(self) -> int:
        """The kernels' code."""
        return RULES[self.name].code

    @property
    def spread(self) -> str:
        """What the rule keeps of Σ: nothing, a "diagonal" of variances, or the "full" matrix."""
        return RULES[self.name].spread


class Tie(NamedTuple):
    """A meaning of a score of 0, or of a tie for the highest score."""

    code: int
    sentence: str


TIES: Final = {
    "mistake": Tie(codes.TIE_IS_MISTAKE, "A score of 0 is wrong whatever the label (L4)."),
    "+1": Tie(codes.TIE_IS_PLUS, "A score of 0 predicts the second of two classes (L1, L5)."),
    "-1": Tie(codes.TIE_IS_FIRST, 'The same as "first" (L2).'),
    "first": Tie(codes.TIE_IS_FIRST, "A tie predicts the class that sorts first; of several, the first of those tied."),
}
"""What a score of 0, or a tie for the highest score, means."""
ORDERS: Final = ("shuffle", "permutation", "cyclic", "random")
"""In which order a pass presents the examples (`orders.py`)."""
LEARNERS: Final = {"averaged": "", "last": "", "voted": "all, by vote", "pocket": "fewest training mistakes"}
"""Which weights predict."""
STREAMING: Final = ("averaged", "last")
"""The learners that can train block by block, and so can resume from a checkpoint."""
MULTI_CLASS: Final = {"joint": "", "ovr": "each against the rest"}
"""How several classes are learned."""
MIXES: Final = {"features": "each over the shards that have it", "uniform": "", "mistakes": "by the shards' mistakes"}
"""How the weights of several shards are averaged (`cluster/mixing.py`)."""


def in_words(names: Iterable[str]) -> str:
    """Return "a, b or c" for help texts and messages."""
    *others, last = names
    return f"{', '.join(others)} or {last}" if others else last


def tie_code(tie: str, n_classes: int, multi_class: str) -> int:
    """Return the kernels' code for `tie`, refusing a meaning that K > 2 joint classes cannot have."""
    if tie == "+1" and n_classes > 2 and multi_class == "joint":
        raise ValueError(
            f'tie="+1" says what a score of 0 means for two classes, but there are {n_classes}; '
            'use tie="mistake" or tie="first", or multi_class="ovr"'
        )
    return TIES[tie].code
