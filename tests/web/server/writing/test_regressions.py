"""The regression set: pinned examples, who broke them and since when; durable as what was learned."""

import shutil
import sqlite3
from contextlib import closing

import orjson
import pytest

from separatrix.web import ServerError
from separatrix.web.server.reading.request_reader import RequestError
from separatrix.web.server.storage import backup
from separatrix.web.server.storage.pins import read_pins
from separatrix.web.server.storage.repair import repaired
from separatrix.web.server.storage.store import CommitStore
from separatrix.web.server.storage.store_folder import StoreError
from separatrix.web.server.writing import regressions
from support.served_store import FRESH, ServedStore
from support.server_process import examples, served

LAST = FRESH | {"learner": "last"}


def learn(one, x, label, key=None, **marks):
    body = orjson.dumps({one.reader.field: x, "label": label, **marks})
    return orjson.loads(one.writer.submit(one.reader.one(body, True), key, body).result(60))


def pins_of(folder):
    with closing(CommitStore(folder, writing=False)) as store:
        return {pin.example: pin for pin in read_pins(store.db)}


def test_the_correction_that_broke_a_pin_is_named(tmp_path):
    one = ServedStore(tmp_path / "s", LAST)
    learn(one, {"a": 1}, "no")
    assert learn(one, {"b": 1}, "yes", until_right=True, pin=True)["right"] is True
    assert one.writer.regressions.pins[2].broken is None
    told = learn(one, {"b": 3}, "no", until_right=True)
    assert told["broke"] == [2] and told["right"]
    broken = one.writer.regressions.pins[2].broken
    assert broken["prediction"] == "no" and broken["commit"] == 3
    assert broken["by"] == {"examples": [3, 3], "mistake": 2}, "the second mistake of the ledger"
    assert pins_of(tmp_path / "s")[2].broken == broken, "on the disk as well"
    told = learn(one, {"b": 1, "c": 1}, "yes", until_right=True)
    assert "broke" not in told
    while one.writer.regressions.pins[2].broken:
        learn(one, {"b": 1}, "yes", until_right=True)
    assert pins_of(tmp_path / "s")[2].broken is None, "what is right again is no regression"
    one.crash()


def test_among_several_requests_of_a_commit_the_one_that_broke_it_is_told(tmp_path):
    """Requests that wait together become one commit."""
    one = ServedStore(tmp_path / "s", LAST)
    learn(one, {"a": 1}, "no")
    learn(one, {"b": 1}, "yes", until_right=True, pin=True)
    with one.writer._wake:  # so that they wait together
        futures = []
        for x, label in (({"z": 1}, "yes"), ({"b": 9}, "no"), ({"y": 1}, "no")):
            body = orjson.dumps({"features": x, "label": label})
            futures.append(one.writer.submit(one.reader.one(body, True), None, body))
    told = [orjson.loads(future.result(60)) for future in futures]
    assert one.store.last == 3
    assert [reply.get("broke") for reply in told] == [None, [2], None]
    one.crash()


def test_the_same_example_pinned_again_replaces_the_pin(tmp_path):
    one = ServedStore(tmp_path / "s", FRESH | {"text": True})
    learn(one, "hello", "ham")
    learn(one, "free money", "spam", pin=True)
    learn(one, "free money", "ham", pin=True, until_right=True)
    assert {number: pin.label for number, pin in pins_of(tmp_path / "s").items()} == {3: "ham"}
    assert orjson.loads(one.writer.unpin(3).result(60)) == {"unpinned": 3}
    assert not pins_of(tmp_path / "s")
    with pytest.raises(RequestError, match="example 3 is not pinned"):
        one.writer.unpin(3).result(60)
    one.crash()


