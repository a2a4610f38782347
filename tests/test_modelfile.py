"""A model file gives back the same model, bit for bit, or one clear error."""

import io
import json
import os
import pickle
import re
import resource
import stat
import struct
import subprocess
import sys
from pathlib import Path

import joblib
import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from safetensors.numpy import load as read_tensors
from safetensors.numpy import save as write_tensors
from sklearn.datasets import load_iris
from sklearn.linear_model import LogisticRegression

import separatrix
from discovery import ESTIMATORS, ONLINE, seeded
from filing import round_trip, same
from separatrix import Model, Perceptron, TextFeatures, load, modelfile, save
from separatrix.modelfile import ModelFileError
from separatrix.rules import RULES
from separatrix.states import CLASSIFIERS

IRIS = load_iris(as_frame=True)
X, Y = IRIS.data.to_numpy(), IRIS.target.to_numpy()
STREAMS = [estimator for estimator in ESTIMATORS if hasattr(estimator(), "partial_fit")]
WAYS = {"two": Y == 1, "three": np.array(["setosa", "versicolor", "virginica"])[Y]}


def test_every_public_classifier_has_a_place_in_the_file():
    assert {estimator.__name__ for estimator in ESTIMATORS} == set(CLASSIFIERS)


@pytest.mark.parametrize("estimator", ESTIMATORS)
@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("make", [np.asarray, sp.csr_matrix], ids=["dense", "csr"])
def test_what_is_loaded_is_what_was_saved(estimator, way, make, tmp_path):
    model = seeded(estimator).fit(make(X), WAYS[way])
    again = round_trip(model, tmp_path / "m.sepx")
    same(again, model, make(X))
    save(again, tmp_path / "again.sepx")
    assert (tmp_path / "again.sepx").read_bytes() == (tmp_path / "m.sepx").read_bytes()


@pytest.mark.parametrize("estimator", STREAMS)
@pytest.mark.parametrize("make", [np.asarray, sp.csr_matrix], ids=["dense", "csr"])
@pytest.mark.parametrize("begin", ["partial_fit", "fit"])
def test_a_loaded_learner_goes_on_as_the_unsaved_one(estimator, make, begin, tmp_path):
    rng = np.random.default_rng(0)
    order = rng.permutation(np.flatnonzero(Y < 2))
    kept = {"record": True} if "record" in estimator().get_params() else {}
    model = seeded(estimator, **kept)
    getattr(model, begin)(make(X[order]), Y[order])
    again = round_trip(model, tmp_path / "m.sepx")
    for learner in (again, model):  # a third class comes after the file was written
        learner.partial_fit(make(X[::3]), Y[::3])
    same(again, model, make(X))
    if kept:
        assert np.array_equal(again.ledger_.weights().coef, model.ledger_.weights().coef)


@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize("C", [0.5, "auto"])
def test_rules_and_the_grid_of_a_stream_go_on(rule, C, tmp_path):
    if C == "auto" and rule in ("perceptron", "margin", "pa"):
        pytest.skip("the rule has no C")
    model = separatrix.AveragedPerceptron(rule=rule, C=C).partial_fit(X, Y)
    again = round_trip(model, tmp_path / "m.sepx")
    weight = np.linspace(0.0, 2.0, len(X))
    for learner in (again, model):
        learner.partial_fit(X[::-1], Y[::-1], sample_weight=weight)
    same(again, model, X)
    assert len(getattr(again, "_runs", [])) == len(getattr(model, "_runs", []))


@pytest.mark.parametrize(
    "parameters",
    [
        {"early_stopping": True, "n_iter_no_change": 1},
        {"calibrate": "sigmoid"},
        {"class_weight": {0: 1, 1: 2.5, 2: 0.5}, "tie": "first"},
        {"class_weight": "balanced", "order": "cyclic", "fit_intercept": False, "multi_class": "ovr"},
        {"rule": "pa1", "C": "auto", "record": True},
        {"max_iter": np.int64(3), "margin": np.float32(0.5)},
    ],
)
def test_parameters_and_what_they_leave_behind(parameters, tmp_path):
    model = separatrix.AveragedPerceptron(random_state=3, **parameters).fit(X, Y)
    again = round_trip(model, tmp_path / "m.sepx")
    same(again, model, X)
    if "calibrate" in parameters:
        assert np.array_equal(again.predict_proba(X), model.predict_proba(X))


def test_a_random_state_goes_on_where_it_was(tmp_path):
    model = Perceptron(random_state=np.random.RandomState(5), warm_start=True, max_iter=2).fit(X, Y)
    save(model, tmp_path / "m.sepx")
    again = load(tmp_path / "m.sepx").estimator
    assert np.array_equal(again.fit(X, Y).coef_, model.fit(X, Y).coef_)


