"""A model file is written whole or not at all, and what is broken or hostile is refused in one line."""

import json
import os
import resource
import stat
import struct
import subprocess
import sys

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from safetensors.numpy import save as write_tensors

import separatrix
from separatrix import KernelPerceptron, Model, Perceptron, TextFeatures, load, save
from separatrix.engine import parcel
from separatrix.modelfile.archive import FORMAT
from separatrix.modelfile.errors import ModelFileError
from support.round_trip import SPAM, TEXTS, X, Y, parts, signed
from support.scale import property_examples

# Writing.


def small(**facts):
    return Model(Perceptron(random_state=0, record=True).fit(X, Y), facts=facts)


def test_a_file_is_replaced_at_once_or_not_at_all(tmp_path, monkeypatch):
    path = tmp_path / "m.sepx"
    save(small(n=1), path)
    before = path.read_bytes()

    def interrupted(*_):
        raise KeyboardInterrupt

    for name in ("fsync", "replace"):
        with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
            patch.setattr(os, name, interrupted)
            save(small(n=2), path)
        assert path.read_bytes() == before and os.listdir(tmp_path) == ["m.sepx"]
    save(small(n=2), path)
    assert load(path).facts == {"n": 2} and os.listdir(tmp_path) == ["m.sepx"]


def test_a_full_disk_leaves_what_was_there(tmp_path):
    path = tmp_path / "m.sepx"
    save(small(), path)
    before = path.read_bytes()
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1000, limits[1]))
    try:
        with pytest.raises(OSError, match=r"could not be written: .*File too large"):
            save(small(), path)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert path.read_bytes() == before and os.listdir(tmp_path) == ["m.sepx"]
    with pytest.raises(FileNotFoundError):
        save(small(), tmp_path / "nowhere" / "m.sepx")


def test_rights_follow_the_umask_and_links_are_kept(tmp_path):
    path, link = tmp_path / "m.sepx", tmp_path / "link.sepx"
    link.symlink_to(path)
    save(small(), link)
    mask = os.umask(0)
    os.umask(mask)
    assert stat.S_IMODE(path.stat().st_mode) == 0o666 & ~mask
    assert link.is_symlink() and load(link).sha256 == load(path).sha256


# Reading what is broken or hostile.


@pytest.fixture(scope="module")
def good(tmp_path_factory):
    path = tmp_path_factory.mktemp("good") / "m.sepx"
    features = TextFeatures(n_features=16, ngram_range=(1, 1)).fit(TEXTS)
    model = separatrix.AveragedPerceptron(random_state=0, record=True, rule="arow").fit(features.transform(TEXTS), SPAM)
    save(model, path, features=features, facts={"rows": 6})
    return path.read_bytes()


def refused(data, folder):
    """Write the bytes, and return the one line with which they are refused; None where they load as the good file."""
    path = folder / "bad.sepx"
    path.write_bytes(data)
    try:
        model = load(path)
    except ModelFileError as error:
        line = str(error)
        assert line.startswith(str(path)) and "\n" not in line and len(line) < 500
        return line
    assert model.predict(TEXTS).shape == (6,)
    return None


@settings(max_examples=property_examples(100), suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.data())
def test_damaged_files_load_equal_or_are_refused(good, tmp_path_factory, data):
    folder = tmp_path_factory.getbasetemp()
    broken = bytearray(good)
    if data.draw(st.booleans()):
        for _ in range(data.draw(st.integers(1, 4))):
            broken[data.draw(st.integers(0, len(good) - 1))] = data.draw(st.integers(0, 255))
    else:
        begin, end = sorted(data.draw(st.lists(st.integers(0, len(good)), min_size=2, max_size=2)))
        broken[begin:end] = data.draw(st.binary(max_size=20))
    if refused(bytes(broken), folder) is None:
        again = load(folder / "bad.sepx")
        save(again, folder / "again.sepx")
        assert (folder / "again.sepx").read_bytes() == good


def places(tree, path=()):
    yield path
    for key, value in tree.items() if isinstance(tree, dict) else enumerate(tree) if isinstance(tree, list) else ():
        yield from places(value, (*path, key))


