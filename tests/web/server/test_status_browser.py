"""The status page of a server in a real browser: what was learned, tried and mistaken, as a person sees it."""

import pytest

from separatrix import AveragedPerceptron, Model, TableFeatures, save
from support.browser import axe, text_of, watched
from support.server_process import served

HOSTILE = "<img src=x onerror=alert(1)> free money"


def cells(page, table):
    """What is written in a table, row by row."""
    rows = page.locator(f"{table} tr")
    return [row.locator("th, td").all_inner_texts() for row in rows.all()]


def test_texts_are_learned_tried_and_their_mistakes_shown(browser, tmp_path):
    with served(tmp_path / "state", "--text") as server, watched(browser, server.url) as page:
        page.goto(server.url)
        page.get_by_text("Nothing was learned yet").wait_for()
        client = server.client()
        for text, label in [(HOSTILE, "spam"), ("see you at noon", "ham"), ("free money", "spam"), ("at noon", "ham")] * 6:
            client.learn(text, label)
        assert client.learn(HOSTILE, "ham")["mistakes"] == 1
        page.locator("#examples:text-is('25')").wait_for()
        assert text_of(page, "state") == "live" and text_of(page, "errors") == str(client.stats()["errors"])
        page.fill("#example", "money at noon")
        page.click("#try button")
        page.locator("#answer .label").wait_for()
        assert text_of(page, "answer").startswith(client.predict("money at noon")["prediction"])
        told = client.explain("money at noon")
        head, *rows = cells(page, "#answer table")
        assert head == ["feature", "value", "weight", "value × weight"]
        assert [row[0] for row in rows] == [term["name"] for term in told["terms"]]
        assert [float(row[3]) for row in rows] == pytest.approx([term["product"] for term in told["terms"]], rel=1e-3)
        last = page.locator("#mistakes li").first
        assert "should be ham, not spam" in last.inner_text() and HOSTILE in last.inner_text()
        last.get_by_text("explain the current prediction").click()
        last.locator("table.terms").wait_for()
        assert page.locator("#mistakes img, #answer img").count() == 0


def test_what_is_forgotten_disappears(browser, tmp_path):
    with served(tmp_path / "state", "--text", "--keep-all") as server, watched(browser, server.url) as page:
        client = server.client()
        for text, label in [("see you at noon", "ham"), ("the word of Quinzaine", "spam"), ("free money", "spam")] * 3:
            client.learn(text, label, pin="Quinzaine" in text)
        page.goto(server.url)
        page.locator("#examples:text-is('9')").wait_for()
        page.locator("#mistakes").get_by_text("Quinzaine").first.wait_for()
        assert not page.is_visible("#forgotten-figure")
        client.forget([2, 5, 8])
        page.locator("#forgotten:text-is('3')").wait_for()
        assert text_of(page, "examples") == "6" and "Quinzaine" not in page.inner_text("body")


def test_a_table_row_is_explained_by_its_columns(browser, tmp_path):
    table = {"age": [22, 38, 60, 41, 30, 55], "job": ["clerk", "cook", "clerk", "cook", "cook", None]}
    features = TableFeatures().fit(table)
    learner = AveragedPerceptron(random_state=0).fit(features.transform(table), ["no", "yes", "no", "yes", "yes", "no"])
    save(Model(learner, features), tmp_path / "m.sepx")
    with served(tmp_path / "state", "--model", str(tmp_path / "m.sepx")) as server, watched(browser, server.url) as page:
        page.goto(server.url)
        page.get_by_text("A table row, as JSON").wait_for()
        page.fill("#example", '{"age": 50, "job": "cook"}')
        page.click("#try button")
        page.locator("#answer .of-4").wait_for()
        head, *rows = cells(page, "#answer .of-3")
        explained = server.client().explain({"age": 50, "job": "cook"})
        told = explained["columns"]
        assert head == ["column", "value", "contribution"]
        assert [row[:2] for row in rows] == [[part["column"], str(part["value"] or "")] for part in told]
        assert [float(row[2]) for row in rows] == pytest.approx([part["product"] for part in told], rel=1e-3)
        assert [row[0] for row in cells(page, "#answer .of-4")[1:]] == [term["name"] for term in explained["terms"]]
        page.fill("#example", "{age: 50}")
        page.click("#try button")
        page.get_by_text("This is not valid JSON.").wait_for()


