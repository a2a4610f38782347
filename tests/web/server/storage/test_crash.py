"""Killed at random moments, out of room, damaged: what was acknowledged is there once, or the server says what is not.

The judge is what the clients wrote down when they were answered, never what the server says of itself. Every example holds
a feature of its own, so that the names of the recovered model tell which examples it has learned from, and in which order.
"""

import contextlib
import http.client
import json
import os
import random
import shutil
import subprocess
import threading
import time
import uuid
from pathlib import Path

import numpy as np
import pytest

from separatrix import AveragedPerceptron, load
from separatrix.web import Client, ServerError
from support.scale import counts
from support.server_process import ServerProcess, examples, matrix, run, served

pytestmark = pytest.mark.crash


def marked(stream, who):
    """Examples with a feature of their own, which comes first."""
    return [({f"id-{who}-{i}": 1.0, **x}, y) for i, (x, y) in enumerate(stream)]


class Load(threading.Thread):
    """A client that sends its examples in turn, alone or some at a time, and writes down what was acknowledged."""

    def __init__(self, url, stream, seed, patience=300):
        super().__init__()
        self.url, self.stream, self.random, self.patience = url, stream, random.Random(seed), patience
        self.acknowledged, self.failed = [], None

    def run(self):
        at, client = 0, Client(self.url, patience=self.patience, timeout=20)
        try:
            while at < len(self.stream):
                size = self.random.choice([1, 1, 1, 5, 40])
                some = self.stream[at : at + size]
                if len(some) == 1:
                    client.learn(*some[0], key=uuid.UUID(int=self.random.getrandbits(128)).hex)
                else:
                    list(client.learn_many(some))
                self.acknowledged += [next(iter(x)) for x, _ in some]
                at += size
        except Exception as error:
            self.failed = error
        finally:
            client.close()


def judge(folder, sent, acknowledged):
    """Compare the recovered model with the clients' notes, and with learning offline in the order that it was learned."""
    with served(folder) as server:
        client = server.client()
        client.save_model(folder.parent / "recovered.sepx")
        stats = client.stats()
        assert server.stop() == 0
    model = load(folder.parent / "recovered.sepx").estimator
    by_id = {next(iter(x)): (x, y) for x, y in sent}
    order = [name for name in model.feature_names_in_.tolist() if name.startswith("id-")]
    assert set(acknowledged) <= set(order), "acknowledged and lost"
    assert len(order) == len(set(order)) == stats["examples"] == model.n_seen_, "counted twice, or half there"
    stream = [by_id[name] for name in order]
    X, names = matrix(stream)
    assert names == model.feature_names_in_.tolist()
    whole = AveragedPerceptron().partial_fit(X, [y for _, y in stream])
    assert np.array_equal(model.coef_, whole.coef_) and np.array_equal(model.intercept_, whole.intercept_)
    last, late = (
        (run.last.weights() for run in (model.run_, whole.run_)),
        (r.late.weights() for r in (model.run_, whole.run_)),
    )
    for mine, theirs in (last, late):
        assert mine.coef.tobytes() == theirs.coef.tobytes() and mine.intercept.tobytes() == theirs.intercept.tobytes()
    assert (model.n_errors_, model.n_mistakes_, model.radius_) == (whole.n_errors_, whole.n_mistakes_, whole.radius_)
    assert stats["errors"] == whole.n_errors_
    return stats


ROUND = 50
"""A store is killed so many times; then its clients finish, it is judged, and the next round has a new one."""


@pytest.mark.parametrize("wanted", counts(quick=3, slow=10, soak=1000))
def test_killed_at_random_moments(tmp_path, wanted):
    chance = random.Random(os.environ.get("SEPARATRIX_SEED", "0"))
    kills = acknowledged = 0
    for begin in range(0, wanted, ROUND):
        n = min(ROUND, wanted - begin)
        acknowledged += kill_often(tmp_path / f"round-{begin}" / "state", n, chance)
        kills += n
        print(f"{kills} kills, {acknowledged:,} examples acknowledged: none lost, none counted twice", flush=True)


