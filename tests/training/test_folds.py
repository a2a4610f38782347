"""`train --folds`: every row is predicted by a model that never saw it, and the final model is that without folds."""

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet
import pytest
from click.testing import CliRunner

from separatrix import train
from separatrix.cli import app
from separatrix.data.errors import DataError
from separatrix.data.reading import open_source
from separatrix.features.table import TableFeaturizer
from separatrix.learners.linear import AveragedLearner
from separatrix.training.tuning.examples import read_examples
from separatrix.training.tuning.folds import Pipeline, cross_validate, fold_numbers

N = 150
RNG = np.random.default_rng(3)
FRAME = pd.DataFrame(
    {
        "age": RNG.integers(18, 80, N),
        "job": RNG.choice(["clerk", "cook", "smith"], N),
        "message": [" ".join(RNG.choice(["free", "money", "now", "noon", "see", "you"], 4)) for _ in range(N)],
        "kind": RNG.choice(["ham", "spam", "other"], N, p=[0.5, 0.3, 0.2]),
    }
)
MATRIX = RNG.normal(size=(N, 4))
CODES = (MATRIX[:, 0] > 0).astype(int)
pytestmark = pytest.mark.filterwarnings("ignore::separatrix.training.recipe.TrainingWarning")


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("folds")
    FRAME.to_csv(folder / "t.csv", index=False)
    rows = zip(CODES, MATRIX.tolist(), strict=True)
    (folder / "m.svm").write_text("\n".join(f"{y} " + " ".join(f"{j + 1}:{x!r}" for j, x in enumerate(r)) for y, r in rows))
    np.savez(folder / "m.npz", X=MATRIX, y=CODES)
    return folder


def command(*arguments, **settings):
    done = CliRunner().invoke(app, ["train", *map(str, arguments)], **settings)
    assert done.exit_code == 0, done.output + repr(done.exception)
    return done.output


def failure(*arguments):
    done = CliRunner().invoke(app, ["train", *map(str, arguments)])
    assert done.exit_code == 2, done.output
    return done.stderr


def test_folds_are_stratified_seeded_and_of_equal_size():
    codes = RNG.choice(3, 101, p=[0.7, 0.2, 0.1])
    folds = fold_numbers(codes, 5, seed=0)
    for k in range(3):
        per_fold = np.bincount(folds[codes == k], minlength=5)
        assert per_fold.max() - per_fold.min() <= 1
    sizes = np.bincount(folds)
    assert sizes.max() - sizes.min() <= 1
    assert np.array_equal(folds, fold_numbers(codes, 5, seed=0))
    assert not np.array_equal(folds, fold_numbers(codes, 5, seed=1))


def test_features_and_learner_learn_from_the_training_rows_of_a_fold_alone(folder):
    examples = read_examples(open_source(folder / "t.csv"), memory=1 << 30)
    learner = {"rule": "pa1", "max_iter": 3, "random_state": 0}
    pipeline = Pipeline(lambda: TableFeaturizer(), lambda: AveragedLearner(**learner))
    result = cross_validate(examples, pipeline, 4, seed=2)
    table = pa.Table.from_batches([batch.table for batch in examples.batches])
    for fold in range(4):
        train_rows, test_rows = np.flatnonzero(result.folds != fold), np.flatnonzero(result.folds == fold)
        features = TableFeaturizer().fit(table.take(train_rows))
        model = AveragedLearner(**learner).fit(features.transform(table.take(train_rows)), FRAME["kind"][train_rows])
        scores = model.decision_function(features.transform(table.take(test_rows)))
        assert np.array_equal(result.scores[test_rows], scores)
        labels = examples.classes[result.predicted[test_rows]]
        assert np.array_equal(labels, model.predict(features.transform(table.take(test_rows))))


def test_a_column_that_is_known_in_training_rows_only_is_of_no_use(tmp_path):
    # Each label follows from a code that occurs once: a model that had seen the test rows would know it.
    codes = [f"k{k * 7919 % 1000}" for k in range(120)]
    labels = RNG.choice(["a", "b"], 120)
    pd.DataFrame({"code": codes, "y": labels}).to_csv(tmp_path / "codes.csv", index=False)
    model = train(tmp_path / "codes.csv", label="y", folds=5, categorical="code")
    assert model.summary["training_error"] == 0.0
    assert model.summary["folds"]["accuracy"]["mean"] < 0.65