def test_a_table_of_one_text_shows_its_words(browser, tmp_path):
    table = {"message": ["free money now", "see you at noon", "a free prize", "at lunch then"]}
    features = TableFeatures(roles={"message": "text"}).fit(table)
    learner = AveragedPerceptron(random_state=0).fit(features.transform(table), ["spam", "ham", "spam", "ham"])
    save(Model(learner, features), tmp_path / "m.sepx")
    with served(tmp_path / "state", "--model", str(tmp_path / "m.sepx")) as server, watched(browser, server.url) as page:
        page.goto(server.url)
        page.get_by_text("A table row, as JSON").wait_for()
        page.fill("#example", '{"message": "free lunch"}')
        page.click("#try button")
        page.locator("#answer .of-4").wait_for()
        assert {row[0] for row in cells(page, "#answer .of-4")[1:]} == {"free", "lunch", "BIAS"}
        assert page.locator("#answer .of-3").count() == 0


def test_a_token_is_asked_for_and_kept_for_the_tab(browser, tmp_path):
    tokens = {"SEPARATRIX_READ_TOKEN": "token-for-reading", "SEPARATRIX_LEARN_TOKEN": "token-for-teaching"}
    with served(tmp_path / "state", env=tokens) as server, watched(browser, server.url, allowed="401") as page:
        page.goto(server.url)
        page.locator("#token").wait_for()
        page.fill("#token", "token-for-reading")
        page.click("#token-form button")
        page.locator("#state:text-is('live')").wait_for()
        page.reload()
        page.locator("#state:text-is('live')").wait_for()
        assert page.locator("#token-form").is_hidden()


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_it_fits_a_telephone_and_is_accessible(browser, tmp_path, scheme):
    options = {"viewport": {"width": 390, "height": 800}, "color_scheme": scheme, "bypass_csp": True}
    with served(tmp_path / "state") as server, watched(browser, server.url, **options) as page:
        client = server.client()
        for k in range(30):
            client.learn({f"a_rather_long_name_of_a_feature_{k % 7}": 1, "other": k}, "yes" if k % 7 < 3 else "no")
        page.goto(server.url)
        page.locator("#examples:text-is('30')").wait_for()
        page.fill("#example", '{"a_rather_long_name_of_a_feature_1": 1, "other": 2}')
        page.click("#try button")
        page.locator("#answer table").wait_for()
        assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
        page.evaluate(axe())
        found = page.evaluate("axe.run()")
        serious = [f["id"] for f in found["violations"] if f["impact"] in ("serious", "critical")]
        assert serious == [], [(f["id"], f["nodes"][0]["html"][:120]) for f in found["violations"]]


def test_vectors_are_tried_and_broken_pins_are_named(browser, tmp_path):
    with served(tmp_path / "state", "--vectors", "--learner", "last") as server, watched(browser, server.url) as page:
        client = server.client()
        client.learn([1, 0], "no")
        client.request("POST", "/learn", {"vector": [0, 1], "label": "yes", "until_right": True, "pin": True})
        page.goto(server.url)
        page.get_by_text("1 pinned examples, all predicted right.").wait_for()
        page.get_by_text("A vector, as JSON").wait_for()
        client.learn([0, 4], "no")
        page.get_by_text("1 pinned examples, 1 of them predicted wrongly.").wait_for()
        told = page.locator("#regressions li").first.inner_text()
        assert "example 2 should be yes, is no · broken by mistake 2" in told
        page.fill("#example", "[0.5, 2]")
        page.click("#try button")
        page.locator("#answer .label").wait_for()
        assert text_of(page, "answer").startswith("no")
