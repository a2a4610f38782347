"""Beyond one machine: the same estimators on shards that Dask, Spark or processes of this machine work on.

    from separatrix.cluster import fit
    model = fit(AveragedPerceptron(rule="pa1"), "part-*.parquet", label="kind", engine="local:4")

docs/scaling.md says what travels, what it costs, and where it stops scaling.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from separatrix.cluster.fitting import bounds as bounds
    from separatrix.cluster.fitting import fit as fit
    from separatrix.cluster.predicting import predict as predict

_HOMES = {"bounds": "fitting", "fit": "fitting", "predict": "predicting"}

__all__ = ["bounds", "fit", "predict"]


def __getattr__(name: str) -> Any:
    """Import a public name when it is first used: a worker needs none of them."""
    if name not in _HOMES:
        raise AttributeError(f"module 'separatrix.cluster' has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module(f"separatrix.cluster.{_HOMES[name]}"), name)
