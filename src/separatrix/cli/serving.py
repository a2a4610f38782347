"""What the servers of one and of many models share on the command line, and how many are served (`verbs/serve.py`)."""

import os
import signal
from dataclasses import fields
from typing import TYPE_CHECKING, Any

import click

from separatrix.cli.errors import INTERNAL, fail
from separatrix.data.errors import DataError, counted

if TYPE_CHECKING:
    from separatrix.cli.verbs.serve import ServeOptions
    from separatrix.web.server.app import Tokens
    from separatrix.web.server.memory_budget import ProcessMemory
    from separatrix.web.server.reading.request_reader import Limits

KERNEL_MEMORY, LEAST_MEMORY = 128 << 20, 64 << 20
"""What the compiled kernels take, and what --max-memory must leave for models and requests."""
MANY_FILES = 1 << 16
"""The files and connections that a server of many models may have open, if the system permits so many."""
NEW_MODEL = ("learner", "rule", "C", "text", "bits", "vectors", "cosine")
"""The options of a model that starts from nothing."""


def serve_many(options: "ServeOptions", tokens: "Tokens") -> None:
    """Serve many models until interrupted."""
    from separatrix.web import listening
    from separatrix.web.many import names
    from separatrix.web.many.app import application
    from separatrix.web.many.models import FILES, Models
    from separatrix.web.many.opening import ModelOpener, declared_models
    from separatrix.web.many.pool import WriterPool
    from separatrix.web.server.live.live_model import LiveModel
    from separatrix.web.server.storage.repair import repaired
    from separatrix.web.server.storage.store_folder import DATABASE
    from separatrix.web.server.warming import warm

    if options.as_of is not None:
        raise DataError(f"--as-of is for one model: name its folder, as in {options.state / 'NAME'}, and leave out --many")
    if (options.state / DATABASE).exists():
        raise DataError(f"{options.state} holds the store of one model: leave out --many, or name another folder")
    check_of_new_model(options, None)
    declared = {} if options.models is None else declared_models(options.models)
    opener = ModelOpener(
        options.state,
        WriterPool(),
        limits_of(options),
        memory_of(options),
        {name: getattr(options, name) for name in NEW_MODEL},
        options.model,
        tokens,
        declared,
        options.host_names(),
        options.keep_all,
        options.snapshot_every,
        payloads_logged=options.log == "payloads",
        ask=options.ask,
        may_create=options.models is None,
    )
    for name in declared:
        try:
            opener.settings_of(name)
        except DataError as error:
            raise DataError(f"{options.models}: model {name!r}: {error}") from None
    first_model = opener.first_model()
    listener = listening.listen(options.host, options.port)
    if options.accept_loss:
        for name in names.stored(options.state):
            for line in repaired(options.state / name):
                click.echo(f"{name}: {line}", err=True)
    most_open = max(1, int(0.6 * listening.allow_open_files(MANY_FILES)) // FILES)
    models = Models(options.state, opener, opener.memory, most_open, frozenset(declared))
    models.on_death = lambda: os.kill(os.getpid(), signal.SIGTERM)
    warm(LiveModel(first_model))
    app = application(models, opener, requests_logged=options.log in ("requests", "payloads"))
    click.echo(f"{counted(len(models), 'model')}, {most_open:,} of which may be open at a time", err=True)
    announcement = f"serving {options.state} on {listening.url_of(listener)} (Ctrl-C ends it)"
    listening.serve(app, listener, lambda: click.echo(announcement, err=True))
    if models.fatal:
        fail("serve", f"{models.fatal}; everything acknowledged is on disk", INTERNAL)
    click.echo("ended; everything acknowledged is on disk", err=True)


def check_of_new_model(options: "ServeOptions", entry: dict[str, Any] | None) -> None:
    """Raise DataError if options for a new model would be without effect: `entry` is what a store says of its model."""
    from separatrix.web.server.storage.snapshots import OF_MODEL

    start = options.model.name if options.model is not None else "a model file" if entry and entry["start"] else ""
    settings = (entry or {}).get("settings")  # which a repair may have lost
    usual = {field.name: field.default for field in fields(options)}
    for name in NEW_MODEL:
        value = getattr(options, name)
        if value == usual[name]:
            continue
        option = f"--{name}" if value is True else f"--{name} {value}"
        if start and name in OF_MODEL:
            raise DataError(
                f"{option} is for a model that starts from nothing, and this one starts from {start}: leave it out"
            )
        if settings and (has := settings.get(name, usual[name])) != value:
            said = f"began with {name}={has!r}" if value is not True else f"did not begin with {option}"
            raise DataError(f"{option} is for a new model, and that of {options.state} {said}: leave it out")


def limits_of(options: "ServeOptions") -> "Limits":
    """Return the limits of requests and models."""
    from separatrix.web.server.reading.request_reader import Limits

    return Limits(
        body=options.body_limit,
        features=options.feature_limit,
        weights=options.weight_limit,
        classes=options.max_classes,
        names=options.name_limit,
        waiting=options.queue_limit,
    )


def memory_of(options: "ServeOptions") -> "ProcessMemory":
    """Return what models and requests may use; raises DataError if --max-memory leaves them too little."""
    from separatrix.training.options import size_of
    from separatrix.web.server.memory_budget import ProcessMemory, megabytes, resident

    max_memory = None if options.max_memory is None else size_of(options.max_memory, "--max-memory")
    start = resident() + KERNEL_MEMORY
    if max_memory is not None and max_memory < start + LEAST_MEMORY:
        least = f"the server itself needs {megabytes(start + LEAST_MEMORY)}"
        raise DataError(f"--max-memory {options.max_memory} is too little: {least}")
    return ProcessMemory.of(max_memory, start)
