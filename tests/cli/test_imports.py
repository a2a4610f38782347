"""What each verb imports: help texts and completion nothing heavy, and linear models neither scikit-learn nor pandas."""

import subprocess
import sys

import pytest

HEAVY = ("numpy", "numba", "scipy", "pyarrow", "sklearn", "pandas", "rich")
UNWANTED = ("sklearn", "scipy.stats", "pandas")
PROGRAM = """
import sys
from separatrix.cli import app
try:
    app(sys.argv[2:])
except SystemExit as end:
    assert end.code in (0, 1, None), end.code
print("imported:", *(name for name in sys.argv[1].split(",") if name in sys.modules), file=sys.stderr)
"""
VERBS = "trace lab demo certify check compare bench train predict evaluate explain export info serve".split()


def imported(names, *arguments):
    """Run the command line in a process of its own; return which of the modules it has imported."""
    command = [sys.executable, "-c", PROGRAM, ",".join(names), *map(str, arguments)]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stderr.splitlines()[-1].split()[1:]


@pytest.mark.parametrize("arguments", [["--help"], ["--version"], *([verb, "--help"] for verb in VERBS)], ids=" ".join)
def test_help_imports_nothing_heavy(arguments):
    assert imported(HEAVY, *arguments) == []


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A table of a text, a number and a category, and a model of it; rows in svmlight, and a model of them."""
    folder = tmp_path_factory.mktemp("imports")
    lines = ["label,message,length,from"]
    for i in range(40):
        message = "free money now" if i % 3 == 0 else "see you at noon"
        lines.append(f"{'spam' if i % 3 == 0 else 'ham'},{message} {i},{i % 7},{'shop' if i % 2 else 'home'}")
    (folder / "table.csv").write_text("\n".join(lines) + "\n")
    (folder / "rows.svm").write_text("".join(f"{i % 2} {1 + i % 2}:1 {3 + i % 5}:{i % 3 + 1}\n" for i in range(40)))
    (folder / "numbers.csv").write_text("a,b,y\n1,2,u\n2,1,v\n2,4,u\n5,1,v\n")
    imported([], "train", folder / "numbers.csv", "-o", folder / "numbers.csv.sepx")
    for name in ("table.csv", "rows.svm"):
        options = ["--record", "--holdout", "0.2", "--calibrate", "-o", f"{folder / name}.sepx"]
        label = ["--label", "label"] if name == "table.csv" else []
        imported([], "train", folder / name, *label, *options)
    return folder


RUNS = {
    "train iris": ["train", "iris"],
    "train table": ["train", "{}/table.csv", "--label", "label", "-o", "{}/new.sepx"],
    "train rows": ["train", "{}/rows.svm", "--holdout", "0.2", "--calibrate", "--checkpoint", "{}/c", "-o", "{}/new.sepx"],
    "train voted": ["train", "{}/rows.svm", "--learner", "voted"],
    "train pocket": ["train", "{}/rows.svm", "--learner", "pocket"],
    "train auto": ["train", "{}/rows.svm", "-C", "auto", "--holdout", "0.2"],
    "predict table": ["predict", "{}/table.csv.sepx", "{}/table.csv", "--scores"],
    "predict rows": ["predict", "{}/rows.svm.sepx", "{}/rows.svm", "-o", "{}/out.parquet"],
    "evaluate table": ["evaluate", "{}/table.csv.sepx", "{}/table.csv"],
    "evaluate rows": ["evaluate", "{}/rows.svm.sepx", "{}/rows.svm"],
    "explain table": ["explain", "{}/table.csv.sepx", "{}/table.csv"],
    "explain rows": ["explain", "{}/rows.svm.sepx", "{}/rows.svm"],
    "info table": ["info", "{}/table.csv.sepx"],
    "info rows": ["info", "{}/rows.svm.sepx"],
    "export": ["export", "{}/numbers.csv.sepx", "--to", "sql"],
    "trace": ["trace", "lecture:L4.1"],
    "trace file": ["trace", "{}/numbers.csv", "--html", "{}/page.html"],
    "certify": ["certify", "lecture:L4.1", "-o", "{}/certificate.json"],
    "certify model": ["certify", "{}/table.csv", "--model", "{}/table.csv.sepx"],
}


@pytest.mark.parametrize("run", RUNS)
def test_linear_models_need_neither_scikit_learn_nor_pandas(folder, run):
    assert imported(UNWANTED, *(argument.format(folder) for argument in RUNS[run])) == []
