"""The engine in the browser has the bits of Python: orders, ledgers, weights and certificates of generated recipes."""

import json
import warnings
from fractions import Fraction

import numpy as np
import pytest

from separatrix import certify, reference
from separatrix.data.lectures import EXAMPLES
from separatrix.web.lab.document import certificate_part, document
from separatrix.web.lab.page import STATIC
from separatrix.web.lab.recipe import Recipe
from separatrix.web.lab.tables import DATA_SETS, files, lab_tables
from support.browser import watched
from support.lab_recipes import generated, reference_run
from support.scale import scaled

LECTURES = [{"data": f"lecture:{name}"} for name in EXAMPLES]
BATCH = """async ({ recipes, grams }) => {
    const [{ documentOf }, { KernelMachine, gramMatrix }, { training }] = await Promise.all(
        ["document", "machine", "training"].map((name) => import(`/engine/${name}.js`)));
    const lab = await (await fetch("/lab.json")).json();
    const readSet = async (name) => (await fetch(`/${name}.json`)).json();
    const plain = (value) => JSON.stringify(value, (_, part) => (ArrayBuffer.isView(part) ? Array.from(part) : part));
    const out = [];
    for (const recipe of recipes) {
        try { out.push(await documentOf({ ...lab.defaults, ...recipe }, { lab, readSet })); }
        catch (error) { out.push({ error: error.message }); }
    }
    const limits = { steps: 1e6, mistakes: 1e6 };
    for (const { gram, codes, settings } of grams) {
        const machine = new KernelMachine(settings, new Set(codes).size, gram);
        const run = training(machine, null, codes, settings, limits, { prove: () => "undecided", accuracy: null });
        let last = run.next();
        while (!last.done) last = run.next();
        out.push({ mistakes: last.value.mistakes, alpha: machine.alpha });
    }
    return plain(out);
}"""


@pytest.fixture(scope="module")
def recipes():
    return [*LECTURES, *generated(scaled(500))]


def gram_of(experiment):
    """The kernel values that Python computes, and the rest of what a machine with a kernel needs."""
    model, X = experiment.model, experiment.X
    inner = X @ X.T
    squares = np.diag(inner)
    distance = squares[:, None] + squares[None, :] - 2 * inner
    values = {
        "linear": inner,
        "poly": (model.gamma * inner + model.coef0) ** model.degree,
        "rbf": np.exp(-model.gamma * distance),
    }
    codes = np.unique(np.asarray(experiment.y), return_inverse=True)[1]
    keys = {"rule": "perceptron", "asks": "sign", "spread": "", "learner": "kernel"}
    settings = keys | {"tie": model.tie, "order": model.order, "passes": model.max_iter or 20, "seed": model.random_state}
    return {
        "gram": (values[model.kernel] + float(model.fit_intercept)).tolist(),
        "codes": codes.tolist(),
        "settings": settings,
    }


@pytest.fixture(scope="module")
def results(browser, lab_url, recipes):
    """Every recipe through the browser in one batch, and the kernels once more with Python's values."""
    experiments = [Recipe(**recipe).experiment() for recipe in recipes]
    kernels = [experiment for experiment in experiments if experiment.has_kernel]
    grams = [gram_of(experiment) for experiment in kernels]
    with watched(browser, lab_url) as page:
        page.goto(lab_url)
        page.set_default_timeout(120_000)
        found = json.loads(page.evaluate(BATCH, {"recipes": recipes, "grams": grams}))
    return list(zip(recipes, experiments, found, strict=False)), list(
        zip(kernels, grams, found[len(recipes) :], strict=True)
    )


def order_of(order, n, passes, seed):
    if order == "cyclic":
        return reference.cyclic(n, passes)
    return (reference.random if order == "random" else reference.permutation)(n, passes, seed)


