"""Where the documents are, and whether what they show is what was printed."""

import re
from pathlib import Path

ROOT = Path(__file__).parents[2]


def squeezed(text):
    return [" ".join(line.split()) for line in text.splitlines() if line.strip()]


def agrees(shown, printed):
    """Whether what is shown is what was printed, but for `…`."""
    pattern = ""
    for line in squeezed(shown):
        pattern += r"(?:.*\n)*?" if line == "…" else ".*?".join(re.escape(part) for part in line.split("…")) + r"\n"
    return re.fullmatch(pattern, "".join(f"{line}\n" for line in squeezed(printed))) is not None
