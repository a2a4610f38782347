"""`train --tune`: the candidates are evaluated as trainings of their own would be, and the choice can be repeated."""

import itertools
import json
import shlex
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from click.testing import CliRunner

from separatrix import train
from separatrix.cli import app
from separatrix.data.reading import open_source
from separatrix.features.table import TableFeaturizer
from separatrix.learners.linear import AveragedLearner, LastLearner
from separatrix.training.tuning import search as tuning
from separatrix.training.tuning.candidates import STARTS, Candidate, Stage, candidates_of, stages
from separatrix.training.tuning.examples import read_examples
from separatrix.training.tuning.folds import Pipeline, cross_validate
from separatrix.training.tuning.search import Search, tune

RNG = np.random.default_rng(5)
N = 180
X = RNG.normal(size=(N, 3))
NOISY = np.where(X[:, 0] + 0.5 * X[:, 1] + RNG.normal(size=N) > 0, "yes", "no")
CLEAN = np.array(["a", "b", "c"])[np.digitize(X[:, 0], [-0.5, 0.5])]
DEFAULT = Candidate((), "pa1", 1.0, 10, 1)
pytestmark = pytest.mark.filterwarnings("ignore::separatrix.training.recipe.TrainingWarning")


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("tuning")
    for name, labels in (("noisy", NOISY), ("clean", CLEAN)):
        pd.DataFrame({"x": X[:, 0], "z": X[:, 1], "w": X[:, 2], "y": labels}).to_csv(folder / f"{name}.csv", index=False)
    words = np.where(RNG.random(N) < 0.2, "fine", np.where(NOISY == "yes", "good", "bad"))
    texts = [f"{a} {b} {c}" for a, b, c in zip(words, RNG.choice(["film", "plot"], N), RNG.permutation(words), strict=True)]
    pd.DataFrame({"y": NOISY, "review": texts}).to_csv(folder / "texts.csv", index=False)
    return folder


def command(*arguments):
    done = CliRunner().invoke(app, [*map(str, arguments)])
    assert done.exit_code == 0, done.output + repr(done.exception)
    return done.output


def failure(*arguments):
    done = CliRunner().invoke(app, ["train", *map(str, arguments)])
    assert done.exit_code == 2, done.output
    return done.stderr


def maker(learner=AveragedLearner, **settings):
    def make(changes):
        changed = {"rule": "pa1", "C": 1.0, "passes": 10, "average_from": 1} | dict(changes)
        averaging = {"average_from": changed["average_from"]} if learner is AveragedLearner else {}

        def new():
            C, passes = float(changed["C"]), changed["passes"]
            return learner(rule=changed["rule"], C=C, max_iter=passes, random_state=0, **averaging, **settings)

        return Pipeline(lambda: TableFeaturizer(numbers=changed.get("numbers", "bins")), new)

    return make


def search_of(path, make=None, default=DEFAULT, **settings):
    examples = read_examples(open_source(path, label="y"), memory=1 << 30)
    return Search(examples, make or maker(), default, **{"n_folds": 3, "seed": 0, "budget": 1e9} | settings)


@pytest.mark.parametrize("rule", ["pa1", "arow", "perceptron"])
@pytest.mark.parametrize("name", ["noisy", "clean"])
def test_candidates_are_evaluated_as_trainings_of_their_own(folder, name, rule):
    # Of "clean.csv" the passes soon are without a mistake, where a training ends.
    make = maker(class_weight="balanced")
    search = search_of(folder / f"{name}.csv", make, Candidate((), rule, 1.0, 10, 1))
    search.run(Stage((), {rule: [4.0, 0.01]}, 12))
    assert len(search.splits) == 3 * tuning.REPEATS
    compared = 0
    for machine, outcome in search.outcomes.items():
        for k, (passes, start) in enumerate(outcome.keys):
            if passes not in (1, 3, 10, 12) or len(outcome.bits) < 3:
                continue
            recipe = Candidate((), rule, machine.C, passes, start).settings()
            alone = cross_validate(search.examples, make(recipe), 3, seed=0)
            right = alone.predicted == search.examples.codes
            for split, bits in zip(search.splits[:3], outcome.bits, strict=False):
                assert np.array_equal(np.unpackbits(bits[k], count=len(split.test)), right[split.test]), (
                    machine,
                    passes,
                    start,
                )
            compared += 1
    assert compared >= 8


