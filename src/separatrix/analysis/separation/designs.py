"""The design matrix of a logistic regression: of arrays and frames, formulas, statsmodels and scikit-learn."""

from __future__ import annotations

from dataclasses import dataclass
from types import ModuleType
from typing import Any

import numpy as np
import scipy.sparse as sp

from separatrix.data.errors import no_column
from separatrix.engine.rows import Array, Ints
from separatrix.proofs.inputs import column_names

EXTRA = "pip install 'separatrix[stats]'"
BINARY = ("Logit", "Probit")
ACCEPTED = "Logit, Probit, MNLogit or GLM with the family Binomial"


@dataclass(frozen=True)
class Design:
    """Rows, labels and names of the coefficients; `bias` tells whether an intercept is added to the columns of X.

    `rows` has the place of each row in what was given, where that differs; `row_labels` has their labels, if there are any.
    """

    X: Any
    y: Any
    names: list[str] | None
    bias: bool
    rows: Ints | None = None
    row_labels: list[Any] | None = None
    outcome: str = "y"
    notes: tuple[str, ...] = ()


def design_of(subject: Any, X: Any, y: Any, fit_intercept: bool | None) -> Design:
    """Return the design of the arguments of `check_separation`."""
    if fit_intercept is not None and (isinstance(subject, str) or hasattr(subject, "model") or hasattr(subject, "fit")):
        raise TypeError("fit_intercept is for X and y: a formula or a model says itself whether it has an intercept")
    if isinstance(subject, str):
        if X is None or y is not None:
            raise TypeError("a formula needs a frame, and nothing else: check_separation('y ~ a + b', frame)")
        return of_formula(subject, X)
    model = getattr(subject, "model", subject)
    if hasattr(model, "exog") and hasattr(model, "endog"):
        if X is not None or y is not None:
            raise TypeError("a statsmodels model has its own data: check_separation(model) takes no others")
        return of_statsmodels(model)
    if hasattr(subject, "get_params") and hasattr(subject, "fit"):
        if X is None or y is None:
            raise TypeError("an estimator of scikit-learn needs data: check_separation(estimator, X, y)")
        return of_scikit_learn(subject, X, y)
    if subject is not None:
        if y is not None or X is None:
            raise TypeError("give check_separation(X, y), (formula, frame), (statsmodels model) or (estimator, X, y)")
        X, y = subject, X
    if X is None or y is None:
        raise TypeError("check_separation needs X and y, a formula and a frame, or a model")
    return Design(X, y, column_names(X), fit_intercept is None or bool(fit_intercept), row_labels=_index(X))


def _index(frame: Any) -> list[Any] | None:
    """Return the labels of the rows of a pandas frame, unless they simply count from 0."""
    index = getattr(frame, "index", None)
    if index is None or callable(index) or type(index).__name__ == "RangeIndex":
        return None
    return list(index)


def patsy_module(what: str) -> ModuleType:
    """Return patsy; raise where the extra is not installed."""
    try:
        import patsy
        import statsmodels  # noqa: F401  # the extra as a whole
    except ImportError as error:
        raise ImportError(f"{what} needs the package {error.name}: {EXTRA}") from None
    return patsy  # type: ignore[no-any-return]


def of_formula(formula: str, frame: Any) -> Design:
    """Return the design of a formula such as "y ~ a + C(b)", and the columns of a frame."""
    patsy = patsy_module("a formula")
    import pandas as pd  # type: ignore[import-untyped, unused-ignore]

    left, tilde, right = (part.strip() for part in formula.partition("~"))
    if not tilde or not left or not right:
        raise ValueError(f"the formula {formula!r} has no outcome or no terms: write it as 'y ~ a + C(b)'")
    frame = frame.to_pandas() if hasattr(frame, "to_pandas") else pd.DataFrame(frame)
    labels, frame = _index(frame), frame.reset_index(drop=True)
    try:
        outcome = frame[left] if left in frame.columns else _outcome(patsy, left, frame)
        table = _evaluated(patsy, right, frame)
    except patsy.PatsyError as error:
        raise ValueError(f"the formula {formula!r} cannot be used: {_problem(error, frame)}") from None
    present = np.flatnonzero(outcome.reindex(table.index).notna().to_numpy())
    places: Ints = table.index.to_numpy(np.int64)[present]
    lost = len(frame) - len(places)
    notes = (f"{lost:,} of {len(frame):,} rows have a missing value in the formula, and are left out",) if lost else ()
    y = outcome.iloc[places].to_numpy()
    y = np.array(y.tolist()) if y.dtype == object else y
    row_labels = None if labels is None else [labels[i] for i in places]
    return Design(table.iloc[present].to_numpy(), y, list(table.columns), False, places, row_labels, left, notes)


