"""The pages of the documentation are true: every block of code on them runs, and prints what stands below it.

A page has a folder and a Python namespace of its own.
- `python`: run; a block that follows directly without a language shows what it prints.
- `console`: each line after `$` is run by a shell; the lines below it are what it prints. `$ pip install …` is not run here,
  but by CI. A line that ends in `# exits 1` must.
- `sh`: for the reader's own machine, such as an installation; not run here, and only README.md and CONTRIBUTING.md have it.
- any language with `title="name"`: a file of that name, written into the folder.
Shown output may leave out lines, or parts of a line, where it has `…`.
"""

import contextlib
import io
import os
import re
import subprocess
import sys
import unicodedata
from pathlib import Path

import pytest

from support.documents import ROOT, agrees

PAGES = sorted([*(ROOT / "docs").rglob("*.md"), ROOT / "README.md", ROOT / "CONTRIBUTING.md"])
FENCE = re.compile(r"^```(\w*)([^\n]*)\n(.*?)^```$", re.S | re.M)
KNOWN = {"python", "console", "", "csv", "json", "toml", "yaml", "sql", "text", "mermaid"}


def blocks(page):
    """Yield (language, title, text, whether it follows the block before directly)."""
    text, end = page.read_text(encoding="utf-8"), 0
    for found in FENCE.finditer(text):
        title = re.search(r'title="([^"]+)"', found[2])
        yield found[1], title and title[1], found[3], not text[end : found.start()].strip()
        end = found.end()


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """An empty folder to run in, where `separatrix` and `python` are those under test."""
    home = tmp_path / "bin"
    home.mkdir()
    for name, what in (("separatrix", "-m separatrix"), ("python", "")):
        (home / name).write_text(f'#!/bin/sh\nexec "{sys.executable}" {what} "$@"\n')
        (home / name).chmod(0o755)
    inside = tmp_path / "page"
    inside.mkdir()
    monkeypatch.chdir(inside)
    monkeypatch.setenv("PATH", f"{home}{os.pathsep}{os.environ['PATH']}")
    monkeypatch.setenv("PYTHONPATH", f"{ROOT / 'src'}{os.pathsep}{os.environ.get('PYTHONPATH', '')}")
    monkeypatch.setenv("COLUMNS", "120")
    monkeypatch.setenv("MPLBACKEND", "Agg")
    yield inside
    if "matplotlib.pyplot" in sys.modules:
        sys.modules["matplotlib.pyplot"].close("all")


def commands(text):
    """Yield (command, what is shown below it)."""
    for part in re.split(r"^\$ ", text, flags=re.M)[1:]:
        command, shown = part.split("\n", 1)
        while command.endswith("\\"):
            more, _, shown = shown.partition("\n")
            command = f"{command[:-1]} {more}"
        yield command, shown


def call(command, shown):
    if command.startswith("pip install"):
        return
    done = subprocess.run(["bash", "-c", command], capture_output=True, text=True, timeout=300)
    wanted = re.search(r"# exits (\d+)", command)
    assert done.returncode == (int(wanted[1]) if wanted else 0), f"{command}\n{done.stdout}{done.stderr}"
    if shown.strip():
        assert agrees(shown, done.stdout + done.stderr), f"{command}\n{done.stdout}{done.stderr}"


def cases():
    """Yield the pages; those with commands start processes, which is slow."""
    for page in PAGES:
        slow = "```console" in page.read_text(encoding="utf-8")
        yield pytest.param(page, id=str(page.relative_to(ROOT)), marks=pytest.mark.slow if slow else ())


@pytest.mark.parametrize("page", list(cases()))
def test_every_block_runs_and_prints_what_it_shows(page, folder):
    namespace, printed = {"__name__": "page"}, None
    for language, title, text, follows in blocks(page):
        assert language in KNOWN or (language == "sh" and page.parent == ROOT), f"a block of {language!r}"
        if title:
            Path(title).write_text(text, encoding="utf-8")
        elif language == "console":
            for command, shown in commands(text):
                call(command, shown)
        elif language == "" and follows and printed is not None:
            assert agrees(text, printed), printed
        elif language == "":
            raise AssertionError(f"a block without a language shows what no code printed:\n{text}")
        if language == "python" and not title:
            with contextlib.redirect_stdout(io.StringIO()) as said:
                exec(compile(text, str(page), "exec"), namespace)
            printed = said.getvalue()
        else:
            printed = None


def anchors(page):
    """The anchors of a page's headings, as the site and code hosts make them of plain words."""
    for heading in re.findall(r"^#+ (.+)$", FENCE.sub("", page.read_text(encoding="utf-8")), re.M):
        plain = re.sub(r"\[([^]]+)\]\([^)]*\)|[`*]", r"\1", heading)
        plain = unicodedata.normalize("NFKD", plain).encode("ascii", "ignore").decode()
        yield re.sub(r"[-\s]+", "-", re.sub(r"[^\w\s-]", "", plain).strip().lower())


def test_every_link_within_the_documents_leads_somewhere():
    for page in [*PAGES, ROOT / "SECURITY.md", ROOT / "CHANGELOG.md"]:
        text = FENCE.sub("", page.read_text(encoding="utf-8"))
        for target, anchor in re.findall(r"\]\(([^)#\s]*)(?:#([^)\s]+))?[^)]*\)", text):
            if "://" in target or target.startswith("mailto:"):
                continue
            there = page.parent / target if target else page
            assert there.exists(), f"{page}: {target}"
            assert not anchor or there.suffix != ".md" or anchor in anchors(there), f"{page}: {target}#{anchor}"


def test_what_is_left_out_is_left_out():
    assert agrees("a … c\n…\nz", "a b c\nd\ne\nz\n") and agrees("…\nz", "z\n")
    assert not agrees("a\nz", "a\nb\nz\n") and not agrees("a … c", "a b d\n")
