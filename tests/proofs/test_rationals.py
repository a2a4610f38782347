"""Systems of integers are solved exactly, by either method and whatever the length of their numbers."""

import random
import time
from fractions import Fraction

import numpy as np
import pytest

from separatrix.proofs.clock import TimeUp, watched
from separatrix.proofs.search.rationals import System, dependency, product


def whole(numbers, bits, *shape):
    values = [numbers.randrange(-(2**bits), 2**bits) for _ in range(int(np.prod(shape)))]
    return np.array(values, object).reshape(shape)


@pytest.mark.parametrize("bits", [1, 20, 64, 700, 4000])
@pytest.mark.parametrize("size", [1, 2, 5, 20, 21, 30])
def test_a_solution_solves_every_equation(size, bits):
    numbers = random.Random(size * bits)
    M, b = whole(numbers, min(bits, 40_000 // size**2), size, size), whole(numbers, bits, size)
    for k in range(size):  # no pivot on the diagonal at first
        M[k, k] = 0 if size > 1 else 3
    try:
        solution = System(M).solve(b)
    except ValueError:
        assert bits == 1  # numbers this small may make a singular matrix
        return
    assert [sum(int(value) * x for value, x in zip(row, solution, strict=True)) for row in M] == b.tolist()
    assert all(isinstance(x, Fraction) for x in solution)


def test_a_singular_system_is_refused():
    with pytest.raises(ValueError, match="singular"):
        System(np.array([[1, 2], [2, 4]], object))


def test_the_dependency_of_rows_is_exact_at_any_length():
    shift = 1 << 3000
    V = np.array([[3 * shift, 1], [shift, 5], [2, 7 * shift]], object)
    weights = dependency(V)
    assert weights is not None
    assert all(sum(w * int(v) for w, v in zip(weights, V[:, j], strict=True)) == 0 for j in range(2))


def test_long_products_are_exact_and_end_in_time():
    numbers = random.Random(0)
    A, B = whole(numbers, 100, 7, 5), whole(numbers, 100, 5, 3)
    assert (product(A, B) == A @ B).all() and product(A[:0], B).shape == (0, 3)
    long = np.tile(whole(numbers, 1000, 100, 20), (5, 50))  # 250 million products
    begun = time.process_time()
    with watched(time.monotonic() + 0.2), pytest.raises(TimeUp):
        product(long, long.T)
    assert time.process_time() - begun < 2
