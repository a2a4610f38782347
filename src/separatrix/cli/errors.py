"""How verbs end on input that they cannot use: one line on standard error that says what and where, and exit status 2."""

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import NoReturn

import click

from separatrix.data.errors import DataError


def fail(verb: str, message: object) -> NoReturn:
    """Print an error message, and end with status 2."""
    click.echo(f"separatrix {verb}: {message}", err=True)
    raise click.exceptions.Exit(2)


@contextmanager
def errors_reported(verb: str, subject: object) -> Iterator[None]:
    """Turn an error about the input into one line; a message that names no file is prefixed with `subject`."""
    try:
        yield
    except BrokenPipeError:  # the reader of our output has closed it, as `head` does
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        raise click.exceptions.Exit(0) from None
    except DataError as error:
        fail(verb, error)
    except OSError as error:
        names_file = error.filename is not None and error.strerror
        fail(verb, f"{error.filename}: {error.strerror}" if names_file else error)
    except ValueError as error:
        fail(verb, f"{subject}: {error}")
