"""Iterative parameter mixing by itself: one shard is `fit`, several are what the paper says, and the theorem holds."""

import gzip
import pickle

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st
from sklearn.datasets import load_digits

from separatrix import AveragedPerceptron, PassiveAggressive, Perceptron, VotedPerceptron, certify, load, load_svmlight, save
from separatrix.cluster import bounds, fit
from separatrix.cluster.engines import FAN_IN, BadShard, Engine, Tree, add_results, combine
from separatrix.cluster.feature_rows import FeatureRows
from separatrix.data.errors import DataError
from separatrix.engine.rules import RULES
from separatrix.estimators.linear import PocketPerceptron
from support.kill_workers import a9a, newsgroups, same, whole_numbers

X, Y = load_digits(return_X_y=True)
X, Y = X[:600] / 16, Y[:600] % 3
FORMS = {"dense": np.asarray, "csr": sp.csr_matrix}
MIXED = [rule for rule in RULES if rule != "arow-full"]


def cut(X, y, shards):
    return [(X[s::shards], y[s::shards]) for s in range(shards)]


@pytest.mark.parametrize("form", FORMS.values(), ids=FORMS)
@pytest.mark.parametrize("rule", MIXED)
@pytest.mark.parametrize("order", ["shuffle", "cyclic", "random"])
@pytest.mark.parametrize("classes", [2, 3])
def test_one_shard_is_fit_bit_for_bit(form, rule, order, classes):
    here, y = form(X), Y % classes
    for kind in (AveragedPerceptron, Perceptron):
        settings = {"rule": rule, "order": order, "max_iter": 4, "random_state": 5}
        one, other = kind(**settings).fit(here, y), fit(kind(**settings), [(here, y)]).estimator
        assert np.array_equal(one.coef_, other.coef_) and np.array_equal(one.intercept_, other.intercept_)
        assert one.mistakes_per_pass_ == other.mistakes_per_pass_ and one.n_errors_ == other.n_errors_
        assert one.converged_ == other.converged_ and one.radius_ == other.radius_ and one.n_seen_ == other.n_seen_
        assert np.array_equal(one.classes_, other.classes_) and one.classes_.dtype == other.classes_.dtype


@pytest.mark.parametrize(
    "learner",
    [
        AveragedPerceptron(rule="pa1", C="auto", max_iter=3, random_state=1),
        AveragedPerceptron(average_from=3, max_iter=5, random_state=1, class_weight="balanced"),
        Perceptron(class_weight={0: 3.0, 2: 0.5}, max_iter=3, random_state=1),
        PassiveAggressive(random_state=1, average=700),
        Perceptron(multi_class="ovr", tie="+1", max_iter=3, random_state=1),
    ],
    ids=lambda learner: type(learner).__name__ + str(sorted(learner.get_params().items()))[:40],
)
def test_one_shard_is_fit_with_every_setting(learner):
    settings = learner.get_params()
    one, other = type(learner)(**settings).fit(X, Y), fit(learner, [(X, Y)]).estimator
    assert np.array_equal(one.coef_, other.coef_) and one.mistakes_per_pass_ == other.mistakes_per_pass_
    assert getattr(one, "C_scores_", None) == getattr(other, "C_scores_", None)


def by_hand(shards, passes, mix):
    """Mixing for two classes, in the order of the rows, as on the board, and the mean of the weights after every step."""
    w, table, seen = np.zeros(shards[0][0].shape[1]), [], []
    for _ in range(passes):
        ends, counts = [], []
        for X, y in shards:
            here, made = w.copy(), 0
            for x, label in zip(X, 2 * y - 1, strict=True):
                if label * (here @ x) <= 0:
                    here, made = here + label * x, made + 1
                seen.append(here.copy())
            ends.append(here)
            counts.append(made)
        table.append(counts)
        if mix == "features":
            has = np.array([(X != 0).any(axis=0) for X, _ in shards])
            w = np.where(has.any(axis=0), (has * ends).sum(axis=0) / np.maximum(has.sum(axis=0), 1), w)
            continue
        share = np.ones(len(shards)) if mix == "uniform" else np.array(counts, float)
        w = np.average(ends, axis=0, weights=share) if share.any() else w
    return w, np.mean(seen, axis=0), table


