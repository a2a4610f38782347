"""Make the folder of a server from a backup.

What was learned after the backup is not in it.

Try:

  separatrix restore spam-backup.zip spam-restored/
  separatrix serve spam-restored/
"""

from datetime import datetime
from pathlib import Path
from typing import Annotated

import click

from separatrix.cli.errors import errors_reported, fail
from separatrix.data.errors import counted
from separatrix.data.options import Argument


def restore(
    backup: Annotated[Path, Argument(help="File that `separatrix backup` wrote.")],
    state: Annotated[Path, Argument(help="Folder to write; it must not exist, or be empty.")],
) -> int:
    """Restore the folder, and say what it holds."""
    with errors_reported("restore", backup):
        try:
            from separatrix.web.server.backup import restore as restore_store
        except ImportError as error:
            fail("restore", f"needs the package {error.name}: pip install 'separatrix[web]'")

        contents = restore_store(backup, state)
    learned = f"{counted(contents.examples, 'example')} in {counted(contents.commit, 'commit')}"
    made = datetime.fromtimestamp(contents.time).astimezone().isoformat(timespec="seconds")
    click.echo(f"restored {state} from {backup}: {learned}, as of {made}", err=True)
    return 0