def test_ledgers_and_weights_have_the_bits_of_the_reference(results):
    compared, corrected = 0, 0
    for recipe, experiment, found, *_ in results[0]:
        assert "error" not in found, (recipe, found)
        if experiment.has_kernel:
            continue
        n, passes = len(experiment.X), len(found["mistakes_per_pass"])
        steps = order_of(experiment.model.order, n, passes, experiment.model.random_state)
        assert found["x"][:n] == experiment.X.tolist() and found["steps"] == steps, recipe
        run = reference_run(experiment, steps)
        expected = run.mistakes
        assert found["mistakes"]["step"] == [mistake.step for mistake in expected], recipe
        assert found["mistakes"]["up"] == [mistake.up for mistake in expected], recipe
        assert found["mistakes"]["down"] == [mistake.down for mistake in expected], recipe
        by = found["mistakes"]["by"] or [1.0] * len(expected)
        assert by == [float(mistake.correction) for mistake in expected], recipe
        weights = [run.weights[0], *(run.weights[mistake.step] for mistake in expected)]
        assert found["w"] == [w.ravel().tolist() for w in weights], recipe
        compared, corrected = compared + 1, corrected + len(expected)
    assert compared > 0.6 * len(results[0]) and corrected > 10 * compared


def test_kernels_fed_with_pythons_values_have_the_bits_of_the_reference(results):
    assert len(results[1]) > 0.1 * len(results[0])
    for experiment, fed, found in results[1]:
        settings, gram = fed["settings"], np.array(fed["gram"])
        steps = order_of(settings["order"], len(gram), settings["passes"], settings["seed"])
        run = reference_run(experiment, steps, gram)
        cut = [mistake for mistake in run.mistakes if mistake.step <= (found["mistakes"]["step"] or [0])[-1]]
        assert found["mistakes"]["step"] == [mistake.step for mistake in cut]
        last = run.weights[cut[-1].step] if cut else run.weights[0]
        assert np.ravel(found["alpha"]).tolist() == np.ravel(last).tolist()
        assert len(run.mistakes) == len(cut), "a clean pass, after which nothing more is a mistake"


def test_passes_convergence_cycle_and_pocket_are_those_of_the_compiled_engine(results):
    """On numbers whose sums are exact in float64, compiled code has the same bits, whatever it fuses or reorders."""
    exact = [
        (recipe, experiment, found)
        for recipe, experiment, found, *_ in results[0]
        if np.array_equal(experiment.X, np.round(experiment.X))
        and recipe.get("rule", "perceptron") in ("perceptron", "margin")
        and not experiment.has_kernel
    ]
    assert len(exact) > 15
    for recipe, experiment, found in exact:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            model = experiment.model
            Z = experiment.X if experiment.phi is None else experiment.phi.fit_transform(experiment.X)
            model.fit(Z, experiment.y)
        assert found["mistakes_per_pass"] == model.mistakes_per_pass_, recipe
        assert found["converged"] == model.converged_, recipe
        assert found["cycle"] == (None if model.cycle_ is None else list(model.cycle_)), recipe
        assert found["kept"] == getattr(model.ledger_, "kept", None), recipe


def test_held_out_examples_are_scikit_learns(results):
    held = [(recipe, experiment, found) for recipe, experiment, found, *_ in results[0] if experiment.held_out is not None]
    assert len(held) > 5
    for recipe, experiment, found in held:
        n = len(experiment.X)
        assert found["n_train"] == n and found["x"][n:] == experiment.held_out[0].tolist(), recipe


