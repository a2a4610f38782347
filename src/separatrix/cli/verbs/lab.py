"""Step through the algorithms in the browser.

Draw points, choose a rule, and watch the theorem hold.
"""

from typing import Annotated

import click

from separatrix.cli.errors import fail
from separatrix.data.options import Option


def lab(
    port: Annotated[int, Option(min=0, max=65535, help="Port to listen on; 0 takes any free port.")] = 8765,
    browser: Annotated[bool, Option("--browser/--no-browser", help="Open the browser.")] = True,
) -> int:
    """Serve the lab until it is interrupted."""
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
