"""Spark: a real session that retries lost tasks gives the bits of one process, from files and from data frames."""

import os
import shutil
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

if os.environ.get("SEPARATRIX_CLUSTER") != "required":
    pytest.importorskip("pyspark", reason="pyspark is not installed")
    if shutil.which("java") is None:
        pytest.skip("there is no Java", allow_module_level=True)
from pyspark.sql import SparkSession

from separatrix import AveragedPerceptron, SequencePerceptron
from separatrix.cluster import fit, predict
from separatrix.cluster.spark import Spark, shards_of_a_task
from separatrix.data.errors import DataError
from support.kill_workers import losing_workers, same, whole_numbers
from support.tagged_shards import same_weights, written_shards

pytestmark = [
    pytest.mark.slow,
    pytest.mark.cluster,
    pytest.mark.filterwarnings(
        "ignore:PySpark does not yet fully support pandas:FutureWarning", "ignore:unclosed <socket:ResourceWarning"
    ),
]


@pytest.fixture(scope="module")
def session(tmp_path_factory):
    before = os.environ.get("PYTHONPATH", "")
    os.environ["PYTHONPATH"] = os.pathsep.join([str(Path(__file__).parents[1]), before])
    maker = SparkSession.builder.master("local[2,8]").config("spark.ui.enabled", "false")
    maker = maker.config("spark.ui.showConsoleProgress", "false").config("spark.driver.host", "127.0.0.1")
    session = maker.config("spark.local.dir", str(tmp_path_factory.mktemp("spark"))).getOrCreate()
    session.sparkContext.setLogLevel("OFF")
    yield session
    session.stop()
    os.environ["PYTHONPATH"] = before


def learner():
    return AveragedPerceptron(max_iter=3, random_state=3)


def test_files_give_the_same_bits_also_when_ten_workers_are_killed(session, tmp_path):
    pattern, died = whole_numbers(tmp_path, shards=11, n=22_000, K=3), tmp_path / "died"
    died.mkdir()
    engine, done = losing_workers(Spark(session), died, 10), []
    model = fit(learner(), pattern, engine=engine, working=lambda doing, *news: done.append((doing, *news)))
    assert len(list(died.iterdir())) == 10 and ("pass 2", 11, 11) in done
    assert same(model, fit(learner(), pattern))
    data = sum(path.stat().st_size for path in tmp_path.glob("*.npz"))
    assert engine.sent + engine.received < 3 * 6 * 21 * 3 * 8 + 40_000 < data / 10


@pytest.mark.parametrize(("shards", "cores", "together"), [(1, 2, 1), (7, 2, 1), (8, 2, 2), (16, 2, 4), (1000, 300, 1)])
def test_a_task_takes_several_shards_where_each_core_has_more_than_two_tasks(shards, cores, together):
    assert shards_of_a_task(shards, cores) == together
    assert together == 1 or shards // together >= 2 * cores


def test_many_files_are_few_tasks_and_the_same_bits(session, tmp_path):
    pattern, engine, done = whole_numbers(tmp_path, shards=19, K=3), Spark(session), []
    model = fit(learner(), pattern, engine=engine, working=lambda doing, *news: done.append((doing, *news)))
    assert same(model, fit(learner(), pattern)) and ("pass 2", 19, 19) in done
    assert engine._leaves(None, list(range(19)), shards_of_a_task(19, 2)).getNumPartitions() == 5


def test_rows_of_sorted_files_are_dealt_anew(session, tmp_path):
    pattern = whole_numbers(tmp_path, shards=4, by_class=True)
    model = fit(learner(), pattern, engine=session)
    assert model.facts["dealt"] and same(model, fit(learner(), pattern))


def test_a_data_frame_is_fitted_and_predicted_by_partitions(session):
    rng = np.random.default_rng(0)
    numbers = rng.integers(-3, 4, (900, 3)).astype(float)
    kind = np.where(numbers @ [1.0, -2.0, 0.5] > 0, "yes", "no")
    table = pa.table({"a": numbers[:, 0], "b": numbers[:, 1], "town": [f"t{k:g}" for k in numbers[:, 2]], "kind": kind})
    frame = session.createDataFrame(table).repartitionByRange(5, "a").sortWithinPartitions("a", "b", "town").cache()
    parts = [pa.Table.from_pylist([row.asDict() for row in part]) for part in frame.rdd.glom().collect()]
    filled = [part if part.num_rows else table.slice(0, 0) for part in parts]
    model = fit(learner(), frame, label="kind", engine=session)
    assert same(model, fit(learner(), filled, label="kind")) and model.estimator.shard_mistakes_.shape[1] == 5
    found = predict(model, frame).toArrow()
    assert found.num_rows == 900 and found["prediction"].to_pylist() == model.predict(found).tolist()
    with pytest.raises(DataError, match="partition 0: there is no column 'species'"):
        fit(learner(), frame, label="species", engine=session)
    with pytest.raises(DataError, match="name it with label="):
        fit(learner(), frame, frame, engine=session)


def test_a_poison_shard_is_named_and_not_tried_again(session, tmp_path):
    pattern = whole_numbers(tmp_path, shards=3)
    with np.load(tmp_path / "part-01.npz") as held:
        X, y = held["X"], held["y"]
    X[7, 2] = np.inf
    np.savez(tmp_path / "part-01.npz", X=X, y=y)
    with pytest.raises(DataError, match=r"part-01.npz.*(row|example) [78]"):
        fit(learner(), pattern, engine=session)


def test_workers_without_the_package_say_so(session, tmp_path):
    engine = Spark(session)
    engine.add_shards(whole_numbers(tmp_path, shards=2))
    engine._leaves = lambda work, numbers, together: session.sparkContext.parallelize([0, 1], 2).map(
        eval("lambda place: (place, __import__('separatrix_that_is_not_there'))")
    )
    with pytest.raises(DataError, match="separatrix is not installed on the workers"):
        engine.reduce(len, [0, 1])


def test_a_tagger_learns_from_files_to_the_same_bits(session, tmp_path):
    pattern = written_shards(tmp_path)
    here, there = (fit(SequencePerceptron(random_state=0), pattern, engine=engine).estimator for engine in (None, session))
    assert same_weights(here, there) and "B-person" in there.classes_
