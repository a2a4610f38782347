"""The lab in a real browser: every lecture's example stepped to its end, and what is on the screen at each step."""

import csv
import io

import pytest
from click.testing import CliRunner

from separatrix.cli import app
from separatrix.data.lectures import EXAMPLES
from support.browser import text_of, visit, watched

STEPS = {
    "L1.8": (["(0, 0)", "(0, 0)", "(1, −0.5)", "(1, 0.5)", "(1, −0.5)", "(1, −0.5)"], [3, 4, 5], "touching"),
    "L2.4": (["(3, 2)", "(3, 2)", "(1, −1)", "(1, −1)", "(1, −1)", "(1, −1)"], [1, 3], "separable"),
    "L4.1": (["(4, 0)", "(3, −1)", "(3, −1)", *["(1, −3)"] * 5], [1, 2, 4], "separable"),
    "L4.xor": (["(1, 1)", "(0, 2)", "(1, 1)", "(0, 0)"], [1, 2, 3, 4], "inseparable"),
    "L4.6": (["(1, −1)", "(0, −2)", *["(0.01, −2)"] * 6], [1, 2, 3], "separable"),
    "L3.6": (["(1, 1)", *["(2, 0)"] * 3], [1, 2], "separable"),
}


def test_every_example_of_the_lectures_is_here():
    assert set(STEPS) == set(EXAMPLES)


@pytest.mark.parametrize("name", STEPS)
def test_a_lecture_example_stepped_to_its_end(page, lab_url, name):
    weights, mistakes, verdict = STEPS[name]
    visit(page, lab_url, f"data=lecture:{name}")
    assert text_of(page, "where").startswith("step 0 of ")
    for t, w in enumerate(weights, 1):
        page.keyboard.press("ArrowRight")
        assert text_of(page, "where").startswith(f"step {t} of {len(weights)}")
        assert text_of(page, "w-after") == w
        wrong = f"mistake {mistakes.index(t) + 1}" if t in mistakes else "right"
        assert text_of(page, "verdict") == wrong
    page.keyboard.press("ArrowRight")
    assert text_of(page, "where").startswith(f"step {len(weights)} of {len(weights)}")
    assert text_of(page, "certificate") == verdict
    for w, _ in reversed(list(zip(weights, weights, strict=True))):
        assert text_of(page, "w-after") == w
        page.keyboard.press("ArrowLeft")


def test_l4_1_shows_every_number_of_the_proof(page, lab_url):
    visit(page, lab_url, "data=lecture:L4.1&step=4")
    assert text_of(page, "score") == "⟨w,x⟩ = 3·(−2) + (−1)·(−2) = −4"
    assert text_of(page, "update") == "w ← w + x = (3, −1) + (−2, −2) = (1, −3)"
    assert (text_of(page, "w-before"), text_of(page, "w-after")) == ("(3, −1)", "(1, −3)")
    assert text_of(page, "line-1") == "1 ‖w‖² = 10 ≤ k·R² = 3·16 = 48 ✓"
    assert text_of(page, "line-2") == "2 ⟨w,u⟩ = 3.138 ≥ k·γ = 3·0.7845 = 2.353 ✓"
    assert text_of(page, "between") == "k²γ² = 5.538 ≤ ‖w‖² = 10 ≤ k·R² = 48"
    assert text_of(page, "bound") == "so k ≤ R²/γ² = 26. Here k = 3."
    assert "Pass 2 is clean: w = (1, −3) separates the examples, after 3 mistakes." in text_of(page, "outcome")
    assert text_of(page, "street") == "The widest margin, 0.7845, is determined by examples 0, 1."
    page.get_by_text("Theorems about the whole run").click()
    assert "radius–margin bound R²/γ²: mistakes 3 ≤ 26" in text_of(page, "theorems")
    page.check("#whole")
    assert page.locator("#proof-panel .crossing").count() == 1


