"""Write files/: model files, checkpoints, certificates and server stores, and what each gives when it is read.

Run once, by the commit whose files later code must still read:

    PYTHONPATH=<checkout>/src python make_files.py

Times, keys and the identities of the stores are those of the day: a second run gives other bytes in stores/.
"""

from __future__ import annotations

import json
import shutil
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import scipy.sparse as sp

from compatibility import seeded_runs as runs
from compatibility import test_old_files as reading
from separatrix import (
    AveragedPerceptron,
    FisherDiscriminant,
    KernelPerceptron,
    MaxMarginClassifier,
    Model,
    PassiveAggressive,
    Perceptron,
    PocketPerceptron,
    TableFeatures,
    TextFeatures,
    VotedPerceptron,
    certify,
    save,
)
from separatrix.cluster import fit as fit_shards

FILES = Path(__file__).parent / "files"


def numbers(K: int, n: int = 60) -> tuple[np.ndarray, np.ndarray]:
    return runs.examples(f"{K} classes", "dense", 101, n=n, d=5)


def models() -> dict[str, str]:
    """Write the models; return which input each is asked about."""
    folder, inputs = FILES / "models", {}
    folder.mkdir()

    def keep(name: str, model: Any, given: str = "numbers", **options: Any) -> None:
        save(model, folder / f"{name}.sepx", **options)
        inputs[name] = given

    X, y = numbers(3)
    binary = numbers(2)
    sparse = sp.csr_matrix(X * (np.random.default_rng(1).random(X.shape) < 0.5))
    fixed = {"max_iter": 3, "random_state": 6}
    linear = {
        "perceptron": Perceptron(**fixed),
        "averaged": AveragedPerceptron(**fixed),
        "averaged-from-2-pa1": AveragedPerceptron(rule="pa1", average_from=2, **fixed),
        "averaged-arow": AveragedPerceptron(rule="arow", **fixed),
        "averaged-arow-full": AveragedPerceptron(rule="arow-full", **fixed),
        "perceptron-margin-ovr": Perceptron(rule="margin", multi_class="ovr", margin=2.0, tie="first", **fixed),
        "pocket": PocketPerceptron(**fixed),
        "passive-aggressive": PassiveAggressive(average=50, loss="squared_hinge", **fixed),
    }
    for name, model in linear.items():
        keep(name, model.fit(X, y))
        keep(f"{name}-no-ledger", model, ledger=False)
    keep("averaged-binary-no-bias", AveragedPerceptron(fit_intercept=False, tie="+1", **fixed).fit(*binary))
    keep("averaged-record", AveragedPerceptron(record=True, **fixed).fit(X, y))
    keep("averaged-csr-record", AveragedPerceptron(record=True, **fixed).fit(sparse, y))
    keep("perceptron-float32", Perceptron(record=True, **fixed).fit(X.astype(np.float32), y))
    weight = np.arange(60) % 3 / 2.0
    keep("averaged-weights", AveragedPerceptron(class_weight="balanced", **fixed).fit(X, y, sample_weight=weight))
    keep("averaged-C-auto", AveragedPerceptron(rule="pa1", C="auto", **fixed).fit(X, y))
    early = AveragedPerceptron(early_stopping=True, n_iter_no_change=2, max_iter=20, random_state=6, validation_fraction=0.2)
    keep("averaged-early-stopping", early.fit(X, y))
    keep("averaged-calibrated", AveragedPerceptron(calibrate="sigmoid", **fixed).fit(X, y))
    keep(
        "perceptron-cycle",
        Perceptron(order="cyclic", max_iter=None).fit([[1, 1], [1, -1], [-1, 1], [-1, -1]], [1, 0, 0, 1]),
        "plane",
    )
    named = pd.DataFrame(X, columns=list("abcde"))
    keep("averaged-names", AveragedPerceptron(**fixed).fit(named, y), "names")
    stream = AveragedPerceptron(rule="pa2")
    for begin in (0, 1, 5, 30):
        stream.partial_fit(X[begin : {0: 1, 1: 5, 5: 30, 30: 60}[begin]], y[begin : {0: 1, 1: 5, 5: 30, 30: 60}[begin]])
    keep("averaged-stream", stream)
    keep("voted", VotedPerceptron(**fixed).fit(X, y))
    keep("voted-csr-binary", VotedPerceptron(rule="margin", **fixed).fit(sparse, binary[1]))
    for K, data in ((2, binary), (3, (X, y))):
        keep(f"kernel-rbf-{K}", KernelPerceptron(**fixed).fit(*data))
        keep(f"kernel-poly-voted-{K}", KernelPerceptron(kernel="poly", degree=2, predict_with="voted", **fixed).fit(*data))
        keep(f"kernel-budget-{K}", KernelPerceptron(budget=8, **fixed).fit(*data))
    keep("kernel-budget-record", KernelPerceptron(budget=8, record=True, predict_with="voted", **fixed).fit(X, y))
    keep("kernel-csr-ovr", KernelPerceptron(kernel="linear", multi_class="ovr", **fixed).fit(sparse, y))
    keep("kernel-precomputed", KernelPerceptron(kernel="precomputed", **fixed).fit(X @ X.T, y), "gram")
    keep("fisher", FisherDiscriminant().fit(X, y))
    keep("fisher-binary-equal-error", FisherDiscriminant(threshold="equal_error", shrinkage=0.1).fit(*binary))
    keep("max-margin", MaxMarginClassifier(C=1.0, random_state=0).fit(X, y))
    keep("max-margin-hard", MaxMarginClassifier(C=None, random_state=0).fit(*runs.separable("dense", 21, d=5)))
    texts = runs.text_of(103, 60)
    for name, how in (("hashed", {"n_features": 256}), ("vocabulary", {"columns": "vocabulary", "min_df": 2})):
        features = TextFeatures(ngram_range=(1, 1) if name == "hashed" else (1, 2), **how).fit(texts)
        model = AveragedPerceptron(rule="pa1", **fixed).fit(features.transform(texts), y)
        keep(f"text-{name}", Model(model, features, {"about": "texts"}), "texts")
    table = runs.table_of(104, 100)
    kind = np.array(table.pop("kind"))
    for name, how in (("bins", {}), ("standard", {"numbers": "standard", "n_hashed": 8, "roles": {"note": "drop"}})):
        features = TableFeatures(text=TextFeatures(n_features=128, ngram_range=(1, 1)), **how).fit(pa.table(table))
        model = AveragedPerceptron(rule="arow", **fixed).fit(features.transform(pa.table(table)), kind)
        keep(f"table-{name}", model, "table", features=features, facts={"label": "kind"})
    mixed = fit_shards(AveragedPerceptron(rule="arow", **fixed), runs.cut(X, y, 4), mix="mistakes")
    keep("cluster-mixed", mixed)
    pattern = str(FILES / "data" / "part-*.csv")
    features = TableFeatures(text=TextFeatures(n_features=128, ngram_range=(1, 1)))
    keep("cluster-files", fit_shards(AveragedPerceptron(**fixed), pattern, label="kind", features=features), "csv")
    given = ("--label", "kind", "--bits", 8, "--drop", "note", "--passes", 3, "--holdout", 0.2, "--calibrate", "--quiet")
    runs.call("train", FILES / "data" / "table.csv", *given, "-o", folder / "trained-csv.sepx")
    runs.call("train", FILES / "data" / "rows.svm", "--passes", 3, "--rule", "pa2", "-o", folder / "trained-svm.sepx")
    return inputs | {"trained-csv": "csv", "trained-svm": "rows"}


