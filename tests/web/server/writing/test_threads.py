"""The threads that must not die: whatever fails in them, the server recovers or ends loudly, and its answers stay true."""

import re
import subprocess
import sys
import threading
import time
import urllib.error
import urllib.request
from concurrent.futures import Future

import orjson
import pytest

from separatrix.web.server.live.live_model import LearningStoppedError, LiveModel
from separatrix.web.server.reading.request_reader import RequestError
from separatrix.web.server.storage.snapshots import recover
from separatrix.web.server.storage.store import CommitStore
from separatrix.web.server.storage.store_folder import StoreError
from separatrix.web.server.writing import learn_group
from separatrix.web.server.writing import writer as writers
from support.served_store import ServedStore
from support.server_process import examples

STREAM = list(examples(120))


@pytest.fixture
def one(tmp_path):
    one = ServedStore(tmp_path / "s")
    one.learn(STREAM[:40])
    yield one
    if one.writer._thread.is_alive():
        one.crash()


def failing(error, times=1, after=False):
    """Return a wrapper for a method that fails a few times, before it acts or after it has acted."""

    def wrap(method):
        left = [times]

        def act(*arguments, **options):
            if after:
                value = method(*arguments, **options)
            if left[0]:
                left[0] -= 1
                raise error
            return value if after else method(*arguments, **options)

        return act

    return wrap


def eventually(condition, seconds=20):
    end = time.monotonic() + seconds
    while not condition() and time.monotonic() < end:
        time.sleep(0.01)
    return condition()


def stored(one):
    """What a restart would recover, once the copy that learns has followed."""
    followed = threading.Event()
    one.writer._let_work(followed.set)
    assert followed.wait(20)
    other = CommitStore(one.folder, writing=False)
    try:
        return recover(other)[0].state()
    finally:
        other.close()


@pytest.mark.parametrize("where", ["learn", "stacked", "replies_to"])
def test_what_runs_out_of_memory_is_not_learned_and_said_so(one, monkeypatch, where):
    before, claimed = one.live_model.state(), one.writer.memory.models.claimed
    place = (LiveModel if where == "learn" else learn_group, where)
    monkeypatch.setattr(*place, failing(MemoryError())(getattr(*place)))
    with pytest.raises(RequestError, match="not learned from: not enough memory") as refused:
        one.learn([*STREAM[40:80], ({f"n{i}": 1.0 for i in range(1000)}, "ham")])
    assert refused.value.status == 503
    assert one.live_model.state() == one.writer.buffer.learning.state() == before == stored(one)
    assert not one.writer.problem(), "the next request may be smaller"
    assert one.writer.memory.models.claimed == claimed, "what was claimed to grow is released"
    assert one.learn(STREAM[40:])["examples"] == 120
    assert stored(one) == one.live_model.state()


def test_what_was_learned_is_never_called_lost(one, monkeypatch, caplog):
    """The copy that readers no longer see runs out of memory while it follows: the commit is on the disk."""
    monkeypatch.setattr(LiveModel, "apply", failing(MemoryError())(LiveModel.apply))
    body = b'{"features": {"again": 1}, "label": "ham"}'
    replies = [one.writer.submit(one.reader.one(body, True), "one-key", body) for _ in range(3)]
    assert len({reply.result(60) for reply in replies}) == 1
    assert orjson.loads(replies[0].result())["examples"] == 41
    assert one.learn(STREAM[40:])["examples"] == 121
    assert "not learned from" not in caplog.text and "all requests were answered" in caplog.text
    assert stored(one) == one.live_model.state() == one.writer.buffer.learning.state()


@pytest.mark.parametrize("error", [StoreError("the disk is strange"), MemoryError(), ZeroDivisionError()], ids=repr)
def test_a_commit_that_is_on_the_disk_is_acknowledged(one, monkeypatch, error):
    """The store reports an error of what it has written: the server looks before it answers."""
    monkeypatch.setattr(one.store, "append", failing(error, after=True)(one.store.append))
    body = b"\n".join(orjson.dumps({"features": x, "label": y}) for x, y in STREAM[40:80])
    with one.writer._wake:  # both wait together
        first, second = (one.writer.submit(one.reader.lines(body, True), "key", body) for _ in range(2))
    assert orjson.loads(first.result(20))["examples"] == 80
    with pytest.raises(RequestError, match="send it again under the same Idempotency-Key"):
        second.result(20)
    assert one.learn(STREAM[40:80], key="key")["examples"] == 80
    assert one.learn(STREAM[80:])["examples"] == 120
    assert stored(one) == one.live_model.state() == one.writer.buffer.learning.state()


def test_what_is_not_known_is_called_so(one, monkeypatch):
    """The write fails and then, for a while, reading what was written: the outcome is unknown, and the key settles it."""
    monkeypatch.setattr(one.store, "append", failing(StoreError("the disk is strange"), after=True)(one.store.append))
    monkeypatch.setattr(one.store, "reread", failing(StoreError("it cannot be read"))(one.store.reread))
    with pytest.raises(RequestError, match="it is not known whether this was stored") as refused:
        one.learn(STREAM[40:80], key="key")
    assert refused.value.status == 503
    assert one.learn(STREAM[40:80], key="key")["examples"] == 80
    assert one.learn(STREAM[80:])["examples"] == 120 and stored(one) == one.live_model.state()


def test_an_undo_that_is_on_the_disk_is_acknowledged(one, monkeypatch):
    monkeypatch.setattr(one.store, "append", failing(MemoryError(), after=True)(one.store.append))
    assert one.undo(3)["undone"] == 3
    with pytest.raises(RequestError, match="already undone"):
        one.undo(3)
    assert stored(one) == one.live_model.state()


