"""Receipts of `forget`: they hold for what is left and for nothing else, and say nothing of the rows that were removed."""

import json

import numpy as np
import pytest
from click.testing import CliRunner

from separatrix import Perceptron, PocketPerceptron, forget
from separatrix.cli import app
from separatrix.training.forgetting.checking import fault_of
from separatrix.training.forgetting.receipt import Receipt, ReceiptError
from training.test_forgetting import FRAME, X, Y, run

pytestmark = pytest.mark.filterwarnings("ignore::UserWarning")


def test_a_receipt_of_arrays_holds_for_what_is_left_and_for_nothing_else():
    model = PocketPerceptron(random_state=3).fit(X, Y)
    after, receipt = forget(model, [4, 30], X, Y)
    rest, labels = np.delete(X, [4, 30], axis=0), np.delete(Y, [4, 30])
    assert fault_of(receipt, rest, labels) is None
    assert "60 rows to train on, and the receipt says 58" in fault_of(receipt, X, Y)
    changed = rest.copy()
    changed[after.ledger_.example[0], 0] += 1  # a row that never made a mistake has no part in the model
    assert "gives another model" in fault_of(receipt, changed, labels)
    other_order = json.loads(json.dumps(receipt))
    other_order["order"]["forgotten"] = [4, 31]
    assert "gives another model" in fault_of(other_order, rest, labels)


def test_what_a_receipt_says_cannot_be_changed_unnoticed(tmp_path):
    FRAME.to_csv(tmp_path / "d.csv", index=False)
    data, left, model, path = (tmp_path / name for name in ("d.csv", "left.csv", "m.sepx", "m.receipt.json"))
    run("train", data, "-o", model)
    run("forget", model, data, "--rows", "5,31", "--remaining", left)
    receipt = json.loads(path.read_text())
    changes = {
        ("removed", "rows"): [5, 30],
        ("removed", "counted_from"): 0,
        ("removed", "checksums"): receipt["removed"]["checksums"][:1],
        ("before", "rows"): 61,
        ("before", "mistakes"): 0,
        ("after", "rows"): 57,
        ("after", "mistakes"): 0,
        ("after", "passes"): 1,
        ("after", "converged"): not receipt["after"]["converged"],
        ("after", "learned"): "0" * 64,
        ("changed", "mistakes"): 1000,
        ("before", "passes"): -1,
        ("changed", "weights"): [9, 3],
        ("replay", "steps"): 1,
        ("replay", "presented"): receipt["replay"]["steps"] + 1,
        ("replay", "from_beginning"): not receipt["replay"]["from_beginning"],
        ("replay", "first_mistake"): receipt["before"]["mistakes"],
        ("order", "kind"): "cyclic",
        ("order", "seed"): 9,
        ("order", "examples_once"): 61,
        ("order", "forgotten"): [4, 31],
        ("order", "rows_forgotten"): [4, 31],
        ("training", "learner"): "Perceptron",
        ("training", "label"): "colour",
        ("training", "settings", "seed"): -1,
    }
    names = [("training", "parameters", name) for name in receipt["training"]["parameters"]]
    for *parts, name in [*changes, *names]:
        changed = json.loads(path.read_text())
        place = changed
        for part in parts:
            place = place[part]
        place[name] = changes.get((*parts, name), "another")
        (tmp_path / "changed.json").write_text(json.dumps(changed))
        done = CliRunner().invoke(app, ["check", str(tmp_path / "changed.json"), "--data", str(left)])
        assert done.exit_code in (1, 2) and done.output.count("\n") == 1, (parts, name, done.output)
    for part, names in receipt.items():
        for name in names if part in ("removed", "after", "order") else ():
            changed = json.loads(path.read_text())
            del changed[part][name]
            (tmp_path / "changed.json").write_text(json.dumps(changed))
            done = CliRunner().invoke(app, ["check", str(tmp_path / "changed.json"), "--data", str(left)])
            assert done.exit_code in (1, 2) or name in ("checksums_are", "data", "model"), (part, name, done.output)
    assert "without the 2 rows that were removed" in run("check", path, "--data", left)
    run("forget", model, left, "--rows", 40, "--remaining", tmp_path / "fewer.csv")
    assert "without the row that was removed" in run("check", path, "--data", tmp_path / "fewer.csv")


def test_a_receipt_says_nothing_that_could_be_guessed_without_its_key():
    bits, labels = np.array([[0.0], [1.0]] * 10), np.array([0, 1] * 10)
    model = Perceptron(random_state=0).fit(bits, labels)
    receipts = [forget(model, 7, bits, labels).receipt for _ in range(2)]
    assert receipts[0].key != receipts[1].key
    for part in ("removed", "before"):  # the same row and the same model, with other keys
        sums = [json.dumps(receipt[part]) for receipt in receipts]
        assert sums[0] != sums[1]
    assert receipts[0].key.hex() not in json.dumps(receipts[0])
    content = ["1", [[0, (1.0).hex()]]]
    assert receipts[0].holds(receipts[0].key, content) and not receipts[0].holds(receipts[1].key, content)
    assert receipts[0].was_before(receipts[0].key, model)
    assert not receipts[0].was_before(receipts[0].key, Perceptron(random_state=1).fit(bits, 1 - labels))


def test_a_damaged_receipt_is_refused(tmp_path):
    path = tmp_path / "r.json"
    _, receipt = forget(Perceptron(random_state=0).fit(X, Y), 1, X, Y)
    receipt.to_json(path)
    assert Receipt.from_json(path) == json.loads(json.dumps(receipt)) and Receipt.from_json(path).key is None
    for text in ("{", "[]", '{"receipt": "separatrix forget"}', '{"receipt": "separatrix forget", "format": 1}'):
        path.write_text(text)
        with pytest.raises(ReceiptError):
            Receipt.from_json(path)
