"""`predict`: the labels of a collection, piece by piece where the pieces are; the model goes there, the rows stay."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from separatrix.data.errors import DataError
from separatrix.modelfile.model import Model


def predict(model: Any, data: Any) -> Any:
    """Return the predicted labels of a Dask array, data frame or bag as a collection of Dask; of a Spark data frame, as one
    more column, `prediction`. Nothing is computed before it is asked for.
    """
    model = model if isinstance(model, Model) else Model(model)
    if hasattr(data, "mapInArrow"):
        return _on_spark(model, data)
    if not hasattr(data, "__dask_graph__"):
        raise DataError(f"{type(data).__name__} is no collection of Dask or Spark: use model.predict, or separatrix predict")
    return _on_dask(model, data)


def _on_dask(model: Model, data: Any) -> Any:
    import dask

    kind = model.estimator.classes_.dtype
    shared = dask.delayed(model)
    if hasattr(data, "map_blocks") and hasattr(data, "chunks"):
        data = data.rechunk({1: -1}) if data.numblocks[1] > 1 else data
        return data.map_blocks(_labels, model=shared, drop_axis=1, dtype=kind)
    if hasattr(data, "divisions"):
        return data.map_partitions(_series, model=shared, meta=("prediction", kind if kind.kind in "biuf" else object))
    return data.map_partitions(_listed, shared)


def _labels(X: Any, model: Model) -> Any:
    return model.predict(X) if len(X) else np.empty(0, model.estimator.classes_.dtype)


def _series(frame: Any, model: Model) -> Any:
    import pandas as pd  # type: ignore[import-untyped]

    kind = model.estimator.classes_.dtype
    return pd.Series(_labels(frame, model), frame.index, kind if kind.kind in "biuf" else object, "prediction")


def _listed(items: Any, model: Model) -> list[Any]:
    import pyarrow as pa

    rows = list(items)
    labels: list[Any] = model.predict(pa.Table.from_pylist(rows)).tolist() if rows else []
    return labels


def _on_spark(model: Model, data: Any) -> Any:
    from pyspark.sql.types import StructField, StructType, _infer_type

    first = model.estimator.classes_[:1].tolist()[0]
    schema = StructType([*data.schema.fields, StructField("prediction", _infer_type(first))])
    return data.mapInArrow(_Predicting(data.sparkSession.sparkContext.broadcast(model)), schema)


class _Predicting:
    """Adds a column to the batches of a partition."""

    def __init__(self, model: Any) -> None:
        self.model = model

    def __call__(self, batches: Iterator[Any]) -> Iterator[Any]:
        import pyarrow as pa

        for batch in batches:
            labels = self.model.value.predict(batch) if batch.num_rows else []
            yield batch.append_column("prediction", pa.array(np.asarray(labels).tolist()))
