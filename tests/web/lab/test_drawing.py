"""The lab in a real browser: points drawn, data pasted, links, hostile cells, layout, light and dark, accessibility."""

import statistics

import pytest

from support.browser import axe, text_of, visit, watched


def settled(page, text):
    page.wait_for_function("text => document.querySelector('#summary').innerText.includes(text)", arg=text)


def click(page, x, y):
    box = page.locator("#picture").bounding_box()
    page.mouse.click(box["x"] + x * box["width"], box["y"] + y * box["height"])


def points(page):
    page.wait_for_timeout(150)  # the address is written a moment after the last change
    state = page.evaluate("Object.fromEntries(new URLSearchParams(location.hash.slice(1)))")
    return [tuple(part.split(",")) for part in state.get("points", "").split(";") if part]


def draw_four(page, url):
    visit(page, url, "data=lecture:L4.1")
    page.select_option("#data", "points")
    page.wait_for_selector("#undo")
    click(page, 0.3, 0.3)
    assert "another class" in text_of(page, "message")
    click(page, 0.35, 0.6)
    page.get_by_text("add −1").click()
    click(page, 0.7, 0.35)
    settled(page, "3 examples")
    click(page, 0.75, 0.6)
    settled(page, "4 examples")


def test_points_are_added_moved_relabelled_deleted_and_it_is_all_undone(page, lab_url):
    draw_four(page, lab_url)
    assert text_of(page, "certificate") == "separable"
    drawn = points(page)
    assert [label for *_, label in drawn] == ["1", "1", "-1", "-1"]

    box = page.locator("#picture").bounding_box()
    page.mouse.move(box["x"] + 0.3 * box["width"], box["y"] + 0.3 * box["height"])
    page.mouse.down()
    page.mouse.move(box["x"] + 0.4 * box["width"], box["y"] + 0.2 * box["height"], steps=4)
    page.mouse.up()
    page.wait_for_function("old => !location.hash.includes(old)", arg=",".join(drawn[0]))
    moved = points(page)
    assert moved[1:] == drawn[1:]
    assert float(moved[0][0]) > float(drawn[0][0]) and float(moved[0][1]) > float(drawn[0][1])

    page.get_by_text("relabel", exact=True).click()
    click(page, 0.35, 0.6)
    page.wait_for_function("text => location.hash.includes(text)", arg=f"{moved[1][0]},{moved[1][1]},-1;{moved[2][0]}")
    assert [label for *_, label in points(page)] == ["1", "-1", "-1", "-1"]
    page.get_by_text("delete", exact=True).click()
    click(page, 0.75, 0.6)
    settled(page, "3 examples")
    page.click("#undo")
    settled(page, "4 examples")
    page.keyboard.press("Control+z")
    page.keyboard.press("Control+z")
    page.wait_for_function("whole => location.hash.includes(whole)", arg=";".join(",".join(p) for p in drawn))
    for left in (3, 2, 1, 0):
        page.click("#undo")
        page.wait_for_timeout(50)
        page.wait_for_function(
            "n => (new URLSearchParams(location.hash.slice(1)).get('points') ?? '').split(';').filter(Boolean).length === n",
            arg=left,
        )
    assert page.is_disabled("#undo")


def test_a_third_class(page, lab_url):
    draw_four(page, lab_url)
    page.click("#add-class")
    click(page, 0.5, 0.85)
    settled(page, "5 examples, 2 features, 3 classes")
    assert "lead of" in text_of(page, "score")


def test_the_tools_are_the_classes_of_the_points_in_their_colours(page, lab_url):
    visit(page, lab_url, "data=points&points=1,1,f;2,2,b;3,1,c;-1,-1,d;-2,1,e;0,-3,a&passes=1")
    tools = page.locator("#tools .tool:has-text('add')")
    assert tools.all_inner_texts() == [f"add {name}" for name in "abcdef"]
    assert [tool.get_attribute("class") for tool in tools.all()] == [f"tool c{k}" for k in range(6)]
    page.evaluate(axe())
    assert page.evaluate("axe.run()")["violations"] == []
    visit(page, lab_url, "data=points&points=1,1,1;2,2,2&passes=1")
    page.get_by_text("+ class").click()
    assert tools.all_inner_texts() == ["add 1", "add 2", "add 3"]
    assert [tool.get_attribute("class").strip() for tool in tools.all()] == ["tool c0", "tool c1", "tool"], "not used yet"


def test_a_lecture_example_can_be_changed(page, lab_url):
    visit(page, lab_url, "data=lecture:L4.xor&step=end")
    assert text_of(page, "certificate") == "inseparable"
    page.click("#edit")
    page.wait_for_selector("#undo")
    page.get_by_text("delete", exact=True).click()
    point = page.evaluate("""() => {
        const canvas = document.querySelector('#picture').getBoundingClientRect();
        return [canvas.x, canvas.y, canvas.width, canvas.height];
    }""")
    # (1, 1) lies at the upper right: the window is symmetric, with 44 px on the left, 14 above and on the right, 34 below
    x, y, width, height = point
    inner_width, inner_height = width - 58, height - 48
    scale = (2 + 2 * 0.28) / inner_height
    page.mouse.click(x + 44 + inner_width / 2 + 1 / scale, y + 14 + inner_height / 2 - 1 / scale)
    settled(page, "3 examples")
    assert text_of(page, "certificate") == "touching"


