"""`train --tune` beside a grid search over C of two linear classifiers of scikit-learn, on the same folds.

    OMP_NUM_THREADS=1 python -m benchmarks.tuning [adult wine …] [--budget 120] [--again] [--write]

Ours is `separatrix.train(file, tune=True, budget=120)`. The peers are `GridSearchCV` over five values of C of
`LogisticRegression` and of `LinearSVC`, behind scikit-learn's usual featurizers: `StandardScaler` and `OneHotEncoder` for
tables, `TfidfVectorizer` for texts, and svmlight data as they are. All have the same five stratified folds of the same rows.

The best of many candidates on some rows is optimistic about others, and we try more of them. So the accuracy of a fold is
that of the candidate that is best on the other four, on both sides alike. Of sets with fewer than 2,000 rows there is also
the nested accuracy, where each side tunes on four folds without ever seeing the fifth.

What a set gave is kept in build/tuning.json, so that a run can be ended and resumed; sets that are named with `--again`, or
lack a result, are run. `--write` puts the table into docs/tuning.md.
"""

from __future__ import annotations

import argparse
import json
import tempfile
import time
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from benchmarks.datasets import DATA, absent
from benchmarks.harness import Quality, Row
from benchmarks.pages import ROOT, put
from benchmarks.timing import Times
from separatrix import train
from separatrix.data.reading import open_source

MODEST = ("adult", "sms_spam", "a9a", "wine", "wdbc")
"""What the suite of `separatrix bench` runs, in a minute and a half; docs/tuning.md has all sets."""
ABOUT = (
    "`separatrix train --tune` beside `GridSearchCV` over five values of C, behind scikit-learn's usual featurizers, on the "
    "same five folds. The accuracy of a fold is that of the candidate that is best on the other four, on both sides. The "
    "figure is how far we are ahead, in standard errors of the mean over the folds. [Tuning](tuning.md) has more data sets, "
    "and the nested accuracy of small ones."
)
BUDGET, FOLDS, SMALL, KDD_ROWS = 120.0, 5, 2000, 20_000
CS = (0.01, 0.1, 1.0, 10.0, 100.0)
PEERS = ("LogisticRegression", "LinearSVC")
RESULTS = ROOT / "build" / "tuning.json"
TITLES = {
    "adult": "Adult",
    "kdd": f"KDD Cup 99, {KDD_ROWS:,} rows",
    "sms_spam": "sms_spam",
    "newsgroups": "20 newsgroups",
    "a9a": "a9a",
    "digits": "digits",
    "wine": "wine",
    "wdbc": "WDBC",
    "sonar": "sonar",
}


def file_of(name: str, folder: Path) -> tuple[Path, dict[str, Any]]:
    """Return the file of a data set, and how `train` is told of its label."""
    files = {
        "adult": (DATA / "adult" / "adult-train.csv.gz", {}),
        "sms_spam": (DATA / "sms_spam" / "SMSSpamCollection.gz", {"label": "c0"}),
        "newsgroups": (DATA / "20newsgroups" / "20newsgroups-train.tab.gz", {}),
        "a9a": (DATA / "libsvm" / "a9a_zero_based.trn.bz2", {}),
        "sonar": (DATA / "uci" / "sonar.csv", {}),
    }
    if name in files:
        return files[name]
    path = folder / f"{name}.csv"
    if name == "kdd":
        lines = pd.read_csv(DATA / "kddcup99" / "kddcup.data_10_percent.gz", header=None)
        chosen = np.sort(np.random.default_rng(0).permutation(len(lines))[:KDD_ROWS])
        lines.iloc[chosen].set_axis([f"c{k}" for k in lines.columns], axis=1).to_csv(path, index=False)
        return path, {}
    from sklearn import datasets

    load = {"digits": datasets.load_digits, "wine": datasets.load_wine, "wdbc": datasets.load_breast_cancer}[name]
    bunch = load(as_frame=True)
    bunch.data.assign(kind=bunch.target.map(lambda k: f"class {k}")).to_csv(path, index=False)
    return path, {"label": "kind"}