def kill_often(folder, wanted, chance):
    """Kill a server under load so many times, and judge what is left; return how many examples were acknowledged."""
    folder.parent.mkdir()
    server = ServerProcess(folder, "--snapshot-every", "0.3").start()
    port = server.url.rpartition(":")[2]
    each = 250 * wanted  # more than idle clients could send before the last kill
    streams = [marked(examples(each, seed=chance.getrandbits(32)), k) for k in range(4)]
    loads = [Load(server.url, stream, chance.getrandbits(32)) for stream in streams]
    for load_ in loads:
        load_.start()
    kills = 0
    try:
        while kills < wanted:
            time.sleep(chance.choice([0.0, 0.05, 0.2, 0.5]) * chance.random())
            server.kill()
            kills += 1
            server.start(port)
            if not any(load_.is_alive() for load_ in loads):
                break
        for load_ in loads:
            load_.join(300)
        assert [load_.failed for load_ in loads] == [None] * 4
        acknowledged = [name for load_ in loads for name in load_.acknowledged]
        assert len(acknowledged) == 4 * each
    finally:
        server.kill()
    stats = judge(folder, [pair for stream in streams for pair in stream], acknowledged)
    assert stats["examples"] == 4 * each
    assert kills == wanted, f"only {kills} kills before the clients were done"
    return len(acknowledged)


SMALL = 6 << 20


@pytest.fixture
def small_disk(tmp_path):
    """A folder with little room: a small tmpfs or, where none may be mounted, a limit on the size of files."""
    folder = tmp_path / "small"
    folder.mkdir()
    mounted = (
        subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={SMALL}", "tmpfs", str(folder)], capture_output=True).returncode
        == 0
    )
    try:
        yield folder, None if mounted else SMALL // 4
    finally:
        if mounted:
            subprocess.run(["umount", "-l", str(folder)], check=True)


def test_a_full_disk_refuses_and_loses_nothing(tmp_path, small_disk):
    folder, file_size = small_disk
    stream = marked(examples(40_000, names=300), "x")
    acknowledged, at = [], 0
    with served(folder / "state", "--keep-all", file_size=file_size) as server:
        client = server.client(patience=0)
        with pytest.raises(ServerError, match="cannot be written") as refused:
            while True:
                some = stream[at : at + 200]
                assert some, "the disk never filled"
                list(client.learn_many(some))
                acknowledged += [next(iter(x)) for x, _ in some]
                at += 200
        assert refused.value.status == 503
        assert client.stats()["examples"] == len(acknowledged), "what was refused was not learned"
        assert client.predict(stream[0][0])["prediction"] is not None, "it predicts on"
        with pytest.raises(ServerError):
            client.request("GET", "/readyz")
        server.kill()
    # Room again: on another disk, it goes on with all that was acknowledged.
    shutil.copytree(folder / "state", tmp_path / "roomy")
    with served(tmp_path / "roomy", "--keep-all") as server:
        client = server.client()
        assert client.stats()["examples"] in (len(acknowledged), len(acknowledged) + 200)
        learned = client.stats()["examples"]
        list(client.learn_many(stream[learned : learned + 400]))
        acknowledged += [next(iter(x)) for x, _ in stream[learned : learned + 400]]
        server.kill()
    judge(tmp_path / "roomy", stream, acknowledged)


