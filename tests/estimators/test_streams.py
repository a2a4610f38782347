"""Promise 2: one by one = batches of any size = in memory, bit for bit, always; sparse = dense on integers."""

import joblib
import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st

from separatrix import AveragedPerceptron, Perceptron
from support.public_estimators import ONLINE
from support.scale import property_examples

FORMS = {
    "dense": np.asarray,
    "float32": lambda X: X.astype(np.float32),
    "csr": sp.csr_matrix,
    "fortran": np.asfortranarray,
}


def stream(model, X, y, cuts, classes=None, weight=None):
    for begin, end in zip([0, *cuts], [*cuts, X.shape[0]], strict=True):
        if begin < end:
            model.partial_fit(X[begin:end], y[begin:end], classes, None if weight is None else weight[begin:end])
    return model


def same(one, other, X):
    assert np.array_equal(one.coef_, other.coef_)
    assert np.array_equal(one.intercept_, other.intercept_)
    assert one.classes_.tolist() == other.classes_.tolist()
    assert list(one.ledger_) == list(other.ledger_)
    assert (one.n_seen_, one.n_mistakes_, one.radius_) == (other.n_seen_, other.n_mistakes_, other.radius_)
    assert (one.mistakes_per_pass_, one.n_iter_) == (other.mistakes_per_pass_, other.n_iter_)
    assert np.array_equal(one.decision_function(X), other.decision_function(X))


@pytest.mark.parametrize("estimator", ONLINE)
@pytest.mark.parametrize("form", FORMS.values(), ids=FORMS)
@pytest.mark.parametrize("K", [2, 4])
@settings(max_examples=property_examples(8))
@given(cuts=st.lists(st.integers(0, 40), max_size=6).map(sorted), seed=st.integers(0, 100))
def test_any_batches_are_one_pass_in_memory(estimator, form, K, cuts, seed):
    rng = np.random.default_rng(seed)
    X, y = form(rng.normal(size=(40, 7))), rng.integers(K, size=40)
    y[:K] = range(K)
    weight = rng.integers(0, 3, size=40) / 2
    whole = estimator(order="cyclic", max_iter=1, record=True).fit(X, y, sample_weight=weight)
    batches = stream(estimator(record=True), X, y, cuts, range(K), weight)
    single = stream(estimator(record=True), X, y, range(1, 40), range(K), weight)
    same(batches, single, X)
    same(whole, single, X)
    assert np.array_equal(single.ledger_.weights(X).coef, single.coef_)


@pytest.mark.parametrize("estimator", ONLINE)
@settings(max_examples=property_examples(15))
@given(cuts=st.lists(st.integers(0, 30), max_size=5).map(sorted), seed=st.integers(0, 100))
def test_classes_first_met_late_come_at_the_same_moment_whatever_the_batches(estimator, cuts, seed):
    rng = np.random.default_rng(seed)
    X, y = rng.normal(size=(30, 3)), np.asarray(list("acbd"))[rng.integers(4, size=30)]
    batches = stream(estimator(record=True), X, y, cuts)
    single = stream(estimator(record=True), X, y, range(1, 30))
    same(batches, single, X)
    assert batches.classes_.tolist() == sorted(set(y))
    assert np.array_equal(batches.ledger_.weights().coef, batches.coef_)
    assert batches.ledger_.verify(X, y)


@pytest.mark.parametrize("multi_class", ["joint", "ovr"])
def test_two_classes_grow_to_three_as_minus_w_and_w(multi_class):
    X, y = np.array([[1.0, 2.0], [3.0, -1.0], [-2.0, 1.0]]), ["b", "d", "b"]
    model = AveragedPerceptron(multi_class=multi_class).partial_fit(X, y)
    w = model.run_.last.weights().coef
    assert w.shape == (1, 2)
    model.partial_fit(np.zeros((1, 2)), ["c"])
    last = model.run_.last.weights()
    assert model.classes_.tolist() == ["b", "c", "d"]
    middle = last.coef[1]
    assert np.array_equal(last.coef, [-w[0], middle, w[0]])
    assert np.array_equal(middle, [0, 0])
    assert model.coef_.shape == (3, 2)
    assert np.array_equal(model.ledger_.weights(np.vstack([X, np.zeros((1, 2))])).coef, model.coef_)


