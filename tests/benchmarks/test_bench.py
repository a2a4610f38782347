"""`separatrix bench`: what a row says, what is missing is said, and what is written. No times are judged here."""

import importlib.util
import io
import json
import os
import re
import subprocess
import sys
import textwrap
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from benchmarks.harness import FAILED, MET, MISSED, QUICKLY, WORSE, Outcome, Quality, Row
from benchmarks.learners import Data, Learner, Point
from benchmarks.published.figures import Figure
from benchmarks.published.mixing import pass_from
from benchmarks.timing import Times, in_turns
from click.testing import CliRunner
from rich.console import Console

import separatrix
from benchmarks import curves, growth, harness, raw_files, report
from separatrix.cli import app

RUNNER = CliRunner()
FAST, SLOW = Times([1.0, 3.0, 2.0], [1.0, 1.0, 1.0]), Times([8.0, 6.0, 7.0], [6.0, 6.0, 6.0])
ABOUT = {"date": "2026-11-15", "commit": "abc", "quick": True, "python": "3", "versions": {"numpy": "2"}}
ROOT = Path(__file__).parents[2]
FRONT = re.compile(r"<!-- separatrix bench -->\n(.*?)<!-- end -->", re.S)
ABOUT["machine"] = {"processor": "a processor", "cores": 2, "load": 0.1, "system": "Linux"}
FULL = ABOUT | {"quick": False}


def test_tasks_run_in_turn_and_what_warms_up_is_not_kept():
    said = []
    times, gave = in_turns(
        lambda: said.append("a") or "A",
        lambda: said.append("b") or "B",
        repeats=2,
        warm_up=1,
        prepare=lambda: said.append("-"),
    )
    assert "".join(said) == "-a-b-a-b-a-b"
    assert gave == ["A", "B"]
    assert [len(one.wall) for one in times] == [len(one.cpu) for one in times] == [2, 2]


def test_a_ratio_is_best_over_best_with_the_spread_of_the_rounds():
    row = Row("a thing", "ours", "theirs", FAST, SLOW, 4)
    assert (FAST.best, FAST.median, FAST.worst) == (1, 2, 3)
    assert (row.ratio, row.ratios) == (6, [8, 2, 3.5])
    cells = dict(zip(Row.columns, row.cells(), strict=True))
    assert cells["best · median · worst"] == "1 · 2 · 3 s" and cells["its times"] == "6 · 7 · 8 s"
    assert (cells["ratio"], cells["floor"], cells["verdict"]) == ("6 (2–8)", "≥ 4", MET)
    assert harness.duration(0.0123, 0.5) == "12.3 · 500 ms" and harness.duration(2e-7) == "0.2 µs"


@pytest.mark.parametrize(
    ("settings", "verdict"),
    [
        ({"floor": 6}, MET),
        ({"floor": 6.1}, MISSED),
        ({"floor": 6.1, "promised": False}, QUICKLY),
        ({"floor": 6, "quality": Quality("error", False)}, WORSE),
        ({"quality": Quality("error", False)}, "worse"),
        ({"quality": Quality("error", True)}, "–"),
        ({"value": 0.5, "at_most": 0.4}, MISSED),
        ({"value": 0.5, "at_most": 0.5}, MET),
    ],
)
def test_verdicts(settings, verdict):
    assert Row("a thing", "ours", "theirs", FAST, SLOW, **settings).verdict == verdict
    assert report.verdict_of([Outcome("passes", lines=[Row("x", "", "", FAST, SLOW, **settings)])]) == verdict.isupper()


