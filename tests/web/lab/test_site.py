"""The lab as static files: exported, from disk, by links, embedded, as a lecture, offline; how fast it is."""

import gzip
import io
import json

import pytest
from click.testing import CliRunner
from PIL import Image, ImageSequence

from separatrix.cli import app
from separatrix.web.lab.site import SINGLE_FILE, site
from support.browser import axe, text_of, visit, watched


def test_a_folder_that_cannot_be_written_is_one_line(tmp_path):
    (tmp_path / "file").write_text("")
    result = CliRunner().invoke(app, ["lab", "--export", str(tmp_path / "file")])
    assert result.exit_code == 2 and len(result.stderr.splitlines()) == 1 and "cannot write to" in result.stderr


def test_the_one_file_opens_from_disk_and_asks_for_nothing(browser, exported):
    file = exported / SINGLE_FILE
    text = file.read_text(encoding="utf-8")
    assert "default-src 'none'" in text and "connect-src" not in text and '<link rel="stylesheet"' not in text
    with watched(browser, file.as_uri()) as page:
        page.goto(f"{file.as_uri()}#data=lecture:L4.xor&step=end")
        page.wait_for_selector("#where b")
        assert text_of(page, "certificate") == "inseparable"
        page.select_option("#data", "breast_cancer")
        page.wait_for_function("() => document.querySelector('#summary').innerText.includes('569 examples')")
        with page.expect_download() as waiting:
            page.click("#save-page")
        assert waiting.value.path().read_text(encoding="utf-8").startswith("<!doctype html>")


def test_a_plain_web_host_serves_the_lab_and_it_works_offline(browser, host):
    with watched(browser, host) as page:
        visit(page, host, "data=lecture:L4.1&step=4")
        assert text_of(page, "w-after") == "(1, −3)"
        page.wait_for_function("() => performance.getEntriesByType('resource').some((e) => e.name.endsWith('wine.json'))")
        page.wait_for_load_state("networkidle")
        page.context.set_offline(True)
        for name, count in (("iris", "150 examples"), ("random", "60 examples"), ("lecture:L2.4", "3 examples")):
            page.select_option("#data", name)
            page.wait_for_function("text => document.querySelector('#summary').innerText.includes(text)", arg=count)
        with page.expect_download() as waiting:
            page.click("#save-page")
        assert waiting.value.suggested_filename == "lecture-L2.4.html"
        page.click("#example-lecture")
        page.wait_for_selector("#caption:visible")


def test_a_short_link_restores_drawn_points_and_the_step(browser, host):
    points = [[-1.5, 2, "1"], [0.25, 1, "1"], [2, -3, "-1"], [1, -1.75, "-1"]]
    drawn = ";".join(",".join(str(part) for part in point) for point in points)
    with watched(browser, host, permissions=["clipboard-read", "clipboard-write"]) as page:
        visit(page, host, f"data=points&points={drawn}&learner=averaged&passes=7&step=2")
        before = page.locator("#where").inner_text(), text_of(page, "w-after")
        page.click("#copy-link")
        page.wait_for_function("() => document.querySelector('#message').innerText === 'Link copied.'")
        link = page.evaluate("navigator.clipboard.readText()")
        assert "#1." in link and len(link.partition("#")[2]) < 200
        page.goto("about:blank")
        page.goto(link)
        page.wait_for_selector("#where b")
        assert (page.locator("#where").inner_text(), text_of(page, "w-after")) == before
        assert page.input_value("#learner") == "averaged" and page.input_value("#passes") == "7"
        page.goto("about:blank")
        page.goto(f"{host}/index.html#9.abc")
        page.wait_for_function("() => document.querySelector('#message').innerText")
        assert text_of(page, "message") == "this link has the format 9, which this version of the lab does not know"
        page.select_option("#data", "iris")
        page.wait_for_function("() => document.querySelector('#summary').innerText.includes('iris')")
        assert not page.inner_text("#message")
        page.evaluate("link => { location.hash = link.split('#')[1] + '.'; }", link)
        page.wait_for_function("where => document.querySelector('#where').innerText === where", arg=before[0])


