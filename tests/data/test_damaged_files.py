"""Arrow, Parquet, npz and svmlight files that are damaged or made to do harm: read, or refused in one line."""

import io
import random
import zipfile
from decimal import Decimal

import numpy as np
import pyarrow as pa
import pytest
import scipy.sparse as sp
from click.testing import CliRunner
from pyarrow.parquet import write_table

from separatrix.cli import app
from separatrix.data.batches import MOST_FEATURES
from separatrix.data.errors import DataError
from separatrix.data.formats import npz
from separatrix.data.reading import open_source
from support.mutations import mutated
from support.scale import counts

RUNNER = CliRunner()


def trained(path, status=2):
    done = RUNNER.invoke(app, ["train", str(path), "--passes", "2"])
    assert done.exit_code == status, done.output
    return done.stderr


def read_all(data, **how):
    return sum(len(batch) for batch in open_source(io.BytesIO(data), **how))


# Arrow and Parquet.


def ipc(table, compression=None, stream=False):
    out = io.BytesIO()
    options = pa.ipc.IpcWriteOptions(compression=compression)
    with (pa.ipc.new_stream if stream else pa.ipc.new_file)(out, table.schema, options=options) as writer:
        for batch in table.to_batches(max_chunksize=16):
            writer.write_batch(batch)
    return out.getvalue()


def parquet(table, **how):
    out = io.BytesIO()
    write_table(table, out, **how)
    return out.getvalue()


def with_offsets(offsets, letters=b"aabbccdd", kind=np.int32, type_=None):
    """An Arrow file whose column `s` has these offsets into its letters, and a label."""
    table = pa.table({"s": pa.array(["aa", "bb", "cc", "dd"], type_ or pa.string()), "kind": ["x", "y", "x", "y"]})
    before = np.array([0, 2, 4, 6, 8], kind).tobytes()
    data = ipc(table)
    assert data.count(before) == 1 and data.count(b"aabbccdd") == 1
    return data.replace(before, np.array(offsets, kind).tobytes()).replace(b"aabbccdd", letters)


DAMAGED = {
    "beyond the buffer": with_offsets([0, 2, 4, 6, 1 << 20]),
    "far beyond the buffer": with_offsets([0, 2, 1 << 30, 6, 8]),
    "negative": with_offsets([0, 2, -(1 << 20), 6, 8]),
    "falling": with_offsets([0, 6, 2, 6, 8]),
    "no UTF-8": with_offsets([0, 2, 4, 6, 8], b"aabbcc\xff\xff"),
    "large strings": with_offsets([0, 2, 1 << 40, 6, 8], kind=np.int64, type_=pa.large_string()),
}


@pytest.mark.parametrize("name", DAMAGED)
def test_strings_outside_their_buffer_are_refused(tmp_path, name):
    (tmp_path / "t.arrow").write_bytes(DAMAGED[name])
    line = trained(tmp_path / "t.arrow")
    assert line.startswith(f"separatrix train: {tmp_path}/t.arrow, rows 1 to 4, column s: the content is damaged (")
    assert line.endswith("); write the file again\n") and line.count("\n") == 1


def test_a_dictionary_and_lists_are_validated(tmp_path):
    codes = pa.array([0, 1, 2, 900_000_000], pa.int32())
    wild = pa.DictionaryArray.from_arrays(codes, pa.array(["a", "b", "c"]), safe=False)
    values = pa.StringArray.from_buffers(2, pa.py_buffer(np.array([0, 1 << 28, 4], np.int32)), pa.py_buffer(b"aabb"))
    lists = pa.ListArray.from_arrays(pa.array([0, 1, 1, 2, 2], pa.int32()), values)
    for column in (wild, lists):
        batch = pa.record_batch([column, pa.array(["x", "y"] * 2)], names=["c", "kind"])
        for stream in (False, True):
            (tmp_path / "t.arrow").write_bytes(ipc(pa.Table.from_batches([batch]), stream=stream))
            assert ", rows 1 to 4, column c: the content is damaged (" in trained(tmp_path / "t.arrow")


def test_parquet_is_validated_too():
    bare = {"compression": "none", "use_dictionary": False, "write_statistics": False}
    whole = parquet(pa.table({"s": ["aa", "bb", "cc", "dd"], "kind": ["x", "y"] * 2}), **bare)
    at = whole.index(b"dd")
    with pytest.raises(DataError, match="column s: the content is damaged"):
        read_all(whole[:at] + b"\xff\xff" + whole[at + 2 :])
    summed = parquet(pa.table({"v": np.arange(64.0), "kind": ["x", "y"] * 32}), **bare, write_page_checksum=True)
    at = summed.index(np.float64(40.0).tobytes())
    assert read_all(summed) == 64
    with pytest.raises(DataError, match=r"cannot be read as parquet .*(could be corrupted|checksum)"):
        read_all(summed[:at] + np.float64(41.0).tobytes() + summed[at + 8 :])


