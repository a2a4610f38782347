"""A column that alone predicts the label is named, and honest columns are not."""

import warnings

import numpy as np
import pytest
from sklearn.datasets import load_iris
from sklearn.pipeline import make_pipeline

from separatrix import AveragedPerceptron, TableFeatures
from separatrix.features.columns import leaks

DRAW = np.random.default_rng(0)


def named(table, labels, **roles) -> dict[str, str]:
    """Return the columns that are named after a fit, with the warning on each, which `notes_` must repeat."""
    features = TableFeatures(roles=roles)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        features.fit_transform(table, labels)
    found = {text.split("'")[1]: text for text in (str(warning.message) for warning in caught)}
    assert {note.split("'")[1] for note in features.notes_ if "alone predicts the label" in note} == found.keys()
    return found


def problem(n: int, *shares: float) -> tuple[dict[str, np.ndarray], np.ndarray]:
    """Return a table of three honest columns, and labels 0, 1, … of these shares."""
    labels = DRAW.choice(len(shares), n, p=shares)
    honest = {
        "age": np.round(DRAW.normal(40 + 5 * labels, 10)),
        "job": DRAW.choice(["clerk", "cook", "smith"], n),
        "score": DRAW.normal(2 * labels),
    }
    return honest, labels


@pytest.mark.parametrize("shares", [(0.5, 0.5), (0.9, 0.1), (0.97, 0.03), (0.5, 0.3, 0.2)])
@pytest.mark.parametrize("n", [600, 30_000])
def test_the_label_in_other_words_is_named(n, shares):
    table, labels = problem(n, *shares)
    words = np.array(["paid back", "defaulted", "open"])[labels]
    few_wrong = np.where(DRAW.random(n) < 0.001, 0, labels)
    amount = np.where(labels > 0, DRAW.lognormal(5, 1, n) + 1e6 * labels, 0.0)
    flag = labels > 0
    table |= {"label": labels, "words": words, "recovered": amount, "nearly": few_wrong}
    if len(shares) == 2:
        table["flag"] = flag
    found = named(table, labels)
    assert found.keys() == table.keys() - {"age", "job", "score"}
    for name, text in found.items():
        assert text.startswith(f"column {name!r} alone predicts the label (accuracy ")
        assert text.endswith(f"is it known at prediction time? If not, leave it out with roles={{{name!r}: 'drop'}}")


def test_a_leak_is_asked_about_only_where_the_column_is_used():
    table, labels = problem(500, 0.6, 0.4)
    table["label"] = labels
    assert named(table, labels, label="drop") == {}


def test_an_identifier_that_runs_through_the_classes_is_named_if_it_is_kept():
    for n, shares in ((300, (0.5, 0.5)), (3000, (0.1,) * 10), (50_000, (0.9, 0.1))):
        table, labels = problem(n, *shares)
        labels = np.sort(labels)
        table = {"id": np.arange(n)} | table
        assert named(table, labels) == {}
        assert named(table, labels, id="number").keys() == {"id"}


def test_honest_columns_are_not_named():
    X, y = load_iris(return_X_y=True)
    assert named(X, y) == {}
    table, labels = problem(5000, 0.99, 0.01)
    table["constant"] = np.zeros(5000)
    table["number of the row"] = DRAW.permutation(5000)
    assert named(table, labels) == {}
    good = np.where(
        DRAW.random(5000) < 0.02, DRAW.integers(0, 2, 5000), table["age"] > 40
    )  # about 0.99, not of a rare class
    assert named({"good": good.astype(float), "age": table["age"]}, labels) == {}


def test_a_column_as_good_as_the_most_frequent_class_is_not_named():
    labels = (DRAW.random(10_000) < 0.004).astype(int)  # the majority alone has accuracy 0.996
    half = np.where(DRAW.random(10_000) < 0.5, labels, 0)
    assert named({"half": half, "x": DRAW.normal(size=10_000)}, labels) == {}


def test_few_rows_and_rare_classes_show_nothing():
    labels = np.arange(40) % 2
    assert named({"same": labels, "x": DRAW.normal(size=40)}, labels) == {}
    labels = (np.arange(1000) < 9).astype(int)
    assert named({"same": labels, "x": DRAW.normal(size=1000)}, labels) == {}
    labels = (np.arange(1000) < 15).astype(int)
    assert named({"same": labels, "x": DRAW.normal(size=1000)}, labels).keys() == {"same"}


def test_labels_that_are_measurements_or_none_are_passed_over():
    table, labels = problem(500, 0.6, 0.4)
    table["same"] = labels
    assert named(table, None) == {}
    assert named(table, labels + DRAW.random(500)) == {}
    assert named(table, np.stack([labels, labels], axis=1)) == {}
    assert named(table, labels.astype(float)).keys() == {"same"}
    assert named(table, [bool(label) for label in labels]).keys() == {"same"}


def test_missing_values_may_tell_the_label():
    table, labels = problem(1000, 0.6, 0.4)
    table["closed on"] = np.where(labels, DRAW.normal(size=1000), np.nan)
    table["reason"] = [DRAW.choice(["a", "b"]) if label else None for label in labels]
    assert named(table, labels).keys() == {"closed on", "reason"}


def test_a_pipeline_warns_and_the_note_is_stored():
    table, labels = problem(500, 0.6, 0.4)
    table["same"] = np.where(labels, "y", "n")
    model = make_pipeline(TableFeatures(), AveragedPerceptron())
    with pytest.warns(UserWarning, match=r"column 'same' alone predicts the label \(accuracy 1.000 on 500 training rows\)"):
        model.fit(table, labels)
    restored = TableFeatures.from_state(*model[0].get_state())
    assert restored.notes_ == model[0].notes_


def test_no_more_rows_are_sampled_than_the_limits_allow(monkeypatch):
    sizes = []
    search = leaks.telling_columns
    monkeypatch.setattr(
        leaks, "telling_columns", lambda columns, labels: sizes.append(len(labels)) or search(columns, labels)
    )
    table, labels = problem(50_000, 0.6, 0.4)
    TableFeatures().fit_transform(table, labels)
    wide = {f"column {j}": labels[:20_000] for j in range(1000)}
    with pytest.warns(UserWarning, match="alone predicts the label") as caught:
        TableFeatures().fit_transform(wide, labels[:20_000])
    assert ["and 995 more columns do" in str(warning.message) for warning in caught] == [False] * 4 + [True]
    assert 9_500 < sizes[0] < 10_500
    assert 1_900 < sizes[1] < 2_300


@pytest.mark.parametrize("seed", range(5))
def test_the_counts_agree_with_brute_force(seed):
    draw = np.random.default_rng(seed)
    n = 60
    labels, codes = draw.integers(0, 3, n), draw.integers(0, 12, n)
    by_value = by_neighbours = 0
    for i in range(n):
        others = np.delete(labels, i)[np.delete(codes, i) == codes[i]]
        counts = np.bincount(others, minlength=3)
        by_value += counts[labels[i]] > 0 and counts[labels[i]] > np.delete(counts, labels[i]).max()
        near = [labels[j] for j in range(max(0, i - 3), min(n, i + 4)) if j != i]
        by_neighbours += 2 * near.count(labels[i]) >= len(near)
    assert leaks._right_by_value(codes, labels, 3) == by_value
    assert leaks._right_by_neighbours(labels) == by_neighbours
