"""The engine in the browser has the bits of Python: orders, ledgers, weights and certificates of generated recipes."""

import json
import re
import warnings
from fractions import Fraction

import numpy as np
import pytest
from sklearn.metrics.pairwise import pairwise_kernels

from separatrix import certify, reference
from separatrix.data.lectures import EXAMPLES
from separatrix.engine.rules import RULES
from separatrix.proofs.search.first_witness import MOST_EQUATIONS
from separatrix.web.lab.document import certificate_part, document
from separatrix.web.lab.page import STATIC
from separatrix.web.lab.recipe import Recipe
from separatrix.web.lab.tables import DATA_SETS, files, lab_tables
from support.browser import watched
from support.documents import ROOT
from support.lab_recipes import badly_scaled, generated, reference_run
from support.scale import scaled

LECTURES = [{"data": f"lecture:{name}"} for name in EXAMPLES]
BATCH = """async ({ recipes, fed }) => {
    const [{ documentOf }, { KernelMachine, LinearMachine }, { training }] = await Promise.all(
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
    for (const { gram, Z, codes, settings } of fed) {
        const K = new Set(codes).size;
        const machine = gram ? new KernelMachine(settings, K, gram) : new LinearMachine(settings, K, Z[0].length);
        const run = training(machine, Z ?? null, codes, settings, limits, { prove: () => "undecided", accuracy: null });
        let last = run.next();
        while (!last.done) last = run.next();
        out.push({ mistakes: last.value.mistakes, weights: machine.alpha ?? machine.w });
    }
    return plain(out);
}"""


@pytest.fixture(scope="module")
def recipes():
    return [*LECTURES, *generated(scaled(500))]


def fed(experiment):
    """The kernel values or the features that Python computes, and the rest of what a machine needs."""
    model, X = experiment.model, experiment.X
    codes = np.unique(np.asarray(experiment.y), return_inverse=True)[1]
    keys = {"passes": model.max_iter or 20, "seed": model.random_state, "order": model.order, "tie": model.tie}
    if experiment.has_kernel:
        inner = X @ X.T
        squares = np.diag(inner)
        distance = squares[:, None] + squares[None, :] - 2 * inner
        values = {
            "linear": inner,
            "poly": (model.gamma * inner + model.coef0) ** model.degree,
            "rbf": np.exp(-model.gamma * distance),
        }
        inputs = {"gram": (values[model.kernel] + float(model.fit_intercept)).tolist()}
        keys |= {"rule": "perceptron", "asks": "sign", "spread": "", "learner": "kernel"}
    else:
        Z = np.asarray(experiment.phi.fit_transform(X))
        inputs = {"Z": (reference.augment(Z) if model.fit_intercept else Z).tolist()}
        rule = RULES[model.rule]
        keys |= {"rule": rule.name, "asks": rule.asks, "spread": rule.spread, "learner": "perceptron"}
        keys |= {"C": model.C, "margin": getattr(model, "margin", 1.0)}
    return {**inputs, "codes": codes.tolist(), "settings": keys}


