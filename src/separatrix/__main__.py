"""The command line, as `separatrix` and as `python -m separatrix`."""

from separatrix.cli import app
from separatrix.cli.narrow_encodings import tolerate_narrow_encodings


def main() -> None:
    """Run the command line."""
    tolerate_narrow_encodings()
    app(prog_name="separatrix")


if __name__ == "__main__":
    main()
