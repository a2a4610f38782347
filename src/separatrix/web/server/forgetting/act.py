"""The act of forgetting: replay, one transaction, another model for those who predict, and the receipt.

A kill leaves the store as it was or as it is afterwards; what is left to erase then is erased at the next start.
"""

from __future__ import annotations

import logging
import secrets
import time
from collections.abc import Callable
from concurrent.futures import Future
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, NamedTuple

import orjson

from separatrix import __version__
from separatrix.data.errors import counted
from separatrix.data.keyed_checksums import keyed, new_key
from separatrix.modelfile.archive import learned_checksum
from separatrix.web.server.forgetting.erasing import backups_with, erase
from separatrix.web.server.forgetting.numbers import FORGOTTEN, Forgetting, forgotten_numbers, times_forgotten
from separatrix.web.server.forgetting.receipts import KIND
from separatrix.web.server.forgetting.replaying import Found, Replay, find
from separatrix.web.server.live.double_buffer import DoubleBuffer
from separatrix.web.server.live.live_model import LiveModel
from separatrix.web.server.reading.feature_index import FeatureIndex
from separatrix.web.server.reading.request_errors import RequestError
from separatrix.web.server.storage.store import CommitStore
from separatrix.web.server.storage.store_folder import StoreError
from separatrix.web.server.storage.store_rows import FORGOTTEN_REQUEST, INSERT_KEY, KEY_COLUMNS, checksum_of
from separatrix.web.server.writing.regressions import RegressionSet

if TYPE_CHECKING:
    from separatrix.web.server.writing.writer import Writer

log = logging.getLogger("separatrix.serve")
FORMAT = 1
HOW_TO_CHECK = "separatrix check RECEIPT --data FOLDER learns from what the store has kept, and compares"
LOGGED = "the server has been run with --log payloads: what it has written to standard error may have the examples"


class Forgotten(NamedTuple):
    """What forgetting left: the model, its features' names, its pins, the receipt, and the key of its checksums."""

    live_model: LiveModel
    names: list[str] | None
    regressions: RegressionSet
    receipt: dict[str, Any]
    key: bytes


def forget_examples(writer: Writer, numbers: list[int], answer: Future[bytes]) -> None:
    """Forget examples; runs in the writer's thread."""
    store, numbers = writer.store, sorted(set(numbers))
    same = next((forgetting for forgetting in store.forgettings if forgetting.numbers == numbers), None)
    key = None
    try:
        if same is None:
            with writer.snapshot_lock:
                key = _forgotten(writer, numbers)
        erase(store)
    except RequestError as error:
        answer.set_exception(error)
        return
    except StoreError as error:
        if key is None and same is None:
            raise
        reason = f"the examples were forgotten, but not all of their traces are erased yet: {error}"
        answer.set_exception(RequestError(503, f"{reason}; this is tried again every second", 1))
        return
    receipt = next(forgetting.receipt for forgetting in store.forgettings if forgetting.numbers == numbers)
    if key is not None:
        which = ", ".join(map(str, numbers[:10])) + (" …" if len(numbers) > 10 else "")
        log.info("%s forgotten: %s", counted(len(numbers), "example"), which)
    reply = {"forgotten": numbers, "receipt": receipt, "key": None if key is None else key.hex()}
    answer.set_result(orjson.dumps(reply))


def _forgotten(writer: Writer, numbers: list[int]) -> bytes:
    """Forget, and let readers see the new model; return the key of the receipt's checksums."""
    store, buffer = writer.store, writer.buffer
    learning = buffer.learning
    prepared: list[tuple[Forgotten, DoubleBuffer]] = []

    def before_commit(forgotten: Forgotten) -> None:
        prepared.append((forgotten, DoubleBuffer(forgotten.live_model, forgotten.names, store.last)))
        writer.history += 1

    try:
        forget(store, numbers, buffer.index, learning, lambda: writer.stopping, before_commit)
        ((forgotten, new_buffer),) = prepared
        writer.take_over(new_buffer, forgotten.regressions)
    finally:
        writer.history += len(prepared)
    return forgotten.key