LINKS = [
    "data=points&points=1,2,1;-3,0.5,-1;2,-1,1&learner=averaged&passes=3&step=5&views=last,averaged",
    "data=lecture:L4.xor&learner=kernel&kernel=poly&step=8&views=last,voted",
]
MORE_LINKS = [
    "data=random&n=40&classes=3&gap=0.2&noise=0.1&passes=5&order=permutation&seed=7&step=33&views=last",
    "data=iris&columns=2,3&positive=setosa&passes=20&rule=margin&margin=2&step=end&views=last",
    "data=csv&csv=a%2Cb%2Ckind%0A1%2C2%2Cx%0A3%2C4%2Cy%0A&passes=5&bias=0&step=1&views=last",
    "data=lecture:L4.xor&map=products2&step=3&views=last",
    "data=lecture:L4.1&tie=%2B1&step=2&views=last",
    "data=wine&learner=pocket&passes=3&holdout=0.2&step=40&views=last,pocket",
]


@pytest.mark.parametrize("state", [*LINKS, *(pytest.param(link, marks=pytest.mark.slow) for link in MORE_LINKS)])
def test_a_link_brings_the_same_picture_and_numbers_back(browser, lab_url, state):
    seen = []
    link = f"{lab_url}/#{state}"
    for _ in range(2):
        with watched(browser, lab_url) as page:
            page.goto(link)
            page.wait_for_selector("#where b")
            page.wait_for_timeout(200)
            link = page.url
            texts = [text_of(page, name) for name in ("summary", "where", "step-panel", "proof-panel", "certificate-panel")]
            seen.append((*texts, page.locator("#picture").screenshot()))
            assert page.inner_text("#message") == ""
    assert seen[0] == seen[1]
    assert f"step {state.split('step=')[1].split('&')[0]} of" in seen[0][1] or "step=end" in state


def test_a_bad_csv_is_named_by_line_and_column(browser, lab_url):
    with watched(browser, lab_url, allowed="status of 400") as page:
        visit(page, lab_url, "data=lecture:L4.1")
        use_a_bad_and_a_good_csv(page)


def use_a_bad_and_a_good_csv(page):
    page.select_option("#data", "csv")
    page.fill("#csv-text", "width,height,kind\n1,2,a\n3,oops,b\n")
    page.click("#use-csv")
    page.wait_for_function("() => document.querySelector('#message').innerText")
    assert text_of(page, "message") == "pasted.csv, line 3, column 2 (height): 'oops' is not a finite number"
    page.fill("#csv-text", "width,height,kind\n1,2,a\n3,1,b\n")
    page.click("#use-csv")
    settled(page, "pasted.csv: 2 examples")
    assert text_of(page, "message") == ""


def test_hostile_cells_are_text_and_nothing_else(page, lab_url, tmp_path):
    page.goto(f"{lab_url}/#data=csv")
    page.wait_for_selector("#csv-file")
    evil = '<img src=x onerror="window.broken=1">'
    file = tmp_path / "evil <b>.csv"
    cells = f"<script>window.broken=1</script>,=cmd|'/c calc'!A1,kind\n1,2,=1+1\n3,1,{evil}\n2,2,=1+1\n"
    file.write_text(cells.replace(evil, '"' + evil.replace('"', '""') + '"'))
    page.set_input_files("#csv-file", file)
    settled(page, "3 examples")
    assert evil in text_of(page, "key")
    page.keyboard.press("ArrowRight")
    assert "<script>window.broken=1</script>" in text_of(page, "step-panel")
    assert page.evaluate("window.broken") is None
    assert page.locator("main img").count() == 0
    with page.expect_download() as waiting:
        page.click("#save-csv")
    text = waiting.value.path().read_text()
    assert "'=1+1" in text and ",=1+1" not in text
    with page.expect_download() as waiting:
        page.click("#save-svg")
    assert "<img" not in waiting.value.path().read_text()


def test_an_upload_that_is_too_large_is_refused(page, lab_url, tmp_path):
    visit(page, lab_url, "data=lecture:L4.1")
    page.select_option("#data", "csv")
    file = tmp_path / "large.csv"
    file.write_text("1,2,a\n" * 400_000)
    page.set_input_files("#csv-file", file)
    page.wait_for_function("() => document.querySelector('#message').innerText")
    assert text_of(page, "message") == "large.csv has 2.4 MB: the lab accepts at most 1.9 MB"


