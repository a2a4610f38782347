"""Separation as statsmodels, firthmodels' linear program and `check_separation` answer it, case by case.

    python -m benchmarks.separation_battery [--write]

The made cases are separated, or not, by construction. `--write` puts the table into docs/separation.md. Times are of the
processor, and those of `check_separation` alone are shown. The suite "separation" of `separatrix bench` counts the right
answers of the made cases, and times `check_separation` beside the linear program where that answers.
"""

from __future__ import annotations

import sys
import time
import warnings
from math import inf

import numpy as np
import scipy.sparse as sp
from sklearn.datasets import load_breast_cancer, load_iris, load_svmlight_file, load_wine

from benchmarks import datasets
from benchmarks.certificates import agaricus, sonar
from benchmarks.datasets import DATA, absent
from benchmarks.harness import Quality, Row, installed
from benchmarks.pages import put
from benchmarks.timing import in_turns
from separatrix import check_separation

PEER = "firthmodels' linear program"
ABOUT = (
    "Whether a logistic regression has finite coefficients: `check_separation` answers with a proof and names the columns, "
    "the linear program with a tolerance. [Perfect separation](separation.md) has the answers, case by case."
)
HEAD = ("data", "rows × columns", "statsmodels `Logit`", "statsmodels `GLM`", "firthmodels", "`check_separation`", "s")


def normal(n=200, d=3, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d))
    return rng, X, (X[:, 0] + rng.logistic(size=n) > 0).astype(int)


def complete():
    _, X, _ = normal()
    return X, (X @ [1, 2, -1] > 0).astype(int)


def overlap():
    _, X, y = normal()
    return X, y


def dummy(share=0.05, n=200, seed=0):
    rng, X, y = normal(n, seed=seed)
    level = rng.random(n) < share
    y[level] = 1
    return np.column_stack([X, level]), y


def rare():
    """Thirty levels, most of them rare: some are all of one class."""
    rng, X, y = normal(400)
    level = np.minimum(rng.geometric(0.12, 400) - 1, 29)
    return np.column_stack([X, level[:, None] == np.arange(1, 30)]), y


def two_dummies():
    """Only the combination of two levels has one class, and the model has their product."""
    rng, X, y = normal(300)
    a, b = rng.random((2, 300)) < 0.2
    y[a & b] = 0
    return np.column_stack([X, a, b, a & b]), y


def collinear():
    _, X, y = normal()
    whole = np.round(X * 8)
    return np.column_stack([whole, whole[:, 0] + whole[:, 1]]), y


def collinear_and_separated():
    X, y = dummy()
    return np.column_stack([X, 1 - X[:, 3]]), y


def gap(size):
    x = np.r_[np.linspace(-2, 0, 40), np.linspace(size, 2, 40)]
    other = np.cos(7 * np.arange(80))
    other[39:41] = 0.5  # so that only x tells the two rows apart that are nearest
    return np.column_stack([x, other]), (np.arange(80) >= 40).astype(int)


def tiny_column():
    X, y = dummy()
    X[:, 3] *= 1e-9
    return X, y


def multinomial(separated):
    rng = np.random.default_rng(3)
    X = rng.normal(size=(300, 2))
    y = np.argmax(np.column_stack([X, np.zeros(300)]) + rng.gumbel(size=(300, 3)), axis=1)
    level = rng.random(300) < 0.06
    if separated:
        y[level & (y == 2)] = 1
    return np.column_stack([X, level]), y


def iris_pair():
    iris = load_iris()
    return iris.data[50:], iris.target[50:] - 1


def table(name, delimiter):
    numbers = np.loadtxt(DATA / "uci" / name, delimiter=delimiter)
    return numbers[:, :-1], numbers[:, -1].astype(int)


def svmlight(name):
    X, y = load_svmlight_file(str(DATA / "libsvm" / name))
    return X, (y > 0).astype(int)


