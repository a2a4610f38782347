"""The same rows in every format that is read, and what the readers give of them."""

import bz2
import gzip
import io
import json

import numpy as np
import pyarrow as pa
import pyarrow.feather as feather
import pyarrow.parquet as parquet
import pytest
import scipy.sparse as sp
from sklearn.datasets import dump_svmlight_file

ROWS = [
    {"width": 1.5, "height": -2.0, "colour": 'red, or "pink"', "kind": "a"},
    {"width": 1e-3, "height": None, "colour": "blau", "kind": "b"},
    {"width": 1e300, "height": 0.1, "colour": None, "kind": "a"},
    {"width": -0.0, "height": 7.0, "colour": "grün\nund gelb", "kind": "c"},
]
TABLE = pa.Table.from_pylist(ROWS)
X = sp.random(50, 9, 0.4, "csr", random_state=0)
X.data = np.round(X.data * 1000) / 16
Y = np.where(np.arange(50) % 3 == 0, 1, -1)


def delimited(delimiter):
    def quoted(value):
        text = "" if value is None else str(value)
        return '"' + text.replace('"', '""') + '"' if set(text) & set(delimiter + '"\n') else text

    lines = [delimiter.join(ROWS[0]), *(delimiter.join(quoted(value) for value in row.values()) for row in ROWS)]
    return ("\n".join(lines) + "\n").encode()


def written(write):
    sink = io.BytesIO()
    write(sink)
    return sink.getvalue()


def ipc(sink, opener):
    with opener(sink, TABLE.schema) as writer:
        writer.write_table(TABLE)


def sparse_npz(sink):
    np.savez(sink, indptr=X.indptr, indices=X.indices, data=X.data, shape=X.shape, format=b"csr", y=Y)


TABLES = {
    "csv": delimited(","),
    "csv;": delimited(";"),
    "csv|": delimited("|"),
    "csv\\r\\n": delimited(",").replace(b"\n", b"\r\n").replace("grün\r\n".encode(), "grün\n".encode()),
    "csv with a byte order mark": b"\xef\xbb\xbf" + delimited(","),
    "tsv": delimited("\t"),
    "jsonl": "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in ROWS).encode(),
    "parquet": written(lambda sink: parquet.write_table(TABLE, sink)),
    "feather": written(lambda sink: feather.write_feather(TABLE, sink)),
    "arrow file": written(lambda sink: ipc(sink, pa.ipc.new_file)),
    "arrow stream": written(lambda sink: ipc(sink, pa.ipc.new_stream)),
}
MATRICES = {
    "svmlight": written(lambda sink: dump_svmlight_file(X, Y, sink, zero_based=False)),
    "svmlight from 0": written(lambda sink: dump_svmlight_file(X, Y, sink, zero_based=True)),
    "npz": written(lambda sink: np.savez(sink, X=X.toarray(), y=Y)),
    "npz compressed": written(lambda sink: np.savez_compressed(sink, X=X.toarray(), y=Y)),
    "npz by columns": written(lambda sink: np.savez(sink, X=np.asfortranarray(X.toarray()), y=Y)),
    "npz of a sparse matrix": written(sparse_npz),
}
COMPRESSIONS = {
    "plain": bytes,
    "gzip": gzip.compress,
    "two gzips": lambda data: gzip.compress(data[:20]) + gzip.compress(data[20:]),
    "bz2": bz2.compress,
    "zstd": lambda data: pa.compress(data, codec="zstd", asbytes=True),
}
every_compression = pytest.mark.parametrize("compression", COMPRESSIONS)


def rows_of(source):
    return [row for batch in source for row in batch.table.to_pylist()]


def matrix_of(source):
    batches = list(source)
    dense = [batch.X.toarray() if sp.issparse(batch.X) else batch.X for batch in batches]
    width = max(part.shape[1] for part in dense)
    whole = np.concatenate([np.pad(part, ((0, 0), (0, width - part.shape[1]))) for part in dense])
    return whole, np.concatenate([batch.y for batch in batches])


def save(path, **arrays):
    with path.open("wb") as file:
        np.savez(file, **arrays)


def write(path, data):
    path.write_bytes(data if isinstance(data, bytes) else data.encode())
    return path
