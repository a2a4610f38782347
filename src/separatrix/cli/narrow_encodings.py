"""Output in an encoding that lacks some characters, as cp1252 lacks ≤: they are written in ASCII instead of failing."""

import codecs
import re
import sys

import click

HANDLER = "separatrix.ascii"
_IN_ASCII = {
    **{"≤": "<=", "≥": ">=", "≈": "~", "≠": "!=", "−": "-", "–": "-", "—": "-", "→": "->", "←": "<-", "·": "*", "×": "x"},
    **{"…": "...", "⟨": "<", "⟩": ">", "‖": "||", "√": "sqrt", "∂": "d", "∞": "inf", "±": "+-", "½": "1/2", "•": "*"},
    **{"λ": "lambda", "γ": "gamma", "Σ": "Sigma", "μ": "mu", "α": "alpha", "φ": "phi", "\N{COMBINING TILDE}": "~"},
    **{"─": "-", "━": "-", "│": "|", "█": "#", "▏": "|", "’": "'", "‘": "'", "“": '"', "”": '"'},
}
"""How our own symbols are written."""
_NOT_ASCII = re.compile(r"[^\x00-\x7f]")


def tolerate_narrow_encodings() -> None:
    """Let standard output and standard error write in ASCII what their encoding lacks."""
    codecs.register_error(HANDLER, _in_ascii)
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors=HANDLER)


def _in_ascii(error: UnicodeError) -> tuple[str, int]:
    assert isinstance(error, UnicodeEncodeError)
    return "".join(map(_spelled, error.object[error.start : error.end])), error.end


def _spelled(character: str) -> str:
    """Return one of our symbols in ASCII, a raised or lowered digit as a digit, and any other character as its escape."""
    if character in _IN_ASCII:
        return _IN_ASCII[character]
    import unicodedata

    position, _, digit = unicodedata.decomposition(character).partition(" ")
    return chr(int(digit, 16)) if position in ("<sub>", "<super>") else _escaped(character)


def _escaped(character: str) -> str:
    r"""Return a character as JSON escapes it.

    Examples
    --------
    >>> _escaped("é"), _escaped("😀")
    ('\\u00e9', '\\ud83d\\ude00')
    """
    units = character.encode("utf-16-be", "surrogatepass").hex()
    return "".join(f"\\u{units[at : at + 4]}" for at in range(0, len(units), 4))


def echo_json(text: str) -> None:
    """Print JSON; where the encoding lacks a character, with escapes for all, so that the values stay the same."""
    try:
        text.encode(getattr(sys.stdout, "encoding", None) or "utf-8")
    except UnicodeEncodeError:
        text = _NOT_ASCII.sub(lambda match: _escaped(match[0]), text)
    click.echo(text.rstrip("\n"))