def test_quality_is_equal_within_twice_the_standard_error_of_the_difference():
    steady, loose = [0.900, 0.901, 0.902], [0.85, 0.90, 0.95]
    assert Quality.of_seeds("accuracy", steady, [0.89, 0.891, 0.892]).says.endswith("± 0.0008): better")
    assert Quality.of_seeds("accuracy", steady, [0.91, 0.911, 0.912]).holds is False
    assert Quality.of_seeds("accuracy", loose, [0.92, 0.93, 0.91]).says.endswith(
        "beside 0.9200 (difference ± 0.0294): equal"
    )
    assert Quality.of_seeds("accuracy", [1, 1], [1.0005, 1.0005], slack=0.001).says.endswith("equal")
    few, many = (Quality.of_shares("error", 0.2139, 0.2032, n, higher=False) for n in (2_000, 200_000))
    assert (few.says[-5:], many.says[-5:], few.holds, many.holds) == ("equal", "worse", True, False)


def test_quality_says_which_is_better():
    assert Quality.compared("accuracy", 0.9, 0.8) == Quality("accuracy 0.9000 beside 0.8000: better", True)
    assert Quality.compared("error", 0.21, 0.2, higher=False) == Quality("error 0.2100 beside 0.2000: worse", False)
    assert Quality.compared("error", 0.21, 0.2, higher=False, slack=0.02).says.endswith("equal")


SUITE = """
from benchmarks.harness import Row
from benchmarks.timing import Times
ABOUT = "What is done here."
def rows(quick):
    yield Row("a thing", "ours", "theirs", Times([1.0], [1.0]), Times([2.0], [2.0]), 1 if quick else 3)
    yield Row.missing("a thing", "VW", "vowpalwabbit is not installed")
"""


@pytest.fixture
def suites(tmp_path, monkeypatch):
    """A package of small suites: one that works, one that breaks, one that needs what is not there, one not written."""
    folder = tmp_path / "small_suites"
    folder.mkdir()
    broken = "def rows(quick):\n    yield from ()\n    raise RuntimeError('no such luck')\n"
    needy = "import a_peer_that_nobody_has\n"
    without_data = "def rows(quick):\n    yield from ()\n    open('/no/such/data')\n"
    for name, text in (("__init__", ""), ("works", SUITE), ("broken", broken), ("needy", needy), ("hungry", without_data)):
        (folder / f"{name}.py").write_text(textwrap.dedent(text))
    monkeypatch.syspath_prepend(tmp_path)
    importlib.invalidate_caches()
    names = ("works", "broken", "needy", "hungry", "unwritten")
    monkeypatch.setattr(harness, "SUITES", {name: (name, name.title()) for name in names})
    monkeypatch.setattr(report, "SUITES", harness.SUITES)
    return {outcome.suite: outcome for outcome, _ in harness.run(names, True, "small_suites")}


def test_what_is_missing_is_a_row_that_says_so_and_the_others_go_on(suites):
    said = {name: (outcome.lines[-1].note, outcome.lines[-1].verdict) for name, outcome in suites.items()}
    assert said == {
        "works": ("vowpalwabbit is not installed", "not run"),
        "broken": ("RuntimeError: no such luck", FAILED),
        "needy": ("a_peer_that_nobody_has is not installed", "not run"),
        "hungry": ("/no/such/data is not there", "not run"),
        "unwritten": ("small_suites/unwritten.py is not in this checkout", "not run"),
    }
    assert report.tally(suites.values()) == {MET: 1, FAILED: 1, "not run": 4}
    assert report.verdict_of(suites.values()) == 1
    assert report.verdict_of([suites["works"], suites["needy"]]) == 0


def test_full_sizes_are_held_to_their_floors(suites):
    *_, (outcome, _) = harness.run(["works"], False, "small_suites")
    assert [line.verdict for line in outcome.lines] == [MISSED, "not run"]


def test_json_keeps_every_time_and_the_machine(suites, tmp_path):
    report.save([suites["works"]], report.facts(tmp_path, True), tmp_path / "bench.json")
    told = json.loads((tmp_path / "bench.json").read_text())
    assert {"format", "date", "commit", "quick", "machine", "python", "versions", "suites"} == told.keys()
    assert told["machine"]["cores"] >= 1 and told["versions"]["numpy"] == np.__version__
    first, second = told["suites"]["works"]["rows"]
    assert first["our_seconds"] == {"wall": [1.0], "cpu": [1.0]} and first["ratio"] == 2
    assert (first["floor"], first["verdict"], first["quality"]) == (1, MET, None)
    assert second["ratio"] is None and second["note"] == "vowpalwabbit is not installed"
    assert first.keys() == second.keys()


