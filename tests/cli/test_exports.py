"""`separatrix export`: from a file of data to what predicts without this library, and the refusals."""

import json
import pickle
import subprocess
import sys

import onnx
import pandas as pd
import pytest
from click.testing import CliRunner
from sklearn.datasets import dump_svmlight_file, load_digits, load_iris

from separatrix import load
from separatrix.cli import app
from support.exported_models import in_duckdb, in_sqlite, onnx_inputs, run_onnx
from support.passengers import passengers

RUNNER = CliRunner()


def call(*arguments, status=0):
    """Return what a command prints, or its one line on standard error."""
    done = RUNNER.invoke(app, [str(argument) for argument in arguments])
    assert done.exit_code == status, done.output
    if status:
        assert done.stderr.count("\n") == 1 and done.stderr.startswith("separatrix export: ")
    return done.stdout if status == 0 else done.stderr


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A list of passengers with gaps, and the model that was trained on it."""
    folder = tmp_path_factory.mktemp("passengers")
    frame, labels = passengers(0)
    frame.loc[::9, ["Sex", "Fare"]] = None
    frame.assign(Survived=labels).to_csv(folder / "passengers.csv", index=False)
    options = ("--drop", "Name", "--holdout", 0.2, "--calibrate", "-q")
    call("train", folder / "passengers.csv", "-o", folder / "model.sepx", *options)
    return folder


@pytest.fixture(scope="module")
def predictions(folder):
    """What `predict` writes."""
    call("predict", folder / "model.sepx", folder / "passengers.csv", "--scores", "-o", folder / "out.jsonl")
    return pd.DataFrame([json.loads(line) for line in (folder / "out.jsonl").read_text().splitlines()])


def same(theirs, predictions):
    """Check the columns of a query, or of other predictions, against those of `predict`."""
    assert theirs["prediction"].tolist() == predictions["prediction"].tolist()
    for name in predictions.columns.intersection(theirs.columns).drop("prediction"):
        assert theirs[name].tolist() == pytest.approx(predictions[name].tolist(), rel=1e-9, abs=1e-12)


def test_sql_over_the_raw_table(folder, predictions):
    frame = pd.read_csv(folder / "passengers.csv").drop(columns="Survived")
    query = call("export", folder / "model.sepx", "--to", "sql", "--table", "rows", "--probabilities")
    for run in (in_sqlite, in_duckdb):
        result = run(query, frame)
        assert list(result.columns[: len(frame.columns)]) == list(frame.columns)
        assert {"score of yes", "probability of no", "probability of yes"} < set(result.columns)
        same(result, predictions)
    call("export", folder / "model.sepx", "--to", "sql", "-o", folder / "label.sql")
    error = call("export", folder / "model.sepx", "--to", "sql", "-o", folder, status=2)
    assert error == f"separatrix export: {folder} is a folder: name a file in it\n"
    expression = (folder / "label.sql").read_text()
    result = in_sqlite(f"SELECT {expression} AS prediction FROM rows", frame)
    assert result["prediction"].tolist() == predictions["prediction"].tolist()


def test_onnx_and_scikit_learn_over_the_raw_table(folder, predictions):
    frame = pd.read_csv(folder / "passengers.csv").drop(columns="Survived")
    done = RUNNER.invoke(app, ["export", f"{folder}/model.sepx", "--to", "onnx", "-o", f"{folder}/model.onnx"])
    assert done.stderr == f"written to {folder}/model.onnx; it reads the columns Pclass, Sex, Age, Fare\n"
    graph = onnx.load(folder / "model.onnx")
    outputs = run_onnx(graph, onnx_inputs(graph, frame))
    shares = {f"probability of {label}": outputs["probabilities"][:, k] for k, label in enumerate(["no", "yes"])}
    same(pd.DataFrame({"prediction": outputs["label"], "score of yes": outputs["scores"][:, 0]} | shares), predictions)
    call("export", folder / "model.sepx", "--to", "sklearn", "-o", folder / "model.pkl")
    pipeline = pickle.loads((folder / "model.pkl").read_bytes())
    assert pipeline.predict(frame).tolist() == predictions["prediction"].tolist()
    assert pipeline.predict_proba(frame)[:, 1] == pytest.approx(predictions["probability of yes"])


def test_texts_go_to_scikit_learn_alone(tmp_path):
    lines = ["message,label", *(f"{'free money' if k % 3 else 'lunch'} at noon {k},{'ab'[k % 3 > 0]}" for k in range(60))]
    (tmp_path / "data.csv").write_text("\n".join(lines) + "\n")
    call("train", tmp_path / "data.csv", "-o", tmp_path / "model.sepx")
    for target in ("sql", "onnx"):
        error = call("export", tmp_path / "model.sepx", "--to", target, "-o", tmp_path / "out", status=2)
        assert (
            "column 'message' holds texts" in error
            and "export to scikit-learn instead" in error
            and "--drop message" in error
        )
    call("export", tmp_path / "model.sepx", "--to", "sklearn", "-o", tmp_path / "out")
    frame = pd.read_csv(tmp_path / "data.csv")
    assert (pickle.loads((tmp_path / "out").read_bytes()).predict(frame) == frame["label"]).all()


def test_a_missing_package_is_one_line_that_names_it(folder):
    for package, target, remedy in (
        ("onnx", "onnx", "pip install 'separatrix[onnx]'"),
        ("pandas", "sklearn", "pip install pandas"),
    ):
        code = f"import sys; sys.modules[{package!r}] = None; from separatrix.__main__ import main; main()"
        arguments = ["export", f"{folder}/model.sepx", "--to", target, "-o", f"{folder}/never"]
        done = subprocess.run([sys.executable, "-c", code, *arguments], capture_output=True, text=True, check=False)
        assert done.returncode == 2 and done.stderr.count("\n") == 1 and remedy in done.stderr
        assert not (folder / "never").exists()


def test_options_that_do_not_go_together(folder):
    model = folder / "model.sepx"
    assert "--table people" in call("export", model, "--to", "sql", "--scores", status=2)
    assert "are for --to sql" in call("export", model, "--to", "onnx", "--table", "t", "-o", folder / "x", status=2)
    assert "name it with -o" in call("export", model, "--to", "sklearn", status=2)
    assert f"{folder}/none/x: the folder {folder}/none does not exist" in call(
        "export", model, "--to", "onnx", "-o", folder / "none" / "x", status=2
    )


def test_rows_of_numbers_and_words_that_are_no_target(tmp_path):
    X, y = load_digits(return_X_y=True)
    dump_svmlight_file(X / 16, y, str(tmp_path / "digits.svm"), zero_based=False)
    call("train", tmp_path / "digits.svm", "-o", tmp_path / "digits.sepx")
    call("export", tmp_path / "digits.sepx", "--to", "sklearn", "-o", tmp_path / "digits.pkl")
    theirs = pickle.loads((tmp_path / "digits.pkl").read_bytes())
    assert (theirs.predict(X / 16) == load(tmp_path / "digits.sepx").predict(X / 16)).all()
    assert "--to: 'csv' is not one of" in call("export", tmp_path / "digits.sepx", "--to", "csv", status=2)


@pytest.mark.parametrize("numbers", ["none", "bins", "standard", "max-abs"])
def test_numbers_of_three_classes_in_sql(tmp_path, numbers):
    X, y = load_iris(return_X_y=True)
    frame = pd.DataFrame(X, columns=["sepal length", "sepal width", "petal length", "petal width"])
    frame.assign(kind=[f"kind{label}" for label in y]).to_csv(tmp_path / "iris.csv", index=False)
    call("train", tmp_path / "iris.csv", "--numbers", numbers, "-o", tmp_path / "iris.sepx")
    expression = call("export", tmp_path / "iris.sepx", "--to", "sql")
    result = in_sqlite(f"SELECT {expression} AS prediction FROM rows", frame)
    assert result["prediction"].tolist() == load(tmp_path / "iris.sepx").predict(frame).tolist()