def test_xor_shows_the_witness_and_the_cycle(page, lab_url):
    visit(page, lab_url, "data=lecture:L4.xor&step=end")
    assert text_of(page, "cycle") == "cycle: from pass 1, period 1 pass"
    assert "weights at the start of pass 1 come back every pass: a cycle" in text_of(page, "outcome")
    assert "1/4 × example 0 + 1/4 × example 1 + 1/4 × example 2 + 1/4 × example 3 = 0" in text_of(page, "witness")
    page.uncheck("#show-witness")
    without = page.locator("#picture").screenshot()
    page.check("#show-witness")
    assert page.locator("#picture").screenshot() != without


def test_what_the_lectures_say_of_a_score_of_zero_is_said(page, lab_url):
    visit(page, lab_url, "data=lecture:L1.8&step=3")
    assert "a score of 0 means +1" in page.inner_text("#step-panel")
    page.select_option("#tie", "mistake")
    page.wait_for_function("() => document.querySelector('#where').innerText.includes('step 0')")
    page.keyboard.press("ArrowRight")
    assert text_of(page, "verdict") == "mistake 1"
    assert "a score of 0 is a mistake" in page.inner_text("#step-panel")


def test_keyboard_by_example_by_mistake_and_play(page, lab_url):
    visit(page, lab_url, "data=lecture:L4.1")
    steps = []
    for key in ("ArrowDown", "ArrowDown", "ArrowDown", "ArrowDown", "ArrowUp", "ArrowUp", "Home", "End", "Shift+ArrowLeft"):
        page.keyboard.press(key)
        steps.append(int(text_of(page, "where").split()[1]))
    assert steps == [1, 2, 4, 8, 4, 2, 0, 8, 4]
    page.keyboard.press("Home")
    page.select_option("#speed", "20")
    page.locator("body").click(position={"x": 5, "y": 5})
    page.keyboard.press("Space")
    assert "Pause" in text_of(page, "play")
    page.wait_for_function("() => document.querySelector('#where').innerText.startsWith('step 8')")
    page.wait_for_function("() => document.querySelector('#play').innerText.includes('Play')")
    page.keyboard.press("Tab")
    outlines = page.evaluate("getComputedStyle(document.activeElement).outlineStyle")
    assert outlines != "none"


def test_the_slider_scrubs(page, lab_url):
    visit(page, lab_url, "data=lecture:L4.1")
    page.fill("#scrub", "4")
    assert text_of(page, "where").startswith("step 4 of 8, 3 mistakes, pass 1")


def test_four_boundaries_on_one_picture(page, lab_url):
    visit(page, lab_url, "data=lecture:L4.1&step=4&views=last")
    pictures = {page.locator("#picture").screenshot()}
    for view in ("averaged", "voted", "margin"):
        page.check(f"#view-{view}")
        pictures.add(page.locator("#picture").screenshot())
    assert len(pictures) == 4


def download(page, button):
    with page.expect_download() as waiting:
        page.click(f"#{button}")
    return waiting.value.suggested_filename, waiting.value.path().read_bytes()


def test_exports_the_picture_the_trace_and_the_program(page, lab_url, capsys):
    visit(page, lab_url, "data=lecture:L4.1&step=4&views=last,averaged,margin")
    name, png = download(page, "save-png")
    assert name == "lecture-L4.1.png" and png.startswith(b"\x89PNG") and len(png) > 5000
    _, svg = download(page, "save-svg")
    text = svg.decode()
    assert text.startswith("<svg") and "(−2, −2) +1" in text and text.count("<path") > 8
    _, kept = download(page, "save-csv")
    rows = list(csv.DictReader(io.StringIO(kept.decode())))
    printed = CliRunner().invoke(app, ["trace", "lecture:L4.1", "--format", "csv"]).stdout
    expected = list(csv.DictReader(io.StringIO(printed)))
    assert len(rows) == len(expected) == 8
    for mine, theirs in zip(rows, expected, strict=True):
        assert mine["mistake"] == theirs["mistake"].lower()
        for column in ("pass", "step", "example", "label", "score", "k", "norm2", "k_R2", "progress", "k_gamma"):
            assert mine[column] == theirs[column] or float(mine[column]) == pytest.approx(float(theirs[column])), column
        assert eval(mine["w"]) == eval(theirs["w"])
    name, program = download(page, "save-python")
    assert name == "lecture-L4.1.py"
    exec(program.decode(), {})
    printed = capsys.readouterr().out
    assert "mistakes 3 in passes [3, 0] clean: True" in printed
    assert "predicts with [[1.0, -3.0]] [0.0]" in printed
    assert "3 4 3 [1.0, -3.0] 10.0" in printed


