"""The controls of the lab: the last of several quick choices wins, and nothing changes under the hand."""

import random

import pytest

from support.browser import text_of, visit

CHOICES = {
    "data": ("iris", "wine", "breast_cancer", "random", "lecture:L4.xor", "lecture:L3.6", "points"),
    "learner": ("perceptron", "averaged", "voted", "pocket", "passive-aggressive", "kernel"),
    "order": ("cyclic", "shuffle"),
    "passes": ("1", "2", "5", "20"),
    "tie": ("mistake",),
    "bias": (None,),
}
RESET = ("passes", "tie", "bias")
"""The settings that a choice of data resets."""
PLAY = """async (moves) => {
    const shown = [];
    for (const [id, value, wait] of moves) {
        const control = document.getElementById(id);
        control.focus();
        if (control.type === "checkbox") control.click();
        else {
            control.value = value;
            control.dispatchEvent(new Event("change", { bubbles: true }));
        }
        shown.push([id, control.type === "checkbox" ? control.checked : control.value]);
        if (document.activeElement !== control) throw new Error(`${id} lost the focus`);
        await new Promise((done) => setTimeout(done, wait));
    }
    return shown;
}"""
SHOWN = """(ids) => ids.map((id) => {
    const control = document.getElementById(id);
    return control.type === "checkbox" ? control.checked : control.value;
})"""


def settled(page, text):
    page.wait_for_function("text => document.querySelector('#summary').innerText.includes(text)", arg=text)


@pytest.mark.parametrize("seed", range(8))
def test_the_last_choice_wins_however_quickly_it_follows(page, lab_url, seed):
    draw = random.Random(seed)
    visit(page, lab_url, "data=lecture:L4.1")
    ids = ["data", "learner", "order", *(draw.choice(list(CHOICES)) for _ in range(draw.randint(1, 6)))]
    moves = [[name, draw.choice(CHOICES[name]), draw.choice((0, 0, 10, 50))] for name in ids]
    expected = {}
    for name, value in page.evaluate(PLAY, moves):
        if name == "data":
            expected = {key: kept for key, kept in expected.items() if key not in RESET}
        expected[name] = value
    page.wait_for_function("data => location.hash.includes(`data=${data}`)", arg=expected["data"])
    page.wait_for_function("() => document.querySelector('#message').innerText !== 'Running …'")
    page.wait_for_timeout(200)  # the address is written a moment after the last change
    assert page.evaluate(SHOWN, list(expected)) == list(expected.values()), moves
    state = page.evaluate("Object.fromEntries(new URLSearchParams(location.hash.slice(1)))")
    assert state["data"] == expected["data"] and state.get("learner", "perceptron") == expected["learner"]
    assert state.get("order", "cyclic") == expected["order"]


def test_a_box_that_is_clicked_twice_is_what_it_was(page, lab_url):
    visit(page, lab_url, "data=lecture:L4.1")
    assert page.evaluate(PLAY, [["bias", None, 0]] * 3) == [["bias", True], ["bias", False], ["bias", True]]
    page.wait_for_function("() => location.hash.includes('bias=1')")
    assert page.is_checked("#bias")


def test_the_meaning_of_ties_is_named_for_the_number_of_classes(page, lab_url):
    visit(page, lab_url, "data=random&tie=-1&passes=1")
    assert page.input_value("#tie") == "-1"
    page.fill("#classes", "3")
    page.press("#classes", "Enter")
    settled(page, "3 classes")
    assert page.input_value("#tie") == "first"
    visit(page, lab_url, "data=random&tie=%2B1&passes=1&classes=3")
    assert page.input_value("#tie") == "mistake" and "step 0" in text_of(page, "where")
    visit(page, lab_url, "data=random&tie=first&passes=1")
    assert page.input_value("#tie") == "-1"