def data() -> None:
    folder = FILES / "data"
    folder.mkdir()
    runs.write_csv(folder / "table.csv", 105, 150)
    for number in range(4):
        runs.write_csv(folder / f"part-{number}.csv", 106 + number, 40)
    runs.write_svmlight(folder / "rows.svm", 110, 80, d=40, filled=6)
    sets = {
        "separable": runs.separable("dense", 111, n=20, d=3),
        "touching": ([[0, 1], [0, -1], [-1, 0.5]], [1, 1, -1]),
        "inseparable": runs.examples("2 classes", "dense", 112, n=30, d=2),
        "three-classes": runs.separable("dense", 113, K=3, n=30, d=3),
        "three-inseparable": runs.examples("3 classes", "dense", 114, n=40, d=2),
    }
    (FILES / "certificates").mkdir()
    for name, (X, y) in sets.items():
        X = np.asarray(X)
        lines = [",".join([*(f"x{j}" for j in range(X.shape[1])), "label"])]
        lines += [",".join([*(f"{value:g}" for value in row), str(label)]) for row, label in zip(X, y, strict=True)]
        path = FILES / "certificates" / f"{name}.csv"
        path.write_text("\n".join(lines) + "\n")
        bias = name != "touching"
        status = 0 if name in ("separable", "three-classes") else 1
        given = ("--label", "label", *([] if bias else ["--no-bias"]), "-o", path.with_suffix(".json"))
        runs.call("certify", path, *given, status=status)
    assert certify(*sets["touching"], fit_intercept=False).verdict == "touching"


