"""Compaction: small commits that follow each other become one, which has the same effect."""

from __future__ import annotations

from typing import TYPE_CHECKING

from separatrix.web.server.live.commits import Commit, merged
from separatrix.web.server.storage.store_rows import COLUMNS, INSERT_COMMIT, StoredCommit, checksum_of

if TYPE_CHECKING:
    from separatrix.web.server.storage.store import CommitStore

SEGMENT = 4096
"""Consecutive commits are joined until they hold so many examples."""


def joined(store: CommitStore, after: int, until: int) -> tuple[int, int]:
    """Join the next small commits between two numbers, none across a gap or its snapshot.

    Returns how many rows were removed, and after which commit to look next time; the caller makes it a transaction.
    """
    needed = {gap.snapshot for gap in store.gaps}
    small = store.db.execute(
        f"SELECT {COLUMNS} FROM commits WHERE last > ? AND last <= ? ORDER BY last LIMIT {SEGMENT + 1}", (after, until)
    )
    group: list[tuple[StoredCommit, Commit]] = []
    for row in small:
        stored = StoredCommit(*row).checked()
        commit = stored.commit
        if group and (stored.first != group[-1][0].last + 1 or group[-1][0].last in needed):
            group = []
        if commit.rebuilt or stored.undoes is not None or commit.n >= SEGMENT:
            group = []
            after = stored.last
            continue
        group.append((stored, commit))
        if sum(commit.n for _, commit in group) >= SEGMENT:
            break
    else:
        return 0, after
    small.close()
    first, last = group[0][0], group[-1][0]
    commit = merged([commit for _, commit in group])
    whole = (first.first, *last[1:4], first.mistakes_before, commit.mistakes, None, commit.pack())
    store.db.execute("DELETE FROM commits WHERE last >= ? AND last <= ?", (first.last, last.last))
    store.db.execute(INSERT_COMMIT, (*whole, checksum_of(*whole)))
    return len(group) - 1, last.last
