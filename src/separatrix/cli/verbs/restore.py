"""Make the folder of a server from a backup.

What was learned after the backup is not in it. What was forgotten after it is
forgotten again, as far as it is known: from the file that the server writes
beside a backup, from the folder that the backup was made of, if it is still
there, and from receipts named with --forgotten.

Try:

  separatrix restore spam-backup.zip spam-restored/
  separatrix serve spam-restored/
"""

from datetime import datetime
from pathlib import Path
from typing import Annotated

import click

from separatrix.cli.errors import errors_reported, fail
from separatrix.data.errors import DataError, counted
from separatrix.data.options import Argument, Option


def restore(
    backup: Annotated[Path, Argument(help="File that `separatrix backup` wrote, or the folder of files of many models.")],
    state: Annotated[Path, Argument(help="Folder to write; it must not exist, or be empty.")],
    forgotten: Annotated[
        list[Path] | None,
        Option(metavar="RECEIPTS", help="File with receipts of examples that were forgotten since; repeatable."),
    ] = None,
) -> int:
    """Restore the folder, and say what it holds."""
    with errors_reported("restore", backup):
        try:
            from separatrix.web.many.names import problem_of
            from separatrix.web.server.storage.backup import restore as restore_store
        except ImportError as error:
            fail("restore", f"needs the package {error.name}: pip install 'separatrix[web]'")

        places = [(backup, state)]
        if backup.is_dir():
            files = [file for file in sorted(backup.glob("*.zip")) if not problem_of(file.stem)]
            if not files:
                raise DataError(f"{backup} holds no backups of models, which are files such as billing.zip")
            if state.exists() and any(state.iterdir()):
                raise DataError(f"{state} exists and is not empty: restore to a new folder")
            state.mkdir(exist_ok=True)
            places = [(file, state / file.stem) for file in files]
        for file, folder in places:
            contents = restore_store(file, folder, forgotten or (), of_many=len(places) > 1)
            learned = f"{counted(contents.examples, 'example')} in {counted(contents.commit, 'commit')}"
            made = datetime.fromtimestamp(contents.time).astimezone().isoformat(timespec="seconds")
            click.echo(f"restored {folder} from {file}: {learned}, as of {made}", err=True)
            if contents.forgotten:
                numbers = ", ".join(map(str, contents.forgotten[:10])) + (" …" if len(contents.forgotten) > 10 else "")
                again = f"{counted(len(contents.forgotten), 'example')} of these, forgotten since, again"
                click.echo(f"  forgot {again}: {numbers}", err=True)
    return 0
