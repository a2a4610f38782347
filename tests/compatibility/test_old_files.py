"""Files that commit ce82805 wrote are still read, and give what they gave: models, checkpoints, certificates, stores."""

import contextlib
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pytest

from compatibility import seeded_runs as runs
from separatrix import AveragedPerceptron, Certificate, TableFeatures, TextFeatures, load, load_svmlight, save
from separatrix.cluster import fit as fit_shards
from separatrix.web import Client

FILES = Path(__file__).parent / "files"
CLOSE = {"rtol": 1e-9, "atol": 1e-9}
"""Scores are sums, whose last bits a processor may add otherwise; weights as stored are compared by the bit."""
CHECKPOINTS: dict[str, tuple[tuple[Any, ...], int]] = {
    "table-C-auto": (("-C", "auto", "--rule", "arow", "--passes", 5, "--drop", "note"), 2),
    "table-early-stopping": (
        ("--holdout", 0.2, "--early-stopping", "--patience", 2, "--learner", "last", "--passes", 8, "--drop", "note"),
        3,
    ),
    "blocks": (("--memory", "1k", "--rule", "perceptron", "--learner", "averaged", "--passes", 3), 5),
}
"""How the runs were called, and after how many checkpoints they were interrupted."""


def expected() -> dict[str, Any]:
    path = FILES / "expected.json"
    return json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}


EXPECTED = expected()


def plain(value: Any) -> Any:
    """Return a value as JSON gives it back."""
    return json.loads(json.dumps(value, default=lambda other: other.item() if hasattr(other, "item") else str(other)))


def agree(found: Any, told: Any) -> None:
    """Compare what was found with what was told: numbers nearly, all else exactly."""
    if isinstance(told, dict):
        assert found.keys() == told.keys()
        for name in told:
            agree(found[name], told[name])
    elif isinstance(told, list):
        assert len(found) == len(told)
        for one, other in zip(found, told, strict=True):
            agree(one, other)
    elif isinstance(told, float):
        assert np.isclose(found, told, **CLOSE)
    else:
        assert found == told


# Models.


def made_inputs() -> dict[str, Any]:
    rng = np.random.default_rng(200)
    table = {name: values for name, values in runs.table_of(201, 12).items() if name != "kind"}
    X = rng.integers(-3, 4, size=(12, 5)).astype(float)
    gram = rng.integers(-9, 10, size=(6, 60)).astype(float)
    return {"numbers": X.tolist(), "texts": runs.text_of(202, 12), "table": table, "gram": gram.tolist()}


def input_of(inputs: dict[str, Any], name: str) -> Any:
    if name == "table":
        return pa.table(inputs["table"])
    if name == "csv":  # where truth values are text
        return pa.table(inputs["table"] | {"member": [str(value) for value in inputs["table"]["member"]]})
    if name == "rows":
        return load_svmlight(FILES / "data" / "rows.svm")[0][:12]
    if name == "texts":
        return inputs["texts"]
    X = np.array(inputs["gram" if name == "gram" else "numbers"])
    if name == "names":
        import pandas as pd

        return pd.DataFrame(X, columns=list("abcde"))
    return X[:, :2] if name == "plane" else X


def asked_of_model(path: Path, inputs: dict[str, Any], given: str) -> dict[str, Any]:
    """Return what a model file gives when it is read: of itself, its answers, its bytes, how it learns on."""
    model, X = load(path), input_of(inputs, given)
    estimator = model.estimator
    info = model.info()
    assert info.pop("resumable", True)  # the first version wrote nothing else, and had no name for it
    told: dict[str, Any] = {"info": plain({k: v for k, v in info.items() if k not in ("version", "sha256")})}
    told["predictions"] = plain(model.predict(X).tolist())
    told["scores"] = plain(model.decision_function(X).tolist())
    if hasattr(estimator, "slope_"):
        told["probabilities"] = plain(model.predict_proba(X).tolist())
    algebra = type(estimator).__name__ in ("FisherDiscriminant", "KernelPerceptron")
    if not algebra:
        told["weights"] = str(runs.Hash().add(estimator.coef_, estimator.intercept_))
    names = ("mistakes_per_pass_", "n_iter_", "n_seen_", "converged_", "cycle_", "validation_scores_", "C_", "C_scores_")
    told |= {name: plain(getattr(estimator, name)) for name in names if hasattr(estimator, name)}
    if hasattr(estimator, "ledger_") and not estimator.ledger_.absent:
        columns = ("step", "example", "up", "down", "correction", "shrink", "score")
        told["ledger"] = str(runs.Hash().add(*(np.asarray(getattr(estimator.ledger_, name)) for name in columns)))
    told["file"] = runs.file_digest(path)
    if hasattr(estimator, "partial_fit") and given == "numbers" and getattr(estimator, "class_weight", None) is None:
        Z = np.asarray(X)
        labels = np.resize(estimator.classes_, len(Z))
        estimator.partial_fit(Z, labels)
        told["learned_on"] = str(runs.Hash().add(runs.rounded(estimator.coef_)))
    return told


