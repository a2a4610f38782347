"""The store and its folder: a lost lock, a moved folder, a clock set back, a full disk, a head that cannot be written."""

import contextlib
import errno
import os
import shutil
import sqlite3
import subprocess
import time
from pathlib import Path

import pytest

from separatrix.web import ServerError
from separatrix.web.server.reading.request_reader import RequestError
from separatrix.web.server.storage import snapshots, store_folder
from separatrix.web.server.storage.joining import SEGMENT
from separatrix.web.server.storage.store import KEY_SECONDS, CommitStore
from separatrix.web.server.storage.store_folder import Head, StoreError
from separatrix.web.server.storage.store_rows import FORMAT
from support.served_store import FRESH, ServedStore
from support.server_process import examples, run, served

STREAM = list(examples(300))


def number_of_examples(folder):
    store = CommitStore(folder, writing=False)
    try:
        return snapshots.recover(store)[0].progressive.examples
    finally:
        store.close()


def test_two_servers_on_one_folder_store_all_that_they_acknowledge(tmp_path):
    first = ServedStore(tmp_path / "s")
    first.learn(STREAM[:20])
    (tmp_path / "s" / "lock").unlink()
    second = ServedStore(tmp_path / "s")
    acknowledged = 20
    for begin in range(20, 60, 10):
        for server in (first, second):
            try:
                acknowledged += server.learn(STREAM[begin : begin + 10])["learned"]
            except RequestError as refused:
                assert server is first and refused.status == 503
                assert "lock was moved, deleted or replaced" in refused.message
    assert "lock was moved" in first.store.problem() and not second.store.problem()
    with pytest.raises(StoreError, match="lock was moved"):
        first.store.compact(0)
    first.crash()
    second.crash()
    assert number_of_examples(tmp_path / "s") == acknowledged == 60


def test_a_commit_of_another_server_is_not_taken_for_ours(tmp_path):
    """Where the lock changes hands between the check and the write, the numbers collide, and checksums tell whose it is."""
    first = ServedStore(tmp_path / "s")
    first.learn(STREAM[:20])
    (tmp_path / "s" / "lock").unlink()
    second = ServedStore(tmp_path / "s")
    first.store._place._identities = []
    second.learn(STREAM[20:30])
    with pytest.raises(RequestError, match="was written by another server: it has 2 commits, and this server knows of 1"):
        first.learn(STREAM[30:40])
    assert first.live_model.state() == second.live_model.state(), "it has taken up what the other stored"
    first.store.last, first.store.mistakes = 1, first.store.mistakes - 1
    first.store._begin = lambda: first.store.db.execute("BEGIN IMMEDIATE")
    with pytest.raises(RequestError, match="UNIQUE constraint failed"):
        first.learn(STREAM[30:40])
    first.crash()
    second.crash()
    assert number_of_examples(tmp_path / "s") == 30


def test_a_moved_or_deleted_folder_is_noticed_at_once(tmp_path):
    with served(tmp_path / "state") as server:
        client = server.client(patience=0)
        client.learn(*STREAM[0])
        assert client.request("GET", "/readyz") == {"status": "ready"}
        (tmp_path / "state").rename(tmp_path / "elsewhere")
        for ask in (lambda: client.request("GET", "/readyz"), lambda: client.learn(*STREAM[1])):
            with pytest.raises(ServerError, match="was moved, deleted or replaced while it was served") as refused:
                ask()
            assert refused.value.status == 503
        assert client.predict(STREAM[0][0])["prediction"] is not None
        (tmp_path / "elsewhere").rename(tmp_path / "state")
        assert client.learn(*STREAM[1])["examples"] == 2
        assert client.request("GET", "/readyz") == {"status": "ready"}
        shutil.rmtree(tmp_path / "state")
        with pytest.raises(ServerError, match="was moved, deleted or replaced"):
            client.request("GET", "/readyz")
        server.kill()


