"""`train` in Python is the command `train`: the same bytes of the model file, from the same options."""

import json
import warnings
from pathlib import Path

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
import scipy.sparse as sp
from click.testing import CliRunner

from separatrix import AveragedPerceptron, Model, TableFeatures, load, train
from separatrix.cli import app
from separatrix.data.errors import DataError
from separatrix.training.options import TrainOptions
from separatrix.training.recipe import TrainingWarning, declared_options

N = 240
RNG = np.random.default_rng(7)
TABLE = {
    "customer": [f"C{1000 + k}" for k in range(N)],
    "age": RNG.integers(18, 80, N).astype(float).tolist(),
    "job": RNG.choice(["clerk", "cook", "smith", None], N).tolist(),
    "seen": [f"2024-{1 + k % 12:02d}-{1 + k % 28:02d}" for k in range(N)],
    "message": [f"{'free money now' if k % 3 == 0 else 'see you at noon'} number {k * 7919 % 97}" for k in range(N)],
    "kind": [None if k == 5 else "spam" if k % 3 == 0 else "ham" for k in range(N)],
}
MATRIX = RNG.normal(size=(N, 5))
CODES = (MATRIX[:, 0] + MATRIX[:, 1] > 0).astype(int)
pytestmark = pytest.mark.filterwarnings("ignore::separatrix.training.recipe.TrainingWarning")


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("train")
    frame = pd.DataFrame(TABLE)
    frame.to_csv(folder / "t.csv", index=False)
    frame.to_csv(folder / "t.tsv", index=False, sep="\t")
    frame.to_json(folder / "t.jsonl", orient="records", lines=True)
    frame.to_parquet(folder / "t.parquet")
    for k in range(2):
        frame[k::2].to_parquet(folder / f"part-{k}.parquet")
    lines = [
        f"{y} " + " ".join(f"{j + 1}:{x!r}" for j, x in enumerate(row))
        for y, row in zip(CODES, MATRIX.tolist(), strict=True)
    ]
    (folder / "m.svm").write_text("\n".join(lines) + "\n")
    np.savez(folder / "m.npz", X=MATRIX, y=CODES)
    return folder


def command(*arguments):
    done = CliRunner().invoke(app, ["train", *map(str, arguments)])
    assert done.exit_code == 0, done.output + repr(done.exception)
    return done.output


FORMATS = ["t.csv", "t.tsv", "t.jsonl", "t.parquet"]


@pytest.mark.parametrize("name", FORMATS)
def test_a_table_gives_the_bytes_of_the_command(folder, tmp_path, name):
    command(folder / name, "--label", "kind", "-o", tmp_path / "1.sepx")
    model = train(folder / name, label="kind", output=tmp_path / "2.sepx")
    assert (tmp_path / "1.sepx").read_bytes() == (tmp_path / "2.sepx").read_bytes()
    assert type(model.estimator) is AveragedPerceptron and type(model.features) is TableFeatures


OPTIONS = {
    "hold-out": ["--holdout", "0.2", "--early-stopping", "--calibrate", "--patience", "2"],
    "validate": ["--validate", "{}/t.csv", "--class-weight", "balanced"],
    "roles": ["--text", "message", "--drop", "customer", "--categorical", "age", "--bits", "10", "--numbers", "standard"],
    "rule": ["--rule", "arow", "-C", "0.5", "--passes", "3", "--seed", "4", "--no-bias", "--order", "cyclic"],
    "several C": ["-C", "auto", "--average-from", "2", "--multi-class", "ovr", "--tie", "first"],
    "record": ["--record", "--memory", "1k", "--missing-label", "skip", "--learner", "last"],
    "voted": ["--learner", "voted", "--passes", "2"],
    "pocket": ["--learner", "pocket", "--passes", "2"],
    "checkpoint": ["--checkpoint", "{}/run.ckpt", "--checkpoint-every", "0"],
    "calibrate": ["--calibrate"],
}
SHORT = {"-C": "C", "--no-bias": "bias"}


