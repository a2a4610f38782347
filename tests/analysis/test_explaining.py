"""A score is the sum of its terms, and of the mistakes that made the weights."""

import json
import math
from datetime import date

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from rich.console import Console
from sklearn.datasets import load_iris

import separatrix
from separatrix import AveragedPerceptron, Model, Perceptron, TableFeatures, TextFeatures, explain, load, save
from separatrix.analysis.explaining import UNSEEN
from separatrix.analysis.explanation import BIAS
from separatrix.engine.rules import RULES
from support.public_estimators import ESTIMATORS, LEARNERS, seeded

X, Y = load_iris(return_X_y=True)
EPS = np.finfo(float).eps
CURVED = (separatrix.VotedPerceptron, separatrix.KernelPerceptron)
LINEAR = [estimator for estimator in ESTIMATORS if estimator not in CURVED]


def spam_filter(**parameters):
    words = pd.DataFrame({"free": [1, 0, 0], "money": [0, 0, 1]})
    model = Perceptron(order="cyclic", max_iter=1, record=True, **parameters)
    return model.fit(words, ["SPAM", "HAM", "SPAM"], sample_weight=[4, 9, 2])


def test_l2_2_the_spam_slide():
    model = spam_filter()
    assert {BIAS: model.intercept_[0], "free": model.coef_[0, 0], "money": model.coef_[0, 1]} == {
        BIAS: -3,
        "free": 4,
        "money": 2,
    }
    told = explain(model, {"free": 1, "money": 1})
    assert told.prediction == "SPAM" and told.score == told.total == told.caused == 3
    assert {(name, value, weight, product) for name, value, weight, product in told.terms} == {
        ("BIAS", 1, -3, -3),
        ("free", 1, 4, 4),
        ("money", 1, 2, 2),
    }
    assert [(cause.example, cause.contribution) for cause in told.causes] == [(1, -9), (0, 8), (2, 4)]
    other = explain(model, {"money": 1})
    assert (other.prediction, other.score) == ("HAM", -1)
    with pytest.raises(ValueError, match="x names 'viagra', which is not among the features"):
        explain(model, {"viagra": 1})


def agrees(told, estimator, row):
    """The score is decision_function's, bit for bit; terms and causes sum to it within the documented rounding."""
    scores = np.atleast_1d(estimator.decision_function(row)[0])
    assert told.prediction == estimator.predict(row)[0]
    ranked = np.sort(scores)
    assert told.score == (scores[0] if len(scores) == 1 else ranked[-1] - ranked[-2])
    dense = row.toarray()[0] if sp.issparse(row) else np.asarray(row)[0]
    size = np.abs(estimator.coef_ * dense).sum() + np.abs(estimator.intercept_).sum()
    assert abs(told.total - told.score) <= 2 * EPS * (len(told.terms) + 2) * size
    return size


@pytest.mark.parametrize("estimator", LINEAR)
@pytest.mark.parametrize("labels", [Y == 1, np.array(["a", "b", "c"])[Y]], ids=["two", "three"])
@pytest.mark.parametrize("make", [np.asarray, sp.csr_matrix], ids=["dense", "csr"])
def test_terms_sum_to_the_score_of_every_classifier(estimator, labels, make):
    model = seeded(estimator).fit(make(X), labels)
    for i in range(0, 150, 15):
        agrees(explain(model, make(X[i : i + 1])), model, make(X[i : i + 1]))
    told = explain(model, X[7])
    assert told.causes is None and told.no_causes
    assert told.no_causes in repr(told)


