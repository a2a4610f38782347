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

from separatrix.analysis.separation.collinear import (
    Dependencies,
    dependencies,
    nearly_dependent,
    spans_hyperplane,
    without_dependent,
)
from separatrix.analysis.separation.designs import Design, design_of
from separatrix.analysis.separation.report import Collinear, EmptyCell, InfiniteCoefficient, SeparationCheck
from separatrix.analysis.separation.signs import certain_signs
from separatrix.engine.labels import encode
from separatrix.engine.rows import Array, Ints, Rows
from separatrix.proofs.certificate import Certificate, Progress, certify
from separatrix.proofs.clock import TimeUp, check_time, watched
from separatrix.proofs.inputs import read_examples
from separatrix.proofs.proof import Witness
from separatrix.proofs.search.exact_signs import exact_signs
from separatrix.proofs.search.pairs import Pairs

_GRACE = 0.5
"""Seconds for what follows the certificate where that took all the time: enough on data of ordinary size."""
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
            infinite, outside = [], np.arange(rows.n if certificate.separation == "complete" else 0)
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
) -> tuple[list[InfiniteCoefficient], Ints]:
    """Return the coefficients that diverge along the direction of the certificate, and the rows that it separates."""
    direction = certificate.proof.direction
    if direction is None:
        return [], np.empty(0, np.int64)
    is_wide = isinstance(direction, Witness)
    if isinstance(direction, Witness):
        assert certificate.separator is not None
        W, b = np.atleast_2d(certificate.separator[0]), np.atleast_1d(certificate.separator[1])
        table = np.column_stack([W, b]) if pairs.bias else W
        direction = tuple(tuple(Fraction(number) for number in vector) for vector in table.tolist())
    flat = [number for vector in direction for number in vector]
    signs = exact_signs(pairs, flat) if certificate.separation != "complete" else pairs.exist.astype(np.int8)
    outside = np.unique(pairs.row_of(np.flatnonzero(signs > 0)))
    check_time()
    relative = [[a - b for a, b in zip(vector, direction[0], strict=True)] for vector in direction[1:]] or direction
    vectors = [without_dependent(list(vector), exact) for vector in relative]
    rank = len(vectors) * (pairs.m - len(exact))
    inside = np.flatnonzero((signs == 0) & pairs.exist)
    unique = not is_wide and spans_hyperplane(pairs, inside, rank)
    certain = {} if unique or is_wide or pairs.K > 2 else certain_signs(pairs, vectors[0], exact, signs, deadline)
    infinite = [
        InfiniteCoefficient(
            names[j],
            inf if number > 0 else -inf,
            True if unique else certain.get(j),
            certificate.classes[k + 1] if pairs.K > 2 else None,
        )
        for k, vector in enumerate(vectors)
        for j, number in enumerate(vector)
        if number
    ]
    return infinite, outside


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


def _empty_cells(rows: Rows, codes: Array, classes: list[Any], names: list[str]) -> list[EmptyCell]:
    """Return the levels of 0/1 columns, and the reference levels of factors in a formula, without a row of some class."""
    which, table = _columns_of_levels(rows)
    counts = np.stack([np.asarray(table[np.flatnonzero(codes == k)].sum(axis=0)).reshape(-1) for k in range(len(classes))])
    sizes = np.bincount(codes, minlength=len(classes))
    cells: list[EmptyCell] = []
    factors: dict[str, list[int]] = {}

    def add(column: str, level: str, ones: Array) -> None:
        cells.extend(EmptyCell(column, level, classes[k], int(ones.sum())) for k in np.flatnonzero(ones == 0))

    for t, j in enumerate(which.tolist()):
        match = _LEVEL.fullmatch(names[j])
        if match is None:
            add(names[j], "1", counts[:, t])
            add(names[j], "0", sizes - counts[:, t])
        else:
            add(match["factor"], match["level"], counts[:, t])
            factors.setdefault(match["factor"], []).append(t)
    for factor, places in factors.items():
        rest = sizes - counts[:, places].sum(axis=1)
        if rest.sum():
            add(factor, "the reference level", rest)
    return cells


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
