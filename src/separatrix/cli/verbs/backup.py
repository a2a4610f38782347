"""Back up the folder of a server, also while it serves.

The backup is one file that `separatrix restore` makes a folder of again; of
the folder of many models (`serve --many`), a folder with one file for each.

Try:

  separatrix backup spam/ spam-backup.zip
"""

from pathlib import Path
from typing import Annotated

import click

from separatrix.cli.errors import errors_reported, fail
from separatrix.data.errors import counted
from separatrix.data.options import Argument


def backup(
    state: Annotated[Path, Argument(help="Folder that `separatrix serve` stores what it learns in.")],
    output: Annotated[
        Path,
        Argument(help="File to write, or folder for many models; a file is replaced when the new backup is complete."),
    ],
) -> int:
    """Back up the folder, and say what the backup holds."""
    with errors_reported("backup", state):
        from separatrix.data.atomic import check_place

        try:
            from separatrix.web.many.names import stored
            from separatrix.web.server.storage.backup import back_up
            from separatrix.web.server.storage.store_folder import DATABASE
        except ImportError as error:
            fail("backup", f"needs the package {error.name}: pip install 'separatrix[web]'")

        places = [(state, output)]
        if not (state / DATABASE).exists() and (names := stored(state)):
            output.mkdir(exist_ok=True)
            places = [(state / name, output / f"{name}.zip") for name in names]
        for folder, file in places:
            check_place(file)
            contents = back_up(folder, file)
            learned = f"{counted(contents.examples, 'example')} in {counted(contents.commit, 'commit')}"
            click.echo(f"backed up {folder} to {file}: {learned}, {contents.size:,} bytes", err=True)
            if contents.problem:
                click.echo(f"  {contents.problem}", err=True)
    return 0
