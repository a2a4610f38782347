"""`check_separation`: whether a logistic regression has finite estimates; if not, what is infinite, and why.

A logistic likelihood has a finite maximum exactly if no direction w has all leads ⟨w,a⟩ ≥ 0 and one > 0 (Albert and Anderson
1984). Along such a direction the likelihood rises for ever. The direction of the certificate is positive on every pair on
which any such direction is (`proofs/search/separation.py`), so the rows with a positive lead are all that are separated. Its
signs are those of every such direction where only one exists; where there are more, `signs.py` examines each coefficient.
"""

from __future__ import annotations

import re
import time
from contextlib import suppress
from fractions import Fraction
from math import inf
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from separatrix.analysis.separation.collinear import (
    Dependencies,
    dependencies,
    nearly_dependent,
    spans_hyperplane,
    without_dependent,
)
from separatrix.analysis.separation.designs import Design, design_of
from separatrix.analysis.separation.findings import EmptyCells, InfiniteCoefficients
from separatrix.analysis.separation.report import Collinear, SeparationCheck
from separatrix.analysis.separation.signs import certain_signs
from separatrix.engine.labels import encode
from separatrix.engine.rows import Array, Ints, Rows
from separatrix.proofs.certificate import Certificate, Progress, certify
from separatrix.proofs.clock import TimeUp, check_time, watched
from separatrix.proofs.inputs import read_examples
from separatrix.proofs.proof import Direction, Witness
from separatrix.proofs.search.exact_signs import exact_signs
from separatrix.proofs.search.pairs import Pairs
from separatrix.proofs.search.wide import WIDE

_GRACE = 0.5
"""Seconds for what follows the certificate where that took all the time: enough on data of ordinary size."""
_CELLS_AT_ONCE = 1 << 20
_LEVEL = re.compile(r"(?P<factor>[^:]+)\[T\.(?P<level>[^:]*)\]")
"""How formulas name the column of a level; the reference level has none."""


def check_separation(
    subject: Any = None,
    X: Any = None,
    y: Any = None,
    *,
    fit_intercept: bool | None = None,
    time_limit: float | None = None,
) -> SeparationCheck:
    """Tell whether a logistic regression on these data has finite estimates; if not, what is infinite, and why.

    Parameters
    ----------
    subject, X, y : one of
        `check_separation(X, y)`: arrays, a CSR matrix, or a data frame of pandas, polars or pyarrow;
        `check_separation(model)` or `check_separation(results)` of statsmodels: Logit, Probit, MNLogit, or GLM with the
        family Binomial, before or after fitting;
        `check_separation(formula, frame)`, such as "y ~ a + C(b)"; formulas and models need `separatrix[stats]`;
        `check_separation(estimator, X, y)` for scikit-learn's LogisticRegression, or a pipeline that ends in one.
    fit_intercept : add an intercept to X; by default yes. Models and formulas say themselves.
    time_limit : in seconds; what is not decided by then is "undecided".

    Examples
    --------
    Everybody with the mutation fell ill, so no finite coefficient fits them best.

    >>> from separatrix import check_separation
    >>> X = [[50, 0], [40, 0], [60, 0], [45, 0], [52, 0], [48, 1], [39, 1]]
    >>> ill = [1, 0, 0, 1, 0, 1, 1]
    >>> check = check_separation(X, ill)
    >>> check.separation, [(c.name, c.limit) for c in check.infinite], check.rows
    ('quasi-complete', [('x1', inf)], [5, 6])
    """
    return checked_design(design_of(subject, X, y, fit_intercept), time_limit)