def test_infinite_parameters_and_hard_margins(tmp_path):
    two = Y < 2
    model = separatrix.MaxMarginClassifier(C=np.inf).fit(X[two], Y[two])
    same(round_trip(model, tmp_path / "m.sepx"), model, X)
    ovr = separatrix.MaxMarginClassifier(multi_class="ovr").fit(X, Y)
    same(round_trip(ovr, tmp_path / "m.sepx"), ovr, X)


@pytest.mark.parametrize(
    "labels",
    [
        np.array([-5, 7], np.int8),
        np.array([1, 2**63 + 1], np.uint64),
        np.array([-1.0, 2.0], np.float32),
        np.array([False, True]),
        np.array(["é", "e\u0301"]),  # not the same string, and neither is normalised
        np.array(["", "\ud800", "日本"], dtype="U9"),
        np.array(["no", "yes"], dtype=object),
    ],
    ids=lambda labels: f"{labels.dtype}-{len(labels)}",
)
def test_labels_come_back_exactly(labels, tmp_path):
    model = Perceptron(random_state=0).fit(X, labels[Y % len(labels)])
    again = round_trip(model, tmp_path / "m.sepx")
    assert again.classes_.dtype == model.classes_.dtype and again.classes_.tolist() == model.classes_.tolist()
    assert [type(label) for label in again.classes_.tolist()] == [type(label) for label in model.classes_.tolist()]


def test_feature_names_come_back_and_are_checked(tmp_path):
    model = Perceptron(random_state=0).fit(IRIS.data, Y)
    again = round_trip(model, tmp_path / "m.sepx")
    same(again, model, IRIS.data)
    with pytest.raises(ValueError, match="feature names"):
        again.predict(IRIS.data[IRIS.data.columns[::-1]])
    with pytest.raises(ValueError, match="X has 2 features, but Perceptron is expecting 4"):
        round_trip(Perceptron(random_state=0).fit(X, Y), tmp_path / "m.sepx").predict(X[:, :2])


def test_weights_of_few_nonzeros_take_little_room_and_keep_the_sign_of_zero(tmp_path):
    d = 1 << 18
    rows = sp.random(50, d, 1e-4, format="csr", random_state=0)
    model = separatrix.AveragedPerceptron(random_state=0).fit(rows, np.arange(50) % 2)
    model._run.last.W[:3] = [-0.0, 0.0, -0.0]
    model._run.used = None
    again = round_trip(model, tmp_path / "m.sepx")
    assert again._run.last.W[:3].tobytes() == model._run.last.W[:3].tobytes()
    assert np.array_equal(again.coef_, model.coef_)
    assert os.path.getsize(tmp_path / "m.sepx") < d


def test_without_the_ledger_it_predicts_and_learns_the_same(tmp_path):
    model = separatrix.AveragedPerceptron(random_state=0, record=True).fit(X, Y)
    save(model, tmp_path / "whole.sepx")
    again = round_trip(model, tmp_path / "m.sepx", ledger=False)
    assert os.path.getsize(tmp_path / "m.sepx") < os.path.getsize(tmp_path / "whole.sepx") / 2
    assert load(tmp_path / "m.sepx").info()["ledger"] == {
        "mistakes": 0,
        "left_out": model.n_mistakes_,
        "rows_stored": False,
    }
    for learner in (again, model):
        learner.partial_fit(X, Y)
    assert np.array_equal(again.coef_, model.coef_) and again.n_mistakes_ == model.n_mistakes_
    for ask in (again.ledger_.weights, lambda: again.ledger_.verify(X, Y), lambda: again.bounds(X, Y)):
        with pytest.raises(ValueError, match="the model was saved without them"):
            ask()
    assert separatrix.trace(load(tmp_path / "m.sepx").estimator, X, Y).rows
    with pytest.raises(ModelFileError, match="VotedPerceptron predicts with its mistakes"):
        save(separatrix.VotedPerceptron().fit(X, Y), tmp_path / "v.sepx", ledger=False)


TEXTS = ["Free money now!", "see you at noon", "win money", "noon at the office", "free free prize", "thank you"]
SPAM = np.array(["spam", "ham"] * 3)