@pytest.fixture(scope="module")
def results(browser, lab_url, recipes):
    """Every recipe through the browser in one batch, and kernels and maps with cos once more with Python's values."""
    experiments = [Recipe(**recipe).experiment() for recipe in recipes]
    waves = [
        Recipe(**recipe | {"map": "fourier", "components": 7}).experiment() for recipe in generated(scaled(100), seed=1)
    ]
    with_values = [each for each in experiments if each.has_kernel] + [each for each in waves if not each.has_kernel]
    inputs = [fed(experiment) for experiment in with_values]
    with watched(browser, lab_url) as page:
        page.goto(lab_url)
        page.set_default_timeout(120_000)
        found = json.loads(page.evaluate(BATCH, {"recipes": recipes, "fed": inputs}))
    return list(zip(recipes, experiments, found, strict=False)), list(
        zip(with_values, inputs, found[len(recipes) :], strict=True)
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


def test_kernels_and_maps_fed_with_pythons_values_have_the_bits_of_the_reference(results):
    assert sum(experiment.has_kernel for experiment, *_ in results[1]) > 0.1 * len(results[0])
    assert sum(not experiment.has_kernel for experiment, *_ in results[1]) > 0.1 * len(results[0])
    for experiment, inputs, found in results[1]:
        settings = inputs["settings"]
        n = len(experiment.X)
        steps = order_of(settings["order"], n, settings["passes"], settings["seed"])
        run = reference_run(experiment, steps, np.array(inputs["gram"]) if experiment.has_kernel else None)
        assert found["mistakes"]["step"] == [mistake.step for mistake in run.mistakes], "also after a clean pass"
        by = found["mistakes"]["by"] or [1.0] * len(run.mistakes)
        assert by == [float(mistake.correction) for mistake in run.mistakes]
        last = run.weights[run.mistakes[-1].step] if run.mistakes else run.weights[0]
        assert np.ravel(found["weights"]).tolist() == np.ravel(last).tolist()


def test_passes_convergence_cycle_and_pocket_are_those_of_the_compiled_engine(results):
    """On numbers whose sums are exact in float64, compiled code has the same bits, whatever it fuses or reorders."""
    exact = [
        (recipe, experiment, found)
        for recipe, experiment, found, *_ in results[0]
        if np.array_equal(experiment.X, np.round(experiment.X))
        and found["rule"]["asks"] != "loss"
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


def test_held_out_examples_are_scikit_learns_and_judged_as_by_the_compiled_engine(results):
    held = [(recipe, experiment, found) for recipe, experiment, found, *_ in results[0] if experiment.held_out is not None]
    assert len(held) > 5
    compared = 0
    for recipe, experiment, found in held:
        n = len(experiment.X)
        assert found["n_train"] == n and found["x"][n:] == experiment.held_out[0].tolist(), recipe
        expected = document(experiment)
        if found["mistakes_per_pass"] == expected["mistakes_per_pass"]:  # else rounding has made another run of it
            assert found["held_out"] == expected["held_out"], recipe
            compared += 1
    assert compared > 0.8 * len(held)


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
            if upper - lower > 1e-15 * upper:
                assert margin[0] <= upper and lower <= margin[1] and mine["verdict"] == theirs["verdict"], recipe
                continue
            assert margin == pytest.approx(expected_margin, rel=1e-9), recipe
        if expected.verdict != "separable" and Z.shape[1] * max(1, len(found["classes"]) - 1) > MOST_EQUATIONS:
            assert all(mine[key] == theirs[key] for key in ("verdict", "ties", "separation")), recipe
            continue
        assert mine == theirs, recipe
        verdicts[expected.verdict] = verdicts.get(expected.verdict, 0) + 1
    assert verdicts["separable"] > 30 and verdicts["inseparable"] > 30


def test_the_certificates_of_the_lectures_are_word_for_word_pythons(results):
    for recipe, experiment, found, *_ in results[0][: len(LECTURES)]:
        expected = document(experiment)
        assert found["certificate"]["lines"] == expected["certificate"]["lines"], recipe
        assert found["certificate"]["witness"] == expected["certificate"]["witness"]
        assert [bound["theorem"] for bound in found["bounds"]] == [bound["theorem"] for bound in expected["bounds"]]
        for mine, theirs in zip(found["bounds"], expected["bounds"], strict=True):
            assert mine["made"] == theirs["made"] and mine["possible"] == pytest.approx(theirs["possible"], rel=1e-6)


def test_the_programs_are_pythons_letter_by_letter(results):
    for recipe, experiment, found, *_ in results[0]:
        assert found["snippet"] == experiment.snippet(), recipe


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


VALUES = """async (cases) => {
    const [{ documentOf }, { gramMatrix }, { mapFeatures }] = await Promise.all(
        ["document", "machine", "maps"].map((name) => import(`/engine/${name}.js`)));
    const lab = await (await fetch("/lab.json")).json();
    const readSet = async (name) => (await fetch(`/${name}.json`)).json();
    return Promise.all(cases.map(async (recipe) => {
        const doc = await documentOf({ ...lab.defaults, ...recipe }, { lab, readSet });
        const X = doc.x.slice(0, doc.n_train);
        return doc.kernel ? gramMatrix(doc.kernel, X, false) : X.map((x) => mapFeatures(doc.map, x));
    }));
}"""


@pytest.mark.filterwarnings("ignore::UserWarning")
def test_maps_and_kernels_end_to_end(browser, lab_url):
    """cos, exp and pow may differ in the last bit between libraries: here they agree within 1e-12 of the largest value.

    Python has ‖x − x'‖² from ‖x‖² + ‖x'‖² − 2⟨x, x'⟩, which cancels where vectors are long.
    """
    parts = ({"learner": "kernel"}, {"learner": "averaged", "map": "fourier", "components": 9})
    recipes = [recipe | parts[k % 2] | {"passes": 1} for k, recipe in enumerate(generated(scaled(60), seed=2))]
    with watched(browser, lab_url) as page:
        page.goto(lab_url)
        found = page.evaluate(VALUES, recipes)
    for recipe, mine in zip(recipes, found, strict=True):
        experiment = Recipe(**recipe).experiment()
        if experiment.has_kernel:
            model = experiment.model.fit(experiment.X, experiment.y)
            theirs = pairwise_kernels(
                experiment.X,
                metric=model.kernel,
                filter_params=True,
                gamma=model.gamma_,
                degree=model.degree,
                coef0=model.coef0,
            )
        else:
            theirs = experiment.phi.fit_transform(experiment.X)
        cancelled = recipe["gamma"] * np.square(experiment.X).sum(axis=1).max() if recipe["learner"] == "kernel" else 0.0
        assert np.abs(np.array(mine) - theirs).max() <= 1e-12 * max(np.abs(theirs).max(), 1e-3 * cancelled), recipe


def test_margins_that_floating_point_cannot_tell_are_exact(browser, lab_url):
    recipes = badly_scaled(scaled(60))
    with watched(browser, lab_url) as page:
        page.goto(lab_url)
        found = json.loads(page.evaluate(BATCH, {"recipes": recipes, "fed": []}))
    separable = 0
    for recipe, mine in zip(recipes, found, strict=True):
        experiment = Recipe(**recipe).experiment()
        theirs = certificate_part(certify(experiment.X, experiment.y, fit_intercept=recipe["bias"]))
        for key in ("verdict", "witness", "separation", "radius"):
            assert mine["certificate"][key] == theirs[key], recipe
        if theirs["verdict"] == "separable":
            separable += 1
            assert mine["certificate"]["margin"] == pytest.approx(theirs["margin"], rel=1e-12), recipe
            assert mine["certificate"]["lines"][2:5] == theirs["lines"][2:5], recipe
    assert separable > 10


def test_the_tables_beside_the_page_are_what_python_says():
    for name, text in files().items():
        assert (STATIC / name).read_text(encoding="utf-8") == text, f"{name}: run python -m separatrix.web.lab.tables"
    assert set(lab_tables()["sets"]) == set(DATA_SETS)


def test_the_page_of_the_lab_lists_every_setting_and_every_choice():
    text = re.sub(r"```.*?```", "", (ROOT / "docs" / "lab.md").read_text(encoding="utf-8"), flags=re.DOTALL)
    named = set(re.findall(r"`([^`]+)`", text))
    named |= {name.strip('"') for name in named}
    tables = lab_tables()
    choices = [name for key in ("learners", "rules", "orders", "maps", "kernels", "sets") for name in tables[key]]
    ties = [*tables["two_class_ties"], *tables["multi_class_ties"]]
    data = [f"lecture:{entry['name']}" for entry in tables["lectures"]]
    assert named >= {*tables["defaults"], *choices, *ties, *data}
