"""Certificates of real data, checked exactly here, by the standalone script, and on the command line."""

import csv
import gzip
import json

import numpy as np
import pytest
from click.testing import CliRunner
from sklearn.datasets import load_breast_cancer, load_digits, load_iris, load_svmlight_file, load_wine
from sklearn.preprocessing import OneHotEncoder

from separatrix import Certificate, certify
from separatrix.cli import app
from support.standalone_checker import CHECKER, standalone


def write_csv(path, X, y):
    with open(path, "w", newline="") as file:
        csv.writer(file).writerows([*row, label] for row, label in zip(X.tolist(), y.tolist(), strict=True))


def certified_and_checked(X, y, folder, **options):
    certificate = certify(X, y, **options)
    assert certificate.verify(X, y)
    dense = X.toarray() if hasattr(X, "toarray") else X
    certificate.to_json(folder / "certificate.json")
    write_csv(folder / "data.csv", dense, y)
    status, said = standalone(folder / "certificate.json", folder / "data.csv")
    assert (status, said.split(":")[0]) == (0, "VALID"), said
    return certificate


def is_tight(certificate, to=1e-6):
    return all(upper - lower <= to * upper for lower, upper in (certificate.margin, certificate.geometric_margin))


@pytest.mark.parametrize(("k", "verdict"), [(0, "separable"), (1, "inseparable"), (2, "inseparable")])
def test_iris_one_against_the_rest(k, verdict, tmp_path):
    X, y = load_iris(return_X_y=True)
    assert certified_and_checked(X, y == k, tmp_path).verdict == verdict


@pytest.mark.parametrize("k", range(3))
def test_wine_one_against_the_rest_is_separable(k, tmp_path):
    X, y = load_wine(return_X_y=True)
    certificate = certified_and_checked(X, y == k, tmp_path)
    assert certificate.verdict == "separable"
    assert is_tight(certificate)


@pytest.mark.parametrize("k", [0, *(pytest.param(k, marks=pytest.mark.slow) for k in range(1, 8))])
def test_digits_0_to_7_against_the_rest_are_separable(k, tmp_path):
    X, y = load_digits(return_X_y=True)
    certificate = certified_and_checked(X, y == k, tmp_path)
    assert certificate.verdict == "separable"
    assert is_tight(certificate)


@pytest.mark.parametrize("k", [8, 9])
def test_digits_8_and_9_against_the_rest_are_inseparable_and_quasi_complete(k, tmp_path):
    X, y = load_digits(return_X_y=True)
    certificate = certified_and_checked(X, y == k, tmp_path)
    assert (certificate.verdict, certificate.separation) == ("inseparable", "quasi-complete")
    assert len(certificate.witness) <= 66
    w, b = certificate.separator
    leads = np.where(y == k, 1, -1) * (X.astype(int).astype(object) @ w + b)
    assert min(leads) == 0 < max(leads)
    assert set(certificate.infinite) == set(np.flatnonzero(w)) | ({"intercept"} if b else set())


def test_wdbc_raw_is_separable_and_its_margin_needs_an_exact_solve(tmp_path):
    X, y = load_breast_cancer(return_X_y=True)
    certificate = certified_and_checked(X, y, tmp_path)
    assert certificate.verdict == "separable"
    assert is_tight(certificate)
    assert certificate.margin[0] == pytest.approx(4.13707301e-5, rel=1e-8)


def test_digits_and_iris_jointly(tmp_path):
    X, y = load_digits(return_X_y=True)
    certificate = certified_and_checked(X, y, tmp_path)
    assert certificate.verdict == "separable"
    lower, upper = certificate.margin
    assert upper - lower <= 1e-6 * upper
    W, b = certificate.separator
    assert np.array_equal(np.argmax(X @ W.T + b, axis=1), y)
    X, y = load_iris(return_X_y=True)
    certificate = certified_and_checked(X, y, tmp_path)
    assert (certificate.verdict, certificate.separation) == ("inseparable", "quasi-complete")


@pytest.mark.slow
def test_an_inseparable_integer_set_of_500_columns(tmp_path):
    rng = np.random.default_rng(0)
    X, y = rng.integers(-9, 10, (1600, 500)), rng.integers(0, 2, 1600)
    certificate = certified_and_checked(X, y, tmp_path)
    assert (certificate.verdict, certificate.separation) == ("inseparable", "overlap")
    assert len(certificate.witness) <= 502


