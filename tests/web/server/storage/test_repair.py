"""Repair: the newest state that can be proven, bit for bit one that was; every byte of the damaged files is still there."""

import itertools
import random
import shutil
from collections import Counter
from contextlib import closing

import pytest

from separatrix.web.server.storage import repair, snapshots
from separatrix.web.server.storage.store import CommitStore
from separatrix.web.server.storage.store_folder import StoreError
from support.scale import counts
from support.served_store import FRESH, ServedStore
from support.server_process import examples, run, served

STREAM = list(examples(200))
INCIDENTAL = ("lock", "lock-journal", "store.db-shm")
"""Files that hold nothing that was learned."""


class History:
    """Stores that ended well and by a kill, and the state after each commit."""

    def __init__(self, folder):
        self.folders = [folder / "ended", folder / "killed"]
        one = ServedStore(folder / "ended", keep_all=True)
        self.states = {0: one.live_model.state()}
        for begin in range(0, 200, 10):
            one.learn(STREAM[begin : begin + 10], key=f"batch-{begin}")
            self.note(one)
            if begin in (60, 120):
                one.writer._maybe_snapshot()
            if begin == 90:
                one.undo(3)
                self.note(one)
        self.last = one.store.last
        shutil.copytree(folder / "ended", folder / "killed")
        one.crash()

    def note(self, one):
        self.states[one.store.last] = one.live_model.state()


@pytest.fixture(scope="module")
def history(tmp_path_factory):
    return History(tmp_path_factory.mktemp("history"))


def files_of(folder):
    return {path.name: path.read_bytes() for path in folder.iterdir() if path.is_file() and path.name not in INCIDENTAL}