def test_a_class_first_met_late_starts_from_zero_and_sorts_into_its_place():
    model = Perceptron(fit_intercept=False).partial_fit([[1, 0], [0, 1], [1, 1]], ["x", "y", "z"])
    before = model.coef_.copy()
    model.partial_fit([[5, 5]], ["b"])
    assert model.classes_.tolist() == ["b", "x", "y", "z"]
    mistake = list(model.ledger_)[-1]
    assert mistake.up == "b"
    expected = np.vstack([[5.0, 5.0], before])
    expected[model.classes_.tolist().index(mistake.down)] -= 5
    assert np.array_equal(model.coef_, expected)


def test_long_string_labels_are_not_cut_when_they_come_late():
    model = Perceptron().partial_fit([[1.0], [2.0]], ["a", "b"]).partial_fit([[3.0]], ["a much longer label"])
    assert model.classes_.tolist() == ["a", "a much longer label", "b"]


@pytest.mark.parametrize("estimator", ONLINE)
def test_one_class_alone_is_no_mistake_yet(estimator):
    model = estimator(record=True).partial_fit([[1.0], [2.0]], ["only", "only"])
    assert model.ledger_.weights().coef.tolist() == [[0.0]]
    assert (model.n_mistakes_, model.n_seen_) == (0, 2)
    assert model.predict([[9.0]]).tolist() == ["only"]
    model.partial_fit([[-1.0]], ["other"])
    assert model.n_mistakes_ == 1


def test_declared_classes_must_hold_the_labels_and_may_be_added_to():
    with pytest.raises(ValueError, match=r"not among the classes: \['c'\]"):
        Perceptron().partial_fit([[1.0]], ["c"], classes=["a", "b"])
    model = Perceptron().partial_fit([[1.0]], ["a"], classes=["a", "b"])
    model.partial_fit([[1.0]], ["c"], classes=["a", "b", "c"])
    assert model.classes_.tolist() == ["a", "b", "c"]


@pytest.mark.parametrize("estimator", ONLINE)
def test_a_bad_batch_changes_nothing(estimator):
    X, y = np.array([[1.0, 2.0], [3.0, 4.0], [-1.0, 0.0]]), [0, 1, 0]
    model = estimator().partial_fit(X, y)
    before = (model.coef_.copy(), model.n_seen_, len(model.ledger_), model.classes_.tolist())
    bad = X.copy()
    bad[2, 1] = np.nan
    for batch, labels, weight in ((bad, y, None), (X, y, [1, -1, 1]), (X[:, :1], y, None), (X, [0, 1, np.nan], None)):
        with pytest.raises(ValueError):
            model.partial_fit(batch, labels, sample_weight=weight)
    with pytest.raises(ValueError):
        model.partial_fit(X, [0, 1, 7], classes=[0, 1])
    after = (model.coef_, model.n_seen_, len(model.ledger_), model.classes_.tolist())
    assert np.array_equal(before[0], after[0])
    assert before[1:] == after[1:]


def test_fit_then_partial_fit_goes_on_from_the_last_weights():
    rng = np.random.default_rng(0)
    X, y = rng.integers(-3, 4, size=(30, 3)), rng.integers(2, size=30)
    model = AveragedPerceptron(order="cyclic", max_iter=2).fit(X, y)
    model.partial_fit(X[:10], y[:10]).partial_fit(X[10:], y[10:])
    longer = AveragedPerceptron(order="cyclic", max_iter=3).fit(X, y)
    assert np.array_equal(model.coef_, longer.coef_)
    assert model.mistakes_per_pass_ == longer.mistakes_per_pass_
    assert np.array_equal(model.ledger_.weights(np.vstack([X, X])).coef, model.coef_)


