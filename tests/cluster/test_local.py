"""Processes of this machine: the same bits as in process, however many die; tables in shards; the command line."""

import json
import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner

from separatrix import AveragedPerceptron, Perceptron, TableFeatures, TextFeatures, load
from separatrix.cli import app
from separatrix.cluster import fit
from separatrix.cluster.local import MOST_DEATHS, Local
from separatrix.data.errors import DataError
from support.kill_workers import KillsEveryWorker, losing_workers, same, whole_numbers
from support.loaded_modules import ListModules

pytestmark = pytest.mark.cluster

RUNNER = CliRunner()


@pytest.fixture(autouse=True)
def workers_find_the_tests(monkeypatch):
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(Path(__file__).parents[1]), os.environ.get("PYTHONPATH", "")]))


def learner():
    return AveragedPerceptron(max_iter=5, random_state=3)


@pytest.mark.crash
@pytest.mark.slow
def test_processes_give_the_same_bits_also_when_ten_are_killed(tmp_path):
    pattern = whole_numbers(tmp_path, shards=11, K=3)
    reference = fit(learner(), pattern)
    engine, died = Local(2), tmp_path / "died"
    died.mkdir()
    try:
        model = fit(learner(), pattern, engine=losing_workers(engine, died, 10))
    finally:
        engine.close()
    assert len(list(died.iterdir())) == 10 and same(model, reference)
    assert engine.workers == [None, None]


@pytest.mark.crash
def test_a_shard_that_kills_every_worker_is_named(tmp_path):
    whole_numbers(tmp_path, shards=2)
    engine = Local(1)
    engine.add_shards(str(tmp_path / "part-*.npz"))
    with pytest.raises(DataError, match=f"part-01.npz: {MOST_DEATHS} workers died on this shard"):
        engine.reduce(KillsEveryWorker(), [1])
    engine.close()


def messages(n, seed):
    """A table with a number, a category that only some shards know, a text, prices, dates and sets."""
    chance = random.Random(seed)
    words = "see you at noon tomorrow the meeting is in room four please bring your own pen and paper".split()
    rows = []
    for i in range(n):
        spam = chance.random() < 0.4
        text = chance.sample(words, 5) + (["free", "money"] if spam and chance.random() < 0.8 else [])
        rows.append(
            {
                "length": chance.gauss(20, 5) if chance.random() < 0.9 else None,
                "from": f"town {chance.randrange(3) + 3 * (i * 8 // n)}",
                "text": " ".join(chance.sample(text, len(text))) + f" {i}",
                "price": f"${chance.randrange(9000):,}.50" if i % 190 != 50 else "free",
                "day": f"{chance.randrange(12) + 1}/{chance.randrange(28) + 1}/2024",
                "tags": "|".join(chance.sample("abcdefg", chance.randrange(4))),
                "label": "spam" if spam else "ham",
            }
        )
    return pa.Table.from_pylist(rows)


@pytest.fixture(scope="module")
def tables(tmp_path_factory):
    folder, whole = tmp_path_factory.mktemp("tables"), messages(800, 0)
    for s in range(8):
        pq.write_table(whole.slice(100 * s, 100), folder / f"part-{s}.parquet")
        pa.csv.write_csv(whole.slice(100 * s, 100), folder / f"part-{s}.csv")
    pq.write_table(whole, folder / "all.parquet")
    pa.csv.write_csv(messages(300, 1), folder / "test.csv")
    return folder


@pytest.mark.parametrize("numbers", ["bins", "standard", "max-abs"])
@pytest.mark.parametrize("columns", ["hashed", "vocabulary"])
@pytest.mark.parametrize("most", [10_000, 7])
def test_columns_learned_in_shards_are_those_of_the_whole(tables, numbers, columns, most):
    made = [
        TableFeatures(numbers=numbers, max_categories=most, n_hashed=16, text=TextFeatures(columns=columns, n_features=256))
        for _ in range(2)
    ]
    whole = pq.read_table(tables / "all.parquet")
    one = made[0].fit(whole.drop_columns(["label"]))
    model = fit(Perceptron(max_iter=1), str(tables / "part-*.parquet"), label="label", features=made[1])
    assert model.features is made[1] and one.roles_ == made[1].roles_ and one.n_rows_ == made[1].n_rows_ == 800
    a, b = (features.transform(whole) for features in made)
    assert a.shape == b.shape and (abs(a - b) > 1e-12).nnz == 0
    assert one.get_feature_names_out().tolist() == made[1].get_feature_names_out().tolist()
    assert [one.roles_[name] for name in ("price", "day", "tags")] == ["number", "date", "set"]
    assert one.notes_ == made[1].notes_ and "4 values are not a number" in one.notes_[0]