def checkpoints(scratch: Path) -> dict[str, Any]:
    folder, told = FILES / "checkpoints", {}
    folder.mkdir()
    for name, (given, times) in reading.CHECKPOINTS.items():
        here = scratch / name
        here.mkdir()
        source = runs.write_blocks(here) if name.startswith("blocks") else FILES / "data" / "table.csv"
        path = runs.checkpointed(here, source, times, *given)
        shutil.copy(path, folder / f"{name}.ckpt")
        path.unlink()
        told[name] = {"digest": runs.train(here, source, *given), "checkpoint": runs.file_digest(folder / f"{name}.ckpt")}

    def stop(doing: str, done: int, total: int) -> None:
        if doing == "pass 3" and done == 1:
            raise runs.StoppedError

    path = folder / "shards.ckpt"
    try:
        reading.fit_on_shards(checkpoint=path, working=stop)
    except runs.StoppedError:
        pass
    told["shards"] = {"digest": runs.saved_digest(reading.fit_on_shards()), "checkpoint": runs.file_digest(path)}
    return told


def stores() -> dict[str, Any]:
    folder, told = FILES / "stores", {}
    folder.mkdir()
    for name, how in reading.STORES.items():
        with reading.serving(folder / name, *how.given) as client:
            client.learn(*how.examples[0])
            list(client.learn_many(how.examples[1:30], size=10))
        with reading.serving(folder / name, *how.given, kill=how.killed) as client:  # where killed, no second snapshot
            list(client.learn_many(how.examples[30:60], size=10))
            for mistake in how.undone:
                client.undo(mistake)
        for part in ("lock", "lock-journal", "store.db-shm"):  # SQLite makes them anew
            (folder / name / part).unlink(missing_ok=True)
        shutil.make_archive(str(folder / name), "zip", folder / name)
        told[name] = reading.asked_of_store(folder / name, name, FILES)
        shutil.rmtree(folder / name)
    return told


def main() -> None:
    warnings.simplefilter("ignore")
    shutil.rmtree(FILES, ignore_errors=True)
    FILES.mkdir()
    scratch = FILES / "scratch"
    scratch.mkdir()
    data()
    expected: dict[str, Any] = {"inputs": reading.made_inputs()}
    asked = models()
    expected["models"] = {name: {"input": given} for name, given in sorted(asked.items())}
    for name, of in expected["models"].items():
        of |= reading.asked_of_model(FILES / "models" / f"{name}.sepx", expected["inputs"], of["input"])
    for name in ("trained-csv", "cluster-files"):
        expected["models"][name]["command"] = reading.predicted_by_command(
            FILES / "models" / f"{name}.sepx", "table.csv", scratch
        )
    expected["models"]["trained-svm"]["command"] = reading.predicted_by_command(
        FILES / "models" / "trained-svm.sepx", "rows.svm", scratch
    )
    expected["checkpoints"] = checkpoints(scratch)
    expected["certificates"] = {
        path.stem: reading.asked_of_certificate(path) for path in sorted((FILES / "certificates").glob("*.json"))
    }
    expected["stores"] = stores()
    shutil.rmtree(scratch)
    (FILES / "expected.json").write_text(_lines(expected), encoding="utf-8")
    (FILES / "README.md").write_text(README, encoding="utf-8")


def _lines(expected: dict[str, Any]) -> str:
    """Return JSON with a line for each file."""
    kinds = []
    for kind, files in sorted(expected.items()):
        lines = (f"  {json.dumps(name)}: {json.dumps(of, ensure_ascii=False, sort_keys=True)}" for name, of in files.items())
        kinds.append(f" {json.dumps(kind)}: {{\n" + ",\n".join(lines) + "\n }")
    return "{\n" + ",\n".join(kinds) + "\n}\n"


README = """\
# Files written by an older commit

Commit ce82805 (version 0.1.0) wrote these files, by `make_files.py` beside this folder, through public names and the command
line: models of every estimator (`models/`), checkpoints of runs that were interrupted (`checkpoints/`), certificates with
their data (`certificates/`), the folders of feedback servers, started twice, one of them killed, so that it holds commits
after its snapshot, still in SQLite's log (`stores/`), and the tables that some of them belong to (`data/`). What each
must give when it is read is in `expected.json`, as the same commit gave it. Later code must still read them: do not write
them anew, add files of later commits beside them.
"""

if __name__ == "__main__":
    main()