@pytest.mark.parametrize(
    ("state", "message"),
    [
        ("data=iris&n=1000000000", "n must be a whole number from 2 to 20000, not 1000000000"),
        ("data=nothing", "there is no data set called 'nothing'"),
        ("learnr=voted", 'there is no setting called "learnr"'),
        ("data=iris&step=first", 'step must be a whole number or "end", not first'),
        ("lecture=../x", '"../x" is not the name of a lecture: letters, digits, - and _ can be used'),
        ("data=iris&columns=1,9&passes=2", "iris has 4 features: there is no feature number 9"),
    ],
)
def test_an_address_that_cannot_be_run_is_one_sentence(browser, host, state, message):
    with watched(browser, host) as page:
        page.goto(f"{host}/index.html#{state}")
        page.wait_for_function("() => document.querySelector('#message').innerText")
        assert text_of(page, "message") == message


def test_the_way_back_leaves_a_lecture(browser, host):
    with watched(browser, host) as page:
        visit(page, host, "data=iris&passes=2")
        page.evaluate("location.hash = 'lecture=example&screen=2'")
        page.wait_for_selector("#caption:visible")
        page.wait_for_function("() => document.querySelector('#where').innerText.startsWith('step 1 of 8')")
        page.go_back()
        page.wait_for_function("() => document.querySelector('#summary').innerText.includes('iris')")
        assert page.locator("#caption").count() == 0 and page.is_visible("#controls")
        page.wait_for_function("() => location.hash.startsWith('#data=iris&passes=2')")


def test_a_screen_that_cannot_be_run_shows_a_sentence_and_no_other_picture(browser, host, tmp_path):
    with watched(browser, host) as page:
        visit(page, host, "data=lecture:L4.1")
        mine = tmp_path / "mine.json"
        lecture = {"format": "separatrix lecture 1", "screens": [{}, {"caption": "Two", "recipe": {"data": "irsi"}}]}
        mine.write_text(json.dumps(lecture))
        page.set_input_files("#lecture-file", mine)
        page.wait_for_function("() => document.querySelector('#message').innerText")
        assert text_of(page, "message") == "this is not a lecture: screen 2: there is no data set called 'irsi'"
        lecture["screens"][1]["recipe"] = {"data": "iris", "columns": [1, 9], "passes": 2}
        mine.write_text(json.dumps(lecture))
        page.set_input_files("#lecture-file", mine)
        page.wait_for_selector("#screen-title")
        page.keyboard.press("PageDown")
        page.wait_for_function("() => document.querySelector('#message').innerText.includes('no feature number 9')")
        assert not page.is_visible("#picture")
        page.keyboard.press("PageUp")
        page.wait_for_selector("#picture:visible")
        assert not text_of(page, "message")


def test_a_screen_without_points_offers_what_drawing_needs(browser, host, tmp_path):
    with watched(browser, host, viewport={"width": 1366, "height": 768}) as page:
        visit(page, host, "data=lecture:L4.1")
        mine = tmp_path / "mine.json"
        mine.write_text(json.dumps({"format": "separatrix lecture 1", "screens": [{}, {"recipe": {"data": "points"}}]}))
        page.set_input_files("#lecture-file", mine)
        page.wait_for_selector("#screen-title")
        assert not page.is_visible("#tools"), "an example of the lectures is not edited in a lecture"
        page.keyboard.press("PageDown")
        page.get_by_text("add −1").click()
        page.click("#picture", position={"x": 200, "y": 100})
        page.get_by_text("add +1").click()
        page.click("#picture", position={"x": 500, "y": 200})
        page.wait_for_function("() => document.querySelector('#summary').textContent.includes('2 examples')")
        assert page.is_visible("#tools")


