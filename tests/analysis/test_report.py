"""The report of an evaluation: a page that stands alone, in a real browser, whatever the data say."""

import re
from html.parser import HTMLParser

import numpy as np
import pandas as pd
import pytest

from separatrix import AveragedPerceptron, KernelPerceptron, Model, TextFeatures, evaluate
from separatrix.analysis.evaluating.charts import ticks_between
from separatrix.analysis.evaluating.report import report_page
from support.browser import axe, watched

HOSTILE = "<img src=x onerror=alert(1)>\"'&</script><script>alert(2)</script>"


class Tags(HTMLParser):
    """The tags of a page, and those that do not nest."""

    def __init__(self, page):
        super().__init__()
        self.tags, self.open = [], []
        self.feed(page)

    def handle_starttag(self, tag, attributes):
        self.tags.append((tag, dict(attributes)))
        if tag not in ("meta", "line", "circle", "rect", "polyline"):
            self.open.append(tag)

    def handle_startendtag(self, tag, attributes):
        self.tags.append((tag, dict(attributes)))

    def handle_endtag(self, tag):
        assert self.open.pop() == tag


def texts(K, n=240, seed=0):
    """Texts of K classes that are not quite told apart, hostile ones among them."""
    rng = np.random.default_rng(seed)
    y = rng.integers(0, K, n)
    seen = np.where(rng.random(n) < 0.2, rng.integers(0, K, n), y)
    X = [f"word{k} word{k} {HOSTILE} w{rng.integers(0, 40)}" for k in seen]
    return X, np.array([f"class {HOSTILE} {k}" if k == 0 else f"class {k}" for k in range(K)])[y]


def evaluated(K, **parameters):
    X, y = texts(K)
    model = Model(AveragedPerceptron(random_state=0, **parameters), TextFeatures(n_features=1 << 10)).fit(X, y)
    positive = "class 1" if K == 2 else None
    return evaluate(model, *texts(K, seed=1), name=HOSTILE, positive=positive), model


@pytest.mark.parametrize("K", [2, 3, 30])
def test_hostile_names_and_texts_are_escaped_and_the_page_nests(K):
    evaluation, model = evaluated(K)
    page = report_page(evaluation, model)
    assert HOSTILE not in page and "<img" not in page and "<script" not in page
    tags = Tags(page)
    assert tags.open == []
    names = {tag for tag, _ in tags.tags}
    assert not names & {"script", "link", "img", "iframe", "object", "form", "base"}
    assert not [attributes for _, attributes in tags.tags if {"href", "src", "onerror", "onclick"} & set(attributes)]
    assert "&lt;img src=x onerror=alert(1)&gt;" in page


def test_the_page_has_what_the_evaluation_has(tmp_path):
    evaluation, model = evaluated(2, calibrate="sigmoid")
    evaluation = evaluation.optimize("f1")
    evaluation.report(tmp_path / "report.html", model=model)
    page = (tmp_path / "report.html").read_text(encoding="utf-8")
    low, high = evaluation.interval
    for words in (
        *(f"{evaluation.accuracy:.4f}", f"95 % interval {low:.4f} to {high:.4f} (Wilson)", "majority baseline"),
        *("ROC curve of class 1", "Precision and recall of class 1", "Calibration", "Scores by class"),
        *("Confusion", "Most confident errors", "Weights", "the figures are optimistic", "word1"),
        *(f"Area {evaluation.roc_auc:.4f}", f"Average precision {evaluation.average_precision:.4f}"),
    ):
        assert words in page, words
    assert page.count("<li><strong>") == len(evaluation.errors) > 3
    curve = re.findall(r'<polyline class="curve" points="([^"]+)"', page)[0].split()
    assert curve[0] == "46.0,246.0" and curve[-1] == "348.0,12.0"  # from (0, 0) to (1, 1)
    assert list(tmp_path.iterdir()) == [tmp_path / "report.html"]


def test_what_there_is_not_is_left_out():
    X, y = texts(3)
    features = TextFeatures(n_features=64)
    model = KernelPerceptron(random_state=0).fit(features.fit_transform(X).toarray(), y)
    page = report_page(evaluate(model, features.transform(X).toarray(), y), model)
    for words in ("<h2>Weights", "Calibration", "ROC curve"):
        assert words not in page
    assert "lead of the true class" in page
    one_class = evaluate(model, features.transform(X).toarray()[y == y[1]], y[y == y[1]])
    assert "undefined" in report_page(one_class) and "the rows are of 1 class" in report_page(one_class)


def test_a_failed_report_leaves_the_earlier_one(tmp_path):
    evaluation, _ = evaluated(2)
    (tmp_path / "report.html").write_text("earlier")
    with pytest.raises(AttributeError):
        evaluation.report(tmp_path / "report.html", model=object())
    assert (tmp_path / "report.html").read_text() == "earlier"
    with pytest.raises(FileNotFoundError):
        evaluation.report(tmp_path / "no" / "report.html")


@pytest.mark.parametrize("ends", [(0.0, 1.0), (-3.2, 4.9), (0.0, 1e6), (-1e-4, 3e-4)])
def test_ticks_are_few_and_inside(ends):
    ticks = ticks_between(*ends)
    assert 2 <= len(ticks) <= 7 and min(ticks) >= ends[0] and max(ticks) <= ends[1]


@pytest.mark.browser
@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("K", [2, 12])
def test_a_browser_shows_it_without_a_request_or_a_fault(browser, tmp_path, K, scheme):
    evaluation, model = evaluated(K, calibrate="sigmoid")
    path = tmp_path / "report.html"
    evaluation.report(path, model=model)
    for width in (1280, 390):
        size = {"width": width, "height": 900}
        with watched(browser, path.as_uri(), viewport=size, color_scheme=scheme, bypass_csp=True) as page:
            page.goto(path.as_uri())
            assert page.evaluate("document.documentElement.scrollWidth") <= width
            assert page.locator("h1").inner_text() == f"Evaluation on {HOSTILE}"
            assert page.locator("img, script").count() == 0
            page.evaluate(axe())
            found = page.evaluate("axe.run()")
            assert [(fault["id"], fault["nodes"][0]["html"][:200]) for fault in found["violations"]] == []


def test_what_cannot_predict_is_not_evaluated():
    X, y = pd.DataFrame({"a": [1.0, 2.0]}), [0, 1]
    with pytest.raises(TypeError, match="evaluate takes the classifier first, then X and y: a DataFrame cannot predict"):
        evaluate(X, y, Model())
    with pytest.raises(ValueError, match="this Model is not fitted yet"):
        evaluate(Model(), X, y)
