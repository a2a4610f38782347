"""The examples run, and print what docs/examples.md shows."""

import re
import subprocess
import sys

import pytest

from support.documents import ROOT, agrees

SCRIPTS = sorted((ROOT / "examples").glob("*.py"))
SHOWN = re.findall(
    r'^```python title="(\w+\.py)"\n--8<-- "examples/\1"\n```\n+```text\n(.*?)^```$',
    (ROOT / "docs" / "examples.md").read_text(encoding="utf-8"),
    re.S | re.M,
)


def test_every_example_is_shown_once_with_its_output():
    assert sorted(name for name, _ in SHOWN) == [script.name for script in SCRIPTS]
    assert len(SHOWN) >= 5 and all(output.strip() for _, output in SHOWN)


@pytest.mark.parametrize(
    ("name", "output"),
    [pytest.param(*shown, id=shown[0], marks=() if shown[0] == "proof.py" else pytest.mark.slow) for shown in SHOWN],
)
def test_an_example_prints_what_is_shown(name, output, tmp_path):
    command = [sys.executable, "-W", "error", str(ROOT / "examples" / name)]
    done = subprocess.run(command, capture_output=True, text=True, encoding="utf-8", cwd=tmp_path, timeout=300)
    assert (done.returncode, done.stderr) == (0, "")
    assert agrees(output, done.stdout), done.stdout
    assert not list(tmp_path.iterdir()), "an example leaves nothing behind"