@pytest.mark.parametrize("mix", ["features", "uniform", "mistakes"])
@pytest.mark.parametrize("form", FORMS.values(), ids=FORMS)
@pytest.mark.parametrize("shards", [2, 4, 7])
def test_mixing_is_that_of_the_paper_and_averages_are_exact(mix, form, shards):
    rng = np.random.default_rng(shards)
    exact = shards in (2, 4) and mix == "uniform"  # halves and quarters of whole numbers are
    numbers = rng.integers(-4, 5, (230, 9)).astype(float) if exact else rng.normal(size=(230, 9))
    numbers[np.arange(230) % shards > 0, 3] = 0.0  # in the first shard only
    numbers[:, 5] = 0.0  # in none
    y = (numbers @ rng.normal(size=9) + rng.normal(size=230) > 0).astype(int)
    w, mean, table = by_hand(cut(numbers, y, shards), 5, mix)
    settings = {"order": "cyclic", "fit_intercept": False, "max_iter": 5}
    last = fit(Perceptron(**settings), cut(form(numbers), y, shards), mix=mix).estimator
    average = fit(AveragedPerceptron(**settings), cut(form(numbers), y, shards), mix=mix).estimator
    assert last.shard_mistakes_.tolist() == average.shard_mistakes_.tolist() == table
    assert np.allclose(last.coef_[0], w, rtol=1e-13, atol=1e-13)
    assert np.allclose(average.coef_[0], mean, rtol=1e-12, atol=1e-12)
    if exact:
        assert np.array_equal(last.coef_[0], w)


@given(st.integers(1, 40), st.randoms(use_true_random=False))
def test_the_sum_does_not_depend_on_who_finishes_first(n, chance):
    values = [np.float64(chance.uniform(-1, 1) * 10.0 ** chance.randint(-9, 9)) for _ in range(n)]
    order = list(range(n))
    chance.shuffle(order)
    tree = Tree(n)
    for place in order:
        tree.add(place, values[place])
    packed = [pickle.dumps(value) for value in values]
    groups = [combine(packed[at : at + FAN_IN]) for at in range(0, n, FAN_IN)]
    while len(groups) > 1:
        groups = [combine(groups[at : at + FAN_IN]) for at in range(0, len(groups), FAN_IN)]
    assert tree.root() == pickle.loads(groups[0])


@given(st.lists(st.sets(st.integers(0, 59)), min_size=2, max_size=6), st.integers(1, 3))
def test_sparse_and_dense_parts_add_up_alike(rows, K):
    rng = np.random.default_rng(len(rows))
    arrays = []
    for some in rows:
        array = np.zeros((60, K))
        array[sorted(some)] = rng.normal(size=(len(some), K))
        arrays.append(array)
    parts = [FeatureRows.of(60, None, [array.copy(), 2 * array], (0.0, 0.0)) for array in arrays]
    assert all((part.features is None) == (3 * len(some) >= 60) for part, some in zip(parts, rows, strict=True))
    tree = Tree(len(parts))
    plain = Tree(len(parts))
    for place, (part, array) in enumerate(zip(parts, arrays, strict=True)):
        tree.add(place, part)
        plain.add(place, array)
    once, twice = tree.root().at(None)
    assert np.array_equal(once, plain.root()) and np.array_equal(twice, 2 * plain.root())


@pytest.mark.parametrize("shards", [2, 5])
def test_features_are_mixed_alike_in_every_form_zeros_written_out_or_not(shards):
    rng = np.random.default_rng(shards)
    numbers = rng.integers(-2, 3, (300, 20)) * (rng.random((300, 20)) < 0.02).astype(float)
    numbers[np.arange(300) % shards > 0, :5] = 0.0  # these in the first shard only
    y = rng.integers(0, 3, 300)
    written = [
        (sp.csr_matrix((np.ravel(x), np.tile(np.arange(20), len(x)), 20 * np.arange(len(x) + 1)), x.shape), labels)
        for x, labels in cut(numbers, y, shards)
    ]
    assert not all(part.data.all() for part, _ in written)
    learners = [
        fit(AveragedPerceptron(random_state=0), data).estimator
        for data in (cut(numbers, y, shards), cut(sp.csr_matrix(numbers), y, shards), written)
    ]
    assert all(np.array_equal(one.coef_, learners[0].coef_) for one in learners) and learners[0].mix_ == "features"
    uniform = fit(AveragedPerceptron(random_state=0), cut(numbers, y, shards), mix="uniform").estimator
    assert not np.array_equal(uniform.coef_, learners[0].coef_)
    everywhere = numbers + 1.0
    one, other = (
        fit(AveragedPerceptron(random_state=0), cut(everywhere, y, shards), mix=mix).estimator
        for mix in ("features", "uniform")
    )
    assert np.array_equal(one.coef_, other.coef_)


