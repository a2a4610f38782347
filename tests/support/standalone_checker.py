"""The checker of certificates that uses the standard library alone, run as a user runs it."""

import subprocess
import sys
from pathlib import Path

CHECKER = Path(__file__).parents[2] / "tools" / "check_certificate.py"


def standalone(*arguments):
    done = subprocess.run([sys.executable, "-I", str(CHECKER), *map(str, arguments)], capture_output=True, text=True)
    return done.returncode, done.stdout + done.stderr
