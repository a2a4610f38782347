"""Makes the pictures of the documents: those of docs/plots.md, and those that the scripts of the gallery show.

python tools/pictures.py [folder]

The code of docs/plots.md is run, and each `shown` saved as the image named below it. Of a script of examples/gallery, the
figure that is open at its end becomes gallery/NAME.png.
"""

import contextlib
import io
import re
import runpy
import sys
from pathlib import Path

import matplotlib

matplotlib.use("Agg")

from matplotlib import pyplot

ROOT = Path(__file__).parents[1]
STEP = re.compile(r"```python\n(?P<code>.*?)```\n\n!\[[^]]+\]\(images/(?P<name>[a-z]+\.png)\)", re.S)


def of_the_page(text):
    """Yields the name of each image and the figure that the code above it made."""
    namespace = {}
    for step in STEP.finditer(text):
        namespace.pop("shown", None)
        exec(step["code"], namespace)
        yield step["name"], namespace["shown"].figure_


def of_the_gallery(folder):
    """Yields the name of an image and the figure of each script that draws one."""
    for script in sorted(folder.glob("*.py")):
        with contextlib.redirect_stdout(io.StringIO()):
            runpy.run_path(str(script), run_name="__main__")
        for number in pyplot.get_fignums():
            yield f"gallery/{script.stem}.png", pyplot.figure(number)


def main(folder):
    (folder / "gallery").mkdir(parents=True, exist_ok=True)
    page = (ROOT / "docs" / "plots.md").read_text(encoding="utf-8")
    for pictures, how in (
        (of_the_page(page), {}),
        (of_the_gallery(ROOT / "examples" / "gallery"), {"bbox_inches": "tight"}),
    ):
        for name, figure in pictures:
            figure.savefig(folder / name, dpi=100, metadata={"Software": None}, **how)
            pyplot.close(figure)
            print(f"{name}: {(folder / name).stat().st_size / 1000:.0f} KB")


if __name__ == "__main__":
    pyplot.show = lambda: None
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else ROOT / "docs" / "images")
