"""What nobody should have to debug: each wrong input gets one error that names it, or the right behaviour."""

import itertools

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
import scipy.sparse as sp

from separatrix import Perceptron
from separatrix.engine.rows import Rows
from support.public_estimators import ERROR_DRIVEN, ESTIMATORS, LEARNERS, ONLINE, seeded, weights_of

X = np.array([[1.0, 2.0], [2.0, -1.0], [-1.0, 0.5], [0.0, -2.0], [3.0, 1.0], [-2.0, -2.0]])
Y = np.array([0, 1, 0, 1, 1, 0])

every = pytest.mark.parametrize("estimator", ESTIMATORS)
every_error_driven = pytest.mark.parametrize("estimator", ERROR_DRIVEN)
every_learner = pytest.mark.parametrize("estimator", LEARNERS)


def broken(value, row=3, column=1):
    bad = X.copy()
    bad[row, column] = value
    return bad


@every
@pytest.mark.parametrize("form", [np.asarray, sp.csr_matrix, np.asfortranarray, lambda a: a.astype(np.float32)])
def test_nan_and_infinity_are_named_by_row_and_column(estimator, form):
    with pytest.raises(ValueError, match=r"X contains NaN at row 3, column 1"):
        estimator().fit(form(broken(np.nan)), Y)
    with pytest.raises(ValueError, match=r"X contains infinity \(inf\) at row 3, column 1"):
        estimator().fit(form(broken(-np.inf)), Y)
    fitted = seeded(estimator).fit(form(X), Y)
    with pytest.raises(ValueError, match=r"NaN at row 3, column 1"):
        fitted.predict(form(broken(np.nan)))
    with pytest.raises(ValueError, match=r"inf.* at row 3, column 1"):
        fitted.decision_function(form(broken(np.inf)))


def test_nan_is_named_by_its_column_in_a_table():
    with pytest.raises(ValueError, match=r"column 1 \('height'\)"):
        Perceptron().fit(pd.DataFrame(broken(np.nan), columns=["width", "height"]), Y)


def test_nan_in_a_row_that_is_not_presented_is_refused_all_the_same():
    with pytest.raises(ValueError, match="NaN at row 3"):
        Perceptron().fit(broken(np.nan), Y, sample_weight=[1, 1, 1, 0, 1, 1])


@every
def test_values_too_large_to_square_are_refused(estimator):
    with pytest.raises(ValueError, match="row 2 of X is too large"):
        estimator().fit(broken(1e200, row=2), Y)


@every
def test_one_class(estimator):
    with pytest.raises(ValueError, match=r"only 1 class: 7"):
        estimator().fit(X, np.full(6, 7))


@every
@pytest.mark.parametrize("form", [np.asarray, sp.csr_matrix])
def test_empty_matrices(estimator, form):
    with pytest.raises(ValueError, match="0 sample"):
        estimator().fit(form(np.empty((0, 2))), [])
    with pytest.raises(ValueError, match="0 feature"):
        estimator().fit(form(np.empty((6, 0))), Y)


@every
@pytest.mark.parametrize("form", [np.asarray, sp.csr_matrix])
def test_wrong_width_at_predict(estimator, form):
    fitted = seeded(estimator).fit(form(X), Y)
    for width in (1, 3):
        with pytest.raises(ValueError, match=f"X has {width} features"):
            fitted.predict(form(np.ones((2, width))))


@every
def test_lengths_that_differ(estimator):
    with pytest.raises(ValueError, match="inconsistent"):
        estimator().fit(X, Y[:4])
    with pytest.raises(ValueError, match=r"sample_weight has shape \(3,\)"):
        estimator().fit(X, Y, sample_weight=[1, 2, 3])


@every
def test_float_labels_are_classes_when_whole_and_refused_when_continuous(estimator):
    fitted = seeded(estimator).fit(X, Y.astype(float))
    assert fitted.classes_.tolist() == [0.0, 1.0]
    with pytest.raises(ValueError, match="continuous"):
        estimator().fit(X, Y + 0.5 * np.arange(6))
    with pytest.raises(ValueError, match="NaN"):
        estimator().fit(X, [0.0, 1.0, np.nan, 1.0, 0.0, 1.0])


NAMES = ["no", "yes", "no", "yes", "yes", "no"]