@pytest.mark.parametrize("name", ["store.db", "store.db-wal", "head"])
def test_a_file_that_is_replaced_while_serving_stops_learning(tmp_path, name):
    one = ServedStore(tmp_path / "s")
    one.learn(STREAM[:10])
    path = tmp_path / "s" / name
    shutil.copyfile(path, tmp_path / "copy")
    os.replace(tmp_path / "copy", path)
    with pytest.raises(RequestError, match=f"{name} was moved, deleted or replaced"):
        one.learn(STREAM[10:20])
    one.crash()


def test_a_refused_store_stays_as_it_is(tmp_path):
    one = ServedStore(tmp_path / "s")
    for begin in range(0, 60, 10):
        one.learn(STREAM[begin : begin + 10])
    shutil.copytree(tmp_path / "s", tmp_path / "killed")
    one.crash()
    log = tmp_path / "killed" / "store.db-wal"
    content = bytearray(log.read_bytes())
    content[len(content) // 2] ^= 1
    log.write_bytes(content)
    with pytest.raises(StoreError, match="6 commits were acknowledged"):
        CommitStore(tmp_path / "killed")
    assert log.read_bytes() == content, "what follows the damage is still there for whoever can read it"
    (tmp_path / "killed" / "store.db").unlink()
    with pytest.raises(StoreError, match=r"store\.db is missing, but its log store\.db-wal is there"):
        CommitStore(tmp_path / "killed")
    assert log.read_bytes() == content


def test_a_past_moment_is_found_by_number_and_an_ambiguous_time_is_refused(tmp_path, monkeypatch):
    clock = [1000.0]
    monkeypatch.setattr(time, "time", lambda: clock[0])
    one = ServedStore(tmp_path / "s")
    labels = [1000.0, 2000.0, 3000.0, 1500.0, 2500.0, 4000.0]  # set back by half an hour and more after the third
    for at, label in enumerate(labels):
        clock[0] = label
        one.learn(STREAM[10 * at : 10 * at + 10])
    one.crash()
    store = CommitStore(tmp_path / "s", writing=False)
    assert [snapshots.moment(store, number=n).examples for n in (0, 1, 4, 6, 9)] == [0, 10, 40, 60, 60]
    assert snapshots.moment(store, time=999.0).number == 0 and snapshots.moment(store, time=1200.0).number == 1
    assert snapshots.moment(store, time=3500.0).number == 5 and snapshots.moment(store, time=4000.0).number == 6
    for moment in (1500.0, 2000.0, 2700.0):
        with pytest.raises(StoreError, match="showed this time twice") as refused:
            snapshots.moment(store, time=moment)
        assert "--as-of commit:" in str(refused.value)
    store.close()
    status, message = run("serve", tmp_path / "s", "--as-of", "commit:4", "-o", tmp_path / "past.sepx")
    assert status == 0 and "after 40 examples" in message


def test_keys_are_remembered_by_the_time_served_whatever_the_clock_shows(tmp_path, monkeypatch):
    clock, ticks = [1e9], [5.0]
    monkeypatch.setattr(time, "time", lambda: clock[0])
    one = ServedStore(tmp_path / "s")
    monkeypatch.setattr(time, "monotonic", lambda: ticks[0])
    one.store._opened = ticks[0]
    first = one.learn(STREAM[:10], "key")
    clock[0] += 10 * KEY_SECONDS
    one.store.compact(0)
    assert one.learn(STREAM[:10], "key") == first, "the clock alone, set forward, forgets nothing"
    clock[0] = 1.0
    ticks[0] += KEY_SECONDS / 2
    one.learn(STREAM[10:20], "later")
    one.store.compact(0)
    assert one.learn(STREAM[:10], "key") == first
    one.crash()
    one = ServedStore(tmp_path / "s")
    ticks[0] += KEY_SECONDS / 2 + 1
    one.store.compact(0)
    assert one.learn(STREAM[10:20], "later")["examples"] == 20
    assert one.learn(STREAM[:10], "key")["examples"] == 30, "forgotten after a day of serving, though the clock went back"
    one.crash()


def test_a_store_of_format_1_is_upgraded_with_its_keys(tmp_path):
    shutil.unpack_archive(Path(__file__).parents[3] / "compatibility" / "files" / "stores" / "features.zip", tmp_path / "s")
    with sqlite3.connect(tmp_path / "s" / "store.db") as db:
        columns = [column[1] for column in db.execute("PRAGMA table_info(keys)")]
        keys = db.execute("SELECT key, request, time, reply FROM keys ORDER BY key").fetchall()
    db.close()
    assert "number" not in columns and keys
    CommitStore(tmp_path / "s", writing=False).close()
    for _ in range(2):
        store = CommitStore(tmp_path / "s")
        assert store.base["model"]["format"] == FORMAT
        assert store.db.execute("SELECT key, request, time, reply FROM keys ORDER BY key").fetchall() == keys
        store.close()


def test_a_head_that_cannot_be_written_takes_nothing_back(tmp_path, monkeypatch):
    one = ServedStore(tmp_path / "s")
    one.learn(STREAM[:10])

    def write_head(*_):
        raise OSError(errno.EIO, "I/O error")

    monkeypatch.setattr(one.store._place, "write_head", write_head)
    assert one.learn(STREAM[10:20])["examples"] == 20, "its commit is on the disk"
    assert "head of the store cannot be written" in one.store.problem()
    with pytest.raises(RequestError, match="head of the store cannot be written"):
        one.learn(STREAM[20:30])
    monkeypatch.undo()
    assert one.learn(STREAM[20:30])["examples"] == 30 and not one.store.problem()
    monkeypatch.setattr(os, "fsync", write_head)
    one.store.sync_head()
    monkeypatch.undo()
    assert one.store.problem()
    one.store.sync_head()
    assert not one.store.problem()
    one.crash()
    assert store_folder.read_head(tmp_path / "s")[:2] == Head(3, 30)[:2]


def test_commits_are_never_applied_to_a_snapshot_from_their_middle(tmp_path):
    """Joined commits may reach across an old snapshot: such a snapshot is of no use, and passed over."""
    stream = list(examples(SEGMENT + 128, names=40))
    one = ServedStore(tmp_path / "s")
    for begin in range(0, len(stream), 64):
        one.learn(stream[begin : begin + 64])
        if begin == 1024:
            one.writer._maybe_snapshot()
    state = one.crash()
    store = CommitStore(tmp_path / "s")
    assert snapshots.recover(store)[2] == 17
    assert store.compact(store.last) == SEGMENT // 64 - 1
    live_model, _, base = snapshots.recover(store)
    store.close()
    assert base == 0 and live_model.state() == state


def test_a_lost_model_of_an_exact_undo_is_learned_again_from_the_log(tmp_path):
    one = ServedStore(tmp_path / "s", keep_all=True)
    for begin in range(0, 100, 10):
        one.learn(STREAM[begin : begin + 10])
    one.undo(3)
    one.learn(STREAM[100:110])
    one.undo(5)
    one.learn(STREAM[110:120])
    state = one.crash()
    for path in (tmp_path / "s").glob("rebuilt-*.sepx"):
        path.write_bytes(b"damaged")
    store = CommitStore(tmp_path / "s")
    assert snapshots.recover(store)[0].state() == state
    store.close()


def test_a_lost_initial_model_is_taken_from_the_option(tmp_path):
    from separatrix import AveragedPerceptron, save
    from support.server_process import matrix

    X, _ = matrix(STREAM[:100])
    save(AveragedPerceptron(random_state=0).fit(X, [y for _, y in STREAM[:100]]), tmp_path / "m.sepx")
    one = ServedStore(tmp_path / "s", model=tmp_path / "m.sepx")
    one.learn([({"0": 1.0}, "ham"), ({"1": 1.0}, "spam")])
    state = one.crash()
    (tmp_path / "s" / "start.sepx").write_bytes(b"damaged")
    store = CommitStore(tmp_path / "s")
    with pytest.raises(StoreError, match=r"start\.sepx"):
        snapshots.recover(store)
    snapshots.begin(store, tmp_path / "m.sepx", FRESH)
    assert snapshots.recover(store)[0].state() == state
    store.close()


@pytest.fixture
def small_blocks(tmp_path):
    """A file system with blocks that are smaller than a page of memory, where a page may lack some of its blocks."""
    folder, image = tmp_path / "disk", tmp_path / "image"
    folder.mkdir()
    image.touch()
    os.truncate(image, 16 << 20)
    commands = (["mkfs.ext4", "-q", "-F", "-m0", "-b1024", image], ["mount", "-o", "loop", image, folder])
    try:
        for command in commands:
            subprocess.run(command, check=True, capture_output=True)
    except (OSError, subprocess.CalledProcessError) as error:
        pytest.skip(f"no disk image can be mounted: {error}")
    yield folder
    subprocess.run(["umount", "-l", folder], check=True)


@pytest.mark.slow
@pytest.mark.parametrize("ended", ["well", "killed"])
def test_a_start_on_a_full_disk_is_one_line(tmp_path, small_blocks, ended):
    (small_blocks / "state").mkdir()
    folder = tmp_path / "state"  # with its log elsewhere
    folder.symlink_to(small_blocks / "state")
    with served(folder, "--keep-all") as server:
        list(server.client().learn_many(STREAM))
        assert ended == "killed" or server.stop() == 0
    filler = small_blocks / "filler"
    with open(filler, "wb", buffering=0) as file:
        for size in (1 << 16, 1 << 10, 1):
            with contextlib.suppress(OSError):
                while file.write(b"x" * size):
                    pass
        file.truncate(file.tell() // 1024 * 1024)
    answers = []
    for blocks in [0, *[30] * 12, 200]:
        os.truncate(filler, filler.stat().st_size - blocks * 1024)
        try:
            with served(folder, "--keep-all") as server:
                with contextlib.suppress(ServerError):
                    server.client(patience=0).learn(*STREAM[0])
                assert server.stop() == 0
            answers.append("started")
        except ChildProcessError as refused:
            lines = str(refused).strip().splitlines()
            assert len(lines) == 1 and "the disk is full: " in lines[0]
            answers.append("refused")
    assert answers[0] == "refused" and answers[-1] == "started", answers


@pytest.mark.parametrize("is_new", [True, False])
def test_a_process_killed_while_it_gave_a_database_its_log_leaves_a_store_that_opens(tmp_path, is_new):
    folder, made = tmp_path / "state", tmp_path / "made.db"
    served_store = ServedStore(folder)
    served_store.learn(examples(3))
    served_store.crash()
    last = served_store.store.last
    database = folder / store_folder.DATABASE
    with contextlib.closing(sqlite3.connect(database, isolation_level=None)) as connection:
        connection.execute("PRAGMA journal_mode=DELETE")  # as restored
    if is_new:
        shutil.rmtree(folder)
        folder.mkdir()
    else:
        shutil.copy(database, made)
    with contextlib.closing(sqlite3.connect(made, isolation_level=None)) as connection:
        connection.execute("PRAGMA cache_size=1")  # so that pages of the transaction are written before it ends
        connection.execute("BEGIN")
        connection.execute("CREATE TABLE half AS SELECT randomblob(100000)")
        shutil.copy(made, database)
        shutil.copy(f"{made}-journal", folder / store_folder.JOURNAL)
    with (
        contextlib.closing(store_folder.read_only(folder)) as reader,
        pytest.raises(sqlite3.OperationalError, match="readonly"),
    ):
        reader.execute("SELECT * FROM sqlite_master").fetchone()
    store = CommitStore(folder)
    assert store.last == (0 if is_new else last)
    assert not store.db.execute("SELECT 1 FROM sqlite_master WHERE name = 'half'").fetchone()
    store.close()