HOSTILE = [None, True, -1, 0, 1, 2**31 - 1, 2**62, 2**70, 1e308, 0.5, "", "x", [], {}, [[1]], {"float": "nan"}, "inf"]


def spoilt(good, data):
    """The file with one thing in it changed, and a right sum."""
    body, arrays = parts(good)
    if data.draw(st.booleans()):
        *path, last = data.draw(st.sampled_from([p for p in places(body) if p]))
        at = body
        for key in path:
            at = at[key]
        if data.draw(st.booleans()):
            at[last] = data.draw(st.sampled_from(HOSTILE))
        else:
            del at[last]
    else:
        name = data.draw(st.sampled_from(sorted(arrays)))
        array = arrays[name]
        what = data.draw(st.sampled_from(["drop", "cut", "retype", "poke", "reshape"]))
        if what == "drop":
            del arrays[name]
        elif what == "cut":
            arrays[name] = array[: data.draw(st.integers(0, len(array)))]
        elif what == "retype":
            arrays[name] = array.astype(data.draw(st.sampled_from(["f4", "f8", "i8", "u1", "i4", "u4", "bool"])))
        elif what == "reshape":
            arrays[name] = array.reshape(-1, 1)
        elif array.size:
            poke = np.nan if array.dtype.kind == "f" else data.draw(st.sampled_from([np.iinfo(array.dtype).max, -1, 3]))
            array.reshape(-1)[data.draw(st.integers(0, array.size - 1))] = np.array(poke).astype(array.dtype)
    return signed(body, arrays)


@settings(max_examples=property_examples(150), suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.data())
def test_hostile_files_with_a_right_sum_are_usable_or_refused(good, tmp_path_factory, data):
    folder = tmp_path_factory.getbasetemp()
    if refused(spoilt(good, data), folder) is None:
        model = load(folder / "bad.sepx")
        rows = model.features.transform(TEXTS)
        try:  # whatever was loaded, nothing but a clear error can come of it
            model.estimator.ledger_.weights()
            model.estimator.partial_fit(rows, model.estimator.classes_[:1].repeat(6))
        except ValueError:
            pass


KERNELS = [{"kernel": "rbf"}, {"kernel": "poly", "budget": 3, "record": True}, {"budget": 3}, {"kernel": "precomputed"}]
POINTS = np.array([[1.0, 1], [1, -1], [-1, 1], [-1, -1], [2, 2], [2, -2]])


@pytest.fixture(scope="module")
def kernel_files(tmp_path_factory):
    path, files = tmp_path_factory.mktemp("kernels") / "m.sepx", []
    for how in KERNELS:
        X = POINTS @ POINTS.T if how.get("kernel") == "precomputed" else POINTS
        save(KernelPerceptron(random_state=0, **how).fit(X, np.sign(POINTS.prod(axis=1)).astype(int)), path)
        files.append((X, path.read_bytes()))
    return files


@settings(max_examples=property_examples(150), suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.data())
def test_hostile_kernel_perceptrons_are_usable_or_refused(kernel_files, tmp_path_factory, data):
    X, good = kernel_files[data.draw(st.integers(0, len(KERNELS) - 1))]
    path = tmp_path_factory.getbasetemp() / "bad.sepx"
    path.write_bytes(spoilt(good, data))
    try:
        model = load(path)
    except ModelFileError as error:
        assert str(error).startswith(str(path)) and "\n" not in str(error) and len(str(error)) < 500
        return
    try:
        assert model.predict(X).shape == (6,)
        for how in ("last", "averaged", "voted", "random"):
            model.estimator.set_params(predict_with=how).decision_function(X)
        model.estimator.after(1).predict(X)
    except ValueError:
        pass


