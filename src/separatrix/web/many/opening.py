"""How a model is opened: where its store is, what a new one starts from, and which tokens it has.

Models may be declared in a TOML file, each with settings and tokens of its own:

[billing]
text = true
rule = "pa1"
read_token = "…"
learn_token = "…"
"""

from __future__ import annotations

import secrets
import shutil
import tomllib
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

from starlette.applications import Starlette

from separatrix.data.errors import DataError, did_you_mean
from separatrix.engine.rules import RULES, STREAMING
from separatrix.modelfile.archive import load
from separatrix.modelfile.model import Model
from separatrix.web.many import names
from separatrix.web.many.models import OVERHEAD
from separatrix.web.many.pool import PooledWriter, WriterPool
from separatrix.web.server.app import Tokens, application
from separatrix.web.server.memory_budget import ProcessMemory
from separatrix.web.server.reading.request_reader import Limits
from separatrix.web.server.storage import snapshots
from separatrix.web.server.storage.store import CommitStore

SETTINGS: dict[str, type | tuple[type, ...]] = {
    **{"learner": str, "rule": str, "C": (int, float), "text": bool, "bits": int},
    **{"vectors": bool, "cosine": bool},
}
"""What a new model may be told, and of which type it is."""
LEAST_TOKEN = 16


class Declaration(NamedTuple):
    """A declared model: the settings that differ from those of the server, and its tokens."""

    settings: dict[str, Any]
    read: str = ""
    learn: str = ""


