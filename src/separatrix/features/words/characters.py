"""What Python knows of each character, as tables for the kernels: lower case, word, space, the rules of the final sigma.

Nothing of Unicode is written down here: the tables are asked of `str.lower` and `re` on first use (a tenth of a second),
so that features equal `re.findall(pattern, text.lower())` under whatever Unicode version this Python has.
"""

from __future__ import annotations

import re
from functools import cache
from typing import NamedTuple

import numpy as np

from separatrix.engine.rows import Array, frozen
from separatrix.kernels.text import characters as kernels

N = 0x110000
PAGE = 256
_SIGMA, _FINAL = "Σ", "ς"


class Characters(NamedTuple):
    """The tables, as `kernels.characters` reads them."""

    pages: Array
    cells: Array
    specials: Array


NO_TABLE = Characters(*(frozen(np.empty(0, kind)) for kind in (np.uint16, np.int32, np.int32)))


def _text(points: Array) -> str:
    return points.astype("<u4").tobytes().decode("utf-32-le", "surrogatepass")


def _points(text: str) -> Array:
    return np.frombuffer(text.encode("utf-32-le", "surrogatepass"), "<u4").astype(np.int64)


def _matches(pattern: str, text: str) -> Array:
    matched = np.zeros(len(text), bool)
    for match in re.finditer(pattern, text):
        matched[match.start() : match.end()] = True
    return matched


def _expanding(text: str) -> list[int]:
    """Return the code points of which the lower case is more than one character, and the sigma."""
    pages = (at for at in range(0, N, PAGE) if len(text[at : at + PAGE].lower()) != PAGE)
    return [ord(_SIGMA), *(c for at in pages for c in range(at, at + PAGE) if len(chr(c).lower()) != 1)]


def _final_after(points: Array, before: str) -> Array:
    """Tell after which characters, `before` standing before them, a capital sigma is a final one."""
    block = np.empty((len(points), 4), np.int64)
    block[:] = [ord("\n"), ord(before), 0, ord(_SIGMA)]
    block[:, 2] = points
    lowered: Array = _points(_text(block.ravel()).lower())[3::4] == ord(_FINAL)
    return lowered


@cache
def characters() -> Characters:
    """Return the tables, made on the first call."""
    points = np.arange(N)
    text = _text(points)
    special = _expanding(text)
    plain = np.delete(points, special)
    lowered = points.copy()
    lowered[plain] = _points(_text(plain).lower())
    flags = _matches(r"\w+", text) * kernels.IS_WORD + _matches(r"\s+", text) * kernels.IS_SPACE
    # after "A" a sigma is final if the character is cased or ignored; after a newline only if it is cased and not ignored
    passes = np.append(plain[_final_after(plain, "A")], [c for c in special if f"A{chr(c)}{_SIGMA}".lower()[-1] == _FINAL])
    for c in passes.tolist():
        flags[c] |= kernels.IS_CASED if f"{chr(c)}{_SIGMA}".lower()[-1] == _FINAL else kernels.IS_IGNORED
    cells = (lowered - points) << kernels.FLAG_BITS | flags
    specials = np.zeros((len(special), 4), np.int32)
    for k, c in enumerate(special):
        become = [ord(part) for part in chr(c).lower()]
        specials[k, : len(become) + 1] = [len(become), *become]
        cells[c] = k << kernels.FLAG_BITS | flags[c] | kernels.IS_SPECIAL
    number: dict[bytes, int] = {}
    pages = [number.setdefault(page.tobytes(), len(number)) for page in cells.astype(np.int32).reshape(-1, PAGE)]
    different = np.frombuffer(b"".join(number), np.int32)
    return Characters(frozen(np.array(pages, np.uint16)), frozen(different), frozen(specials.reshape(-1)))
