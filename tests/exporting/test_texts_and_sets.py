"""Texts and sets have the same features in scikit-learn, and sets in ONNX."""

import numpy as np
import onnx
import pandas as pd
import pytest
from sklearn.feature_extraction.text import HashingVectorizer

from separatrix import AveragedPerceptron, Model, TableFeatures, TextFeatures
from separatrix.exporting import to_onnx, to_sklearn
from support.exported_models import assert_same, fitted_model, onnx_inputs, run_onnx

TEXTS = [
    "Free entry: call NOW!",
    "Call me a.b",
    "İstanbul ß ﬀ x",
    "",
    "é É e\u0301",
    "日本語 text 日本",
    "don't   stop -- ever",
    "a b c a b a",
]


@pytest.mark.parametrize(
    "parameters",
    [
        {},
        {"columns": "vocabulary"},
        {"columns": "vocabulary", "min_df": 2, "max_features": 10},
        {"analyzer": "char", "ngram_range": (2, 4)},
        {"analyzer": "char_wb", "ngram_range": (2, 3)},
        {"tf": "count", "idf": False, "norm": None},
        {"tf": "binary", "alternate_sign": True},
        {"tf": "count", "alternate_sign": True},
        {"token_pattern": r"(?u)\b\w\w+\b"},
        {"token_pattern": r"\S+", "lowercase": False},
        {"n_features": 7},
        {"dtype": np.float32},
    ],
)
def test_texts_have_the_same_features_in_scikit_learn(parameters):
    features = TextFeatures(**({"n_features": 4096} | parameters)).fit(TEXTS * 3)
    learner = AveragedPerceptron(random_state=0, calibrate="sigmoid").fit(features.transform(TEXTS * 3), [0, 1] * 12)
    model, texts = Model(learner, features), [*TEXTS, "never met", "free at last"]
    made = to_sklearn(model)
    assert abs(made[:-1].transform(texts) - features.transform(texts)).max() <= np.finfo(features.dtype).eps
    assert made.predict(texts).tolist() == model.predict(texts).tolist()
    assert np.allclose(made.predict_proba(texts), model.predict_proba(texts), rtol=1e-6)
    assert isinstance(made[0], HashingVectorizer) == (parameters.get("columns") != "vocabulary")


@pytest.mark.parametrize("delimiter", ["|", ";", ",", "/"])
def test_sets_with_blanks_marks_and_unknown_items(delimiter):
    draw = np.random.default_rng(0)
    items = ["Action", "Sci Fi", "Drama (x)", "a+b", "é", "日本", "A.c", "Axc", "action", "^$[a]"]
    sets = [delimiter.join(draw.choice(items, draw.integers(1, 5), replace=False)) for _ in range(200)]
    sets[:3] = [f"  Action\t{delimiter}\n Drama (x) {delimiter}{delimiter} ", None, "\v é\x0b"]
    frame = pd.DataFrame({"g": sets, "x": draw.normal(size=200)})
    labels = ["é" in (text or "é") for text in sets]
    model = fitted_model(AveragedPerceptron(random_state=0), TableFeatures(roles={"g": "set"}), frame, labels)
    others = ["never met", f"never{delimiter}Action", delimiter, f"Action {delimiter}", "Sci", "Sci Fi2", "Action\x1fé"]
    rows = pd.DataFrame({"g": [*sets, *others], "x": 0.0})
    assert_same(model, rows, sql=False)
    graph = to_onnx(model)
    onnx.checker.check_model(graph, full_check=True)
    outputs = run_onnx(graph, onnx_inputs(graph, rows))
    assert outputs["label"].tolist() == model.predict(rows).tolist()
    assert np.allclose(outputs["scores"][:, 0], model.decision_function(rows), rtol=1e-12, atol=1e-12)