def read_csv(path):
    with open(path, newline="") as file:
        rows = [row for row in csv.reader(file) if row]
    try:
        float(rows[0][0])
    except ValueError:
        rows = rows[1:]
    return np.array([row[:-1] for row in rows], float), np.array([row[-1] for row in rows])


def real(name, folder):
    if name in ("sonar", "banknote"):
        return read_csv(folder / "uci" / {"sonar": "sonar.csv", "banknote": "banknote_authentication.csv"}[name])
    if name == "agaricus":
        with gzip.open(folder / "libsvm" / "agaricus.txt.train.gz") as file:
            return load_svmlight_file(file)
    if name == "heart_scale":
        return load_svmlight_file(str(folder / "libsvm" / "heart_scale"))
    with gzip.open(folder / "uci" / "agaricus-lepiota.data.gz", "rt") as file:
        table = np.array([line.strip().split(",") for line in file if line.strip()])
    return OneHotEncoder(dtype=np.float64).fit_transform(table[:, 1:]), table[:, 0]


@pytest.mark.parametrize(
    ("name", "verdict", "separation"),
    [
        ("sonar", "separable", "complete"),
        ("agaricus", "separable", "complete"),
        ("mushroom", "separable", "complete"),
        ("banknote", "inseparable", "overlap"),
        ("heart_scale", "inseparable", "overlap"),
    ],
)
def test_real_data(name, verdict, separation, data_folder, tmp_path):
    X, y = real(name, data_folder)
    certificate = certified_and_checked(X, y, tmp_path)
    assert (certificate.verdict, certificate.separation) == (verdict, separation)
    if verdict == "separable":
        assert is_tight(certificate)
    else:
        assert len(certificate.witness) <= X.shape[1] + 2
    if name == "sonar":
        assert certificate.margin[0] == pytest.approx(1.0793134e-3, rel=1e-6)


# The standalone checker says no.


def spoiled(document, path):
    *way, last = path
    part = document
    for step in way:
        part = part[step]
    before = part[last]
    part[last] = (
        "3/7" if isinstance(before, str) and "/" in before else before * 3 + 1 if not isinstance(before, str) else "5"
    )
    return document


@pytest.mark.parametrize(
    ("bias", "path"),
    [
        (True, ["witness", "weights", 0]),
        (True, ["witness", "rows", 0]),
        (True, ["spanning", "weights", 2]),
        (True, ["radius_squared"]),
        (True, ["verdict"]),
        (True, ["separation"]),
    ],
)
def test_a_spoiled_witness_is_found_out(bias, path, tmp_path):
    X, y = np.array([[1, 1], [1, -1], [-1, 1], [-1, -1]]), np.array([1, -1, -1, 1])
    spoil_and_check(certify(X, y, fit_intercept=bias), X, y, path, tmp_path)


@pytest.mark.parametrize(
    "path",
    [
        ["margin", "lower"],
        ["margin", "least"],
        ["margin", "direction", 0, 0],
        ["margin", "weights", "weights", 0],
        ["mistake_bound"],
        ["geometric_margin", "lower"],
        ["geometric_margin", "weights", "weights", 0],
        ["direction", 0, 0],
        ["examples"],
    ],
)
def test_a_spoiled_margin_is_found_out(path, tmp_path):
    X, y = np.array([[4, 0], [1, 1], [0, 1], [-2, -2]]), np.array([1, -1, -1, 1])
    spoil_and_check(certify(X, y), X, y, path, tmp_path)


def spoil_and_check(certificate, X, y, path, folder):
    document = json.loads(certificate.to_json())
    (folder / "spoiled.json").write_text(json.dumps(spoiled(document, path)))
    write_csv(folder / "data.csv", X, y)
    status, said = standalone(folder / "spoiled.json", folder / "data.csv")
    assert status == 1 and said.startswith("NOT VALID"), said
    assert not Certificate.from_json(folder / "spoiled.json").verify(X, y)


