"""Which rows are forgotten, which are left, and what they are called."""

from __future__ import annotations

from collections.abc import Iterable
from numbers import Integral
from typing import Any

import numpy as np
import scipy.sparse as sp

from separatrix.data.errors import DataError, counted
from separatrix.engine.rows import Array, Ints
from separatrix.learners.linear_base import LinearLearner

ANY_NUMBER = 1 << 62
"""Stands for the number of rows where it is not known yet."""
TRAIN_AGAIN = "train it again on the data without the rows"


def row_numbers(rows: Any, n: int, first: int) -> Ints:
    """Return the rows to forget, sorted, each once and counted from 0; they are given counted from `first`."""
    named: list[Any] = [rows] if isinstance(rows, Integral) else list(rows) if isinstance(rows, Iterable) else [rows]
    if not named:
        raise DataError("no row to forget is named")
    for number in named:
        if not isinstance(number, Integral) or isinstance(number, bool | np.bool_):
            raise DataError(f"a row is named by its number, from {first} on, and not by {number!r}")
        if int(number) < first:
            raise DataError(f"there is no row {number}: rows count from {first}")
        if int(number) >= first + n:
            have = "" if n == ANY_NUMBER else f": the data have {counted(n, 'row')}, counted from {first}"
            raise DataError(f"there is no row {number}{have}")
    numbers = np.unique(np.array([int(number) - first for number in named], np.int64))
    if len(numbers) == n:
        raise DataError("every row is to be forgotten: nothing is left to learn from")
    return numbers


def check_can_forget(learner: Any) -> None:
    """Raise, in one line, where the training of a learner cannot be made again without some of its rows."""
    name = learner.public_name() if hasattr(learner, "public_name") else type(learner).__name__
    if not isinstance(learner, LinearLearner):
        raise DataError(f"a {name} cannot forget rows: only linear learners with a ledger can; {TRAIN_AGAIN}")
    if not learner.is_fitted():
        raise learner.not_fitted_error(f"this {name} is not fitted yet: call fit first")
    run, why = learner.run_, ""
    if hasattr(learner, "mix_"):
        why = "it is a mix of the weights of several shards, whose mistakes were only counted"
    elif run.streaming:
        why = "it has learned from a stream, and not in passes over data that are at hand"
    elif not run.resumable:
        why = "it was saved with resume=False, without its ledger"
    elif run.ledger.absent:
        why = f"its ledger lacks {counted(run.ledger.absent, 'mistake')}"
    elif run.ledger.start is not None:
        why = "it began with the weights of an earlier fit (warm_start=True)"
    elif isinstance(learner.random_state, np.random.RandomState):
        why = "its random_state is a generator, which has moved on; a whole number can be used again"
    if why:
        raise DataError(f"this {name} cannot forget rows: {why}; {TRAIN_AGAIN}")


def check_count(learner: LinearLearner, n: int, what: str = "rows") -> None:
    """Raise where a learner was trained on another number of examples."""
    if learner.run_.rows_seen != n:
        seen = counted(learner.run_.rows_seen, what.removesuffix("s"))
        raise DataError(f"the model was trained on {seen}, and there are {n:,}: these are other data")


def left(data: Any, forgotten: Ints) -> Any:
    """Return what is left of rows: of an array, a matrix, a data frame, a table, a dict of columns or a list; None: None."""
    if data is None:
        return None
    if isinstance(data, dict):
        return {name: left(column, forgotten) for name, column in data.items()}
    n = data.shape[0] if hasattr(data, "shape") else len(data)
    kept = np.delete(np.arange(n), forgotten)
    if hasattr(data, "iloc"):
        return data.iloc[kept]
    if sp.issparse(data):
        return (data if data.format == "csr" else data.tocsr())[kept]
    if hasattr(data, "take") and hasattr(data, "schema") and not hasattr(data, "to_arrow"):  # a table of Arrow
        return data.take(kept)
    if isinstance(data, list | tuple):
        return [data[i] for i in kept.tolist()]
    return data[kept]


def changed_weights(before: LinearLearner, after: LinearLearner) -> tuple[int, int] | None:
    """Return how many weights and biases have changed, and how many there are; None where there are other ones."""
    pairs: list[tuple[Array, Array]] = [(before.coef_, after.coef_), (before.intercept_, after.intercept_)]
    if any(then.shape != now.shape for then, now in pairs):
        return None
    return sum(int(np.count_nonzero(then != now)) for then, now in pairs), sum(now.size for _, now in pairs)
