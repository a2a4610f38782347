"""Serve a model over HTTP that learns from corrections.

No correction that it has acknowledged is ever lost.

Try:

  separatrix serve spam/ --text
  curl localhost:8017/learn -d '{"text": "free: call now", "label": "spam"}'
"""

import logging
import os
import shlex
import signal
import socket
import sys
import time
from dataclasses import dataclass, fields
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import click

from separatrix.cli.commands import options_from
from separatrix.cli.errors import INTERNAL, errors_reported, fail
from separatrix.cli.serving import NEW_MODEL, check_of_new_model, limits_of, memory_of, serve_many
from separatrix.data.errors import DataError, counted
from separatrix.data.options import Argument, Option
from separatrix.engine.rules import RULES, STREAMING

if TYPE_CHECKING:
    from separatrix.web.server.app import Tokens

LOOPBACK = ("127.0.0.1", "localhost", "::1")
LOGS = {"events": "", "requests": "one line each", "payloads": "their contents, too"}
FOR_TAGGERS = (
    *("state", "model", "port", "host", "allow_host", "read_token", "learn_token", "read_token_file", "learn_token_file"),
    *("body_limit", "log"),
)
"""The options of a tagger's server."""


@dataclass(frozen=True)
class ServeOptions:
    """The options of `separatrix serve`."""

    state: Annotated[Path, Argument(help="Folder that stores what is learned; created if it does not exist.")]
    model: Annotated[
        Path | None, Option(group="learning", help="Start with this model, written by `separatrix train -o`.")
    ] = None
    port: Annotated[int, Option(group="running", min=0, max=65535, help="Port to listen on; 0 takes any free port.")] = 8017
    host: Annotated[
        str,
        Option(metavar="ADDRESS", group="running", help="Address to listen on; any but the loopback address needs tokens."),
    ] = "127.0.0.1"
    allow_host: Annotated[
        list[str] | None,
        Option(metavar="NAME", group="running", rare=True, help="Host name that requests may address; repeatable."),
    ] = None
    many: Annotated[
        bool,
        Option("--many", group="running", help="Serve many models, each at /models/NAME/ with a folder of its own."),
    ] = False
    models: Annotated[
        Path | None,
        Option(
            group="running",
            help="With --many: TOML file that declares the models, with settings and tokens; no others are created.",
        ),
    ] = None
    text: Annotated[bool, Option("--text", group="learning", help="The examples of a new model are texts.")] = False
    vectors: Annotated[
        bool, Option("--vectors", group="learning", help="The examples of a new model are vectors, such as embeddings.")
    ] = False
    cosine: Annotated[
        bool, Option("--cosine", group="learning", rare=True, help="With --vectors, divide each vector by its length.")
    ] = False
    bits: Annotated[
        int, Option(group="learning", min=8, max=24, rare=True, help="Hash text to 2^bits features in a new model.")
    ] = 18
    learner: Annotated[str, Option(group="learning", choices=STREAMING, help="Which weights of a new model predict.")] = (
        "averaged"
    )
    rule: Annotated[
        str,
        Option(
            group="learning",
            choices=[name for name, rule in RULES.items() if rule.spread != "full"],
            help="Update rule of a new model.",
        ),
    ] = "perceptron"
    C: Annotated[
        float, Option("-C", "--C", group="learning", help="Aggressiveness of the rules of a new model that have a C.")
    ] = 1.0
    keep_all: Annotated[
        bool,
        Option(
            "--keep-all",
            group="running",
            rare=True,
            help="Store all examples, not only the mistakes, so that they can be forgotten and an undo is exact.",
        ),
    ] = False
    ask: Annotated[
        float | None,
        Option(
            metavar="B",
            group="running",
            help="Let predictions say whether a label is worth asking for: with probability B/(B + |margin|).",
        ),
    ] = None
    as_of: Annotated[
        str | None,
        Option(
            metavar="WHEN",
            group="running",
            help="Do not serve: write the model as of a past time, a number of examples, or commit:N, to --output.",
        ),
    ] = None
    output: Annotated[
        Path | None, Option("-o", "--output", group="running", help="File that --as-of writes the model to.")
    ] = None
    read_token: Annotated[
        str, Option(group="running", envvar="SEPARATRIX_READ_TOKEN", help="Token for predictions and figures.")
    ] = ""
    learn_token: Annotated[
        str, Option(group="running", envvar="SEPARATRIX_LEARN_TOKEN", help="Token for learning and all else.")
    ] = ""
    read_token_file: Annotated[Path | None, Option(group="running", help="File that holds the token for reading.")] = None
    learn_token_file: Annotated[Path | None, Option(group="running", help="File that holds the token for learning.")] = None
    body_limit: Annotated[
        int, Option(metavar="BYTES", group="running", min=1024, rare=True, help="Maximum size of a request in bytes.")
    ] = 8 << 20
    feature_limit: Annotated[
        int, Option(group="running", min=1, rare=True, help="Maximum number of features of an example.")
    ] = 10_000
    weight_limit: Annotated[
        int, Option(group="running", min=1, rare=True, help="Maximum number of weights: features × classes.")
    ] = 50_000_000
    max_classes: Annotated[
        int, Option(group="running", min=2, rare=True, help="Maximum number of classes; more are refused.")
    ] = 5_000
    name_limit: Annotated[
        int,
        Option(metavar="BYTES", group="running", min=1024, rare=True, help="Maximum size of all feature names in bytes."),
    ] = 256 << 20
    max_memory: Annotated[
        str | None,
        Option(
            metavar="SIZE",
            group="running",
            rare=True,
            help="Memory of the process, for example 2G; beyond, models do not grow. Default: 3/4 of the machine's.",
        ),
    ] = None
    queue_limit: Annotated[
        int, Option(group="running", min=1, rare=True, help="Maximum number of requests that wait to be learned from.")
    ] = 1_000
    snapshot_every: Annotated[
        float, Option(metavar="SECONDS", group="running", min=0.1, rare=True, help="Seconds between snapshots.")
    ] = 60.0
    log: Annotated[str, Option(group="running", choices=LOGS, help="What to log.")] = "events"
    accept_loss: Annotated[
        bool,
        Option(
            "--accept-loss",
            group="running",
            rare=True,
            help="Repair a damaged store, and continue without what is lost; nothing is deleted.",
        ),
    ] = False

    def host_names(self) -> tuple[str, ...]:
        """Return the host names that requests may address."""
        names = [name.lower() for name in self.allow_host or []]
        if self.host in LOOPBACK:
            return tuple(names)
        own = socket.gethostname().lower()
        address = f"[{self.host}]" if ":" in self.host else self.host
        return (*names, address, own, socket.getfqdn(own).lower())