@pytest.mark.parametrize("columns", ["hashed", "vocabulary"])
def test_the_featurizer_is_inside(columns, tmp_path):
    features = TextFeatures(columns=columns, n_features=512).fit(TEXTS)
    model = Perceptron(random_state=0).fit(features.transform(TEXTS), SPAM)
    facts = {"rows": 6, "columns": ["text", "label"], "name": "Ünïcode"}
    save(model, tmp_path / "m.sepx", features=features, facts=facts)
    again = load(tmp_path / "m.sepx")
    assert again.predict(TEXTS).tolist() == SPAM.tolist() and again.facts == facts
    assert np.array_equal(again.decision_function(TEXTS), model.decision_function(features.transform(TEXTS)))
    assert again.features.get_feature_names_out().tolist() == features.get_feature_names_out().tolist()
    assert again.info()["features"] == "TextFeatures" and repr(again).startswith("<Model: TextFeatures → Perceptron, ")
    save(again, tmp_path / "again.sepx")
    assert (tmp_path / "again.sepx").read_bytes() == (tmp_path / "m.sepx").read_bytes()
    with pytest.raises(ModelFileError, match="makes 100 features and the classifier was trained on"):
        save(model, tmp_path / "m.sepx", features=TextFeatures(n_features=100).fit(TEXTS))


def test_the_same_training_gives_the_same_bytes_in_another_process(tmp_path):
    code = """if True:
        import sys
        from sklearn.datasets import load_iris
        from separatrix import AveragedPerceptron, save
        save(AveragedPerceptron(random_state=0, record=True).fit(*load_iris(return_X_y=True)), sys.argv[1])"""
    for name in "ab":
        subprocess.run(
            [sys.executable, "-c", code, tmp_path / name], check=True, env=os.environ | {"PYTHONHASHSEED": "random"}
        )
    assert (tmp_path / "a").read_bytes() == (tmp_path / "b").read_bytes()


def test_what_cannot_be_kept_is_refused(tmp_path):
    path = tmp_path / "m.sepx"
    with pytest.raises(ValueError, match="not fitted"):
        save(Perceptron(), path)
    with pytest.raises(ModelFileError, match="a LogisticRegression cannot be put in a model file; these can: Perceptron, "):
        save(LogisticRegression(max_iter=1000).fit(X, Y), path)

    class Mine(Perceptron):
        pass

    Mine.__name__ = "Perceptron"
    with pytest.raises(ModelFileError, match="cannot be put in a model file"):
        save(Mine(random_state=0).fit(X, Y), path)
    for facts in ({"when": object()}, {"x": float("nan")}):
        with pytest.raises(ModelFileError, match="facts must be JSON values"):
            save(Perceptron(random_state=0).fit(X, Y), path, facts=facts)
    assert not path.exists()


# Writing.


def small(**facts):
    return Model(Perceptron(random_state=0, record=True).fit(X, Y), facts=facts)


def test_a_file_is_replaced_at_once_or_not_at_all(tmp_path, monkeypatch):
    path = tmp_path / "m.sepx"
    save(small(n=1), path)
    before = path.read_bytes()

    def interrupted(*_):
        raise KeyboardInterrupt

    for name in ("fsync", "replace"):
        with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
            patch.setattr(modelfile.os, name, interrupted)
            save(small(n=2), path)
        assert path.read_bytes() == before and os.listdir(tmp_path) == ["m.sepx"]
    save(small(n=2), path)
    assert load(path).facts == {"n": 2} and os.listdir(tmp_path) == ["m.sepx"]


def test_a_full_disk_leaves_what_was_there(tmp_path):
    path = tmp_path / "m.sepx"
    save(small(), path)
    before = path.read_bytes()
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1000, limits[1]))
    try:
        with pytest.raises(OSError, match=r"could not be written: .*File too large"):
            save(small(), path)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert path.read_bytes() == before and os.listdir(tmp_path) == ["m.sepx"]
    with pytest.raises(FileNotFoundError):
        save(small(), tmp_path / "nowhere" / "m.sepx")


def test_rights_follow_the_umask_and_links_are_kept(tmp_path):
    path, link = tmp_path / "m.sepx", tmp_path / "link.sepx"
    link.symlink_to(path)
    save(small(), link)
    mask = os.umask(0)
    os.umask(mask)
    assert stat.S_IMODE(path.stat().st_mode) == 0o666 & ~mask
    assert link.is_symlink() and load(link).sha256 == load(path).sha256


# Reading what is broken or hostile.


@pytest.fixture(scope="module")
def good(tmp_path_factory):
    path = tmp_path_factory.mktemp("good") / "m.sepx"
    features = TextFeatures(n_features=16, ngram_range=(1, 1)).fit(TEXTS)
    model = separatrix.AveragedPerceptron(random_state=0, record=True, rule="arow").fit(features.transform(TEXTS), SPAM)
    save(model, path, features=features, facts={"rows": 6})
    return path.read_bytes()