def test_each_wrong_thing_is_named(good, tmp_path):
    body, arrays = parts(good)
    coef = arrays["estimator.run0.last_coef"]

    def with_coef(array):
        return signed(body, arrays | {"estimator.run0.last_coef": array})

    nan = coef.copy()
    nan[0, 0] = np.nan
    lines = {
        "not a model file": [b"", b"short", b"PK\x03\x04 a zip file", b"\x00" * 100],
        "truncated": [good[:100], struct.pack("<Q", 1 << 63) + good[8:], struct.pack("<Q", 1 << 40) + good[8:]],
        "not a complete safetensors file": [good[:-1], good + b"x"],
        "not a separatrix model": [write_tensors({"a": np.zeros(3)}, {"format": "pt"}), write_tensors({"a": np.zeros(3)})],
        f"format {FORMAT + 1}, and separatrix .* knows formats up to {FORMAT}: update it": [
            signed(body | {"format": FORMAT + 1, "version": "9"}, arrays)
        ],
        "checksum mismatch": [good[:-1] + bytes([good[-1] ^ 1])],
        "last_coef holds NaN": [with_coef(nan)],
        r"last_coef has shape \(1, 15\)": [with_coef(coef[:, :15])],
        "last_coef holds int32, not f8 or f4": [with_coef(coef.astype(np.int32))],
        "last_coef is missing": [signed(body, {k: v for k, v in arrays.items() if not k.endswith("last_coef")})],
        "class is 'os.system', which is unknown": [signed(body | {"estimator": {"class": "os.system"}}, arrays)],
    }
    for line, files in lines.items():
        for data in files:
            with pytest.raises(ModelFileError, match=line):
                (tmp_path / "bad.sepx").write_bytes(data)
                load(tmp_path / "bad.sepx")


# Weights that are stored in a compact form.

COMPACT = [{}, {"float32": True}, {"resume": False}, {"resume": False, "float32": True}]


@pytest.fixture(scope="module")
def compact_files(tmp_path_factory):
    """Small models with a mask for their weights and variances, which only larger ones have otherwise."""
    path, files = tmp_path_factory.mktemp("compact") / "m.sepx", []
    features = TextFeatures(n_features=16, ngram_range=(1, 1)).fit(TEXTS)
    model = separatrix.AveragedPerceptron(random_state=0, record=True, rule="arow").fit(features.transform(TEXTS), SPAM)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(parcel, "MASKED_BYTES", 0)
        for how in COMPACT:
            save(model, path, features=features, **how)
            files.append(path.read_bytes())
            body, arrays = parts(files[-1])
            masked = "used_coef" if "resume" in how else "last_coef"
            assert body["format"] == 2 and f"estimator.run0.{masked}.mask" in arrays
    return files


@settings(max_examples=property_examples(150), suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.data())
def test_hostile_compact_files_are_usable_or_refused(compact_files, tmp_path_factory, data):
    folder = tmp_path_factory.getbasetemp()
    if refused(spoilt(data.draw(st.sampled_from(compact_files)), data), folder) is None:
        model = load(folder / "bad.sepx")
        try:
            model.estimator.partial_fit(model.features.transform(TEXTS), model.estimator.classes_[:1].repeat(6))
        except ValueError:
            pass


def test_each_wrong_thing_about_a_mask_is_named(compact_files, tmp_path):
    whole, single, frozen, _ = compact_files
    for data, name in (
        (whole, "last_coef"),
        (whole, "late_coef"),
        (whole, "sigma"),
        (single, "last_coef"),
        (frozen, "used_coef"),
    ):
        body, arrays = parts(data)
        at = f"estimator.run0.{name}"
        mask, values = arrays[f"{at}.mask"], arrays[f"{at}.values"]
        assert mask.shape == (2,) and 0 < len(values) < 16
        nan, fewer = values.copy(), mask.copy()
        nan[0] = np.nan
        fewer[:] = 0
        lines = {
            "mask has shape": [{f"{at}.mask": mask[:1]}, {f"{at}.mask": np.append(mask, mask)}],
            "mask holds int64, not u1": [{f"{at}.mask": mask.astype(np.int64)}],
            "values has shape": [{f"{at}.values": values[1:]}, {f"{at}.mask": fewer}, {f"{at}.mask": mask | 255}],
            "values holds NaN": [{f"{at}.values": nan}],
            "values holds float16, not f8 or f4": [{f"{at}.values": values.astype(np.float16)}],
        }
        for line, changes in lines.items():
            for change in changes:
                assert f"{name}.{line}" in refused(signed(body, arrays | change), tmp_path)
        missing = {key: array for key, array in arrays.items() if key != f"{at}.values"}
        assert f"{name}.values is missing" in refused(signed(body, missing), tmp_path)
    body, arrays = parts(frozen)
    body["estimator"]["runs"][0]["resumable"] = 1
    assert "resumable is 1, expected true or false" in refused(signed(body, arrays), tmp_path)