def test_the_checker_reads_headers_and_names_what_it_cannot_read(tmp_path):
    data = tmp_path / "data.csv"
    data.write_text("kind,a,b\nx,1,1\ny,1,-1\ny,-1,1\nx,-1,-1\n")
    assert CliRunner().invoke(app, ["certify", str(data), "--label", "kind", "-o", str(tmp_path / "c.json")]).exit_code == 1
    assert standalone(tmp_path / "c.json", data, "--label", "kind")[0] == 0
    data.write_text("kind,a,b\nx,1,1\ny,1,oops\ny,-1,1\nx,-1,-1\n")
    status, said = standalone(tmp_path / "c.json", data, "--label", "kind")
    assert status == 2 and "line 3" in said
    assert standalone(tmp_path / "missing.json", data)[0] == 2


def test_the_checker_is_short_and_imports_nothing_of_ours():
    text = CHECKER.read_text()
    assert len(text.splitlines()) < 160
    assert "separatrix" not in [word for line in text.splitlines() if "import" in line for word in line.split()]


# The command line.


def command(*arguments):
    return CliRunner().invoke(app, [str(argument) for argument in arguments])


def test_certify_then_check(tmp_path):
    path = tmp_path / "setosa.json"
    done = command("certify", "iris", "--positive", "setosa", "-o", path)
    assert done.exit_code == 0
    assert "iris (setosa against the rest) is separable: 150 examples" in done.output
    assert "221 mistakes" in done.output
    done = command("check", path, "iris", "--positive", "setosa")
    assert (done.exit_code, done.output[:5]) == (0, "VALID")
    done = command("check", path, "iris", "--positive", "virginica")
    assert (done.exit_code, done.output[:9]) == (1, "NOT VALID")


def test_certify_says_no_with_the_rows(tmp_path):
    done = command("certify", "lecture:L1.8")
    assert done.exit_code == 1
    assert "touching" in done.output and "row 2: (0, -1) → 1, weight 0.5" in done.output
    done = command("certify", "lecture:L4.xor", "--bias", "--json")
    assert done.exit_code == 1
    assert json.loads(done.output)["witness"]["weights"] == ["1/4"] * 4
    assert command("certify", "lecture:L4.1").exit_code == 0
    assert command("certify", "breast_cancer", "--time-limit", "1e-9").exit_code == 3


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("1,2,a\n3,x,b\n", "line 2, column 2: 'x' is not a finite number"),
        ("u,v,w\n1,2,a\n3,nan,b\n", "line 3, column 2 (v): a value is missing"),
        ("1,2,a\n3,b\n", "line 2: 2 columns where line 1 has 3"),
        ("", "the file is empty"),
        ("a\nb\n", "no column beside the label"),
        ("1,2\n3,2\n", "only 1 class"),
    ],
)
def test_bad_files_are_named_by_line_and_column(text, message, tmp_path):
    path = tmp_path / "data.csv"
    path.write_text(text)
    done = command("certify", path)
    assert done.exit_code == 2
    assert message in done.stderr and str(path) in done.stderr
    assert len(done.stderr.strip().splitlines()) == 1


def test_bad_names_are_named():
    assert "no such file" in command("certify", "nowhere.csv").stderr
    assert "no such example" in command("certify", "lecture:L9.9").stderr
    assert "no example has the class 'rose'" in command("certify", "iris", "--positive", "rose").stderr
    assert command("check", "nowhere.json", "iris").exit_code == 2


# What is forged is refused by both verifiers alike.

ANIMALS = np.array([[1, 2], [2, 1], [8, 9], [9, 8], [5, 20], [6, 21]])
KINDS = np.array(["cat", "cat", "dog", "dog", "emu", "emu"])


