"""`save` never writes what `load` refuses: it says so, and an earlier file stays."""

import os

import numpy as np
import pytest

from separatrix import AveragedPerceptron, FisherDiscriminant, KernelPerceptron, MaxMarginClassifier, Perceptron, load, save
from separatrix.modelfile import archive
from separatrix.modelfile.errors import ModelFileError

X, Y = np.array([[0.0, 1.0], [1.0, 0.0], [2.0, 1.0], [1.0, 3.0]]), np.array([0, 1, 1, 0])


def spoilt(model, change):
    change(model)
    return model


def with_infinite_weights(model):
    weights = model.run_.last.weights()
    weights.coef[0, 0] = np.inf
    model.run_.last.load(weights)


MODELS = {
    "weights": (lambda: spoilt(Perceptron().fit(X, Y), with_infinite_weights), "coef holds NaN, infinity"),
    "averages": (lambda: spoilt(AveragedPerceptron().fit(X, Y), with_infinite_weights), "coef holds NaN, infinity"),
    "rule": (lambda: Perceptron().fit(X, Y).set_params(rule="none"), "rule"),
    "kernel": (lambda: KernelPerceptron().fit(X, Y).set_params(predict_with="none"), "predict_with"),
    "margin": (lambda: spoilt(MaxMarginClassifier().fit(X, Y), lambda m: m.coef_.fill(np.nan)), "NaN"),
    "fisher": (lambda: spoilt(FisherDiscriminant().fit(X, Y), lambda m: m.coef_.fill(np.nan)), "NaN"),
}


@pytest.mark.parametrize("name", MODELS)
def test_a_model_that_would_not_load_is_not_written(tmp_path, name):
    made, why = MODELS[name]
    path = tmp_path / "m.sepx"
    save(Perceptron().fit(X, Y), path)
    before = path.read_bytes()
    with pytest.raises(ModelFileError, match=f"this model cannot be saved, since it could not be loaded: .*{why}"):
        save(made(), path)
    assert path.read_bytes() == before and os.listdir(tmp_path) == ["m.sepx"]


def test_facts_come_back_as_json_has_them(tmp_path):
    path = tmp_path / "m.sepx"
    for facts in ({9: "a", 10: "b"}, {True: 1, None: 2}, {"nested": {2: [], 10: {}, 1: None}}):
        try:
            save(Perceptron().fit(X, Y), path, facts=facts)
        except ModelFileError as error:
            assert "facts must be JSON values" in str(error)
        else:
            assert [str(key) for key in load(path).facts] == sorted(load(path).facts)
    save(Perceptron().fit(X, Y), path, facts={9: "a", 10: "b"})
    assert load(path).facts == {"9": "a", "10": "b"}
    for facts in ([1, 2], "text", {"x": {1, 2}}, {"x": float("nan")}):
        with pytest.raises(ModelFileError, match="facts"):
            save(Perceptron().fit(X, Y), tmp_path / "none.sepx", facts=facts)
    assert os.listdir(tmp_path) == ["m.sepx"]


def test_facts_larger_than_load_accepts_are_not_written(tmp_path, monkeypatch):
    path = tmp_path / "m.sepx"
    save(Perceptron().fit(X, Y), path, facts={"text": "x" * 100})
    before = path.read_bytes()
    monkeypatch.setattr(archive, "MOST_HEADER_BYTES", 4000)
    load(path)
    with pytest.raises(ModelFileError, match=r"facts and names take .* bytes, more than the 4,000"):
        save(Perceptron().fit(X, Y), path, facts={"text": "x" * 4000})
    assert path.read_bytes() == before and os.listdir(tmp_path) == ["m.sepx"]


def test_arrays_that_a_file_cannot_hold_are_refused_in_one_line(tmp_path):
    model = Perceptron().fit(X, Y)
    for array in (np.array(["a", "b"]), np.array([object()]), np.array(["2020-01-01"], "M8[D]")):
        with pytest.raises(ModelFileError, match="arrays"):
            save(model, tmp_path / "m.sepx", arrays={"more": array})
    for array in (np.zeros((0, 3)), np.array(1.5), np.arange(6).reshape(2, 3).T, np.array([True]), np.array([1], ">i4")):
        save(model, tmp_path / "m.sepx", arrays={"more": array})
        assert np.array_equal(load(tmp_path / "m.sepx").arrays["more"], array)