def test_last_weights_have_no_average(folder):
    search = search_of(folder / "noisy.csv", maker(LastLearner))
    search.run(Stage((), {"pa1": [0.1]}, 10))
    keys = {key for outcome in search.outcomes.values() for key in outcome.keys}
    assert {start for _, start in keys} == {1} and {passes for passes, _ in keys} == set(range(1, 11))
    alone = cross_validate(search.examples, maker(LastLearner)({"C": 0.1, "passes": 4}), 3, seed=0)
    outcome = next(of for machine, of in search.outcomes.items() if machine.C == 0.1)
    at = outcome.keys.index((4, 1))
    right = alone.predicted == search.examples.codes
    for split, bits in zip(search.splits[:3], outcome.bits, strict=False):
        assert np.array_equal(np.unpackbits(bits[at], count=len(split.test)), right[split.test])


@pytest.mark.parametrize(
    "arguments",
    [
        ("noisy.csv", "--label", "y"),
        ("texts.csv", "--label", "y", "--text", "review", "--class-weight", "balanced"),
        ("noisy.csv", "--learner", "last", "--seed", "3", "--drop", "w", "--no-bias", "--folds", "3"),
    ],
)
def test_the_printed_command_gives_the_same_bytes(folder, tmp_path, arguments):
    name, *others = arguments
    output = command("train", folder / name, *others, "--tune", "-o", tmp_path / "tuned.sepx")
    assert "tried" in output and "without tuning" in output
    tuned = (tmp_path / "tuned.sepx").read_bytes()
    repeat = next(line for line in output.splitlines() if "to repeat: " in line).partition("to repeat: ")[2]
    program, *words = shlex.split(repeat)
    assert program == "separatrix" and "--tune" not in words and "--folds" not in words
    assert words[words.index("-o") + 1] == str(tmp_path / "tuned.sepx")
    command(*words)
    assert (tmp_path / "tuned.sepx").read_bytes() == tuned


def test_python_finds_the_same_recipe(folder, tmp_path):
    document = json.loads(command("train", folder / "noisy.csv", "--tune", "--json", "-o", tmp_path / "t.sepx"))
    model = train(pd.read_csv(folder / "noisy.csv"), label="y", tune=True)
    chosen = model.summary["tuning"]["chosen"]
    assert chosen == document["tuning"]["chosen"] and chosen
    assert model.summary["tuning"]["repeat"].startswith("train(data, label='y'")
    again = train(pd.read_csv(folder / "noisy.csv"), label="y", **chosen)
    assert np.array_equal(again.estimator.coef_, model.estimator.coef_)
    assert model.facts["settings"] == again.facts["settings"]
    assert model.cross_validation.n_folds == 5


def test_the_printed_call_can_be_made_with_data_in_memory(folder, tmp_path):
    frame = pd.read_csv(folder / "noisy.csv")
    data, labels = frame.drop(columns="y"), frame["y"]
    held_out = data[:40], labels[:40]
    texts = ["free money" if label == labels[0] else "see you" for label in labels]
    weights = dict.fromkeys(sorted(set(labels)), 2)
    for given, options in [
        (data, {"label": labels, "validate": held_out, "report": tmp_path / "report.html"}),
        (texts, {"label": labels}),
        (Path(folder / "noisy.csv"), {"label": "y", "class_weight": weights, "output": tmp_path / "model.sepx"}),
        ([str(folder / "noisy.csv")], {"label": "y", "drop": ["w"]}),
    ]:
        tuned = train(given, tune=True, budget=0.5, **options)
        call = tuned.summary["tuning"]["repeat"]
        again = eval(call, {"train": train, "data": given, "labels": labels, "held_out": held_out})
        assert again.facts == tuned.facts and np.array_equal(again.estimator.coef_, tuned.estimator.coef_), call


def test_the_default_is_a_candidate_and_wins_ties(tmp_path):
    table = {"x": [0.0, 1.0] * 40, "y": ["a", "b"] * 40}
    summary = train(table, label="y", tune=True).summary
    assert summary["tuning"]["figure"] == summary["tuning"]["default_figure"] == 1.0
    assert summary["tuning"]["chosen"] == {}
    assert "the recipe without tuning is the best of them" in str(summary)