def as_keywords(arguments):
    """Options of the command as keyword arguments."""
    keywords, rest = {}, list(arguments)
    declared = declared_options()
    while rest:
        flag = rest.pop(0)
        name = SHORT.get(flag, flag.removeprefix("--").replace("-", "_"))
        if declared[name].kind is bool:
            keywords[name] = flag != "--no-bias"
            continue
        value, kind = rest.pop(0), declared[name].kind
        keywords[name] = kind(value) if kind in (int, float) else float(value) if flag == "-C" and value != "auto" else value
    return keywords


@pytest.mark.parametrize("chosen", OPTIONS)
def test_options_are_those_of_the_command(folder, tmp_path, chosen):
    arguments = [argument.format(folder) for argument in OPTIONS[chosen]]
    command(folder / "t.csv", "--label", "kind", *arguments, "-o", tmp_path / "1.sepx")
    train(folder / "t.csv", label="kind", **as_keywords(arguments), output=str(tmp_path / "2.sepx"))
    assert (tmp_path / "1.sepx").read_bytes() == (tmp_path / "2.sepx").read_bytes()
    default = train(folder / "t.csv", label="kind")
    assert (
        chosen == "checkpoint"
        or load(tmp_path / "1.sepx").facts["settings"] != default.facts["settings"]
        or (chosen == "validate")
    )


@pytest.mark.parametrize("name", ["m.svm", "m.npz", "iris"])
def test_rows_give_the_bytes_of_the_command(folder, tmp_path, name):
    data = name if name == "iris" else folder / name
    command(data, "--holdout", "0.1", "-o", tmp_path / "1.sepx")
    train(str(data), holdout=0.1, output=tmp_path / "2.sepx")
    assert (tmp_path / "1.sepx").read_bytes() == (tmp_path / "2.sepx").read_bytes()


@pytest.mark.cluster
def test_shards_give_the_bytes_of_the_command(folder, tmp_path):
    command(folder / "part-*.parquet", "--label", "kind", "--engine", "local:2", "-o", tmp_path / "1.sepx")
    model = train(folder / "part-*.parquet", label="kind", engine="local:2", output=tmp_path / "2.sepx")
    assert (tmp_path / "1.sepx").read_bytes() == (tmp_path / "2.sepx").read_bytes()
    assert model.summary["shards"] == 2 and "2 shards" in str(model.summary)
    with pytest.raises(DataError, match="engine= works on files"):
        train(TABLE, label="kind", engine="local:2")


FRAMES = {
    "pandas": pd.DataFrame,
    "polars": pl.DataFrame,
    "arrow": pa.table,
    "chunks": lambda table: pa.concat_tables([pa.table(table).slice(0, 100), pa.table(table).slice(100)]),
    "dict": dict,
}


@pytest.mark.parametrize("holder", FRAMES)
@pytest.mark.parametrize("apart", [False, True], ids=["label column", "labels apart"])
def test_a_table_in_memory_is_the_same_as_its_parquet_file(folder, tmp_path, holder, apart):
    train(folder / "t.parquet", label="kind", holdout=0.1, output=tmp_path / "1.sepx")
    if apart:
        data = FRAMES[holder]({name: column for name, column in TABLE.items() if name != "kind"})
        labels = pd.Series(TABLE["kind"], name="kind")
    else:
        data, labels = FRAMES[holder](TABLE), "kind"
    model = train(data, label=labels, holdout=0.1, output=tmp_path / "2.sepx")
    first, second = load(tmp_path / "1.sepx"), load(tmp_path / "2.sepx")
    differing = {name for name in first.facts if first.facts[name] != second.facts[name]}
    assert differing == {"data", "format"} and second.facts["format"] == "memory"
    first.facts = second.facts
    assert first.estimator.run_.last.W.tobytes() == second.estimator.run_.last.W.tobytes()
    assert json.dumps(first.features.get_state()[0]) == json.dumps(model.features.get_state()[0])
    assert model.features.roles_["customer"] == "drop" and model.facts["unlabelled"] == 1


def test_the_hash_of_data_in_memory_does_not_depend_on_their_chunks():
    hashes = {train(make(TABLE), label="kind", passes=1).facts["data"] for make in FRAMES.values()}
    assert len(hashes) == 1
    assert hashes != {train(TABLE | {"age": TABLE["age"][::-1]}, label="kind", passes=1).facts["data"]}


