"""What cannot be forgotten: models, rows and other data that are refused, each in one line."""

import numpy as np
import pytest

from separatrix import (
    AveragedPerceptron,
    FisherDiscriminant,
    KernelPerceptron,
    Model,
    Perceptron,
    PocketPerceptron,
    VotedPerceptron,
    forget,
)
from separatrix.data.errors import DataError
from training.test_forgetting import N, X, Y

pytestmark = pytest.mark.filterwarnings("ignore::UserWarning")
RNG = np.random.default_rng(5)


def mixed():
    model = Perceptron(random_state=0).fit(X, Y)
    model.mix_ = "uniform"  # as training on shards leaves it
    return model


def stream():
    return Perceptron().partial_fit(X, Y, classes=["down", "up"])


def warm():
    return Perceptron(warm_start=True, random_state=0).fit(X, Y).fit(X, Y)


@pytest.mark.parametrize(
    ("model", "message"),
    [
        (KernelPerceptron(random_state=0).fit(X, Y), "a KernelPerceptron cannot forget rows: only linear learners"),
        (FisherDiscriminant().fit(X, Y), "a FisherDiscriminant cannot forget rows"),
        (stream(), "it has learned from a stream"),
        (mixed(), "it is a mix of the weights of several shards"),
        (warm(), "it began with the weights of an earlier fit"),
        (Perceptron(random_state=np.random.RandomState(0)).fit(X, Y), "its random_state is a generator"),
        (Perceptron(early_stopping=True).fit(X, Y), "drawn with random_state=None"),
        (Perceptron(random_state=0).fit(X, Y, X_val=X, y_val=Y), "pass X_val and y_val again"),
        (Perceptron(random_state=0).fit(X[:50], Y[:50]), "trained on 50 rows, and there are 60"),
        (Perceptron(random_state=0).fit(2 * X, Y), "X is not what the model was trained on"),
        (Perceptron(random_state=0).fit(X, np.where(Y == "up", "no", Y)), "y is not what the model was trained on"),
        (Perceptron(random_state=0).fit(X, Y[::-1]), "the ledger does not fit these data"),
        (Model(Perceptron()), "not fitted yet"),
    ],
)
def test_what_cannot_be_forgotten_is_said_in_one_line(model, message):
    with pytest.raises(ValueError, match=message) as caught:
        forget(model, 1, X, Y)
    assert "\n" not in str(caught.value)


WEIGHT = RNG.choice([0.5, 1.0, 2.0], N)
KINDS = RNG.choice(["a", "b", "c"], N)


@pytest.mark.parametrize("labels", [Y, KINDS], ids=["two classes", "three classes"])
@pytest.mark.parametrize(
    "model",
    [
        Perceptron(random_state=0),
        AveragedPerceptron(rule="pa1", random_state=0),
        AveragedPerceptron(rule="arow", random_state=0),
        VotedPerceptron(random_state=0),
        PocketPerceptron(random_state=0, order="cyclic"),
        Perceptron(random_state=0, multi_class="ovr"),
    ],
    ids=lambda model: f"{type(model).__name__} {model.rule} {model.multi_class}",
)
def test_other_data_of_the_same_shape_are_refused(model, labels):
    model.fit(X, labels, sample_weight=WEIGHT)
    first, row = (int(example) for example in np.unique(model.ledger_.example)[:2])
    longest = int(np.argmax(np.sum(X**2, axis=1)))
    row = row if row != longest else first
    rows, other_labels, mixed = X.copy(), labels.copy(), np.roll(np.arange(N), 1)
    rows[row] = -rows[row] + (rows[row] == 0)
    rows[row] *= 0.5  # so that it is not the longest one
    other_labels[row] = next(label for label in labels if label != labels[row])
    given = {"sample_weight": WEIGHT}
    forget(model, first, X, labels, **given)
    for data in ((rows, labels), (X, other_labels), (X[mixed], labels), (X[mixed], labels[mixed])):
        with pytest.raises(ValueError, match="not what the model was trained on"):
            forget(model, first, *data, **given)
    with pytest.raises(ValueError, match="sample_weight is not what the model was trained on"):
        forget(model, first, X, labels)
    if not model.rule.startswith("arow"):  # whose corrections depend on the weights of all examples before
        with pytest.raises(ValueError, match="not what the model was trained on"):
            forget(model, first, X, labels, sample_weight=WEIGHT * 0.5)


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        (60, "there is no row 60: the data have 60 rows, counted from 0"),
        (-1, "there is no row -1: rows count from 0"),
        ([], "no row to forget is named"),
        ([1.5], "named by its number"),
        ([True], "named by its number"),
        (range(60), "every row is to be forgotten"),
    ],
)
def test_rows_that_are_none(rows, message):
    with pytest.raises(DataError, match=message):
        forget(Perceptron(random_state=0).fit(X, Y), rows, X, Y)


def test_a_row_named_twice_is_forgotten_once_and_one_of_weight_0_too():
    weight = np.ones(N)
    weight[[2, 8]] = 0.0
    model = AveragedPerceptron(random_state=0).fit(X, Y, sample_weight=weight)
    after, receipt = forget(model, [8, 8], X, Y, sample_weight=weight)
    assert np.array_equal(after.coef_, model.coef_) and after.run_.left_out.tolist() == [2]
    assert receipt["removed"]["rows"] == [8] and receipt["replay"]["presented"] == 0


def test_one_class_must_not_be_all_that_is_left():
    with pytest.raises(ValueError, match="a boundary needs two classes"):
        forget(Perceptron(random_state=0).fit(X, Y), np.flatnonzero(Y == "up"), X, Y)
