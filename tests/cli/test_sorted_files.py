"""Files sorted by label are trained as `fit` does, mixed on their way to the disk, or warned about."""

import json
import warnings

import numpy as np
import pytest
from click.testing import CliRunner

from separatrix import AveragedPerceptron, KernelPerceptron, Perceptron, TableFeatures, load
from separatrix.analysis.tracing import presentations
from separatrix.cli import app
from separatrix.data.reading import open_source
from separatrix.engine.rows import Rows
from separatrix.learners.linear import AveragedLearner
from separatrix.training.summary import warnings_about

RNG = np.random.default_rng(8)
N = 4000
POINTS = RNG.normal(size=(2 * N, 6)).round(3)
LABELS = np.where(POINTS[:, 0] + POINTS[:, 1] * POINTS[:, 0] / 2 + 0.5 * RNG.normal(size=2 * N) > 1.0, "yes", "no")
ORDERS = {
    "sorted": np.argsort(LABELS[:N], kind="stable"),
    "reversed": np.argsort(LABELS[:N], kind="stable")[::-1],
    "shuffled": np.arange(N),
}


def call(*arguments, status=0):
    done = CliRunner().invoke(app, [str(argument) for argument in arguments])
    assert done.exit_code == status, done.output
    return done.stdout if status == 0 else done.stderr


def written(path, rows):
    lines = [",".join([*map(str, POINTS[i]), LABELS[i]]) for i in rows]
    path.write_text("\n".join(["a,b,c,d,e,f,kind", *lines]) + "\n")
    return path


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    folder = tmp_path_factory.mktemp("sorted")
    written(folder / "test.csv", range(N, 2 * N))
    for name, order in ORDERS.items():
        written(folder / f"{name}.csv", order)
    return folder


@pytest.mark.parametrize("memory", ["2G", "1k"])
def test_the_order_of_a_file_hardly_matters(files, tmp_path, memory):
    accuracies = {}
    for name in ORDERS:
        model = tmp_path / f"{name}.sepx"
        summary = json.loads(call("train", files / f"{name}.csv", "--memory", memory, "-o", model, "--json"))
        assert (summary["spilled_bytes"] > 0) == (memory == "1k") and summary["warnings"] == []
        accuracies[name] = json.loads(call("evaluate", model, files / "test.csv", "--json"))["accuracy"]
    assert min(accuracies.values()) > 0.85
    assert max(accuracies.values()) - min(accuracies.values()) < 0.015, accuracies


def test_what_fits_in_memory_is_trained_as_fit_does(files, tmp_path):
    call("train", files / "sorted.csv", "-o", tmp_path / "m.sepx", "--passes", 3, "--seed", 4)
    table = next(iter(open_source(files / "sorted.csv", batch_bytes=1 << 24))).table
    features = TableFeatures().fit(table.drop_columns(["kind"]))
    X, y = features.transform(table.drop_columns(["kind"])), np.array(table["kind"].to_pylist())
    expected = AveragedPerceptron(rule="pa1", max_iter=3, random_state=4).fit(X, y)
    learner = load(tmp_path / "m.sepx").estimator
    assert np.array_equal(learner.coef_, expected.coef_) and np.array_equal(learner.intercept_, expected.intercept_)


def test_a_checkpoint_belongs_to_one_memory(files, tmp_path):
    checkpoint = tmp_path / "run.ckpt"
    arguments = ("train", files / "sorted.csv", "--checkpoint", checkpoint, "--checkpoint-every", 0, "--passes", 2)

    class StoppedError(Exception):
        pass

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("separatrix.cli.training.InterruptibleTraining._request_stop", lambda *_: None)
        patch.setattr("separatrix.cli.progress_bars.TrainingProgress.rows_trained", _stop_at_third_block(StoppedError))
        result = CliRunner().invoke(app, [str(a) for a in (*arguments, "--memory", "1k")])
        assert result.exit_code == 70 and "StoppedError" in result.output
    assert checkpoint.exists()
    assert "another value of --memory" in call(*arguments, "--memory", "2G", status=2)
    call(*arguments, "--memory", "1k", "-o", tmp_path / "resumed.sepx")
    call("train", files / "sorted.csv", "--passes", 2, "--memory", "1k", "-o", tmp_path / "whole.sepx")
    assert (tmp_path / "resumed.sepx").read_bytes() == (tmp_path / "whole.sepx").read_bytes()


