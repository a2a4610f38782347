"""In a notebook: tables and small pictures, true, escaped, without scripts of ours and without anything fetched."""

import re
from html.parser import HTMLParser

import numpy as np
import pandas as pd
import pytest
import sklearn
from sklearn.datasets import load_iris
from sklearn.utils import estimator_html_repr

from separatrix import (
    AveragedPerceptron,
    FisherDiscriminant,
    KernelPerceptron,
    MaxMarginClassifier,
    Perceptron,
    VotedPerceptron,
    certify,
    compare,
    trace,
)
from separatrix.data.lectures import EXAMPLES
from separatrix.estimators.notebook import COLOURS
from support.public_estimators import ESTIMATORS, seeded

L41, XOR = EXAMPLES["L4.1"], EXAMPLES["L4.xor"]
EVIL = ["<script>alert(1)</script>", "\"'><img src=x onerror=alert(1)>"]


class Page(HTMLParser):
    """The tags, the texts and the attributes of a piece of HTML, which must be closed properly."""

    def __init__(self, text):
        super().__init__()
        self.tags, self.texts, self.attributes, self.open = [], [], [], []
        self.feed(text)
        assert not self.open

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        self.attributes += attrs
        if tag not in ("br", "path"):
            self.open.append(tag)

    def handle_startendtag(self, tag, attrs):
        self.tags.append(tag)
        self.attributes += attrs

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.texts.append(data.strip())

    def after(self, name):
        return self.texts[self.texts.index(name) + 1]


def ours(estimator):
    """What an estimator shows below scikit-learn's diagram."""
    diagram, _, table = estimator._repr_html_().rpartition("</body>")
    assert len(diagram) == pytest.approx(len(estimator_html_repr(estimator)), abs=20)  # but for its number
    assert estimator._repr_mimebundle_()["text/html"].rpartition("</body>")[2] == table
    return table


def harmless(text):
    page = Page(text)
    assert not {"script", "style", "link", "img", "iframe", "object"} & set(page.tags)
    assert not [name for name, _ in page.attributes if name.startswith("on") or name in ("href", "src")]
    return page


def test_the_fit_of_the_lecture():
    page = harmless(ours(Perceptron(order="cyclic", fit_intercept=False, record=True).fit(L41.X, L41.y)))
    assert page.after("passes") == "2, 8 examples presented"
    assert page.after("mistakes") == "3, 0 of them in the last pass"
    assert page.after("ended") == "with a clean pass"
    assert page.after("radius R").startswith("4; bounds(X, y)")
    assert page.after("largest weights") == "x1 −3, x0 1"


def test_how_a_training_ended():
    cycle = Perceptron(order="cyclic", fit_intercept=False, max_iter=9).fit(XOR.X, XOR.y)
    assert harmless(ours(cycle)).after("ended") == "in a cycle: the weights of pass 1 come back every 1 passes"
    X, y = load_iris(return_X_y=True)
    stopped = Perceptron(early_stopping=True, random_state=0, max_iter=30, n_iter_no_change=3).fit(X, y)
    assert harmless(ours(stopped)).after("ended").startswith(f"early: back to pass {stopped.ledger_.cut.pass_number},")
    assert harmless(ours(Perceptron(max_iter=2).fit(XOR.X, XOR.y))).after("ended") == "without a clean pass"


@pytest.mark.parametrize("estimator", ESTIMATORS)
def test_every_estimator_shows_its_fit_and_nothing_before(estimator):
    X, y = load_iris(return_X_y=True, as_frame=True)
    made = seeded(estimator)
    assert ours(made) == ""
    page = harmless(ours(made.fit(X, y)))
    assert page.after("classes") == "0, 1, 2"
    two = harmless(ours(made.fit(X, y == 0)))
    assert two.after("classes") == "False, True"
    if hasattr(made, "coef_"):
        assert "petal length (cm)" in two.after("largest weights")


def test_a_stream_of_one_class_shows_too():
    assert harmless(ours(Perceptron(record=True).partial_fit([[1.0, 2.0]], ["a"]))).after("classes") == "a"


def test_no_table_where_scikit_learn_shows_text():
    with sklearn.config_context(display="text"):
        assert not hasattr(Perceptron().fit(L41.X, L41.y), "_repr_html_")


