"""Many classes with many weights: the verdict, the kind of separation and short witnesses, all checked exactly."""

import subprocess
import sys
import tracemalloc
from itertools import combinations

import numpy as np
import pytest
import scipy.sparse as sp

from separatrix import Perceptron, certify, fewest_mistakes
from separatrix.engine.rows import Rows
from separatrix.proofs.search import verdict
from separatrix.proofs.search.joint_search import descend, of_classes
from separatrix.proofs.search.pairs import Pairs


def planted(n, d, n_classes, flipped, seed=0):
    rng = np.random.default_rng(seed)
    X = np.round(rng.standard_normal((n, d)), 3)
    y = (X @ rng.standard_normal((n_classes, d)).T).argmax(axis=1)
    rows = rng.choice(n, flipped, replace=False)
    y[rows] = (y[rows] + 1) % n_classes
    return X, y


@pytest.fixture
def no_other_search(monkeypatch):
    """Whatever comes after Newton's method and pairs of classes fails the test; two classes are searched as always."""
    search = verdict.decide

    def decide(field, *arguments, **options):
        assert field.dim < 200
        return search(field, *arguments, **options)

    monkeypatch.setattr(verdict, "decide", decide)


@pytest.mark.parametrize("form", [np.asarray, sp.csr_matrix])
@pytest.mark.parametrize("bias", [True, False])
def test_separable_classes_are_separated(no_other_search, form, bias):
    X, y = planted(1500, 40, 6, 0)
    X = form(X)
    certificate = certify(X, y, fit_intercept=bias)
    assert certificate.verdict == "separable" and certificate.verify(X, y)


def test_two_confused_classes_are_a_short_witness_and_all_of_them_an_overlap(no_other_search):
    X, y = planted(3000, 40, 6, 60)
    certificate = certify(X, y)
    assert (certificate.verdict, certificate.separation) == ("inseparable", "overlap") and certificate.verify(X, y)
    witness = certificate.witness
    assert len(witness.rows) <= 42
    assert {*y[list(witness.rows)]} == {*witness.rivals} and len({*witness.rivals}) == 2


def test_a_class_apart_from_overlapping_ones_is_quasi_complete():
    X, y = planted(1500, 40, 6, 60)
    X = np.vstack([np.hstack([X, np.zeros((len(X), 1))]), np.hstack([X[:20], np.ones((20, 1))])])
    y = np.r_[y, np.full(20, 6)]
    certificate = certify(X, y)
    assert (certificate.verdict, certificate.separation) == ("inseparable", "quasi-complete") and certificate.verify(X, y)


def test_the_minimum_of_the_loss_is_a_witness_where_smaller_sets_of_classes_are_separable(no_other_search):
    """Two rows get the label of the class with the second score: only all eight classes together show that it is wrong."""
    rng = np.random.default_rng(1)
    X = np.round(rng.standard_normal((3000, 25)), 2)
    scores = X @ rng.standard_normal((8, 25)).T
    ranks, y = np.argsort(scores, axis=1), scores.argmax(axis=1)
    gaps = np.take_along_axis(scores, ranks[:, -2:], axis=1)
    rows = np.argsort(gaps[:, 1] - gaps[:, 0])[1500:1502]
    y[rows] = ranks[rows, -2]
    certificate = certify(X, y)
    assert (certificate.verdict, certificate.separation) == ("inseparable", "overlap") and certificate.verify(X, y)
    assert {*certificate.witness.rivals} == {*range(8)}


def test_classes_that_are_separable_two_by_two_only_are_inseparable():
    """Columns of zeros make weights, and so the path through Newton's method, without making anything separable."""
    X = [
        [-4, 1, -2],
        [-2, -3, 2],
        [-2, 0, 5],
        [0, 3, -2],
        [-3, 2, 0],
        [1, 4, -1],
        [5, 0, 0],
        [-5, -4, 5],
        [3, -3, 4],
        [-1, 1, 0],
    ]
    X, y = np.array(X, float), np.array([2, 1, 1, 0, 0, 0, 2, 0, 2, 0])
    for k, rival in combinations(range(3), 2):
        two = (y == k) | (y == rival)
        assert certify(X[two], y[two]).verdict == "separable"
    for wide in (np.hstack([X, np.zeros((len(X), 70))]), sp.csr_matrix(np.hstack([X, np.zeros((len(X), 70))]))):
        certificate = certify(wide, y)
        assert certificate.verdict == "inseparable" and certificate.verify(wide, y)
        assert {*certificate.witness.rivals} == {0, 1, 2}


def test_sets_of_classes_are_numbered_as_among_all_classes():
    X, y = planted(60, 3, 5, 10)
    pairs = Pairs(Rows(X), y, 5, True)
    for classes in ([1, 3], [0, 2, 4]):
        alone, numbers = of_classes(pairs, classes)
        rows = np.flatnonzero(np.isin(y, classes))
        some = np.flatnonzero(alone.exist)
        assert np.array_equal(pairs.row_of(numbers[some]), rows[alone.row_of(some)])
        assert np.array_equal(pairs.rival_of(numbers[some]), np.array(classes)[alone.rival_of(some)])


def test_the_descent_with_many_classes_takes_little_memory(monkeypatch):
    rng = np.random.default_rng(0)
    pairs = Pairs(Rows(rng.standard_normal((30_000, 2))), np.arange(30_000) % 100, 100, True)
    monkeypatch.setattr("separatrix.proofs.search.joint_search._STEPS", 2)
    tracemalloc.start()
    descent = descend(pairs, pairs.column_scales())
    which, weights = descent.nearly_balanced(100, 1200)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert not which.size and not weights
    assert peak < 110e6  # two arrays of 3 million numbers, and a few of a million; seven of all pairs were 190e6


