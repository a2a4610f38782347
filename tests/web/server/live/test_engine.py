"""The engine under the server: a commit gives the same state as the learning that it tells of, bit for bit."""

import sqlite3

import numpy as np
import orjson
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from separatrix import AveragedPerceptron, Model, PassiveAggressive, Perceptron, load
from separatrix.engine.rules import RULES
from separatrix.web.server.live.commits import Commit, SparseRows, merged
from separatrix.web.server.live.live_model import LiveModel
from separatrix.web.server.live.progressive_validation import ProgressiveValidation
from separatrix.web.server.reading.request_reader import Limits, RequestError, RequestReader
from separatrix.web.server.storage import snapshots
from separatrix.web.server.storage.joining import SEGMENT
from separatrix.web.server.storage.store import CommitStore
from separatrix.web.server.storage.store_folder import StoreError
from separatrix.web.server.writing.writer import Writer
from support.scale import property_examples
from support.served_store import FRESH, ServedStore
from support.server_process import examples, matrix


def blocks(stream, cuts):
    """The stream cut into blocks: rows, labels, and the names first met in each."""
    X, names = matrix(stream)
    known = 0
    for begin, end in zip([0, *cuts], [*cuts, len(stream)], strict=True):
        part = X[begin:end]
        top = max(known, int(part.indices.max(initial=-1)) + 1)
        block = SparseRows(part.data, part.indices.astype(np.int64), part.indptr.astype(np.int64))
        yield block, [y for _, y in stream[begin:end]], names[known:top]
        known = top


LEARNERS = [
    *(AveragedPerceptron(rule=rule) for rule in RULES if RULES[rule].spread != "full"),
    *(Perceptron(rule=rule, multi_class="ovr") for rule in ("perceptron", "pa1", "arow")),
    Perceptron(tie="first", fit_intercept=False),
    PassiveAggressive(average=True),
]


@pytest.mark.parametrize("learner", LEARNERS, ids=repr)
@pytest.mark.parametrize("classes", [("ham", "spam"), ("c", "a", "b"), (7, -1, 3, 5)])
def test_applying_what_was_learned_is_learning_it(learner, classes):
    stream = list(examples(300, classes=classes, names=60))
    whole = type(learner)(**learner.get_params()).partial_fit(matrix(stream)[0], [y for _, y in stream])
    first, second, joined = (LiveModel(Model(learner)) for _ in range(3))
    commits = []
    for block, labels, names in blocks(stream, [1, 2, 9, 150]):
        commit = Commit.unpack(first.learn(block, labels, names, None, True).pack())
        second.apply(commit)
        assert second.state() == first.state()
        commits.append(commit)
    joined.apply(merged(commits))
    assert joined.state() == first.state()
    model = first.model(matrix(stream)[1]).estimator
    assert np.array_equal(model.coef_, whole.coef_) and np.array_equal(model.intercept_, whole.intercept_)
    assert (model.n_errors_, model.n_seen_, model.n_mistakes_) == (whole.n_errors_, whole.n_seen_, whole.n_mistakes_)
    assert first.progressive.errors == whole.n_errors_ and model.radius_ == whole.radius_


@settings(max_examples=property_examples(40))
@given(st.lists(st.integers(1, 119), unique=True, max_size=8), st.integers(0, 5))
def test_the_batches_leave_no_trace(cuts, seed):
    stream = list(examples(120, seed=seed, names=40))
    at_once, in_parts = LiveModel(Model(AveragedPerceptron(rule="pa1"))), LiveModel(Model(AveragedPerceptron(rule="pa1")))
    for live_model, some in ((at_once, []), (in_parts, sorted(cuts))):
        for block in blocks(stream, some):
            live_model.learn(*block, None, False)
    assert at_once.state() == in_parts.state()


def test_predictions_are_those_of_the_model_file(tmp_path):
    stream = list(examples(300))
    live_model = LiveModel(Model(AveragedPerceptron()))
    (block, labels, names), rest = next(blocks(stream, [])), None
    live_model.learn(block, labels, names, rest, False)
    model = live_model.model(None).estimator
    X = matrix(stream)[0]
    assert np.array_equal(live_model.scores(block), model.decision_function(X))
    assert live_model.decide(live_model.scores(block)) == model.predict(X).tolist()