def damage(folder, chance):
    """Do to some files what disks, file systems and people do to them."""
    for _ in range(chance.choice([1, 1, 2, 3])):
        path = folder / chance.choice(sorted(files_of(folder)))
        content = bytearray(path.read_bytes())
        kind = chance.choice(["flip", "zero", "cut", "delete", "page", "grow"])
        at = chance.randrange(len(content)) if content else 0
        if kind == "flip" and content:
            content[at] ^= 1 << chance.randrange(8)
        elif kind == "zero":
            size = min(chance.choice([16, 512, 4096]), len(content) - at)
            content[at : at + size] = bytes(size)
        elif kind == "cut":
            del content[at:]
        elif kind == "page" and content:
            source, target = (chance.randrange(len(content)) // 4096 * 4096 for _ in range(2))
            content[target : target + 4096] = content[source : source + 4096]
        elif kind == "grow":
            content += chance.randbytes(100)
        path.unlink() if kind == "delete" else path.write_bytes(content)


def recovered(folder):
    with closing(CommitStore(folder)) as store:
        if "model" not in store.base:
            raise AssertionError("a damaged store was taken for a new one")
        return store.last, snapshots.recover(store)[0].state()


@pytest.mark.parametrize("n_cases", counts(quick=25, slow=100, soak=3100))
def test_a_damaged_store_is_whole_or_refused_and_repaired_without_deleting(tmp_path, history, n_cases):
    chance, answers, ends = random.Random(18), Counter(), set()
    for case in range(n_cases):
        folder = tmp_path / "case"
        shutil.rmtree(folder, ignore_errors=True)
        shutil.copytree(chance.choice(history.folders), folder)
        damage(folder, chance)
        before = files_of(folder)
        try:
            last, state = recovered(folder)
            assert (last, state) == (history.last, history.states[history.last]), f"a silent loss in case {case}"
            answers["whole"] += 1
            continue
        except StoreError:
            assert before.items() <= files_of(folder).items(), "a store that is refused stays as it is"
        try:
            report = repair.repaired(folder)
        except StoreError:
            answers["nothing can be proven"] += 1
            assert before.items() <= files_of(folder).items()
            continue
        last, state = recovered(folder)
        assert state == history.states[last], f"a state that never was in case {case}"
        remaining = [path.read_bytes() for path in folder.rglob("*") if path.is_file()]
        assert all(content in remaining for content in before.values()), f"something was deleted in case {case}"
        assert any(f"up to number {last:,}" in line for line in report)
        answers["repaired"] += 1
        ends.add(last)
    assert answers["whole"] and answers["repaired"] > n_cases / 5, answers
    assert answers["nothing can be proven"] < n_cases / 8, answers
    print(f"{n_cases} damaged stores: {dict(answers)}, {len(ends)} different states recovered")


def test_a_whole_snapshot_survives_a_lost_database(tmp_path, history):
    folder = tmp_path / "s"
    shutil.copytree(history.folders[0], folder)
    (folder / "store.db").write_bytes(b"nothing of what it was" * 1000)
    report = repair.repaired(folder)
    newest = max(snapshots.snapshot_numbers(folder))
    with closing(CommitStore(folder)) as store:
        assert store.last == newest and snapshots.recover(store)[0].state() == history.states[newest]
        assert store.gaps[0][:2] == (1, newest)
        assert snapshots.moment(store, number=newest)[::2] == snapshots.moment(store, examples=130)[::2] == (newest, 130)
        for moment in ({"number": newest - 1}, {"examples": 128}, {"time": 4e9}):
            with pytest.raises(StoreError, match=f"is among commits 1 to {newest}, which are missing"):
                snapshots.moment(store, **moment)
    assert report[0].endswith(f"the model has all commits up to number {newest}, 130 examples")
    assert report[1] == f"lost: commits {newest + 1} to {history.last}, examples 131 to 200"
    assert f"missing from the ledger, though the model has learned from them: commits 1 to {newest}" in report
    one = ServedStore(folder)
    for begin in range(0, 60, 10):
        one.learn(STREAM[begin : begin + 10])
        one.writer._maybe_snapshot()
    state = one.crash()
    assert newest in snapshots.snapshot_numbers(folder), "nothing else leads to the commits in the gap"
    for number in snapshots.snapshot_numbers(folder):
        if number != newest:
            snapshots.path_of(folder, number).unlink()
    assert recovered(folder)[1] == state


def test_a_hole_in_the_middle_is_bridged_by_a_later_snapshot(tmp_path, history):
    folder = tmp_path / "s"
    shutil.copytree(history.folders[0], folder)
    with closing(CommitStore(folder)) as store:
        store.db.execute("UPDATE commits SET body = zeroblob(10) WHERE last IN (5, 6)")
    with pytest.raises(StoreError, match=r"checksum mismatch in commit 5\. Restore it from a backup, or repair"):
        CommitStore(folder)
    report = repair.repaired(folder)
    assert recovered(folder) == (history.last, history.states[history.last])
    assert next(line for line in report if "missing from the ledger" in line).endswith("commits 5 to 6")
    assert not any(line.startswith("lost") for line in report)
    with closing(CommitStore(folder)) as store:
        assert snapshots.recover(store, 3)[0].state() == history.states[3]
        with pytest.raises(StoreError, match="cannot be rebuilt"):
            snapshots.recover(store, 6)
        newest = max(snapshots.snapshot_numbers(folder))
        while store.compact(store.last):
            pass
        assert snapshots.recover(store)[2] == newest
    one = ServedStore(folder, keep_all=True)
    assert one.learn(STREAM[:10], "batch-0")["examples"] == 10, "keys survive"
    assert one.undo(1)["how"] == "subtracted", "not all examples are there to learn again from"
    one.crash()


def test_keys_of_lost_commits_are_lost_with_them(tmp_path, history):
    folder = tmp_path / "s"
    shutil.copytree(history.folders[0], folder)
    with closing(CommitStore(folder)) as store:
        store.db.execute("UPDATE commits SET body = zeroblob(10) WHERE last = ?", (history.last - 1,))
    report = repair.repaired(folder)
    assert f"lost: commits {history.last - 1} to {history.last}, examples 181 to 200" in report
    assert "of these, 1 row can be read, but what they build on is missing" in report
    one = ServedStore(folder, keep_all=True)
    assert one.learn(STREAM[190:], "batch-190")["examples"] == 190, "sent again, it is learned and not answered from memory"
    one.crash()


def test_an_interrupted_repair_is_finished_at_the_next_start(tmp_path, history, monkeypatch):
    folder = tmp_path / "s"
    shutil.copytree(history.folders[1], folder)
    log = folder / "store.db-wal"
    content = log.read_bytes()[:-5000]
    log.write_bytes(content)
    with monkeypatch.context() as patch:
        patch.setattr(repair, "finish_repair", lambda _: (_ for _ in ()).throw(KeyboardInterrupt))
        with pytest.raises(KeyboardInterrupt):
            repair.repaired(folder)
    assert log.read_bytes() == content
    with pytest.raises(StoreError, match="a repair was interrupted"):
        CommitStore(folder, writing=False)
    (folder / "head").unlink()  # as if it had ended between two of its steps
    last, state = recovered(folder)
    assert state == history.states[last] and 15 < last < history.last
    (damaged,) = folder.glob("damaged-*")
    assert (damaged / "store.db-wal").read_bytes() == content and (damaged / "head").exists()
    assert not (folder / "repair.json").exists() and not (folder / ".repair").exists()


def test_the_option_repairs_and_says_what_is_missing(tmp_path):
    with served(tmp_path / "state", "--snapshot-every", "3600") as server:
        client = server.client()
        for begin in range(0, 60, 10):
            list(client.learn_many(STREAM[begin : begin + 10]))
        server.kill()
    log = tmp_path / "state" / "store.db-wal"
    log.write_bytes(log.read_bytes()[:-3000])
    status, message = run("serve", tmp_path / "state")
    assert status == 2 and "6 commits were acknowledged, but only 5 can be read" in message
    with served(tmp_path / "state", "--accept-loss") as server:
        assert server.client().stats()["examples"] == 50
        assert "lost: commits 6 to 6, examples 51 to 60\n" in server.log()
        assert "nothing was deleted: the damaged files are in" in server.log()
    with served(tmp_path / "state", "--accept-loss") as server:
        assert server.client().stats()["examples"] == 50
        assert server.log().count("was repaired") == 1, "a whole store is left alone"


def test_nothing_is_made_of_nothing(tmp_path):
    assert repair.repaired(tmp_path / "new") == []
    one = ServedStore(tmp_path / "s", FRESH)
    one.learn(STREAM[:10])
    one.crash()
    (tmp_path / "s" / "store.db").write_bytes(b"")
    with pytest.raises(StoreError, match="neither the database nor a snapshot can be read"):
        repair.repaired(tmp_path / "s")


def test_a_store_that_is_not_damaged_is_not_repaired(tmp_path, history):
    """A later format, and a database that cannot be opened, are no damage, even where a snapshot could be used instead."""
    folder = tmp_path / "s"
    shutil.copytree(history.folders[0], folder)
    with closing(CommitStore(folder)) as store:
        store.describe("model", store.base["model"] | {"format": 99})
    before = files_of(folder)
    with pytest.raises(StoreError, match="was written by a newer version"):
        repair.repaired(folder)
    assert before.items() <= files_of(folder).items()
    (folder / "store.db").unlink()
    (folder / "store.db").mkdir()
    with pytest.raises(StoreError, match="cannot be read at the moment, so it is not repaired"):
        repair.repaired(folder)


def test_a_table_that_leads_back_to_itself_is_read_once(tmp_path, history):
    """A page that is its own successor makes SQLite list the same rows for ever."""

    class Circle:
        def __init__(self, rows):
            self.rows = rows

        def execute(self, query, values=()):
            return itertools.cycle(self.rows)

    with closing(CommitStore(history.folders[0], writing=False)) as store:
        rows = [tuple(stored) for stored in store.commits()]
    damaged = (*rows[3][:1], 1 << 60, *rows[3][2:])
    assert [stored.last for stored in repair._readable_commits(Circle([*rows[:5], damaged]), 100)] == [1, 2, 3, 4, 5]
