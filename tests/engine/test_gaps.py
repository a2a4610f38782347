"""The order of examples of which some were forgotten: that of all of them, in which those are skipped."""

import numpy as np
import pytest

from separatrix.engine.orders import Gaps, sequence, visits
from separatrix.engine.rows import Rows


def test_gaps_count_examples_as_they_once_were_and_as_they_are_now():
    gaps = Gaps(np.array([1, 2, 5]), 1)
    assert gaps.once(np.arange(5)).tolist() == [0, 3, 4, 6, 7]
    assert gaps.now(np.array([0, 3, 4, 6, 7])).tolist() == [0, 1, 2, 3, 4]
    assert gaps.joined(np.array([1, 3])).numbers.tolist() == [1, 2, 3, 5, 6]


@pytest.mark.parametrize(
    ("order", "run_of_rows"), [("cyclic", 1), ("permutation", 1), ("random", 1), ("shuffle", 1), ("shuffle", 3)]
)
def test_the_order_with_gaps_is_that_of_all_examples_without_the_forgotten_ones(order, run_of_rows):
    n, gone = 1000, np.array([0, 7, 8, 500, 999])
    whole = sequence(order, n, 5, 2, Gaps(np.empty(0, np.int64), run_of_rows))
    gaps = Gaps(gone, run_of_rows)
    rows = Rows(np.zeros((n - len(gone), 1)))
    visited = [v.order[v.begin : v.end].copy() for v in visits(order, rows, 5, 2, gaps)]
    assert gaps.once(np.concatenate(visited)).tolist() == [i for i in whole.tolist() if i not in gone]
    assert sequence(order, n - len(gone), 5, 2, gaps).tolist() == np.concatenate(visited).tolist()