@pytest.mark.parametrize("holder", [np.asarray, sp.csr_matrix, sp.coo_array, lambda X: X.tolist()])
def test_numbers_in_memory_are_the_same_as_in_an_archive(folder, holder):
    from_file = train(folder / "m.npz", holdout=0.1)
    model = train(holder(MATRIX), label=CODES, holdout=0.1)
    same_sum = np.testing.assert_allclose if sp.issparse(holder(MATRIX)) else np.testing.assert_array_equal
    same_sum(model.estimator.coef_, from_file.estimator.coef_)
    assert model.features is None and model.summary["held_out"] == from_file.summary["held_out"]


def test_texts_are_a_table_of_one_column(folder):
    labels = TABLE["kind"]
    model = train(TABLE["message"], label=labels, validate=(["free money"], ["spam"]))
    table = train({"text": TABLE["message"], "kind": labels}, label="kind", text="text")
    assert np.array_equal(model.estimator.coef_, table.estimator.coef_)
    assert model.predict(["free money now", "see you at noon"]).tolist() == ["spam", "ham"]
    assert model.summary["held_out_accuracy"] == 1.0


def test_held_out_data_may_be_in_memory(folder):
    frame = pd.DataFrame(TABLE)
    from_file = train(folder / "t.parquet", label="kind", validate=folder / "t.parquet")
    for held_out in (frame, (frame.drop(columns="kind"), frame["kind"])):
        model = train(frame, label="kind", validate=held_out)
        assert model.summary["held_out_accuracies"] == from_file.summary["held_out_accuracies"]


def test_what_the_command_tells_are_warnings(folder):
    with pytest.warns(TrainingWarning) as record:
        model = train(folder / "t.csv", label="kind")
    messages = [str(warning.message) for warning in record]
    assert any("left out 1 row without a label" in message for message in messages)
    assert any("customer" in message and "roles=" in message for message in messages)
    assert {warning.filename for warning in record} == {__file__}
    printed = command(folder / "t.csv", "--label", "kind").splitlines()
    shown = str(model.summary).splitlines()
    untimed = [k for k, line in enumerate(printed) if "trained in" not in line and "not written" not in line]
    assert [printed[k] for k in untimed if "note: " not in printed[k]] == [
        shown[k] for k in untimed if "note: " not in printed[k]
    ]
    assert "not written: name a file with output=" in shown[-1] and "name a file with -o" in printed[-1]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"passs": 3}, "train.. has no option 'passs'; did you mean 'passes'"),
        ({"passes": 0}, "passes=0 must be at least 1"),
        ({"seed": 2**64}, "seed=18446744073709551616 must be at least 0 and at most 4294967295"),
        ({"holdout": 0.95}, "holdout=0.95 must be at least 0 and at most 0.9"),
        ({"rule": "pa3"}, "rule='pa3' must be one of .*; did you mean 'pa'"),
        ({"passes": 2.5}, "passes=2.5 must be a whole number"),
        ({"early_stopping": True}, "early_stopping=True needs held-out examples: use holdout=0.1 or validate="),
        ({"holdout": 0.1, "validate": "x.csv"}, "holdout= cannot be combined with validate="),
        ({"memory": "much"}, "memory='much' is not a size"),
        ({"C": "big"}, "C='big' is neither a number nor auto"),
        ({"delimiter": ";"}, "delimiter= is about files, and the data are in memory"),
        ({"label": "kindd"}, "did you mean 'kind'"),
        ({"label": ["a", "b"]}, "the table has 240 rows, but there are 2 labels"),
        ({"text": "mesage"}, "did you mean 'message'"),
        ({"output": "/nowhere/m.sepx"}, "the folder /nowhere does not exist"),
        ({"output": "/"}, "/ is a folder: name a file in it"),
    ],
)
def test_wrong_options_are_named(options, message):
    with pytest.raises((ValueError, TypeError), match=message):
        train(TABLE, **{"label": "kind"} | options)


