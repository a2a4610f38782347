"""The document of a run says what the run did; the page that holds it holds nothing else; the program does the same."""

import json
import re
import warnings

import numpy as np
import pytest
from click.testing import CliRunner
from hypothesis import given, settings
from hypothesis import strategies as st

from separatrix import AveragedPerceptron, KernelPerceptron, MaxMarginClassifier, certify, trace
from separatrix.cli import app
from separatrix.data.errors import DataError
from separatrix.data.lectures import EXAMPLES
from separatrix.web.lab.document import document
from separatrix.web.lab.menus import LEARNERS
from separatrix.web.lab.page import embedded, inlined, page
from separatrix.web.lab.points import random_set
from separatrix.web.lab.recipe import Recipe
from support.scale import property_examples

RECIPES = [
    *({"data": f"lecture:{name}"} for name in EXAMPLES),
    {"data": "iris", "passes": 5},
    {"data": "iris", "passes": 5, "learner": "averaged", "order": "permutation", "holdout": 0.2, "columns": [2, 3]},
    {"data": "iris", "passes": 4, "positive": "versicolor", "learner": "pocket", "map": "products2", "columns": [0, 1]},
    {"data": "random", "n": 50, "noise": 0.1, "passes": 3, "learner": "voted", "rule": "margin", "margin": 2.0},
    {"data": "random", "n": 50, "classes": 4, "passes": 3, "rule": "pa1", "order": "random", "seed": 3},
    {"data": "random", "n": 30, "passes": 3, "rule": "arow", "map": "fourier", "components": 5},
    {"data": "random", "n": 30, "passes": 3, "learner": "passive-aggressive", "rule": "pa2", "C": 0.5},
    {"data": "points", "points": [(1.5, 2, "a"), (-1, 0.25, "b"), (2, -3, "c")], "passes": 10},
    {"data": "csv", "csv": "u,v,w,kind\n1,2,3,x\n3,-4,1,y\n2,2,0,x\n", "map": "disc", "passes": 9},
]


def made(recipe):
    return document(Recipe(**recipe).experiment())


@pytest.mark.parametrize("recipe", RECIPES, ids=lambda recipe: "-".join(str(value)[:20] for value in recipe.values()))
def test_the_document_is_the_trace(recipe):
    setup = Recipe(**recipe).experiment()
    found = document(setup)
    Z = setup.X if setup.phi is None else setup.phi.transform(setup.X)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        steps = trace(setup.model, Z, setup.y)
    assert found["steps"] == [row["example"] for row in steps.rows]
    assert found["mistakes"]["step"] == [row["step"] for row in steps.mistakes]
    assert found["w"][0] == [0.0] * len(found["w"][0])
    for row, w in zip(steps.mistakes, found["w"][1:], strict=True):
        assert np.array_equal(np.ravel(row["w"]), w)
    passes = [sum(start < row["step"] for start in found["pass_starts"]) for row in steps.rows]
    assert passes == [row["pass"] for row in steps.rows]
    assert found["R2"] == pytest.approx(steps.R2)
    assert (found["separator"] is None) == (steps.gamma is None)
    if steps.gamma is not None:
        assert found["separator"]["gamma"] == steps.gamma
    verdict = certify(Z, setup.y, fit_intercept=found["bias"]).verdict
    assert found["certificate"]["verdict"] == verdict
    if verdict == "separable":
        widest = MaxMarginClassifier(C=None, fit_intercept=found["bias"], tol=1e-6).fit(Z, setup.y)
        assert found["max_margin"]["margin"] == pytest.approx(widest.margin_)
    assert json.loads(embedded(found)) == json.loads(json.dumps(found))


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning", "ignore:the rows are sorted by label")
@pytest.mark.parametrize("recipe", RECIPES, ids=lambda recipe: "-".join(str(value)[:20] for value in recipe.values()))
def test_the_program_gives_the_same_numbers(recipe, capsys):
    found = made(recipe)
    exec(found["snippet"], {})
    printed = capsys.readouterr().out
    head = f"mistakes {found['n_mistakes']} in passes {found['mistakes_per_pass']} clean: {found['converged']}"
    assert printed.startswith(head)
    if found["held_out"] is not None:
        assert f"held-out accuracy {found['held_out']}" in printed
    lines = re.findall(r"^(\d+) (\d+) (\d+) (\[.*\]) (\S+)$", printed, re.M)
    assert [int(step) for _, step, *_ in lines] == found["mistakes"]["step"]
    for (*_, w, norm2), mine in zip(lines, found["w"][1:], strict=True):
        assert np.ravel(json.loads(w)).tolist() == mine
        assert float(norm2) == pytest.approx(float(np.dot(mine, mine)))
    assert f"Certificate: {found['certificate']['verdict']}" in printed