def test_a_terminal_of_80_columns_shows_every_row_in_full(suites):
    console = Console(width=80, record=True, file=io.StringIO())
    report.show(suites["works"].lines, "Works", console)
    text = console.export_text()
    assert max(map(len, text.splitlines())) <= 80 and "…" not in text
    assert all(part in text for part in ("a thing", "beside theirs 2 · 2 · 2 s", "vowpalwabbit is not installed", "≥ 1"))


def test_the_page_is_written_with_its_pictures(suites, tmp_path, monkeypatch):
    sizes = [100.0, 200.0, 400.0, 800.0]
    suites["needy"].module, suites["hungry"].module = growth, curves
    suites["needy"].lines.append(growth.Growth("time", "a fit", "n", sizes, [size * 1e-6 for size in sizes], 1))
    learner = Learner("ours", "separatrix", lambda data, budget: iter(()), ours=True)
    suites["hungry"].lines.append(curves.Curve("data", learner, [Point(1, 0.1, 0.8), Point(2, 0.2, 0.9)], 0.85, True))
    (tmp_path / "README.md").write_text("# Front\n\n<!-- separatrix bench -->\nold\n<!-- end -->\n\nThe rest.\n")
    monkeypatch.setattr(
        report, "HEADLINES", (("works", "doing a thing", "a thing", "our", "their"), ("works", "no", "no", "", "nobody"))
    )
    *written, front = report.write(list(suites.values()), ABOUT, tmp_path)
    pictures = {"headlines.svg", "ratios.svg", "growth.svg", "time-to-accuracy.svg"}
    assert {path.name for path in written} == pictures | {"benchmarks.md"}
    shown = front.read_text()
    assert shown.startswith("# Front\n\n<!-- separatrix bench -->\nMeasured on 2026-11-15 by") and "old" not in shown
    absent = "| no | nobody | not run | the suite works gave no such line |"
    assert f"| doing a thing | theirs | 2.0 |  |\n{absent}\n<!-- end" in shown
    assert max(map(len, shown.splitlines())) <= report.WIDTH and shown.endswith("<!-- end -->\n\nThe rest.\n")
    assert all(path.stat().st_size < report.LARGEST for path in written)
    text = (tmp_path / "docs" / "benchmarks.md").read_text()
    words = " ".join(text.split())
    assert "`separatrix bench --quick --write` wrote this page on 2026-11-15, at commit abc" in words
    assert "a processor, 2 cores" in words
    assert "## Works\n\nWhat is done here." in text
    assert [text.count(f"(images/{path.name})") for path in written[1:]] == [1] * len(pictures)
    assert text.startswith("# Benchmarks\n\n![") and "\n- **2.0 ×** the speed of theirs: doing a thing\n" in text
    assert "\n- not run: no, beside nobody\n" in text and '<div class="admonition note" markdown>' in text
    assert "| RuntimeError: no such luck | **FAILED** |" in text
    assert "| a thing | ours | 1 · 1 · 1 s | theirs | 2 · 2 · 2 s | 2 | ≥ 1 |  | met |" in text
    assert "| data | **ours** | 0.8000 after 100 ms | 0.9000 | 200 ms | 0.8500 | 200 ms | first |" in text


