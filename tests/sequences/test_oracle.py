"""The structured perceptron against the enumeration of all paths, and the ways to the same bits."""

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st

from separatrix import SequencePerceptron, reference, reference_sequences
from separatrix.sequences.schemes import forbidden_transitions

TAGS = np.array(["B-a", "I-a", "O"])


@st.composite
def problems(draw, fewest=1):
    """Sequences of 0 to 4 tokens with three integer features, and a tag for each token; all three tags occur."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    lengths = [3, *draw(st.lists(st.integers(0, 4), min_size=fewest, max_size=5))]
    X = [rng.integers(-2, 3, (n, 3)).astype(float) for n in lengths]
    y = [rng.integers(0, 3, n).tolist() for n in lengths]
    y[0] = [0, 1, 2]
    return X, y


def named(y):
    return [TAGS[tags].tolist() for tags in y]


def flat(model):
    W, T = model.weights()
    return np.concatenate([W.T.reshape(-1), T.reshape(-1)])


def check_run(model, run):
    assert [(m.step, m.sequence, m.correction, m.lead) for m in model.ledger_] == [
        (m.step, m.sequence, m.correction, m.lead) for m in run.mistakes
    ]
    assert [(m.true, m.predicted) for m in model.ledger_] == [
        (TAGS[list(m.true)].tolist(), TAGS[list(m.predicted)].tolist()) for m in run.mistakes
    ]


@given(problem=problems(), passes=st.integers(1, 4), weighted=st.booleans())
def test_mistakes_and_weights_are_those_of_the_enumeration(problem, passes, weighted):
    X, y = problem
    weight = [float(i % 3) for i in range(1, len(X) + 1)] if weighted else None
    model = SequencePerceptron(order="cyclic", max_iter=passes, averaged=False).fit(X, named(y), sample_weight=weight)
    run = reference_sequences.sequence_perceptron(X, y, 3, reference.cyclic(len(X), model.n_iter_), weight)
    check_run(model, run)
    assert np.array_equal(flat(model), run.last)
    expected = [TAGS[list(reference_sequences.best_path(run.last, x, 3))].tolist() for x in X]
    assert model.predict(X) == expected
    averaged = SequencePerceptron(order="cyclic", max_iter=passes).fit(X, named(y), sample_weight=weight)
    assert np.allclose(flat(averaged), reference.averaged(run), rtol=1e-12, atol=1e-12)


@given(problem=problems(), C=st.sampled_from([0.05, 1.0]))
def test_pa1_follows_the_hamming_loss(problem, C):
    X, y = problem
    model = SequencePerceptron(rule="pa1", C=C, order="cyclic", max_iter=1, averaged=False).fit(X, named(y))
    run = reference_sequences.sequence_perceptron(X, y, 3, reference.cyclic(len(X), 1), rule="pa1", C=C)
    first = next(iter(model.ledger_))
    assert (first.step, first.true) == (run.mistakes[0].step, TAGS[list(run.mistakes[0].true)].tolist())
    assert first.correction == run.mistakes[0].correction  # of integers; later ones differ by rounding
    assert 0 < max(m.correction for m in model.ledger_) <= C
    difference = reference_sequences.path_features(X[0], y[0], 3) - reference_sequences.path_features(
        X[0], [TAGS.tolist().index(tag) for tag in first.predicted], 3
    )
    loss = sum(a != b for a, b in zip(first.true, first.predicted, strict=True))
    assert first.correction == min(C, loss / (difference @ difference))


@given(problem=problems())
def test_the_scheme_is_kept_in_training_and_in_predictions(problem):
    X, y = problem
    y = [[0 if tag == 1 and (not t or path[t - 1] == 2) else tag for t, tag in enumerate(path)] for path in y]
    forbidden = forbidden_transitions(TAGS, "bio").reshape(4, 4)
    model = SequencePerceptron(scheme="bio", order="cyclic", max_iter=2, averaged=False).fit(X, named(y))
    run = reference_sequences.sequence_perceptron(X, y, 3, reference.cyclic(len(X), model.n_iter_), forbidden=forbidden)
    check_run(model, run)
    assert np.array_equal(flat(model), run.last)
    for path in model.predict([x[:, ::-1] for x in X]):
        assert all(tag != "I-a" or (t and path[t - 1] != "O") for t, tag in enumerate(path))


@given(problem=problems(), rule=st.sampled_from(["perceptron", "pa1"]))
def test_dense_sparse_stream_and_replay_give_the_same_bits(problem, rule):
    X, y = problem
    settings = {"rule": rule, "order": "cyclic", "max_iter": 1, "record": True}
    dense = SequencePerceptron(**settings).fit(X, named(y))
    sparse = SequencePerceptron(**settings).fit([sp.csr_matrix(x) for x in X], named(y))
    stream = SequencePerceptron(**settings)
    for x, tags in zip(X, named(y), strict=True):
        stream.partial_fit([x], [tags], classes=TAGS)
    for other in (sparse, stream):
        assert np.array_equal(flat(other), flat(dense))
        assert list(other.ledger_) == list(dense.ledger_)
    for sequences in (X, None):
        assert all(map(np.array_equal, dense.replay(sequences), dense.weights()))
        assert all(map(np.array_equal, stream.replay(sequences), dense.weights()))
    half = len(dense.ledger_) // 2
    last = dense.replay(X, mistakes=half)
    assert all(map(np.array_equal, last, stream.replay(mistakes=half)))


def test_ties_go_to_the_lowest_last_tag():
    X, y = [np.ones((2, 1))], [["b", "a"]]
    model = SequencePerceptron(order="cyclic", max_iter=1, averaged=False).fit(X, y)
    assert next(iter(model.ledger_)).predicted == ["a", "a"]


def test_shuffled_passes_are_those_of_the_seed():
    rng = np.random.default_rng(0)
    X = [rng.integers(-2, 3, (3, 3)).astype(float) for _ in range(8)]
    y = [rng.integers(0, 3, 3).tolist() for _ in range(8)]
    model = SequencePerceptron(random_state=5, max_iter=3, averaged=False).fit(X, named(y))
    assert set(model.classes_) == set(TAGS)
    run = reference_sequences.sequence_perceptron(X, y, 3, reference.permutation(8, model.n_iter_, 5))
    check_run(model, run)


@pytest.mark.parametrize("K", [1, 2, 7, 8, 9, 16, 17, 40])
def test_the_best_path_among_any_number_of_tags(K):
    rng = np.random.default_rng(K)
    X = [rng.integers(-3, 4, (n, 5)).astype(float) for n in (K, *rng.integers(1, 9, 30))]
    y = [[*range(K)], *([*rng.integers(0, K, len(x)).tolist()] for x in X[1:])]
    model = SequencePerceptron(order="cyclic", max_iter=2, averaged=False).fit(X, y)
    W, T = model.weights()
    assert model.classes_.tolist() == [*range(K)] and (K == 1 or W.any())
    for x, tags in zip(X, model.predict(X), strict=True):
        scores, before = x @ W, [T[K, :K]]
        for t in range(len(x) - 1):
            before.append(((before[t] + scores[t])[:, None] + T[:K, :K]).max(axis=0))
        path = [int(np.argmax(before[-1] + scores[-1] + T[:K, K]))]
        for t in range(len(x) - 2, -1, -1):
            path.insert(0, int(np.argmax(before[t] + scores[t] + T[:K, path[0]])))
        assert tags == path


@pytest.mark.parametrize("length", [10_000])
def test_long_sequences(length):
    words = ["x", "y", "z"]
    X = [[{"w": words[t % 3]} for t in range(length)]]
    y = [[["a", "b", "c"][t % 3] for t in range(length)]]
    model = SequencePerceptron(order="cyclic").fit(X, y)
    assert model.converged_
    assert model.predict(X) == y