def test_a_kernel_has_no_weights_and_the_same_mistakes(capsys):
    found = made({"data": "lecture:L4.xor", "learner": "kernel", "kernel": "poly", "degree": 2, "bias": False})
    example = EXAMPLES["L4.xor"]
    model = KernelPerceptron(
        kernel="poly", degree=2, gamma=1.0, coef0=1.0, order="cyclic", fit_intercept=False, max_iter=None
    )
    model.fit(example.X, example.y)
    assert found["w"] is None
    assert found["mistakes"]["step"] == [m.step for m in model.ledger_]
    assert found["converged"] is model.converged_ is True
    exec(found["snippet"], {})
    assert capsys.readouterr().out.splitlines()[1:] == [f"{m.step} {m.example} {m.up}" for m in model.ledger_]


def test_a_long_run_is_cut_and_says_so(monkeypatch):
    noisy = {"data": "random", "n": 50, "noise": 0.3, "passes": 20}
    whole = made(noisy)
    monkeypatch.setattr("separatrix.web.lab.document.MOST_NUMBERS", 150)
    short = made(noisy)
    assert whole["complete"] and not short["complete"]
    assert short["n_steps"] == whole["n_steps"] == 1000
    assert len(short["w"]) - 1 == len(short["mistakes"]["step"]) == 150 // 3
    assert short["steps"] == whole["steps"][: whole["mistakes"]["step"][50] - 1]
    monkeypatch.setattr("separatrix.web.lab.document.MOST_NUMBERS", 99)
    with pytest.raises(DataError, match="50 random points is too large for a page: 50 examples of 2 features"):
        made(noisy)


def test_a_run_of_many_passes_is_cut_at_its_steps(monkeypatch):
    recipe = {"data": "points", "points": [(1, 1, "a"), (1.01, 1, "b")], "passes": 0, "learner": "averaged"}
    monkeypatch.setattr("separatrix.web.lab.document.MOST_STEPS", 31)
    found = made(recipe)
    assert len(found["steps"]) == 31 and not found["complete"] and found["n_steps"] > 500
    assert found["mistakes"]["step"][-1] <= 31 and len(found["w"]) == len(found["mistakes"]["step"]) + 1
    assert found["pass_starts"] == list(range(0, 31, 2))
    monkeypatch.setattr("separatrix.web.lab.document.MOST_KERNEL_MISTAKES", 3)
    kernel = made({"data": "random", "n": 60, "noise": 0.3, "passes": 2, "learner": "kernel"})
    assert len(kernel["mistakes"]["step"]) == 3 and not kernel["complete"]


def test_the_plane_says_what_it_hides():
    assert made({"data": "lecture:L3.6"})["plane"]["kind"] == "augmented"
    for recipe in ({"data": "iris", "passes": 2}, {"data": "iris", "positive": "setosa", "passes": 9}):
        plane = made(recipe)["plane"]
        across = np.array(plane["across"])
        assert np.allclose(across @ across.T, np.eye(2))
        assert plane["note"].startswith("4 features, projected onto")
    found = made({"data": "iris", "positive": "setosa", "passes": 9})
    w = np.array(found["w"][-1][:4])
    assert np.allclose(found["plane"]["across"][0], w / np.linalg.norm(w))


@settings(max_examples=property_examples(25))
@given(st.integers(2, 6), st.floats(0, 1.5), st.integers(0, 99))
def test_random_sets_have_the_margin_that_was_set(classes, gap, seed):
    X, y = random_set(40, classes, gap, 0.0, seed)
    if len(np.unique(y)) < classes:
        return
    best = certify(X, y, exact=False)
    assert best.verdict == "separable"
    if classes == 2:
        assert MaxMarginClassifier(C=None).fit(X, y).margin_ >= gap - 1e-6


