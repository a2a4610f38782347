"""What each verb imports: help texts and completion nothing heavy, and linear models neither scikit-learn nor pandas."""

import json
import subprocess
import sys

import pytest

from separatrix.cli import app

HEAVY = ("numpy", "numba", "scipy", "pyarrow", "sklearn", "pandas", "rich")
UNWANTED = ("sklearn", "scipy.stats", "pandas")
PROGRAM = """
import json, sys
from separatrix.cli import app
unwanted, runs = json.loads(sys.argv[1]), json.loads(sys.argv[2])
for name, arguments in runs.items():
    try:
        app(arguments)
    except SystemExit as end:
        assert end.code in (0, 1, None), (name, end.code)
    found = [module for module in unwanted if module in sys.modules]
    if found:
        sys.exit(f"{name} imports {', '.join(found)}")
"""
VERBS = list(app.commands)


def run_all(unwanted, runs):
    """Run commands one after the other in a process of their own; fail at the first that imports an unwanted module."""
    command = [sys.executable, "-c", PROGRAM, json.dumps(unwanted), json.dumps(runs)]
    done = subprocess.run(command, capture_output=True)
    assert done.returncode == 0, done.stderr.decode()


def test_help_imports_nothing_heavy():
    run_all(HEAVY, {"--help": ["--help"], "--version": ["--version"], **{verb: [verb, "--help"] for verb in VERBS}})


def test_an_unwanted_module_is_noticed():
    with pytest.raises(AssertionError, match="train imports numpy"):
        run_all(HEAVY, {"train": ["train", "iris"]})


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
    lines = ["id,price,day,seen,tags,share,size,label"]
    tags = ("a|b", "b", "a|c", "c|d|a")
    for i in range(200):
        day = f"2024-{1 + i % 12:02d}-{1 + i % 28:02d}"
        size = "err" if i == 150 else str(i % 13)
        fields = [1000 + i, f'"${i * 37 % 5000:,}.50"', day, f"{day} {i % 24:02d}:30", tags[i % 4], f"{i % 100} %", size]
        lines.append(",".join([*map(str, fields), " yes " if i % 3 else "no" if i % 5 else ""]) + ",")
    (folder / "messy.csv").write_bytes(("\n".join(["sep=,", lines[0] + ",", *lines[1:]]) + "\n").encode("utf-16"))
    runs = {"numbers": ["train", f"{folder}/numbers.csv", "-o", f"{folder}/numbers.csv.sepx"]}
    for name in ("table.csv", "rows.svm"):
        options = ["--record", "--holdout", "0.2", "--calibrate", "--bits", "10", "-o", f"{folder / name}.sepx"]
        label = ["--label", "label"] if name == "table.csv" else []
        runs[name] = ["train", str(folder / name), *label, *options]
    run_all([], runs)
    return folder


RUNS = {
    "train iris": ["train", "iris"],
    "train table": ["train", "{}/table.csv", "--label", "label", "-o", "{}/new.sepx"],
    "train table, held out": ["train", "{}/table.csv", "--label", "label", "--holdout", "0.2", "--calibrate"],
    "train tune": ["train", "{}/table.csv", "--label", "label", "--tune", "--budget", "1", "--oof", "{}/oof.csv"],
    "train messy": ["train", "{}/messy.csv", "--label", "label", "--holdout", "0.2", "-o", "{}/messy.sepx"],
    "predict messy": ["predict", "{}/messy.sepx", "{}/messy.csv"],
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


def test_rows_of_numbers_need_no_arrow(folder):
    run_all(
        ("pyarrow", "separatrix.cluster"),
        {
            "train": ["train", f"{folder}/rows.svm", "--calibrate", "-o", f"{folder}/m"],
            "train --tune": ["train", f"{folder}/rows.svm", "--tune", "--budget", "1"],
        },
    )


def test_predicting_rows_of_numbers_needs_no_features_of_tables(folder):
    unwanted = ["separatrix.features", "separatrix.training", "separatrix.analysis"]
    run_all(unwanted, {"predict": [argument.format(folder) for argument in RUNS["predict rows"]]})


def test_linear_models_need_neither_scikit_learn_nor_pandas(folder):
    run_all(UNWANTED, {name: [argument.format(folder) for argument in arguments] for name, arguments in RUNS.items()})


def test_text_needs_no_parquet(folder):
    runs = {
        name: [argument.format(folder) for argument in RUNS[name]]
        for name in ("train table", "train rows", "evaluate table")
    }
    run_all(["pyarrow.parquet", "pyarrow.fs", "ssl"], runs)


def test_info_on_a_model_of_numbers_needs_no_kernel(folder):
    run_all(["numba", "scipy"], {"info": [argument.format(folder) for argument in RUNS["info rows"]]})


def test_info_on_a_model_of_texts_calls_no_kernel(folder):
    """A called kernel sets up the compiler, which imports parts of Numba that nothing else here does."""
    run_all(["numba.np.arraymath"], {"info": [argument.format(folder) for argument in RUNS["info table"]]})
    with pytest.raises(AssertionError, match=r"predict imports numba.np.arraymath"):
        run_all(["numba.np.arraymath"], {"predict": [argument.format(folder) for argument in RUNS["predict table"]]})
