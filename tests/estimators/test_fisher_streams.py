"""The Fisher discriminant in pieces of any size and form: the same as in one; what cannot be is named, and not learned."""

import copy
import pickle
import tracemalloc

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.datasets import load_iris
from sklearn.exceptions import NotFittedError

from separatrix import FisherDiscriminant
from separatrix.engine.rows import Rows
from support.datasets import IRIS, PAIRS, SPECIES, WDBC

FORMS = [np.asarray, sp.csr_matrix, sp.csr_array, np.asfortranarray]


@pytest.mark.parametrize("size", [1, 7, 64, 1000])
@pytest.mark.parametrize("form", FORMS, ids=["dense", "csr_matrix", "csr_array", "fortran"])
def test_pieces_of_any_size_give_the_batch(size, form):
    for X, y in (WDBC, (IRIS, SPECIES)):
        batch, stream = FisherDiscriminant().fit(X, y), FisherDiscriminant()
        for begin in range(0, len(y), size):
            stream.partial_fit(form(X[begin : begin + size]), y[begin : begin + size])
        assert np.array_equal(stream.classes_, batch.classes_)
        for name in ("means_", "covariances_", "coef_", "intercept_", "scalings_", "projected_variances_"):
            ours, whole = getattr(stream, name), getattr(batch, name)
            assert np.allclose(ours, whole, rtol=1e-10, atol=1e-10 * np.abs(whole).max()), name


def test_a_great_distance_from_the_origin_costs_no_digits():
    rng = np.random.default_rng(0)
    X, y = np.rint(8 * rng.normal(size=(500, 5))), np.arange(500) % 2
    X[y == 1, 2] += 5
    near = FisherDiscriminant().fit(X, y)
    far = FisherDiscriminant()
    for begin in range(0, 500, 33):
        far.partial_fit(X[begin : begin + 33] + 2.0**30, y[begin : begin + 33])
    assert np.allclose(far.covariances_, near.covariances_, rtol=0, atol=1e-6)
    assert np.allclose(far.coef_, near.coef_, rtol=1e-6)
    for form in FORMS[:3]:
        shifted = FisherDiscriminant().fit(form(X + 2.0**30), y)
        assert np.allclose(shifted.coef_, near.coef_, rtol=1e-6)


def test_sparse_rows_are_never_made_dense_as_a_whole_and_give_the_same():
    rng = np.random.default_rng(0)
    X = sp.hstack([sp.random(20_000, 499, density=0.01, random_state=rng), 5.0 + rng.random((20_000, 1))], format="csr")
    y = (np.asarray(X[:, :20].sum(axis=1)).reshape(-1) + 0.2 * rng.normal(size=20_000) > 0.05).astype(int)
    FisherDiscriminant().fit(X[:100, :5], y[:100])
    tracemalloc.start()
    model = FisherDiscriminant().fit(X, y)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 30e6
    dense = FisherDiscriminant().fit(X.toarray(), y)
    assert np.allclose(model.covariances_, dense.covariances_, rtol=0, atol=1e-13)
    assert np.allclose(model.coef_, dense.coef_, rtol=0, atol=1e-10 * np.abs(dense.coef_).max())
    weight = rng.integers(0, 3, size=20_000)
    one, other = (FisherDiscriminant().fit(form, y, sample_weight=weight) for form in (X, X.toarray()))
    assert np.allclose(one.coef_, other.coef_, rtol=0, atol=1e-10 * np.abs(dense.coef_).max())


def test_a_weight_of_two_is_the_example_twice():
    X, y = PAIRS[0]
    weight = np.arange(100) % 4
    weighted = FisherDiscriminant(threshold="priors").fit(X, y, sample_weight=weight)
    repeated = FisherDiscriminant(threshold="priors").fit(np.repeat(X, weight, axis=0), np.repeat(y, weight))
    assert np.allclose(weighted.coef_, repeated.coef_)
    assert np.allclose(weighted.intercept_, repeated.intercept_)
    assert weighted.class_count_.tolist() == repeated.class_count_.tolist() == [73.0, 77.0]


def test_classes_may_come_late_and_in_any_order():
    order = np.argsort(-SPECIES, kind="stable")
    stream = FisherDiscriminant()
    for begin in range(0, 150, 20):
        stream.partial_fit(IRIS[order][begin : begin + 20], SPECIES[order][begin : begin + 20])
    assert stream.classes_.tolist() == [0, 1, 2]
    assert np.allclose(stream.coef_, FisherDiscriminant().fit(IRIS, SPECIES).coef_, rtol=1e-9)
    names = FisherDiscriminant().partial_fit(IRIS[:1], ["setosa"]).partial_fit(IRIS[50:51], ["versicolor"])
    assert names.classes_.tolist() == ["setosa", "versicolor"]


def test_before_a_boundary_can_be_drawn():
    with pytest.raises(NotFittedError):
        FisherDiscriminant().predict(IRIS)
    with pytest.raises(AttributeError, match="no coef_ before it is fitted"):
        FisherDiscriminant().coef_  # noqa: B018
    model = FisherDiscriminant().partial_fit(IRIS[:50], SPECIES[:50])
    assert model.means_.shape == (1, 4)
    with pytest.raises(ValueError, match=r"only 1 class: 0"):
        model.predict(IRIS)
    model = FisherDiscriminant().partial_fit(IRIS[:100], SPECIES[:100], classes=[0, 1, 2])
    with pytest.raises(ValueError, match="class 2 has no example"):
        model.predict(IRIS)
    model.partial_fit(IRIS[100:], SPECIES[100:])
    assert model.score(IRIS, SPECIES) == 0.98


