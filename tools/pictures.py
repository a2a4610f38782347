"""Makes the pictures of the documents: those of pages, and those that the scripts of the gallery show.

python tools/pictures.py [folder]

The Python code of each page that shows pictures is run, in order, and each `shown`, a display or a figure, is saved as the
image named below its block. Of a script of examples/gallery, the figure that is open at its end becomes gallery/NAME.png.
"""

import contextlib
import io
import os
import re
import runpy
import sys
import tempfile
from pathlib import Path

import matplotlib

matplotlib.use("Agg")

from matplotlib import pyplot

ROOT = Path(__file__).parents[1]
IMAGE = r"(?:\n\n!\[[^]]+\]\((?:\.\./)?images/([\w-]+\.png)\))?"
BLOCK = re.compile(r'^```(\w+)(?: title="([^"]+)")?\n(.*?)^```$' + IMAGE, re.S | re.M)


def steps(page):
    """Returns the blocks of a page up to its last picture: (language, file, text, image), or none without a picture."""
    blocks = [found.groups() for found in BLOCK.finditer(page.read_text(encoding="utf-8"))]
    made = [k for k, (language, *_, image) in enumerate(blocks) if language == "python" and image]
    return blocks[: made[-1] + 1] if made else []


def of_a_page(blocks):
    """Yields the name of each image and the figure that the code above it made, in an empty folder."""
    namespace = {"__name__": "page"}
    with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):
        for language, file, text, image in blocks:
            if file:
                Path(file).write_text(text, encoding="utf-8")
            elif language == "python":
                namespace.pop("shown", None)
                with contextlib.redirect_stdout(io.StringIO()):
                    exec(text, namespace)
                if image:
                    yield image, getattr(namespace["shown"], "figure_", namespace["shown"])


def of_the_gallery(folder):
    """Yields the name of an image and the figure of each script that draws one."""
    for script in sorted(folder.glob("*.py")):
        with contextlib.redirect_stdout(io.StringIO()):
            runpy.run_path(str(script), run_name="__main__")
        for number in pyplot.get_fignums():
            yield f"gallery/{script.stem}.png", pyplot.figure(number)


def save(pictures, folder, **how):
    for name, figure in pictures:
        figure.savefig(folder / name, dpi=100, metadata={"Software": None}, **how)
        pyplot.close(figure)
        print(f"{name}: {(folder / name).stat().st_size / 1000:.0f} KB")


def main(folder):
    (folder / "gallery").mkdir(parents=True, exist_ok=True)
    folder = folder.resolve()
    os.environ.setdefault("COLUMNS", "120")
    for page in sorted((ROOT / "docs").rglob("*.md")):
        save(of_a_page(steps(page)), folder)
    save(of_the_gallery(ROOT / "examples" / "gallery"), folder, bbox_inches="tight")


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else ROOT / "docs" / "images")