@options_from(ServeOptions)
def serve(options: ServeOptions) -> int:
    """Serve until interrupted, or write the model of a past time."""
    with errors_reported("serve", options.state):
        if options.state.is_file():
            raise DataError(
                f"{options.state} is a file, and what is learned is stored in a folder: name one, and to start with this "
                f"model add --model {shlex.quote(str(options.state))}"
            )
        try:
            import orjson  # noqa: F401
            import starlette  # noqa: F401
            import uvicorn  # noqa: F401
        except ImportError as error:
            fail("serve", f"needs the package {error.name}: pip install 'separatrix[web]'")
        _check(options)
        if options.many:
            _set_up_log(options.log)
            serve_many(options, _tokens(options))
        elif _is_tagger(options):
            _serve_tagger(options)
        elif options.as_of is None:
            _serve(options)
        else:
            _write_past_model(options)
    return 0


def _check(options: ServeOptions) -> None:
    """Raise for options that exclude each other."""
    if options.vectors and options.text:
        raise DataError("--vectors and --text exclude each other: the examples of a model are of one kind")
    if options.cosine and not options.vectors:
        raise DataError("--cosine scales vectors: use it with --vectors")
    if options.ask is not None and not 0.0 < options.ask < float("inf"):
        raise DataError(f"--ask is {options.ask:g}: it must be a positive number")


def _is_tagger(options: ServeOptions) -> bool:
    """Tell whether a tagger of sequences is served."""
    from separatrix.modelfile.archive import holds_tagger

    return (options.state / "tagger.sepx").is_file() or (options.model is not None and holds_tagger(options.model))


def _serve_tagger(options: ServeOptions) -> None:
    from separatrix.web import listening
    from separatrix.web.tagging.app import application
    from separatrix.web.tagging.journal import Journal

    for field in fields(options):
        if field.name not in FOR_TAGGERS and getattr(options, field.name) != field.default:
            raise DataError(f"--{field.name.replace('_', '-')} is not for taggers of sequences")
    _set_up_log(options.log)
    tokens = _tokens(options)
    listener = listening.listen(options.host, options.port)
    journal = Journal(options.state, options.model)
    try:
        app = application(journal, tokens=tokens, hosts=options.host_names(), body_limit=options.body_limit)
        replayed = f", {journal.replayed:,} of them replayed" if journal.replayed else ""
        click.echo(f"{journal.learned:,} corrections learned so far{replayed}", err=True)
        announcement = f"serving {options.state} on {listening.url_of(listener)} (Ctrl-C ends it)"
        listening.serve(app, listener, lambda: click.echo(announcement, err=True))
        journal.write_model()
    finally:
        journal.close()
    click.echo("ended; everything acknowledged is on disk", err=True)


def _tokens(options: ServeOptions) -> "Tokens":
    """Return the tokens of a server that others may reach, or that may do without."""
    from separatrix.web.server.app import Tokens

    tokens = Tokens(
        _token(options.read_token, options.read_token_file), _token(options.learn_token, options.learn_token_file)
    )
    if options.host not in LOOPBACK and not (tokens.read and tokens.learn):
        raise DataError(
            f"--host {options.host} can be reached by others: set a token for reading and one for learning "
            "(SEPARATRIX_READ_TOKEN and SEPARATRIX_LEARN_TOKEN, or --read-token-file and --learn-token-file)"
        )
    if tokens.read and tokens.read == tokens.learn:
        raise DataError("the token for reading must differ from the token for learning")
    return tokens


