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
        ("column 'format=5' has no value: left out", "column 'format=5' has no value: left out"),
        ("column 'C=5': leave it out with roles={'C=5': 'drop'}", "column 'C=5': leave it out with --drop C=5"),
        ("""it's "C=5", label='kind'""", """it's "C=5", --label kind"""),
        ("the classes' recalls; use order='shuffle'; 'order=1'", "the classes' recalls; use --order shuffle; 'order=1'"),
        ("data/label=a/part.csv: no such file", "data/label=a/part.csv: no such file"),
        ("label=1.csv, line 3: 2 columns", "label=1.csv, line 3: 2 columns"),
        ("train with record=True, or pass the rows as X=", "train with --record"),
        ("hold out more with holdout=0.3.", "hold out more with --holdout 0.3."),
    ],
)
def test_remedies_are_shown_as_options(message, shown):
    assert in_options(message) == shown


def test_every_option_of_a_remedy_exists():
    options = {flag for parameter in Verb("train", train, None).params for flag in parameter.opts}
    elsewhere = {"--positive", "--budget", "--table", "--time-limit"}
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
        ("train t.csv --format cvs", "--format: 'cvs' is not one of svmlight, csv"),
        ("train t.csv --on-error ignore", "--on-error: 'ignore' is not raise or skip"),
        ("train t.cvs", "did you mean 't.csv'?"),
        ("train irs", "did you mean 'iris'?"),
        ("certify lecture:L41", "did you mean 'lecture:L4.1'?"),
        ("certify t.csv --drop job --positive X", "no example has the class 'X'; the classes are x, y; did you mean 'x'?"),
        ("train t.csv --number kind", "t.csv: column 'kind' is the label, which has no role; --label names another one"),
        ("train t.csv --drop 2", "t.csv: column 'kind' is the label"),
        ("train t.csv --drop age --number age", "--number and --drop both name age: choose one"),
        ("train t.csv --drop 0 --number age", "t.csv: column 'age' cannot be both number and drop; choose one role"),
        ("serve t.csv", "t.csv is a file, and what is learned is stored in a folder: name one, and to start with this"),
    ],
)  # fmt: skip
def test_names_that_are_nearly_right(tmp_path, monkeypatch, arguments, message):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "t.csv").write_text(TABLE)
    done = CliRunner().invoke(app, arguments.split())
    assert done.exit_code == 2
    assert message in done.stderr
    assert done.stderr.count("\n") == 1


MESSY = """format=5,C=5,"net
weight",label=x
"""


@pytest.fixture
def messy(tmp_path, monkeypatch):
    """A file whose columns and labels look like parameters of Python."""
    monkeypatch.chdir(tmp_path)
    rows = [f"{k % 7},C={k % 3},{k % 5},{'tie=1' if k % 7 > 3 else 'it was'}" for k in range(60)]
    (tmp_path / "messy.csv").write_text(MESSY + "\n".join(rows) + "\n")
    (tmp_path / "other.csv").write_text(MESSY + "x,C=9,1,quote=1\n" * 50)
    return tmp_path


def output_of(*arguments, status=0):
    done = CliRunner().invoke(app, [str(argument) for argument in arguments])
    assert done.exit_code == status, done.output + repr(done.exception)
    return done.output


def test_data_are_shown_as_they_are(messy):
    printed = output_of("train", "messy.csv", "-o", "m.sepx", "-q")
    lines = printed.splitlines()
    assert [line.split()[0] for line in lines[2:5]] == ["format=5", "C=5", "'net\\nweight'"]
    assert "(it was " in lines[0] and ", tie=1 " in lines[0]
    explained = output_of("explain", "m.sepx", "messy.csv")
    assert "C=5=C=0" in explained and "-C 5" not in explained
    assert "train with --record\n" in explained and "X" not in explained
    assert "format=5" in output_of("info", "m.sepx")
    refused = output_of("train", "messy.csv", "--label", "nothing", status=2)
    assert "the columns are 'format=5', 'C=5', 'net\\nweight', 'label=x'" in refused
    refused = output_of("evaluate", "m.sepx", "other.csv", status=2)
    assert "'format=5'" in refused and "--format" not in refused


def test_no_python_on_the_command_line(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "one.csv").write_text("a,y\n1,EU\n2,EU\n")
    (tmp_path / "words.csv").write_text("name,y\n" + "".join(f"n{k},{k % 2}\n" for k in range(40)))
    for verb in ("train", "certify", "compare", "trace"):
        assert "needs two classes, but there is only 1 class: 'EU'" in output_of(verb, "one.csv", status=2)
    assert "words.csv: there is no column to learn from" in output_of("compare", "words.csv", status=2)


def test_the_same_in_python():
    with pytest.raises(ParameterError, match=r"Got 'cycle' instead\. Did you mean 'cyclic'\?"):
        AveragedLearner(order="cycle").fit([[0.0], [1.0]], [0, 1])