def test_controls_are_not_replaced_under_the_hand(page, lab_url):
    visit(page, lab_url, "data=iris&passes=5")
    page.focus("#learner")
    kept = page.evaluate_handle("() => document.querySelector('#learner')")
    page.select_option("#rule", "pa1")
    page.wait_for_selector("#C")
    page.wait_for_function("() => location.hash.includes('rule=pa1')")
    assert page.evaluate("kept => kept.isConnected && document.querySelector('#learner') === kept", kept)
    page.select_option("#data", "wine")
    settled(page, "wine: 178 examples")
    assert page.evaluate("kept => kept.isConnected", kept)


def test_a_number_that_the_recipe_cannot_have_is_refused_in_one_sentence(page, lab_url):
    visit(page, lab_url, "data=random&passes=1&rule=pa1&C=5000")
    before = text_of(page, "where")
    refused = {
        "n": ("2.5", "points must be a whole number from 2 to 20000"),
        "seed": ("1.5", "seed must be a whole number from 0 to 2147483647"),
        "holdout": ("", "held out must be a number from 0 to 0.9"),
        "C": ("0", "C must be a number above 0, at most 1000000"),
    }
    for name, (value, sentence) in refused.items():
        page.fill(f"#{name}", value)
        page.press(f"#{name}", "Tab")
        assert text_of(page, "message") == sentence
    assert text_of(page, "where") == before and "n=2.5" not in page.evaluate("location.hash")
    page.fill("#C", "200000")  # what a link may hold can be typed, too
    page.press("#C", "Tab")
    page.wait_for_function("() => location.hash.includes('C=200000')")


def test_the_rows_in_the_box_are_those_that_are_shown(page, lab_url):
    visit(page, lab_url, "data=csv&csv=1,2,a%0A3,4,b&passes=1")
    page.fill("#csv-text", "1,2,a\n3,4,c")
    page.select_option("#order", "shuffle")
    page.wait_for_function("() => location.hash.includes('order=shuffle')")
    assert page.input_value("#csv-text") == "1,2,a\n3,4,c", "what is being written stays"
    page.click("#use-csv")
    page.wait_for_function("() => document.querySelector('#key').innerText.includes('c')")
    page.evaluate("location.hash = 'data=csv&csv=5,6,x%0A7,9,y&passes=1'")
    page.wait_for_function("() => document.querySelector('#key').innerText.includes('y')")
    assert page.input_value("#csv-text") == "5,6,x\n7,9,y"


LINK_THEN = """async ([link, after]) => {
    const changed = () => new Promise((done) => addEventListener("hashchange", done, { once: true }));
    let event = changed();
    location.hash = link;
    await event;
    event = changed();
    location.hash = after;
    await event;
}"""
LECTURE_THEN = """(data) => {
    document.getElementById("example-lecture").click();
    const control = document.getElementById("data");
    control.value = data;
    control.dispatchEvent(new Event("change", { bubbles: true }));
}"""


def test_an_address_or_a_choice_wins_over_a_link_or_lecture_still_being_read(page, lab_url):
    visit(page, lab_url, "data=wine&passes=1&learner=voted")
    link = page.evaluate(
        "import('/links.js').then(({ toShortLink }) => toShortLink({ data: 'wine', passes: 1, csv: '1'.repeat(1.5e6) }))"
    )
    page.evaluate(LINK_THEN, [link, "data=iris&passes=2"])
    settled(page, "iris: 150 examples")
    page.evaluate("""() => {
        document.getElementById("forward").click(); // what this writes into the address a moment later
        const end = performance.now() + 200; // has become old, as on a slow machine
        location.hash = "data=iris&passes=2&step=7";
        while (performance.now() < end);
    }""")
    page.wait_for_function("() => document.querySelector('#where').innerText.startsWith('step 7 ')")
    page.wait_for_timeout(500)
    assert text_of(page, "summary").startswith("iris") and page.input_value("#data") == "iris"
    page.evaluate(LECTURE_THEN, "random")
    settled(page, "60 random points")
    page.wait_for_timeout(500)
    assert page.is_visible("#controls") and page.locator("#caption").count() == 0