def forgeries():
    """Yield (what, data, labels, options, the field or fields changed)."""
    pets = ANIMALS[:4], KINDS[:4], {}
    three = ANIMALS, KINDS, {}
    xor = np.array([[1, 1], [1, -1], [-1, 1], [-1, -1]]), np.array([1, -1, -1, 1]), {}
    touching = np.array([[1, 0], [-1, 0], [0, 1]]), np.array([1, 1, -1]), {"fit_intercept": False}
    yield "upper below lower", *pets, {"margin.upper": -1e9}
    yield "geometric upper below lower", *pets, {"geometric_margin.upper": -9.0}
    yield "lower too high", *pets, {"margin.lower": 1e3}
    yield "bound too low", *pets, {"mistake_bound": 1}
    yield "ties of a separable set", *pets, {"ties": "+1"}
    yield "another format", *pets, {"format": "x"}
    yield "another radius", *pets, {"radius_squared": "1"}
    yield "classes in another order", *pets, {"classes": ["dog", "cat"]}
    yield "a geometric margin of three classes", *three, {"geometric_margin": "margin"}
    yield "a bound of an inseparable set", *xor, {"mistake_bound": 1}
    yield "a direction that overlap denies", *xor, {"direction": [["5", "-7", "3"]]}
    yield "a direction that nothing claims", *xor, {"direction": [["5", "-7", "3"]], "separation": None}
    yield "a spanning witness for nothing", *xor, {"separation": None}
    yield "a witness of another row", *xor, {"witness.rows": [0, 1, 2, 0]}
    yield "a negative weight", *xor, {"witness.weights": ["1/4", "1/4", "1/4", "-1/4"]}
    yield "the other tie and order", *touching, {"classes": [1, -1], "ties": "-1"}
    yield "bias as text", *pets, {"bias": "false"}
    yield "infinite margin", *pets, {"margin.upper": float("inf")}
    yield "a huge radius", *pets, {"radius_squared": "1e400"}
    yield "half a row", *xor, {"witness.rows": [0, 1, 2, 3.9]}
    yield "a bound of 0 of an inseparable set", *xor, {"mistake_bound": 0}
    yield "a margin of nothing", *xor, {"margin": {}}
    yield "no geometric margin, but not none", *pets, {"geometric_margin": 0}
    yield "ties of 0", *pets, {"ties": 0}
    yield "a field that nobody proves", *pets, {"accuracy": 1.0}
    yield "a witness that claims more", *xor, {"witness.proves": "P = NP"}
    yield "a bound as a fraction", *pets, {"mistake_bound": "9/2"}
    yield "a number with a long exponent", *pets, {"radius_squared": "1e999999999"}
    yield "classes that are lists", *xor, {"classes": [[1], [2]]}
    yield "classes of several kinds", *xor, {"classes": [-1, "1"]}
    yield "one class", *xor, {"classes": [1]}
    yield "names that are numbers", *pets, {"feature_names": [1, 2]}
    yield "other names", *pets, {"feature_names": ["a"]}
    yield "classes as one text", *pets, {"classes": "01"}
    yield "a huge margin", *pets, {"margin.upper": 10**400}


@pytest.mark.parametrize("forged", [pytest.param(f, id=f[0]) for f in forgeries()])
def test_both_verifiers_refuse_a_forged_field(forged, tmp_path):
    _, X, y, options, changes = forged
    document = json.loads(certify(X, y, **options).to_json())
    for field, value in changes.items():
        part, *rest = field.split(".")
        value = document["margin"] if value == "margin" else value
        if rest:
            document[part][rest[0]] = value
        else:
            document[part] = value
    text = json.dumps(document)
    (tmp_path / "forged.json").write_text(text)
    write_csv(tmp_path / "data.csv", X, y)
    status, _ = standalone(tmp_path / "forged.json", tmp_path / "data.csv")
    assert status in (1, 2)
    try:
        accepted = Certificate.from_json(text).verify(X, y)
    except ValueError as problem:
        accepted = "not a certificate" not in str(problem)
    assert not accepted


def test_a_first_line_that_is_half_a_header_is_refused_and_a_byte_order_mark_is_not_data(tmp_path):
    (tmp_path / "half.csv").write_text("?,1,0\n2,1,1\n3,1,0\n")
    done = CliRunner().invoke(app, ["certify", str(tmp_path / "half.csv")])
    assert done.exit_code == 2
    assert "line 1, column 1" in done.stderr
    (tmp_path / "marked.csv").write_text("9,1,0\n2,1,1\n3,1,0\n", encoding="utf-8-sig")
    done = CliRunner().invoke(app, ["certify", str(tmp_path / "marked.csv")])
    assert "3 examples" in done.output


@pytest.mark.parametrize("labels", [["1.0", "1", "2"], ["inf", "x", "x"], ["a", "b", "b"], ["3", "4", "4"]])
def test_labels_are_read_alike_on_the_command_line_and_by_the_checker(labels, tmp_path):
    rows = [f"{i},{i * i},{label}" for i, label in enumerate(labels)]
    (tmp_path / "data.csv").write_text("\n".join(["h,w,kind", *rows]) + "\n")
    CliRunner().invoke(app, ["certify", str(tmp_path / "data.csv"), "-o", str(tmp_path / "c.json")])
    assert standalone(tmp_path / "c.json", tmp_path / "data.csv")[0] == 0
