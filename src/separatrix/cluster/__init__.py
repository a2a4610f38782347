"""Training and prediction on shards of the data, by processes of this machine, by Dask or by Spark.

    from separatrix.cluster import fit
    model = fit(AveragedPerceptron(rule="pa1"), "part-*.parquet", label="kind", engine="local:4")

An estimator and shards (files, or a collection of the engine) come in; a fitted `Model` goes out, or predictions. `engines`
runs work on shards and adds up the results, `work` is what the workers do, `mixing` is the algorithm on the driver,
`dealing` mends shards of different classes, and `fitting` puts them together. docs/scaling.md says what is sent, what it
costs, and where it stops scaling.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from separatrix.cluster.fitting import fit as fit
    from separatrix.cluster.mistake_bound import bounds as bounds
    from separatrix.cluster.predicting import predict as predict

_HOMES = {"bounds": "mistake_bound", "fit": "fitting", "predict": "predicting"}

__all__ = ["bounds", "fit", "predict"]


def __getattr__(name: str) -> Any:
    """Import a public name when it is first used; workers import this package, but need none of the names."""
    if name not in _HOMES:
        raise AttributeError(f"module 'separatrix.cluster' has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module(f"separatrix.cluster.{_HOMES[name]}"), name)
