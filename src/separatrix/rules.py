"""When a presentation is a mistake and how large the correction is (L1 2 and 5, L2 4–6, L4 2, L5 2–3).

The kernels read plain integers; this file gives them their names. A rule is one entry in `RULES`, one branch in
`kernels/passes.py` and one function in `reference.py`.
"""

from typing import Final

RULES: Final = {"perceptron": 0}

TIE_IS_MISTAKE: Final = 0
TIE_IS_PLUS: Final = 1
TIE_IS_FIRST: Final = 2

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
