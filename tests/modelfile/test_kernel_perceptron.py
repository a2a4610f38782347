"""A kernel perceptron in a model file: its mistakes and their rows, with a budget or without."""

import numpy as np
import pytest
import scipy.sparse as sp
from safetensors.numpy import load as read_tensors
from sklearn.datasets import load_digits, load_iris

from separatrix import KernelPerceptron, load, save
from separatrix.modelfile.errors import ModelFileError
from support.round_trip import round_trip, same

IRIS = load_iris(return_X_y=True)
DIGITS = tuple(part[:400] for part in load_digits(return_X_y=True))


@pytest.mark.parametrize("kernel", ["linear", "poly", "rbf"])
@pytest.mark.parametrize("budget, record", [(None, False), (None, True), (20, False), (20, True)])
@pytest.mark.parametrize("y", [IRIS[1] > 0, IRIS[1]], ids=["two", "three"])
def test_every_kernel_and_budget_comes_back(kernel, budget, record, y, tmp_path):
    model = KernelPerceptron(kernel=kernel, budget=budget, record=record, degree=2, random_state=0).fit(IRIS[0], y)
    again = round_trip(model, tmp_path / "m.sepx")
    same(again, model, IRIS[0])
    if record or budget is None:
        for how in ("last", "averaged", "voted", "random"):
            one, other = (m.set_params(predict_with=how).decision_function(IRIS[0]) for m in (again, model))
            assert np.array_equal(one, other)
        step = model.n_seen_ // 2
        assert np.array_equal(again.after(step).decision_function(IRIS[0]), model.after(step).decision_function(IRIS[0]))
        assert again.ledger_.verify(IRIS[0], y) and model.ledger_.verify(IRIS[0], y)


@pytest.mark.parametrize("form", [np.asarray, sp.csr_matrix, lambda X: X.astype(np.float32), lambda X: X.astype(np.int16)])
def test_rows_of_any_kind_come_back(form, tmp_path):
    X, y = form(DIGITS[0]), DIGITS[1]
    model = KernelPerceptron(early_stopping=True, random_state=1).fit(X, y)
    same(round_trip(model, tmp_path / "m.sepx"), model, X)


def test_precomputed_values_need_no_rows(tmp_path):
    G = DIGITS[0] @ DIGITS[0].T
    model = KernelPerceptron(kernel="precomputed", order="cyclic").fit(G, DIGITS[1])
    same(round_trip(model, tmp_path / "m.sepx"), model, G)
    assert not any("rows" in name for name in read_tensors((tmp_path / "m.sepx").read_bytes()))


def test_a_cycle_comes_back(tmp_path):
    X, y = [[1, 1], [1, -1], [-1, 1], [-1, -1]], [1, -1, -1, 1]
    model = KernelPerceptron(kernel="linear", fit_intercept=False, order="cyclic", max_iter=5).fit(X, y)
    assert model.cycle_ is not None and round_trip(model, tmp_path / "m.sepx").cycle_ == model.cycle_


def test_what_cannot_be_kept_is_refused(tmp_path):
    own = KernelPerceptron(kernel=lambda A, B: A @ B.T).fit(*IRIS)
    with pytest.raises(ModelFileError, match="kernel that is a function"):
        save(own, tmp_path / "m.sepx")
    with pytest.raises(ModelFileError, match="predicts with its mistakes"):
        save(KernelPerceptron().fit(*IRIS), tmp_path / "m.sepx", ledger=False)
    assert not list(tmp_path.iterdir())


def test_the_file_predicts_in_a_pipeline_of_verbs(tmp_path):
    save(KernelPerceptron(random_state=0).fit(*IRIS), tmp_path / "m.sepx")
    assert load(tmp_path / "m.sepx").predict(IRIS[0]).shape == (150,)