def test_roles_are_given_as_messages_give_them(folder, tmp_path):
    roles = {"message": "text", "customer": "drop", "age": "category"}
    train(TABLE, label="kind", roles=roles, output=tmp_path / "1.sepx")
    train(TABLE, label="kind", text="message", drop=["customer"], categorical="age", output=tmp_path / "2.sepx")
    assert (tmp_path / "1.sepx").read_bytes() == (tmp_path / "2.sepx").read_bytes()
    with pytest.raises(ValueError, match="must be roles among 'text', 'category', 'number', 'date', 'set' or 'drop'"):
        train(TABLE, label="kind", roles={"age": "numeric"})


def test_wrong_data_are_named():
    for data, kind in ((5, "int"), (None, "NoneType")):
        with pytest.raises(TypeError, match=f"the data are a {kind}, and not a data frame"):
            train(data)
    with pytest.raises(TypeError, match="the data are a str, and not a data frame"):
        Model().fit("a text", ["a"])
    with pytest.raises(DataError, match="the array cannot have a label column: pass the label of each row as label="):
        train(MATRIX)
    with pytest.raises(DataError, match="the array, row 3, column 1 of X: nan is not a finite number"):
        train(np.where(np.arange(N * 5).reshape(N, 5) == 16, np.nan, MATRIX), label=CODES)


def test_the_docstring_has_every_option():
    documented = (train.__doc__ or "").partition("Options")[2]
    names = declared_options()
    assert len(names) == len([field for field in TrainOptions.__dataclass_fields__ if field not in ("data", "label")])
    for name, declared in names.items():
        assert f"\n    {name} : " in documented and declared.option.help in documented, name


def test_calibration_without_a_hold_out_is_that_of_fit(folder, tmp_path):
    model = train(TABLE, label="kind", calibrate=True)
    labelled = [k for k in range(N) if TABLE["kind"][k] is not None]
    X = model.features.transform({name: [column[k] for k in labelled] for name, column in TABLE.items() if name != "kind"})
    fitted = AveragedPerceptron(rule="pa1", max_iter=10, random_state=0, calibrate="sigmoid")
    fitted.fit(X, [TABLE["kind"][k] for k in labelled])
    assert model.estimator.slope_ == fitted.slope_ and np.array_equal(model.estimator.coef_, fitted.coef_)
    with pytest.raises(ValueError, match=r"do not fit in memory: hold some out with holdout=0\.05"):
        train(sp.random(4000, 300, 0.9, "csr", random_state=0), label=np.arange(4000) % 2, memory="1k", calibrate=True)
    command(folder / "t.csv", "--label", "kind", "--calibrate", "-o", tmp_path / "m")
    assert "calibrated on the scores of rows left out in turn" in str(model.summary)
    assert "calibrated on the scores of the held-out rows" in command(folder / "t.csv", "--calibrate", "--holdout", 0.2)
    assert load(tmp_path / "m").predict_proba(TABLE).shape == (N, 2)


def test_paths_of_all_kinds(folder):
    parts = [folder / "part-0.parquet", folder / "part-1.parquet"]
    whole, divided = (train(folder / "t.parquet", label="kind", validate=each) for each in (folder / "t.parquet", parts))
    assert whole.summary["held_out"] == divided.summary["held_out"] == N - 1
    several = train([folder / "part-0.parquet", str(folder / "part-1.parquet")], label="kind", passes=1)
    pattern = train(Path(folder) / "part-*.parquet", label="kind", passes=1)
    assert several.facts["data"] == pattern.facts["data"] and several.facts["rows"] == N - 1


def test_no_warning_without_a_reason():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model = train(MATRIX, label=CODES)
    assert isinstance(model, Model) and model.summary["warnings"] == []


@pytest.mark.parametrize("holder", [pd.Series, pl.Series, pa.array, lambda values: pd.Series(values, dtype="category")])
def test_one_column_of_numbers_is_not_taken_for_texts(holder):
    for fit in (Model().fit, lambda X, y: train(X, label=y)):
        with pytest.raises(DataError, match="is not text"):
            fit(holder([1.5, 2.5, 1.0, 2.0]), ["a", "b", "a", "b"])
        assert fit(holder(["one", "two", "one", "two"]), ["a", "b", "a", "b"]).predict(["two"]) == ["b"]


def test_labels_that_look_like_measurements_are_asked_about():
    with pytest.warns(TrainingWarning, match="most classes occur once"):
        train(MATRIX, label=MATRIX[:, 0])