def test_quotes_are_plain_characters_in_all_files_if_they_are_in_one(tmp_path):
    rows = ["kind\ttext", *(f"{'ab'[k % 2]}\tword {'xy'[k % 2]} and {k}" for k in range(60))]
    for s in range(3):
        text = "\n".join(rows) + ('\na\t"quoted" and more\n' if s == 1 else "\n")
        (tmp_path / f"part-{s}.tsv").write_text(text)
    model = fit(Perceptron(max_iter=2), str(tmp_path / "part-*.tsv"), label="kind")
    assert model.facts["rows"] == 181 and model.facts["skipped"] == 0


def test_a_value_that_cannot_be_learned_from_is_named_by_its_line(tmp_path):
    for shard in range(2):
        rows = [f"{'perhaps' if shard and k == 80 else 'yes'},{'' if k % 9 == 0 else 'ab'[k % 2]}" for k in range(100)]
        (tmp_path / f"part-{shard}.csv").write_text("\n".join(["member,y", *rows]) + "\n")
    features = TableFeatures(roles={"member": "boolean"})
    with pytest.raises(ValueError, match=r"part-1\.csv, line 82, column 'member': 'perhaps' is neither true nor false"):
        fit(learner(), str(tmp_path / "part-*.csv"), label="y", features=features)


def test_a_column_and_a_label_that_are_text_in_a_later_file_only(tmp_path):
    for s in range(3):
        words = ["big", "small"] if s == 2 else ["7", "8"]
        rows = ["kind,size,a", *(f"{(k + k // 9) % 2},{words[k % 2]},{k % 5 - k % 2}" for k in range(60))]
        rows += ["other,3,9"] * 30 if s == 1 else []
        (tmp_path / f"part-{s}.csv").write_text("\n".join(rows) + "\n")
    pattern = str(tmp_path / "part-*.csv")
    model = fit(learner(), pattern, label="kind")
    assert model.facts["classes"].keys() == {"0", "1", "other"} and model.facts["rows"] == 210
    assert model.features.roles_ == {"size": "category", "a": "number"}
    assert "taken for text" in model.facts["notes"][0]

    def stop(doing, done, total):
        if doing == "pass 3":
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        fit(learner(), pattern, label="kind", checkpoint=tmp_path / "run", working=stop)
    resumed = fit(learner(), pattern, label="kind", checkpoint=tmp_path / "run")
    assert same(model, resumed) and model.facts == resumed.facts


@pytest.mark.parametrize("form", ["numbers", "table"])
def test_workers_need_neither_scikit_learn_nor_pandas(tables, tmp_path, form):
    shards, label = (whole_numbers(tmp_path, shards=4), None) if form == "numbers" else (str(tables / "part-*.csv"), "label")
    engine = Local(1)
    model = AveragedPerceptron(rule="pa1", C="auto", order="random", early_stopping=True, calibrate="sigmoid", max_iter=2)
    try:
        fit(model, shards, label=label, engine=engine, holdout=0.25)
        assert model.n_iter_ == 2 and hasattr(model, "slope_") and hasattr(model, "C_")
        (imported,) = engine.reduce(ListModules(), [0]).items
    finally:
        engine.close()
    unwanted = imported & {"sklearn", "pandas", "scipy.stats", "matplotlib"}
    assert "numba" in imported and not unwanted


def call(*arguments, status=0):
    done = RUNNER.invoke(app, [str(argument) for argument in arguments])
    assert done.exit_code == status, done.output + str(done.exception)
    return done.stdout if status == 0 else done.stderr