def test_certificates_are_word_for_word_those_of_certify(results):
    """The verdict, the witness with its weights, the margin to the digits shown, and every other line.

    What is not unique is left out: the direction of a quasi-complete separation, of which a line names the coefficients, and
    an interval of the margin that floating point leaves wide.
    """
    verdicts = {}
    for recipe, experiment, found, *_ in results[0][: scaled(250)]:
        if experiment.has_kernel:
            continue
        Z = np.array(experiment.X if experiment.phi is None else experiment.phi.fit_transform(experiment.X))
        expected = certify(Z, experiment.y, fit_intercept=found["bias"])
        parts = [dict(found["certificate"]), certificate_part(expected)]
        for part in parts:
            part["lines"] = [line.split("; these diverge")[0] for line in part["lines"]]
        (mine, margin), (theirs, expected_margin) = [(part, part.pop("margin")) for part in parts]
        if expected.verdict == "separable":
            lower, upper = expected_margin
            if upper - lower > 1e-9 * upper:
                assert margin[0] <= upper and lower <= margin[1], recipe
                continue
            assert margin == pytest.approx(expected_margin, rel=1e-9), recipe
        assert mine == theirs, recipe
        verdicts[expected.verdict] = verdicts.get(expected.verdict, 0) + 1
    assert verdicts["separable"] > 30 and verdicts["inseparable"] > 30


def test_the_certificates_of_the_lectures_are_word_for_word_pythons(results):
    for recipe, experiment, found, *_ in results[0][: len(LECTURES)]:
        expected = document(experiment)
        assert found["certificate"]["lines"] == expected["certificate"]["lines"], recipe
        assert found["certificate"]["witness"] == expected["certificate"]["witness"]
        assert found["snippet"] == expected["snippet"]
        assert [bound["theorem"] for bound in found["bounds"]] == [bound["theorem"] for bound in expected["bounds"]]
        for mine, theirs in zip(found["bounds"], expected["bounds"], strict=True):
            assert mine["made"] == theirs["made"] and mine["possible"] == pytest.approx(theirs["possible"], rel=1e-6)


def test_short_witnesses_add_up_to_exactly_zero(results):
    checked = 0
    for recipe, experiment, found, *_ in results[0]:
        certificate = found.get("certificate")
        if not certificate or len(found["classes"]) > 2 or any("≈" in part["weight"] for part in certificate["witness"]):
            continue
        if not certificate["witness"]:
            continue
        Z = np.array(experiment.X if experiment.phi is None else experiment.phi.fit_transform(experiment.X))
        total = [Fraction(0)] * (Z.shape[1] + found["bias"])
        for part in certificate["witness"]:
            sign = 1 if found["y"][part["row"]] == 1 else -1
            for j, value in enumerate([*Z[part["row"]].tolist(), *([1.0] if found["bias"] else [])]):
                total[j] += sign * Fraction(part["weight"]) * Fraction(value)
        assert not any(total) and sum(Fraction(part["weight"]) for part in certificate["witness"]) == 1, recipe
        checked += 1
    assert checked > 10


def test_maps_and_kernels_end_to_end(browser, lab_url):
    """cos, exp and pow may differ in the last bit between libraries: here they agree within 1e-12."""
    recipes = [
        {
            "data": "random",
            "n": 30,
            "passes": 3,
            "map": "fourier",
            "components": 7,
            "gamma": 0.3,
            "seed": 5,
            "learner": "averaged",
        },
        {"data": "random", "n": 30, "passes": 3, "learner": "kernel", "gamma": 0.4, "noise": 0.1},
        {"data": "random", "n": 30, "passes": 3, "learner": "kernel", "kernel": "poly", "degree": 3, "classes": 3},
    ]
    with watched(browser, lab_url) as page:
        page.goto(lab_url)
        found = json.loads(page.evaluate(BATCH, {"recipes": recipes, "grams": []}))
    for recipe, mine in zip(recipes, found, strict=True):
        expected = document(Recipe(**recipe).experiment())
        assert mine["steps"] == expected["steps"] and mine["mistakes"]["step"] == expected["mistakes"]["step"]
        if expected["w"] is not None:
            assert np.allclose(mine["w"], expected["w"], rtol=0, atol=1e-12)
            assert np.allclose(mine["map"]["directions"], expected["map"]["directions"], rtol=0, atol=1e-12)


def test_the_tables_beside_the_page_are_what_python_says():
    for name, text in files().items():
        assert (STATIC / name).read_text(encoding="utf-8") == text, f"{name}: run python -m separatrix.web.lab.tables"
    assert set(lab_tables()["sets"]) == set(DATA_SETS)
