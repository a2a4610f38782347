"""`predict` labels a collection piece by piece on the workers: the model is sent to them, and the rows stay there."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from separatrix.data.errors import DataError
from separatrix.engine.protocols import Classifier
from separatrix.modelfile.model import Model


def predict(model: Classifier, data: Any) -> Any:
    """Return the predicted labels of a Dask array, data frame or bag as a Dask collection; for a Spark data frame, return it
    with one more column, `prediction`. The result is lazy: nothing is computed yet.
    """
    model = model if isinstance(model, Model) else Model(model)
    if hasattr(data, "mapInArrow"):
        return _predict_spark(model, data)
    if not hasattr(data, "__dask_graph__"):
        raise DataError(f"{type(data).__name__} is not a Dask or Spark collection: use model.predict")
    return _predict_dask(model, data)


def _predict_dask(model: Model, data: Any) -> Any:
    import dask

    dtype = model.estimator.classes_.dtype
    shared = dask.delayed(model)
    if hasattr(data, "map_blocks") and hasattr(data, "chunks"):
        data = data.rechunk({1: -1}) if data.numblocks[1] > 1 else data
        return data.map_blocks(_labels, model=shared, drop_axis=1, dtype=dtype)
    if hasattr(data, "divisions"):
        return data.map_partitions(_series, model=shared, meta=("prediction", _series_dtype(dtype)))
    return data.map_partitions(_list_of_labels, shared)


def _labels(X: Any, model: Model) -> Any:
    return model.predict(X) if len(X) else np.empty(0, model.estimator.classes_.dtype)


def _series(frame: Any, model: Model) -> Any:
    import pandas as pd  # type: ignore[import-untyped]

    dtype = _series_dtype(model.estimator.classes_.dtype)
    return pd.Series(_labels(frame, model), frame.index, dtype, "prediction")


def _series_dtype(dtype: Any) -> Any:
    return dtype if dtype.kind in "biuf" else object


def _list_of_labels(items: Any, model: Model) -> list[Any]:
    import pyarrow as pa

    rows = list(items)
    labels: list[Any] = model.predict(pa.Table.from_pylist(rows)).tolist() if rows else []
    return labels


def _predict_spark(model: Model, data: Any) -> Any:
    from pyspark.sql import types

    kinds = {bool: types.BooleanType, int: types.LongType, float: types.DoubleType, str: types.StringType}
    kind = kinds[type(model.estimator.classes_[:1].tolist()[0])]
    schema = types.StructType([*data.schema.fields, types.StructField("prediction", kind())])
    return data.mapInArrow(_AddPrediction(data.sparkSession.sparkContext.broadcast(model)), schema)


class _AddPrediction:
    """Adds the column `prediction` to the batches of a partition."""

    def __init__(self, broadcast: Any) -> None:
        self.broadcast = broadcast

    def __call__(self, batches: Iterator[Any]) -> Iterator[Any]:
        import pyarrow as pa

        for batch in batches:
            labels = self.broadcast.value.predict(batch) if batch.num_rows else []
            yield batch.append_column("prediction", pa.array(np.asarray(labels).tolist()))