@pytest.mark.slow
def test_the_command_line_trains_and_predicts_on_shards(tables, tmp_path):
    plain, split = tmp_path / "plain.sepx", tmp_path / "split.sepx"
    call("train", tables / "all.parquet", "--label", "label", "-o", plain, "--passes", 4)
    call("train", tables / "all.parquet", "--label", "label", "-o", split, "--passes", 4, "--engine", "local:1")
    assert np.array_equal(load(plain).estimator.coef_, load(split).estimator.coef_)
    assert load(plain).facts["data"] == load(split).facts["data"]
    told = json.loads(
        call(
            "train",
            tables / "part-*.csv",
            "--label",
            "label",
            "-o",
            split,
            "--json",
            "--engine",
            "local:2",
            "--holdout",
            0.2,
            *("--drop", "price", "--drop", "day", "--drop", "tags"),  # drawn at random, for tests of columns
        )
    )
    assert told["shards"] == 6 and told["rows"] == 600 and told["held_out"] == 200 and told["held_out_accuracy"] > 0.8
    assert len(told["mistakes_by_shard"]) == told["passes"] and told["classes"].keys() == {"ham", "spam"}
    model, out = load(split), tmp_path / "out"
    call("predict", split, tables / "part-*.csv", "--engine", "local:2", "-o", out)
    parts = [pa.csv.read_csv(out / f"part-{s}.csv") for s in range(8)]
    rows = pa.csv.read_csv(tables / "part-3.csv").drop_columns(["label"])
    assert parts[3]["prediction"].to_pylist() == model.predict(rows).tolist()
    shown = call("train", tables / "part-*.csv", "--label", "label", "--rule", "perceptron", "--engine", "local:2")
    assert "8 shards" in shown and "600 rows" not in shown and "800 rows" in shown
    assert ("Σμ·mistakes" in shown) == ("converged" in shown)


def test_the_command_line_refuses_what_an_engine_cannot(tables, tmp_path):
    parts = tables / "part-*.csv"
    assert "engine 'magic:1' is not known" in call("train", parts, "--engine", "magic:1", status=2)
    assert "voted" in call("train", parts, "--label", "label", "--learner", "voted", "--engine", "local:1", status=2)
    assert "record" in call("train", parts, "--label", "label", "--record", "--engine", "local:1", status=2)
    bad = tmp_path / "bad.csv"
    bad.write_text((tables / "part-0.csv").read_text() + "1,2,3,4,5,6\n")
    assert "bad.csv, line 102" in call("train", bad, "--label", "label", "--engine", "local:1", status=2)
    rows = (tables / "part-0.csv").read_text()
    bad.write_text(rows + rows.splitlines()[1].rpartition(",")[0] + ",\n")
    train = "train", bad, "--label", "label", "--engine", "local:1"
    assert "left out 1 row without a label" in call(*train)
    assert "bad.csv, line 102: the label is missing" in call(*train, "--missing-label", "raise", status=2)


@pytest.mark.parametrize(("engine", "package"), [("dask://localhost:1", "dask"), ("spark:local[2]", "pyspark")])
def test_an_engine_that_is_not_installed_is_named_with_its_extra(tables, monkeypatch, engine, package):
    extra = engine.partition(":")[0]
    monkeypatch.delitem(sys.modules, f"separatrix.cluster.{extra}", raising=False)
    monkeypatch.setitem(sys.modules, package, None)
    error = call("train", tables / "part-*.csv", "--label", "label", "--engine", engine, status=2)
    assert f"engine '{engine}' needs the package {package}: pip install 'separatrix[{extra}]'" in error


@pytest.mark.crash
@pytest.mark.slow
def test_a_killed_driver_goes_on_to_the_same_model(tmp_path):
    pattern = whole_numbers(tmp_path, shards=4, n=2000, d=40)
    command = [sys.executable, "-m", "separatrix", "train", pattern, "--passes", "60", "--rule", "perceptron", "--engine"]
    checkpoint, killed = tmp_path / "run.ckpt", 0
    subprocess.run([*command, "local:1", "-o", tmp_path / "whole.sepx"], check=True, capture_output=True)
    while killed < 3:
        more = ["local:2", "-o", tmp_path / "resumed.sepx", "--checkpoint", checkpoint]
        driver = subprocess.Popen([*command, *more], stdout=subprocess.DEVNULL, start_new_session=True)
        before = checkpoint.stat().st_mtime_ns if checkpoint.exists() else 0
        while driver.poll() is None and (not checkpoint.exists() or checkpoint.stat().st_mtime_ns == before):
            time.sleep(0.001)
        assert driver.poll() is None, "it ended before it could be killed"
        os.kill(driver.pid, signal.SIGKILL)
        driver.wait()
        killed += 1
    subprocess.run([*command, *more], check=True, capture_output=True)
    assert not checkpoint.exists()
    assert (tmp_path / "whole.sepx").read_bytes() == (tmp_path / "resumed.sepx").read_bytes()
