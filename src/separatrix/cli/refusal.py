"""What every verb does with input it cannot use: one line that says what and where, and exit status 2."""

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import NoReturn

import typer

from separatrix.data.errors import DataError


def refuse(verb: str, what: object) -> NoReturn:
    """Say what cannot be used, and end."""
    typer.echo(f"separatrix {verb}: {what}", err=True)
    raise typer.Exit(2)


@contextmanager
def refusing(verb: str, subject: object) -> Iterator[None]:
    """Turn an error about the input into a refusal; one that does not name its file is told to be about `subject`."""
    try:
        yield
    except BrokenPipeError:  # whoever read our output has had enough of it
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        raise typer.Exit(0) from None
    except DataError as problem:
        refuse(verb, problem)
    except OSError as problem:
        plain = problem.filename is not None and problem.strerror
        refuse(verb, f"{problem.filename}: {problem.strerror}" if plain else problem)
    except ValueError as problem:
        refuse(verb, f"{subject}: {problem}")
