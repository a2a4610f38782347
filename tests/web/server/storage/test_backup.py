"""Backup and restore: consistent while the server learns, and refused where anything is wrong."""

import shutil
import threading
import zipfile
from contextlib import closing

import pytest

from separatrix import load
from separatrix.data.errors import DataError
from separatrix.web import Client
from separatrix.web.server.storage import snapshots
from separatrix.web.server.storage.backup import back_up, restore
from separatrix.web.server.storage.store import CommitStore
from separatrix.web.server.storage.store_folder import StoreError
from support.served_store import ServedStore
from support.server_process import examples, run, served

STREAM = list(examples(400))


def test_a_backup_under_load_is_a_state_that_was(tmp_path):
    """While one thread learns, undoes and writes snapshots, each backup restores bit for bit to the state of its commit."""
    one = ServedStore(tmp_path / "s", keep_all=True, snapshot_seconds=0.1)
    one.learn(STREAM[:10])
    states, ended = {1: one.live_model.state()}, threading.Event()

    def keep_learning():
        at = 10
        while not ended.is_set():
            one.learn(STREAM[at % 390 : at % 390 + 10], key=f"batch-{at}")
            states[one.store.last] = one.live_model.state()
            at += 10
            if at % 200 == 0:
                one.undo(at // 200)
                states[one.store.last] = one.live_model.state()

    thread = threading.Thread(target=keep_learning)
    thread.start()
    contents = []
    for k in range(6):
        acknowledged = max(states)
        contents.append(back_up(tmp_path / "s", tmp_path / f"{k}.zip"))
        assert contents[-1].commit >= acknowledged
    ended.set()
    thread.join()
    one.crash()
    assert contents[0].commit < contents[-1].commit
    for k, content in enumerate(contents):
        assert restore(tmp_path / f"{k}.zip", tmp_path / f"restored-{k}") == content
        with closing(CommitStore(tmp_path / f"restored-{k}")) as store:
            assert store.last == content.commit and snapshots.recover(store)[0].state() == states[store.last]
    again = ServedStore(tmp_path / "restored-5", keep_all=True)
    learned = again.live_model.progressive.numbered
    assert again.learn(STREAM[10:20], key="batch-10")["examples"] == 20, "keys are restored, too"
    assert again.learn(STREAM[:10])["examples"] == learned + 10
    again.crash()
    assert {path.name for path in tmp_path.iterdir() if path.name.startswith(".")} == set(), "nothing is left behind"


def test_the_verbs_back_up_a_server_that_learns(tmp_path):
    acknowledged, ended = [], threading.Event()
    with served(tmp_path / "state", "--snapshot-every", "0.2") as server:

        def keep_learning():
            with Client(server.url) as client:
                while not ended.is_set():
                    client.learn({f"id-{len(acknowledged)}": 1.0, **STREAM[len(acknowledged) % 400][0]}, "ham")
                    acknowledged.append(len(acknowledged))

        thread = threading.Thread(target=keep_learning)
        thread.start()
        while len(acknowledged) < 30:
            ended.wait(0.01)
        before = len(acknowledged)
        status, message = run("backup", tmp_path / "state", tmp_path / "b.zip")
        ended.set()
        thread.join()
        assert status == 0 and message.startswith(f"backed up {tmp_path / 'state'} to {tmp_path / 'b.zip'}: ")
        server.kill()
    status, message = run("restore", tmp_path / "b.zip", tmp_path / "again")
    assert status == 0 and message.startswith(f"restored {tmp_path / 'again'} from {tmp_path / 'b.zip'}: ")
    with served(tmp_path / "again") as server:
        server.client().save_model(tmp_path / "m.sepx")
    names = [name for name in load(tmp_path / "m.sepx").estimator.feature_names_in_ if name.startswith("id-")]
    assert names == [f"id-{k}" for k in range(len(names))] and before <= len(names) <= len(acknowledged) + 1


def test_what_is_wrong_is_refused(tmp_path):
    one = ServedStore(tmp_path / "s")
    one.learn(STREAM[:50])
    one.writer._maybe_snapshot()
    one.learn(STREAM[50:100])
    one.crash()
    good = tmp_path / "good.zip"
    back_up(tmp_path / "s", good)
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "file").touch()
    with pytest.raises(DataError, match="exists and is not empty"):
        restore(good, tmp_path / "full")
    with pytest.raises(StoreError, match="contains no store"):
        back_up(tmp_path / "full", tmp_path / "x.zip")
    content = good.read_bytes()
    for at in range(0, len(content), len(content) // 40):
        damaged = bytearray(content)
        damaged[at] ^= 0x55
        (tmp_path / "bad.zip").write_bytes(damaged)
        try:
            restore(tmp_path / "bad.zip", tmp_path / "r")
        except (DataError, OSError) as error:
            assert "Traceback" not in str(error)
            assert not (tmp_path / "r").exists()
        else:  # a byte that says nothing of the content, such as a date
            shutil.rmtree(tmp_path / "r")
    for cut in (0, 10, len(content) // 2, len(content) - 1):
        (tmp_path / "bad.zip").write_bytes(content[:cut])
        with pytest.raises(DataError, match="is not a backup of a store, or it is damaged"):
            restore(tmp_path / "bad.zip", tmp_path / "r")
    with zipfile.ZipFile(good) as archive, zipfile.ZipFile(tmp_path / "evil.zip", "w") as evil:
        manifest = archive.read("manifest.json").replace(b"start.sepx", b"../../out")
        manifest = manifest.replace(b'"store.db"', b'"../out.db"')
        evil.writestr("manifest.json", manifest)
        evil.writestr("../out.db", archive.read("store.db"))
    with pytest.raises(DataError, match="is no file of a store"):
        restore(tmp_path / "evil.zip", tmp_path / "r")
    assert not (tmp_path / "out.db").exists() and not (tmp_path / "r").exists()
    (tmp_path / "s" / "store.db").write_bytes(b"x" * 5000)
    with pytest.raises(StoreError, match="cannot be copied"):
        back_up(tmp_path / "s", good)
    assert good.read_bytes() == content, "a backup that fails leaves the last one alone"


def test_a_store_that_lost_its_end_is_not_backed_up(tmp_path):
    one = ServedStore(tmp_path / "s")
    for begin in range(0, 50, 10):
        one.learn(STREAM[begin : begin + 10])
    shutil.copytree(tmp_path / "s", tmp_path / "killed")
    one.crash()
    log = tmp_path / "killed" / "store.db-wal"
    log.write_bytes(log.read_bytes()[:-3000])
    with pytest.raises(StoreError, match="killed: 5 commits were acknowledged, but only 4 can be read"):
        back_up(tmp_path / "killed", tmp_path / "b.zip")
    assert not (tmp_path / "b.zip").exists()