@pytest.mark.parametrize("estimator", [estimator for estimator in LEARNERS if estimator in LINEAR])
@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize("multi_class", ["joint", "ovr"])
def test_mistakes_sum_to_the_score(estimator, rule, multi_class):
    weight = np.linspace(0.1, 2.0, len(X))
    for labels in (Y == 1, Y):
        model = estimator(rule=rule, multi_class=multi_class, record=True, random_state=0, max_iter=3)
        model.fit(X, labels, sample_weight=weight)
        for i in (0, 60, 149):
            told = explain(model, X[i : i + 1], n=10**6)
            size = agrees(told, model, X[i : i + 1])
            spent = sum(abs(cause.contribution) for cause in told.causes)
            assert told.n_mistakes == len(told.causes) == len(model.ledger_)
            assert abs(told.caused - told.score) <= 1e-12 * (size + spent)
            sizes = [abs(cause.contribution) for cause in told.causes]
            assert sizes == sorted(sizes, reverse=True)


@pytest.mark.filterwarnings("ignore:labels come in runs")
def test_a_stream_that_met_a_class_late_and_a_warm_start():
    model = AveragedPerceptron(record=True)
    for at in (slice(0, 100), slice(100, 150), slice(0, 150)):
        model.partial_fit(X[at], Y[at])
    told = explain(model, X[120:121], n=10**6)
    agrees(told, model, X[120:121])
    assert told.caused == pytest.approx(told.score, rel=1e-9)
    warm = Perceptron(warm_start=True, record=True, random_state=0, max_iter=2).fit(X, Y).fit(X, Y)
    told = explain(warm, X[120:121])
    assert told.start != 0 and told.caused == pytest.approx(told.score, rel=1e-9)
    assert "from the initial weights" in repr(told)


def test_the_training_rows_stand_in_for_stored_ones():
    plain, kept = (AveragedPerceptron(record=record, random_state=0).fit(X, Y) for record in (False, True))
    assert explain(plain, X[3], X=X) == explain(kept, X[3])


@given(
    hnp.arrays(np.int8, (6, 3), elements=st.integers(-9, 9)),
    st.lists(st.sampled_from("ab"), min_size=6, max_size=6).filter(lambda y: len(set(y)) == 2),
)
def test_whole_numbers_sum_exactly(rows, labels):
    model = Perceptron(order="cyclic", max_iter=4, record=True).fit(rows.astype(float), labels)
    for row in rows:
        told = explain(model, row)
        assert told.score == told.total == told.caused == model.decision_function([row])[0]


@pytest.mark.parametrize("columns", ["hashed", "vocabulary"])
def test_words_are_named_and_a_file_explains_the_same(columns, tmp_path):
    texts = ["free money now", "lunch at noon", "win free money", "see you at lunch"]
    features = TextFeatures(columns=columns, ngram_range=(1, 1)).fit(texts)
    model = Perceptron(record=True, random_state=0).fit(features.transform(texts), ["spam", "ham", "spam", "ham"])
    told = explain(Model(model, features), "money at noon")
    assert {term.name for term in told.terms} == {"money", "at", "noon", BIAS}
    assert told == explain(model, "money at noon", features=features)
    save(Model(model, features), tmp_path / "m.sepx")
    assert explain(load(tmp_path / "m.sepx"), "money at noon") == told
    save(Model(model, features), tmp_path / "m.sepx", ledger=False)
    bare = explain(load(tmp_path / "m.sepx"), "money at noon")
    assert bare.terms == told.terms and bare.no_causes.startswith("the model was saved without its ledger; ")
    assert "train with record=True" in bare.no_causes


def test_a_row_of_a_table_is_a_dict_of_its_values_or_of_columns():
    table = {"age": [39, 50, 38, 53], "job": ["clerk", "manager", None, "clerk"]}
    features = TableFeatures().fit(table)
    model = Model(Perceptron(random_state=0).fit(features.transform(table), ["low", "high", "low", "high"]), features)
    told = explain(model, {"age": 50, "job": None})
    assert told == explain(model, {"age": [50], "job": [None]})
    assert told.score == model.decision_function({"age": [50], "job": [None]})[0]
    assert "job is missing" in {term.name for term in told.terms}