def refused(data, folder):
    """Write the bytes, and return the one line with which they are refused; None where they load as the good file."""
    path = folder / "bad.sepx"
    path.write_bytes(data)
    try:
        model = load(path)
    except ModelFileError as error:
        line = str(error)
        assert line.startswith(str(path)) and "\n" not in line and len(line) < 500
        return line
    assert model.predict(TEXTS).shape == (6,)
    return None


@settings(max_examples=300, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.data())
def test_damaged_files_load_equal_or_are_refused(good, tmp_path_factory, data):
    folder = tmp_path_factory.getbasetemp()
    broken = bytearray(good)
    if data.draw(st.booleans()):
        for _ in range(data.draw(st.integers(1, 4))):
            broken[data.draw(st.integers(0, len(good) - 1))] = data.draw(st.integers(0, 255))
    else:
        begin, end = sorted(data.draw(st.lists(st.integers(0, len(good)), min_size=2, max_size=2)))
        broken[begin:end] = data.draw(st.binary(max_size=20))
    if refused(bytes(broken), folder) is None:
        again = load(folder / "bad.sepx")
        save(again, folder / "again.sepx")
        assert (folder / "again.sepx").read_bytes() == good


def parts(data):
    (length,) = struct.unpack("<Q", data[:8])
    told = json.loads(json.loads(data[8 : 8 + length])["__metadata__"]["separatrix"])
    return told["body"], {name: array.copy() for name, array in read_tensors(data).items()}


def signed(body, arrays):
    """A file whose sum is right, whatever is in it."""
    text = modelfile._canonical(body)
    told = {"body": body, "sha256": modelfile._sum(text, arrays)}
    return write_tensors(arrays, {"separatrix": modelfile._canonical(told)})


def places(tree, path=()):
    yield path
    for key, value in tree.items() if isinstance(tree, dict) else enumerate(tree) if isinstance(tree, list) else ():
        yield from places(value, (*path, key))


HOSTILE = [None, True, -1, 0, 1, 2**31 - 1, 2**62, 2**70, 1e308, 0.5, "", "x", [], {}, [[1]], {"float": "nan"}, "inf"]


@settings(max_examples=600, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.data())
def test_hostile_files_with_a_right_sum_are_usable_or_refused(good, tmp_path_factory, data):
    body, arrays = parts(good)
    if data.draw(st.booleans()):
        *path, last = data.draw(st.sampled_from([p for p in places(body) if p]))
        at = body
        for key in path:
            at = at[key]
        if data.draw(st.booleans()):
            at[last] = data.draw(st.sampled_from(HOSTILE))
        else:
            del at[last]
    else:
        name = data.draw(st.sampled_from(sorted(arrays)))
        array = arrays[name]
        what = data.draw(st.sampled_from(["drop", "cut", "retype", "poke", "reshape"]))
        if what == "drop":
            del arrays[name]
        elif what == "cut":
            arrays[name] = array[: data.draw(st.integers(0, len(array)))]
        elif what == "retype":
            arrays[name] = array.astype(data.draw(st.sampled_from(["f4", "f8", "i8", "u1", "i4", "u4", "bool"])))
        elif what == "reshape":
            arrays[name] = array.reshape(-1, 1)
        elif array.size:
            poke = np.nan if array.dtype.kind == "f" else data.draw(st.sampled_from([np.iinfo(array.dtype).max, -1, 3]))
            array.reshape(-1)[data.draw(st.integers(0, array.size - 1))] = np.array(poke).astype(array.dtype)
    folder = tmp_path_factory.getbasetemp()
    if refused(signed(body, arrays), folder) is None:
        model = load(folder / "bad.sepx")
        rows = model.features.transform(TEXTS)
        try:  # whatever was loaded, nothing but a clear error can come of it
            model.estimator.ledger_.weights()
            model.estimator.partial_fit(rows, model.estimator.classes_[:1].repeat(6))
        except ValueError:
            pass