def test_windows_and_drift_follow_from_the_stream():
    rng = np.random.default_rng(0)
    wrong = rng.random(30_000) < np.where(np.arange(30_000) < 20_000, 0.1, 0.3)
    whole, parts = ProgressiveValidation(), ProgressiveValidation()
    whole.advance(30_000, 0, np.flatnonzero(wrong), np.zeros(wrong.sum(), int), np.array([30_000]))
    drifted = []
    for begin in range(0, 30_000, 250):
        some = np.flatnonzero(wrong[begin : begin + 250])
        parts.advance(250, 0, some, np.zeros(len(some), int), np.array([250]))
        drifted.append(parts.drift()["drifting"])
    assert whole.state() == parts.state() == ProgressiveValidation.resumed(orjson.loads(orjson.dumps(whole.state()))).state()
    told = whole.summary(["ham"])
    assert sum(window["errors"] for window in told["windows"]) == wrong.sum() == told["errors"]
    assert len(told["windows"]) <= 200 and told["windows"][-1]["to"] == 30_000
    for window in told["windows"]:
        assert window["errors"] == wrong[window["from"] - 1 : window["to"]].sum()
    assert not any(drifted[:80]) and any(drifted[80:90])


@pytest.mark.parametrize("keep_all", [False, True])
@pytest.mark.parametrize("rule", ["perceptron", "arow"])
def test_a_restart_recovers_from_any_snapshot(tmp_path, keep_all, rule):
    stream = list(examples(900))
    one = ServedStore(tmp_path / "s", FRESH | {"rule": rule}, keep_all=keep_all)
    for begin in range(0, 900, 30):
        one.learn(stream[begin : begin + 30], key=f"batch-{begin}")
        if begin in (300, 600):
            one.writer._maybe_snapshot()
    told = one.crash()
    for gone in (0, 1, 2):
        for path in sorted((tmp_path / "s").glob("snapshot-*"))[len(list((tmp_path / "s").glob("snapshot-*"))) - gone :]:
            path.write_bytes(b"damaged")
        store = CommitStore(tmp_path / "s")
        live_model, names, begun = snapshots.recover(store)
        assert live_model.state() == told and names == matrix(stream)[1]
        assert begun == [21, 11, 0][gone]
        while store.compact(store.last):
            pass
        assert snapshots.recover(store)[0].state() == told
        store.close()


def test_small_commits_are_joined_and_moments_stay_exact(tmp_path):
    stream = list(examples(SEGMENT + 200, names=50))
    one = ServedStore(tmp_path / "s")
    states = {}
    for begin in range(0, len(stream), 64):
        one.learn(stream[begin : begin + 64])
        states[one.store.last] = one.live_model.state()
    before = one.store.db.execute("SELECT count(*) FROM commits").fetchone()[0]
    one.crash()
    store = CommitStore(tmp_path / "s")
    assert store.compact(store.last) == SEGMENT // 64 - 1
    assert store.db.execute("SELECT count(*) FROM commits").fetchone()[0] == before - SEGMENT // 64 + 1
    store.close()
    store = CommitStore(tmp_path / "s")
    for (number,) in store.db.execute("SELECT last FROM commits").fetchall():
        assert snapshots.recover(store, number)[0].state() == states[number]
    assert snapshots.moment(store, examples=SEGMENT + 63)[0] == SEGMENT // 64
    assert snapshots.moment(store, examples=10)[0] == 0
    store.close()


def test_a_key_counts_once_and_stands_for_one_request(tmp_path):
    stream = list(examples(50))
    one = ServedStore(tmp_path / "s")
    first = one.learn(stream, "key")
    assert one.learn(stream, "key") == first and one.live_model.progressive.examples == 50
    with pytest.raises(RequestError, match="another request"):
        one.learn(stream[1:], "key")
    one.crash()
    one = ServedStore(tmp_path / "s")
    assert one.learn(stream, "key") == first and one.live_model.progressive.examples == 50
    one.store.db.execute("UPDATE keys SET served = -1e6, sum = x'00'")
    one.store.compact(0)
    assert one.learn(stream, "key")["examples"] == 100, "forgotten after a day, as is said"
    one.crash()


