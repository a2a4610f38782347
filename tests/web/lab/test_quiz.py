"""The quiz: what it asks, what it takes for right, and why."""

import pytest

from support.browser import text_of, visit, watched


def answers(page):
    return [text.split(" ", 1)[1] for text in page.locator("#quiz-panel .answer").all_inner_texts()]


def test_the_quiz_asks_judges_and_steps(browser, host):
    with watched(browser, host) as page:
        visit(page, host, "data=lecture:L4.1&quiz=1")
        assert not page.is_visible("#proof-panel") and "Step 1: example 0" in text_of(page, "quiz-panel")
        assert answers(page) == ["a mistake", "right"]
        page.keyboard.press("1")
        assert text_of(page, "quiz-question") == "Which way does w turn?"
        page.get_by_text("towards x").click()
        assert (
            text_of(page, "quiz-feedback") == "Right: step 1 is a mistake (a score of 0 is a mistake), so w turns towards x."
        )
        assert page.locator("#where").inner_text().startswith("step 1 of 8")
        page.keyboard.press("2")
        assert text_of(page, "quiz-feedback") == "No: step 2 is a mistake (y·score = −4 < 0), so w turns away from x."
        page.keyboard.press("2")
        assert text_of(page, "quiz-feedback") == "Right: step 3 is right (y·score = 1 > 0), so nothing changes."
        assert text_of(page, "quiz-score") == "2 of 3 right"
        page.click("#end")
        assert text_of(page, "quiz-question") == "That was the last step."
        page.click("#toggle-quiz")
        assert page.is_visible("#proof-panel") and not page.is_visible("#quiz-panel")


@pytest.mark.parametrize(
    ("state", "questions", "right", "feedback"),
    [
        (
            "data=iris&passes=2",
            [["setosa", "versicolor", "virginica"], ["versicolor", "virginica"]],
            ["setosa", "versicolor"],
            "so w[setosa] is raised and w[versicolor] is lowered by x.",
        ),
        (
            "data=lecture:L4.xor&learner=kernel&passes=2",
            [["α of example 0 rises by 1", "α of example 0 falls by 1", "every α changes"]],
            ["α of example 0 rises by 1"],
            "so α of example 0 rises by 1.",
        ),
        (
            "data=points&points=1,1,a;-1,1,b;0,-1,c&tie=mistake&learner=kernel&passes=2",
            [["a", "b", "c"], ["b", "c"]],
            ["a", "b"],
            "so α of example 0 rises by 1 for a and falls by 1 for b.",
        ),
        (
            "data=lecture:L4.1&rule=pa1&passes=2",
            [["towards x: w ← w + τ·x", "away from x: w ← w − τ·x"]],
            ["towards x: w ← w + τ·x"],
            "(loss = max(0, 1 − y·score) = 1), so w turns towards x.",
        ),
        (
            "data=lecture:L4.1&rule=arow&passes=2&map=products2",
            [["towards Σφ(x): w ← w + τ·Σφ(x)", "away from Σφ(x): w ← w − τ·Σφ(x)"]],
            ["towards Σφ(x): w ← w + τ·Σφ(x)"],
            "so w turns towards Σφ(x).",
        ),
        (
            "data=lecture:L4.1&rule=margin&margin=2&passes=2",
            [["towards x: w ← w + x", "away from x: w ← w − x"]],
            ["towards x: w ← w + x"],
            "(y·score = 0 ≤ margin 2), so w turns towards x.",
        ),
    ],
)
def test_the_quiz_asks_what_changes_for_every_kind_of_recipe(browser, host, state, questions, right, feedback):
    with watched(browser, host) as page:
        visit(page, host, f"{state}&quiz=1")
        page.keyboard.press("1")
        for choices, chosen in zip(questions, right, strict=True):
            assert answers(page) == choices
            page.locator("#quiz-panel .answer").nth(choices.index(chosen)).click()
        assert text_of(page, "quiz-score") == "1 of 1 right"
        assert text_of(page, "quiz-feedback").startswith("Right: step 1 is a mistake") and feedback in text_of(
            page, "quiz-feedback"
        )


def test_the_quiz_asks_about_steps_that_are_no_mistakes(browser, host):
    """Where a score of 0 means the class of the first examples, they are right. (Some example is a mistake in every run.)"""
    with watched(browser, host) as page:
        visit(page, host, "data=points&points=1,1,1;2,1,1;-1,-1,-1;-2,0,-1&tie=%2B1&passes=1&quiz=1")
        page.keyboard.press("1")
        assert text_of(page, "quiz-feedback") == "No: step 1 is right (a score of 0 means +1), so nothing changes."
        page.keyboard.press("2")
        assert text_of(page, "quiz-score") == "1 of 2 right"


def test_an_example_that_no_correction_helps_is_told_as_such(browser, host):
    with watched(browser, host) as page:
        visit(page, host, "data=points&points=0,0,1;1,1,-1&rule=pa&passes=1&bias=0&quiz=1")
        page.keyboard.press("2")
        said = "step 1 is right (loss = max(0, 1 − y·score) = 1, but x is 0: no correction lowers it), so nothing changes."
        assert text_of(page, "quiz-feedback") == f"Right: {said}"
