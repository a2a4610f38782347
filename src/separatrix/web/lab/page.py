"""A standalone HTML page with a recorded run: it opens from disk and needs no network.

The page uses the same JavaScript modules as the lab. They are joined into one classic script, each as a function that
returns its exports, because browsers do not load modules from disk.
"""

from __future__ import annotations

import base64
import hashlib
import json
import re
from html import escape
from importlib.resources import files
from typing import Any

STATIC = files("separatrix.web") / "static" / "lab"
_IMPORT = re.compile(r'^import \{([^}]*)\} from "\.(\.?)/([\w/-]+)\.js";\n', re.M)
_EXPORT = re.compile(r"^export (?=(?:async )?(?:function\*?|const|class) (\w+))", re.M)

_TYPES = re.compile(r"/\*\*.*?\*/ ?", re.S)
"""Comments with types, which a bundle does without."""


def template() -> str:
    """Return the page with {{name}}, {{summary}} and {{document}} in place of what differs between runs."""
    script = inlined("page")
    style = (STATIC / "lab.css").read_text(encoding="utf-8")
    allowed = f"default-src 'none'; script-src {digest(script)}; style-src {digest(style)}; img-src data: blob:"
    return f"""<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="{allowed}">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{{{{name}}}} · separatrix</title>
<link rel="icon" href="data:,">
<style>{style}</style>
</head>
<body>
<header class="top"><h1>{{{{name}}}}</h1><p>{{{{summary}}}}</p></header>
<main><div id="viewer"></div></main>
<script type="application/json" id="document">{{{{document}}}}</script>
<script>{script}</script>
</body>
</html>
"""


def page(document: dict[str, Any]) -> str:
    """Return the page that shows a document."""
    parts = {"name": escape(str(document["name"])), "summary": escape(summary(document)), "document": embedded(document)}
    return re.sub(r"\{\{(name|summary|document)\}\}", lambda mark: parts[mark[1]], template())


def summary(document: dict[str, Any]) -> str:
    """Return what was run, in one line."""
    bias = "with a bias" if document["bias"] else "without a bias"
    n, d = document["n_train"], len(document["features"])
    counts = f"{n:,} examples, {d} feature{'' if d == 1 else 's'}, {len(document['classes'])} classes"
    return f"{counts}; {document['learner']}, {document['order']} order, {bias}"


def embedded(document: dict[str, Any]) -> str:
    r"""Return JSON that is safe inside a script element: nothing in it ends the element or opens a comment.

    Examples
    --------
    >>> embedded({"name": "</script><!--"})
    '{"name":"\\u003c/script>\\u003c!--"}'
    """
    text = json.dumps(document, ensure_ascii=True, allow_nan=False, separators=(",", ":"))
    return text.replace("<", "\\u003c")


def modules(entry: str) -> list[str]:
    """Return a module and everything it imports, each after what it imports itself."""
    order: list[str] = []
    _visit(entry, order)
    return order


def inlined(entry: str) -> str:
    """Return a module and everything it imports as one classic script."""
    parts = [_wrapped(name, _source(name)) for name in modules(entry)]
    return '"use strict";\n' + "\n".join(parts)


def _source(name: str) -> str:
    return STATIC.joinpath(*f"{name}.js".split("/")).read_text(encoding="utf-8")


def _target(importer: str, match: re.Match[str]) -> str:
    """Return the module that an import names, by its path below the lab's folder."""
    folder = importer.rpartition("/")[0]
    if match[2]:  # "../"
        folder = folder.rpartition("/")[0]
    return f"{folder}/{match[3]}" if folder else match[3]


def _variable(name: str) -> str:
    return "module_" + re.sub(r"\W", "_", name)


def _visit(name: str, order: list[str]) -> None:
    """Append a module to `order`, after everything that it imports."""
    if name in order:
        return
    for match in _IMPORT.finditer(_source(name)):
        _visit(_target(name, match), order)
    order.append(name)


def _wrapped(name: str, source: str) -> str:
    exported = _EXPORT.findall(source)
    body = _IMPORT.sub(lambda match: f"const {{{match[1]}}} = {_variable(_target(name, match))};\n", source)
    body = _TYPES.sub("", _EXPORT.sub("", body))
    return f"const {_variable(name)} = (() => {{\n{body}return {{ {', '.join(exported)} }};\n}})();"


def digest(text: str) -> str:
    """Return a script or style as a content security policy names it."""
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"
