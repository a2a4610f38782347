"""Copies of data files without some of their rows: of text the same bytes without their lines, decompressed."""

from __future__ import annotations

from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from separatrix.data.encodings import AUTO, encoding_called
from separatrix.data.errors import DataError
from separatrix.data.formats import FORMATS
from separatrix.data.reading import Source
from separatrix.data.streams import Stream

Ints = NDArray[np.int64]
ONE_LINE = ("jsonl", "svmlight")
"""Formats in which a row is a line; a record of a table may have several."""
_WIDE = ("utf-16", "utf-32")


class RowPlace(NamedTuple):
    """Where a row begins in a file, by line or row from 1, and where the next one does; None: it is the last."""

    file: str
    begin: int
    end: int | None
    content: Any


def find_rows(source: Source, rows: Ints) -> tuple[int, list[RowPlace]]:
    """Read a source; return how many rows it has, and where those with some numbers, sorted and from 0, are."""
    found: list[RowPlace] = []
    n, wanted = 0, set(rows.tolist())
    for batch in source:
        if found and found[-1].end is None and found[-1].file == batch.origin.file:
            found[-1] = found[-1]._replace(end=batch.origin.number(0))
        for i in (j for j in range(len(batch)) if n + j in wanted):
            end = batch.origin.number(i + 1) if i + 1 < len(batch) else None
            found.append(RowPlace(batch.origin.file, batch.origin.number(i), end, _content(batch, i)))
        n += len(batch)
    return n, found


def _content(batch: Any, i: int) -> Any:
    """Return a row as JSON values."""
    if hasattr(batch, "table"):
        return batch.table.slice(i, 1).to_pylist()[0]
    return content_of(batch.X[i : i + 1], None if batch.y is None else batch.y[i])


def content_of(x: Any, label: Any) -> list[Any]:
    """Return a row of numbers and its label as JSON values, the same for a dense and a sparse row."""
    row = sp.csr_matrix(x)
    entries = zip(row.indices.tolist(), row.data.tolist(), strict=True)
    return [str(label), [[j, float(value).hex()] for j, value in sorted(entries) if value]]


def write_without(source: Source, found: list[RowPlace], folder: Path, encoding: str = AUTO) -> list[str]:
    """Write the files of a source without some rows into a folder; return their paths, in the same order."""
    if not source.files:
        raise DataError(f"{source.name} is not a file, of which a copy without the rows could be made; write it to one")
    paths = []
    for k, name in enumerate(source.files):
        here = [row for row in found if row.file == name or len(source.files) == 1]
        path = folder / f"{k}-{Path(name).name}"
        if source.format == "npz":
            _write_archive(name, here, path)
        elif source.format == "parquet":
            _write_parquet(name, here, path)
        elif not FORMATS[source.format].binary:
            _write_text(source.format, name, here, path, encoding)
        else:
            raise DataError(
                f"{name}: rows cannot be left out of {source.format} files; save it as Parquet, and train on that"
            )
        paths.append(str(path))
    return paths


def _write_text(form: str, place: str, here: list[RowPlace], path: Path, encoding: str) -> None:
    stream = Stream(place)
    try:
        read_as = stream.as_text(encoding_called(encoding))
    finally:
        stream.close()
    if read_as.replace("_", "-").startswith(_WIDE):
        raise DataError(f"{place}: rows cannot be left out of {read_as} text; convert it to UTF-8")
    stream = Stream(place)
    try:
        lines = stream.file.read().split(b"\n")
    finally:
        stream.close()
    if len(lines) == 1 and b"\r" in lines[0]:
        raise DataError(f"{stream.name}: rows cannot be left out where lines end with a carriage return alone; convert them")
    left_out = np.zeros(len(lines) + 1, np.bool_)
    for row in here:
        last = len(lines) - (lines[-1] == b"") + 1  # behind the last line
        end = row.begin + 1 if form in ONE_LINE else last if row.end is None else row.end
        left_out[row.begin - 1 : end - 1] = True
    kept = [line for line, out in zip(lines, left_out.tolist(), strict=False) if not out]
    path.write_bytes(b"\n".join(kept))


def _write_parquet(place: Any, here: list[RowPlace], path: Path) -> None:
    import pyarrow.parquet as pq

    table = pq.read_table(place)
    kept = np.setdiff1d(np.arange(table.num_rows), [row.begin - 1 for row in here])
    pq.write_table(table.take(kept), path)


def _write_archive(place: Any, here: list[RowPlace], path: Path) -> None:
    with np.load(place) as archive:
        arrays = dict(archive)
    out = [row.begin - 1 for row in here]
    if "X" in arrays:
        arrays["X"] = np.delete(arrays["X"], out, axis=0)
    else:
        matrix = sp.csr_matrix((arrays["data"], arrays["indices"], arrays["indptr"]), shape=tuple(arrays["shape"]))
        matrix = matrix[np.setdiff1d(np.arange(matrix.shape[0]), out)]
        arrays |= {name: getattr(matrix, name) for name in ("data", "indices", "indptr")}
        arrays["shape"] = np.array(matrix.shape)
    if "y" in arrays:
        arrays["y"] = np.delete(arrays["y"], out)
    with open(path, "wb") as file:
        np.savez(file, **arrays)