def _stop_at_third_block(error):
    blocks = []

    def rows_trained(self, state, rows, n):
        blocks.append(rows)
        if len(blocks) == 3:
            raise error

    return rows_trained


def test_cyclic_order_on_a_sorted_file_is_warned_about(files):
    assert "the rows are sorted by label" in call("train", files / "sorted.csv", "--order", "cyclic")
    assert "warning" not in call("train", files / "shuffled.csv", "--order", "cyclic")
    assert "warning" not in call("train", files / "sorted.csv")


def test_the_progressive_error_does_not_stand_alone(files, tmp_path):
    model = tmp_path / "m.sepx"
    summary = json.loads(call("train", files / "sorted.csv", "-o", model, "--json"))
    judged = json.loads(call("evaluate", model, files / "sorted.csv", "--json"))
    assert summary["training_error"] == pytest.approx(1 - judged["accuracy"])
    assert f"training error {summary['training_error']:.4f}" in call("train", files / "sorted.csv")
    held_out = json.loads(call("train", files / "sorted.csv", "--holdout", 0.2, "--json"))
    assert "training_error" not in held_out and held_out["held_out_accuracy"] > 0.85


@pytest.mark.parametrize("holdout", [(), ("--holdout", 0.25)])
def test_a_model_no_better_than_the_majority_class_is_warned_about(tmp_path, holdout):
    rng = np.random.default_rng(0)
    rare = rng.random(1500) < 0.04
    lines = [f"{x:.3f},{'fraud' if y else 'fine'}" for x, y in zip(rng.normal(size=1500), rare, strict=True)]
    (tmp_path / "noise.csv").write_text("\n".join(["x,kind", *lines]) + "\n")
    printed = call("train", tmp_path / "noise.csv", "--passes", 3, *holdout)
    assert "no better than always predicting fine" in printed
    assert "no row of fraud" in printed and "--class-weight balanced" in printed


@pytest.mark.parametrize("seed", range(3))
def test_weighted_classes_told_apart_no_better_than_by_a_guess_are_warned_about(tmp_path, seed):
    rng = np.random.default_rng(seed)
    rare = rng.random(3000) < 0.1
    for name, shift in (("noise", 0.0), ("signal", 1.0)):
        x = rng.normal(size=3000) + shift * rare
        lines = [f"{value:.3f},{'fraud' if y else 'fine'}" for value, y in zip(x, rare, strict=True)]
        (tmp_path / f"{name}.csv").write_text("\n".join(["x,kind", *lines]) + "\n")
    weighted = ("--class-weight", "balanced", "--holdout", 0.3)
    warning = "the model is no better than a guess (balanced accuracy, the mean of the classes' recalls, 0."
    assert warning in call("train", tmp_path / "noise.csv", *weighted)
    assert "warning" not in call("train", tmp_path / "signal.csv", *weighted)


def test_weights_are_proposed_only_where_a_missed_class_is_rare():
    advice = "class_weight='balanced'"
    common = warnings_about(np.array([50, 0, 45]), np.array([50, 50, 50]), ["a", "b", "c"], AveragedLearner())
    assert common == ["no row of b (50 rows) is predicted as such"]
    rare = warnings_about(np.array([900, 0]), np.array([900, 20]), ["a", "b"], AveragedLearner())
    assert advice in rare[1] and "no row of b (20 rows)" in rare[1]
    weighted = warnings_about(np.array([900, 0]), np.array([900, 20]), ["a", "b"], AveragedLearner(class_weight="balanced"))
    assert "no better than a guess" in weighted[0] and advice not in "".join(weighted)
    unknown = warnings_about(np.array([2, 3]), np.array([20, 5]), ["a", "b"], AveragedLearner(), unknown=75)
    assert "accuracy 0.0500, where 0.2000 of the rows" in unknown[0]
    few = warnings_about(np.array([3, 3]), np.array([3, 3]), ["a", "b"], AveragedLearner(class_weight="balanced"))
    assert few == []