def test_the_set_is_bounded_and_a_refused_pin_leaves_no_name(tmp_path, monkeypatch):
    monkeypatch.setattr(regressions, "MOST_PINS", 2)
    one = ServedStore(tmp_path / "s")
    learn(one, {"a": 1}, "no", pin=True)
    learn(one, {"b": 1}, "yes", pin=True)
    with pytest.raises(RequestError, match="the regression set is full") as refused:
        learn(one, {"c": 1}, "no", pin=True)
    assert refused.value.status == 422 and "c" not in one.writer.buffer.index.column
    assert learn(one, {"c": 1}, "no")["examples"] == 3
    one.crash()


def test_pins_survive_a_crash_a_backup_a_restore_and_a_repair(tmp_path):
    one = ServedStore(tmp_path / "s", snapshot_seconds=3600)
    stream = list(examples(40))
    for x, y in stream:
        learn(one, x, y, key=None, pin=True, until_right=True)
    one.writer._maybe_snapshot()
    pins = dict(one.writer.regressions.pins)
    assert len(pins) == 40
    one.crash()
    assert pins_of(tmp_path / "s") == pins
    again = ServedStore(tmp_path / "s")
    assert again.writer.regressions.pins == pins
    learn(again, *stream[0])
    after = dict(again.writer.regressions.pins)
    again.crash()
    backup.back_up(tmp_path / "s", tmp_path / "b.zip")
    backup.restore(tmp_path / "b.zip", tmp_path / "restored")
    assert pins_of(tmp_path / "restored") == after
    shutil.copytree(tmp_path / "s", tmp_path / "hurt")
    with closing(sqlite3.connect(tmp_path / "hurt" / "store.db")) as db:
        db.execute("UPDATE commits SET body = x'00' WHERE last = 41")
        db.commit()
    assert "commits up to number 40" in repaired(tmp_path / "hurt")[0]
    assert pins_of(tmp_path / "hurt").keys() == pins.keys()
    assert all(pin.broken is None or pin.broken["commit"] <= 40 for pin in pins_of(tmp_path / "hurt").values())


def test_a_damaged_pin_is_refused_and_repaired_by_name(tmp_path):
    one = ServedStore(tmp_path / "s")
    learn(one, {"a": 1}, "no", pin=True)
    learn(one, {"b": 1}, "yes", pin=True)
    one.crash()
    with closing(sqlite3.connect(tmp_path / "s" / "store.db")) as db:
        db.execute("UPDATE pins SET body = x'7b7d' WHERE example = 2")
        db.commit()
    with pytest.raises(StoreError, match="checksum mismatch in the pinned example 2"):
        CommitStore(tmp_path / "s")
    assert "some pinned examples are lost: pin them again" in repaired(tmp_path / "s")
    assert list(pins_of(tmp_path / "s")) == [1]


def test_over_http(tmp_path):
    with served(tmp_path / "state", "--learner", "last") as server:
        client = server.client()

        def post(path, **fields):
            return client.request("POST", path, fields)

        post("/learn", features={"a": 1}, label="no")
        told = post("/learn", features={"b": 1}, label="yes", until_right=True, pin=True)
        assert told == {"learned": 1, "errors": 1, "mistakes": 1, "examples": 2, "right": True}
        assert client.request("GET", "/regressions") == {"pinned": [2], "regressions": []}
        assert post("/learn", features={"b": 5}, label="no")["broke"] == [2]
        page = client.request("GET", "/regressions")
        assert page["pinned"] == [2]
        (broken,) = page["regressions"]
        assert (broken["example"], broken["label"], broken["prediction"]) == (2, "yes", "no")
        assert broken["features"] == {"b": 1.0} and broken["by"]["mistake"] == 2
        with pytest.raises(ServerError, match='"pin" must be true or false'):
            post("/learn", features={"b": 5}, label="no", pin=1)
        assert post("/unpin", example=2) == {"unpinned": 2}
        with pytest.raises(ServerError, match="404: example 2 is not pinned"):
            post("/unpin", example=2)
        with pytest.raises(ServerError, match=r'send {"example": number}'):
            post("/unpin", mistake=2)
        assert client.request("GET", "/regressions") == {"pinned": [], "regressions": []}