def test_what_a_stream_refuses_it_does_not_learn():
    model = FisherDiscriminant().partial_fit(IRIS, SPECIES)
    before = model.class_count_.tolist()
    with pytest.raises(ValueError, match="'rose' cannot be sorted among"):
        model.partial_fit(IRIS[:1], ["rose"])
    with pytest.raises(ValueError, match=r"not among the classes: \[7\]"):
        model.partial_fit(IRIS[:1], [7], classes=[0, 1, 2])
    with pytest.raises(ValueError, match="NaN at row 0, column 2"):
        model.partial_fit([[1, 2, np.nan, 4]], [9])
    with pytest.raises(ValueError, match="expecting 4 features"):
        model.partial_fit([[1, 2]], [0])
    with pytest.raises(ValueError, match=r"sample_weight\[0\]"):
        model.partial_fit(IRIS[:1], [0], sample_weight=[-1])
    assert model.class_count_.tolist() == before
    assert model.classes_.tolist() == [0, 1, 2]


def test_a_failed_fit_leaves_the_earlier_one_usable():
    model = FisherDiscriminant().fit(IRIS, SPECIES)
    with pytest.raises(ValueError, match="priors has shape"):
        model.set_params(threshold="priors", priors=[1, 1]).fit(IRIS[:, :2], SPECIES)
    assert model.score(IRIS, SPECIES) == 0.98
    assert model.set_params(threshold="midpoint", priors=None).partial_fit(IRIS, SPECIES).class_count_.tolist() == [100] * 3


def test_parameters_count_from_the_next_fit_on():
    model = FisherDiscriminant().partial_fit(*PAIRS[0]).set_params(shrinkage=1.0)
    plain = FisherDiscriminant().fit(*PAIRS[0])
    assert np.allclose(model.coef_, plain.coef_)
    assert model.shrinkage_ == 0.0
    assert model.partial_fit(*PAIRS[0]).shrinkage_ == 1.0


def test_copies_go_on_learning_by_themselves():
    model = FisherDiscriminant().fit(IRIS, SPECIES)
    for again in (pickle.loads(pickle.dumps(model)), copy.deepcopy(model)):
        assert np.array_equal(again.coef_, model.coef_)
        again.partial_fit(IRIS[:10], SPECIES[:10])
        assert again.class_count_.tolist() == [60, 50, 50]
    assert model.class_count_.tolist() == [50, 50, 50]


def test_too_many_features_are_refused_with_the_memory_they_need():
    wide = sp.csr_matrix(np.ones((4, 1))).tocsr()
    wide.resize((4, 60_000))
    with pytest.raises(ValueError, match=r"60,000 features and 2 classes.* take 144\.0 GB, above max_bytes \(4\.3 GB\)"):
        FisherDiscriminant().fit(wide, [0, 1, 0, 1])
    with pytest.raises(ValueError, match="max_bytes"):
        FisherDiscriminant(max_bytes=500).partial_fit(IRIS, SPECIES)


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"shrinkage": 1.5}, "'shrinkage' parameter"),
        ({"shrinkage": "oas"}, "'shrinkage' parameter"),
        ({"threshold": "zero"}, "'threshold' parameter"),
        ({"n_components": 0}, "'n_components' parameter"),
        ({"n_components": 3}, "n_components=3, but 3 classes have 2 projections"),
        ({"threshold": "equal_error"}, "is for two classes, but there are 3"),
        ({"priors": [1, 1, 1]}, "no effect with threshold='midpoint': set threshold=\"priors\""),
        ({"threshold": "priors", "priors": [1, 2]}, r"priors has shape \(2,\), but there are 3 classes"),
        ({"threshold": "priors", "priors": [1, 0, 2]}, "priors must be positive"),
    ],
)
def test_parameters_that_cannot_be(parameters, message):
    with pytest.raises(ValueError, match=message):
        FisherDiscriminant(**parameters).fit(IRIS, SPECIES)


def test_a_class_without_weight_has_no_mean():
    with pytest.raises(ValueError, match="class 2 has no example, or only examples of weight zero"):
        FisherDiscriminant().fit(IRIS, SPECIES, sample_weight=(SPECIES < 2).astype(float))


def test_data_on_disk_are_read_once_and_only_looked_at_again_to_name_what_is_wrong(tmp_path, monkeypatch):
    X, y = WDBC
    np.save(tmp_path / "X.npy", X)
    on_disk = np.load(tmp_path / "X.npy", mmap_mode="r")
    surveys = []
    survey = Rows.survey
    monkeypatch.setattr(Rows, "survey", lambda self, *args, **names: surveys.append(1) or survey(self, *args, **names))
    assert np.array_equal(FisherDiscriminant().fit(on_disk, y).coef_, FisherDiscriminant().fit(X, y).coef_)
    assert not surveys
    X = X.copy()
    X[5, 3] = np.nan
    with pytest.raises(ValueError, match="NaN at row 5, column 3"):
        FisherDiscriminant().fit(X, y)
    with pytest.raises(ValueError, match="NaN at row 5, column 3"):
        FisherDiscriminant().fit(X, y, sample_weight=np.arange(len(y)) != 5)


def test_moments_that_outgrow_float64():
    X = np.array([[1e153, 0.0], [-1e153, 1.0], [1e152, 2.0], [5e152, 0.5]])
    with np.errstate(all="ignore"), pytest.raises(ValueError, match="outgrew float64"):
        FisherDiscriminant().fit(X, [0, 0, 1, 1], sample_weight=[1e10, 1e10, 1, 1])


def test_projections_are_named_and_come_as_tables():
    table = load_iris(as_frame=True).data
    model = FisherDiscriminant().set_output(transform="pandas").fit(table, SPECIES)
    assert model.transform(table).columns.tolist() == ["fisherdiscriminant0", "fisherdiscriminant1"]
