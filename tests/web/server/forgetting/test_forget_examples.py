"""Forgetting on the server: what is left is what the same requests, without the forgotten examples, would have given.

The judge is another store, to which those requests are sent. Numbers, keys, pins and undone mistakes are part of it.
"""

import copy
import random
import threading

import numpy as np
import orjson
import pytest

from separatrix import AveragedPerceptron, Model, TableFeatures, save
from separatrix.web.server import queries
from separatrix.web.server.forgetting.act import unchanging
from separatrix.web.server.forgetting.numbers import forgotten_numbers
from separatrix.web.server.storage import joining
from support.scale import counts
from support.served_store import FRESH, ServedStore
from support.server_process import examples
from web.server.forgetting.test_forget_traces import mistakes_of

KINDS = ("features", "text", "vectors")
RULES = ("perceptron", "pa1", "pa2", "arow")


def bare(live_model):
    """A live model without what only says how many examples were left out."""
    live_model = copy.deepcopy(live_model)
    live_model.progressive.left_out = 0
    return live_model


def is_same(one, other):
    """Weights, averages, variances, names, classes, counts of two stores, bit for bit; and their ledgers."""
    mine, others = bare(one.live_model), bare(other.live_model)
    names = [store.writer.buffer.names(store.live_model) for store in (one, other)]
    assert mine.state() == others.state() and names[0] == names[1] and mine.classes == others.classes
    return True


def a_stream(kind, n, chance):
    """Labelled examples of one kind, with marks."""
    labels = ["ham", "spam", "other"][: chance.choice([2, 3])]
    for i, (x, y) in enumerate(examples(n, seed=chance.getrandbits(32), classes=labels, names=40)):
        if kind == "text":
            x = " ".join([f"word{i}", *x])
        elif kind == "vectors":
            x = [float(np.float32(chance.gauss(0, 1) + (labels.index(y) == k))) for k in range(4)]
        else:
            x = {f"id-{i}": 1.0, **x}
        stuck = chance.random() < 0.15
        if chance.random() < 0.1:
            y = chance.choice(labels)
        yield x, y, stuck, chance.random() < 0.1


def send(one, batch, key=None):
    body = b"\n".join(
        orjson.dumps({one.reader.field: x, "label": y, "until_right": stuck, "pin": pin}) for x, y, stuck, pin in batch
    )
    return orjson.loads(one.writer.submit(one.reader.lines(body, True), key, body).result(60))


def settings(kind, chance):
    learner = chance.choice(["averaged", "last"])
    return FRESH | {
        "learner": learner,
        "rule": chance.choice(RULES),
        "text": kind == "text",
        "vectors": kind == "vectors",
        "bits": 8,
    }


def a_case(folder, seed):
    """Learn, perhaps undo, restart and compact; forget; learn on. Compare with a store that never had the examples."""
    chance = random.Random(seed)
    kind = chance.choice(KINDS)
    how, n = settings(kind, chance), chance.randint(4, 40)
    stream = list(a_stream(kind, n + 6, chance))
    one = ServedStore(folder / f"{seed}-one", how, keep_all=True)
    batches, begin = [], 0
    while begin < n:
        size = min(chance.randint(1, 6), n - begin)
        batches.append(range(begin, begin + size))
        begin += size
    for batch in batches:
        send(one, [stream[i] for i in batch])
    if chance.random() < 0.3:
        one.writer._maybe_snapshot()
    if is_compact := chance.random() < 0.4:
        while one.writer._compacted(one.store.last):
            pass
    if chance.random() < 0.3:
        one.crash()
        one.open()
    gone = set()
    for _ in range(chance.randint(1, 2)):
        left = [i for i in range(n) if i not in gone]
        some = chance.sample(left, chance.randint(1, min(3, len(left))))
        gone |= set(some)
        reply = one.forget(*[i + 1 for i in some])
        assert reply["forgotten"] == sorted(i + 1 for i in some)
    other = ServedStore(folder / f"{seed}-other", how, keep_all=True)
    for batch in batches:
        if kept := [stream[i] for i in batch if i not in gone]:
            send(other, kept)
    assert is_same(one, other)
    number = {rank: i + 1 for rank, i in enumerate((i for i in range(n) if i not in gone), 1)}
    pins = {number[pin.example]: (pin.label, pin.source) for pin in other.writer.regressions.pins.values()}
    mine = one.writer.regressions.pins
    assert {example: (pin.label, pin.source) for example, pin in mine.items() if example in pins} == pins
    assert {number[e] for e, pin in other.writer.regressions.pins.items() if pin.broken} == {
        e for e, pin in mine.items() if pin.broken and e in pins
    }
    number_of_commit = [k for k, batch in enumerate(batches, 1) if not gone.issuperset(batch)]
    for example, pin in other.writer.regressions.pins.items() if not is_compact else ():
        if pin.broken:
            broken = mine[number[example]].broken
            assert broken["commit"] == number_of_commit[pin.broken["commit"] - 1], "broken by the same commit"
            assert (broken["prediction"], broken["by"]["mistake"]) == (pin.broken["prediction"], pin.broken["by"]["mistake"])
    assert not {i + 1 for i in gone} & mine.keys()
    for store in (one, other):
        told = send(store, stream[n:])
    assert told["examples"] == n + 6 - len(gone) and one.live_model.progressive.numbered == n + 6
    assert is_same(one, other)
    before = one.crash()
    one.open()
    assert one.live_model.state() == before, "a restart gives the same"
    assert forgotten_numbers(one.store.forgettings).tolist() == sorted(i + 1 for i in gone)
    one.crash()
    other.crash()
    return kind


