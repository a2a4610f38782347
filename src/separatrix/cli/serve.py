"""`separatrix serve`: a model behind HTTP that learns from corrections, and loses none."""

from __future__ import annotations

import logging
import os
import socket
import sys
import time
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

import typer

from separatrix.cli.refusal import refuse, refusing
from separatrix.data.errors import DataError

LOOPBACK = ("127.0.0.1", "localhost", "::1")


@dataclass
class Options:
    """What was asked for."""

    state: Path
    model: Path | None
    port: int
    host: str
    allow_host: list[str]
    text: bool
    bits: int
    learner: str
    rule: str
    C: float
    keep_all: bool
    as_of: str | None
    output: Path | None
    read_token: str
    learn_token: str
    read_token_file: Path | None
    learn_token_file: Path | None
    body_limit: int
    feature_limit: int
    weight_limit: int
    queue_limit: int
    snapshot_every: float
    log: str
    accept_loss: bool


def run(options: Options) -> int:
    """Serve, or rebuild a past model; return the exit status."""
    with refusing("serve", options.state):
        try:
            import fastapi  # noqa: F401
            import orjson  # noqa: F401
            import uvicorn  # noqa: F401
        except ImportError as error:
            refuse("serve", f"needs the package {error.name}: pip install 'separatrix[web]'")
        if options.as_of is not None:
            return _rebuild(options)
        return _serve(options)


def _serve(options: Options) -> int:
    from separatrix.web.listening import listen, serve, url_of
    from separatrix.web.server import snapshots
    from separatrix.web.server.app import Tokens, application
    from separatrix.web.server.live_model import warm
    from separatrix.web.server.request_reader import Limits
    from separatrix.web.server.store import CommitStore
    from separatrix.web.server.writer import Writer

    _log(options.log)
    tokens = Tokens(
        _token(options.read_token, options.read_token_file), _token(options.learn_token, options.learn_token_file)
    )
    if options.host not in LOOPBACK and not (tokens.read and tokens.learn):
        raise DataError(
            f"--host {options.host} can be reached by others: set a token for reading and one for learning "
            "(SEPARATRIX_READ_TOKEN and SEPARATRIX_LEARN_TOKEN, or --read-token-file and --learn-token-file)"
        )
    if tokens.read and tokens.read == tokens.learn:
        raise DataError("the token for reading must not be the one for learning")
    limits = Limits(options.body_limit, options.feature_limit, options.weight_limit, options.queue_limit)
    listener = listen(options.host, options.port)
    store = CommitStore(options.state, accept_loss=options.accept_loss)
    settings = {name: getattr(options, name) for name in ("learner", "rule", "C", "text", "bits")}
    try:
        snapshots.begin(store, options.model, settings)
        writer = Writer(store, limits, keep_all=options.keep_all, snapshot_seconds=options.snapshot_every)
    except BaseException:
        store.close()
        raise
    warm(writer.buffer.learning)
    counts = writer.buffer.learning.progressive
    app = application(
        writer,
        tokens=tokens,
        hosts=_hosts(options),
        requests_logged=options.log in ("requests", "payloads"),
        payloads_logged=options.log == "payloads",
    )
    replayed = f", {writer.replayed:,} commits replayed" if writer.replayed else ""
    typer.echo(
        f"{counts.examples:,} examples learned so far, {counts.errors:,} wrong{replayed}",
        err=True,
    )
    told = f"serving {options.state} on {url_of(listener)} (Ctrl-C ends it)"
    serve(app, listener, lambda: typer.echo(told, err=True))
    typer.echo("ended; everything acknowledged is on the disk", err=True)
    return 0


def _rebuild(options: Options) -> int:
    """Write the model of a past moment."""
    from separatrix.web.server import snapshots
    from separatrix.web.server.store import CommitStore

    assert options.as_of is not None
    if options.output is None:
        raise DataError("--as-of writes the model of that moment: say where by --output FILE")
    store = CommitStore(options.state, writing=False)
    try:
        number, when, examples = store.moment(**_moment(options.as_of))
        machine, names, _ = snapshots.recover(store, number)
        if machine.run is None:
            raise DataError(f"nothing was learned by {options.as_of}")
        snapshots.ModelSnapshot.of(store, number, machine, names).write(options.output)
    finally:
        store.close()
    told = datetime.fromtimestamp(when).astimezone().isoformat(timespec="milliseconds")
    typer.echo(f"the model after {examples:,} examples, as of {told}, is in {options.output}", err=True)
    return 0


def _moment(told: str) -> dict[str, Any]:
    """Return a moment as the store knows it: a number of examples, or a time."""
    if told.isdigit():
        return {"examples": int(told)}
    try:
        return {"time": datetime.fromisoformat(told).timestamp()}
    except ValueError:
        raise DataError(f"--as-of is {told!r}: give a time such as 2030-05-01T12:00, or a number of examples") from None


def _token(given: str, file: Path | None) -> str:
    if file is not None:
        given = file.read_text().strip()
    if given and (len(given) < 16 or not given.isascii() or not given.isprintable()):
        raise DataError("a token has 16 printable ASCII characters or more")
    return given


def _hosts(options: Options) -> tuple[str, ...]:
    """Return the names by which the server may be asked for."""
    names = [name.lower() for name in options.allow_host]
    if options.host in LOOPBACK:
        return tuple(names)
    own = socket.gethostname().lower()
    shown = f"[{options.host}]" if ":" in options.host else options.host
    return (*names, shown, own, socket.getfqdn(own).lower())


def _log(what: str) -> None:
    if what not in ("events", "requests", "payloads"):
        raise DataError(f"--log is {what!r}: it must be events, requests or payloads")
    logging.Formatter.converter = time.gmtime
    logging.basicConfig(
        level=logging.INFO, stream=sys.stderr, format="%(asctime)s %(levelname)s %(message)s", datefmt="%Y-%m-%dT%H:%M:%SZ"
    )
    for name in ("uvicorn", "uvicorn.error"):
        logging.getLogger(name).setLevel(logging.WARNING if not os.environ.get("SEPARATRIX_DEBUG") else logging.INFO)
