"""The defaults of `train` and of the classes are the same, but for those that the documentation lists."""

import re
from ast import literal_eval
from pathlib import Path

import pytest

from separatrix import AveragedPerceptron, Perceptron, PocketPerceptron, TableFeatures, TextFeatures, VotedPerceptron
from separatrix.training.options import TrainOptions
from separatrix.training.parts import CLASS_OF, DEFAULTS, default_features, default_learner, learner_of

PAGE = Path(__file__).parents[2] / "docs" / "training.md"
ROW = re.compile(r"\| `(\w+)`[^|]*\| `([^`]+)` \| `([^`]+)` \| [^|]+ \|")


def listed():
    """The table of the documentation: the defaults of `train` and of the classes by parameter."""
    text = PAGE.read_text().partition("## Defaults")[2].partition("\n## ")[0]
    return {name: (literal_eval(ours), literal_eval(theirs)) for name, ours, theirs in ROW.findall(text)}


def differing(ours, theirs):
    return {name: (ours[name], theirs[name]) for name in ours if ours[name] != theirs[name]}


def test_the_page_lists_where_they_differ():
    learner = differing(default_learner().get_params(), AveragedPerceptron().get_params())
    text = differing(default_features().text.get_params(), TextFeatures().get_params())
    assert learner | text == listed() and len(listed()) == 4


def test_tables_have_the_same_defaults():
    ours = default_features().get_params(deep=False) | {"text": None, "roles": None}
    assert ours == TableFeatures().get_params(deep=False)


@pytest.mark.parametrize("learner", [Perceptron, VotedPerceptron, PocketPerceptron])
def test_all_learners_of_train_differ_alike(learner):
    name = next(option for option, public in CLASS_OF.items() if public == learner.__name__)
    chosen = learner_of(TrainOptions("", learner=name))
    assert type(chosen) is learner
    found = differing(chosen.get_params(), learner().get_params())
    assert found == {name: pair for name, pair in listed().items() if name != "n_features"}


def test_the_command_has_the_defaults_of_the_table():
    assert (DEFAULTS.rule, DEFAULTS.passes, DEFAULTS.seed, 1 << DEFAULTS.bits) == tuple(
        ours for ours, _ in listed().values()
    )
