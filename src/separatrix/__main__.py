"""`separatrix`, and `python -m separatrix`: the command line."""

import atexit
import os
import sys
import threading

from separatrix.cli import app


def main() -> None:
    """Run the command line; then, where nothing else runs, leave at once.

    To take apart an interpreter with all that was imported lasts a quarter of a second, and nobody looks at the pieces. What
    was registered for the end is done: temporary folders are removed, all is written.
    """
    try:
        app(prog_name="separatrix")
    except SystemExit as end:
        watched = sys.getprofile() is not None or sys.gettrace() is not None
        if watched or threading.active_count() > 1 or not isinstance(end.code, int | None):
            raise
        atexit._run_exitfuncs()
        try:
            for stream in filter(None, (sys.stdout, sys.stderr)):  # None where it was closed from the beginning
                stream.flush()
        except (OSError, ValueError):  # nobody reads any more: the interpreter has its way to say so
            raise end from None
        os._exit(end.code or 0)


if __name__ == "__main__":
    main()
