"""What is left after forgetting: nothing in any file of the folder; and what a backup brings back is forgotten again."""

import json
import re
from contextlib import closing

import orjson
import pytest

from separatrix.web import ServerError
from separatrix.web.server.forgetting import act, erasing
from separatrix.web.server.reading.request_reader import RequestError
from separatrix.web.server.storage import snapshots
from separatrix.web.server.storage.repair import repaired
from separatrix.web.server.storage.store import CommitStore
from separatrix.web.server.storage.store_folder import StoreError
from support.served_store import FRESH, ServedStore
from support.server_process import examples, run, served

SECRET = "quinzaine-7041"


def send(one, x, label, key=None, **marks):
    body = orjson.dumps({one.reader.field: x, "label": label, **marks})
    return orjson.loads(one.writer.submit(one.reader.one(body, True), key, body).result(60))


def files_with(folder, *words):
    """The files in which one of the words, or its bytes in another encoding, occurs."""
    found = []
    for path in folder.rglob("*"):
        content = path.read_bytes() if path.is_file() else b""
        if any(word.encode() in content for word in words):
            found.append(path.name)
    return sorted(found)


def a_store(folder, text=False, **options):
    one = ServedStore(folder, FRESH | {"text": text}, keep_all=True, **options)
    for i, (x, y) in enumerate(examples(30)):
        x = " ".join(x) if text else x
        if i == 7:
            mark = SECRET if text else {SECRET: 2.0, **x}
            assert send(one, mark, "mail-of-" + SECRET, "message-7", pin=True, until_right=True)["examples"] == 8
        else:
            send(one, x, y, f"message-{i}")
        if i in (5, 15):
            one.writer._maybe_snapshot()
    return one


@pytest.mark.parametrize("text", [False, True])
def test_nothing_of_a_forgotten_example_is_left(tmp_path, text):
    folder = tmp_path / "s"
    one = a_store(folder, text)
    one.store.compact(one.store.last)
    (folder / ".snapshot-000000000009.part").write_text(SECRET)
    (folder / "damaged-20300101T000000Z").mkdir()
    (folder / "damaged-20300101T000000Z" / "store.db").write_text(SECRET)
    (folder / "damaged-20300101T000000Z" / "report.txt").write_text("commits 1 to 2")
    assert {"store.db-wal", "store.db", ".snapshot-000000000009.part"} <= set(files_with(folder, SECRET))
    reply = one.forget(8)
    assert not files_with(folder, SECRET)
    assert not files_with(folder, json.dumps(reply["key"])), "the key is in the answer alone"
    receipt = reply["receipt"]
    assert SECRET not in json.dumps(reply) and receipt["removed"]["examples"] == [8] and receipt["unpinned"] == [8]
    assert receipt["keys"] == 1 and "damaged-20300101T000000Z/store.db" in receipt["deleted"]
    assert (folder / "damaged-20300101T000000Z" / "report.txt").exists()
    assert "mail-of-" + SECRET not in one.live_model.classes
    again = one.forget(8)
    assert again == reply | {"key": None}, "the same request is answered with the same receipt"
    one.writer._maybe_snapshot()
    one.writer.close()
    assert not files_with(folder, SECRET)
    with closing(CommitStore(folder, writing=False)) as store:
        snapshots.recover(store)


def test_the_key_shows_which_example_it_was(tmp_path):
    one = a_store(tmp_path / "s")
    x = next(x for i, (x, _) in enumerate(examples(30)) if i == 7)
    reply = one.forget(8)
    content = {"features": {SECRET: 2.0, **x}, "label": "mail-of-" + SECRET}
    assert reply["receipt"]["removed"]["checksums"] == [act.keyed(bytes.fromhex(reply["key"]), content)]
    assert act.keyed(act.new_key(), content) not in reply["receipt"]["removed"]["checksums"]
    one.crash()