def _serve(options: ServeOptions) -> None:
    from separatrix.web import listening
    from separatrix.web.many.names import stored
    from separatrix.web.server.app import application
    from separatrix.web.server.memory_budget import MemoryLimitError, megabytes
    from separatrix.web.server.storage import snapshots
    from separatrix.web.server.storage.repair import repaired
    from separatrix.web.server.storage.store import CommitStore
    from separatrix.web.server.storage.store_folder import DATABASE
    from separatrix.web.server.warming import warm
    from separatrix.web.server.writing.writer import Writer

    if options.models is not None:
        raise DataError("--models declares the models of a server of many: add --many")
    if not (options.state / DATABASE).exists() and (models := stored(options.state)):
        raise DataError(f"{options.state} holds the stores of {counted(len(models), 'model')}: add --many")
    _set_up_log(options.log)
    tokens, limits, memory = _tokens(options), limits_of(options), memory_of(options)
    listener = listening.listen(options.host, options.port)
    if options.accept_loss:
        for line in repaired(options.state):
            click.echo(line, err=True)
    store = CommitStore(options.state)
    try:
        check_of_new_model(options, store.base.get("model"))
        snapshots.begin(store, options.model, {name: getattr(options, name) for name in NEW_MODEL})
        writer = Writer(store, limits, keep_all=options.keep_all, snapshot_seconds=options.snapshot_every, memory=memory)
    except MemoryLimitError as error:
        store.close()
        raise DataError(
            f"the model does not fit into the memory that the server may use for models: {error}; "
            f"allow more than the {megabytes(memory.limit)} of --max-memory"
        ) from None
    except BaseException:
        store.close()
        raise
    warm(writer.buffer.learning)
    writer.on_death = lambda: os.kill(os.getpid(), signal.SIGTERM)
    counts = writer.buffer.learning.progressive
    app = application(
        writer,
        tokens=tokens,
        hosts=options.host_names(),
        requests_logged=options.log in ("requests", "payloads"),
        payloads_logged=options.log == "payloads",
        ask=options.ask,
    )
    replayed = f", {writer.replayed:,} commits replayed" if writer.replayed else ""
    click.echo(f"{counts.examples:,} examples learned so far, {counts.errors:,} wrong{replayed}", err=True)
    announcement = f"serving {options.state} on {listening.url_of(listener)} (Ctrl-C ends it)"
    listening.serve(app, listener, lambda: click.echo(announcement, err=True))
    if writer.fatal:
        fail("serve", f"{writer.fatal}; everything acknowledged is on disk", INTERNAL)
    click.echo("ended; everything acknowledged is on disk", err=True)


def _write_past_model(options: ServeOptions) -> None:
    from separatrix.web.server.storage import snapshots
    from separatrix.web.server.storage.store import CommitStore

    assert options.as_of is not None
    if options.output is None:
        raise DataError("--as-of writes a model: name the file with --output")
    store = CommitStore(options.state, writing=False)
    try:
        number, when, examples = snapshots.moment(store, **_moment(options.as_of))
        model, names, _ = snapshots.recover(store, number)
        if model.run is None:
            raise DataError(f"nothing was learned by {options.as_of}")
        snapshots.ModelSnapshot.of(store, number, model, names).write(options.output)
    finally:
        store.close()
    label = "" if when is None else datetime.fromtimestamp(when).astimezone().isoformat(timespec="milliseconds")
    click.echo(f"the model after {examples:,} examples{label and f', as of {label},'} is in {options.output}", err=True)


def _moment(text: str) -> dict[str, Any]:
    """Return a moment as the store finds it: by a number of examples, or by a time."""
    if text.isdigit():
        return {"examples": int(text)}
    if text.startswith("commit:") and text.removeprefix("commit:").isdigit():
        return {"number": int(text.removeprefix("commit:"))}
    try:
        return {"time": datetime.fromisoformat(text).timestamp()}
    except ValueError:
        ways = "a time such as 2030-05-01T12:00, a number of examples, or commit:17"
        raise DataError(f"--as-of is {text!r}: give {ways}") from None


def _token(text: str, file: Path | None) -> str:
    token = text if file is None else file.read_text().strip()
    if token and (len(token) < 16 or not token.isascii() or not token.isprintable()):
        raise DataError("a token must have at least 16 characters, all printable ASCII")
    return token


def _set_up_log(level: str) -> None:
    logging.Formatter.converter = time.gmtime
    logging.basicConfig(
        level=logging.INFO, stream=sys.stderr, format="%(asctime)s %(levelname)s %(message)s", datefmt="%Y-%m-%dT%H:%M:%SZ"
    )
    for name in ("uvicorn", "uvicorn.error"):
        logging.getLogger(name).setLevel(logging.WARNING if not os.environ.get("SEPARATRIX_DEBUG") else logging.INFO)
