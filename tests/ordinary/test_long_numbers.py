"""Whole numbers that float64 does not hold exactly, such as account numbers: read as categories, or named."""

import json
import warnings

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from separatrix import TableFeatures, train

ACCOUNTS = [2**60 + k % 30 for k in range(300)]


def test_in_memory_they_are_named_and_kept_as_categories():
    features = TableFeatures().fit({"account": ACCOUNTS, "size": [k % 7 / 2 for k in range(300)]})
    remedy = "keep them as they are with roles={'account': 'category'}"
    assert features.notes_ == [f"column 'account' has whole numbers of 2⁵³ and more, whose last digits are lost; {remedy}"]
    asked = TableFeatures(roles={"account": "category"}).fit({"account": ACCOUNTS})
    assert len(asked.get_feature_names_out()) == 30


def test_large_measurements_are_not_named():
    for plain in ([6.02e23 * (k % 30 + 1) for k in range(300)], [float(k % 30) for k in range(299)] + [2.0**60]):
        assert TableFeatures().fit({"amount": plain}).notes_ == []


@pytest.mark.parametrize("suffix", ["csv", "jsonl", "parquet"])
def test_in_files_they_are_categories_or_named(tmp_path, suffix):
    rows = [{"account": account, "label": "ab"[account % 2]} for account in ACCOUNTS]
    path = tmp_path / f"data.{suffix}"
    if suffix == "csv":
        path.write_text("account,label\n" + "".join(f"{row['account']},{row['label']}\n" for row in rows))
    elif suffix == "jsonl":
        path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    else:
        pq.write_table(pa.Table.from_pylist(rows), path)
    with warnings.catch_warnings(action="ignore"):  # each account has one label
        asked = train(path, label="label", roles={"account": "category"})
        found = train(path, label="label")
    assert len(asked.features.get_feature_names_out()) == 30 and asked.summary["training_error"] == 0.0
    assert found.features.roles_ == {"account": "category" if suffix == "csv" else "number"}
    assert suffix == "csv" or "whose last digits are lost" in found.features.notes_[0]


def test_a_fraction_after_many_long_whole_numbers_of_json_is_read(tmp_path):
    lines = [json.dumps({"size": 2**60 + k, "label": "ab"[k % 2]}) for k in range(40_000)]
    lines[-1] = '{"size": 2.5, "label": "a"}'  # beyond what is looked at first
    path = tmp_path / "data.jsonl"
    path.write_text("\n".join(lines))
    with warnings.catch_warnings(action="ignore"):
        assert train(path, label="label", roles={"size": "category"}).summary["rows"] == 40_000