def test_a_row_of_a_data_frame_is_read_by_its_names():
    frame = pd.DataFrame({"size": [1.0, 2.0, 3.0, None], "job": ["a", None, "b", "a"]}, index=list("wxyz"))
    model = Model(AveragedPerceptron(random_state=0), TableFeatures()).fit(frame, [0, 1, 1, 0])
    for i in range(4):
        assert explain(model, frame.iloc[i]).to_dict() == explain(model, frame.iloc[[i]]).to_dict()
    numbers = pd.DataFrame({"a": [1.0, 2.0, 0.0], "b": [0.0, 1.0, 3.0]})
    plain = Perceptron(random_state=0).fit(numbers, [0, 1, 1])
    assert explain(plain, numbers.iloc[1][["b", "a"]]).score == explain(plain, numbers.iloc[[1]]).score
    with pytest.raises(ValueError, match="two values of x are called 'a'"):
        explain(plain, pd.Series([1.0, 2.0], index=["a", "a"]))


def test_a_table_is_explained_by_its_columns_too():
    table = {
        "age": [39, 50, 38, 53],
        "job": ["clerk", "manager", None, "clerk"],
        "id": ["a", "b", "c", "d"],
        "note": ["back at noon", "see the long note", "at noon", None],
    }
    features = TableFeatures(roles={"note": "text", "id": "drop"}).fit(table)
    learner = AveragedPerceptron(random_state=0).fit(features.transform(table), ["low", "high", "low", "high"])
    row = {"age": 50, "job": "unheard of", "id": None, "note": "the note at noon " + "and so on " * 9}
    told = explain(Model(learner, features), row)
    assert {part.column: part.value for part in told.columns} == {"BIAS": None} | {k: v for k, v in row.items() if k != "id"}
    assert math.fsum(part.product for part in told.columns) == pytest.approx(told.score, abs=1e-14)
    by = {part.column: part.product for part in told.columns}
    assert by["job"] == 0.0 and by["BIAS"] == learner.intercept_[0]
    assert by["age"] == math.fsum(term.product for term in told.terms if term.name.startswith("age"))
    assert [abs(part.product) for part in told.columns] == sorted((abs(p) for p in by.values()), reverse=True)
    printed = told.text()
    assert "its part" in printed and "the note at noon and so on and so on an…" in printed and "\n\n\n" not in printed
    assert "its part" not in explain(learner, features.transform(table)[:1]).text()
    for single in (
        {"job": ["clerk", "smith"]},
        {"age": [k * k % 37 for k in range(20)]},
    ):
        features, labels = TableFeatures().fit(single), np.arange(len(*single.values())) % 2
        row = {name: values[-1] for name, values in single.items()}
        told = explain(Perceptron().fit(features.transform(single), labels), row, features=features)
        assert len(told.columns) == 2 <= len(told.terms) and "its part" not in told.text()


def test_whatever_a_column_holds_is_shown_and_becomes_json(capsys):
    when = pa.array([10**12, 10**12 + 1] * 10, pa.timestamp("s"))  # after the year 9999
    day = pa.array([date(2026, 1, 1), date(2026, 1, 2)] * 10)
    data = {
        "size": [*range(18), math.nan, 19],
        "code": [b"a\xff", b"b"] * 10,
        "note": ["[/b] \x1b[31m :warning:\n", "x"] * 10,
    }
    table = pa.table(data | {"day": day, "beyond": when, "unused": when})
    features = TableFeatures(roles={"day": "category", "beyond": "category", "unused": "drop", "note": "category"}).fit(
        table
    )
    learner = Perceptron(random_state=0).fit(features.transform(table), [0, 1] * 10)
    told = explain(learner, table[18:19], features=features)
    values = {part["column"]: part["value"] for part in json.loads(json.dumps(told.to_dict(), allow_nan=False))["columns"]}
    assert values["size"] is None and values["code"] == "a\ufffd" and values["day"] == "2026-01-01"
    assert "1000000000000" in values["beyond"] and "unused" not in values
    told = explain(learner, table[16:17], features=features)
    Console(width=100).print(told)
    for printed in (capsys.readouterr().out, told.text()):
        assert "[/b]  [31m :warning:" in printed and "\x1b" not in printed