def test_a_full_run_writes_the_table_of_commands_into_its_page(suites, tmp_path):
    page = tmp_path / "docs" / "command-line.md"
    page.parent.mkdir()
    for path, mark in ((page, "benchmarks.raw_files"), (tmp_path / "README.md", "separatrix bench")):
        path.write_text(f"Text.\n<!-- {mark} -->\nold\n<!-- end -->\nMore.\n")
    line = Row("Adult, 9 rows", "separatrix train a.csv", our_times=Times([2.0, 1.0], [3.0, 2.0]), value=0.87, floor=0.8)
    outcomes = [Outcome("works", raw_files, [replace(line, note="on `test.csv`; the start of Numba alone takes 0.70 s")])]
    report.write(outcomes, ABOUT, tmp_path)
    assert "\nold\n" in page.read_text(), "a quick run leaves rows out"
    report.write([replace(outcomes[0], lines=[*outcomes[0].lines, Row.missing("b", "", "no data")])], FULL, tmp_path)
    assert "\nold\n" in page.read_text(), "the table is whole, or it stays"
    assert page in report.write(outcomes, FULL, tmp_path)
    row = "| Adult, 9 rows | `train a.csv` | 0.8700 on `test.csv` | 1.0 |"
    head = "| data | command | accuracy | seconds |\n|---|---|---|---|"
    assert page.read_text() == f"Text.\n<!-- benchmarks.raw_files -->\n{head}\n{row}\n<!-- end -->\nMore.\n"


def test_the_readme_has_seven_of_the_lines_that_open_the_page():
    assert report.ON_THE_FRONT == 7 and len(report.HEADLINES) == 10
    assert {suite for suite, *_ in report.HEADLINES} <= harness.SUITES.keys()
    table = FRONT.search((ROOT / "README.md").read_text(encoding="utf-8"))[1].strip().splitlines()
    jobs = [line.split("|")[1].strip() for line in table if line.startswith("|")][2:]
    assert jobs == [job for _, job, *_ in report.HEADLINES[: report.ON_THE_FRONT]]


def test_an_exponent_is_that_of_the_larger_half():
    sizes = [1.0, 10.0, 100.0, 1000.0]
    grown = growth.Growth("memory", "a fit", "n", sizes, [50.0, 60.0, 100.0, 10_000.0], 2)
    assert grown.exponent == pytest.approx(2) and grown.verdict == MET and grown.one_more == 11
    steep = growth.Growth("memory", "a fit", "n", sizes, [50.0, 60.0, 100.0, 10_000.0], 1.8)
    assert steep.verdict == MISSED
    limited = replace(steep, limits=[1.0, 1.0, 2.0, 160.0])  # grows by 10 ** 1.9
    assert limited.verdict == MET and limited.cells()[-2] == "1.8 (1.90)"
    assert replace(limited, limits=[1.0, 1.0, 2.0, 20.0]).verdict == MISSED


def test_the_first_to_the_mark_is_named_whoever_it_is(monkeypatch):
    def learner(name, ours, *points):
        return Learner(name, "separatrix", lambda data, budget: iter([Point(1, *point) for point in points]), ours)

    racers = learner("ours", True, (0.1, 0.5), (0.3, 0.9)), learner("peer", False, (0.2, 0.9), (0.4, 0.8))
    monkeypatch.setattr("benchmarks.curves.LEARNERS", racers)
    ours, peer = curves.raced("data", Data(None, None, None, range(100)), 1.0)
    assert ours.mark == peer.mark == pytest.approx(0.9 - 0.03)
    assert (ours.reached, peer.reached) == (0.3, 0.2)
    assert (ours.verdict, peer.verdict) == ("–", "first")
    assert peer.document()["points"][1] == {"effort": 1, "seconds": 0.4, "accuracy": 0.8}


def test_a_pass_from_mixed_weights_is_a_perceptron_that_starts_there():
    rng = np.random.default_rng(0)
    X, w = rng.integers(-3, 4, size=(40, 5)).astype(float), rng.integers(-2, 3, size=(1, 5)).astype(float)
    y = rng.choice([-1, 1], 40)
    expected, mistakes = w[0].copy(), 0
    for x, label in zip(X, y, strict=True):
        if label * (expected @ x) <= 0:
            expected, mistakes = expected + label * x, mistakes + 1
    found, count = pass_from(w, X, y)
    assert np.array_equal(found[0], expected) and count == mistakes > 0