def test_a_key_of_a_forgotten_request_does_not_bring_it_back(tmp_path):
    one = a_store(tmp_path / "s")
    x, y = list(examples(30))[9]
    one.forget(10)
    for value in (x, {"other": 1}):
        with pytest.raises(RequestError, match="were forgotten, and are not learned again") as refused:
            send(one, value, y, "message-9")
        assert refused.value.status == 410
    assert send(one, list(examples(30))[10][0], list(examples(30))[10][1], "message-10")["examples"] == 11, "answered before"
    one.store._served += 1e9
    one.store.compact(0)
    with pytest.raises(RequestError, match="were forgotten"):
        send(one, x, y, "message-9")
    assert send(one, x, y, "message-9-again")["examples"] == 31, "numbers are never given twice"
    one.crash()


def test_numbers_that_cannot_be_forgotten_are_refused_before_anything_starts(tmp_path):
    one = a_store(tmp_path / "s")
    before = one.live_model.state()
    with pytest.raises(RequestError, match="example 31 was never learned from: nothing was forgotten"):
        one.forget(3, 31)
    one.forget(3)
    with pytest.raises(RequestError, match="example 3 was already forgotten"):
        one.forget(3, 4)
    assert one.live_model.state() != before and one.live_model.progressive.examples == 29
    one.crash()
    partly = ServedStore(tmp_path / "p")
    partly.learn(list(examples(10)))
    partly.crash()
    partly = ServedStore(tmp_path / "p", keep_all=True)
    partly.learn(list(examples(20, seed=1)))
    with pytest.raises(RequestError, match="start the server with --keep-all before the first example"):
        partly.forget(4)
    assert partly.forget(14)["receipt"]["replay"]["presented"] == 19, "what came before need not have been kept"
    partly.crash()
    with closing(CommitStore(tmp_path / "p")) as store:
        assert snapshots.recover(store)[0].progressive.examples == 29


def mistakes_of(one):
    """The numbers of the mistakes by their example."""
    page = one.store.mistakes_page(1 << 40, 1000)
    return {s.examples - commit.n + int(commit.positions[at]) + 1: number for number, s, at, commit in page}


@pytest.mark.parametrize("rule", ["perceptron", "arow"])
def test_a_mistake_that_was_undone_is_undone_again(tmp_path, rule):
    stream = list(examples(80, names=30))
    one, other = (ServedStore(tmp_path / name, FRESH | {"rule": rule}, keep_all=True) for name in ("a", "b"))
    for begin in range(0, 80, 10):
        one.learn(stream[begin : begin + 10])
        other.learn([pair for i, pair in enumerate(stream[begin : begin + 10], begin) if i != 2])
        if begin == 30:
            mine, others = mistakes_of(one), mistakes_of(other)
            example = max(number for number in mine if number > 5 and number - 1 in others)
            one.undo(mine[example])
            theirs = others[example - 1]
            other.undo(theirs)
    receipt = one.forget(3)["receipt"]
    assert receipt["undos_dropped"] == [] and one.live_model.progressive.undone == 1
    for store in (one, other):
        store.learn(stream[:10])
    mine, others = one.live_model, other.live_model
    mine.progressive.left_out = others.progressive.left_out = 0
    assert mine.state() == others.state()
    assert one.store.undone().keys() == other.store.undone().keys()
    assert one.forget(example)["receipt"]["undos_dropped"] == [theirs], "there is nothing left to undo"
    assert not one.store.undone()
    told = one.crash()
    with closing(CommitStore(tmp_path / "a")) as store:
        assert snapshots.recover(store)[0].state() == told
    other.crash()


def test_a_pin_that_a_forgotten_example_had_put_right_says_what_broke_it(tmp_path):
    one = ServedStore(tmp_path / "s", FRESH | {"learner": "last"}, keep_all=True)
    send(one, {"a": 1}, "ham", pin=True)
    assert send(one, {"a": 1}, "spam")["broke"] == [1]
    (broken,) = [pin.broken for pin in one.writer.regressions.pins.values()]
    for _ in range(3):
        send(one, {"other": 1}, "spam")
    send(one, {"a": 1}, "ham")
    assert one.writer.regressions.pins[1].broken is None
    one.forget(6)
    again = one.writer.regressions.pins[1].broken
    assert again == broken | {"since": again["since"]}, "example 2, and none of those between"
    assert again["since"] == pytest.approx(broken["since"], abs=1.0)
    assert broken["by"] == {"examples": [2, 2], "mistake": 1}
    one.crash()