@pytest.mark.parametrize("model", [VotedPerceptron(random_state=0), KernelPerceptron(random_state=0)])
def test_the_picture_shows_what_is_predicted_and_the_mistaken_examples(model):
    X = np.random.default_rng(0).normal(size=(60, 2))
    y = np.where(X[:, 0] * X[:, 1] > 0, "same", "other")
    text = ours(model.fit(X, y))
    page = harmless(text)
    picture = text[text.index("<svg") : text.index("</svg>")]
    assert page.tags.count("svg") == 3 and "currentColor" in picture
    points = re.findall(r'translate\(([\d.]+) ([\d.]+)\)" fill="(#\w+)"', picture)
    assert len(points) == len(np.unique(model.ledger_.example))
    areas = dict(re.findall(r'<path d="([^"]+)" fill="(#\w+)" fill-opacity', picture))
    seen = np.full((72, 96), "", dtype=object)
    for path, colour in areas.items():
        for x, row, width in re.findall(r"M([\d.]+) ([\d.]+)h([\d.]+)", path):
            begin, end = float(x) / 2.5, (float(x) + float(width)) / 2.5
            seen[round(float(row) / 2.5), round(begin) : round(end)] = colour
    mistaken = X[np.unique(model.ledger_.example)]
    low, high = mistaken.min(axis=0), mistaken.max(axis=0)
    low, span = low - 0.08 * (high - low), 1.16 * (high - low)
    column, row = np.meshgrid(np.arange(96), np.arange(72))
    at = low + np.stack([(column + 0.5) / 96, 1 - (row + 0.5) / 72], axis=-1).reshape(-1, 2) * span
    assert (np.array(COLOURS)[(model.predict(at) == "same").astype(int)] == seen.ravel()).all()


def test_pictures_only_of_two_features_stored_rows_and_small_data():
    assert "<svg" not in ours(Perceptron().fit(L41.X, L41.y))
    assert "<svg" not in ours(Perceptron(record=True).fit(np.hstack([L41.X, L41.X]), L41.y))
    X = np.random.default_rng(0).normal(size=(4000, 2))
    assert "<svg" not in ours(Perceptron(record=True).fit(X, X[:, 0] * X[:, 1] > 0))
    changed = KernelPerceptron(random_state=0).fit(L41.X, L41.y).set_params(predict_with="nonsense")
    assert "<svg" not in changed._repr_html_().rpartition("</body>")[2]


def test_hostile_names_and_labels_are_only_text():
    X, y = pd.DataFrame(L41.X, columns=EVIL), np.where(L41.y > 0, *EVIL)
    for model in (VotedPerceptron(), AveragedPerceptron(), KernelPerceptron(), FisherDiscriminant(), MaxMarginClassifier()):
        page = harmless(ours(model.fit(X, y)))
        assert page.after("classes") == ", ".join(sorted(EVIL))
        assert not any(evil in model._repr_html_() for evil in EVIL), "scikit-learn's own part"
    xor = pd.DataFrame(XOR.X, columns=EVIL), np.where(XOR.y > 0, *EVIL)
    for thing in (certify(X, y), certify(*xor), trace(Perceptron(), X, y)):
        page = harmless(thing._repr_html_())
    assert EVIL[0] in page.texts
    found = compare(X, y, models=["Perceptron"], folds=2, curves=False)
    found.name = EVIL[0]
    assert EVIL[0] in harmless(found._repr_html_()).texts[0]


def test_certificates_are_tables():
    page = harmless(certify(L41.X, L41.y, fit_intercept=False)._repr_html_())
    assert page.after("w") == "(1, −5)" and page.after("margin γ") == "0.784464541"
    assert page.after("radius R") == "4" and page.after("mistakes at most") == "26"
    page = harmless(certify(XOR.X, XOR.y)._repr_html_())
    assert page.after("witness") == "1/4 × row 0, 1/4 × row 1, 1/4 × row 2, 1/4 × row 3: they add up to exactly 0"
    touching = EXAMPLES["L1.8"]
    page = harmless(certify(touching.X, touching.y, fit_intercept=False)._repr_html_())
    assert page.after("every example is right") == "under tie='+1'" and page.after("margin γ") == "0"


def test_traces_are_tables_with_a_picture_of_two_features():
    page = harmless(trace(Perceptron(order="cyclic", fit_intercept=False), L41.X, L41.y)._repr_html_())
    assert page.tags.count("tr") == 9 and page.tags.count("td") == 8 * 9 and page.tags.count("svg") == 3
    assert "mistake 3" in page.texts and "at most 26 mistakes" in " ".join(page.texts)
    X, y = load_iris(return_X_y=True)
    assert "svg" not in harmless(trace(Perceptron(max_iter=1), X, y == 0)._repr_html_()).tags
