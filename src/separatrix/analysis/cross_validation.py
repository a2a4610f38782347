"""Cross-validates the classifiers of `catalogue` on the caller's data, each on the features it needs (L1 1, L2 9 and 11)."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.model_selection import KFold, StratifiedKFold

from separatrix.analysis.catalogue import chosen_views
from separatrix.analysis.comparison import Comparison
from separatrix.analysis.model_features import Examples, Form, MatrixExamples, Prepared, table_of
from separatrix.analysis.model_trial import Trial
from separatrix.data.errors import counted
from separatrix.engine.labels import Codes, check_two_classes, encode, labels_of
from separatrix.engine.rows import Array, Ints
from separatrix.learners.progress import steps_bar


def compare(
    X: Any,
    y: Any,
    *,
    models: str | Sequence[str] | None = None,
    folds: int = 5,
    roles: dict[str, str] | None = None,
    categorical: Sequence[str | int] = (),
    feature_names: Sequence[str] | None = None,
    budget: float | None = None,
    curves: bool = True,
    random_state: int = 0,
    verbose: int = 0,
) -> Comparison:
    """Cross-validate the classifiers of the lectures on your data, side by side.

    The columns of a table are told apart as `TableFeatures` and `separatrix train` do: numbers, categories, dates, sets,
    texts, identifiers. Each model gets the features that it needs, learned inside the fold: numbers scaled or in bins, 0/1
    features of categories, n-grams of texts. An array of numbers without names is no table, and no column of it is left out;
    "separatrix train" takes it as it is. A model that fails is reported with the reason. Everything but the times is
    reproducible with the same `random_state`, unless a `budget` drops a model.

    Parameters
    ----------
    X : array, sparse matrix or data frame with numbers, words and missing values (None, NaN, "?", "", "NA", …)
    y : labels
    models : names of models; all models by default
    folds : of the stratified cross-validation; fewer if a class has fewer examples
    roles : of columns by name, as in `TableFeatures`: "number", "category", "text", "date", "set", "boolean" or "drop"
    categorical : columns, by name or number from 0, whose numbers are codes of categories
    feature_names : names of an array's columns, for messages, `roles` and `categorical`
    budget : seconds that a model may take in all folds; one that would take longer is dropped, which its row says, except
        "separatrix train". By default there is no limit
    curves : also measure held-out accuracy after each pass
    random_state : seed of the folds and of the models
    verbose : 1 shows a progress bar

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from separatrix import compare
    >>> comparison = compare(*load_iris(return_X_y=True), models=["LDA", "decision tree", "Perceptron"])
    >>> [(row.model, round(row.accuracy, 2), row.view) for row in comparison.rows]
    [('LDA', 0.98, 'generative'), ('Perceptron', 0.95, 'discriminant function'), ('decision tree', 0.93, 'discriminative')]
    """
    examples: Examples
    is_told = bool(len(categorical) or roles)
    if sp.issparse(X) and is_told:
        raise ValueError("a sparse matrix has columns of numbers only: none of them can be categorical or have a role")
    is_numbers = isinstance(X, np.ndarray) and X.ndim == 2 and X.dtype.kind in "biuf"
    if sp.issparse(X) or (is_numbers and not is_told and feature_names is None):
        examples = MatrixExamples(X)
    else:
        examples = table_of(X, dict(roles or {}), categorical, feature_names)
    labels = labels_of(X, y, "compare")
    how: dict[str, Any] = {"models": models, "folds": folds, "budget": budget, "curves": curves}
    return cross_validated(examples, labels, **how, random_state=random_state, verbose=verbose)


def cross_validated(
    examples: Examples,
    labels: Array,
    *,
    models: str | Sequence[str] | None = None,
    folds: int = 5,
    budget: float | None = None,
    curves: bool = True,
    random_state: int = 0,
    verbose: int = 0,
    partial: bool = False,
) -> Comparison:
    """Return the comparison of models on examples; if `partial`, an interrupt gives what there is so far."""
    classes, codes = encode(labels)
    check_two_classes(classes, "a comparison")
    if not isinstance(folds, int | np.integer) or folds < 2:
        raise ValueError(f"folds must be a whole number, 2 or more, not {folds!r}")
    if budget is not None and not budget > 0:
        raise ValueError(f"budget must be a number of seconds above 0, not {budget!r}")
    views = chosen_views(models)
    counts = np.bincount(codes)
    splits, notes = _splits(codes, counts, classes, int(folds), random_state)
    notes = _fractions(classes) + notes
    examples.note_leaks(codes)
    trials = [Trial(view, classes.tolist(), random_state, len(splits), curves, budget) for view in views]
    interrupted = False
    with steps_bar(verbose, len(splits) * len(trials), "compare") as progress:
        try:
            for number, (train, test) in enumerate(splits, 1):
                _run_fold(number, examples, train, test, codes, trials, progress)
        except KeyboardInterrupt:
            if not partial or not any(trial.accuracies for trial in trials):
                raise
            interrupted = True
            notes.append(f"interrupted in fold {number} of {len(splits)}: the means are those of the folds before")
    rows = [trial.row() for trial in trials]
    return Comparison(
        rows=sorted(rows, key=lambda row: -np.inf if row.accuracy is None else row.accuracy, reverse=True),
        curves={trial.view.model: curve for trial in trials if (curve := trial.curve())},
        examples=examples.n,
        columns=examples.describe(),
        classes=classes.tolist(),
        folds=len(splits),
        baseline=float(counts.max() / len(codes)),
        notes=examples.notes + notes,
        interrupted=interrupted,
    )


def _run_fold(
    number: int, examples: Examples, train: Ints, test: Ints, codes: Codes, trials: list[Trial], progress: Any
) -> None:
    """Train and test each model on one fold; those with the same needs share their features."""
    fold = examples.fold(train, test)
    features: dict[Form, Prepared] = {}
    for trial in trials:
        progress(f"fold {number}: {trial.view.model}")
        if trial.failure is None:
            form = trial.view.form
            if form not in features:
                features[form] = fold.prepared(form)
            trial.run(number, features[form], codes[train], codes[test])


def _fractions(classes: Array) -> list[str]:
    """Return a note on labels that are numbers with fractions: often measurements, and no classes."""
    try:
        fractions = [label for label in classes.tolist() if not float(label).is_integer()]
    except ValueError:
        return []
    if not fractions:
        return []
    what = f"labels are numbers with fractions, such as {fractions[0]}"
    return [f"{what}: each is taken for the name of a class; if they are measurements, bin them"]


def _splits(codes: Codes, counts: Ints, classes: Array, folds: int, seed: int) -> tuple[list[tuple[Ints, Ints]], list[str]]:
    """Return the training and test rows of each fold, and notes for the user."""
    notes = []
    if counts.max() == 1:
        notes.append("no class has two examples, so no fold both learns and tests one: the accuracies say nothing")
        return list(KFold(min(folds, len(codes)), shuffle=True, random_state=seed).split(codes)), notes
    most = int(counts.max())
    if most < folds:
        notes.append(f"{most} folds, not {folds}: no class has more than {counted(most, 'example')}")
        folds = most
    rare = np.flatnonzero(counts < folds).tolist()
    if rare:
        named = ", ".join(f"{classes[k]} ({counts[k]})" for k in rare[:5]) + (" …" if len(rare) > 5 else "")
        single = "; no fold both learns and tests a class of one example" if counts.min() == 1 else ""
        few = f"{counted(len(rare), 'class')} with fewer examples than the {folds} folds: {named}"
        notes.append(f"{few}: not every fold tests them{single}")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        split = StratifiedKFold(folds, shuffle=True, random_state=seed).split(codes, codes)
        return list(split), notes
