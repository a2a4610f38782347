"""Formulas of the documentation become well-formed MathML, and one that is not understood is refused with its page."""

import importlib.util
import re
import xml.etree.ElementTree as ET
from types import SimpleNamespace

import pytest

from support.documents import ROOT

SPEC = importlib.util.spec_from_file_location("docs_math", ROOT / "tools" / "docs_math.py")
docs_math = importlib.util.module_from_spec(SPEC)
SPEC.loader.exec_module(docs_math)
FENCED = re.compile(r"^```.*?^```$|`[^`\n]+`", re.S | re.M)
WRITTEN = re.compile(r"\$\$(.+?)\$\$|\$([^$]+)\$", re.S)


def shape(tex):
    """The elements of a formula, without attributes."""

    def told(node):
        inside = "".join(map(told, node)) or (node.text or "")
        return inside if node.tag in ("math", "mrow", "mi", "mn", "mo") else f"{node.tag[1:]}({inside})"

    return told(ET.fromstring(docs_math.mathml(tex)))


@pytest.mark.parametrize(
    ("tex", "expected"),
    [
        (r"k \le \frac{R^2}{\gamma^2}", "k≤frac(sup(R2)sup(γ2))"),
        (r"\sum_{i=1}^n x_i^2", "underover(∑i=1n)subsup(xi2)"),
        (r"w'_j", "subsup(wj′)"),
        (r"\tilde w \gets -\tilde x", "over(w~)←−over(x~)"),
        (r"a \text{ is right}", "atext(\N{NO-BREAK SPACE}is\N{NO-BREAK SPACE}right)"),
        (r"\sqrt{2D} < 1", "sqrt(2D)<1"),
        (r"\begin{aligned} a &= b \\ c &\ge 0 \end{aligned}", "table(tr(td(a)td(=b))tr(td(c)td(≥0)))"),
    ],
)
def test_a_formula_has_the_structure_that_it_says(tex, expected):
    assert shape(tex) == expected


def test_fences_know_their_side_and_a_leading_minus_is_a_sign():
    formula = docs_math.mathml(r"\lVert -x \rVert")
    assert [*re.findall(r'form="(\w+)"', formula)] == ["prefix", "prefix", "postfix"]
    assert docs_math.mathml("x", display=True).startswith('<div class="formula"><math display="block">')


@pytest.mark.parametrize("tex", [r"\unknown", r"\frac{1}", "{a", "a}", r"\begin{aligned} a", "x^"])
def test_what_is_not_understood_is_refused(tex):
    with pytest.raises(ValueError, match="formula"):
        docs_math.mathml(tex)
    html = f'<p><span class="arithmatex">\\({tex}\\)</span></p>'
    with pytest.raises(ValueError, match=r"page\.md: "):
        docs_math.on_page_content(html, SimpleNamespace(file=SimpleNamespace(src_uri="page.md")))


def test_every_formula_of_the_documents_is_understood():
    count = 0
    for page in [*(ROOT / "docs").rglob("*.md"), ROOT / "README.md"]:
        for display, inline in WRITTEN.findall(FENCED.sub("", page.read_text(encoding="utf-8"))):
            ET.fromstring(docs_math.mathml(display or inline))
            count += 1
    assert count > 200