@settings(max_examples=property_examples(25))
@given(seed=st.integers(0, 1000), K=st.integers(2, 5))
def test_sparse_dense_and_any_width_are_bit_identical_on_integers(seed, K):
    rng = np.random.default_rng(seed)
    X = rng.integers(-4, 5, size=(25, 11)) * (rng.random((25, 11)) < 0.4)
    y = np.append(np.arange(K), rng.integers(K, size=25 - K))
    wide = sp.csr_array(X.astype(np.float32))
    wide.indices, wide.indptr = wide.indices.astype(np.int64), wide.indptr.astype(np.int64)
    forms = [X, X.astype(np.float32), X.astype(np.int8), sp.csr_matrix(X.astype(float)), wide, sp.coo_matrix(X)]
    for estimator in (Perceptron, AveragedPerceptron):
        models = [estimator(random_state=2, max_iter=4).fit(form, y) for form in forms]
        for model in models[1:]:
            assert np.array_equal(model.coef_, models[0].coef_)
            assert list(model.ledger_) == list(models[0].ledger_)


def test_dense_and_sparse_batches_may_alternate():
    rng = np.random.default_rng(1)
    X, y = rng.integers(-4, 5, size=(40, 6)).astype(float), rng.integers(3, size=40)
    plain = Perceptron().partial_fit(X, y, classes=range(3))
    mixed = Perceptron()
    for k in range(0, 40, 10):
        part = X[k : k + 10]
        mixed.partial_fit(sp.csr_matrix(part) if k % 20 else part, y[k : k + 10], classes=range(3))
    assert np.array_equal(plain.coef_, mixed.coef_)


@pytest.mark.parametrize("estimator", ONLINE)
def test_a_reused_label_buffer_is_not_kept(estimator):
    buffer, model = np.array([0]), estimator()
    model.partial_fit([[1.0]], buffer)
    buffer[0] = 1
    model.partial_fit([[-1.0]], buffer)
    assert (model.classes_.tolist(), model.n_mistakes_) == ([0, 1], 1)


@pytest.mark.parametrize("first", [False, True])
def test_what_is_recorded_is_settled_when_learning_begins(first):
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(40, 3)), rng.integers(3, size=40)
    model = Perceptron(record=first).partial_fit(X[:20], y[:20], classes=range(3))
    model.set_params(record=not first).partial_fit(X[20:], y[20:])
    assert np.array_equal(model.ledger_.weights(X).coef, model.coef_)


def test_late_classes_that_numpy_would_confuse():
    days = np.array(["2021-01-01", "2020-01-01", "2021-01-01"], dtype="datetime64[D]")
    model = Perceptron()
    for k in range(3):
        model.partial_fit([[float(k)]], days[k : k + 1])
    assert len(model.classes_) == 2
    big = Perceptron().partial_fit([[1.0]], np.array([2**62 + 1]))
    with pytest.raises(ValueError, match="cannot be distinguished"):
        big.partial_fit([[1.0]], np.array([1.0]))


def test_the_average_of_a_stream_begins_with_it():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(40, 3)), rng.integers(2, size=40)
    model = AveragedPerceptron(average_from=9, max_iter=2, random_state=0).fit(X, y)
    model.partial_fit(X, y)
    assert model.ledger_.average_after == 80
    assert np.array_equal(model.ledger_.weights(np.vstack([X, X])).coef, model.coef_)


@pytest.mark.parametrize("online", ONLINE)
def test_a_stream_goes_on_from_a_model_that_was_mapped_from_a_file(online, tmp_path):
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(40, 3)), rng.integers(3, size=40)
    model = online(record=True, random_state=0).fit(X, y)
    joblib.dump(model, tmp_path / "model")
    mapped = joblib.load(tmp_path / "model", mmap_mode="r")
    for part in (slice(0, 1), slice(1, 40)):
        model.partial_fit(X[part], y[part])
        mapped.partial_fit(X[part], y[part])
    assert np.array_equal(mapped.coef_, model.coef_) and np.array_equal(mapped.predict(X), model.predict(X))
