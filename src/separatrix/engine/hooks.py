"""What a lower room asks of a higher one. Each question is named here with the function that answers it.

Nothing lower imports anything higher, yet a learner may train until a proof, and `fit` accepts a collection that lives on a
cluster. Such a function is looked up by its name in this table and imported when it is first called. There is no other
import from a lower room to a higher one.
"""

from collections.abc import Callable
from functools import cache
from importlib import import_module
from typing import Any, Final

HOOKS: Final = {
    "prove": "separatrix.proofs.certificate:checked_proof",
    "importances": "separatrix.analysis.importances:importances",
    "report_bounds": "separatrix.analysis.bounds:report",
    "fit_on_cluster": "separatrix.cluster.fitting:fit_here",
    "predict_on_cluster": "separatrix.cluster.predicting:predict",
    "fit_on_shards": "separatrix.cluster.fitting:fit",
    "bounds_on_shards": "separatrix.cluster.mistake_bound:bounds",
    "unlike_shards_warning": "separatrix.cluster.dealing:UnlikeShardsWarning",
    "fit_model": "separatrix.training.recipe:fit_model",
    "default_learner": "separatrix.training.parts:default_learner",
    "default_features": "separatrix.training.parts:default_features",
}


@cache
def hook(name: str) -> Callable[..., Any]:
    """Return the function that answers a question of a lower room, importing its module."""
    module, _, function = HOOKS[name].partition(":")
    answer: Callable[..., Any] = getattr(import_module(module), function)
    return answer