@given(st.integers(0, 2**32 - 1), st.integers(2, 6), st.sampled_from(["perceptron", "margin"]))
def test_mistakes_stay_under_the_bound_of_mixing_by_features(seed, shards, rule):
    rng = np.random.default_rng(seed)
    best = rng.normal(size=30)
    X = rng.normal(size=(120, 30)) * (rng.random((120, 30)) < 0.08)
    X = X[np.abs(X @ best) > 0.05]
    y = (X @ best > 0).astype(int)
    parts = cut(X, y, shards)
    if len(np.unique(y)) < 2:
        return
    model = fit(Perceptron(rule=rule, margin=0.1, fit_intercept=False, max_iter=2000, random_state=seed % 1000), parts)
    assert model.estimator.converged_
    holders = sum((part != 0).any(axis=0).astype(float) for part, _ in parts)
    gamma = (X @ best * (2 * y - 1)).min()
    R2 = (X**2).sum(axis=1).max() + (0.2 if rule == "margin" else 0.0)
    assert model.estimator.n_mistakes_ <= R2 / gamma**2 * (holders @ best**2) * (1 + 1e-9)
    assert bounds(model).holds


@pytest.mark.parametrize("mix", ["features", "uniform", "mistakes"])
@pytest.mark.parametrize("rule", ["perceptron", "margin"])
@pytest.mark.parametrize("classes", [2, 3])
def test_separable_data_converge_and_mistakes_stay_under_the_certified_bound(mix, rule, classes):
    rng = np.random.default_rng(1)
    X = np.sign(rng.normal(size=(400, 12)))
    scores = X @ rng.normal(size=(12, classes))
    clear = np.diff(np.sort(scores, axis=1)[:, -2:], axis=1)[:, 0] > 0.5
    X, y = X[clear], np.argmax(scores, axis=1)[clear]
    model = fit(Perceptron(rule=rule, max_iter=500, random_state=0), cut(X, y, 8), mix=mix)
    assert model.estimator.converged_ and not model.estimator.shard_mistakes_[-1].any() and model.estimator.score(X, y) == 1
    proof = certify(X, y)
    for report in (bounds(model), bounds(model, proof)):
        assert report.theorem.startswith("iterative parameter mixing") and report.holds and report.applying[0].made > 0
    assert bounds(model, proof).bound < bounds(model).bound


def test_agaricus_converges_to_no_mistakes(data_folder):
    X, y = load_svmlight(data_folder / "libsvm" / "agaricus.txt.train.gz")
    model = fit(Perceptron(max_iter=200, random_state=0), cut(X, y, 8))
    assert model.estimator.converged_ and model.estimator.score(X, y) == 1.0
    assert bounds(model).holds and bounds(model, certify(X, y)).holds


@pytest.mark.parametrize("rule", ["pa1", "arow"])
def test_accuracy_on_a9a_is_that_of_one_machine(data_folder, rule):
    X, y, X_test, y_test = a9a(data_folder)
    one, eight = (
        AveragedPerceptron(rule=rule, max_iter=10, random_state=0),
        AveragedPerceptron(rule=rule, max_iter=10, random_state=0),
    )
    one.fit(X, y)
    fit(eight, cut(X, y, 8))
    assert abs(one.score(X_test, y_test) - eight.score(X_test, y_test)) <= 0.003