# npz.


def archive(**arrays):
    out = io.BytesIO()
    np.savez_compressed(out, **arrays)
    return out.getvalue()


GOOD = {"X": np.arange(40.0).reshape(20, 2), "y": np.arange(20) % 2}


def test_a_damaged_archive_is_refused():
    whole = archive(**GOOD)
    at = whole.index(b"X.npy") + 40
    for data in (whole[:at] + bytes(8) + whole[at + 8 :], whole[:-30], whole[:60]):
        with pytest.raises(
            DataError, match=r"cannot be read as \.npz \(.*\); save it again with numpy\.savez|not a NumPy one"
        ):
            read_all(data, format="npz")


def test_an_encrypted_archive_is_refused():
    whole = bytearray(archive(**GOOD))
    with zipfile.ZipFile(io.BytesIO(whole)) as opened:
        names = [info.filename.encode() for info in opened.infolist()]
    for name in names:
        local, central = whole.index(name) - 30, whole.rindex(name) - 46
        whole[local + 6] |= 1
        whole[central + 8] |= 1
    with pytest.raises(DataError, match=r"array (X|y): the array is encrypted; save it without a password"):
        read_all(bytes(whole))


def claiming(key, size, arrays):
    """An archive that claims `size` bytes for an array."""
    whole = bytearray(archive(**arrays))
    at = whole.rindex(f"{key}.npy".encode()) - 46
    whole[at + 24 : at + 28] = min(size, 0xFFFFFFFE).to_bytes(4, "little")
    return bytes(whole)


@pytest.mark.parametrize("key", ["X", "y"])
def test_a_bomb_is_refused_before_it_is_inflated(monkeypatch, key):
    with pytest.raises(
        DataError, match=rf"array {key}: [\d,]+ bytes would become 4,000,000,000; if that is meant, save it with"
    ):
        read_all(claiming(key, 4_000_000_000, GOOD))
    monkeypatch.setattr(npz, "INFLATED_BYTES", 100_000)
    zeros = GOOD | {key: np.zeros((20, 4_000)) if key == "X" else np.zeros(20, "U2000")}
    with pytest.raises(DataError, match=f"array {key}: .* bytes would become"):
        read_all(archive(**zeros))
    plain = io.BytesIO()
    np.savez(plain, **GOOD | {"X": np.zeros((20, 4_000))})
    assert read_all(plain.getvalue()) == 20


def test_shapes_and_types_that_are_none_are_refused():
    def with_header(key, header):
        out = io.BytesIO()
        with zipfile.ZipFile(out, "w") as opened:
            for name, array in GOOD.items():
                raw = io.BytesIO()
                np.save(raw, array)
                data = raw.getvalue()
                if name == key:
                    text = header.encode().ljust(117) + b"\n"
                    data = b"\x93NUMPY\x01\x00" + len(text).to_bytes(2, "little") + text + data[128:]
                opened.writestr(f"{name}.npy", data)
        return out.getvalue()

    shaped = "{{'descr': '<f8', 'fortran_order': {}, 'shape': {}, }}".format
    refusals = {
        shaped(False, (1 << 40, 2)): "the data end too early",
        shaped(True, (1 << 62, 1 << 62)): "the data end too early",
        shaped(False, (-1, 2)): "is no shape",
        shaped(False, ()): "not a matrix of numbers",
        shaped(False, (20, 0)): "X has no columns",
        shaped(False, (1 << 62, 0)): "X has no columns",
        "{'descr': '|O', 'fortran_order': False, 'shape': (20, 2), }": "Python objects are not read",
        "{'descr': '<M8[D]', 'fortran_order': False, 'shape': (20, 2), }": "not a matrix of numbers",
        "{'descr': __import__('os'), 'shape': (1,)}": "cannot be read as .npz",
        "": "cannot be read as .npz",
    }
    for header, line in refusals.items():
        with pytest.raises(DataError, match=line):
            read_all(with_header("X", header))
    with pytest.raises(DataError, match=r"array y: .* not a label for each row"):
        read_all(archive(X=GOOD["X"], y=np.zeros(20, np.complex128)))