def checked_design(design: Design, time_limit: float | None = None, progress: Progress | None = None) -> SeparationCheck:
    """Return the check of a design matrix."""
    deadline = inf if time_limit is None else time.monotonic() + time_limit
    certificate = certify(
        design.X, design.y, fit_intercept=design.bias, exact=False, time_limit=time_limit, progress=progress
    )
    rows, labels, _ = read_examples(design.X, design.y)
    classes, codes = encode(labels)
    names = [f"x{j}" for j in range(rows.d)] if design.names is None else [str(name) for name in design.names]
    certificate.feature_names = names
    pairs = Pairs(rows, codes, len(classes), design.bias)
    exact, collinear, notes = None, None, list(design.notes)
    grace = 0.0 if time_limit is None else min(_GRACE, time_limit / 10)
    with watched(max(deadline, time.monotonic() + grace)):
        with suppress(TimeUp):
            exact = dependencies(rows, design.bias)
            collinear = None if exact is None else _named(exact, names, rows, design.bias)
        try:
            infinite, outside = _along(pairs, certificate, exact or {}, [*names, "intercept"][: pairs.m], deadline)
        except TimeUp:
            infinite = _none([*names, "intercept"][: pairs.m], certificate.classes)
            outside = np.arange(rows.n if certificate.separation == "complete" else 0)
            notes.append(
                "the time limit fell before it was told which coefficients are infinite, and which rows are separated"
            )
    given = outside if design.rows is None else np.unique(design.rows[outside])
    row_labels = None if design.row_labels is None else [design.row_labels[i] for i in outside.tolist()]
    return SeparationCheck(
        certificate=certificate,
        infinite=infinite,
        rows=given.tolist(),
        row_labels=None if row_labels is None else list(dict.fromkeys(row_labels)),
        n_rows=rows.n if design.rows is None else len(np.unique(design.rows)),
        empty=_empty_cells(rows, codes, certificate.classes, names),
        collinear=collinear,
        alone=_separating_alone(rows, codes, names) if certificate.separation == "complete" and len(classes) == 2 else [],
        names=names,
        outcome=design.outcome,
        notes=notes,
        X=design.X,
        y=design.y,
    )


def _along(
    pairs: Pairs, certificate: Certificate, exact: Dependencies, names: list[str], deadline: float
) -> tuple[InfiniteCoefficients, Ints]:
    """Return the coefficients that diverge along the direction of the certificate, and the rows that it separates."""
    direction, classes = certificate.proof.direction, certificate.classes
    if direction is None:
        return _none(names, classes), np.empty(0, np.int64)
    if certificate.separation == "complete":
        outside, inside = np.arange(pairs.rows.n), np.empty(0, np.int64)
        leads: NDArray[np.int8] = pairs.exist.view(np.int8)
    else:
        assert not isinstance(direction, Witness)
        flat = [number for vector in direction for number in vector]
        is_plain = pairs.dim > WIDE and all(number.denominator == 1 and abs(number.numerator) < 1 << 50 for number in flat)
        leads = exact_signs(pairs, np.array([number.numerator for number in flat], float) if is_plain else flat)
        outside = np.unique(pairs.row_of(np.flatnonzero(leads > 0)))
        inside = np.flatnonzero((leads == 0) & pairs.exist)
    check_time()
    if isinstance(direction, Witness):
        return InfiniteCoefficients(_signs_of_sum(certificate, exact), names, classes), outside
    signs = _signs(direction, exact, pairs.m)
    rank = len(signs) * (pairs.m - len(exact))
    unique = bool(spans_hyperplane(pairs, inside, rank))
    is_examined = pairs.K == 2 and not unique
    found = certain_signs(pairs, without_dependent(list(direction[0]), exact), exact, leads, deadline) if is_examined else {}
    return InfiniteCoefficients(signs, names, classes, found, unique), outside


def _none(names: list[str], classes: list[Any]) -> InfiniteCoefficients:
    return InfiniteCoefficients(np.zeros((0, len(names)), np.int8), names, classes)


def _signs(direction: Direction, exact: Dependencies, m: int) -> NDArray[np.int8]:
    """Return the signs of the one vector of two classes; of more, of each but the first, less the first."""
    base = direction[0] if len(direction) > 1 else (Fraction(0),) * m
    signs = np.empty((max(1, len(direction) - 1), m), np.int8)
    for k, vector in enumerate(direction[1:] or direction):
        check_time()
        if exact:
            relative = without_dependent([a - b for a, b in zip(vector, base, strict=True)], exact)
            signs[k] = [(number > 0) - (number < 0) for number in relative]
        else:
            signs[k] = [0 if a is b else _compared(a, b) for a, b in zip(vector, base, strict=True)]
    return signs


def _compared(a: Fraction, b: Fraction) -> int:
    """Return the sign of a − b, several times as fast as a difference would be."""
    left, right = a.numerator * b.denominator, b.numerator * a.denominator
    return (left > right) - (left < right)


