"""`separatrix lab`: the lab in the browser."""

import typer

from separatrix.cli.refusal import refuse


def run(port: int, browser: bool) -> int:
    """Serve the lab until it is interrupted; return the exit status."""
    try:
        from separatrix.web.lab.app import serve
        from separatrix.web.listening import PortInUseError
    except ImportError as problem:
        refuse("lab", f"the lab needs more packages ({problem}): pip install 'separatrix[web]'")
    try:
        serve(port, browser=browser, say=typer.echo)
    except PortInUseError as problem:
        refuse("lab", problem)
    except KeyboardInterrupt:
        return 130
    return 0
