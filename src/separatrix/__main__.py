"""The command line, as `separatrix` and as `python -m separatrix`."""

from separatrix.cli import app


def main() -> None:
    """Run the command line."""
    app(prog_name="separatrix")


if __name__ == "__main__":
    main()
