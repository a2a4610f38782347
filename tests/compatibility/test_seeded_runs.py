"""Seeded runs give what they gave at commit ce82805, bit for bit (seeded_runs.json).

The first record was of one processor with AVX-512. Commit 5efebc8 gave all of it with code for that kind; what any processor
with AVX2 gives was then recorded instead (`conftest.py`): 217 runs add real numbers, and differ in last bits.
"""

import json
from pathlib import Path

import pytest

from compatibility import seeded_runs
from separatrix.features.columns import schema

RECORDED = json.loads(Path(__file__).with_name("seeded_runs.json").read_text(encoding="utf-8"))
_STEP = "a weight multiplies the step of pa1, no longer C"
_RELATIVE = "a weight multiplies the step of pa, pa2 and arow, relative to the heaviest"
_MIXED = "rows that do not fit in memory are mixed on their way to the disk"
_FIRST = "of several witnesses certify takes the first one, by a rule that the lab in the browser follows too"
CHANGED: dict[str, str] = {
    "certificate/L4.xor/no bias": _FIRST,
    **{f"certificate/inseparable, {k} classes/exact {exact}": _FIRST for k in (2, 3) for exact in ("auto", "True", "False")},
    "train/blocks that spill/averaged/pa1/shuffle": _MIXED,
    "train/blocks that spill/last/margin/random": _MIXED,
    "train/resumed within a pass/averaged/pa1/shuffle": _MIXED,
    "train/resumed within a pass/last/margin/random": _MIXED,
    "train/resumed within a pass/early stopping": _MIXED,
    "averaged/sample weights/pa1/csr/3 classes/joint": _STEP,
    "last/class weights balanced/pa1/dense/4 classes/ovr": _STEP,
    "train/csv/--class-weight balanced --tie first --record --passes 2": _STEP,
    "train/jsonl/--class-weight balanced --tie first --record --passes 2": _STEP,
    "train/parquet/--class-weight balanced --tie first --record --passes 2": _STEP,
    "train/svm/--class-weight balanced --tie first --record --passes 2": _STEP,
    "averaged/sample weights/pa/csr/3 classes/joint": _RELATIVE,
    "last/class weights balanced/pa/dense/4 classes/ovr": _RELATIVE,
    "averaged/sample weights/pa2/csr/3 classes/joint": _RELATIVE,
    "last/class weights balanced/pa2/dense/4 classes/ovr": _RELATIVE,
    "averaged/sample weights/arow/csr/3 classes/joint": _RELATIVE,
    "averaged/sample weights/arow-full/csr/3 classes/joint": _RELATIVE,
    "last/class weights balanced/arow/dense/4 classes/ovr": _RELATIVE,
    "last/class weights balanced/arow-full/dense/4 classes/ovr": _RELATIVE,
    "last/stream with late classes/pa/csr/joint": _RELATIVE,
    "last/stream with late classes/pa/real dense/ovr": _RELATIVE,
    "averaged/stream with late classes/pa/csr/joint": _RELATIVE,
    "averaged/stream with late classes/pa/real dense/ovr": _RELATIVE,
    "voted/stream with late classes/pa/csr/joint": _RELATIVE,
    "voted/stream with late classes/pa/real dense/ovr": _RELATIVE,
}
"""Runs whose meaning has changed on purpose since, each with the reason."""


@pytest.mark.recorded_processor
@pytest.mark.parametrize("group", ["quick", pytest.param("all", marks=pytest.mark.slow)])
def test_seeded_runs_give_what_they_gave(group, monkeypatch):
    # Texts had length 1 beside numbers too; tests/features/test_table.py tests the scale that they have since.
    monkeypatch.setattr(schema, "balance", lambda columns: None)
    found = seeded_runs.digests(group)
    unknown = sorted(found.keys() - RECORDED.keys())
    assert not unknown, f"these runs were not recorded: {unknown}"
    differing = {name for name, digest in found.items() if digest != RECORDED[name]}
    wrong = sorted(differing - CHANGED.keys())
    told = "\n".join(f"  {name}: {_which(RECORDED[name], found[name])}" for name in wrong)
    assert not wrong, f"{len(wrong)} of {len(found)} runs give something else:\n{told}"
    same = sorted((CHANGED.keys() & found.keys()) - differing)
    assert not same, f"these runs are said to have changed, and give what they gave: {same}"


def _which(before: str, now: str) -> str:
    """Say which part of a digest differs."""
    parts = list(zip(before.split("/"), now.split("/"), strict=False))
    if len(parts) == 1:
        return "differs"
    return " and ".join(name for name, (a, b) in zip(("what was learned", "the file"), parts, strict=False) if a != b)


def test_all_that_was_recorded_is_still_made():
    names = {case.name for case in seeded_runs.cases("all")}
    assert names == RECORDED.keys()
    assert CHANGED.keys() <= names