def _evaluated(patsy: Any, terms: str, frame: Any) -> Any:
    """Return the columns of some terms without the rows that miss a value; a name is a column, a function or `np`."""
    names = patsy.EvalEnvironment([{"np": np}])
    return patsy.dmatrix(terms, frame, names, NA_action=patsy.NAAction(on_NA="drop"), return_type="dataframe")


def _outcome(patsy: Any, left: str, frame: Any) -> Any:
    """Return the left side of a formula that is no column, such as "I(age > 30)" or "Q('the outcome')"."""
    table = _evaluated(patsy, f"0 + {left}", frame)
    if table.shape[1] == 1:
        return table.iloc[:, 0]
    levels = [name.rpartition("[")[2].rstrip("]") for name in table.columns]
    return table.set_axis(levels, axis=1).idxmax(axis=1)


def _problem(error: Exception, frame: Any) -> str:
    first = str(error).split("\n")[0]
    unknown = getattr(error.__cause__, "name", None) if isinstance(error.__cause__, NameError) else None
    return no_column(unknown, [str(name) for name in frame.columns]) if unknown else first


def of_statsmodels(model: Any) -> Design:
    """Return the design of a model of statsmodels; a constant is one of its columns."""
    kind = type(model).__name__
    X, names = np.asarray(model.exog), list(model.exog_names)
    data = getattr(model, "data", None)
    labels = getattr(data, "row_labels", None)
    row_labels = None if labels is None or np.array_equal(labels, np.arange(len(labels))) else list(labels)
    outcome = str(model.endog_names) if isinstance(model.endog_names, str) else "y"
    if kind == "MNLogit":
        classes = model._ynames_map
        y = np.array([classes[int(code)] for code in model.endog])
        if len(classes) == 2:
            y = np.asarray(model.endog).astype(np.int64)
        return Design(X, y, names, False, None, row_labels, outcome)
    binomial = kind == "GLM" and type(model.family).__name__ == "Binomial"
    if kind not in BINARY and not binomial:
        family = f" with the family {type(model.family).__name__}" if kind == "GLM" else ""
        raise TypeError(f"a model {kind}{family} has no two classes to separate: give {ACCEPTED}")
    shares = np.asarray(model.endog, np.float64)
    weights = np.ones(len(shares))
    for name in ("freq_weights", "var_weights", "n_trials"):
        weight = getattr(model, name, None)
        if weight is not None:
            weights = weights * np.asarray(weight)
    return _of_shares(X, shares, weights, names, row_labels, outcome)


def _of_shares(X: Array, shares: Array, weights: Array, names: list[str], row_labels: Any, outcome: str) -> Design:
    """Return the design of shares of successes: a row of 3 of 5 stands for both classes, one of weight 0 for none."""
    counts = weights > 0
    ones, zeros = np.flatnonzero((shares > 0) & counts), np.flatnonzero((shares < 1) & counts)
    places: Ints = np.concatenate([zeros, ones])
    order = np.argsort(places, kind="stable")
    y = np.concatenate([np.zeros(len(zeros), np.int64), np.ones(len(ones), np.int64)])[order]
    places = places[order]
    notes = () if counts.all() else (f"{int((~counts).sum()):,} rows have the weight 0, and are left out",)
    if len(places) == len(X) and counts.all():
        return Design(X, y, names, False, None, row_labels, outcome)
    labels = None if row_labels is None else [row_labels[i] for i in places]
    return Design(X[places], y, names, False, places, labels, outcome, notes)


def of_scikit_learn(estimator: Any, X: Any, y: Any) -> Design:
    """Return the design of scikit-learn's LogisticRegression: the steps of a pipeline before it transform X.

    Steps that are fitted are used as they are; others are fitted in a copy.
    """
    from sklearn.base import clone
    from sklearn.exceptions import NotFittedError
    from sklearn.utils.validation import check_is_fitted

    labels, before = _index(X), None
    if hasattr(estimator, "steps"):
        before, estimator = estimator[:-1], estimator.steps[-1][1]
    if type(estimator).__name__ not in ("LogisticRegression", "LogisticRegressionCV"):
        raise TypeError(
            f"a {type(estimator).__name__} is no logistic regression: give LogisticRegression, or a pipeline to it"
        )
    names = column_names(X)
    if before is not None and len(before):
        try:
            check_is_fitted(before)
            transformed = before.transform(X)
        except NotFittedError:
            before = clone(before)
            transformed = before.fit_transform(X, y)
        try:
            names = [str(name) for name in before.get_feature_names_out()]
        except (AttributeError, ValueError):
            names = column_names(transformed)
        X = transformed if sp.issparse(transformed) else np.asarray(transformed)
    note = "scikit-learn's penalty (C) keeps the coefficients finite; where data are separated, it alone decides their size"
    penalised = getattr(estimator, "penalty", None) is not None and np.isfinite(np.max(getattr(estimator, "C", 1.0)))
    return Design(X, y, names, bool(estimator.fit_intercept), None, labels, "y", (note,) if penalised else ())