def rows_of(path: Path, label: str | None) -> tuple[Any, Any]:
    """Return the rows of a file as a data frame or a matrix, and their labels."""
    import pyarrow as pa
    import scipy.sparse as sp

    source = open_source(path, label=label)
    batches = list(source)
    if source.kind == "rows":
        width = max(batch.X.shape[1] for batch in batches)
        for batch in batches:
            batch.X.resize(batch.X.shape[0], width)
        return sp.vstack([batch.X for batch in batches], format="csr"), np.concatenate([batch.y for batch in batches])
    table = pa.Table.from_batches([batch.table for batch in batches]).to_pandas()
    return table.drop(columns=source.label), table[source.label].to_numpy()


def peer_of(name: str, X: Any) -> Any:
    """Return a peer behind the usual featurizers of its rows."""
    from sklearn.compose import make_column_selector, make_column_transformer
    from sklearn.feature_extraction.text import TfidfVectorizer
    from sklearn.impute import SimpleImputer
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import OneHotEncoder, StandardScaler
    from sklearn.svm import LinearSVC

    learner = LogisticRegression(max_iter=1000) if name == "LogisticRegression" else LinearSVC()
    if not isinstance(X, pd.DataFrame):
        return make_pipeline(learner)
    if X.shape[1] == 1:
        return make_pipeline(make_column_transformer((TfidfVectorizer(), X.columns[0])), learner)
    numbers = make_pipeline(SimpleImputer(), StandardScaler())
    columns = make_column_transformer(
        (numbers, make_column_selector(dtype_include="number")),
        (OneHotEncoder(handle_unknown="ignore"), make_column_selector(dtype_exclude="number")),
    )
    return make_pipeline(columns, learner)


def searched(name: str, X: Any, y: Any, folds: Any) -> Any:
    """Return the grid search of a peer on given folds."""
    from sklearn.model_selection import GridSearchCV, PredefinedSplit

    search = GridSearchCV(peer_of(name, X), {f"{name.lower()}__C": CS}, cv=PredefinedSplit(folds))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # a class with fewer rows than folds, a fit that needs more iterations
        return search.fit(X, y)


def measured(name: str, budget: float = BUDGET, nested: bool = True) -> dict[str, Any]:
    """Return the figures of a data set."""
    from separatrix.training.tuning.folds import fold_numbers

    with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        path, options = file_of(name, Path(folder))
        began = time.perf_counter()
        model = train(path, tune=True, budget=budget, folds=FOLDS, **options)
        seconds = time.perf_counter() - began
        tuning, validation = model.summary["tuning"], model.cross_validation
        X, y = rows_of(path, options.get("label"))
        assert [str(label) for label in validation.examples.labels] == [str(label) for label in y]
        figures: dict[str, Any] = {
            "rows": len(y),
            "ours": {
                "folds": tuning["without_fold"] or model.summary["folds"]["accuracy"]["by_fold"],
                "best": model.summary["folds"]["accuracy"]["mean"],
                "seconds": seconds,
                "candidates": tuning["candidates"],
                "complete": tuning["complete"],
                "chosen": {key: str(value) for key, value in tuning["chosen"].items()},
            },
        }
        for peer in PEERS:
            began = time.perf_counter()
            search = searched(peer, X, y, validation.folds)
            seconds = time.perf_counter() - began
            by_fold = np.array([search.cv_results_[f"split{k}_test_score"] for k in range(FOLDS)])
            without = [by_fold[k, np.argmax(np.delete(by_fold, k, 0).mean(axis=0))] for k in range(FOLDS)]
            chosen = {"C": str(next(iter(search.best_params_.values())))}
            figures[peer] = {"folds": list(map(float, without)), "best": search.best_score_, "seconds": seconds} | {
                "chosen": chosen
            }
        if nested and len(y) < SMALL:
            sides: dict[str, list[float]] = {side: [] for side in ("ours", *PEERS)}
            for fold in range(FOLDS):
                out = validation.folds == fold
                inner = fold_numbers(validation.examples.codes[~out], FOLDS, seed=0)
                mine = train(X[~out], label=y[~out], tune=True, budget=budget)
                sides["ours"].append(float(np.mean(mine.predict(X[out]) == y[out])))
                for peer in PEERS:
                    sides[peer].append(float(searched(peer, X[~out], y[~out], inner).score(X[out], y[out])))
            for side, accuracies in sides.items():
                figures[side]["nested"] = accuracies
    return figures


