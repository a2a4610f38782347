"""Back up the folder of a server, also while it serves.

The backup is one file that `separatrix restore` makes a folder of again.

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
    output: Annotated[Path, Argument(help="File to write; one that exists is replaced when the new backup is complete.")],
) -> int:
    """Back up the folder, and say what the backup holds."""
    with errors_reported("backup", state):
        from separatrix.data.atomic import check_place

        try:
            from separatrix.web.server.backup import back_up
        except ImportError as error:
            fail("backup", f"needs the package {error.name}: pip install 'separatrix[web]'")

        check_place(output)
        contents = back_up(state, output)
    learned = f"{counted(contents.examples, 'example')} in {counted(contents.commit, 'commit')}"
    click.echo(f"backed up {state} to {output}: {learned}, {contents.size:,} bytes", err=True)
    return 0