@pytest.mark.parametrize("name", ["t.csv", "m.svm", "m.npz"])
def test_the_final_model_has_the_bytes_that_it_has_without_folds(folder, tmp_path, name):
    with_folds, without = tmp_path / "with.sepx", tmp_path / "without.sepx"
    output = command(folder / name, "--folds", 4, "-o", with_folds)
    command(folder / name, "-o", without)
    assert with_folds.read_bytes() == without.read_bytes()
    assert "out-of-fold accuracy 0." in output


def test_text_in_python_and_on_the_command_line_agree(folder, tmp_path):
    pd.DataFrame({"text": FRAME["message"], "y": FRAME["kind"]}).to_csv(tmp_path / "texts.csv", index=False)
    document = json.loads(command(tmp_path / "texts.csv", "--text", "text", "--folds", 3, "--json"))
    model = train(FRAME["message"].tolist(), label=FRAME["kind"], folds=3)
    assert model.summary["folds"] == document["folds"]
    assert model.cross_validation.evaluation.rows == N


def test_figures_are_those_of_the_folds(folder):
    model = train(folder / "t.csv", folds=5, calibrate=True, passes=3)
    figures, validation = model.summary["folds"], model.cross_validation
    right = validation.predicted == validation.examples.codes
    by_fold = [right[validation.folds == fold].mean() for fold in range(5)]
    assert figures["accuracy"]["by_fold"] == pytest.approx(by_fold)
    assert figures["accuracy"]["mean"] == pytest.approx(np.mean(by_fold))
    assert figures["accuracy"]["deviation"] == pytest.approx(np.std(by_fold, ddof=1))
    assert {"balanced_accuracy", "macro_f1", "roc_auc", "log_loss", "calibration_error"} <= figures.keys()
    assert np.allclose(validation.probabilities.sum(axis=1), 1.0)
    assert validation.evaluation.accuracy == right.mean()


def test_the_score_of_a_class_that_a_fold_never_saw_is_null_in_json(tmp_path):
    table = FRAME.drop(columns="message").assign(kind=["rare", *FRAME["kind"][1:]])
    train(table, label="kind", folds=3, oof=tmp_path / "oof.jsonl")
    rows = [json.loads(line, parse_constant=pytest.fail) for line in (tmp_path / "oof.jsonl").read_text().splitlines()]
    assert [row["row"] for row in rows] == list(range(1, N + 1))
    assert [row["row"] for row in rows if row["score of rare"] is None] == [
        row["row"] for row in rows if row["fold"] == rows[0]["fold"]
    ]


@pytest.mark.parametrize("how", [{"folds": 2}, {"folds": 5}, {"tune": True}])
def test_folds_that_would_learn_from_one_class_are_refused(how):
    labels = ["a"] * 20 + ["b"]
    with pytest.raises(DataError, match="a fold would learn from one class alone"):
        train(MATRIX[:21], label=labels, **how)
    assert train(MATRIX[:22], label=[*labels, "c"], budget=1.0 if "tune" in how else 120.0, **how).cross_validation


def test_folds_say_that_they_have_no_threshold():
    chosen = train(MATRIX, label=CODES, folds=3, holdout=0.2, optimize="f1")
    plain = train(MATRIX, label=CODES, folds=3, holdout=0.2)
    assert chosen.summary["folds"]["accuracy"] == plain.summary["folds"]["accuracy"]
    note = "the folds predict without the threshold that optimize= chooses on the held-out rows"
    assert note in chosen.summary["folds"]["notes"] and note not in plain.summary["folds"]["notes"]


