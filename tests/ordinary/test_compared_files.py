"""`compare` on every ordinary file that `train` accepts, by the same options: never a refusal, never Python's words."""

import json
import shlex

import pytest

from ordinary.test_ordinary_files import FILES, run
from ordinary.traps import TRAPS

ACCEPTED = [trap for trap in TRAPS if trap.accuracy is not None]
FEATURE_OPTIONS = {"--numbers", "--bits"}


@pytest.mark.slow
@pytest.mark.parametrize("trap", ACCEPTED, ids=[trap.title for trap in ACCEPTED])
def test_what_train_accepts_is_compared(trap):
    options = shlex.split(trap.options)
    assert not FEATURE_OPTIONS & {*options}, "these are options of train alone"
    models = ["--models", "naive bayes, LDA, decision tree, perceptron, separatrix train"]
    output = run("compare", FILES / trap.file, *options, *models, "--no-curves")
    assert "separatrix train" in output and "Warning" not in output
    result = json.loads(
        run("compare", FILES / trap.file, *options, "--json", "--models", "separatrix train").splitlines()[-1]
    )
    (row,) = result["rows"]
    assert row["failure"] is None and row["accuracy"] >= trap.accuracy - 0.1, row
