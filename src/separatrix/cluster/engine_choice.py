"""The engine that a name, a client or a session stands for."""

from __future__ import annotations

from typing import Any

from separatrix.cluster.engines import Engine
from separatrix.cluster.local import Local
from separatrix.data.errors import DataError


def engine_of(engine: Any) -> Engine:
    """Return the engine of None, "local:N", "dask://HOST:PORT", "spark://HOST:PORT", a Dask client or a Spark session."""
    if isinstance(engine, Engine):
        return engine
    if engine is None:
        return Engine()
    package = type(engine).__module__.partition(".")[0]
    scheme, _, rest = engine.partition(":") if isinstance(engine, str) else (package, "", "")
    if scheme == "local" and rest.isdigit() and int(rest):
        return Local(int(rest))
    try:
        if scheme in ("dask", "distributed"):
            from separatrix.cluster.dask import Dask

            return Dask(f"tcp:{rest}" if rest else engine)
        if scheme in ("spark", "pyspark"):
            from separatrix.cluster.spark import Spark

            return Spark(engine)
    except ModuleNotFoundError as error:
        raise DataError(f"engine {engine!r} needs the package {error.name}: pip install 'separatrix[{scheme}]'") from None
    supported = "local:4, dask://HOST:PORT, spark://HOST:PORT, a dask.distributed Client or a SparkSession"
    raise DataError(f"engine {engine!r} is not known; supported are {supported}")