@pytest.mark.parametrize("ending", ["csv", "jsonl", "parquet"])
def test_out_of_fold_predictions_are_written(folder, tmp_path, ending):
    path = tmp_path / f"oof.{ending}"
    document = json.loads(command(folder / "t.csv", "--folds", 5, "--oof", path, "--json"))
    table = {
        "csv": pd.read_csv,
        "jsonl": lambda p: pd.read_json(p, lines=True),
        "parquet": lambda p: pa.parquet.read_table(p).to_pandas(),
    }[ending](path)
    names = ["row", "fold", "label", "prediction", "score of ham", "score of other", "score of spam"]
    assert list(table) == names
    assert table["row"].tolist() == list(range(1, N + 1))
    assert table["label"].tolist() == FRAME["kind"].tolist()
    means = (table["label"] == table["prediction"]).groupby(table["fold"]).mean()
    assert document["folds"]["accuracy"]["by_fold"] == pytest.approx(means.tolist())
    best = table[names[4:]].idxmax(axis=1).str.removeprefix("score of ")
    assert best.tolist() == table["prediction"].tolist()


def test_rows_without_a_label_and_held_out_rows_are_in_no_fold(tmp_path):
    frame = FRAME.copy()
    frame.loc[[4, 70], "kind"] = None
    frame.to_csv(tmp_path / "t.csv", index=False)
    model = train(tmp_path / "t.csv", folds=3, holdout=0.2)
    rows = model.cross_validation.table["row"].to_pylist()
    assert model.summary["rows"] == len(rows) and model.summary["held_out"] + len(rows) == N - 2
    assert not {5, 71} & set(rows)
    assert model.cross_validation.table["label"].to_pylist() == frame["kind"][np.array(rows) - 1].tolist()


def test_a_pipe_is_read_for_the_folds_and_for_the_model(folder, tmp_path):
    text = (folder / "t.csv").read_bytes()
    piped, read = tmp_path / "piped.sepx", tmp_path / "read.sepx"
    output = command("-", "--folds", 3, "-o", piped, input=text)
    command(folder / "t.csv", "-o", read)
    assert "out-of-fold accuracy" in output
    assert piped.read_bytes() == read.read_bytes()


def test_rare_classes_are_named():
    labels = ["a"] * 30 + ["b"] * 30 + ["c"] * 2 + ["d"]
    table = {"x": RNG.normal(size=63), "y": labels}
    summary = train(table, label="y", folds=5).summary
    assert any("c (2), d (1)" in note and "one row of a class" in note for note in summary["folds"]["notes"])
    assert "d (1)" in str(summary)
    validation = train(table, label="y", folds=5).cross_validation
    assert validation.predicted[62] != 3 and validation.scores[62, 3] == -np.inf
    for options in ({"folds": 5}, {"tune": True}):
        with pytest.raises(DataError, match="3 rows, fewer than folds"):
            train({"x": [1.0, 2.0, 3.0], "y": ["a", "b", "a"]}, label="y", **options)
    with pytest.raises(DataError, match="one class alone"):
        train({"x": [1.0, 2.0, 3.0], "y": ["a", "b", "a"]}, label="y", folds=2)


def test_early_stopping_in_folds_holds_out_rows_of_the_fold(folder):
    model = train(folder / "t.csv", folds=3, holdout=0.25, early_stopping=True)
    assert model.summary["folds"]["rows"] == model.summary["rows"]


def test_what_does_not_fit_in_memory_is_an_error(tmp_path):
    pd.DataFrame({"x": RNG.normal(size=60_000), "y": RNG.choice(["a", "b"], 60_000)}).to_csv(tmp_path / "t.csv", index=False)
    message = failure(tmp_path / "t.csv", "--folds", 5, "--memory", "300K")
    assert "need the rows, and the features of a fold, in memory" in message and "increase --memory" in message


def test_options_that_do_not_go_together(folder, tmp_path):
    assert "--oof needs folds: use --folds 5, or --tune" in failure(folder / "t.csv", "--oof", tmp_path / "o.csv")
    assert "ends in .csv, .jsonl or .parquet" in failure(folder / "t.csv", "--folds", 3, "--oof", tmp_path / "o.txt")
    assert "does not exist" in failure(folder / "t.csv", "--folds", 3, "--oof", Path(tmp_path, "no", "o.csv"))
    assert "--folds cannot be combined with --engine" in failure(folder / "t.csv", "--folds", 3, "--engine", "local:2")
