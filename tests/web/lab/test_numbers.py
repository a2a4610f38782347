"""What the page computes by itself from a document is what the engine computes: scores, averages, votes, the proof."""

import csv
import io
import json
import warnings

import numpy as np
import pytest
from sklearn.base import clone

from separatrix import AveragedPerceptron, KernelPerceptron, VotedPerceptron, trace
from separatrix.web.lab.recipe import Recipe
from support.browser import watched

pytestmark = pytest.mark.slow

RECIPES = [
    {"data": "lecture:L4.6"},
    {"data": "lecture:L3.6"},
    {"data": "iris", "passes": 3},
    {"data": "random", "n": 40, "noise": 0.1, "passes": 4, "order": "permutation", "rule": "pa1"},
    {"data": "random", "n": 40, "classes": 3, "noise": 0.1, "passes": 3},
    {"data": "iris", "columns": [0, 1], "positive": "versicolor", "passes": 3, "map": "products3"},
    {"data": "random", "n": 40, "noise": 0.1, "passes": 3, "map": "disc"},
    {"data": "random", "n": 40, "noise": 0.1, "passes": 3, "map": "fourier", "components": 6, "gamma": 0.3},
]
KERNELS = [
    {"data": "random", "n": 40, "noise": 0.1, "passes": 3, "learner": "kernel", "gamma": 0.4},
    {"data": "random", "n": 40, "classes": 3, "noise": 0.1, "passes": 2, "learner": "kernel", "kernel": "poly"},
]


@pytest.fixture(scope="module")
def page(browser, lab_url):
    with watched(browser, lab_url) as opened:
        opened.goto(lab_url)
        opened.wait_for_selector("#where b")
        yield opened


def asked(page, recipe, code):
    """What a function of the page's own modules returns for the document of a recipe."""
    return page.evaluate(
        """async ([recipe, code]) => {
            const [run, fields, frame, exported] = await Promise.all(
                ["run", "fields", "frame", "exports"].map((name) => import(`/${name}.js`)));
            const options = { method: "POST", headers: { "content-type": "application/json" }, body: recipe };
            const read = new run.Run(await (await fetch("/api/run", options)).json());
            const view = new fields.Fields(read, new frame.Frame(read, 300, 240));
            const places = Array.from({ length: view.size }, (_, g) => view.frame.lift(view.place(g)));
            const plain = (field) => view.onGrid(field).map((values) => Array.from(values));
            if (code === "csv") return exported.traceCsv(read);
            if (code === "averaged") return read.averaged(read.steps);
            return { places, last: plain(view.last(read.m)), averaged: plain(view.averaged(read.steps)),
                     voted: plain(view.voted(read.steps)), back: plain(view.voted(Math.floor(read.steps / 2))) };
        }""",
        [json.dumps(recipe), code],
    )


def fitted(recipe, kind, **more):
    setup = Recipe(**recipe).experiment()
    Z = setup.X if setup.phi is None else setup.phi.fit_transform(setup.X)
    model = clone(setup.model) if kind is None else kind(**{**setup.model.get_params(), **more})
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return setup, Z, model.fit(Z, setup.y)


@pytest.mark.parametrize("recipe", RECIPES, ids=str)
def test_the_csv_of_the_page_is_the_trace(page, recipe):
    setup, Z, model = fitted(recipe, None)
    expected = trace(model, Z, setup.y)
    rows = list(csv.DictReader(io.StringIO(asked(page, recipe, "csv"))))
    assert len(rows) == len(expected.rows)
    for mine, row in zip(rows, expected.rows, strict=True):
        assert [int(mine[name]) for name in ("pass", "step", "example")] == [row["pass"], row["step"], row["example"]]
        assert mine["mistake"] == str(row["mistake"]).lower()
        assert mine["rival"] == ("" if row["rival"] is None else str(row["rival"]))
        assert float(mine["score"]) == pytest.approx(row["score"], abs=1e-9)
        assert np.ravel(json.loads(mine["w"])).tolist() == np.ravel(row["w"]).tolist()
        for name in ("k", "norm2", "k_R2", "progress", "k_gamma", "k2_gamma2"):
            if row[name] is None:
                assert mine[name] == ""
            else:
                assert float(mine[name]) == pytest.approx(row[name], rel=1e-9, abs=1e-9)


@pytest.mark.parametrize("recipe", RECIPES, ids=str)
def test_averages_and_votes_over_the_plane(page, recipe):
    setup, _, averaged = fitted(recipe, AveragedPerceptron)
    weights = np.hstack([averaged.coef_, averaged.intercept_[:, None]]) if averaged.fit_intercept else averaged.coef_
    assert np.allclose(asked(page, recipe, "averaged"), weights.ravel())
    if setup.X.shape[1] == 1:
        return
    found = asked(page, recipe, "fields")
    places = np.array(found["places"])
    mapped = places if setup.phi is None else setup.phi.transform(places)
    _, _, voted = fitted(recipe, VotedPerceptron)
    for values, model in ((found["averaged"], averaged), (found["voted"], voted)):
        scores = model.decision_function(mapped).reshape(len(places), -1)
        mine = np.array(values).T / (averaged.n_seen_ if model is voted else 1)
        close = np.isclose(mine, scores, atol=1e-7)
        assert close.mean() > 0.999, "all but points that a voter's boundary passes through"


@pytest.mark.parametrize("recipe", KERNELS, ids=str)
def test_a_kernels_scores_averages_and_votes_over_the_plane(page, recipe):
    found = asked(page, recipe, "fields")
    places = np.array(found["places"])
    for how in ("last", "averaged", "voted"):
        _, _, model = fitted(recipe, KernelPerceptron, predict_with=how)
        scores = model.decision_function(places).reshape(len(places), -1)
        mine = np.array(found[how]).T / (model.n_seen_ if how == "voted" else 1)
        assert np.isclose(mine, scores, atol=1e-7).mean() > 0.999
    _, _, model = fitted(recipe, KernelPerceptron, predict_with="voted")
    half = model.after(model.n_seen_ // 2)
    scores = half.decision_function(places).reshape(len(places), -1)
    assert np.isclose(np.array(found["back"]).T / half.n_seen_, scores, atol=1e-7).mean() > 0.999