def declared_models(path: Path) -> dict[str, Declaration]:
    """Return the models that a TOML file declares, by name; raises DataError."""
    try:
        tables = tomllib.loads(path.read_text(encoding="utf-8"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise DataError(f"{path} is not TOML: {error}") from None
    declared = {}
    for name, table in tables.items():
        if problem := names.problem_of(name):
            raise DataError(f"{path}: {problem}")
        if not isinstance(table, dict):
            raise DataError(f"{path}: a model is a table: [{name}] on a line of its own, then its settings")
        settings = dict(table)
        read, learn = (_token(path, name, settings.pop(f"{kind}_token", "")) for kind in ("read", "learn"))
        if read and read == learn:
            raise DataError(f"{path}: model {name!r}: the token for reading must differ from the token for learning")
        try:
            checked_settings(settings)
        except ValueError as error:
            raise DataError(f"{path}: model {name!r}: {error}") from None
        declared[name] = Declaration(settings, read, learn)
    return declared


def _token(path: Path, name: str, token: Any) -> str:
    if token == "":
        return ""
    if not isinstance(token, str) or len(token) < LEAST_TOKEN or not token.isascii() or not token.isprintable():
        raise DataError(f"{path}: model {name!r}: a token must have at least {LEAST_TOKEN} characters, all printable ASCII")
    return token


def checked_settings(settings: dict[str, Any]) -> dict[str, Any]:
    """Return the settings of a new model, which may be some of all; raises ValueError."""
    choices = {"learner": STREAMING, "rule": [name for name, rule in RULES.items() if rule.spread != "full"]}
    for name, value in settings.items():
        if name not in SETTINGS:
            raise ValueError(f"there is no setting {name!r}{did_you_mean(name, SETTINGS)}; there are {', '.join(SETTINGS)}")
        if not isinstance(value, SETTINGS[name]) or (isinstance(value, bool) and SETTINGS[name] is not bool):
            kinds: dict[Any, str] = {str: "a string", bool: "true or false", int: "an integer"}
            kind = kinds.get(SETTINGS[name], "a number")
            raise ValueError(f"{name} is {value!r}, but must be {kind}")
        if name in choices and value not in choices[name]:
            raise ValueError(f"{name} is {value!r}, but must be one of {', '.join(choices[name])}")
    if settings.get("vectors") and settings.get("text"):
        raise ValueError("vectors and text exclude each other: the examples of a model are of one kind")
    if not 8 <= settings.get("bits", 18) <= 24:
        raise ValueError(f"bits is {settings['bits']}, but must be from 8 to 24")
    if not 0 < settings.get("C", 1.0) < float("inf"):
        raise ValueError(f"C is {settings['C']}, but must be positive")
    return settings


@dataclass
class ModelOpener:
    """Opens the models of a folder; `settings` and `model` are what a new one starts with."""

    folder: Path
    pool: WriterPool
    limits: Limits
    memory: ProcessMemory
    settings: dict[str, Any]
    model: Path | None = None
    tokens: Tokens = Tokens()  # noqa: RUF009
    declared: dict[str, Declaration] = field(default_factory=dict)
    hosts: tuple[str, ...] = ()
    keep_all: bool = False
    snapshot_seconds: float = 60.0
    payloads_logged: bool = False
    ask: float | None = None
    may_create: bool = True
    """Whether a model that is not declared is created when it first learns."""

    def first_model(self) -> Model:
        """Return what a model starts with that has no settings of its own."""
        if self.model is None:
            return snapshots.untrained_model(self.settings)
        return snapshots.prepared_to_stream(load(self.model, plain=True))

    @property
    def tokens_for_all(self) -> Tokens:
        """The tokens valid for all models, with which they are listed, created and deleted.

        Where there are none, but a declared model has tokens of its own, nobody may: a token is required that nobody has.
        """
        has_own = any(own.read or own.learn for own in self.declared.values())
        if has_own and not (self.tokens.read or self.tokens.learn):
            return Tokens(learn=secrets.token_urlsafe(32))
        return self.tokens

    def tokens_of(self, name: str) -> Tokens:
        """Return the tokens that are valid for a model: its own, and those for all."""
        own = self.declared.get(name, Declaration({}))
        return Tokens(own.read, own.learn, (self.tokens.read, self.tokens.learn))

    def settings_of(self, name: str, settings: dict[str, Any] | None = None) -> dict[str, Any]:
        """Return all settings of a new model, given those that a request asks for."""
        own = (self.declared[name].settings if name in self.declared else {}) | (settings or {})
        if self.model is not None and (fixed := [setting for setting in snapshots.OF_MODEL if setting in own]):
            raise DataError(f"{fixed[0]} cannot be set: new models start from {self.model.name}, and have that of it")
        merged = self.settings | own
        if merged.get("vectors") and merged.get("text"):  # what the model itself says counts more than the command line
            merged |= {"text": bool(own.get("text")), "vectors": bool(own.get("vectors"))}
        if merged.get("cosine") and not merged.get("vectors"):
            if own.get("cosine"):
                raise DataError("cosine scales vectors: set vectors, too")
            merged["cosine"] = False
        return merged

    def __call__(self, name: str, settings: dict[str, Any] | None) -> tuple[Starlette, PooledWriter]:
        """Open or create a model; raises MemoryLimitError, StoreError, ModelFileError or DataError.

        A model that cannot be created leaves nothing behind.
        """
        budget, folder = self.memory.models, self.folder / name
        budget.claim(OVERHEAD)
        existed = folder.exists()
        store: CommitStore | None = None
        try:
            store = CommitStore(folder)
            if "model" not in store.base:
                snapshots.begin(store, self.model, self.settings_of(name, settings))
            writer = PooledWriter(
                self.pool,
                store,
                self.limits,
                keep_all=self.keep_all,
                snapshot_seconds=self.snapshot_seconds,
                memory=self.memory,
            )
            writer.overhead = OVERHEAD
            app = application(
                writer,
                tokens=self.tokens_of(name),
                hosts=self.hosts,
                payloads_logged=self.payloads_logged,
                ask=self.ask,
            )
        except BaseException:
            budget.release(OVERHEAD)
            if store is not None:
                store.close()
                if not existed:
                    shutil.rmtree(folder, ignore_errors=True)
            raise
        return app, writer
