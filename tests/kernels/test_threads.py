"""How many threads there are, and that their number changes no bit."""

import numpy as np
import pytest
import scipy.sparse as sp

from separatrix import AveragedPerceptron
from separatrix.engine import rows as engine_rows
from separatrix.engine.rows import Rows
from separatrix.kernels import threads
from separatrix.kernels.threads import cores, in_order, threads_of


def test_the_environment_and_n_jobs_say_how_many(monkeypatch):
    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
    assert threads_of() == cores() and threads_of(work=threads.LARGE - 1) == 1
    assert threads_of(3, work=0) == 3 and threads_of(-1) == cores() and threads_of(-1000) == 1
    for told, expected in {"3": 3, "5,2": 5, "": cores(), "0": cores(), "many": cores()}.items():
        monkeypatch.setenv("OMP_NUM_THREADS", told)
        assert threads_of() == expected


def test_parts_of_divided_work_are_not_divided_again(monkeypatch):
    monkeypatch.setenv("OMP_NUM_THREADS", "4")
    assert list(in_order(lambda _: threads_of(), range(8), 2)) == [1] * 8
    assert list(in_order(lambda k: k * k, range(50), 3)) == [k * k for k in range(50)]


@pytest.mark.parametrize("form", [np.asarray, np.asfortranarray, sp.csr_matrix], ids=["dense", "copied", "csr"])
@pytest.mark.parametrize("K", [1, 7])
def test_scores_are_the_same(form, K, monkeypatch):
    monkeypatch.setattr(threads, "LARGE", 1)
    monkeypatch.setattr(engine_rows, "BLOCK_ROWS", 97)
    rng = np.random.default_rng(0)
    X, coef, intercept = form(rng.normal(size=(1003, 19))), rng.normal(size=(K, 19)), rng.normal(size=K)
    which = rng.integers(1003, size=500)
    found = []
    for told in ("1", "3"):
        monkeypatch.setenv("OMP_NUM_THREADS", told)
        rows = Rows(X)
        found.append((rows.scores(coef, intercept), rows.scores(coef, intercept, which)))
    for alone, many in zip(*found, strict=True):
        assert np.array_equal(alone, many)
    assert np.array_equal(found[0][0][which], found[0][1])


@pytest.mark.parametrize("n", [300, 6000], ids=["five folds", "one fraction"])
def test_the_choice_of_C_is_the_same(n, monkeypatch):
    monkeypatch.setattr(threads, "LARGE", 1)
    rng = np.random.default_rng(1)
    X, y = rng.normal(size=(n, 5)), rng.integers(3, size=n)
    models = []
    for told in ("1", "2"):
        monkeypatch.setenv("OMP_NUM_THREADS", told)
        models.append(AveragedPerceptron(rule="pa1", C="auto", max_iter=2, random_state=0).fit(X, y))
    assert models[0].C_ == models[1].C_ and models[0].C_scores_ == models[1].C_scores_
    assert np.array_equal(models[0].coef_, models[1].coef_)