def test_all_examples_can_be_forgotten_and_learning_goes_on(tmp_path):
    for settings in (FRESH, FRESH | {"vectors": True}):
        one = ServedStore(tmp_path / f"s{len(settings)}", settings, keep_all=True)
        vectors = bool(settings.get("vectors"))
        one.learn([([1.0, 2.0], "a"), ([2.0, 1.0], "b")] if vectors else list(examples(2)))
        assert one.forget(1, 2)["receipt"]["after"] == {"examples": 0, "mistakes": 0, "commit": 1, "learned": ""}
        assert one.live_model.run is None and one.live_model.n_names == 0
        one.crash()
        one.open()
        assert one.learn([([1.0, 2.0, 3.0], "c")] if vectors else list(examples(1)))["examples"] == 3
        one.writer._maybe_snapshot()
        told = one.crash()
        with closing(CommitStore(one.folder)) as store:
            assert snapshots.recover(store)[0].state() == told


def test_what_cannot_be_erased_at_once_is_erased_later(tmp_path, monkeypatch):
    one = a_store(tmp_path / "s", snapshot_seconds=0.05)
    with closing(CommitStore(tmp_path / "s", writing=False)) as reading, monkeypatch.context() as patch:
        patch.setattr(erasing, "_PATIENCE", 0.1)
        with pytest.raises(RequestError, match="not all of their traces are erased yet") as refused:
            one.forget(8)
        assert refused.value.status == 503 and one.live_model.progressive.examples == 29
        reading.db.execute("COMMIT")
    assert one.forget(8)["forgotten"] == [8] and not files_with(tmp_path / "s", SECRET)
    one.crash()


def test_a_forgetting_that_a_kill_interrupted_before_the_erasing_is_finished_at_the_start(tmp_path, monkeypatch):
    one = a_store(tmp_path / "s")
    with monkeypatch.context() as patch:
        patch.setattr(act, "erase", lambda store: (_ for _ in ()).throw(StoreError("killed")))
        with pytest.raises(RequestError, match="killed"):
            one.forget(8)
    told = one.crash()
    assert files_with(tmp_path / "s", SECRET)
    with closing(CommitStore(tmp_path / "s", writing=False)) as store:
        assert snapshots.recover(store)[0].state() == told, "no snapshot is taken that has learned from it"
    one.open()
    assert one.live_model.state() == told and not files_with(tmp_path / "s", SECRET)
    one.crash()


def test_a_failed_transaction_changes_nothing(tmp_path):
    one = a_store(tmp_path / "s")
    told = one.live_model.state()
    one.store.db.execute("CREATE TRIGGER no BEFORE DELETE ON pins BEGIN SELECT RAISE(ABORT, 'the disk is full'); END")
    with pytest.raises(RequestError, match="the disk is full") as refused:
        one.forget(20)
    assert refused.value.status == 503 and one.live_model.state() == told and not one.store.forgettings
    one.store.db.execute("DROP TRIGGER no")
    assert one.forget(20)["receipt"]["after"]["examples"] == 29
    one.crash()


