"""The largest weights and the most important columns of a model, by name."""

import json

import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import load_iris

import separatrix
from separatrix import AveragedPerceptron, Model, Perceptron, TableFeatures, TextFeatures

X, Y = load_iris(return_X_y=True)


def test_importances_list_the_largest_weights_by_name():
    texts = ["free money now", "lunch at noon", "win free money", "see you at lunch"]
    model = Model(Perceptron(random_state=0), TextFeatures(ngram_range=(1, 1))).fit(texts, ["spam", "ham", "spam", "ham"])
    listed = model.importances(3)
    coef = model.estimator.coef_[0]
    largest = np.sort(np.abs(coef))[::-1][:3]
    assert [each.importance for each in listed] == largest.tolist() and len(listed) == 3
    for each in listed:
        assert coef[model.features.transform([each.name]).indices[0]] == each.weight and abs(each.weight) == each.importance
    assert "+ for spam, - for ham" in repr(listed) and "the size of the weight" in repr(listed)
    document = json.loads(json.dumps(listed.to_dict()))
    assert [weight["name"] for weight in document["classes"][0]["weights"]] == [each.name for each in listed]
    with pytest.raises(ValueError, match="n is 0"):
        model.importances(0)
    with pytest.raises(ValueError, match="VotedPerceptron does not decide by one sum"):
        Model(separatrix.VotedPerceptron().fit(X, Y)).importances()


def test_importances_of_k_classes_are_of_what_differs_between_them():
    model = Model(Perceptron(random_state=0, multi_class="ovr").fit(X, Y))
    coef = model.estimator.coef_
    listed = model.importances(2)
    assert list(listed.by_class) == [0, 1, 2]
    for k, weights in listed.by_class.items():
        deciding = np.abs(coef[k] - coef.mean(axis=0))
        assert [each.name for each in weights] == [f"x{j}" for j in np.argsort(-deciding)[:2]]
        assert [each.weight for each in weights] == coef[k][np.argsort(-deciding)[:2]].tolist()
    assert "different scales cannot be compared" in listed.measure
    scaled = Model(Perceptron(random_state=0).fit(X, Y)).importances(4, X=X)
    for each in scaled:
        j, coef = int(each.name[1:]), Perceptron(random_state=0).fit(X, Y).coef_
        assert each.importance == pytest.approx(abs(coef[each.label, j] - coef[:, j].mean()) * X[:, j].std())
    assert "over the 150 rows given" in scaled.measure


@pytest.mark.parametrize("code", ["thermometer", "one-hot"])
def test_a_column_is_as_important_as_its_part_of_the_score_varies(code):
    draw = np.random.default_rng(1)
    table = pd.DataFrame(
        {
            "size": np.where(draw.random(300) < 0.1, np.nan, draw.normal(size=300).round(1)),
            "job": draw.choice(["clerk", "smith", "cook"], 300),
            "is_new": draw.random(300) < 0.5,
            "since": pd.to_datetime("2024-01-01") + pd.to_timedelta(draw.integers(0, 700, 300), "D"),
            "note": draw.choice(["at noon", "see you"], 300),
        }
    )
    labels = np.where(table["size"].fillna(1) + (table["job"] == "cook") > 0.3, "yes", "no")
    model = Model(AveragedPerceptron(random_state=0), TableFeatures(code=code, roles={"note": "text"})).fit(table, labels)
    features = model.features
    listed = {part.column: part.importance for part in model.importances().columns}
    assert list(listed.values())[-1] is None and listed["note"] is None
    parts = {name: [] for name in table}
    for i in range(len(table)):
        row = features.transform(table[i : i + 1])
        products = (model.estimator.coef_[0][row.indices] * row.data).tolist()
        for name, part in features.sums_by_column(row.indices, products).items():
            parts[name].append(part)
    for name in ("size", "job", "is_new"):
        assert listed[name] == pytest.approx(np.ptp(parts[name]))
    assert listed["since"] >= np.ptp(parts["since"]) > 0
    measured = model.importances(X=table)
    assert {part.column: part.importance for part in measured.columns} == pytest.approx(
        {name: np.std(part) for name, part in parts.items()}
    )
    assert "importance of a column" in repr(measured) and "size" in repr(measured)