def test_undoing_subtracts(tmp_path):
    stream = list(examples(200, classes=("ham", "spam")))
    one = ServedStore(tmp_path / "s")
    one.learn(stream)
    before = one.live_model.model(matrix(stream)[1]).estimator
    mistake = one.store.mistakes_page(8, 1)[0]
    row = mistake[3].rows.take(np.array([mistake[2]]))
    assert one.undo(7) == {"undone": 7, "how": "subtracted"}
    after = one.live_model.model(matrix(stream)[1]).estimator
    sign = 1.0 if one.live_model.classes[mistake[3].up[mistake[2]]] == after.classes_[1] else -1.0
    last = before.run_.last.weights().coef[0] - after.run_.last.weights().coef[0]
    assert np.allclose(last[row.indices], sign * row.data, atol=1e-12) and np.count_nonzero(np.abs(last) > 1e-9) == len(
        row.data
    )
    share = 1 - (int(mistake[3].step[mistake[2]]) - 1) / 200
    assert np.allclose((before.coef_ - after.coef_)[0, row.indices], share * sign * row.data, atol=1e-12)
    with pytest.raises(RequestError, match="already undone"):
        one.undo(7)
    with pytest.raises(RequestError, match="there is no mistake 100000"):
        one.undo(100_000)
    told = one.crash()
    store = CommitStore(tmp_path / "s")
    assert snapshots.recover(store)[0].state() == told
    store.close()


@pytest.mark.parametrize("rule", ["perceptron", "arow"])
def test_undoing_with_all_examples_is_never_having_learned_it(tmp_path, rule):
    stream = list(examples(150))
    one = ServedStore(tmp_path / "s", FRESH | {"rule": rule}, keep_all=True)
    for begin in range(0, 150, 10):
        one.learn(stream[begin : begin + 10])
    gone = []
    for number in (1, 9, 4):
        _, _, at, commit = one.store.mistakes_page(number + 1, 1)[0]
        gone.append(int(commit.step[at]) - 1)
        assert one.undo(number) == {"undone": number, "how": "replayed"}
    left = [pair for i, pair in enumerate(stream) if i not in gone]
    X, names = matrix(stream)
    rows = [i for i in range(150) if i not in gone]
    whole = AveragedPerceptron(rule=rule).partial_fit(X[rows], [y for _, y in left])
    model = one.live_model.model(names).estimator
    assert np.array_equal(model.coef_, whole.coef_) and model.n_errors_ == whole.n_errors_
    one.learn(stream[:20])
    told = one.crash()
    store = CommitStore(tmp_path / "s")
    assert snapshots.recover(store)[0].state() == told
    store.close()


def test_variances_are_not_subtracted(tmp_path):
    one = ServedStore(tmp_path / "s", FRESH | {"rule": "arow"})
    one.learn(list(examples(20)))
    with pytest.raises(RequestError, match="--keep-all"):
        one.undo(1)
    one.crash()


def test_a_second_writer_is_refused_and_a_reader_is_not(tmp_path):
    one = ServedStore(tmp_path / "s")
    one.learn(list(examples(20)))
    with pytest.raises(StoreError, match="is being served by another process"):
        CommitStore(tmp_path / "s")
    other = CommitStore(tmp_path / "s", writing=False)
    assert snapshots.recover(other)[0].state() == one.live_model.state()
    other.close()
    one.crash()
    CommitStore(tmp_path / "s").close()


def test_what_waits_is_bounded(tmp_path):
    store = CommitStore(tmp_path / "s")
    snapshots.begin(store, None, FRESH)
    writer = Writer(store, Limits(waiting=3))
    reader = RequestReader(None, writer.limits)
    body = b'{"features": {"a": 1}, "label": "x"}'
    futures = [writer.submit(reader.one(body, True), None, body) for _ in range(3)]
    with pytest.raises(RequestError) as refused:
        writer.submit(reader.one(body, True), None, body)
    assert (refused.value.status, refused.value.wait) == (429, 1)
    writer.start()
    assert [orjson.loads(future.result(60))["examples"] for future in futures] == [1, 2, 3]
    assert writer.store.last == 1, "those that waited together were committed together"
    writer.close()


