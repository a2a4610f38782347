"""Remedies as options, and names that are nearly right."""

import pytest
from click.testing import CliRunner

from separatrix.cli import app
from separatrix.cli.commands import Verb
from separatrix.cli.errors import OPTION_OF, ROLE_OPTIONS, in_options
from separatrix.cli.verbs.train import train
from separatrix.engine.parameters import ParameterError
from separatrix.learners.linear import AveragedLearner

TABLE = "age,job,kind\n1,a,x\n2,b,y\n3,a,x\n4,b,y\n"


@pytest.mark.parametrize(
    ("message", "shown"),
    [
        ("leave it out with roles={'age': 'drop'}", "leave it out with --drop age"),
        ("use roles={'a b': 'category'} or roles={'a b': 'number'}", "use --categorical 'a b' or --number 'a b'"),
        ("""use roles={"it's": 'text'}""", """use --text 'it'"'"'s'"""),
        ("skip it with on_error='skip'", "skip it with --on-error skip"),
        ("read quotes as they are with quote=''", "read quotes as they are with --quote ''"),
        ('use tie="mistake" or multi_class="ovr"', "use --tie mistake or --multi-class ovr"),
        ("set max_iter=20, record=True, fit_intercept=False", "set --passes 20, --record, --no-bias"),
        ("name it with label=", "name it with --label"),
        ("the value 'a=b' and xlabel='x' stay", "the value 'a=b' and xlabel='x' stay"),
    ],
)
def test_remedies_are_shown_as_options(message, shown):
    assert in_options(message) == shown


def test_every_option_of_a_remedy_exists():
    options = {flag for parameter in Verb("train", train, None).params for flag in parameter.opts}
    elsewhere = {"--positive"}
    assert {*OPTION_OF.values(), *ROLE_OPTIONS.values()} - options <= elsewhere


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (
            "train t.csv --label kin",
            "t.csv, line 1: there is no column 'kin'; the columns are age, job, kind; did you mean 'kind'",
        ),
        ("train t.csv --drop Age", "there is no column 'Age'; the columns are age, job; did you mean 'age'?"),
        ("certify t.csv --drop agee", "there is no column 'agee'; the columns are age, job, kind; did you mean 'age'?"),
        (
            "train t.csv --rule arrow",
            "--rule: 'arrow' is not one of perceptron, margin, pa, pa1, pa2, arow or arow-full; did you mean 'arow'?",
        ),
        (
            "train t.csv --order cycle",
            "--order: 'cycle' is not one of shuffle, permutation, cyclic or random; did you mean 'cyclic'?",
        ),
        ("train t.csv -C -1", "-C: -1.0 is not a float in the range (0, inf) or 'auto'"),
        (
            "train t.csv --learner average",
            "--learner: 'average' is not one of averaged, last, voted or pocket; did you mean 'averaged'?",
        ),
        ("train t.csv --format cvs", "--format cvs is not one of svmlight, csv"),
        ("train t.csv --on-error ignore", "--on-error ignore: it must be raise or skip"),
        ("train t.cvs", "did you mean 't.csv'?"),
        ("train irs", "did you mean 'iris'?"),
        ("certify lecture:L41", "did you mean 'lecture:L4.1'?"),
    ],
)  # fmt: skip
def test_names_that_are_nearly_right(tmp_path, monkeypatch, arguments, message):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "t.csv").write_text(TABLE)
    done = CliRunner().invoke(app, arguments.split())
    assert done.exit_code == 2
    assert message in done.stderr
    assert done.stderr.count("\n") == 1


def test_the_same_in_python():
    with pytest.raises(ParameterError, match=r"Got 'cycle' instead\. Did you mean 'cyclic'\?"):
        AveragedLearner(order="cycle").fit([[0.0], [1.0]], [0, 1])