@every
@pytest.mark.parametrize(
    "labels",
    [
        NAMES,
        np.asarray(NAMES),
        np.asarray(NAMES, dtype=object),
        np.asarray(NAMES, dtype=np.dtypes.StringDType()),
        pd.Series(NAMES),
        pd.Series(NAMES, dtype="string"),
        pd.Series(NAMES, dtype="category"),
        pl.Series(NAMES),
        pl.Series(NAMES, dtype=pl.Categorical),
        pa.array(NAMES),
        pa.chunked_array([NAMES[:2], NAMES[2:]]),
    ],
    ids=["list", "U", "object", "T", "pandas", "pandas string", "category", "polars", "polars cat", "arrow", "chunked"],
)
def test_string_labels_of_any_type(estimator, labels):
    fitted = seeded(estimator).fit(X, labels)
    assert fitted.classes_.tolist() == ["no", "yes"]
    assert set(fitted.predict(X)) <= {"no", "yes"}
    assert np.array_equal(weights_of(fitted), weights_of(seeded(estimator).fit(X, Y)))
    if estimator in ONLINE:
        assert estimator().partial_fit(X, labels).classes_.tolist() == ["no", "yes"]


@every_error_driven
def test_labels_of_different_kinds(estimator):
    mixed = np.asarray([0, "a", 0, "a", 0, "a"], dtype=object)
    with pytest.raises(ValueError, match="labels of different kinds: int, str"):
        estimator().fit(X, mixed)
    with pytest.raises(ValueError, match="labels of different kinds: int, str"):
        estimator(early_stopping=True).fit(X, Y, X_val=X, y_val=mixed)


@every_error_driven
@pytest.mark.parametrize("missing", [None, float("nan"), pd.NA, pd.NaT])
def test_a_missing_label_is_named_by_its_row(estimator, missing):
    with pytest.raises(ValueError, match="y contains NaN or None: row 1 has no label"):
        estimator().fit(X, np.asarray(["b", missing, "b", "a", "b", "a"], dtype=object))


def test_a_string_after_numbers_is_refused_in_a_stream():
    model = Perceptron().partial_fit(X, Y)
    with pytest.raises(ValueError, match="'maybe' cannot be sorted among"):
        model.partial_fit(X[:1], ["maybe"])


@every
def test_object_features_are_read_as_numbers_or_refused(estimator):
    fitted = seeded(estimator).fit(X.astype(object), Y)
    assert np.array_equal(weights_of(fitted), weights_of(seeded(estimator).fit(X, Y)))
    words = X.astype(object)
    words[2, 0] = "tall"
    with pytest.raises(ValueError, match="tall"):
        estimator().fit(words, Y)


@every
def test_duplicate_and_unsorted_entries_are_summed_and_sorted(estimator):
    indptr, indices = [0, 2, 4, 6, 8, 10, 12], [0, 1, 1, 0, 0, 0, 1, 1, 1, 0, 0, 1]
    data = [1.0, 2.0, -1.0, 2.0, -3.0, 2.0, -1.0, -1.0, 1.0, 3.0, -2.0, -2.0]
    messy = sp.csr_matrix((data, indices, indptr), shape=(6, 2))
    before = messy.data.copy()
    clean = sp.csr_matrix(messy.toarray())
    one, other = (seeded(estimator).fit(m, Y) for m in (messy, clean))
    assert np.array_equal(weights_of(one), weights_of(other))
    assert np.array_equal(one.decision_function(messy), other.decision_function(clean))
    assert np.array_equal(messy.data, before)


@every
def test_indices_out_of_order_are_read_where_they_lie(estimator):
    rng = np.random.default_rng(0)
    table = np.rint(4 * rng.normal(size=(30, 6))) * (rng.random((30, 6)) < 0.6)
    tidy = sp.csr_matrix(table)
    backwards = np.concatenate([np.arange(e - 1, b - 1, -1) for b, e in zip(tidy.indptr, tidy.indptr[1:], strict=False)])
    messy = sp.csr_matrix((tidy.data[backwards], tidy.indices[backwards], tidy.indptr), shape=tidy.shape)
    y = np.arange(30) % 2
    one, other = (seeded(estimator).fit(m, y) for m in (messy, tidy))
    assert np.allclose(weights_of(one), weights_of(other), rtol=0, atol=1e-6 if estimator not in LEARNERS else 0)
    rows = Rows(messy)
    rows.survey()
    assert rows.source is messy


@every
def test_a_broken_csr_matrix_is_refused_not_read(estimator):
    fine = [0, 1], [0, 1, 2], [1.0, 1.0]
    wrong = [
        ([0, 9], *fine[1:]),
        ([0, -1], *fine[1:]),
        ([0, 1], [0, 1, 99], fine[2]),
        ([0, 1], [0, 2, 1], fine[2]),
        ([0, 1], [0, 1], fine[2]),
        (*fine[:2], [1.0]),
        ([0], *fine[1:]),
    ]
    for indices, indptr, data in wrong:
        good = sp.csr_matrix(np.eye(2))
        good.indices, good.indptr, good.data = np.asarray(indices, np.int32), np.asarray(indptr, np.int32), np.asarray(data)
        with pytest.raises(ValueError, match=r"CSR matrix X is broken|indptr"):
            estimator().fit(good, [0, 1])
        fitted = seeded(estimator).fit(X, Y)
        with pytest.raises(ValueError, match=r"CSR matrix X is broken|indptr"):
            fitted.predict(good)


