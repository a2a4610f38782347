"""Corrections that stick: after `until_right` the example is predicted right, every correction is in the ledger."""

import numpy as np
import pytest

from separatrix import AveragedPerceptron, Model, PassiveAggressive, Perceptron
from separatrix.engine.rules import RULES
from separatrix.web.server.live import until_right
from separatrix.web.server.live.commits import Commit, SparseRows, merged
from separatrix.web.server.live.live_model import LiveModel
from separatrix.web.server.writing import undo
from support.server_process import examples, matrix

LEARNERS = [
    *(AveragedPerceptron(rule=rule) for rule in RULES if RULES[rule].spread != "full"),
    *(Perceptron(rule=rule, multi_class="ovr") for rule in ("perceptron", "pa1", "arow")),
    Perceptron(tie="first", fit_intercept=False),
    PassiveAggressive(average=True),
]


def parts_of(stream, size):
    """The stream cut into blocks: rows, labels, and the names first met in each."""
    X, names = matrix(stream)
    known = 0
    for begin in range(0, len(stream), size):
        part = X[begin : begin + size]
        top = max(known, int(part.indices.max(initial=-1)) + 1)
        block = SparseRows(part.data, part.indices.astype(np.int64), part.indptr.astype(np.int64))
        yield block, [y for _, y in stream[begin : begin + size]], names[known:top]
        known = top


@pytest.mark.parametrize("learner", LEARNERS, ids=repr)
@pytest.mark.parametrize("classes", [("ham", "spam"), ("c", "a", "b")])
def test_a_persistent_example_is_predicted_right_and_commits_give_the_same_bits(learner, classes):
    stream = [(x, y) for x, y in examples(400, classes=classes, names=60)]
    first, second, joined = (LiveModel(Model(learner)) for _ in range(3))
    commits = []
    for k, (block, labels, names) in enumerate(parts_of(stream, 20)):
        labels = labels if k % 3 else [classes[(classes.index(label) + 1) % len(classes)] for label in labels]
        persistent = np.array([19]) if k else np.array([3, 19])
        commit = Commit.unpack(first.learn(block, labels, names, None, True, persistent=persistent).pack())
        last = block.take(np.array([19]))
        assert first.decide(first.scores(last)) == [labels[19]], "the last example of the block is right at once"
        corrected = (commit.step[commit.stuck] - (commit.steps - commit.n) - 1).tolist()
        assert corrected == sorted(corrected) and set(corrected) <= set(persistent.tolist())
        second.apply(commit)
        assert second.state() == first.state()
        commits.append(commit)
    assert sum(len(commit.stuck) for commit in commits) > (5 if first.learner.averages else -1)
    joined.apply(merged(commits))
    assert joined.state() == first.state()
    assert merged(commits).until_right.tolist() == [3, *range(19, 400, 20)]


def test_the_corrections_are_those_of_a_plain_count():
    """Of the perceptron rule: the fewest whole multiples of the example that make both scores positive."""
    model = LiveModel(Model(AveragedPerceptron()))
    for block, labels, names in parts_of([({"a": 1.0}, "no"), ({"a": 1.0, "b": 1.0}, "yes")] * 40, 80):
        model.learn(block, labels, names, None, False)
    row = SparseRows(np.array([2.0]), np.array([0]), np.array([0, 1]))
    average, last = model.scores(row)[0, 0], float(2.0 * model.run.last.W[0] + model.run.last.b[0])
    commit = model.learn(row, ["yes"], [], None, False, persistent=np.array([0]))
    square = 2.0**2 + 1.0
    usual = 1 if last <= 0 else 0
    steps = commit.steps
    average_after_usual = (average * (steps - 1) + last + usual * square) / steps
    extra = 0
    while min(average_after_usual + extra * square, last + (usual + extra) * square) <= 0:
        extra += 1
    assert extra > 0 and len(commit.stuck) == extra and commit.mistakes == usual + extra
    assert model.scores(row)[0, 0] == pytest.approx(average_after_usual + extra * square)


def test_undoing_a_stuck_correction_takes_back_all_of_it():
    stream = list(examples(200, classes=("ham", "spam"), names=30))
    model = LiveModel(Model(AveragedPerceptron()))
    for block, labels, names in parts_of(stream, 200):
        model.learn(block, labels, names, None, False)
    row = SparseRows(np.array([1.0]), np.array([0]), np.array([0, 1]))
    wrong = {"ham": "spam", "spam": "ham"}[model.decide(model.scores(row))[0]]
    commit = model.learn(row, [wrong], [], None, False, persistent=np.array([0]))
    with_them = model.scores(row)[0, 0]
    at = int(commit.stuck[0])
    model.apply(Commit.unpack(undo.subtracting(model, 1, commit, at).pack()))
    sign = 1.0 if wrong == "spam" else -1.0
    assert model.scores(row)[0, 0] == pytest.approx(with_them - sign * 2.0), "‖x‖² + 1, from the average as well"


def test_the_number_of_corrections_is_bounded(monkeypatch):
    monkeypatch.setattr(until_right, "MOST_UPDATES", 3)
    model = LiveModel(Model(AveragedPerceptron()))
    large, small = (SparseRows(np.array([x]), np.array([0]), np.array([0, 1])) for x in (100.0, 1.0))
    for row, label in ((small, "no"), (large, "yes"), (large, "yes")):
        model.learn(row, [label], ["x"] if label == "no" else [], None, False)
    commit = model.learn(small, ["no"], [], None, False, persistent=np.array([0]))
    assert commit.unresolved == (0,) and len(commit.stuck) == 3
    assert model.decide(model.scores(small)) == ["yes"], "100 of them would be needed"
