"""The scripts of the gallery run, and print what their pages show; the pages are in the navigation, the index lists them."""

import os
import re
import subprocess
import sys

import pytest

from support.documents import ROOT, agrees

PAGES = ROOT / "docs" / "gallery"
NAMES = sorted(script.stem for script in (ROOT / "examples" / "gallery").glob("*.py"))
QUICK = {"addresses"}


def shown(name):
    """Return what a page shows below its script."""
    page = (PAGES / f"{name}.md").read_text(encoding="utf-8")
    block = f'```python title="{name}.py"\n--8<-- "examples/gallery/{name}.py"\n```\n+```text\n(.*?)^```$'
    output = re.search(block, page, re.S | re.M)
    assert output is not None and output[1].strip()
    return output[1]


def test_the_gallery_has_a_page_for_each_script_and_lists_it():
    assert len(NAMES) == 12
    assert sorted(page.stem for page in PAGES.glob("*.md")) == sorted([*NAMES, "index"])
    index, navigation = (PAGES / "index.md").read_text(encoding="utf-8"), (ROOT / "mkdocs.yml").read_text()
    for name in NAMES:
        title = re.search("^# (.+)$", (PAGES / f"{name}.md").read_text(encoding="utf-8"), re.M)[1]
        assert f"**[{title}]({name}.md)**" in index and f"- gallery/{name}.md" in navigation


@pytest.mark.parametrize("name", [pytest.param(name, marks=() if name in QUICK else pytest.mark.slow) for name in NAMES])
def test_a_script_prints_what_its_page_shows(name, tmp_path):
    script = ROOT / "examples" / "gallery" / f"{name}.py"
    assert 20 <= len(script.read_text(encoding="utf-8").splitlines()) <= 50
    command = [sys.executable, "-W", "error", str(script)]
    settings = {key: value for key, value in os.environ.items() if key != "DISPLAY"} | {"MPLBACKEND": "Agg"}
    settings["TMPDIR"] = str(tmp_path)
    done = subprocess.run(command, capture_output=True, text=True, encoding="utf-8", cwd=tmp_path, env=settings, timeout=300)
    assert (done.returncode, done.stderr) == (0, "")
    assert agrees(shown(name), done.stdout), done.stdout
    left = {path.name for path in tmp_path.iterdir()} - {".ses"}  # which onnxruntime writes for itself
    assert not left, "a script leaves nothing behind"
