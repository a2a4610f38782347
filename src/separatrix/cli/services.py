"""The verb `serve`: its options. What it does is in serve.py, imported when it runs."""

from pathlib import Path
from typing import Annotated

import typer

from separatrix.engine.rules import RULES, in_words

STREAMED = [name for name, entry in RULES.items() if entry.spread != "full"]


def serve(
    state: Annotated[Path, typer.Argument(help="A folder for what is learned; made if it is not there.")],
    model: Annotated[
        Path | None, typer.Option(help="Begin with a model written by `separatrix train -o`, not from nothing.")
    ] = None,
    port: Annotated[int, typer.Option(min=0, max=65535, help="0 takes a free one.")] = 8017,
    host: Annotated[str, typer.Option(help="Where to listen; anything but the loopback needs tokens.")] = "127.0.0.1",
    allow_host: Annotated[
        list[str] | None, typer.Option(help="A name by which the server may be asked for; may be given again.")
    ] = None,
    text: Annotated[bool, typer.Option("--text", help="From nothing: examples are texts.")] = False,
    bits: Annotated[int, typer.Option(min=8, max=24, help="From nothing: text is hashed to 2^bits features.")] = 18,
    learner: Annotated[str, typer.Option(help="From nothing: averaged or last, which weights predict.")] = "averaged",
    rule: Annotated[str, typer.Option(help=f"From nothing: {in_words(STREAMED)}.")] = "perceptron",
    C: Annotated[float, typer.Option("-C", "--C", help="From nothing: of rules that have one.")] = 1.0,
    keep_all: Annotated[
        bool, typer.Option("--keep-all", help="Keep all examples, not only the mistakes: an undo replays without its one.")
    ] = False,
    as_of: Annotated[
        str | None,
        typer.Option(help="Serve nothing: write the model of a past time, or after so many examples, to --output."),
    ] = None,
    output: Annotated[Path | None, typer.Option("-o", "--output", help="Where --as-of writes the model.")] = None,
    read_token: Annotated[
        str, typer.Option(envvar="SEPARATRIX_READ_TOKEN", help="For predictions and numbers.", show_default=False)
    ] = "",
    learn_token: Annotated[
        str, typer.Option(envvar="SEPARATRIX_LEARN_TOKEN", help="For learning, and all else.", show_default=False)
    ] = "",
    read_token_file: Annotated[Path | None, typer.Option(help="A file that holds the token for reading.")] = None,
    learn_token_file: Annotated[Path | None, typer.Option(help="A file that holds the token for learning.")] = None,
    body_limit: Annotated[int, typer.Option(min=1024, help="The most bytes of a request.")] = 8 << 20,
    feature_limit: Annotated[int, typer.Option(min=1, help="The most features of an example.")] = 10_000,
    weight_limit: Annotated[int, typer.Option(min=1, help="The most weights: features × classes.")] = 50_000_000,
    queue_limit: Annotated[int, typer.Option(min=1, help="The most requests that wait to be learned from.")] = 1_000,
    snapshot_every: Annotated[float, typer.Option(min=0.1, help="Seconds between snapshots.")] = 60.0,
    log: Annotated[str, typer.Option(help="events; requests: a line each; payloads: what they hold, too.")] = "events",
    accept_loss: Annotated[
        bool, typer.Option("--accept-loss", help="Go on with a store whose end is damaged, without what is missing.")
    ] = False,
) -> None:
    """Serve a model that learns from corrections over HTTP, and loses none that it has acknowledged.

    Try:

      separatrix serve spam/ --text

      curl -d '{"text": "free entry: call now", "label": "spam"}' http://127.0.0.1:8017/learn
    """
    from separatrix.cli.serve import Options, run

    given = {name: value for name, value in locals().items() if name not in ("Options", "run")}
    raise typer.Exit(run(Options(**(given | {"allow_host": allow_host or []}))))