@pytest.mark.parametrize("count", counts(quick=25, slow=150, soak=1000))
def test_forgetting_is_never_having_learned(tmp_path, count, monkeypatch):
    monkeypatch.setattr(joining, "SEGMENT", 7)  # so that small commits are joined
    assert {a_case(tmp_path, seed) for seed in range(count)} == set(KINDS)


def test_a_commit_that_is_left_empty_hides_nothing_of_the_others(tmp_path, monkeypatch):
    monkeypatch.setattr(joining, "SEGMENT", 8)
    stream = list(examples(40, names=30))
    one, other = (ServedStore(tmp_path / name, keep_all=True) for name in ("a", "b"))
    for store in (one, other):
        for i, pair in enumerate(stream, 1):
            if store is one or i not in (3, 20):
                store.learn([pair])
    mine, others = mistakes_of(one), mistakes_of(other)
    undone = max(number for number in mine if number > 20 and number - 2 in others)
    assert one.undo(mine[undone])["how"] == other.undo(others[undone - 2])["how"] == "replayed"
    assert one.forget(3)["receipt"]["undos_dropped"] == []  # the commit of example 3 has no other
    while one.writer._compacted(one.store.last):
        pass
    assert one.forget(20)["receipt"]["undos_dropped"] == [], "what was joined with the empty commit is still kept"
    assert one.undo(1)["how"] == other.undo(1)["how"] == "replayed"
    assert is_same(one, other)
    told = one.crash()
    one.open()
    assert one.live_model.state() == told
    one.crash()
    other.crash()


TABLE = {"age": [22, 38, 60, 41, 30, 55], "job": ["clerk", "cook", "clerk", "cook", "cook", None]}
LABELS = ["no", "yes", "no", "yes", "yes", "no"]


@pytest.mark.parametrize("kind", ["table", "numbers"])
def test_a_server_that_began_with_a_model_forgets(tmp_path, kind):
    features = TableFeatures().fit(TABLE)
    X = features.transform(TABLE) if kind == "table" else np.arange(12.0).reshape(6, 2)
    learner = AveragedPerceptron(random_state=0).fit(X, LABELS)
    save(Model(learner, features) if kind == "table" else Model(learner), tmp_path / "m.sepx")
    chance = random.Random(0)
    stream = [
        ({"age": chance.randint(20, 70), "job": f"j-{i}"} if kind == "table" else {"0": chance.random(), "1": float(i)}, y)
        for i, y in enumerate(chance.choices(["no", "yes"], k=40))
    ]
    one, other = (ServedStore(tmp_path / name, model=tmp_path / "m.sepx", keep_all=True) for name in ("a", "b"))
    one.learn(stream[:25])
    one.learn(stream[25:])
    one.forget(3, 30)
    other.learn([pair for i, pair in enumerate(stream) if i not in (2, 29)])
    assert is_same(one, other)
    pages = [queries.ledger_page(store.store, store.writer.buffer, None, 100) for store in (one, other)]
    assert [mistake.get("row") for mistake in pages[0]["mistakes"]] == [m.get("row") for m in pages[1]["mistakes"]]
    assert kind == "numbers" or all("row" in mistake for mistake in pages[0]["mistakes"]), "rows of new mistakes were kept"
    number = [n for n in range(1, 41) if n not in (3, 30)]
    assert [m["example"] for m in pages[0]["mistakes"]] == [number[m["example"] - 1] for m in pages[1]["mistakes"]]
    for store in (one, other):
        store.crash()


def test_what_reads_the_ledger_meanwhile_sees_one_history(tmp_path):
    """Predictions, citations and the ledger are of one history, though the columns of features change."""
    stream = [({f"id-{i}": 1.0, **x}, y) for i, (x, y) in enumerate(examples(300, names=40))]
    one = ServedStore(tmp_path / "s", keep_all=True)
    for begin in range(0, 300, 10):
        one.learn(stream[begin : begin + 10])
    reading, ended, wrong = one.store.reader(), threading.Event(), []

    def read():
        while not ended.is_set():
            page = unchanging(one.writer, lambda buffer: queries.ledger_page(reading, buffer, None, 100))
            for mistake in page["mistakes"]:
                features = stream[mistake["example"] - 1][0]
                if mistake["features"] != features:
                    wrong.append((mistake, features))

    thread = threading.Thread(target=read)
    thread.start()
    for number in (7, 200, 3, 120, 1, 290, 80):
        one.forget(number)
    ended.set()
    thread.join()
    assert not wrong
    reading.db.close()
    one.crash()
