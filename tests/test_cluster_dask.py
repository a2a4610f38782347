"""Dask: a real cluster of two worker processes gives the bits of one process, from files and from every collection."""

import os
import time
import types
from pathlib import Path

import numpy as np
import pytest

if os.environ.get("SEPARATRIX_CLUSTER") != "required":
    pytest.importorskip("distributed", reason="dask is not installed")
import dask
import dask.array as da
import dask.bag as db
import dask.dataframe as dd
import pandas as pd
from distributed import Client, LocalCluster

from faults import deadly, same, whole_numbers
from separatrix import AveragedPerceptron, Perceptron, TableFeatures
from separatrix.cluster import fit, predict
from separatrix.cluster.dask import Dask
from separatrix.data.errors import DataError


@pytest.fixture(scope="module")
def client(tmp_path_factory):
    before = os.environ.get("PYTHONPATH", "")
    os.environ["PYTHONPATH"] = os.pathsep.join([str(Path(__file__).parent), before])
    settings = {"temporary-directory": str(tmp_path_factory.mktemp("dask")), "distributed.scheduler.allowed-failures": 20}
    try:
        with dask.config.set(settings), LocalCluster(2, threads_per_worker=1, dashboard_address=":0") as cluster:
            with Client(cluster) as client:
                yield client
    finally:
        os.environ["PYTHONPATH"] = before


def learner():
    return AveragedPerceptron(max_iter=4, random_state=3)


def examples(n=600, d=12):
    rng = np.random.default_rng(0)
    X = rng.integers(-3, 4, (n, d)).astype(float)
    return X, np.where(X @ rng.normal(size=d) > 0, "yes", "no")


def test_files_give_the_same_bits_and_the_driver_sees_only_weights(client, tmp_path):
    pattern = whole_numbers(tmp_path, shards=11, n=22_000, K=3)
    engine = Dask(client)
    done = []
    model = fit(learner(), pattern, engine=engine, working=lambda doing, *news: done.append((doing, *news)))
    assert same(model, fit(learner(), pattern)) and ("pass 2", 11, 11) in done
    data = sum(path.stat().st_size for path in tmp_path.iterdir())
    assert engine.sent + engine.received < 4 * 6 * 21 * 3 * 8 + 40_000 < data / 10
    kept = client.run(lambda dask_worker: list(Path(dask_worker.local_directory).glob("separatrix-*")))
    assert not any(kept.values())
    engine.close()


def test_ten_killed_workers_change_nothing(client, tmp_path):
    pattern, died = whole_numbers(tmp_path, shards=8), tmp_path / "died"
    died.mkdir()
    model = fit(learner(), pattern, engine=deadly(Dask(client), died, 10))
    assert len(list(died.iterdir())) == 10 and same(model, fit(learner(), pattern))


def test_arrays_are_fitted_and_predicted_where_they_lie(client):
    X, y = examples()
    reference = fit(learner(), [(X[at : at + 100], y[at : at + 100]) for at in range(0, 600, 100)]).estimator
    array, labels = da.from_array(X, chunks=(100, 5)), da.from_array(y, chunks=250)
    model = learner().fit(array, labels)
    assert np.array_equal(model.coef_, reference.coef_) and model.classes_.dtype == reference.classes_.dtype
    assert model.shard_mistakes_.shape == (4, 6)
    found = model.predict(array)
    assert hasattr(found, "dask") and np.array_equal(found.compute(), model.predict(X))
    with pytest.raises(ValueError, match="without sample_weight"):
        learner().fit(array, labels, sample_weight=np.ones(600))
    pieces = [dask.delayed((X[at : at + 100], y[at : at + 100])) for at in range(0, 600, 100)]
    assert np.array_equal(fit(learner(), pieces, engine=client).estimator.coef_, reference.coef_)


def test_frames_and_bags_of_mixed_columns(client):
    X, y = examples()
    frame = pd.DataFrame({"a": X[:, 0], "town": [f"t{k:g}" for k in X[:, 1]], "kind": y})
    parts = [frame[at : at + 150] for at in range(0, 600, 150)]
    reference = fit(learner(), parts, label="kind")
    model = fit(learner(), dd.from_pandas(frame, npartitions=4), label="kind", engine=client, features=TableFeatures())
    assert same(model, reference)
    found = predict(model, dd.from_pandas(frame, npartitions=3)).compute()
    assert found.tolist() == model.predict(frame).tolist() and found.name == "prediction"
    bag = db.from_sequence(frame.to_dict("records"), npartitions=4)
    in_bags = fit(learner(), bag, label="kind", engine=client)
    assert same(in_bags, reference) and predict(in_bags, bag).compute() == found.tolist()
    numbers = dd.from_pandas(pd.DataFrame(X, columns=[f"x{j}" for j in range(12)]), npartitions=4)
    fitted = Perceptron(max_iter=2, random_state=0).fit(numbers, dd.from_pandas(pd.Series(y), npartitions=4))
    assert fitted.feature_names_in_.tolist() == [f"x{j}" for j in range(12)] and fitted.score(numbers.compute(), y) > 0.8


def _hide():
    import sys

    class Absent:
        @staticmethod
        def find_spec(name, path=None, target=None):
            if name.partition(".")[0] == "separatrix":
                raise ModuleNotFoundError("No module named 'separatrix'")

    for name in [name for name in sys.modules if name.partition(".")[0] == "separatrix"]:
        del sys.modules[name]
    sys.meta_path.insert(0, Absent)


def test_workers_without_the_package_say_so(tmp_path):
    pattern = whole_numbers(tmp_path, shards=2)
    with (
        dask.config.set({"temporary-directory": str(tmp_path)}),
        LocalCluster(1, threads_per_worker=1, dashboard_address=":0") as cluster,
        Client(cluster, set_as_default=False) as bare,
    ):
        bare.run(_by_value(_hide))
        with pytest.raises(DataError, match="separatrix is not installed on the workers"):
            fit(learner(), pattern, engine=bare)


def _by_value(function):
    """Return the function so that it is pickled with its code: the workers cannot import the tests."""
    made = types.FunctionType(function.__code__, {"__name__": "__main__", "__builtins__": __builtins__}, function.__name__)
    made.__module__ = "__main__"
    return made


def test_a_cluster_without_workers_is_waited_for(monkeypatch):
    X, y = examples(40, 3)
    with LocalCluster(1, dashboard_address=":0") as cluster, Client(cluster) as client:
        cluster.scale(0)
        while client.scheduler_info()["workers"]:
            time.sleep(0.05)
        monkeypatch.setattr("separatrix.cluster.dask.PATIENCE", 1)
        with pytest.raises(DataError, match="the cluster has had no worker for 1 seconds: start some"):
            fit(learner(), [(X, y)], engine=client)
        monkeypatch.setattr("separatrix.cluster.dask.PATIENCE", 60)
        client.loop.call_later(3, cluster.scale, 1)  # later than scatter would wait
        model = fit(learner(), [(X, y)], engine=client)
    assert same(model, fit(learner(), [(X, y)]))
