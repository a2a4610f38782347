"""The tagger of a server on the disk: a model file, and a journal of the corrections that came after it.

A line of the journal is a correction with a checksum, and is on the disk before the correction is acknowledged. The model
file says how many lines it has learned from already; a start learns from the others, in their order, and so comes to the
same weights, bit for bit. A last line without its end was never acknowledged, and is removed.
"""

from __future__ import annotations

import json
import os
from contextlib import suppress
from pathlib import Path
from typing import Any
from zlib import crc32

from separatrix.data.errors import DataError
from separatrix.modelfile.archive import load, save
from separatrix.modelfile.model import Model

MODEL, JOURNAL = "tagger.sepx", "corrections.jsonl"


def holds_journal(folder: Path) -> bool:
    """Tell whether a folder is that of a tagger's server."""
    return (folder / MODEL).is_file()


class Journal:
    """The folder of one server: its tagger, and the corrections since the model file was written."""

    def __init__(self, folder: Path, model: Path | None) -> None:
        self.folder, self.path = folder, folder / JOURNAL
        if model is not None and holds_journal(folder):
            raise DataError(f"{folder} has a tagger already: leave --model out to continue with it, or name another folder")
        if model is not None and folder.is_dir() and any(folder.iterdir()):
            raise DataError(f"{folder} is not empty, and has no tagger: name another folder")
        folder.mkdir(parents=True, exist_ok=True)
        self._file = open(self.path, "ab")
        try:
            _lock(self._file, folder)
            if model is not None:
                first = load(model, plain=True)
                save(Model(first.estimator, None, first.facts | {"server": {"corrections": 0}}), folder / MODEL)
            self.model = load(folder / MODEL, plain=True)
            self.tagger: Any = self.model.estimator
            if not self.tagger.run_.resumable:
                raise DataError(f"{folder / MODEL} was saved without what further learning needs: train a new model")
            self.learned = int(self.model.facts.get("server", {}).get("corrections", 0))
            self.replayed = self._replay()
        except BaseException:
            self._file.close()
            raise

    def _replay(self) -> int:
        """Learn from the corrections that the model file lacks; return how many there were."""
        whole, torn = _split(self.path.read_bytes())
        if torn:
            self._file.truncate(sum(len(line) + 1 for line in whole))
        if len(whole) < self.learned:
            has, needs = f"{len(whole):,} corrections", f"{self.learned:,}"
            raise DataError(f"{self.path} has {has}, and {MODEL} has learned from {needs}: restore the file from a copy")
        replayed = 0
        for number, line in enumerate(whole, 1):
            correction = _parsed(line)
            if correction is None:
                raise DataError(f"{self.path}, line {number:,} is damaged: restore the file from a copy")
            if number > self.learned:
                self.tagger.partial_fit(self.as_tokens(correction[0]), correction[1])
                replayed += 1
        self.learned += replayed
        return replayed

    def as_tokens(self, sequences: list[list[Any]]) -> list[list[Any]]:
        """Return sequences of JSON as the tagger takes them: a token of several columns becomes a tuple."""
        if self.tagger.features_.kind != "columns":
            return sequences
        return [[tuple(token) if isinstance(token, list) else token for token in sequence] for sequence in sequences]

    def append(self, sequences: list[Any], tags: list[Any]) -> None:
        """Put a correction on the disk."""
        body = json.dumps([sequences, tags], ensure_ascii=False, separators=(",", ":")).encode()
        self._file.write(b"%08x %b\n" % (crc32(body), body))
        self._file.flush()
        os.fsync(self._file.fileno())
        self.learned += 1

    def write_model(self) -> None:
        """Write the model file, so that the next start has nothing to replay."""
        facts = self.model.facts | {"server": {"corrections": self.learned}}
        save(Model(self.tagger, None, facts), self.folder / MODEL)

    def close(self) -> None:
        """Let others have the folder."""
        self._file.close()


def _split(content: bytes) -> tuple[list[bytes], bytes]:
    """Return the whole lines, and what stands behind the last one."""
    *lines, torn = content.split(b"\n")
    return lines, torn


def _parsed(line: bytes) -> tuple[list[Any], list[Any]] | None:
    """Return the sequences and tags of a line; None where it is not what was written."""
    checksum, _, body = line.partition(b" ")
    with suppress(ValueError):
        if int(checksum, 16) == crc32(body):
            sequences, tags = json.loads(body)
            return sequences, tags
    return None


def _lock(file: Any, folder: Path) -> None:
    """Raise where another server has the folder; on systems without such locks, do nothing."""
    try:
        import fcntl
    except ImportError:
        return
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        raise DataError(f"another server uses {folder}: end it first, or name another folder") from None