def test_the_order_is_the_reason_that_is_named_where_rows_are_sorted(tmp_path):
    for name in ("iris", "wine"):
        printed = call("train", name, "--order", "cyclic", "--learner", "last", "--passes", 1)
        assert "predicted as such" in printed and "--class-weight" not in printed
    rng = np.random.default_rng(1)
    rows = [f"{rng.normal() + 3 * (k >= 700):.2f},{'a' if k < 300 else 'b' if k < 700 else 'c'}" for k in range(720)]
    (tmp_path / "sorted.csv").write_text("\n".join(["x,kind", *rows]) + "\n")
    printed = call("train", tmp_path / "sorted.csv", "--order", "cyclic", "--learner", "last", "--passes", 1)
    assert "the rows are sorted by label" in printed and "--class-weight" not in printed


@pytest.mark.parametrize(
    ("label", "doubt"),
    [
        (lambda i: f"0.{i % 20}5", "most classes are fractions: is kind the label column? --label"),
        (lambda i: f"k{i % 40}", "there are 40 classes: is kind the label column? --label"),
        (lambda i: f"k{i % 20}", ""),
    ],
)
def test_values_that_may_be_no_labels_are_asked_about(tmp_path, label, doubt):
    lines = [f"{i % 7},{label(i)}" for i in range(200)]
    (tmp_path / "doubtful.csv").write_text("\n".join(["x,kind", *lines]) + "\n")
    printed = call("train", tmp_path / "doubtful.csv", "--passes", 1)
    assert doubt in printed and ("the label column?" in printed) == bool(doubt)


def test_a_stream_sorted_by_label_is_warned_about_once():
    X, y = POINTS[:N][ORDERS["sorted"]], LABELS[:N][ORDERS["sorted"]]
    learner = AveragedPerceptron(random_state=0)
    with pytest.warns(UserWarning, match="labels come in runs") as caught:
        for at in range(0, N, 100):
            learner.partial_fit(X[at : at + 100], y[at : at + 100], classes=["no", "yes"])
    assert len(caught) == 1
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        stream = Perceptron()
        for i in range(600):
            stream.partial_fit(POINTS[i : i + 1], LABELS[i : i + 1])


def test_fit_in_cyclic_order_on_sorted_rows_warns_unless_it_converges():
    X, y = POINTS[:N][ORDERS["sorted"]], LABELS[:N][ORDERS["sorted"]]
    with pytest.warns(UserWarning, match="sorted by label"):
        Perceptron(order="cyclic", max_iter=3).fit(X, y)
    separable = np.where(X[:, 0] > 0, 1, -1)
    by_class = np.argsort(separable, kind="stable")
    far = np.abs(X[by_class, 0]) > 0.5
    model = Perceptron(order="cyclic", max_iter=1000).fit(X[by_class][far], separable[by_class][far])
    assert model.converged_


def rare_class(n, seed):
    """Two overlapping classes, the second of which is rare, sorted by class, and how they are shuffled."""
    rng = np.random.default_rng(seed)
    y = np.sort((rng.random(n) < 0.02).astype(int))
    X = rng.normal(size=(n, 2)) + np.outer(y, [2.5, -1.5])
    return X, y, rng.permutation(n)