def test_what_needs_steps_is_offered_where_there_are_steps(page, lab_url):
    buttons = ["save-gif", "save-csv", "save-python", "save-page"]
    page.goto(f"{lab_url}/#data=points")
    page.wait_for_selector("#picture:visible")
    assert page.is_enabled("#save-png") and not any(page.is_enabled(f"#{name}") for name in buttons)
    visit(page, lab_url, "data=lecture:L4.1")
    assert all(page.is_enabled(f"#{name}") for name in buttons)
    page.select_option("#data", "csv")
    page.click("#use-csv")
    assert text_of(page, "message") == "There are no rows yet: paste some, or choose a file."
    page.fill("#csv-text", "1,2,a\n3,4,a")
    page.click("#use-csv")
    sentence = "a boundary needs two classes: add an example of another class"
    page.wait_for_function("text => document.querySelector('#message').innerText === text", arg=sentence)


def test_a_run_of_very_many_passes_is_shown(page, lab_url):
    visit(page, lab_url, "data=points&points=1e-300,1e-300,a;-1e-300,2e-300,b&passes=0&step=end")
    assert text_of(page, "where").startswith("step 200,000 of 200,000")
    assert page.is_visible("#passes-panel svg") and not text_of(page, "message")
    assert "separable, but γ is too small for floating point" in text_of(page, "proof-panel")


def test_of_many_classes_only_the_weights_that_change_are_listed(page, lab_url):
    rows = "%0A".join(f"{k},{k * k},c{k}" for k in range(12))
    visit(page, lab_url, f"data=csv&csv={rows}&passes=2&step=1")
    assert page.locator("#step-panel .weights tbody tr").count() == 2
    assert "The weights of the other 10 classes do not change." in text_of(page, "step-panel")
    visit(page, lab_url, "data=iris&passes=2&step=1")
    assert page.locator("#step-panel .weights tbody tr").count() == 3


def test_the_run_can_be_saved_as_a_page_that_opens_from_disk(page, browser, lab_url, tmp_path):
    visit(page, lab_url, "data=lecture:L4.1")
    _, kept = download(page, "save-page")
    file = tmp_path / "run.html"
    file.write_bytes(kept)
    with watched(browser, file.as_uri()) as alone:
        alone.goto(f"{file.as_uri()}#step=4")
        assert text_of(alone, "w-after") == "(1, −3)"


def test_a_traced_page_opens_from_disk(browser, tmp_path):
    file = tmp_path / "iris.html"
    assert CliRunner().invoke(app, ["trace", "iris", "--passes", "2", "--html", str(file)]).exit_code == 0
    for width, scheme in ((1280, "light"), (390, "dark")):
        with watched(browser, file.as_uri(), viewport={"width": width, "height": 844}, color_scheme=scheme) as page:
            page.goto(file.as_uri())
            assert page.inner_text("h1") == "iris"
            page.keyboard.press("ArrowDown")
            assert text_of(page, "verdict") == "mistake 1"
            assert "4 features, projected onto the two principal directions of the last weights" in text_of(
                page, "plane-note"
            )
            page.keyboard.press("End")
            assert text_of(page, "where").startswith("step 300 of 300, 7 mistakes, pass 2")
            assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