def test_noise_is_the_share_of_wrong_labels():
    clean, noisy = random_set(4000, seed=1)[1], random_set(4000, noise=0.2, seed=1)[1]
    assert 0.17 < np.mean(clean != noisy) < 0.23
    with pytest.raises(ValueError, match="leaves no room"):
        random_set(50, classes=6, gap=4.9)


@pytest.mark.parametrize(
    ("recipe", "message"),
    [
        ({"data": "/etc/passwd"}, "there is no data set called '/etc/passwd'"),
        ({"data": "lecture:L9"}, "there is no data set called 'lecture:L9'"),
        ({"data": "points"}, "there are no points yet"),
        ({"data": "points", "points": [(0, 0, "a"), (1, 1, "a")]}, "a boundary needs two classes"),
        ({"data": "random", "n": 5000}, '"until convergence" supports at most 2,000 examples'),
        ({"data": "random", "n": 5000, "passes": 1, "learner": "kernel"}, "kernels for at most 2,000 examples"),
        ({"data": "csv", "csv": "PK\x03\x04"}, "is not text"),
        ({"data": "csv", "csv": "BZh91AY"}, "is not text"),
        ({"data": "csv", "csv": "a,b\n1,\x1b[2J\n"}, "is not text"),
        (
            {"data": "csv", "csv": "a,b,c\n1,=HYPERLINK(),x\n2,3,y\n"},
            "line 2, column 2 .b.: '=HYPERLINK\\(\\)' is not a finite",
        ),
        ({"data": "iris", "columns": [1, 9]}, "iris has 4 features: there is no feature number 9"),
        ({"data": "lecture:L4.1", "holdout": 0.2}, "leaves a class without examples"),
    ],
)
def test_what_cannot_be_run_is_named(recipe, message):
    with pytest.raises(DataError, match=message):
        Recipe(**recipe).experiment()


def test_nothing_in_the_data_can_end_the_script_it_stands_in():
    evil = "</script><script>alert(1)</script><!--"
    text = page(made({"data": "csv", "csv": f"a,b,kind\n1,2,{evil}\n3,1,x\n", "file": f"{evil}.csv", "passes": 3}))
    assert text.lower().count("</script") == 2
    assert "<!--" not in text
    body = re.search(r'<script type="application/json" id="document">(.*?)</script>', text, re.S)[1]
    assert evil in json.loads(body)["classes"]


def test_the_page_asks_nothing_of_anybody():
    text = page(made({"data": "lecture:L4.1"}))
    assert set(re.findall(r"https?://[^\s\"'`)]+", text)) == {"http://www.w3.org/2000/svg"}
    assert not re.search(r"\b(fetch|XMLHttpRequest|WebSocket|import)\s*\(", text)
    assert "default-src 'none'" in text
    script = inlined("page")
    assert not re.search(r"^(import|export)\b", script, re.M)


def test_trace_writes_the_page(tmp_path):
    out = tmp_path / "out.html"
    result = CliRunner().invoke(app, ["trace", "iris", "--positive", "setosa", "--html", str(out)])
    assert result.exit_code == 0 and str(out) in result.stdout
    body = re.search(r'id="document">(.*?)</script>', out.read_text(), re.S)[1]
    found = json.loads(body)
    assert found["name"] == "iris (setosa against the rest)"
    assert "read_source('iris', positive='setosa')" in found["snippet"]
    result = CliRunner().invoke(app, ["trace", "iris", "--html", str(tmp_path / "no" / "out.html")])
    assert result.exit_code == 2 and "out.html" in result.stderr and len(result.stderr.splitlines()) == 1


def test_every_learner_can_be_chosen():
    for name, choice in LEARNERS.items():
        found = made({"data": "lecture:L2.4", "learner": name, "passes": 3})
        assert found["learner"] == choice.estimator.__name__
    assert made({"data": "lecture:L2.4", "learner": "averaged", "passes": 3})["predicts"] == "averaged"
    assert isinstance(Recipe(learner="averaged").experiment().model, AveragedPerceptron)