def test_a_model_that_cannot_be_brought_up_to_date_is_tried_again(one, monkeypatch):
    """First learning fails and then, for a while, what undoes it: learning is refused, and recovers without a request."""
    monkeypatch.setattr(LiveModel, "learn", failing(MemoryError())(LiveModel.learn))
    broken = threading.Event()
    restart = one.writer.buffer.restart

    def restarting(*arguments):
        if not broken.is_set():
            raise MemoryError
        restart(*arguments)

    monkeypatch.setattr(one.writer.buffer, "restart", restarting)
    for _ in range(2):
        with pytest.raises(RequestError, match="not learned from"):
            one.learn(STREAM[40:80])
    assert "cannot be" not in one.writer.problem() and "brought up to date" in one.writer.problem()
    broken.set()
    assert eventually(lambda: not one.writer.problem())
    assert one.learn(STREAM[40:])["examples"] == 120
    assert stored(one) == one.live_model.state()


def test_one_failed_sync_does_not_end_maintenance(tmp_path, monkeypatch, caplog):
    one = ServedStore(tmp_path / "s", snapshot_seconds=0.05)
    monkeypatch.setattr(one.store, "sync_head", failing(OSError(5, "Input/output error"), times=3)(one.store.sync_head))
    assert eventually(lambda: "maintenance of the store fails: [Errno 5]" in one.writer.problem())
    assert eventually(lambda: not one.writer.problem())
    assert "maintenance failed, and is tried again" in caplog.text
    one.learn(STREAM)
    assert eventually(lambda: list((tmp_path / "s").glob("snapshot-*.sepx"))), "maintenance goes on"
    one.crash()


def test_cancelled_requests_do_not_end_the_writer(one):
    body = b'{"features": {"a": 1}, "label": "ham"}'
    with one.writer._wake:  # the writer waits
        future = one.writer.submit(one.reader.one(body, True), None, body)
        assert future.cancel()
    assert one.learn(STREAM[40:])["examples"] == 120 and not one.writer.problem()


@pytest.mark.parametrize("thread", ["writer", "maintenance"])
def test_a_thread_that_ends_is_noticed(one, monkeypatch, thread, caplog):
    ended = threading.Event()
    one.writer.on_death = ended.set
    place = (LiveModel, "learn") if thread == "writer" else (one.store, "sync_head")
    monkeypatch.setattr(*place, failing(SystemExit("gone"), times=9)(getattr(*place)))
    if thread == "writer":
        body = b'{"features": {"a": 1}, "label": "ham"}'
        one.writer.submit(one.reader.one(body, True), None, body)
    assert ended.wait(20)
    assert f"the {thread} thread has ended (SystemExit('gone'))" in one.writer.problem()
    with pytest.raises(RequestError, match=f"not learned from: the {thread} thread has ended"):
        one.learn(STREAM[40:])
    assert "CRITICAL" in caplog.text


def test_the_end_takes_seconds_whatever_is_learned(one, monkeypatch):
    """Learning that would never end is stopped, and what waits behind it is refused."""
    begun = threading.Event()

    def endless(model, *arguments):
        begun.set()
        while not arguments[-2]():
            time.sleep(0.01)
        raise LearningStoppedError

    monkeypatch.setattr(LiveModel, "learn", endless)
    monkeypatch.setattr(writers, "DRAIN_SECONDS", 0.1)
    body = b'{"features": {"a": 1}, "label": "ham"}'
    futures: list[Future] = [one.writer.submit(one.reader.one(body, True), None, body)]
    assert begun.wait(10)
    futures += [one.writer.submit(one.reader.one(body, True), None, body) for _ in range(5)]
    state, started = one.live_model.state(), time.monotonic()
    one.writer.close()
    assert time.monotonic() - started < 5
    for future in futures:
        with pytest.raises(RequestError, match="not learned from: the server is shutting down"):
            future.result(0)
    assert one.live_model.state() == state and list(one.folder.glob("snapshot-*.sepx"))


def test_the_end_does_not_wait_for_a_snapshot_that_takes_long(one, monkeypatch):
    from separatrix.web.server.storage.snapshots import ModelSnapshot

    let_go = threading.Event()

    def slowly(snapshot, path):
        path.with_name(f".{path.name}.part").write_bytes(b"half")
        let_go.wait(20)

    monkeypatch.setattr(ModelSnapshot, "write", slowly)
    monkeypatch.setattr(writers, "SNAPSHOT_SECONDS", 0.2)
    started = time.monotonic()
    one.writer.close()
    assert time.monotonic() - started < 5
    assert not list(one.folder.glob(".snapshot-*.part")), "nothing half written stays"
    let_go.set()
    one.writer._maintenance.join()
    one.store.close()


LOUD = """
import sys
from separatrix.cli import app
from separatrix.web.server.live.live_model import LiveModel

def gone(*arguments):
    raise SystemExit("gone")

from separatrix.web.server import warming
warm = warming.warm
warming.warm = lambda model: warm(model) or setattr(LiveModel, "learn", gone)
app(["serve", sys.argv[1], "--port", "0"], prog_name="separatrix")
"""


@pytest.mark.slow
def test_the_process_ends_loudly_with_its_writer(tmp_path):
    command = [sys.executable, "-c", LOUD, str(tmp_path / "s")]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as process:
        for line in process.stderr:
            if match := re.search(r"serving .* on (http://\S+)", line):
                break
        request = urllib.request.Request(f"{match[1]}/learn", b'{"features": {"a": 1}, "label": "ham"}')
        with pytest.raises((urllib.error.HTTPError, OSError)):
            urllib.request.urlopen(request, timeout=30).close()
        said = process.stderr.read()
        assert process.wait(30) == 70
    assert said.splitlines()[-1].startswith("separatrix serve: the writer thread has ended (SystemExit('gone'))")
    assert "CRITICAL" in said