def predicted_by_command(path: Path, data: str, folder: Path) -> list[Any]:
    """Return the predictions and scores of the first rows by the command line."""
    runs.call("predict", path, FILES / "data" / data, "--scores", "-o", folder / "out.jsonl")
    return [json.loads(line) for line in (folder / "out.jsonl").read_text(encoding="utf-8").splitlines()[:10]]


@pytest.mark.parametrize("name", EXPECTED.get("models", {}))
def test_an_old_model_gives_what_it_gave(name, tmp_path):
    path, told = FILES / "models" / f"{name}.sepx", dict(EXPECTED["models"][name])
    command = told.pop("command", None)
    found = asked_of_model(path, EXPECTED["inputs"], told.pop("input"))
    agree(found, told)
    if command is not None:
        data = "rows.svm" if name.endswith("svm") else "table.csv"
        agree(predicted_by_command(path, data, tmp_path), command)


@pytest.mark.parametrize("name", [name for name in EXPECTED.get("models", {}) if not name.endswith("-no-ledger")])
def test_an_old_model_is_written_as_it_was(name, tmp_path):
    save(load(FILES / "models" / f"{name}.sepx"), tmp_path / "again.sepx")
    assert runs.file_digest(tmp_path / "again.sepx") == EXPECTED["models"][name]["file"]


def test_every_old_file_is_asked_for():
    kinds = {"models": "*.sepx", "certificates": "*.json", "checkpoints": "*.ckpt", "stores": "*.zip"}
    for kind, pattern in kinds.items():
        assert {path.stem for path in (FILES / kind).glob(pattern)} == EXPECTED[kind].keys()


# Checkpoints.


def test_an_old_checkpoint_of_several_blocks_is_refused_because_rows_are_mixed_now(tmp_path):
    checkpoint = tmp_path / "run.ckpt"
    shutil.copy(FILES / "checkpoints" / "blocks.ckpt", checkpoint)
    with pytest.raises(AssertionError, match="an earlier version, which mixed the rows otherwise"):
        runs.train(tmp_path, runs.write_blocks(tmp_path), "--checkpoint", checkpoint, *CHECKPOINTS["blocks"][0])
    assert checkpoint.exists()


@pytest.mark.recorded_processor
@pytest.mark.parametrize("name", sorted(CHECKPOINTS.keys() - {"blocks"}))
def test_an_old_checkpoint_is_gone_on_from_to_the_same_bytes(name, tmp_path):
    given, _ = CHECKPOINTS[name]
    data = FILES / "data" / "table.csv"
    checkpoint = tmp_path / "run.ckpt"
    shutil.copy(FILES / "checkpoints" / f"{name}.ckpt", checkpoint)
    assert runs.file_digest(checkpoint) == EXPECTED["checkpoints"][name]["checkpoint"]
    started = load(checkpoint).facts["checkpoint"]
    assert started
    assert runs.train(tmp_path, data, "--checkpoint", checkpoint, *given) == EXPECTED["checkpoints"][name]["digest"]
    assert not checkpoint.exists()


def fit_on_shards(**given: Any) -> Any:
    model = AveragedPerceptron(rule="arow", max_iter=5, random_state=2)
    features = TableFeatures(text=TextFeatures(n_features=128, ngram_range=(1, 1)))
    return fit_shards(model, str(FILES / "data" / "part-*.csv"), label="kind", features=features, **given)


@pytest.mark.recorded_processor
def test_an_old_checkpoint_of_shards_is_gone_on_from_to_the_same_bytes(tmp_path):
    checkpoint, done = tmp_path / "run.ckpt", []
    shutil.copy(FILES / "checkpoints" / "shards.ckpt", checkpoint)
    assert runs.file_digest(checkpoint) == EXPECTED["checkpoints"]["shards"]["checkpoint"]
    fitted = fit_on_shards(checkpoint=checkpoint, working=lambda doing, *_: done.append(doing))
    assert runs.saved_digest(fitted) == EXPECTED["checkpoints"]["shards"]["digest"]
    assert "pass 3" in done and "pass 2" not in done and not checkpoint.exists()


# Certificates.


def asked_of_certificate(path: Path) -> dict[str, Any]:
    """Return what a certificate says, and the verdict of `separatrix check` on it."""
    found = Certificate.from_json(path)
    said = runs.call("check", path, path.with_suffix(".csv"), "--label", "label")
    told = [found.verdict, found.ties, found.separation, found.mistake_bound, found.radius, found.margin, found.infinite]
    rows = None if found.witness is None else [list(found.witness.rows), [str(weight) for weight in found.witness.weights]]
    return plain({"says": told, "witness": rows, "check": said.partition(":")[0]})


