"""Makes the pictures of the documents: runs the code of docs/plots.md and saves each `shown` as the image named below it.

python tools/pictures.py [folder]
"""

import re
import sys
from pathlib import Path

import matplotlib

matplotlib.use("Agg")

from matplotlib import pyplot

DOCS = Path(__file__).parents[1] / "docs"
STEP = re.compile(r"```python\n(?P<code>.*?)```\n\n!\[[^]]+\]\(images/(?P<name>[a-z]+\.png)\)", re.S)


def pictures(text):
    """Yields the name of each image and the display that the code above it made."""
    namespace = {}
    for step in STEP.finditer(text):
        namespace.pop("shown", None)
        exec(step["code"], namespace)
        yield step["name"], namespace["shown"]


def main(folder):
    folder.mkdir(parents=True, exist_ok=True)
    for name, shown in pictures((DOCS / "plots.md").read_text(encoding="utf-8")):
        shown.figure_.savefig(folder / name, dpi=100, metadata={"Software": None})
        pyplot.close(shown.figure_)
        print(f"{name}: {(folder / name).stat().st_size / 1000:.0f} KB")


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else DOCS / "images")
