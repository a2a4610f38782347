"""Tables that scripts write into pages: between `<!-- name -->` and the next `<!-- end -->`."""

from pathlib import Path

ROOT = Path(__file__).parents[1]
END = "<!-- end -->"


def put(page: str, name: str, text: str, root: Path = ROOT) -> Path:
    """Replace what stands between the marks of a name; return the page's path."""
    path, begin = root / page, f"<!-- {name} -->\n"
    before, rest = path.read_text(encoding="utf-8").split(begin)
    path.write_text(f"{before}{begin}{text.strip()}\n{END}{rest.split(END, 1)[1]}", encoding="utf-8")
    return path