@pytest.mark.parametrize("form", [np.asarray, sp.csr_matrix])
def test_the_descent_by_blocks_of_rows_finds_the_same(monkeypatch, form):
    X, y = planted(500, 20, 6, 0)
    pairs = Pairs(Rows(form(X)), y, 6, True)
    whole = descend(pairs, pairs.column_scales())
    monkeypatch.setattr("separatrix.proofs.search.joint_search._PAIRS_AT_ONCE", 601)
    parts = descend(pairs, pairs.column_scales())
    assert whole.separates and parts.separates
    np.testing.assert_allclose(parts.w, whole.w, rtol=1e-3, atol=1e-6 * np.abs(whole.w).max())


@pytest.fixture
def few_kept(monkeypatch):
    """What is kept of a few pairs only is computed by small blocks, as that of very many pairs."""
    monkeypatch.setattr("separatrix.proofs.search.pairs._KEPT_PAIRS", 10)
    monkeypatch.setattr("separatrix.proofs.search.pairs._PAIRS_AT_ONCE", 600)
    monkeypatch.setattr("separatrix.proofs.search.joint_search._PAIRS_AT_ONCE", 601)
    monkeypatch.setattr("separatrix.proofs.search.wide._SCORES_AT_ONCE", 602)
    monkeypatch.setattr("separatrix.proofs.exact_examples._SCORES", 603)


@pytest.mark.parametrize(
    ("n", "d", "n_classes", "flipped"),
    [
        (1500, 40, 6, 0),
        (1500, 40, 6, 30),
        (900, 3, 5, 0),
        (900, 3, 5, 9),
        (60, 2, 3, 5),
        (200, 500, 5, 0),
        (300, 2, 20, 150),
    ],
)
@pytest.mark.parametrize("bias", [True, False])
def test_very_many_pairs_have_the_verdict_of_few(few_kept, monkeypatch, n, d, n_classes, flipped, bias):
    X, y = planted(n, d, n_classes, flipped)
    by_blocks = certify(X, y, fit_intercept=bias)
    assert by_blocks.verify(X, y)
    monkeypatch.setattr("separatrix.proofs.search.pairs._KEPT_PAIRS", 1 << 23)
    kept = certify(X, y, fit_intercept=bias)
    assert by_blocks.verdict == kept.verdict and by_blocks.separation in (None, kept.separation)
    if kept.verdict == "separable":  # both intervals hold the margin
        assert by_blocks.margin[0] <= kept.margin[1] and kept.margin[0] <= by_blocks.margin[1]


@pytest.mark.parametrize("tie", ["mistake", "first"])
def test_the_mistakes_among_very_many_pairs_are_those_of_the_classifier(few_kept, monkeypatch, tie):
    monkeypatch.setattr("separatrix.analysis.contradictions._CELLS", 5000)
    X, y = planted(600, 3, 4, 12)
    found = fewest_mistakes(X, y, tie=tie, time_limit=1)
    assert np.flatnonzero(found.classifier.predict(X) != y).tolist() == list(found.mistaken)
    assert found.lower <= found.upper == len(found.mistaken)


@pytest.mark.parametrize("flipped", [0, 20])
def test_the_bounds_of_very_many_pairs_hold(monkeypatch, flipped):
    X, y = planted(900, 3, 5, flipped)
    model = Perceptron(max_iter=3).fit(X, y)
    whole = model.bounds(X, y)
    monkeypatch.setattr("separatrix.analysis.best_separator._MANY_PAIRS", 10)
    monkeypatch.setattr("separatrix.analysis.best_separator._MOST_MULTIPLIERS", 1200)
    monkeypatch.setattr("separatrix.analysis.freund_schapire._SCORES", 604)
    by_blocks = model.bounds(X, y)
    assert by_blocks.holds and by_blocks.applying
    assert by_blocks.gamma is None or by_blocks.gamma <= whole.gamma * (1 + 1e-6)
    assert by_blocks.bound >= whole.bound * (1 - 1e-2)


MEMORY = """
import numpy as np
from separatrix import Perceptron, certify, fewest_mistakes, suspects

def status(key):
    return int(open("/proc/self/status").read().split(key + ":")[1].split()[0]) * 1024

X, y = np.random.default_rng(0).standard_normal((400_000, 2)), np.arange(400_000) % 100
some, model = (X[:300], y[:300]), Perceptron(max_iter=1)
for call in (certify, fewest_mistakes, suspects, model.bounds):
    for data, limit in ((some, 1), ((X, y), 2)):  # the first compiles
        if call == model.bounds:
            model.fit(*data)
        before = status("VmRSS")
        open("/proc/self/clear_refs", "w").write("5")  # forget the peak
        call(*data, time_limit=limit)
    print(status("VmHWM") - before, X.nbytes + y.nbytes)
"""


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="reads the peak of memory from /proc")
def test_memory_with_40_million_pairs_stays_within_eight_times_the_data_and_500_mb():
    done = subprocess.run([sys.executable, "-c", MEMORY], capture_output=True, text=True, check=True)
    for line in done.stdout.splitlines():
        used, data = map(int, line.split())
        assert used < 8 * data + 500e6