def forget(
    store: CommitStore,
    numbers: list[int],
    index: FeatureIndex | None,
    live_model: LiveModel,
    stopped: Callable[[], bool] = lambda: False,
    before_commit: Callable[[Forgotten], None] = lambda forgotten: None,
) -> Forgotten:
    """Write the store anew without some examples; `index` and `live_model` are those of its last commit.

    Raises RequestError, before anything changes, where it cannot be done, and StoreError.
    """
    found = find(store, numbers)
    names = None if index is None else list(index.listed)
    started, results = time.perf_counter(), list[Forgotten]()

    def change() -> tuple[str, dict[str, Any], int]:
        replay = Replay(store, found, names, stopped)
        replay.run()
        n_keys = _forget_keys(store, numbers)
        live = replay.live_model
        live.forgets = times_forgotten(store.base) + 1
        key = new_key()
        receipt = _receipt(store, found, index, live_model, replay, key)
        receipt["replay"]["seconds"] = round(time.perf_counter() - started, 3)
        receipt["keys"] = n_keys
        new_names = None if replay.index is None else replay.index.listed
        results.append(Forgotten(live, new_names, replay.regressions, receipt, key))
        before_commit(results[0])
        forgetting = Forgetting(f"{FORGOTTEN}{live.forgets:06d}", receipt, found.first, False)
        return forgetting.name, forgetting.entry(), replay.mistakes

    store.rewrite(change)
    return results[0]


def _forget_keys(store: CommitStore, numbers: list[int]) -> int:
    """Let the idempotency keys of requests with these examples refuse a repetition; return how many there are."""
    updates = []
    for key, request, when, reply, number, served, _ in store.db.execute(f"SELECT {KEY_COLUMNS} FROM keys"):
        if request == FORGOTTEN_REQUEST:
            continue
        fields = orjson.loads(reply)
        end = int(fields["examples"])
        if any(end - int(fields["learned"]) < example <= end for example in numbers):
            updates.append((key, FORGOTTEN_REQUEST, when, b"", number, served))
    store.db.executemany(INSERT_KEY, [(*values, checksum_of(*values)) for values in updates])
    return len(updates)


def _receipt(
    store: CommitStore, found: Found, index: FeatureIndex | None, before: LiveModel, replay: Replay, key: bytes
) -> dict[str, Any]:
    """Return the receipt: numbers and checksums, no contents."""
    contents = found.contents(index, before.classes, forgotten_numbers(store.forgettings))
    after, counts = replay.live_model, replay.live_model.progressive
    return {
        "receipt": KIND,
        "format": FORMAT,
        "separatrix": __version__,
        "id": secrets.token_hex(8),
        "time": datetime.now(UTC).isoformat(timespec="seconds"),
        "store": store.base["model"]["id"],
        "removed": {
            "examples": found.numbers,
            "checksums": [keyed(key, content) for content in contents],
            "kind": "HMAC-SHA256 of each example with a key that is not in this receipt",
        },
        "before": {
            **{"examples": before.progressive.examples, "mistakes": before.progressive.mistakes},
            "learned": keyed(key, learned_of(before, None if index is None else index.listed)),
        },
        "after": {
            **{"examples": counts.examples, "mistakes": counts.mistakes, "commit": store.last},
            "learned": learned_of(after, None if replay.index is None else replay.index.listed),
        },
        "replay": {"from_commit": found.first, "snapshot": replay.snapshot, "presented": replay.presented},
        "undos_dropped": replay.dropped_undos,
        "unpinned": replay.unpinned,
        "backups": backups_with(store.folder, found.first, after.forgets),
        "logs": LOGGED if "payloads" in store.base else "",
        "check": HOW_TO_CHECK,
    }


def learned_of(live_model: LiveModel, names: list[str] | None) -> str:
    """Return the checksum of what a model has learned; empty before it has learned anything."""
    if live_model.run is None:
        return ""
    listed = None if names is None else names[: live_model.n_names]
    return learned_checksum(live_model.model(listed))


def unchanging(writer: Writer, read: Callable[[DoubleBuffer], Any]) -> Any:
    """Return what `read` finds in the store and in a buffer that belong together, whatever is forgotten meanwhile."""
    while True:
        history, buffer = writer.history, writer.buffer
        is_settled = history % 2 == 0
        try:
            found = read(buffer) if is_settled else None
        except Exception:
            if history == writer.history:
                raise
            continue
        if is_settled and history == writer.history:
            return found
        time.sleep(0.005)