def a9a():
    X, y, *_ = datasets.a9a()
    return X, (y > 0).astype(int)


def coded(load):
    X, y = load()
    return X, np.unique(y, return_inverse=True)[1]


MADE = {
    "complete separation": complete,
    "overlap": overlap,
    "quasi-complete by a dummy": dummy,
    "rare categories (30 levels)": rare,
    "interaction of two dummies": two_dummies,
    "exactly collinear, overlap": collinear,
    "exactly collinear, and a dummy separates": collinear_and_separated,
    "a gap of 1e-9": lambda: gap(1e-9),
    "an overlap of 1e-9": lambda: gap(-1e-9),
    "a dummy measured in 1e-9": tiny_column,
    "multinomial, overlap": lambda: multinomial(False),
    "multinomial, a level lacks a class": lambda: multinomial(True),
}
OVERLAPPING = ("overlap", "exactly collinear, overlap", "an overlap of 1e-9", "multinomial, overlap")
COMPLETE = ("complete separation", "a gap of 1e-9")
"""The made cases that are so by construction; the others are quasi-complete."""
BUILT_IN = {
    "iris, versicolor and virginica": iris_pair,
    "iris, three classes": lambda: load_iris(return_X_y=True),
    "WDBC": lambda: load_breast_cancer(return_X_y=True),
    "wine, three classes": lambda: load_wine(return_X_y=True),
}
SHARED = {
    "sonar": lambda: coded(sonar),
    "banknotes": lambda: table("banknote_authentication.csv", ","),
    "spambase": lambda: table("spambase.data.gz", None),
    "heart": lambda: svmlight("heart_scale"),
    "mushrooms": lambda: coded(agaricus),
    "a9a (census)": a9a,
}


def by_statsmodels(X, y, glm):
    """Fit; return what a user sees: an error, a warning, or estimates and whether they are of an ordinary size."""
    import statsmodels.api as sm

    K = len(np.unique(y))
    if glm and K > 2:
        return "–"
    exog = sm.add_constant(X, has_constant="skip")
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            if glm:
                results = sm.GLM(y, exog, family=sm.families.Binomial()).fit()
            else:
                results = (sm.Logit if K == 2 else sm.MNLogit)(y, exog).fit(disp=False)
        except Exception as error:
            return f"{type(error).__name__}: {str(error).split(',')[0]}"
    about_code = (DeprecationWarning, FutureWarning)
    names = sorted({each.category.__name__ for each in caught if not issubclass(each.category, about_code)})
    if not getattr(results, "converged", True):
        names.append("not converged")
    spread = np.std(exog, axis=0)
    spread[spread == 0] = 1.0
    size = np.max(np.abs(np.asarray(results.params).reshape(len(spread), -1) * spread[:, None]))
    if not np.isfinite(size):
        return ", ".join([*names, "nan"])
    word = f"largest coefficient {size:.3g}"
    return ", ".join(names) + f"; {word}" if names else f"converged silently; {word}"


def by_firthmodels(X, y):
    if len(np.unique(y)) > 2:
        return "two classes only"
    try:
        from firthmodels import detect_separation
    except ImportError:
        return "not installed"
    try:
        answer = detect_separation(X, y)
    except Exception as error:
        return f"{type(error).__name__}: {str(error).split(' (')[0].split('.')[0]}"
    return f"separation, {int((~answer.is_finite).sum())} infinite" if answer.separation else "no separation"


def by_us(X, y):
    begin = time.process_time()
    check = check_separation(X, y)
    seconds = time.process_time() - begin
    assert check.separation == "undecided" or check.verify()
    words = [check.separation]
    if check.infinite:
        certain = [each for each in check.infinite if each.certain]
        if 0 < len(certain) <= 3 and check.separation != "complete":
            words += [f"{each.name} → {'+' if each.limit == inf else '−'}∞" for each in certain]
        else:
            words.append(f"{len(check.infinite)} infinite")
    if check.collinear:
        words.append(
            f"collinear: {', '.join(each.column for each in check.collinear[:3])}" + " …" * (len(check.collinear) > 3)
        )
    return ", ".join(words), seconds


