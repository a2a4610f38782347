"""Dask: a real cluster of two worker processes gives the bits of one process, from files and from every collection."""

import json
import os
import signal
import subprocess
import sys
import threading
import time
import types
from contextlib import contextmanager, suppress
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
from distributed import Client

from separatrix import AveragedPerceptron, Perceptron, SequencePerceptron, TableFeatures
from separatrix.cluster import fit, predict
from separatrix.cluster.dask import Dask
from separatrix.cluster.dealing import UnlikeShardsWarning
from separatrix.data.errors import DataError
from support.kill_workers import losing_workers, same, whole_numbers
from support.tagged_shards import same_weights, written_shards

pytestmark = [pytest.mark.slow, pytest.mark.cluster]


class Cluster:
    """A scheduler and workers, each a process of its own, as they are on a real cluster: any of them may be killed.

    Not a LocalCluster: where a worker dies as it registers, the books of one are wrong, and it cannot be closed any more.
    """

    def __init__(self, folder):
        self.folder, self.processes = folder, []

    def start(self):
        folder = self.folder
        self.begin("scheduler", "--port", "0", "--host", "127.0.0.1", "--no-dashboard")
        deadline = time.monotonic() + 60
        while True:
            with suppress(FileNotFoundError, ValueError):
                self.address = json.loads((folder / "cluster.json").read_text())["address"]
                return
            assert time.monotonic() < deadline, "the scheduler does not start"
            time.sleep(0.05)

    def begin(self, what, *options):
        here = [str(Path(__file__).parents[1]), *filter(None, [os.environ.get("PYTHONPATH")])]
        settings = {"PYTHONPATH": os.pathsep.join(here), "DASK_DISTRIBUTED__SCHEDULER__ALLOWED_FAILURES": "20"}
        command = [sys.executable, "-m", f"distributed.cli.dask_{what}", "--scheduler-file", "cluster.json", *options]
        with open(self.folder / f"{what}.log", "ab") as log:
            self.processes.append(
                subprocess.Popen(
                    command, cwd=self.folder, env=os.environ | settings, stdout=log, stderr=log, start_new_session=True
                )
            )

    def workers(self, n):
        self.begin(
            "worker", "--nworkers", str(n), "--nthreads", "1", "--no-dashboard", "--local-directory", str(self.folder)
        )

    def close(self):
        for process in reversed(self.processes):
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()


@contextmanager
def cluster(folder, workers):
    made = Cluster(folder)
    try:
        made.start()
        if workers:
            made.workers(workers)
        with Client(made.address, set_as_default=False) as client:
            if workers:
                client.wait_for_workers(workers, timeout=60)
            yield made, client
    finally:
        made.close()


@pytest.fixture(scope="module")
def client(tmp_path_factory):
    with cluster(tmp_path_factory.mktemp("dask"), 2) as (_, client), client.as_current():
        yield client


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


def test_rows_of_sorted_files_are_dealt_anew_and_those_of_a_collection_give_a_warning(client, tmp_path):
    pattern, (X, y) = whole_numbers(tmp_path, shards=5, by_class=True), examples()
    model = fit(learner(), pattern, engine=client)
    assert model.facts["dealt"] and same(model, fit(learner(), pattern))
    order = np.argsort(y)
    with pytest.warns(UnlikeShardsWarning, match="shuffle the rows before they are divided into shards$"):
        learner().fit(da.from_array(X[order], chunks=(150, 12)), da.from_array(y[order], chunks=150))


def test_ten_killed_workers_change_nothing(client, tmp_path):
    pattern, died = whole_numbers(tmp_path, shards=8), tmp_path / "died"
    died.mkdir()
    model = fit(learner(), pattern, engine=losing_workers(Dask(client), died, 10))
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
    (home := tmp_path / "cluster").mkdir()
    with cluster(home, 1) as (_, bare):
        bare.run(_by_value(_hide))
        with pytest.raises(DataError, match="separatrix is not installed on the workers"):
            fit(learner(), pattern, engine=bare)


def _by_value(function):
    """Return the function so that it is pickled with its code: the workers cannot import the tests."""
    made = types.FunctionType(function.__code__, {"__name__": "__main__", "__builtins__": __builtins__}, function.__name__)
    made.__module__ = "__main__"
    return made


def test_a_cluster_without_workers_is_waited_for(tmp_path, monkeypatch):
    X, y = examples(40, 3)
    with cluster(tmp_path, 0) as (processes, client):
        monkeypatch.setattr("separatrix.cluster.dask.PATIENCE", 1)
        with pytest.raises(DataError, match="the cluster has had no worker for 1 seconds: start workers"):
            fit(learner(), [(X, y)], engine=client)
        monkeypatch.setattr("separatrix.cluster.dask.PATIENCE", 60)
        coming = threading.Timer(3, processes.workers, [1])  # later than scatter would wait
        coming.start()
        try:
            model = fit(learner(), [(X, y)], engine=client)
        finally:
            coming.cancel()
            coming.join()
    assert same(model, fit(learner(), [(X, y)]))


def test_a_tagger_learns_from_files_to_the_same_bits(client, tmp_path):
    pattern = written_shards(tmp_path)
    here, there = (fit(SequencePerceptron(random_state=0), pattern, engine=engine).estimator for engine in (None, client))
    assert same_weights(here, there) and "B-person" in there.classes_
