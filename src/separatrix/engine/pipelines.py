"""What a model is made of: a classifier, and the featurizer before it, whoever holds the two together."""

from __future__ import annotations

from typing import Any


def parts_of(model: Any) -> tuple[Any, Any]:
    """Return the classifier and the featurizer, or None, of a `Model`, of scikit-learn's `Pipeline`, or of a classifier.

    A pipeline must be one of our featurizers, or none, and one of our classifiers; anything else in it raises a ValueError
    that names the step.
    """
    if not (hasattr(model, "steps") and hasattr(model, "named_steps")):
        return getattr(model, "estimator", model), getattr(model, "features", None)
    steps = [(name, step) for name, step in model.steps if step is not None and not isinstance(step, str)]
    if not steps:
        raise ValueError("the pipeline has no step")
    *before, (last, classifier) = steps
    whole = hasattr(classifier, "estimator") and hasattr(classifier, "features")  # a `Model`
    if not (whole or hasattr(classifier, "pack")):
        raise ValueError(f"step {last!r} of the pipeline is a {_name(classifier)}, which is none of our classifiers")
    for name, step in before:
        if whole or len(before) > 1 or not hasattr(step, "get_state"):
            wanted = "TextFeatures or TableFeatures, and then a classifier"
            raise ValueError(f"step {name!r} of the pipeline is a {_name(step)}: a model is {wanted}, and nothing else")
    if whole:
        return parts_of(classifier)
    return classifier, before[0][1] if before else None


def _name(step: object) -> str:
    return type(step).__name__