def test_k_classes_show_the_lead_of_the_winner_over_the_runner_up():
    model = Perceptron(random_state=0, record=True).fit(X, np.array(["setosa", "versicolor", "virginica"])[Y])
    told = explain(model, X[60])
    scores = dict(zip(model.classes_.tolist(), model.decision_function(X[60:61])[0].tolist(), strict=True))
    assert list(told.scores.items()) == sorted(scores.items(), key=lambda item: -item[1])
    (winner, high), (second, low) = list(told.scores.items())[:2]
    assert (told.of, told.against) == (winner, second)
    assert (winner, high) == max(scores.items(), key=lambda item: item[1]) and scores[second] == low
    assert told.score == high - low > 0
    assert f"{winner}: " in repr(told) and "lead" in repr(told)


def test_it_prints_and_becomes_json(capsys):
    told = explain(Perceptron(random_state=0).fit(np.random.default_rng(0).normal(size=(40, 50)), [0, 1] * 20), np.ones(50))
    Console(width=100).print(told)
    printed = capsys.readouterr().out
    assert "… 31 more" in printed and "value × weight" in printed
    assert json.loads(json.dumps(told.to_dict()))["terms"][0]["name"] == told.terms[0].name


def test_what_cannot_be_explained_is_refused():
    with pytest.raises(ValueError, match="VotedPerceptron does not decide by one sum"):
        explain(separatrix.VotedPerceptron().fit(X, Y), X[0])
    model = Perceptron(random_state=0).fit(X, Y)
    for x, why in [
        (X[:2], "one example"),
        (X[0, :3], "x has 3 features"),
        ({"a": 1}, "trained without"),
        ([np.nan] * 4, "NaN"),
    ]:
        with pytest.raises(ValueError, match=why):
            explain(model, x)
    with pytest.raises(ValueError, match="not fitted"):
        explain(Perceptron(), X[0])


def test_a_hashed_text_is_named_by_its_own_n_grams():
    texts = ["free money now", "lunch at noon", "win free money", "see you at lunch"]
    labels = ["spam", "ham", "spam", "ham"]
    features = TextFeatures(n_features=4, ngram_range=(1, 1), keep_names=100).fit(texts)
    model = Model(Perceptron(random_state=0).fit(features.transform(texts), labels), features)
    told = explain(model, "free lunch at noon")
    words = {
        column: {word for word in "free lunch at noon".split() if word in features.names_of(column)} for column in range(4)
    }
    assert {frozenset(term.name.split(" | ")) for term in told.terms if term.name != BIAS} == {
        frozenset(named) for named in words.values() if named
    }
    assert any(" | " in term.name for term in told.terms) and "both have the same hash" in repr(told)
    assert sum(len(features.names_of(column)) for column in range(4)) == 9 > sum(map(len, words.values())) == 4
    strange = explain(model, "zebra")
    assert [term.name for term in strange.terms if term.name != BIAS] == [f"zebra {UNSEEN}"]
    unnamed = TextFeatures(n_features=4, ngram_range=(1, 1), keep_names=0, idf=False)  # neither fitted nor with names
    model = Perceptron(random_state=0).fit(unnamed.transform(texts), labels)
    assert {t.name for t in explain(model, "zebra", features=unnamed).terms} == {"zebra", BIAS}


@pytest.mark.parametrize("signed", [False, True])
@pytest.mark.parametrize("n_features", [7, 64])
def test_the_names_of_a_text_are_those_of_its_columns(signed, n_features):
    features = TextFeatures(n_features=n_features, alternate_sign=signed, idf=False, norm=None, tf="count")
    text = "to be or not to be: that is the question, Ärger"
    names = features.names_in([text])
    alone = {name: np.flatnonzero(features.transform([name]).toarray()[0]) for names in names.values() for name in names}
    for column, those in names.items():
        assert all(" " in name or alone[name].tolist() == [column] for name in those)
    assert set(features.transform([text]).indices) <= set(names)