def answers():
    """Yield the line of each case."""
    for name, load in {**MADE, **BUILT_IN, **({} if absent() else SHARED)}.items():
        X, y = load()
        dense = X.toarray() if hasattr(X, "toarray") else np.asarray(X, float)
        ours, seconds = by_us(X, y)
        theirs = by_statsmodels(dense, y, False), by_statsmodels(dense, y, True), by_firthmodels(dense, y)
        yield name, f"{X.shape[0]:,} × {X.shape[1]}", *theirs, ours, f"{seconds:.2f}"


def truth(name):
    return "overlap" if name in OVERLAPPING else "complete" if name in COMPLETE else "quasi-complete"


def rows(quick):
    """The suite "separation"."""
    check_separation(np.array([[0.0], [1.0]]), [0, 1])  # compiles
    if not installed("firthmodels") or not installed("statsmodels"):
        yield Row.missing("separation or not", PEER, "statsmodels or firthmodels is not installed")
        return
    right, silent = {"ours": 0, PEER: 0}, 0
    for name, load in MADE.items():
        X, y = load()
        X = np.asarray(X, float)
        right["ours"] += by_us(X, y)[0].split(",")[0] == truth(name)
        separated = {"overlap": "no separation"}.get(truth(name), "separation")
        right[PEER] += by_firthmodels(X, y).split(",")[0] == separated
        silent += truth(name) != "overlap" and "silently" in by_statsmodels(X, y, True)
    n = len(MADE)
    note = f"{PEER} {right[PEER]}; statsmodels' GLM converges silently in {silent} of the separated cases"
    yield Row(
        f"right answers in {n} made cases", "check_separation", value=right["ours"], unit=f"of {n}", floor=n, note=note
    )
    timed = ("complete separation", "interaction of two dummies"), ("WDBC",), () if absent() else ("sonar", "spambase")
    for cases, names in zip((MADE, BUILT_IN, SHARED), timed[:2] if quick else timed, strict=False):
        for name in names:
            yield beside(name, *cases[name](), repeats=2 if quick else 5)


def beside(name, X, y, repeats):
    """The row of one case beside the linear program, which has no kind of separation and no proof."""
    X = X.toarray() if hasattr(X, "toarray") else np.asarray(X, float)
    (ours, theirs), (check, answer) = in_turns(
        lambda: check_separation(X, y), lambda: by_firthmodels(X, y), repeats=repeats, warm_up=1
    )
    checked = check.separation != "undecided" and check.verify()
    agreed = (check.separation != "overlap") == answer.startswith("separation")
    says = f"{check.separation}, proof {'checked exactly' if checked else 'not checked'}; the LP says {answer.split(',')[0]}"
    what = f"{name}, {X.shape[0]:,} × {X.shape[1]}"
    return Row(what, "check_separation", PEER, ours, theirs, quality=Quality(says, checked and agreed))


def main():
    for X in (np.array([[0.0], [1.0]]), sp.csr_matrix([[0.0], [1.0]])):
        check_separation(X, [0, 1])  # compiles
    page = [f"| {' | '.join(HEAD)} |", f"|{'---|' * len(HEAD)}"]
    for cells in answers():
        print(*cells, sep=" | ", flush=True)
        page.append(f"| {' | '.join(cell.replace('|', '/') for cell in cells)} |")
    if "--write" in sys.argv:
        import statsmodels

        versions = f"statsmodels {statsmodels.__version__}"
        try:
            from importlib.metadata import version

            versions += f", firthmodels {version('firthmodels')}"
        except ImportError:
            versions += ", firthmodels not installed"
        print("written to", put("docs/separation.md", "battery", "\n".join([*page, "", f"With {versions}."])))


if __name__ == "__main__":
    main()
