"""`python -m separatrix`: the command line."""

from separatrix.cli import app

app(prog_name="separatrix")