@every
@pytest.mark.parametrize("weight", [-1.0, np.nan, np.inf])
def test_weights_that_cannot_be(estimator, weight):
    with pytest.raises(ValueError, match=r"sample_weight\[2\] is"):
        estimator().fit(X, Y, sample_weight=[1, 1, weight, 1, 1, 1])


@every_learner
@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("max_iter", 0),
        ("max_iter", -3),
        ("max_iter", 1.5),
        ("rule", "adaline"),
        ("tie", "0"),
        ("order", "sorted"),
        ("multi_class", "multinomial"),
        ("validation_fraction", 0.0),
        ("validation_fraction", 1.0),
        ("n_iter_no_change", 0),
        ("class_weight", "heavy"),
        ("random_state", "today"),
        ("fit_intercept", "yes"),
    ],
)
def test_parameters_out_of_range_are_named(estimator, name, value):
    with pytest.raises(ValueError, match=f"'{name}' parameter"):
        estimator(**{name: value}).fit(X, Y)


@every_error_driven
def test_plus_one_has_no_meaning_for_three_joint_classes(estimator):
    with pytest.raises(ValueError, match='tie="first"'):
        estimator(tie="+1").fit(X, [0, 1, 2, 0, 1, 2])
    estimator(tie="+1", multi_class="ovr", random_state=0).fit(X, [0, 1, 2, 0, 1, 2])


@every_error_driven
def test_held_out_data_that_cannot_serve(estimator):
    model = estimator(early_stopping=True)
    with pytest.raises(ValueError, match="given together"):
        model.fit(X, Y, X_val=X)
    with pytest.raises(ValueError, match="not among the classes"):
        model.fit(X, Y, X_val=X, y_val=Y + 5)
    with pytest.raises(ValueError, match="NaN at row 3"):
        model.fit(X, Y, X_val=broken(np.nan), y_val=Y)
    with pytest.raises(ValueError, match="features"):
        model.fit(X, Y, X_val=X[:, :1], y_val=Y)
    with pytest.raises(ValueError, match="leaves none to hold out"):
        model.fit(X[:2], Y[:2])


@every_learner
def test_before_fit_there_is_nothing_to_use(estimator):
    from sklearn.exceptions import NotFittedError

    with pytest.raises(NotFittedError):
        estimator().predict(X)
    with pytest.raises(AttributeError, match="before it is fitted"):
        estimator().coef_  # noqa: B018


@every_learner
def test_all_zero_rows_and_features(estimator):
    fitted = estimator(random_state=0, fit_intercept=False, max_iter=3).fit(np.zeros((4, 2)), [0, 1, 0, 1])
    assert np.array_equal(fitted.coef_, [[0, 0]])
    assert fitted.radius_ == 0.0
    assert fitted.predict(np.zeros((1, 2))).tolist() == [0]
    assert fitted.n_mistakes_ == 12
    empty = sp.csr_matrix((4, 2))
    assert estimator(random_state=0, max_iter=3).fit(empty, [0, 1, 0, 1]).n_mistakes_ > 0


def test_complex_numbers_and_deep_arrays():
    with pytest.raises(ValueError, match="Complex"):
        Perceptron().fit(X.astype(complex), Y)
    with pytest.raises(ValueError, match="dim"):
        Perceptron().fit(X[None], Y[:1])


@every_learner
def test_a_failed_fit_on_other_features_cannot_be_used_by_mistake(estimator):
    fitted = estimator(random_state=0).fit(X, Y)
    wide = np.full((6, 5), np.nan)
    with pytest.raises(ValueError, match="NaN"):
        fitted.fit(wide, Y)
    assert fitted.predict(X).shape == (6,)
    with pytest.raises(ValueError, match="expecting 2 features"):
        fitted.predict(np.ones((1, 5)))
    if estimator in ONLINE:
        with pytest.raises(ValueError, match="expecting 2 features"):
            fitted.partial_fit(np.ones((1, 5)), [1])
    fitted.n_features_in_ = 5
    with pytest.raises(ValueError, match="weights are for 2 features, but X has 5"):
        fitted.predict(np.ones((1, 5)))


