"""Step through the algorithms in the browser.

Draw points, choose a rule, and watch the theorem hold.
"""

from pathlib import Path
from typing import Annotated

import click

from separatrix.cli.errors import fail
from separatrix.data.options import Option


def lab(
    port: Annotated[int, Option(min=0, max=65535, help="Port to listen on; 0 takes any free port.")] = 8765,
    browser: Annotated[bool, Option("--browser/--no-browser", help="Open the browser.")] = True,
    export: Annotated[
        Path | None, Option(metavar="FOLDER", help="Write the lab as static files for any web host, and as one HTML file.")
    ] = None,
) -> int:
    """Serve the lab until it is interrupted, or write it as static files."""
    if export is not None:
        return _export(export)
    try:
        from separatrix.web.lab.app import serve
        from separatrix.web.listening import PortInUseError
    except ImportError as error:
        fail("lab", f"the lab needs more packages ({error}): pip install 'separatrix[web]'")
    try:
        serve(port, browser=browser, say=click.echo)
    except PortInUseError as error:
        fail("lab", error)
    except KeyboardInterrupt:
        return 130
    return 0


def _export(folder: Path) -> int:
    from separatrix.web.lab.site import SINGLE_FILE
    from separatrix.web.lab.site import export as write

    try:
        files = write(folder)
    except OSError as error:
        fail("lab", f"cannot write to {folder}: {error.strerror or error}")
    click.echo(f"wrote {len(files)} files to {folder}: any web host can serve them; {folder / SINGLE_FILE} opens from disk")
    return 0