@pytest.mark.parametrize("name", EXPECTED.get("certificates", {}))
def test_an_old_certificate_holds_and_is_written_as_it_was(name, tmp_path):
    path = FILES / "certificates" / f"{name}.json"
    agree(asked_of_certificate(path), EXPECTED["certificates"][name])
    assert Certificate.from_json(path).to_json() == path.read_text(encoding="utf-8")
    other = next(other for other in EXPECTED["certificates"] if other != name)
    runs.call("check", path, FILES / "certificates" / f"{other}.csv", "--label", "label", status=1)


# Stores of the feedback server.


def _features(seed: int, n: int) -> list[tuple[Any, Any]]:
    import random

    rng = random.Random(seed)
    found = []
    for i in range(n):
        x = {f"f{rng.randrange(10 + i)}": rng.randrange(-3, 4) for _ in range(4)} | {"from": rng.choice(["bank", "home"])}
        total = sum(value * (int(name[1:]) % 5 - 2) for name, value in x.items() if name != "from")
        found.append((x, "ham" if total < -2 else "spam" if total > 2 else "other"))
    return found


def _texts(seed: int, n: int) -> list[tuple[Any, Any]]:
    return [(text, "spam" if "free" in text or "money" in text else "ham") for text in runs.text_of(seed, n)]


def _rows(seed: int, n: int) -> list[tuple[Any, Any]]:
    table = runs.table_of(seed, n)
    rows = [dict(zip(table, row, strict=True)) for row in zip(*table.values(), strict=True)]
    return [({name: value for name, value in row.items() if name != "kind"}, row["kind"]) for row in rows]


class Store(NamedTuple):
    """How a store came to be: the server's options, how it ended, what it learned, and which mistakes were taken back."""

    given: tuple[str, ...]
    killed: bool
    examples: list[tuple[Any, Any]]
    undone: tuple[int, ...]


STORES = {
    "features": Store((), True, _features(301, 72), (2, 5)),
    "arow-all-kept": Store(("--rule", "arow", "--keep-all", "--learner", "last"), False, _features(302, 72), (3,)),
    "text": Store(("--text", "--bits", "9", "--rule", "pa1"), False, _texts(303, 72), (1,)),
}
"""Sixty examples were learned; the last twelve are for asking."""


@contextlib.contextmanager
def serving(folder: Path, *options: str, kill: bool = False):
    """A client of `separatrix serve` on a folder; at the end the server is ended in order, or killed."""
    command = [sys.executable, "-m", "separatrix", "serve", str(folder), "--port", "0", *options]
    log = Path(f"{folder}.log")
    with open(log, "wb") as file:
        process = subprocess.Popen(command, stdout=file, stderr=file, env=os.environ | {"PYTHONUNBUFFERED": "1"})
    try:
        end = time.monotonic() + 120
        while not (found := re.search(r"serving .* on (http://\S+)", log.read_text())):
            assert process.poll() is None and time.monotonic() < end, log.read_text()
            time.sleep(0.02)
        with Client(found.group(1)) as client:
            yield client
    finally:
        process.send_signal(signal.SIGKILL if kill else signal.SIGTERM)
        process.wait(60)
        log.unlink()


def _mistakes(client: Client) -> list[Any]:
    return [{name: value for name, value in mistake.items() if name != "time"} for mistake in client.ledger()]


def first_answers(client: Any, asked: Any) -> list[dict[str, Any]]:
    """Return predictions as the first version answered them: without the margin."""
    return [{name: value for name, value in reply.items() if name != "margin"} for reply in client.predict_many(asked)]


def asked_of_store(folder: Path, name: str, scratch: Path) -> dict[str, Any]:
    """Return what a store gives when it is opened, what it was like after 40 examples, and how it goes on."""
    how = STORES[name]
    asked = [x for x, _ in how.examples[60:]]
    past = scratch / "past.sepx"
    runs.call("serve", folder, "--as-of", 40, "-o", past)
    told: dict[str, Any] = {"past": runs.file_digest(past)}
    past.unlink()
    counts = ("examples", "errors", "mistakes", "undone")
    with serving(folder, *how.given) as client:
        stats = client.stats()
        told["stats"] = {count: stats[count] for count in counts} | {"classes": stats["classes"]}
        told["predictions"] = first_answers(client, asked)
        told["mistakes"] = str(runs.Hash().add(json.dumps(_mistakes(client), sort_keys=True)))
        told["explanation"] = client.explain(asked[0])["score"]
        client.save_model(past)
        told["model"] = runs.file_digest(past)
        past.unlink()
        told["learned"] = [client.learn(*how.examples[60]), *client.learn_many(how.examples[61:66])]
        stats = client.stats()
        told["stats after"] = {count: stats[count] for count in counts}
        told["predictions after"] = first_answers(client, asked)
    return plain(told)


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=() if name == "features" else pytest.mark.slow) for name in STORES]
)
def test_an_old_store_is_opened_and_gone_on_with(name, tmp_path):
    shutil.unpack_archive(FILES / "stores" / f"{name}.zip", tmp_path / "store")
    agree(asked_of_store(tmp_path / "store", name, tmp_path), EXPECTED["stores"][name])