@every_error_driven
@pytest.mark.parametrize("weight", [-1.0, np.nan])
def test_class_weights_that_cannot_be(estimator, weight):
    with pytest.raises(ValueError, match=r"class_weight\[1\] is"):
        estimator(class_weight={1: weight}).fit(X, Y)
    with pytest.raises(ValueError, match="class_weight names 'one'"):
        estimator(class_weight={"one": 2.0}).fit(X, Y)
    with pytest.raises(ValueError, match="class_weight is zero for every class"):
        estimator(class_weight={0: 0, 1: 0}).fit(X, Y)
    with pytest.raises(ValueError, match="class_weight times sample_weight is zero for every example"):
        estimator(class_weight={0: 0}).fit(X, Y, sample_weight=1 - Y)


@every_error_driven
def test_weights_that_outgrow_float64(estimator):
    with np.errstate(all="ignore"), pytest.raises(ValueError, match="outgrew float64"):
        estimator(random_state=0).fit(X, Y, sample_weight=np.full(6, 1e308))


@pytest.mark.parametrize("estimator", ONLINE)
def test_declared_classes_that_cannot_be(estimator):
    for classes in (3, [], [[0, 1]]):
        with pytest.raises(ValueError, match="classes must be a list"):
            estimator().partial_fit(X, Y, classes=classes)
    assert estimator().partial_fit(X, Y, classes={1, 0}).classes_.tolist() == [0, 1]


@pytest.mark.parametrize("estimator", ONLINE)
def test_what_defines_the_weights_cannot_change_in_mid_stream(estimator):
    model = estimator().partial_fit(X, Y)
    for change in ({"fit_intercept": False}, {"tie": "+1"}, {"multi_class": "ovr"}):
        with pytest.raises(ValueError, match="cannot change between calls"):
            model.set_params(**change).partial_fit(X, Y)
        model.set_params(fit_intercept=True, tie="mistake", multi_class="joint")
    with pytest.raises(ValueError, match="cannot change in a warm start; set warm_start=False"):
        model.set_params(tie="+1", warm_start=True).fit(X, Y)
    assert model.set_params(warm_start=False).fit(X, Y).tie == "+1"


@every_error_driven
def test_a_text_column_is_named(estimator):
    table = pd.DataFrame({"height": X[:, 0], "colour": list("rgbrgb")})
    with pytest.raises(ValueError, match="column 'colour' holds 'r'"):
        estimator().fit(table, Y)
    with pytest.raises(ValueError, match="column 'colour' holds 'r'"):
        estimator().fit(table.assign(colour=table["colour"].astype("category")), Y)


@every_error_driven
def test_a_failed_first_fit_is_no_fit(estimator):
    from sklearn.exceptions import NotFittedError

    model = estimator()
    with pytest.raises(ValueError, match="only 1 class"):
        model.fit(X, np.zeros(6, int))
    with pytest.raises(NotFittedError):
        model.predict(X)


def test_a_matrix_lost_to_rounding_is_said_not_learned_with():
    refused = 0
    for seed, span in itertools.product(range(4), (1e3, 1e6, 1e9, 1e12, 1e15)):
        rng = np.random.default_rng(seed)
        X = rng.normal(size=(500, 6)) * [1, 1, 1, span, 1 / span, 1]
        y = (X[:, 0] + X[:, 1] + 0.3 * rng.normal(size=500) > 0).astype(int)
        try:
            assert Perceptron(rule="arow-full", random_state=0).fit(X, y).score(X, y) > 0.9
        except ValueError as error:
            assert "'arow-full' has lost its matrix to rounding: the features span" in str(error) and span > 1e6
            refused += 1
    assert refused >= 8


@every
def test_a_column_that_holds_no_numbers_is_named_with_a_value_of_it(estimator):
    frame = pd.DataFrame(X, columns=["width", "height"])
    dates, words = pd.date_range("2024-03-01", periods=6), [1, 2, "x", 3, 4, 5]
    for column, shown in ((dates, "2024-03-01"), (words, "'x'")):
        with pytest.raises(ValueError, match=f"column 'late' holds {shown}.*, which is not a number.*TableFeatures"):
            estimator().fit(frame.assign(late=column), Y)
        with pytest.raises(ValueError, match=f"column 'late' holds {shown}"):
            estimator().fit(pd.DataFrame({"late": column}), Y)


@every
def test_the_name_of_a_column_is_not_its_labels(estimator):
    with pytest.raises(ValueError, match=r"y is 'kind', one text: pass the labels themselves, .*X\['kind'\]"):
        estimator().fit(pd.DataFrame(X, columns=["width", "height"]).assign(kind=Y), "kind")
