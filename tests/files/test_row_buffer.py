"""Rows end to end in arrays that grow."""

import numpy as np
import pytest
import scipy.sparse as sp

from separatrix.files import row_buffer
from separatrix.files.row_buffer import RowBuffer


def batches(dtypes):
    rng = np.random.default_rng(0)
    for k, dtype in enumerate(dtypes):
        X = sp.random(50 + k, 40, 0.3, format="csr", random_state=rng)
        yield (X * 8).astype(int).astype(dtype), rng.integers(3, size=50 + k)


@pytest.mark.parametrize("most", [0, 1 << 20])
@pytest.mark.parametrize("dtypes", [[np.float64] * 300, [np.float32] * 200 + [np.float64] * 100])
def test_rows_come_out_as_they_came_in_and_are_not_copied(most, dtypes):
    buffer, given = RowBuffer(most), list(batches(dtypes))
    for X, codes in given:
        buffer.add(X, codes)
    X, codes = buffer.rows(0, buffer.n, 40)
    assert (X != sp.vstack([part for part, _ in given])).nnz == 0 and X.dtype == np.float64
    assert codes.tolist() == np.concatenate([part for _, part in given]).tolist()
    again = buffer.rows(0, buffer.n, 40)[0]
    assert np.shares_memory(X.data, again.data) and np.shares_memory(X.indices, again.indices)


@pytest.mark.parametrize("sparse_first", [True, False])
def test_rows_of_both_forms_come_out_in_that_of_the_first(sparse_first):
    buffer, parts = RowBuffer(), list(batches([np.float64] * 4))
    for k, (X, codes) in enumerate(parts):
        buffer.add(X if (k % 2 == 0) == sparse_first else X.toarray(), codes)
    X, _ = buffer.rows(0, buffer.n, 40)
    assert sp.issparse(X) == sparse_first
    assert np.array_equal(X.toarray() if sparse_first else X, sp.vstack([part for part, _ in parts]).toarray())


def test_rows_that_were_looked_at_stay_where_they_are_while_others_are_added():
    buffer, (first, *others) = RowBuffer(1 << 20), list(batches([np.float64] * 20))
    buffer.add(*first)
    X, _ = buffer.rows(0, buffer.n, 40)
    before = X.toarray()
    for part in others:
        buffer.add(*part)
    assert (buffer.rows(0, 50, 40)[0] != X).nnz == 0 and np.array_equal(X.toarray(), before)


def test_without_address_space_for_all_that_may_come_arrays_grow_by_twice(monkeypatch):
    def limited(size, dtype=np.float64, empty=np.empty):
        if size > 100_000:
            raise MemoryError
        return empty(size, dtype)

    monkeypatch.setattr(row_buffer.np, "empty", limited)
    buffer, given = RowBuffer(1 << 40), list(batches([np.float64] * 60))
    for part in given:
        buffer.add(*part)
    monkeypatch.undo()
    assert (buffer.rows(0, buffer.n, 40)[0] != sp.vstack([part for part, _ in given])).nnz == 0