@pytest.mark.parametrize("memory", ["2G", "512k"])
def test_a_rare_class_at_the_end_of_many_narrow_rows_is_learned(tmp_path, memory):
    X, y, mixed = rare_class(100_000, 0)
    recall = {}
    for name, rows in (("sorted", slice(None)), ("shuffled", mixed)):
        np.savez(tmp_path / f"{name}.npz", X=X[rows], y=y[rows])
        call("train", tmp_path / f"{name}.npz", "--memory", memory, "--rule", "perceptron", "-o", tmp_path / "m.sepx", "-q")
        recall[name] = np.mean(load(tmp_path / "m.sepx").predict(X[y == 1]))
    assert recall["sorted"] == pytest.approx(recall["shuffled"], abs=0.02) and recall["shuffled"] > 0.3


def test_a_shuffle_of_sorted_rows_mixes_the_classes_and_can_be_traced():
    X, y, _ = rare_class(100_000, 1)
    model = Perceptron(order="shuffle", max_iter=2, random_state=0).fit(X, y)
    presented = np.concatenate([rows for _, rows in presentations(model, Rows(X), y)])
    assert [mistake.example for mistake in model.ledger_] == [presented[m.step - 1] for m in model.ledger_]
    for rows in np.split(presented, 2):
        assert np.array_equal(np.sort(rows), np.arange(len(y)))
        # The gaps between examples of the rare class are geometric, as in a uniform permutation.
        gaps, rate = np.diff(np.flatnonzero(y[rows])), y.mean()
        quantiles = [0.1, 0.5, 0.9, 0.99]
        np.testing.assert_allclose(np.quantile(gaps, quantiles), np.log1p(-np.array(quantiles)) / np.log1p(-rate), rtol=0.15)
        assert np.corrcoef(y[rows][1:], y[rows][:-1])[0, 1] == pytest.approx(0, abs=0.02)


def test_a_kernel_perceptron_in_cyclic_order_on_sorted_rows_warns():
    X, y = POINTS[:N][ORDERS["sorted"]][::10], LABELS[:N][ORDERS["sorted"]][::10]
    with pytest.warns(UserWarning, match="sorted by label"):
        KernelPerceptron(order="cyclic", max_iter=2).fit(X, y)


def test_a_rare_class_at_the_end_of_a_stream_is_warned_about():
    X, y = np.random.default_rng(0).normal(size=(10_000, 3)), np.repeat([0, 1], [9910, 90])
    with pytest.warns(UserWarning, match="labels come in runs"):
        Perceptron().partial_fit(X, y)


@pytest.mark.parametrize("engine", [(), ("--engine", "local:1")])
def test_labels_of_a_validation_file_are_matched_as_evaluate_does(files, tmp_path, engine):
    lines = (files / "test.csv").read_text().splitlines()
    (tmp_path / "dotted.csv").write_text("\n".join([lines[0], *(f"{line}." for line in lines[1:])]) + "\n")
    arguments = ("train", files / "shuffled.csv", *engine, "--passes", 2, "--calibrate", "--json", "--validate")
    plain, dotted = (json.loads(call(*arguments, path)) for path in (files / "test.csv", tmp_path / "dotted.csv"))
    assert dotted["held_out_accuracies"] == plain["held_out_accuracies"] and dotted["notes"] == []
    (tmp_path / "other.csv").write_text("\n".join([lines[0], *(f"{line}!" for line in lines[1:4])]) + "\n")
    assert "none of the 3 held-out rows has a label of a training row" in call(*arguments, tmp_path / "other.csv", status=2)
    (tmp_path / "none.csv").write_text("\n".join([lines[0], *(line.rpartition(",")[0] + "," for line in lines[1:4])]) + "\n")
    assert "no row with a label" in call(*arguments, tmp_path / "none.csv", status=2)
    (tmp_path / "some.csv").write_text("\n".join([*lines[:5], lines[6] + "!"]) + "\n")
    assert "1 held-out row has a label that no training row has" in call(*arguments, tmp_path / "some.csv")