@pytest.mark.parametrize("passes", [10, 20])
def test_accuracy_on_20newsgroups_is_that_of_one_machine(data_folder, passes):
    X, y, X_test, y_test = newsgroups(data_folder)
    settings = {"rule": "pa1", "max_iter": passes, "random_state": 0}
    mixed = np.random.default_rng(0).permutation(len(y))  # the file is sorted by class
    one = AveragedPerceptron(**settings).fit(X, y)
    eight = fit(AveragedPerceptron(**settings), cut(X[mixed], y[mixed], 8)).estimator
    assert eight.score(X_test, y_test) >= one.score(X_test, y_test) - 0.003  # it is above
    if passes == 20:
        uniform = fit(AveragedPerceptron(**settings), cut(X[mixed], y[mixed], 8), mix="uniform").estimator
        assert abs(one.score(X_test, y_test) - uniform.score(X_test, y_test)) <= 0.003


def test_held_out_shards_stop_training_and_the_best_pass_is_kept():
    settings = {"max_iter": 30, "random_state": 2, "n_iter_no_change": 3}
    shards = cut(X, Y, 8)
    model = fit(AveragedPerceptron(early_stopping=True, **settings), shards[:6], held_out=shards[6:]).estimator
    scores = model.validation_scores_
    best = int(np.argmax(scores))
    assert len(scores) < 30 and len(scores) == best + 4 and not model.converged_
    X_val, y_val = (np.concatenate([part[k] for part in shards[6:]]) for k in (0, 1))
    assert model.score(X_val, y_val) == scores[best]
    shorter = fit(AveragedPerceptron(max_iter=best + 1, random_state=2), shards[:6]).estimator
    assert np.array_equal(model.coef_, shorter.coef_)
    drawn = fit(AveragedPerceptron(early_stopping=True, validation_fraction=0.25, **settings), shards).estimator
    assert drawn.shard_mistakes_.shape[1] == 6 and len(drawn.validation_scores_) == drawn.n_iter_
    calibrated = fit(AveragedPerceptron(calibrate="sigmoid", max_iter=3), shards[:6], held_out=shards[6:]).estimator
    assert np.allclose(calibrated.predict_proba(X).sum(axis=1), 1)


def test_the_model_is_saved_with_the_mistakes_of_each_shard(tmp_path):
    model = fit(AveragedPerceptron(max_iter=3, random_state=0), cut(X, Y, 4), mix="mistakes")
    save(model, tmp_path / "model.sepx")
    again = load(tmp_path / "model.sepx")
    assert same(model, again) and again.estimator.mix_ == "mistakes"
    assert np.array_equal(again.predict(X), model.predict(X))
    again.estimator.partial_fit(X[:50], Y[:50])
    model.estimator.partial_fit(X[:50], Y[:50])
    assert np.array_equal(again.estimator.coef_, model.estimator.coef_)
    assert model.estimator.mistakes_per_pass_ == again.estimator.mistakes_per_pass_
    assert model.estimator.n_mistakes_ == model.estimator.ledger_.total
    with pytest.raises(ValueError, match=r"were not kept \(training on shards only counts them"):
        model.estimator.ledger_.weights(X)


def test_training_goes_on_from_a_checkpoint_to_the_same_weights(tmp_path):
    class StoppedError(Exception):
        pass

    settings = {"rule": "arow", "max_iter": 8, "random_state": 3, "early_stopping": True, "n_iter_no_change": 8}
    shards = cut(X, Y, 8)
    whole = fit(AveragedPerceptron(**settings), shards)
    for when in ("pass 2", "pass 5"):

        def stop(doing, done, total, when=when):
            if doing == when and done == 3:
                raise StoppedError

        with pytest.raises(StoppedError):
            fit(AveragedPerceptron(**settings), shards, checkpoint=tmp_path / "run", working=stop)
        assert (tmp_path / "run").exists()
    with pytest.raises(DataError, match="belongs to other data or other settings"):
        fit(AveragedPerceptron(**settings | {"max_iter": 9}), shards, checkpoint=tmp_path / "run")
    begun = []
    resumed = fit(
        AveragedPerceptron(**settings), shards, checkpoint=tmp_path / "run", working=lambda doing, *_: begun.append(doing)
    )
    assert same(whole, resumed) and whole.estimator.validation_scores_ == resumed.estimator.validation_scores_
    assert "pass 4" not in begun and "pass 5" in begun and not (tmp_path / "run").exists()


