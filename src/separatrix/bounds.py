"""The mistake bounds under their public name; `separatrix.analysis.bounds` has the code."""

from separatrix.analysis.bounds import (
    Bound,
    Bounds,
    effective_mistakes,
    freund_schapire_bound,
    generalisation_bound,
    joint_bound,
    margin_rule_bound,
    mixing_bound,
    pa1_bound,
    pa2_bound,
    passive_aggressive_bound,
    perceptron_bound,
)

__all__ = [
    "Bound",
    "Bounds",
    "effective_mistakes",
    "freund_schapire_bound",
    "generalisation_bound",
    "joint_bound",
    "margin_rule_bound",
    "mixing_bound",
    "pa1_bound",
    "pa2_bound",
    "passive_aggressive_bound",
    "perceptron_bound",
]
