"""The lab as static files: what `separatrix lab` serves, and what `separatrix lab --export` writes for any web host."""

from __future__ import annotations

import json
import re
from functools import cache
from importlib.resources.abc import Traversable
from pathlib import Path

from separatrix.web.lab.page import STATIC, digest, inlined, modules, template

SINGLE_FILE = "separatrix-lab.html"
"""The whole lab in one file, which opens from disk: browsers load no modules from there."""
TYPES = {".js": "text/javascript", ".css": "text/css", ".html": "text/html", ".json": "application/json"}


@cache
def site() -> dict[str, bytes]:
    """Return the files of the lab by their path; run.json has the template of a standalone page."""
    files = {path: file.read_bytes() for path, file in _files(STATIC, "") if path != "page.js"}
    # Without these links, a browser learns of a module only when it has read the one that imports it.
    links = "".join(f'<link rel="modulepreload" href="{name}.js">\n' for name in modules("main"))
    files["index.html"] = files["index.html"].replace(b"</head>", f"{links}</head>".encode())
    return files | {"run.json": json.dumps({"html": template()}, ensure_ascii=False).encode()}


def _files(folder: Traversable, prefix: str) -> list[tuple[str, Traversable]]:
    """Return the files below a folder with their paths; other files than the lab's own kinds are left out."""
    found: list[tuple[str, Traversable]] = []
    for entry in folder.iterdir():
        if entry.is_dir():
            found += _files(entry, f"{prefix}{entry.name}/")
        elif "." + entry.name.rpartition(".")[2] in TYPES:
            found.append((prefix + entry.name, entry))
    return found


def single_file() -> str:
    """Return the lab as one HTML page without any request: scripts, style, tables and data are inside."""
    script = inlined("main")
    style = (STATIC / "lab.css").read_text(encoding="utf-8")
    allowed = (
        f"default-src 'none'; script-src {digest(script)}; style-src {digest(style)}; img-src data: blob:; base-uri 'none'"
    )
    data = "".join(_element(name, content) for name, content in sorted(site().items()) if name.endswith(".json"))
    html = (STATIC / "index.html").read_text(encoding="utf-8")
    html = re.sub(r'(<meta http-equiv="Content-Security-Policy" content=")[^"]*', lambda match: match[1] + allowed, html)
    html = re.sub(r'<link rel="(?:stylesheet|preload)"[^>]*>\n|<script type="module"[^>]*></script>\n', "", html)
    html = html.replace("</head>", f"<style>{style}</style>\n</head>")
    return html.replace("</body>", f"{data}<script>{script}</script>\n</body>")


def _element(name: str, content: bytes) -> str:
    """Return JSON as a script element that no text in it can end."""
    text = json.dumps(json.loads(content), ensure_ascii=True, separators=(",", ":")).replace("<", "\\u003c")
    return f'<script type="application/json" id="{name}">{text}</script>\n'


def export(folder: Path) -> list[Path]:
    """Write the static lab and the single file into a folder, which is made where it is missing; return the files."""
    written = []
    for name, content in [*site().items(), (SINGLE_FILE, single_file().encode())]:
        target = folder / name
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(content)
        written.append(target)
    return written