def mean_and_error(accuracies: list[float]) -> tuple[float, float]:
    """Return the mean over the folds and its standard error."""
    return float(np.mean(accuracies)), float(np.std(accuracies, ddof=1) / len(accuracies) ** 0.5)


def behind(figures: dict[str, Any], key: str = "folds") -> tuple[float, str]:
    """Return by how many standard errors we are ahead of the better peer, and its name."""
    ours, error = mean_and_error(figures["ours"][key])
    peer = max(PEERS, key=lambda name: float(np.mean(figures[name][key])))
    return (ours - float(np.mean(figures[peer][key]))) / max(error, 1e-12), peer


def rows(quick: bool) -> Iterator[Row]:
    """Yield a row for each data set and peer; a quick run has two small sets and ten seconds."""
    if not quick and (reason := absent()):
        yield Row.missing("tuning", "scikit-learn", reason)
        return
    for name in ("wine", "wdbc") if quick else MODEST:
        figures = measured(name, 10.0 if quick else BUDGET, nested=False)
        (ours, error), times = mean_and_error(figures["ours"]["folds"]), figures["ours"]["seconds"]
        for peer in PEERS:
            theirs = float(np.mean(figures[peer]["folds"]))
            yield Row(
                TITLES[name],
                f"train --tune ({figures['ours']['candidates']:,} recipes)",
                f"GridSearchCV, {peer}, {len(CS)} C's",
                Times([times], [times]),
                Times([figures[peer]["seconds"]], [figures[peer]["seconds"]]),
                value=(ours - theirs) / max(error, 1e-12),
                unit="standard errors",
                floor=-1.0,
                quality=Quality.compared("out-of-fold accuracy", ours, theirs, slack=error),
            )


def table(results: dict[str, Any]) -> str:
    """Return the figures as a table of Markdown."""
    heads = ["data", "rows", "`train --tune`", "s", *(f"{head}" for peer in PEERS for head in (peer, "s")), "nested"]
    lines = ["| " + " | ".join(heads) + " |", "|---" * len(heads) + "|"]
    for name, title in TITLES.items():
        if name not in results:
            continue
        figures = results[name]
        cells = [title, f"{figures['rows']:,}"]
        for side in ("ours", *PEERS):
            mean, error = mean_and_error(figures[side]["folds"])
            cells += [f"{mean:.4f} ± {error:.4f}", f"{figures[side]['seconds']:.0f}"]
        nested = [f"{np.mean(figures[side]['nested']):.4f}" for side in ("ours", *PEERS) if "nested" in figures[side]]
        lines.append("| " + " | ".join([*cells, " · ".join(nested)]) + " |")
    return "\n".join(lines)


def main() -> None:
    """Run the sets that are named, or all that lack a result."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("sets", nargs="*", metavar="SET", help=f"of {', '.join(TITLES)}")
    parser.add_argument("--budget", type=float, default=BUDGET)
    parser.add_argument("--again", action="store_true", help="run sets that have a result, too")
    parser.add_argument("--write", action="store_true", help="put the table into docs/tuning.md")
    arguments = parser.parse_args()
    if unknown := set(arguments.sets) - TITLES.keys():
        parser.error(f"no such set: {', '.join(sorted(unknown))}")
    results = json.loads(RESULTS.read_text()) if RESULTS.exists() else {}
    for name in arguments.sets or TITLES:
        if name not in results or arguments.again:
            results[name] = measured(name, arguments.budget)
            RESULTS.parent.mkdir(exist_ok=True)
            RESULTS.write_text(json.dumps(results, indent=1))
        ahead, peer = behind(results[name])
        print(f"{TITLES[name]}: {ahead:+.1f} standard errors beside {peer}", flush=True)
    print(table(results))
    if arguments.write:
        print(put("docs/tuning.md", "benchmarks.tuning", table(results)))


if __name__ == "__main__":
    main()