def test_bits_beyond_the_last_weight_are_refused():
    box = parcel.Parcel({"w.mask": np.array([1, 128], np.uint8), "w.values": np.ones(2)})
    with pytest.raises(parcel.StateError, match=r"w\.mask is longer than the rest"):
        box.take_weights("w", (3, 5))
    assert box.take_weights("w", (2, 8)).reshape(-1).nonzero()[0].tolist() == [0, 15]


def test_nothing_huge_is_asked_for(good, tmp_path):
    """Files of a few kilobytes that claim to be giants: refused within a memory that the claims would burst."""
    body, arrays = parts(good)

    def wide(d):
        claimed = json.loads(json.dumps(body))
        claimed["estimator"]["n_features"] = claimed["features"]["state"]["parameters"]["n_features"] = d
        return claimed

    def matrix(d, **changes):
        """A file whose rule keeps a matrix of d² variances, which it does not hold."""
        claimed = json.loads(json.dumps(body)) | {"features": None}
        claimed["estimator"]["n_features"] = d
        claimed["estimator"]["runs"][0]["rule"]["name"] = "arow-full"
        claimed["estimator"]["runs"][0] |= changes
        return claimed

    def some(name, d):
        return {
            f"estimator.run0.{name}_coef.mask": np.zeros(d // 8, np.uint8),
            f"estimator.run0.{name}_coef.values": np.ones(0),
        }

    names = {f"estimator.run0.{kind}_coef" for kind in ("last", "late")}
    few = {f"{name}.{part}": np.zeros(1, dtype) for name in names for part, dtype in (("places", "i8"), ("values", "f8"))}
    hollow = {name: array for name, array in arrays.items() if name not in names} | few
    hashed = json.loads(json.dumps(body))
    hashed["features"]["state"]["parameters"]["n_features"] = 2**31 - 1
    overlapping = (
        b'{"a":{"dtype":"F64","shape":[1],"data_offsets":[0,8]},"b":{"dtype":"F64","shape":[1],"data_offsets":[4,12]}}'
    )
    negative = b'{"a":{"dtype":"F64","shape":[-1],"data_offsets":[0,8]}}'
    giant = b'{"a":{"dtype":"F64","shape":[1000000000000000000,100],"data_offsets":[0,8]}}'
    nested = b'{"__metadata__":{"separatrix":"' + b"[" * 500_000 + b'"}}'
    files = [signed(wide(2**40), hollow), signed(wide(2**31), arrays), signed(hashed, arrays)]
    files += [signed(wide(2**40), arrays | some("last", 64)), signed(matrix(2**16), arrays | some("last", 2**16))]
    files += [struct.pack("<Q", len(h)) + h + b"\0" * 12 for h in (overlapping, negative, giant, nested)]
    for i, data in enumerate(files):
        (tmp_path / f"{i}.sepx").write_bytes(data)
    code = """if True:
        import resource, sys
        from separatrix import load
        import separatrix.estimators.linear, separatrix.estimators.featurizers
        from separatrix.modelfile.errors import ModelFileError
        used = int(open("/proc/self/statm").read().split()[0]) * resource.getpagesize()
        resource.setrlimit(resource.RLIMIT_AS, (used + (200 << 20),) * 2)
        for path in sys.argv[1:]:
            try:
                load(path)
            except ModelFileError as error:
                assert "memory" not in str(error).lower(), error
                print("refused")"""
    paths = [str(tmp_path / f"{i}.sepx") for i in range(len(files))]
    done = subprocess.run([sys.executable, "-c", code, *paths], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["refused"] * len(files)