def _signs_of_sum(certificate: Certificate, exact: Dependencies) -> NDArray[np.int8]:
    """Return the signs of a direction that is stated as a sum of examples, rounded as in `certificate.separator`.

    They are computed from the floats, some columns at a time: of text with many classes, fractions would be gigabytes.
    """
    assert certificate.separator is not None
    W, b = certificate.separator
    table, biases = np.atleast_2d(W), np.atleast_1d(b)
    d = table.shape[1]
    signs = np.empty((max(1, len(table) - 1), d + certificate.proof.bias), np.int8)
    step = max(1, _CELLS_AT_ONCE // len(table))
    for first in range(0, d, step):
        check_time()
        part = table[:, first : first + step]
        signs[:, first : first + part.shape[1]] = np.sign(part[1:] - part[0] if len(table) > 1 else part)
    if certificate.proof.bias:
        signs[:, d] = np.sign(biases[1:] - biases[0] if len(table) > 1 else biases)
    if exact:  # only where columns are few
        every = np.column_stack([table, biases]) if certificate.proof.bias else table
        return _signs(tuple(tuple(map(Fraction, vector)) for vector in every.tolist()), exact, every.shape[1])
    return signs


def _named(exact: Dependencies, names: list[str], rows: Rows, bias: bool) -> list[Collinear]:
    """Return the collinear columns by name."""
    every = [*names, "intercept"]
    proven = [Collinear(every[j], {every[c]: value for c, value in terms.items()}) for j, terms in exact.items()]
    return proven + [Collinear(every[j], None) for j in nearly_dependent(rows, bias, exact)]


def _columns_of_levels(rows: Rows) -> tuple[Ints, Array]:
    """Return the columns that hold 0 and 1 only, and both of them; and a table of where they hold 1."""
    X: Any = rows.source
    if sp.issparse(X):
        X = sp.csc_array(X)
        ones = np.diff(sp.csc_array(X == 1).indptr)
        nonzero = np.diff(sp.csc_array(X != 0).indptr)
    else:
        ones, nonzero = (X == 1).sum(axis=0), (X != 0).sum(axis=0)
    which = np.flatnonzero((ones == nonzero) & (ones > 0) & (ones < rows.n))
    return which, X[:, which] == 1


def _empty_cells(rows: Rows, codes: Array, classes: list[Any], names: list[str]) -> EmptyCells:
    """Return the levels of 0/1 columns, and the reference levels of factors in a formula, without a row of some class."""
    which, table = _columns_of_levels(rows)
    if sp.issparse(table):
        members = sp.csr_array((np.ones(rows.n, np.int64), (codes, np.arange(rows.n))), (len(classes), rows.n))
        counts = np.asarray((members @ table.astype(np.int64)).toarray())
    else:
        counts = np.stack([table[codes == k].sum(axis=0) for k in range(len(classes))])
    sizes = np.bincount(codes, minlength=len(classes))
    by_level = np.stack([counts.T, (sizes[:, None] - counts).T], axis=1)  # a column's levels 1 and 0
    levels: list[tuple[str, str]] = []
    factors: dict[str, list[int]] = {}
    for t, j in enumerate(which.tolist()):
        match = _LEVEL.fullmatch(names[j]) if "[T." in names[j] else None
        if match is None:
            levels += [(names[j], "1"), (names[j], "0")]
        else:
            levels += [(match["factor"], match["level"]), ("", "")]
            by_level[t, 1] = 1  # 0 is any other level of the factor
            factors.setdefault(match["factor"], []).append(t)
    by_level = by_level.reshape(-1, len(classes))
    for factor, places in factors.items():
        rest = sizes - counts[:, places].sum(axis=1)
        if rest.sum():
            levels.append((factor, "the reference level"))
            by_level = np.concatenate([by_level, rest[None]])
    cells = np.flatnonzero(by_level == 0)
    return EmptyCells(levels, cells, by_level.sum(axis=1)[cells // len(classes)], classes)


def _separating_alone(rows: Rows, codes: Array, names: list[str]) -> list[str]:
    """Return the columns that separate two classes completely by themselves."""
    ends = []
    for k in (0, 1):
        part = rows.source[np.flatnonzero(codes == k)]
        ends.append(
            [np.asarray(e.toarray() if sp.issparse(e) else e).reshape(-1) for e in (part.min(axis=0), part.max(axis=0))]
        )
    (low0, high0), (low1, high1) = ends
    return [names[j] for j in np.flatnonzero((high0 < low1) | (high1 < low0)).tolist()]