def test_embedded_it_shows_the_picture_the_step_and_a_way_out(browser, host):
    with watched(browser, host, viewport={"width": 700, "height": 680}) as page:
        visit(page, host, "data=lecture:L4.1&step=4&embed=1")
        box = page.locator("#step-panel").bounding_box()
        assert box["y"] + box["height"] <= 680, "the frame shows the whole step without scrolling"
        assert page.is_visible("#picture") and page.is_visible("#step-panel") and not page.is_visible("#controls")
        assert page.get_attribute("#open-full", "href").endswith("#data=lecture:L4.1&step=4")
        page.keyboard.press("ArrowRight")
        page.wait_for_function("() => location.hash.includes('step=5')")
        assert "embed=1" in page.evaluate("location.hash")


def test_a_lecture_by_its_keys(browser, host, tmp_path):
    with watched(browser, host, viewport={"width": 1366, "height": 768}) as page:
        page.goto(f"{host}/index.html#lecture=example")
        page.wait_for_selector("#where b")
        assert text_of(page, "screen-number") == "1 of 6"
        assert float(page.evaluate("getComputedStyle(document.querySelector('#caption')).fontSize")[:-2]) >= 24
        for number in (2, 3):
            page.keyboard.press("PageDown")
            assert text_of(page, "screen-number") == f"{number} of 6"
        page.wait_for_function("() => document.querySelector('#where').innerText.startsWith('step 4 of 8')")
        assert page.is_visible("#play") and not page.is_visible("#controls")
        assert page.evaluate("document.documentElement.scrollHeight <= innerHeight"), "a screen is not scrolled"
        page.wait_for_function("() => location.hash === '#lecture=example&screen=3'")
        page.reload()
        page.wait_for_selector("#where b")
        assert text_of(page, "screen-number") == "3 of 6", "a reload comes back to the screen"
        page.focus("#screen-forward")
        page.keyboard.press("Enter")
        page.wait_for_selector("#quiz-panel:visible")
        assert page.evaluate("document.activeElement.id") == "screen-forward", "the next Enter goes on"
        page.keyboard.press("Escape")
        assert page.is_visible("#controls") and not page.is_visible("#caption")
        mine = tmp_path / "mine.json"
        mine.write_text(json.dumps({"format": "separatrix lecture 1", "screens": [{"caption": "<b>text</b>", "step": 2}]}))
        page.set_input_files("#lecture-file", mine)
        page.wait_for_function("() => document.querySelector('#caption')?.innerText === '<b>text</b>'")
        page.keyboard.press("Escape")
        mine.write_text('{"format": "separatrix lecture 1", "screens": [{"steps": 2}]}')
        page.set_input_files("#lecture-file", mine)
        page.wait_for_function("() => document.querySelector('#message').innerText")
        assert 'screen 1 has the unknown field "steps"' in text_of(page, "message")
        mine.write_text('{"format": "separatrix lecture 1",\n "screens": [}')
        page.set_input_files("#lecture-file", mine)
        page.wait_for_function("() => document.querySelector('#message').innerText.includes('mine.json is not JSON: ')")


def test_an_animated_gif_of_every_step(browser, host):
    with watched(browser, host) as page:
        visit(page, host, "data=lecture:L4.1&step=2")
        with page.expect_download() as waiting:
            page.click("#save-gif")
        content = waiting.value.path().read_bytes()
        assert waiting.value.suggested_filename == "lecture-L4.1.gif"
        with Image.open(io.BytesIO(content)) as film:
            frames = [(frame.info["duration"], frame.convert("RGB")) for frame in ImageSequence.Iterator(film)]
        assert [duration for duration, _ in frames] == [1500] * 8 + [4000] and frames[0][1].size == (640, 440)
        shares = [frame.crop((50, 20, 620, 320)).getcolors(100_000) for _, frame in frames]
        paper, orange, blue = (255, 255, 255), (251, 239, 229), (229, 241, 247)
        assert max(shares[0])[1] == paper, "there is no boundary yet"
        for share in shares[1:]:
            assert {colour for _, colour in sorted(share)[-2:]} == {orange, blue}
        assert max(shares[1])[1] == blue
        assert page.locator("#where").inner_text().startswith("step 2 of 8")