def test_only_weights_and_counts_go_through_the_driver(tmp_path):
    pattern, engine = whole_numbers(tmp_path, n=40_000, d=30), Engine()
    fit(AveragedPerceptron(max_iter=5, random_state=0), pattern, engine=engine)
    data = sum(path.stat().st_size for path in tmp_path.iterdir())
    passes, weights = 5, 31 * 8
    assert engine.sent + engine.received < passes * 12 * weights + 40_000 < data / 50
    engine.close()


def test_what_cannot_be_mixed_is_refused():
    shards = cut(X, Y, 4)
    for learner, why in (
        (VotedPerceptron(), "predicts with its mistakes"),
        (PocketPerceptron(), "needs all examples at once"),
        (Perceptron(record=True), "the driver holds no data"),
        (Perceptron(rule="arow-full"), "cannot be mixed"),
        (PassiveAggressive(average=50), "average=True"),
        (Perceptron(calibrate="sigmoid"), "need held-out shards"),
    ):
        with pytest.raises(ValueError, match=why):
            fit(learner, shards)
    with pytest.raises(ValueError, match="mix='median'"):
        fit(Perceptron(), shards, mix="median")
    with pytest.raises(ValueError, match="holds out 1 of 1 shards"):
        fit(Perceptron(early_stopping=True), shards[:1])
    with pytest.raises(DataError, match="engine 'flink:1' is not known"):
        fit(Perceptron(), shards, engine="flink:1")


def test_a_poison_shard_is_named_with_its_row(tmp_path):
    pattern = whole_numbers(tmp_path, shards=4)
    with np.load(tmp_path / "part-02.npz") as held:
        broken, y = held["X"], held["y"]
    broken[17, 3] = np.nan
    np.savez(tmp_path / "part-02.npz", X=broken, y=y)
    with pytest.raises(DataError, match=r"part-02.npz.*(row|example) 1[78]"):
        fit(Perceptron(), pattern)
    for s in range(3):
        lines = ["a,b,kind"] + [f"{i},{i % 7},{'xy'[i % 2]}" for i in range(50)]
        if s == 1:
            lines[33] = "1,2,3,4"
        (tmp_path / f"t{s}.csv").write_text("\n".join(lines) + "\n")
    with pytest.raises(DataError, match=r"t1.csv, line 34"):
        fit(Perceptron(), str(tmp_path / "t*.csv"), label="kind")
    with pytest.raises(DataError, match=r"part 1: X contains infinity \(inf\) at row 2, column 0"):
        fit(Perceptron(), [(X[:9], Y[:9]), (np.array([[1.0], [2.0], [np.inf]]), [0, 1, 1])])
    left, right = add_results(BadShard(3, "c"), 1), add_results(BadShard(1, "a"), BadShard(2, "b"))
    assert add_results(left, right) == BadShard(1, "a")


def test_sms_spam_from_the_raw_file(data_folder, tmp_path):
    with gzip.open(data_folder / "sms_spam" / "SMSSpamCollection.gz", "rt", encoding="utf-8") as file:
        lines = file.read().splitlines()
    order = np.random.default_rng(0).permutation(len(lines))
    lines = [lines[i] for i in order]
    test, rest = lines[:1100], lines[1100:]
    for s in range(8):
        (tmp_path / f"part-{s}.tsv").write_text("\n".join(rest[s::8]) + "\n")
    (tmp_path / "all.tsv").write_text("\n".join(rest) + "\n")
    texts = {"1": [line.split("\t", 1)[1] for line in test]}
    truth = np.array([line.split("\t", 1)[0] for line in test])
    settings = {"rule": "pa1", "max_iter": 10, "random_state": 0}
    reading = {"header": False, "format": "tsv", "quote": ""}
    accuracy = []
    for pattern in ("all.tsv", "part-*.tsv"):
        model = fit(AveragedPerceptron(**settings), str(tmp_path / pattern), label=0, reading=reading)
        (name,) = model.features.feature_names_in_
        accuracy.append(np.mean(model.predict({name: texts["1"]}) == truth))
    assert accuracy[0] > 0.97 and abs(accuracy[0] - accuracy[1]) <= 0.003