def test_only_a_csv_that_is_too_long_for_the_browser_is_sent_to_the_server(page, lab_url, tmp_path):
    asked = []
    page.on("request", lambda request: "/api/" in request.url and asked.append(request.method))
    visit(page, lab_url, "data=iris&passes=3")
    page.select_option("#data", "csv")
    file = tmp_path / "rows.csv"
    for copies in (100, 9_000):
        row = f"1.{'0' * 120},2,a\n3,1,b\n"
        file.write_text("x,y,k\n" + row * copies)
        page.set_input_files("#csv-file", file)
        settled(page, f"{2 * copies:,} examples")
        assert asked == ([] if copies == 100 else ["POST"])


def test_points_are_drawn_with_the_keyboard_alone(page, lab_url):
    visit(page, lab_url, "data=lecture:L4.1")
    page.focus("#edit")
    page.keyboard.press("Enter")
    page.wait_for_selector("#undo")
    assert page.evaluate("document.activeElement.name") == "tool", "the focus is where the button was"
    before = points(page)
    page.focus("#picture")
    page.keyboard.press("ArrowRight")
    assert text_of(page, "live").startswith("cross at (")
    page.keyboard.press("Enter")
    page.wait_for_function("() => document.querySelector('#summary').innerText.includes('5 examples')")
    added = points(page)
    assert added[:4] == before and added[4][2] == "1"
    page.focus("input[value=move]")
    page.keyboard.press("Space")
    page.focus("#picture")
    page.keyboard.press("ArrowRight")
    page.keyboard.press("Enter")
    assert page.evaluate("document.activeElement.id") == "picture"
    for _ in range(3):
        page.keyboard.press("ArrowUp")
    assert text_of(page, "live").endswith(", with a point")
    page.keyboard.press("Enter")
    page.wait_for_function("() => !document.querySelector('#undo').disabled")
    moved = points(page)
    assert moved[:4] == before and moved[4] != added[4] and float(moved[4][1]) > float(added[4][1])
    assert text_of(page, "where").startswith("step "), "the arrow keys did not step"
    page.keyboard.press("Control+z")
    assert points(page) == added


def test_the_first_screen_fits_a_small_laptop(browser, lab_url):
    with watched(browser, lab_url, viewport={"width": 1366, "height": 768}) as page:
        for state in (
            "data=lecture:L4.1&step=4",
            "data=iris&passes=20&step=200",
            "data=random&n=60&noise=0.1&step=3",
            "data=points",
        ):
            visit(page, lab_url, state)
            for name in ("picture", "show-street", "show-witness", "save-png", "copy-link"):
                if page.locator(f"#{name}").count():
                    box = page.locator(f"#{name}").bounding_box()
                    assert box["y"] >= 0 and box["y"] + box["height"] <= 768, (state, name, box)
            assert page.locator("#picture").bounding_box()["height"] >= 240


def test_ten_thousand_points_stay_smooth(page, lab_url):
    visit(page, lab_url, "data=random&n=10000&noise=0.05&passes=20&order=permutation&step=5000&views=last,averaged")
    times = page.evaluate("""async () => {
        const out = [];
        for (let i = 0; i < 15; i += 1) {
            const began = performance.now();
            document.getElementById("forward-mistake").click();
            out.push(performance.now() - began);
            await new Promise((done) => requestAnimationFrame(done));
        }
        return out;
    }""")
    assert statistics.median(times) < 60, times


@pytest.mark.parametrize(
    ("width", "scheme"),
    [
        (1280, "light"),
        (390, "dark"),
        pytest.param(1280, "dark", marks=pytest.mark.slow),
        pytest.param(390, "light", marks=pytest.mark.slow),
    ],
)
def test_layout_and_accessibility(browser, lab_url, width, scheme):
    with watched(browser, lab_url, viewport={"width": width, "height": 844}, color_scheme=scheme) as page:
        for state in ("data=lecture:L4.1&step=4&views=last,averaged,margin", "data=iris&passes=20&holdout=0.2&step=200"):
            visit(page, lab_url, state)
            page.evaluate("for (const d of document.querySelectorAll('details')) d.open = true")
            assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
            inside = page.evaluate(
                "[...document.querySelectorAll('main *')].filter((e) => e.offsetParent && !e.closest('.hidden') && "
                "e.getBoundingClientRect().right > innerWidth + 1).map((e) => e.tagName + e.id)"
            )
            assert inside == []
            boxes = page.evaluate(
                "[...document.querySelectorAll('#viewer .card')].map((e) => { const b = e.getBoundingClientRect(); "
                "return [b.left, b.top, b.right, b.bottom]; })"
            )
            for i, a in enumerate(boxes):
                for b in boxes[i + 1 :]:
                    assert a[2] <= b[0] or b[2] <= a[0] or a[3] <= b[1] or b[3] <= a[1]
            ground = page.evaluate("getComputedStyle(document.body).backgroundColor")
            assert (sum(int(v) for v in ground[4:-1].split(",")) > 380) == (scheme == "light")
        page.evaluate(axe())
        found = page.evaluate("axe.run()")
        violations = [f["id"] for f in found["violations"]]
        assert violations == [], [(f["id"], f["nodes"][0]["html"][:120]) for f in found["violations"]]