def test_parts_that_make_no_matrix_are_refused():
    X = sp.random(20, 5, 0.5, format="csr", random_state=0)
    parts = {"indptr": X.indptr, "indices": X.indices, "data": X.data, "shape": np.array(X.shape), "format": np.array("csr")}
    assert read_all(archive(**parts, y=GOOD["y"])) == 20
    spoilt = {
        "more than .* features": {"shape": np.array([20, MOST_FEATURES + 1])},
        "X has no columns": {"shape": np.array([20, -5])},
        "not whole numbers": {"indptr": X.indptr.astype(float)},
        "not numbers": {"data": X.data.astype("U5")},
        "not two whole numbers": {"shape": np.array(7)},
        "not the word csr": {"format": np.array(["csr"])},
        "lies outside the 5 columns": {"indices": X.indices + 3},
        "do not make a CSR matrix": {"indptr": X.indptr[:-1]},
    }
    for line, change in spoilt.items():
        with pytest.raises(DataError, match=line):
            read_all(archive(**parts | change, y=GOOD["y"]))


# svmlight.


def test_an_index_that_would_take_all_memory_is_refused(tmp_path):
    path = tmp_path / "t.svm"
    for index in (MOST_FEATURES + 1, 2_147_483_646):
        path.write_text(f"1 1:1\n0 2:1 {index}:1\n")
        line = trained(path)
        assert f"line 2, column 7: index {index} would make more than {MOST_FEATURES:,} features" in line
    assert read_all(b"1 1:1\n0 2:1 %d:1\n" % MOST_FEATURES) == 2
    assert read_all(b"1 1:1\n0 2:1 2147483646:1\n", n_features=(1 << 31) - 1) == 2


# Any damage.


def _files():
    rng, n = np.random.default_rng(0), 48
    table = pa.table(
        {
            "x": rng.normal(size=n),
            "s": [f"word{i % 7} and {i}" for i in range(n)],
            "d": pa.array(["a", "b", None, "c"] * (n // 4)).dictionary_encode(),
            "l": pa.array([["p", "q"], [], None, ["r"]] * (n // 4)),
            "i": pa.array([1, None, 3, 4] * (n // 4)),
            "b": pa.array([True, False, None] * (n // 3)),
            "t": pa.array(np.arange(n) * 86_400, pa.timestamp("s")),
            "large": pa.array(["z", "ä"] * (n // 2), pa.large_string()),
            "dec": pa.array([Decimal(i) / 10 for i in range(n)], pa.decimal128(6, 1)),
            "kind": ["u", "v"] * (n // 2),
        }
    )
    X, y = rng.normal(size=(n, 3)), np.arange(n) % 2
    sparse = sp.random(n, 9, 0.4, format="csr", random_state=0)
    parts = {"indptr": sparse.indptr, "indices": sparse.indices, "data": sparse.data, "shape": np.array(sparse.shape)}
    plain = io.BytesIO()
    np.savez(plain, X=X, y=y)
    rows = "".join(f"{i % 2} qid:{i // 4} 1:{i / 7!r} {2 + i % 5}:-1.5e{i % 9}  # {i}\n" for i in range(n))
    return {
        "arrow": [ipc(table), ipc(table, "zstd"), ipc(table, "lz4")],
        "arrow stream": [ipc(table, stream=True), ipc(table, "zstd", stream=True)],
        "parquet": [parquet(table, compression=how, row_group_size=16) for how in ("none", "snappy", "zstd")],
        "npz": [archive(X=X, y=y), plain.getvalue(), archive(X=np.asfortranarray(X), y=y.astype("U3"))],
        "sparse npz": [archive(**parts, format=np.array("csr"), y=y)],
        "svmlight": [rows.encode()],
    }


FILES = _files()


@pytest.mark.parametrize("form", FILES)
@pytest.mark.parametrize("number", counts(quick=150, soak=10_000))
def test_a_damaged_file_is_read_or_refused_in_one_line(tmp_path, form, number):
    """Every tenth that can be read is trained on: whatever it holds, a model or one line comes of it."""
    draw, outcomes, path = random.Random(form), {"read": 0, "refused": 0, "trained": 0}, tmp_path / "damaged"
    format_ = {"arrow stream": "arrow", "sparse npz": "npz"}.get(form, form)
    for k in range(number):
        data = mutated(draw.choice(FILES[form]), draw)
        path.write_bytes(data)  # which is left behind where the process does not survive it
        try:
            read_all(data, format=format_)
        except DataError as error:
            assert "\n" not in str(error) and len(str(error)) < 500, (k, error)
            outcomes["refused"] += 1
            continue
        outcomes["read"] += 1
        if outcomes["read"] % 10 == 0:
            done = RUNNER.invoke(app, ["train", str(path), "--passes", "1", "--format", format_])
            outcomes["trained"] += done.exit_code == 0
            assert done.exit_code in (0, 2) and (done.exit_code == 0 or done.stderr.count("\n") < 10), (k, done.output)
    print(form, outcomes)
    assert outcomes["refused"] and outcomes["read"] and outcomes["refused"] + outcomes["read"] == number
