"""A hook of MkDocs: formulas become MathML when the site is built, so that a page needs no script and no foreign host.

Pages write formulas as `$…$` and `$$…$$`, which the extension arithmatex finds; `mathml` knows the part of LaTeX that they
use, and refuses any other command, so that a formula is never shown half set.
"""

import re
from html import escape, unescape

FOUND = re.compile(r'<(span|div) class="arithmatex">\\([(\[])(.*?)\\[)\]]</\1>', re.S)
TOKEN = re.compile(r"\\(?:text|operatorname|begin|end)\{[^}]*\}|\\[a-zA-Z]+|\\.|\d+(?:\.\d+)?|\s+|.", re.S)
LETTERS = dict(
    zip(
        r"\alpha \beta \gamma \delta \Delta \varepsilon \lambda \mu \xi \sigma \Sigma \tau \varphi \eta \theta \ell".split(),
        "αβγδΔελμξσΣτφηθℓ",
        strict=True,
    )
)
SIGNS = {
    **dict(zip(r"\le \ge \ne \cdot \times \in \to \gets \pm \dots \mid".split(), "≤≥≠·×∈→←±…∣", strict=True)),
    **{r"\Rightarrow": "⇒", r"\perp": "⊥", "-": "−", "*": "∗"},
}
OPENING = {r"\langle": "⟨", r"\lVert": "‖", r"\lvert": "|", "(": "(", "[": "[", r"\{": "{"}
CLOSING = {r"\rangle": "⟩", r"\rVert": "‖", r"\rvert": "|", ")": ")", "]": "]", r"\}": "}"}
LIMITS = {r"\sum": "∑", r"\max": "max", r"\min": "min"}
NAMES = {r"\ln", r"\log", r"\cosh", r"\cos"}
CONSTANTS = {r"\infty": "∞", r"\top": "⊤"}
SPACES = {r"\quad": 1, r"\qquad": 2, r"\,": 0.17, r"\;": 0.28, r"\ ": 0.33}
ACCENTS = {r"\tilde": "~", r"\bar": "¯", r"\hat": "^"}


def on_page_content(html, page, **_):
    try:
        return FOUND.sub(lambda found: mathml(unescape(found[3]), display=found[2] == "["), html)
    except ValueError as problem:
        raise ValueError(f"{page.file.src_uri}: {problem}") from problem


def mathml(tex, *, display=False):
    """Return a formula as a MathML element."""
    formula = Formula(tex.strip())
    inside = formula.row()
    if formula.tokens:
        raise ValueError(f"unexpected {formula.tokens[0]!r} in the formula {tex!r}")
    if not display:
        return f"<math>{inside}</math>"
    return f'<div class="formula"><math display="block">{inside}</math></div>'


class Formula:
    """The tokens of a formula that are still to be read."""

    def __init__(self, tex):
        self.tex, self.tokens = tex, [token for token in TOKEN.findall(tex) if token.strip() or token == r"\ "]
        self.before = "("

    def row(self, *ends):
        """Read until one of `ends`, which is left, or to the end."""
        parts = []
        while self.tokens and self.tokens[0] not in ends and self.tokens[0] != "}":
            parts.append(self.scripted())
        return parts[0] if len(parts) == 1 else f"<mrow>{''.join(parts)}</mrow>"

    def scripted(self):
        """Read an atom with what stands below and above it."""
        limits = self.tokens[0] in LIMITS
        base, scripts = self.atom(), {}
        while self.tokens and self.tokens[0] in ("^", "_", "'"):
            mark = self.tokens.pop(0)
            scripts["^" if mark == "'" else mark] = "<mo>′</mo>" if mark == "'" else self.atom()
        if not scripts:
            return base
        low, high = ("under", "over") if limits else ("sub", "sup")
        kind = "m" + low * ("_" in scripts) + high * ("^" in scripts)
        return f"<{kind}>{base}{scripts.get('_', '')}{scripts.get('^', '')}</{kind}>"

    def atom(self):
        if not self.tokens:
            raise ValueError(f"the formula {self.tex!r} ends too early")
        before, token = self.before, self.tokens.pop(0)
        self.before = token
        if token == "{":
            inside = self.row()
            self.expect("}")
            return inside
        if token in (r"\frac", r"\sqrt"):
            inside = "".join(self.atom() for _ in range(2 if token == r"\frac" else 1))
            return f"<m{token[1:]}>{inside}</m{token[1:]}>"
        if found := re.fullmatch(r"\\(text|operatorname|begin)\{(.*)\}", token):
            kind, words = found.groups()
            tag = "mtext" if kind == "text" else "mi"
            words = words.replace(" ", "\N{NO-BREAK SPACE}")
            return self.table(words) if kind == "begin" else f"<{tag}>{escape(words)}</{tag}>"
        if token in ACCENTS:
            return f'<mover accent="true">{self.atom()}<mo stretchy="false">{ACCENTS[token]}</mo></mover>'
        if token in (r"\left", r"\right"):
            form, sign = "prefix" if token == r"\left" else "postfix", {**OPENING, **CLOSING}[self.tokens.pop(0)]
            return f'<mo form="{form}" stretchy="true">{sign}</mo>'
        if token in "+-" and (before in OPENING or before in ("{", "=", "&", ",", r"\le", r"\ge")):
            return f'<mo form="prefix">{SIGNS.get(token, token)}</mo>'
        return self.sign(token)

    def sign(self, token):
        """Return a token that stands for itself."""
        if token in LETTERS or (token.isalpha() and len(token) == 1):
            return f"<mi>{LETTERS.get(token, token)}</mi>"
        if token in LIMITS:
            return f'<mo movablelimits="true" lspace="0" rspace="0.17em">{LIMITS[token]}</mo>'
        if token in NAMES:
            return f"<mi>{token[1:]}</mi>"
        if token in CONSTANTS:
            return f"<mi>{CONSTANTS[token]}</mi>"
        if token in SPACES:
            return f'<mspace width="{SPACES[token]}em"/>'
        if token[0].isdigit():
            return f"<mn>{token}</mn>"
        if token in OPENING or token in CLOSING:
            form, sign = ("prefix", OPENING[token]) if token in OPENING else ("postfix", CLOSING[token])
            return f'<mo form="{form}" stretchy="false">{sign}</mo>'
        if token.startswith("\\") and token not in SIGNS:
            raise ValueError(f"{token} in the formula {self.tex!r} is not known to tools/docs_math.py")
        space = ' lspace="0" rspace="0"' if token == "/" else ""
        return f"<mo{space}>{escape(SIGNS.get(token, token))}</mo>"

    def table(self, kind):
        """Read lines that are aligned at `&`."""
        end, rows = f"\\end{{{kind}}}", [[]]
        while True:
            rows[-1].append(self.row("&", r"\\", end))
            mark = self.tokens.pop(0) if self.tokens else ""
            if mark == r"\\":
                rows.append([])
            elif mark != "&":
                break
        if mark != end:
            raise ValueError(f"{end} is missing in the formula {self.tex!r}")
        lines = "".join(f"<mtr>{''.join(f'<mtd>{cell}</mtd>' for cell in row)}</mtr>" for row in rows)
        return f'<mtable class="{escape(kind)}" displaystyle="true">{lines}</mtable>'

    def expect(self, sign):
        if not self.tokens or self.tokens.pop(0) != sign:
            raise ValueError(f"{sign} is missing in the formula {self.tex!r}")