def test_a_failed_write_leaves_nothing_behind(tmp_path):
    stream = list(examples(100))
    one = ServedStore(tmp_path / "s")
    one.learn(stream[:50])
    told = one.live_model.state()
    one.store.db.execute("CREATE TRIGGER no BEFORE INSERT ON commits BEGIN SELECT RAISE(ABORT, 'the disk is full'); END")
    with pytest.raises(RequestError, match="the disk is full") as refused:
        one.learn(stream[50:])
    assert refused.value.status == 503 and one.writer.trouble
    assert one.live_model.state() == told and one.writer.buffer.learning.state() == told
    one.store.db.execute("DROP TRIGGER no")
    one.learn(stream[50:])
    assert not one.writer.trouble
    whole = AveragedPerceptron().partial_fit(matrix(stream)[0], [y for _, y in stream])
    assert np.array_equal(one.live_model.model(matrix(stream)[1]).estimator.coef_, whole.coef_)
    one.crash()


def test_a_trained_model_goes_on_as_it_would_have(tmp_path):
    from separatrix import save

    stream = list(examples(400))
    X, names = matrix(stream)
    trained = AveragedPerceptron(random_state=0, record=True).fit(X[:200], [y for _, y in stream[:200]])
    save(trained, tmp_path / "m.sepx")
    one = ServedStore(tmp_path / "s", model=tmp_path / "m.sepx")
    index = {name: str(j) for j, name in enumerate(names)}
    one.learn([({index[name]: value for name, value in x.items()}, y) for x, y in stream[200:]])
    whole = trained.partial_fit(X[200:], [y for _, y in stream[200:]])
    model = one.live_model.model([str(j) for j in range(len(names))]).estimator
    assert np.array_equal(model.coef_, whole.coef_) and model.n_seen_ == whole.n_seen_
    told = one.crash()
    store = CommitStore(tmp_path / "s")
    assert snapshots.recover(store)[0].state() == told
    with pytest.raises(StoreError, match="did not begin with"):
        save(whole, tmp_path / "m.sepx")
        snapshots.begin(store, tmp_path / "m.sepx", FRESH)
    store.close()
    assert isinstance(load(tmp_path / "m.sepx"), Model)


def test_every_damaged_row_is_noticed(tmp_path):
    one = ServedStore(tmp_path / "s")
    one.learn(list(examples(50)), "key")
    one.crash()
    for change in (
        "UPDATE commits SET body = zeroblob(length(body))",
        "UPDATE commits SET examples = examples + 1",
        "UPDATE commits SET time = time - 1",
        "DELETE FROM commits",
        "UPDATE keys SET reply = x'7b7d'",
        "UPDATE base SET value = x'7b7d'",
    ):
        content = (tmp_path / "s" / "store.db").read_bytes()
        db = sqlite3.connect(tmp_path / "s" / "store.db")
        db.execute(change)
        db.commit()
        db.close()
        with pytest.raises(StoreError, match=r"damaged|acknowledged"):
            CommitStore(tmp_path / "s")
        (tmp_path / "s" / "store.db").write_bytes(content)
    CommitStore(tmp_path / "s").close()


def test_labels_that_come_in_runs_are_reported_and_the_report_survives(tmp_path, caplog):
    mixed = list(examples(600, names=30))
    by_label = sorted(mixed, key=lambda example: example[1])
    one = ServedStore(tmp_path / "s")
    for begin in range(0, 600, 50):
        one.learn(by_label[begin : begin + 50])
    assert one.live_model.progressive.summary([])["in_runs"]
    one.writer._watch_labels()
    one.writer._watch_labels()
    (record,) = caplog.records
    assert record.getMessage().startswith("labels come in runs, as in rows sorted by label")
    told = one.crash()
    store = CommitStore(tmp_path / "s")
    while store.compact(store.last):
        pass
    live_model, _, _ = snapshots.recover(store)
    assert live_model.state() == told and live_model.progressive.in_runs()
    store.close()
    one = ServedStore(tmp_path / "s")
    for _ in range(3):
        one.learn(mixed)
    assert not one.live_model.progressive.in_runs()
    one.crash()