@pytest.mark.parametrize(
    ("above", "verdict"), [([0.9, 0.92, 0.91], MET), ([0.5, 0.52, 0.51], MISSED), ([0.6, 0.9, 0.62], "equal")]
)
def test_an_ordering_within_twice_its_error_is_neither_confirmed_nor_refuted(above, verdict):
    figure = Figure.ordering("a9a", "the paper", "accuracy", ("mixing", "once"), above, [0.7, 0.71, 0.7])
    assert figure.verdict == verdict and figure.published == "mixing above once" and "mean of 3 seeds" in figure.protocol


def test_a_published_figure_that_is_missed_is_shown_as_a_miss():
    told = {holds: Figure("a", "b", "c", "0.2", "0.3", holds).verdict for holds in (True, False, None)}
    assert told == {True: MET, False: MISSED, None: "–"}


@pytest.mark.parametrize("suite", harness.SUITES)
def test_every_suite_that_is_here_has_rows(suite):
    name = f"benchmarks.{harness.SUITES[suite][0]}"
    if importlib.util.find_spec(name) is None:
        assert suite in ("serving", "cluster")
    else:
        assert callable(importlib.import_module(name).rows)


def test_the_suite_of_sequences_runs_as_a_module(tmp_path):
    environment = os.environ | {"SEPARATRIX_DATA": str(tmp_path / "none"), "COLUMNS": "200"}
    command = [sys.executable, "-m", "benchmarks.sequences"]
    shown = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=True).stdout
    assert "CoNLL-2000" in shown and "set SEPARATRIX_DATA" in shown


def test_elsewhere_one_line_says_where_the_benchmarks_are(tmp_path, monkeypatch):
    monkeypatch.setattr(separatrix, "__file__", str(tmp_path / "lib" / "site-packages" / "separatrix" / "__init__.py"))
    monkeypatch.chdir(tmp_path)
    done = RUNNER.invoke(app, ["bench", "--quick"])
    assert done.exit_code == 2
    assert done.output.count("\n") == 1 and "run it in a checkout" in done.output


def test_a_suite_that_does_not_exist_and_a_page_of_some_suites_are_refused():
    done = RUNNER.invoke(app, ["bench", "speed"])
    assert done.exit_code == 2 and "there is no suite 'speed'; there are passes, parsing" in done.output
    done = RUNNER.invoke(app, ["bench", "passes", "--write"])
    assert done.exit_code == 2 and "--write" in done.output


def test_the_command_prints_the_tables_writes_json_and_says_what_was_missed(suites, tmp_path, monkeypatch):
    real = harness.run
    monkeypatch.setattr(harness, "run", lambda names, quick: real(names, quick, "small_suites"))
    done = RUNNER.invoke(app, ["bench", "works", "--json", str(tmp_path / "b.json")], env={"COLUMNS": "100"})
    assert done.exit_code == 1
    assert "1 MISSED, 1 not run" in done.output and "vowpalwabbit is not installed" in done.output
    assert json.loads((tmp_path / "b.json").read_text())["suites"].keys() == {"works"}
    assert RUNNER.invoke(app, ["bench", "works", "--quick"]).exit_code == 0


def test_measured_commands_find_compiled_modules_where_python_writes_none():
    """Otherwise each command compiles all of ours anew, and those of an installed peer never."""
    shown = "import sys; print(sys.dont_write_bytecode)"
    program = f"import benchmarks, subprocess, sys; subprocess.run([sys.executable, '-c', {shown!r}])"
    environment = os.environ | {"PYTHONDONTWRITEBYTECODE": "1"}
    done = subprocess.run([sys.executable, "-c", program], cwd=ROOT, env=environment, capture_output=True, text=True)
    assert done.stdout.split() == ["False"], done.stderr
