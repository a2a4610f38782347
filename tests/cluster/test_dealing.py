"""Shards of different classes: rows are dealt anew among them, and nothing else changes."""

import os
from itertools import pairwise

import numpy as np
import pyarrow as pa
import pytest
import scipy.sparse as sp
from click.testing import CliRunner

from separatrix import AveragedPerceptron, Perceptron, TableFeatures, load
from separatrix.cli import app
from separatrix.cluster import bounds, fit
from separatrix.cluster.dealing import GROUP_SIZE, UnlikeShardsWarning, grouped, out_of_place, shards_differ
from separatrix.cluster.engines import Engine
from separatrix.cluster.shards import Recipients
from support.kill_workers import same

pytestmark = pytest.mark.cluster

RUNNER = CliRunner()


def examples(n=2000, d=12, K=2, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.integers(-3, 4, (n, d)).astype(float)
    return X, np.argmax(X @ rng.normal(size=(d, K)) + 2.0 * rng.normal(size=(n, K)), axis=1)


def cut(X, y, order, shards=4):
    return [(X[rows], y[rows]) for rows in np.array_split(order, shards)]


def sorted_shards(X, y, shards=4):
    return cut(X, y, np.argsort(y, kind="stable"), shards)


def learner(**settings):
    return AveragedPerceptron(rule="pa1", max_iter=5, random_state=3, **settings)


def write_files(folder, shards):
    """Write a CSV file for each shard of (X, y); return their pattern."""
    for s, (X, y) in enumerate(shards):
        lines = ["kind," + ",".join(f"c{j}" for j in range(X.shape[1]))]
        lines += [f"{'abcdefgh'[label]}," + ",".join(f"{v:g}" for v in row) for row, label in zip(X, y, strict=True)]
        (folder / f"part-{s}.csv").write_text("\n".join(lines) + "\n")
    return str(folder / "part-*.csv")


# When rows are dealt.


@pytest.mark.parametrize("shards", [2, 3, 8, 40])
@pytest.mark.parametrize("n", [12, 60, 400, 5000])
def test_random_shards_do_not_differ(shards, n):
    rng = np.random.default_rng([shards, n])
    for K in (2, 5, 23):
        for _ in range(60):
            shares = rng.dirichlet(np.full(K, 0.3))
            y = rng.choice(K, n, p=shares)
            ends = np.sort(rng.integers(0, n + 1, shards - 1))
            parts = [y[a:b] for a, b in pairwise([0, *ends, n])]
            counts = np.array([np.bincount(part, minlength=K) for part in parts])
            assert not shards_differ(counts[:, counts.any(axis=0)])


def test_sorted_shards_differ_also_where_a_class_is_rare():
    for counts in (
        [[100, 0], [0, 100]],
        [[5000, 0], [5000, 0], [5000, 0], [4980, 20]],
        [[50, 0, 0], [10, 40, 0], [0, 30, 20], [0, 0, 50]],
        [[400, 100], [100, 400]],
    ):
        assert shards_differ(np.array(counts)), counts
    for counts in ([[300, 200], [200, 300]], [[9, 0], [0, 9]], [[100, 100]], [[100, 100], [0, 0]]):
        assert not shards_differ(np.array(counts)), counts


def test_many_files_are_dealt_in_groups_that_are_like_the_whole():
    counts = np.zeros((100, 5), np.int64)
    counts[np.arange(100), np.arange(100) // 20] = np.random.default_rng(0).integers(80, 120, 100)
    groups = grouped(counts)
    assert sorted(place for group in groups for place in group) == list(range(100))
    assert max(map(len, groups)) <= GROUP_SIZE and len(groups) == 7
    totals = np.array([counts[group].sum(axis=0) for group in groups])
    assert not shards_differ(totals) and out_of_place(totals).max() < 0.12
    assert grouped(np.eye(40, dtype=np.int64) * 50) == [list(range(40))]  # a class for each file


# What comes out.


@pytest.mark.parametrize("K", [2, 3])
@pytest.mark.parametrize("form", [np.asarray, sp.csr_matrix])
def test_sorted_shards_train_as_well_as_shuffled_ones(K, form):
    X_all, y_all = examples(6000, K=K)
    X, y, X_test, y_test = X_all[:2000], y_all[:2000], X_all[2000:], y_all[2000:]
    shuffled = fit(learner(), cut(form(X), y, np.random.default_rng(0).permutation(2000)))
    model = fit(learner(), sorted_shards(form(X), y))
    assert model.facts["dealt"] and "dealt" not in shuffled.facts
    assert abs(model.estimator.score(X_test, y_test) - shuffled.estimator.score(X_test, y_test)) < 0.01
    for name in ("rows", "classes", "shards", "features"):
        assert model.facts[name] == shuffled.facts[name]
    assert model.estimator.radius_ == shuffled.estimator.radius_
    assert model.estimator.training_error_ == pytest.approx(1 - model.estimator.score(X, y), abs=1e-12)
    assert same(model, fit(learner(), sorted_shards(form(X), y), engine="local:2"))


def test_rows_of_files_are_dealt_alike_by_every_worker_and_resumed(tmp_path):
    class StoppedError(Exception):
        pass

    X, y = examples(1200, K=3)
    pattern = write_files(tmp_path, sorted_shards(X, y))
    with open(tmp_path / "part-2.csv", "a") as file:
        file.write("a,1,2\n")
    how = {"label": "kind", "reading": {"on_error": "skip"}}
    model = fit(learner(), pattern, **how)
    assert model.facts["dealt"] and model.facts["skipped"] == 1 and model.facts["rows"] == 1200
    assert model.facts["classes"] == {"abc"[k]: int(n) for k, n in enumerate(np.bincount(y))}
    assert same(model, fit(learner(), pattern, engine="local:2", **how))
    engine = Engine()

    def stop(doing, done, total):
        if doing == "pass 3" and done == 2:
            raise StoppedError

    with pytest.raises(StoppedError):
        fit(learner(), pattern, engine=engine, checkpoint=tmp_path / "run", working=stop, **how)
    assert not list(engine.folder.glob("separatrix-*"))
    engine.close()
    resumed = fit(learner(), pattern, checkpoint=tmp_path / "run", **how)
    assert same(model, resumed) and resumed.facts == model.facts
    X_tidy, y_tidy = examples(1200, K=3)
    (tmp_path / "tidy").mkdir()
    assert "dealt" not in fit(learner(), write_files(tmp_path / "tidy", cut(X_tidy, y_tidy, np.arange(1200))), **how).facts


def test_held_out_shards_are_dealt_too_and_columns_learned_from_the_others(tmp_path):
    X, y = examples(1200)
    pattern, features = write_files(tmp_path, sorted_shards(X, y)), TableFeatures()
    model = fit(learner(), pattern, label="kind", holdout=0.25, features=features)
    facts = model.facts
    assert facts["dealt"] and facts["rows"] + facts["held_out"] == 1200 and 200 < facts["held_out"] < 400
    assert features.n_rows_ == facts["rows"] and len(facts["classes"]) == 2
    assert model.estimator.validation_scores_[-1] > 0.7
    tables = [pa.table({"kind": list(map(str, y)), "a": X[:, 0], "b": X[:, 1]}) for X, y in sorted_shards(X, y)]
    assert fit(learner(), tables, label="kind", holdout=0.25).facts["dealt"]
    given = fit(learner(), pattern, label="kind", held_out=str(tmp_path / "part-0.csv"))
    assert given.facts["dealt"] and given.facts["rows"] == 1200 and given.facts["held_out"] == 300


def test_mistakes_on_dealt_shards_stay_under_the_bound(tmp_path):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(2000, 5))
    scores = X @ rng.normal(size=5)
    X, scores = X[abs(scores) > 0.3], scores[abs(scores) > 0.3]
    model = fit(Perceptron(max_iter=None, random_state=0), sorted_shards(X, (scores > 0).astype(int)))
    assert model.facts["dealt"] and model.estimator.converged_ and model.estimator.training_error_ == 0
    assert bounds(model).holds


class Apart(Engine):
    """Workers that have no file in common: each stands in a folder of its own, where only its own shard lies."""

    common_folder = False

    def __init__(self, folder):
        super().__init__()
        self.apart = folder

    def shard(self, number, folder):
        os.chdir(self.apart / str(number))
        return super().shard(number, self.apart / str(number))


def test_a_file_that_only_its_own_worker_can_read_gives_a_warning(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    X, y = examples(1200)
    write_files(tmp_path, sorted_shards(X, y))
    for number in range(4):
        (tmp_path / str(number)).mkdir()
        (tmp_path / f"part-{number}.csv").rename(tmp_path / str(number) / f"part-{number}.csv")
    engine = Apart(tmp_path)
    with pytest.warns(UnlikeShardsWarning, match="part-1.csv: no such file") as caught:
        model = fit(learner(), [f"part-{number}.csv" for number in range(4)], label="kind", engine=engine)
    assert "where every worker can read them" in str(caught[0].message)
    assert "dealt" not in model.facts and "no such file" in model.facts["unlike_shards"]
    assert model.estimator.shard_mistakes_.shape == (5, 4)
    engine.close()


def test_a_checkpoint_from_before_rows_were_dealt_is_resumed_without(tmp_path, monkeypatch):
    class StoppedError(Exception):
        pass

    def stop(doing, done, total):
        if doing == "pass 3":
            raise StoppedError

    X, y = examples(1200)
    shards = sorted_shards(X, y)
    with monkeypatch.context() as before:
        before.setattr("separatrix.cluster.fitting.shards_differ", lambda counts: False)
        whole = fit(learner(), shards)
        with pytest.raises(StoppedError):
            fit(learner(), shards, checkpoint=tmp_path / "run", working=stop)
    assert same(whole, fit(learner(), shards, checkpoint=tmp_path / "run"))


def test_the_command_line_says_that_rows_were_dealt(tmp_path):
    X, y = examples(800)
    pattern = write_files(tmp_path, sorted_shards(X, y))
    command = ["train", pattern, "--label", "kind", "--engine", "local:2", "--passes", "2"]
    result = RUNNER.invoke(app, [*command, "-o", str(tmp_path / "m.sepx")])
    assert result.exit_code == 0, result.output
    assert "the shards held different classes: rows were dealt anew among all of them" in result.output
    assert load(tmp_path / "m.sepx").facts["dealt"] is True


def test_rows_in_cyclic_order_in_sorted_shards_are_warned_about(tmp_path):
    X, y = examples()
    shards = [(part[np.argsort(labels, kind="stable")], np.sort(labels)) for part, labels in cut(X, y, np.arange(len(y)))]
    with pytest.warns(UserWarning, match="sorted by label"):
        fit(learner(order="cyclic"), shards)
    fit(learner(), shards)  # in whatever order, nothing is said
    printed = RUNNER.invoke(
        app, ["train", write_files(tmp_path, shards), "--label", "kind", "--engine", "local:1", "--order", "cyclic"]
    )
    assert "the rows are sorted by label, and --order cyclic presents them so" in printed.stdout


def test_the_numbers_that_deal_rows_are_not_those_that_made_the_data():
    values = np.random.default_rng(0).random(1000)
    recipients = Recipients(0, 0, np.arange(2)).next(1000)
    assert abs(np.corrcoef(values, recipients)[0, 1]) < 0.1
