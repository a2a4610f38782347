"""Backups and forgotten examples: receipts name them, `restore` forgets again, and no new one has anything of them."""

import json
from contextlib import closing

import pytest

from separatrix.web.server.forgetting import act, erasing
from separatrix.web.server.reading.request_reader import RequestError
from separatrix.web.server.storage import backup, snapshots
from separatrix.web.server.storage.backup import back_up, restore
from separatrix.web.server.storage.store import CommitStore
from separatrix.web.server.storage.store_folder import StoreError
from support.server_process import run
from web.server.forgetting.test_forget_traces import SECRET, a_store, files_with, send


def test_a_restored_backup_forgets_again(tmp_path):
    one = a_store(tmp_path / "s")
    back_up(tmp_path / "s", tmp_path / "old.zip")
    send(one, {"late": 1.0}, "ham")
    receipt = one.forget(8, 31)["receipt"]
    (backup,) = receipt["backups"]
    assert backup["file"] == str(tmp_path / "old.zip") and backup["marked"] is True
    back_up(tmp_path / "s", tmp_path / "new.zip")
    one.writer.close()
    assert [SECRET.encode() in (tmp_path / f"{name}.zip").read_bytes() for name in ("old", "new")] == [True, False]
    assert restore(tmp_path / "old.zip", tmp_path / "r").forgotten == (8,), "by the file beside the backup"
    assert not files_with(tmp_path / "r", SECRET)
    with closing(CommitStore(tmp_path / "r")) as store:
        assert snapshots.recover(store)[0].progressive.examples == 29 and store.examples == 30
    mark = erasing.mark_of(tmp_path / "old.zip")
    mark.rename(tmp_path / "receipts.json")
    assert restore(tmp_path / "old.zip", tmp_path / "r2").forgotten == (8,), "by the store that it was made of"
    (tmp_path / "s").rename(tmp_path / "lost")
    assert restore(tmp_path / "old.zip", tmp_path / "r3", [tmp_path / "receipts.json"]).forgotten == (8,)
    assert not files_with(tmp_path / "r3", SECRET)
    assert restore(tmp_path / "new.zip", tmp_path / "r4").forgotten == ()
    status, said = run("restore", tmp_path / "old.zip", tmp_path / "r5", "--forgotten", tmp_path / "receipts.json")
    assert status == 0 and "forgot 1 example of these, forgotten since, again: 8" in said
    other = tmp_path / "other.json"
    other.write_text(json.dumps([receipt | {"store": "another"}]))
    status, said = run("restore", tmp_path / "old.zip", tmp_path / "r6", "--forgotten", other)
    assert status == 2 and "is a receipt of another store" in said and not (tmp_path / "r6").exists()
    assert (
        "the receipt names no examples"
        in run(
            "restore", tmp_path / "old.zip", tmp_path / "r6", "--forgotten", _written(tmp_path, receipt | {"removed": {}})
        )[1]
    )


def _written(folder, document):
    path = folder / "document.json"
    path.write_text(json.dumps(document))
    return path


def test_a_backup_that_a_forgetting_overtakes_is_of_one_moment(tmp_path, monkeypatch):
    """The database is copied before, the snapshots after: the copy is of before, and forgets again when it is restored."""
    one = a_store(tmp_path / "s")
    told = one.live_model.state()
    read_only = backup.read_only

    def slow(folder):
        connection = read_only(folder)
        connection.execute("BEGIN")
        connection.execute("SELECT count(*) FROM commits").fetchone()
        with pytest.raises(RequestError, match="not all of their traces are erased yet"):
            one.forget(8)
        one.writer._maybe_snapshot()
        return connection

    with monkeypatch.context() as patch:
        patch.setattr(erasing, "_PATIENCE", 0.1)
        patch.setattr(backup, "read_only", slow)
        back_up(tmp_path / "s", tmp_path / "b.zip")
    named = [entry["file"] for entry in one.forget(8)["receipt"]["backups"]]
    assert named in ([], [str(tmp_path / "b.zip")]), "it is named if it was noted before all was erased"
    (tmp_path / "s").rename(tmp_path / "elsewhere")
    mark = erasing.mark_of(tmp_path / "b.zip")
    mark.rename(tmp_path / "mark.json")
    assert restore(tmp_path / "b.zip", tmp_path / "r").forgotten == ()
    with closing(CommitStore(tmp_path / "r")) as store:
        assert snapshots.recover(store)[0].state() == told
    (tmp_path / "mark.json").rename(mark)
    assert restore(tmp_path / "b.zip", tmp_path / "r2").forgotten == (8,), "the backup was marked as it was noted"
    one.crash()


def test_a_backup_of_a_store_whose_traces_are_not_erased_yet_has_none(tmp_path, monkeypatch):
    """Neither the free pages of the database nor the snapshots; and receipts do not name it."""
    one = a_store(tmp_path / "s")
    number = send(one, {f"{SECRET}-{i}": 1.0 for i in range(3000)}, "mail")["examples"]
    one.writer._maybe_snapshot()
    with monkeypatch.context() as patch:
        patch.setattr(act, "erase", lambda store: (_ for _ in ()).throw(StoreError("somebody reads the database")))
        with pytest.raises(RequestError, match="not all of their traces are erased yet"):
            one.forget(8, number)
    told = one.live_model.state()
    assert "snapshot-000000000031.sepx" in files_with(tmp_path / "s", SECRET)
    back_up(tmp_path / "s", tmp_path / "b.zip")
    assert SECRET.encode() not in (tmp_path / "b.zip").read_bytes()
    assert one.forget(8, number)["receipt"]["backups"] == [] and not erasing.mark_of(tmp_path / "b.zip").exists()
    assert restore(tmp_path / "b.zip", tmp_path / "r").forgotten == ()
    assert not files_with(tmp_path / "r", SECRET)
    with closing(CommitStore(tmp_path / "r")) as store:
        assert snapshots.recover(store)[0].state() == told
    one.crash()


def test_a_backup_that_is_noted_while_a_receipt_is_written_is_named(tmp_path, monkeypatch):
    one = a_store(tmp_path / "s")
    receipt_of = act._receipt

    def overtaken(*arguments):
        receipt = receipt_of(*arguments)
        back_up(tmp_path / "s", tmp_path / "b.zip")
        return receipt

    with monkeypatch.context() as patch:
        patch.setattr(act, "_receipt", overtaken)
        (named,) = one.forget(8)["receipt"]["backups"]
    assert named["file"] == str(tmp_path / "b.zip") and named["marked"]
    assert SECRET.encode() in (tmp_path / "b.zip").read_bytes()
    back_up(tmp_path / "s", tmp_path / "c.zip")
    (named,) = one.forget(9)["receipt"]["backups"][1:]
    assert named["file"] == str(tmp_path / "c.zip")
    (tmp_path / "s").rename(tmp_path / "elsewhere")
    assert restore(tmp_path / "b.zip", tmp_path / "r").forgotten == (8, 9), "by the receipts beside it"
    one.crash()