def test_hashed_categories_and_sets_are_named_by_the_row():
    draw = np.random.default_rng(0)
    jobs = [f"job{k}" for k in draw.integers(0, 60, 400)]
    tags = [f"t{a}|t{b}" for a, b in draw.integers(0, 60, (400, 2))]
    table = {"job": jobs, "tags": tags}
    features = TableFeatures(max_categories=35, n_hashed=4, roles={"tags": "set"}).fit(table)
    model = Model(Perceptron(random_state=0).fit(features.transform(table), draw.integers(0, 2, 400)), features)
    for i in range(0, 400, 20):
        named = {name for term in explain(model, {"job": jobs[i], "tags": tags[i]}).terms for name in term.name.split(" | ")}
        assert named - {BIAS} == {f"job={jobs[i]}", *(f"tags has {tag}" for tag in tags[i].split("|"))}
    assert f"job=baker {UNSEEN}" in {term.name for term in explain(model, {"job": "baker", "tags": None}).terms}


@pytest.mark.parametrize("estimator", [Perceptron, AveragedPerceptron])
@pytest.mark.parametrize("rule", ["perceptron", "pa1", "arow"])
def test_the_score_of_any_class_is_the_sum_of_its_terms_and_mistakes(estimator, rule):
    names = ["setosa", "versicolor", "virginica"]
    for labels in (np.array(names)[Y], np.array(names)[np.minimum(Y, 1)]):
        model = estimator(rule=rule, record=True, random_state=0, max_iter=3).fit(X, labels)
        scores = model.decision_function(X[70:71])[0]
        scores = np.array([-scores, scores]) if np.ndim(scores) == 0 else scores
        for k, name in enumerate(model.classes_.tolist()):
            told = explain(model, X[70], of=name, n=10**6)
            assert (told.score, told.of, told.against) == (scores[k], name, None)
            assert told.total == pytest.approx(told.score, abs=1e-9) and told.caused == pytest.approx(told.score, abs=1e-9)
            assert told.prediction == model.predict(X[70:71])[0] and "score" in repr(told)
        told = explain(model, X[70], of=names[0], against=names[1])
        lead = scores[0] - scores[1] if len(scores) > 2 else scores[0]
        assert told.score == lead and told.caused == pytest.approx(lead, abs=1e-9)


def test_the_threshold_of_two_classes_decides_and_is_named():
    model = Perceptron(random_state=0).fit(X, np.array(["no", "yes"])[(Y == 0).astype(int)])
    score = model.decision_function(X[:1])[0]
    assert explain(model, X[0]).prediction == "yes" and "needs" not in repr(explain(model, X[0]))
    model.threshold_ = score + 1.0
    told = explain(model, X[0])
    assert told.prediction == model.predict(X[:1])[0] == "no" and told.score == score
    assert f"no: the score of yes is {score:.6g}; yes needs a score above {score + 1:.6g}" in repr(told)


def test_the_class_to_explain_must_be_one_of_the_model():
    model = Perceptron(random_state=0).fit(X, np.array(["setosa", "versicolor", "virginica"])[Y])
    with pytest.raises(ValueError, match=r"no class 'setos'; the classes are .*; did you mean 'setosa'"):
        explain(model, X[0], of="setos")
    winner = explain(model, X[0]).prediction
    with pytest.raises(ValueError, match="against itself"):
        explain(model, X[0], against=winner)
    assert explain(Perceptron(random_state=0).fit(X, Y), X[0], of="2").of == 2


def test_a_whole_number_is_shown_with_all_its_digits():
    frame = pd.DataFrame({"seen": 1.7e9 + np.arange(60) % 7, "level": np.arange(60) / 7 + 1e6})
    shown = repr(explain(Model().fit(frame, np.arange(60) * 7 % 11 > 5), frame.iloc[[2]]))
    assert "1700000002" in shown and "1e+06" in shown