def test_without_time_the_default_is_evaluated_all_the_same(folder):
    summary = train(folder / "noisy.csv", tune=True, budget=0).summary
    tuning_figures = summary["tuning"]
    assert not tuning_figures["complete"] and tuning_figures["splits"] == 1
    assert tuning_figures["figure"] >= tuning_figures["default_figure"] > 0.4
    assert tuning_figures["without_fold_mean"] is None
    assert "the budget of 0 s is spent" in str(summary)


def test_a_larger_budget_only_adds(folder, monkeypatch):
    counts, chosen, figures = [], [], []
    for budget in (3, 20, 60, 1e9):
        clock = itertools.count()
        monkeypatch.setattr(tuning.time, "monotonic", lambda clock=clock: next(clock))
        search = search_of(folder / "noisy.csv", budget=budget)
        result = tune(search)
        counts.append(result.candidates)
        chosen.append(list(search.outcomes))
        if result.splits == len(search_of(folder / "noisy.csv").splits):
            figures.append(result.figure)
    assert counts == sorted(counts) and counts[0] < counts[-1]
    for few, many in itertools.pairwise(chosen):
        assert [machine for machine in many if machine in few] == few
    assert figures == sorted(figures) and len(figures) >= 2


def test_a_search_is_the_same_every_time(folder):
    first, second = (tune(search_of(folder / "noisy.csv")) for _ in range(2))
    assert (first.best, first.figure, first.without_fold) == (second.best, second.figure, second.without_fold)
    assert first.complete


def test_options_that_the_user_changed_stay(folder):
    fixed = {"rule": "arow", "passes": 4, "numbers": "standard", "average_from": 2}
    chosen = train(folder / "noisy.csv", tune=True, **fixed).summary["tuning"]["chosen"]
    assert chosen.keys() <= {"C"}
    assert "C" not in train(folder / "noisy.csv", tune=True, C=0.5).summary["tuning"]["chosen"]


def test_classes_of_equal_weight_are_compared_by_balanced_accuracy(folder):
    rare = np.where(np.arange(N) % 9 == 0, "rare", "common")
    table = {"x": X[:, 0] + 0.8 * (rare == "rare"), "y": rare}
    model = train(table, label="y", tune=True, class_weight="balanced")
    figures = model.summary["tuning"]
    assert figures["measure"] == "balanced accuracy"
    folds = [evaluation.balanced_accuracy for evaluation in model.cross_validation.by_fold]
    assert figures["figure"] == pytest.approx(np.mean(folds), abs=0.06)


def test_candidates_include_the_default_whatever_it_is():
    odd = Candidate((), "pa1", 1.0, 13, 4)
    assert (13, 4) in candidates_of(odd, 13, frozenset(), True)
    assert candidates_of(odd, 13, frozenset({"passes", "average_from"}), True) == [(13, 4)]
    assert {start for _, start in candidates_of(DEFAULT, 40, frozenset(), True)} == set(STARTS)


@pytest.mark.parametrize(
    ("name", "options"), [("noisy.csv", {"numbers", "bins"}), ("texts.csv", {"ngrams", "char_ngrams", "tf", "idf"})]
)
def test_features_are_tried_that_fit_the_columns(folder, name, options):
    roles = {"review": "text"} if name == "texts.csv" else {}
    search = search_of(folder / name, lambda changes: Pipeline(lambda: TableFeaturizer(roles=roles), maker()({}).learner))
    tried = {option for stage in stages(search) if search.run(stage) is None for option, _ in stage.features}
    assert tried == options


def test_what_a_search_cannot_do(folder, tmp_path):
    data = folder / "noisy.csv"
    assert "--tune supports the learners averaged or last, not voted" in failure(data, "--tune", "--learner", "voted")
    assert "--tune cannot be combined with -C auto" in failure(data, "--tune", "-C", "auto")
    early = failure(data, "--tune", "--holdout", 0.2, "--early-stopping")
    assert "--tune cannot be combined with --early-stopping" in early
    assert "cannot be combined with --checkpoint" in failure(data, "--tune", "--checkpoint", tmp_path / "c.ckpt")
    assert "--budget is the time for a search: use --tune" in failure(data, "--budget", 30)
    assert "--ngrams cannot be combined with --char-ngrams" in failure(data, "--ngrams", 1, "--char-ngrams", 3)
    assert "--ngrams 3-1 is not a range" in failure(data, "--ngrams", "3-1")
    assert "--bins cannot be combined with --numbers standard" in failure(data, "--bins", 8, "--numbers", "standard")