def test_a_repaired_store_forgets(tmp_path):
    """What a repair put aside holds the example as well."""
    one = a_store(tmp_path / "s")
    one.crash()
    with closing(CommitStore(tmp_path / "s")) as store:
        store.db.execute("UPDATE commits SET body = zeroblob(10) WHERE last = 28")
    assert "lost: commits 28 to 30, examples 28 to 30" in repaired(tmp_path / "s")
    one.open()
    one.forget(8)
    assert not files_with(tmp_path / "s", SECRET)
    one.writer._maybe_snapshot()
    one.crash()
    with closing(CommitStore(tmp_path / "s")) as store:
        store.db.execute("UPDATE commits SET body = zeroblob(10) WHERE last = 12")
    assert any(line.startswith("missing from the ledger") for line in repaired(tmp_path / "s"))
    one.open()
    with pytest.raises(RequestError, match="are missing since a repair: what was learned is not known"):
        one.forget(9)
    with pytest.raises(RequestError, match="example 12 is among commits that a repair did not find"):
        one.forget(12)
    one.learn(list(examples(3)))
    assert one.forget(29)["receipt"]["after"]["examples"] == 28
    one.crash()


def test_forgetting_over_http(tmp_path):
    stream = list(examples(60))
    with served(tmp_path / "state", "--keep-all", "--log", "payloads") as server:
        client = server.client()
        numbers = [client.learn(x, y, until_right=i % 9 == 0, pin=i % 9 == 0)["examples"] for i, (x, y) in enumerate(stream)]
        assert numbers == list(range(1, 61))
        reply = client.forget([10, 17])
        assert reply["forgotten"] == [10, 17] and reply["receipt"]["unpinned"] == [10]
        assert "--log payloads" in reply["receipt"]["logs"], "what was logged is not ours to erase"
        stats = client.stats()
        assert (stats["examples"], stats["forgotten"]) == (58, 2)
        assert client.forgotten() == [reply["receipt"]] and 10 not in client.regressions()["pinned"]
        assert all(mistake["example"] not in (10, 17) for mistake in client.ledger())
        assert "separatrix_forgotten_total 2\n" in client._send(client_call("/metrics")).decode()
        for numbers, status, words in (
            ([99], 404, "example 99 was never learned from"),
            ([], 422, "send {"),
            ([0], 422, "0 is not the number of an example"),
            (["7"], 422, '"7" is not the number of an example'),
            ([17], 409, "example 17 was already forgotten"),
        ):
            with pytest.raises(ServerError, match=re.escape(words)) as refused:
                client.request("POST", "/forget", {"examples": numbers})
            assert refused.value.status == status
        assert client.learn(*stream[0])["examples"] == 61
        (tmp_path / "receipt.json").write_text(json.dumps(reply))
        assert server.stop() == 0
        assert "INFO 2 examples forgotten: 10, 17" in server.log()
    status, said = run("check", tmp_path / "receipt.json", "--data", tmp_path / "state")
    assert (status, said.split(":")[0]) == (0, "VALID"), said
    status, said = run("check", tmp_path / "receipt.json", "--data", tmp_path / "receipt.json")
    assert status == 2 and "name the folder of its store" in said
    reply["receipt"]["after"]["learned"] = "0" * 64
    (tmp_path / "receipt.json").write_text(json.dumps(reply))
    status, said = run("check", tmp_path / "receipt.json", "--data", tmp_path / "state")
    assert status == 1 and "says something else" in said


def test_one_of_many_models_forgets_and_the_others_stay(tmp_path):
    stream = list(examples(30))
    with served(tmp_path / "state", "--many", "--keep-all") as server:
        clients = [server.client().model(name) for name in ("books", "tools")]
        for x, y in stream:
            for client in clients:
                client.learn({SECRET: 1.0, **x} if x is stream[4][0] else x, y)
        reply = clients[0].forget([5])
        assert [client.stats()["examples"] for client in clients] == [29, 30]
        assert [bool(files_with(tmp_path / "state" / name, SECRET)) for name in ("books", "tools")] == [False, True]
        paths = clients[0].request("GET", "/openapi.json")["paths"]
        assert "/forget" in paths and "/models/{name}/forget" in server.client().request("GET", "/openapi.json")["paths"]
        server.kill()
        server.start()
        clients.append(server.client().model("books"))
        assert clients[-1].forgotten() == [reply["receipt"]] and clients[-1].stats()["examples"] == 29
        for one in clients:
            one.close()


def client_call(path):
    from separatrix.web.exchange import Call

    return Call("GET", path)