def test_each_wrong_thing_is_named(good, tmp_path):
    body, arrays = parts(good)
    coef = arrays["estimator.run0.last_coef"]

    def with_coef(array):
        return signed(body, arrays | {"estimator.run0.last_coef": array})

    nan = coef.copy()
    nan[0, 0] = np.nan
    lines = {
        "not a model file": [b"", b"short", b"PK\x03\x04 a zip file", b"\x00" * 100],
        "cut short": [good[:100], struct.pack("<Q", 1 << 63) + good[8:], struct.pack("<Q", 1 << 40) + good[8:]],
        "not a whole safetensors file": [good[:-1], good + b"x"],
        "no model of separatrix": [write_tensors({"a": np.zeros(3)}, {"format": "pt"}), write_tensors({"a": np.zeros(3)})],
        "format 2, and separatrix .* knows formats up to 1: update it": [
            signed(body | {"format": 2, "version": "9"}, arrays)
        ],
        "damaged": [good[:-1] + bytes([good[-1] ^ 1])],
        "last_coef holds numbers that cannot be: NaN": [with_coef(nan)],
        r"last_coef has shape \(1, 15\)": [with_coef(coef[:, :15])],
        "last_coef holds float32, not f8": [with_coef(coef.astype(np.float32))],
        "last_coef is missing": [signed(body, {k: v for k, v in arrays.items() if not k.endswith("last_coef")})],
        "class is 'os.system', which is not known": [signed(body | {"estimator": {"class": "os.system"}}, arrays)],
    }
    for line, files in lines.items():
        for data in files:
            with pytest.raises(ModelFileError, match=line):
                (tmp_path / "bad.sepx").write_bytes(data)
                load(tmp_path / "bad.sepx")


def test_nothing_huge_is_asked_for(good, tmp_path):
    """Files of a few kilobytes that claim to be giants: refused within a memory that the claims would burst."""
    body, arrays = parts(good)

    def wide(d):
        claimed = json.loads(json.dumps(body))
        claimed["estimator"]["n_features"] = claimed["features"]["state"]["parameters"]["n_features"] = d
        return claimed

    names = {f"estimator.run0.{kind}_coef" for kind in ("last", "late")}
    few = {f"{name}.{part}": np.zeros(1, dtype) for name in names for part, dtype in (("places", "i8"), ("values", "f8"))}
    hollow = {name: array for name, array in arrays.items() if name not in names} | few
    hashed = json.loads(json.dumps(body))
    hashed["features"]["state"]["parameters"]["n_features"] = 2**31 - 1
    overlapping = (
        b'{"a":{"dtype":"F64","shape":[1],"data_offsets":[0,8]},"b":{"dtype":"F64","shape":[1],"data_offsets":[4,12]}}'
    )
    negative = b'{"a":{"dtype":"F64","shape":[-1],"data_offsets":[0,8]}}'
    giant = b'{"a":{"dtype":"F64","shape":[1000000000000000000,100],"data_offsets":[0,8]}}'
    nested = b'{"__metadata__":{"separatrix":"' + b"[" * 500_000 + b'"}}'
    files = [signed(wide(2**40), hollow), signed(wide(2**31), arrays), signed(hashed, arrays)]
    files += [struct.pack("<Q", len(h)) + h + b"\0" * 12 for h in (overlapping, negative, giant, nested)]
    for i, data in enumerate(files):
        (tmp_path / f"{i}.sepx").write_bytes(data)
    code = """if True:
        import resource, sys
        from separatrix import load
        import separatrix.linear, separatrix.text
        from separatrix.modelfile import ModelFileError
        used = int(open("/proc/self/statm").read().split()[0]) * resource.getpagesize()
        resource.setrlimit(resource.RLIMIT_AS, (used + (200 << 20),) * 2)
        for path in sys.argv[1:]:
            try:
                load(path)
            except ModelFileError as error:
                assert "memory" not in str(error).lower(), error
                print("refused")"""
    paths = [str(tmp_path / f"{i}.sepx") for i in range(len(files))]
    done = subprocess.run([sys.executable, "-c", code, *paths], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["refused"] * len(files)


@pytest.mark.parametrize("estimator", ESTIMATORS)
def test_pickle_and_joblib_keep_the_model_too(estimator):
    model = seeded(estimator).fit(X, Y)
    buffer = io.BytesIO()
    joblib.dump(model, buffer)
    buffer.seek(0)
    for again in (joblib.load(buffer), pickle.loads(pickle.dumps(model))):
        same(again, model, X)
        if estimator in ONLINE:
            same(again.partial_fit(X, Y), pickle.loads(pickle.dumps(model)).partial_fit(X, Y), X)


def test_the_code_of_the_document_prints_what_it_shows(capsys):
    text = (Path(__file__).parents[1] / "docs" / "models.md").read_text()
    namespace = {}
    for code, shown in re.findall(r"```python\n(.*?)```\n\n```\n(.*?)```", text, re.S):
        exec(code, namespace)
        assert capsys.readouterr().out.split() == shown.split()
    assert "told" in namespace
