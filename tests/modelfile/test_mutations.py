"""Mutated model files, in bytes or in content with a right checksum: loaded and usable, or refused in one line."""

import random

import numpy as np
import pytest

from separatrix import (
    AveragedPerceptron,
    FisherDiscriminant,
    KernelPerceptron,
    MaxMarginClassifier,
    PocketPerceptron,
    TableFeatures,
    TextFeatures,
    VotedPerceptron,
    load,
    save,
)
from separatrix.modelfile.errors import ModelFileError
from support.mutations import mutated
from support.round_trip import SPAM, TEXTS, X, Y, parts, signed
from support.scale import counts

VALUES = [None, True, -1, 0, 1, 2**31 - 1, 2**62, 2**70, 1e308, 0.5, "", "x", [], {}, [[1]], {"float": "nan"}, "inf"]
TABLE = [{"size": k / 3, "kind": "abc"[k % 3], "note": TEXTS[k % 6]} for k in range(12)]


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    """Rows that a model predicts, by the bytes of its file."""
    path, made = tmp_path_factory.mktemp("models") / "m.sepx", []
    text = TextFeatures(n_features=16, ngram_range=(1, 1)).fit(TEXTS)
    table = TableFeatures(text=TextFeatures(n_features=16)).fit(_frame(), SPAM.repeat(2))
    plain = [
        AveragedPerceptron(random_state=0, record=True, rule="arow"),
        VotedPerceptron(random_state=0, max_iter=2),
        PocketPerceptron(random_state=0, max_iter=2),
        FisherDiscriminant(),
        MaxMarginClassifier(),
        KernelPerceptron(kernel="rbf", random_state=0, budget=5, max_iter=2),
    ]
    for model in plain:
        save(model.fit(X[:30], Y[:30]), path)
        made.append((X[:6], path.read_bytes()))
    for features, rows, labels in ((text, TEXTS, SPAM), (table, _frame(), SPAM.repeat(2))):
        save(AveragedPerceptron(random_state=0).fit(features.transform(rows), labels), path, features=features)
        made.append((rows, path.read_bytes()))
    return made


def _frame():
    import pandas as pd

    return pd.DataFrame(TABLE)


def places(tree, path=()):
    yield path
    for key, value in tree.items() if isinstance(tree, dict) else enumerate(tree) if isinstance(tree, list) else ():
        yield from places(value, (*path, key))


def respelled(data, draw):
    """The file with something in its content changed, and a right checksum."""
    body, arrays = parts(data)
    if draw.random() < 0.5:
        *path, last = draw.choice([path for path in places(body) if path])
        at = body
        for key in path:
            at = at[key]
        if draw.random() < 0.7:
            at[last] = draw.choice(VALUES)
        else:
            del at[last]
        return signed(body, arrays)
    name = draw.choice(sorted(arrays))
    array = arrays[name]
    match draw.choice(["drop", "cut", "retype", "poke", "poke", "reshape", "bytes"]):
        case "drop":
            del arrays[name]
        case "cut":
            arrays[name] = array[: draw.randint(0, len(array))]
        case "retype":
            with np.errstate(all="ignore"):
                arrays[name] = array.astype(draw.choice(["f4", "f8", "i8", "u1", "i4", "u4", "bool"]))
        case "reshape":
            arrays[name] = array.reshape(-1, 1)
        case "bytes" if array.size:
            view = array.reshape(-1).view(np.uint8)
            view[draw.randrange(len(view))] = draw.choice([0, 1, 127, 128, 255])
        case "poke" if array.size:
            numbers = [np.nan, np.inf, -1e308] if array.dtype.kind == "f" else [-1, 0, 3, np.iinfo(array.dtype).max]
            with np.errstate(all="ignore"):
                array.reshape(-1)[draw.randrange(array.size)] = np.array(draw.choice(numbers)).astype(array.dtype)
    return signed(body, arrays)


@pytest.mark.parametrize("number", counts(quick=150, soak=31_500))
def test_a_mutated_model_file_is_usable_or_refused(files, tmp_path, number):
    draw, path = random.Random(18), tmp_path / "bad.sepx"
    outcomes = dict.fromkeys(("refused", "loaded", "saved again"), 0)
    for k in range(number):
        rows, good = draw.choice(files)
        path.write_bytes((mutated if k % 3 == 0 else respelled)(good, draw))
        try:
            model = load(path, plain=draw.random() < 0.5)
        except ModelFileError as error:
            line = str(error)
            assert line.startswith(str(path)) and "\n" not in line and len(line) < 500, (k, line)
            outcomes["refused"] += 1
            continue
        outcomes["loaded"] += 1
        try:
            with np.errstate(over="ignore", invalid="ignore"):  # of weights near the end of float64
                assert len(model.predict(rows)) == len(rows), k
            save(model, tmp_path / "again.sepx")
        except ValueError:  # a clear error: rows of another width, weights that outgrow float64
            continue
        load(tmp_path / "again.sepx")  # `save` never writes what `load` refuses
        outcomes["saved again"] += 1
    print(outcomes)
    assert outcomes["refused"] + outcomes["loaded"] == number and min(outcomes.values()) > number // 50
