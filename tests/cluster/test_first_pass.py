"""The first pass is made while shards are read, where that needs nothing from other shards, and is the same."""

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.datasets import load_digits

from separatrix import AveragedPerceptron, Perceptron
from separatrix.cluster import fit
from separatrix.cluster.engines import Engine
from support.kill_workers import same

X, Y = load_digits(return_X_y=True)
X, Y = X[:600] / 16, Y[:600] % 3
FORMS = {"dense": np.asarray, "csr": sp.csr_matrix}


def cut(X, y, shards):
    return [(X[s::shards], y[s::shards]) for s in range(shards)]


class Rounds(Engine):
    """An engine that notes what it was asked to do."""

    def __init__(self):
        super().__init__()
        self.rounds = []

    def reduce(self, work, numbers, report=lambda done: None):
        self.rounds.append(type(work).__name__)
        return super().reduce(work, numbers, report)


def rounds_of(learner, data, **settings):
    engine = Rounds()
    model = fit(learner, data, engine=engine, **settings)
    engine.close()
    return model, engine.rounds.count("MakePass")


@pytest.mark.parametrize("form", FORMS.values(), ids=FORMS)
@pytest.mark.parametrize("kind", [AveragedPerceptron, Perceptron])
@pytest.mark.parametrize("rule", ["perceptron", "arow"])
def test_the_first_pass_is_made_while_shards_are_read_and_is_the_same(form, kind, rule, monkeypatch):
    learner = kind(rule=rule, max_iter=3, random_state=2, order="shuffle")
    data = cut(form(X), Y, 4)
    model, later_passes = rounds_of(learner, data)
    assert later_passes == 2
    monkeypatch.setattr("separatrix.cluster.work.MANY", 10**9)
    patient, all_passes = rounds_of(kind(**learner.get_params()), data)
    assert all_passes == 3 and same(model, patient)
    assert model.estimator.n_errors_ == patient.estimator.n_errors_


def test_files_of_different_widths_are_passed_over_while_they_are_read(tmp_path, monkeypatch):
    rng = np.random.default_rng(0)
    for s, width in enumerate((12, 30, 7)):
        lines = []
        for _ in range(200):
            columns = np.sort(rng.choice(width, 5, replace=False))
            lines.append(f"{int(columns.sum() % 2)} " + " ".join(f"{j + 1}:{rng.integers(1, 5)}" for j in columns))
        (tmp_path / f"part-{s}.svm").write_text("\n".join(lines) + "\n")
    pattern, settings = str(tmp_path / "part-*.svm"), {"max_iter": 4, "random_state": 0}
    model, later_passes = rounds_of(AveragedPerceptron(**settings), pattern)
    monkeypatch.setattr("separatrix.cluster.work.MANY", 10**9)
    patient, all_passes = rounds_of(AveragedPerceptron(**settings), pattern)
    assert (later_passes, all_passes) == (3, 4) and same(model, patient) and model.estimator.n_features_in_ == 30


def test_the_first_pass_waits_for_all_shards_where_it_must():
    data = cut(X, Y, 3)
    for settings in ({"class_weight": "balanced"}, {"rule": "pa1", "C": "auto"}):
        assert rounds_of(AveragedPerceptron(max_iter=2, random_state=0, **settings), data)[1] == 2
    rare = Y.copy()
    rare[1::3] %= 2  # the second shard lacks a class, the others have it
    model, passes = rounds_of(AveragedPerceptron(max_iter=2, random_state=0), cut(X, rare, 3))
    assert passes == 2 and model.estimator.classes_.tolist() == [0, 1, 2]