def ended_without_tidying(folder, stream, snapshot=False):
    with served(folder, "--snapshot-every", "1" if snapshot else "3600") as server:
        client = server.client()
        for pair in stream[: len(stream) // 2]:
            client.learn(*pair)
        if snapshot:
            time.sleep(1.2)
        for pair in stream[len(stream) // 2 :]:
            client.learn(*pair)
        server.kill()


def last_page(path, size=4096):
    """Damage the middle of the last page of a file, as a disk does."""
    content = bytearray(path.read_bytes())
    for at in range(len(content) - size // 2, min(len(content), len(content) - size // 2 + 64)):
        content[at] ^= 0xFF
    path.write_bytes(content)


@pytest.mark.parametrize("which", ["log", "log cut", "store", "head"])
def test_a_damaged_end_is_refused_or_made_good_never_passed_over(tmp_path, which):
    stream = marked(examples(30), "x")
    ended_without_tidying(tmp_path / "state", stream, snapshot=which == "log cut")
    copy = tmp_path / "copy"
    shutil.copytree(tmp_path / "state", copy)
    log, store = copy / "store.db-wal", copy / "store.db"
    assert log.stat().st_size > 0
    if which == "log":
        last_page(log)
    elif which == "log cut":
        log.write_bytes(log.read_bytes()[:-5000])
    elif which == "store":
        tidy = ServerProcess(copy).start()
        assert tidy.stop() == 0
        for snapshot in copy.glob("snapshot-*"):
            snapshot.unlink()
        last_page(store)
    else:
        last_page(copy / "head", size=32)
    acknowledged = [next(iter(x)) for x, _ in stream]
    try:
        with served(copy) as server:
            client = server.client()
            client.save_model(tmp_path / "m.sepx")
    except ChildProcessError as refused:
        assert any(word in str(refused) for word in ("damaged", "malformed", "acknowledged", "cannot be read")), refused
        assert "Traceback" not in str(refused)
        if which.startswith("log"):
            with served(copy, "--accept-loss") as server:
                assert 0 < server.client().stats()["examples"] < len(stream), "what is left can be used, when asked for"
    else:
        assert set(acknowledged) <= set(load(tmp_path / "m.sepx").estimator.feature_names_in_.tolist()), "a silent loss"
        assert not which.startswith("log")
    judge(tmp_path / "state", stream, acknowledged)


def test_what_was_accepted_is_finished_at_the_end(tmp_path):
    stream = marked(examples(4000), "x")
    done = []
    with served(tmp_path / "state") as server:

        def send(part):
            with Client(server.url, patience=0) as client:
                for begin in range(0, len(part), 50):
                    some = part[begin : begin + 50]
                    list(client.learn_many(some, size=50))
                    done.extend(next(iter(x)) for x, _ in some)

        threads = [threading.Thread(target=_quietly, args=(send, stream[k::4])) for k in range(4)]
        for thread in threads:
            thread.start()
        while len(done) < 500:
            time.sleep(0.01)
        assert server.stop() == 0
        for thread in threads:
            thread.join()
        assert "ended; everything acknowledged is on disk" in server.log()
        assert "Traceback" not in server.log()
    assert not (tmp_path / "state" / "store.db-wal").exists(), "the log was taken in"
    judge(tmp_path / "state", stream, done)


def _quietly(act, *arguments):
    with contextlib.suppress(OSError, ServerError, http.client.HTTPException):
        act(*arguments)


def test_as_of_writes_the_model_of_a_past_moment(tmp_path):
    stream = marked(examples(60), "x")
    pictures = {}
    with served(tmp_path / "state", "--snapshot-every", "0.2") as server:
        client = server.client()
        for i, pair in enumerate(stream):
            client.learn(*pair)
            if i % 20 == 9:
                client.save_model(tmp_path / "then.sepx")
                pictures[i + 1] = (tmp_path / "then.sepx").read_bytes(), time.time()
                time.sleep(0.3)
        for n, (picture, when) in pictures.items():
            for moment in (str(n), time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(when)) + f"{when % 1:.6f}"[1:] + "+00:00"):
                status, told = run("serve", tmp_path / "state", "--as-of", moment, "-o", tmp_path / "past.sepx")
                assert status == 0 and f"after {n} examples" in told
                assert (tmp_path / "past.sepx").read_bytes() == picture
    status, told = run("serve", tmp_path / "state", "--as-of", "noon", "-o", tmp_path / "x.sepx")
    assert status == 2 and "give a time" in told


def test_the_load_is_real(tmp_path):
    """The judge must be able to fail: a model that lacks one acknowledged example does not pass."""
    stream = marked(examples(20), "x")
    ended_without_tidying(tmp_path / "state", stream)
    with pytest.raises(AssertionError, match="acknowledged and lost"):
        judge(tmp_path / "state", stream, ["id-x-20"])
    assert json.loads(json.dumps(stream[0])) and Path(tmp_path / "recovered.sepx").exists()
