"""`python -m separatrix`: the command line."""

from separatrix.cli import app

if __name__ == "__main__":
    app(prog_name="separatrix")