@pytest.mark.parametrize(
    ("state", "width", "scheme"),
    [
        ("quiz=1&data=lecture:L4.1&step=1", 1366, "light"),
        *(
            pytest.param(state, width, scheme, marks=pytest.mark.slow)
            for state in ("quiz=1&data=lecture:L4.1&step=1", "lecture=example", "data=lecture:L4.1&step=4&embed=1")
            for width, scheme in ((1366, "light"), (390, "dark"))
            if (state[:4], width) != ("quiz", 1366)
        ),
    ],
)
def test_modes_are_accessible_and_fit(browser, host, state, width, scheme):
    with watched(browser, host, viewport={"width": width, "height": 844}, color_scheme=scheme) as page:
        visit(page, host, state)
        assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
        page.evaluate(axe())
        violations = page.evaluate("axe.run()")["violations"]
        assert violations == [], [(f["id"], f["nodes"][0]["html"][:120]) for f in violations]


def test_the_keyboard_alone_reaches_everything(browser, host):
    with watched(browser, host) as page:
        visit(page, host, "data=lecture:L4.1")
        reached = set()
        for _ in range(60):
            page.keyboard.press("Tab")
            reached.add(page.evaluate("document.activeElement.id"))
        controls = {"toggle-quiz", "example-lecture", "lecture-file", "data", "learner", "rule", "tie", "order", "passes"}
        assert controls | {"edit", "scrub", "play", "forward", "speed", "view-last", "save-gif", "copy-link"} <= reached
        names = page.evaluate(
            "[...document.querySelectorAll('button, select, input, textarea, canvas[role]')].filter((e) => e.offsetParent)"
            ".filter((e) => !(e.labels?.length || e.getAttribute('aria-label') || e.innerText.trim())).map((e) => e.id)"
        )
        assert names == [], "what a screen reader could not name"


@pytest.mark.slow
def test_it_is_light_and_quick(browser, host):
    """The first step within two seconds on a processor slowed down four times, and sixty steps a second at 500 points."""
    compressed = {name: len(gzip.compress(content)) for name, content in site().items()}
    with watched(browser, host) as page:
        client = page.context.new_cdp_session(page)
        client.send("Network.setCacheDisabled", {"cacheDisabled": True})
        client.send("Emulation.setCPUThrottlingRate", {"rate": 4})
        times = []
        for _ in range(3):  # the best of three, because the machine has other work
            page.goto("about:blank")
            page.goto(f"{host}/index.html")
            page.wait_for_selector("#where b")
            times.append(page.evaluate("() => { document.getElementById('forward').click(); return performance.now(); }"))
            assert page.locator("#where").inner_text().startswith("step 1 of 8")
        first = min(times)
        client.send("Emulation.setCPUThrottlingRate", {"rate": 1})
        page.wait_for_load_state("networkidle")
        names = page.evaluate("performance.getEntriesByType('resource').map((e) => e.name)")
        files = {"index.html", *(name.partition("/site/")[2] for name in names)}
        transfer = sum(compressed[name] for name in files)
        visit(page, host, "data=random&n=500&noise=0.05&passes=20&order=permutation&views=last,averaged")
        took = page.evaluate("""async () => {
            const times = [];
            for (let batch = 0; batch < 6; batch += 1) {
                const began = performance.now();
                for (let i = 0; i < 20; i += 1) document.getElementById("forward").click();
                times.push((performance.now() - began) / 20);
                await new Promise((done) => setTimeout(done, 20));
            }
            return Math.min(...times);
        }""")
    print(f"first step {first:.0f} ms at a quarter of the speed; {transfer / 1000:.0f} kB; {1000 / took:.0f} steps/s")
    assert transfer <= 300_000
    assert took < 1000 / 60
    assert first <= 2000
