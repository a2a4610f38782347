"""scikit-learn's contract: how X and y are read, what an estimator says of itself, how a fit looks in a notebook."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.exceptions import NotFittedError
from sklearn.utils import assert_all_finite
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_consistent_length, check_is_fitted, column_or_1d, validate_data

from separatrix.engine.labels import as_labels, check_kinds, check_no_name, check_unmasked
from separatrix.engine.rows import Array, Rows, as_matrix, name_text_column
from separatrix.estimators.notebook import ShowsItsFit, number, picture


class Estimator(ShowsItsFit, ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """A scikit-learn classifier; it is put before a plain one of `learners`, which does the work."""

    not_fitted_error = NotFittedError

    def read_rows(self, X: Any, reset: bool = False) -> Rows:
        """Return X as the kernels read it, its width and names checked against those of the fit."""
        check_unmasked(X, "X")
        try:
            matrix = validate_data(self, X, reset=reset, accept_sparse="csr", dtype="numeric", ensure_all_finite=False)
            if matrix.dtype.kind in "OmM":  # as a table of categories or of dates arrives
                matrix = as_matrix(matrix)
        except (TypeError, ValueError):
            name_text_column(X)
            raise
        return Rows(matrix)

    def _read_labels(self, X: Any, y: Any, who: str | None = None) -> Array:
        """Return the labels y of X, or raise for what cannot be the label of an example."""
        if y is None:
            raise ValueError(f"{who or type(self).__name__} requires y to be passed, but the target y is None")
        check_no_name(y)
        check_unmasked(y, "y")
        labels = as_labels(column_or_1d(np.asarray(y), warn=True))
        check_consistent_length(X, labels)
        check_kinds(labels)
        if labels.dtype.kind not in "biuU":  # whole numbers and strings are labels; anything else has to be looked at
            assert_all_finite(labels, input_name="y")
            check_classification_targets(labels)
        return labels

    def _check_fitted(self) -> None:
        check_is_fitted(self)

    def __sklearn_is_fitted__(self) -> bool:
        """Tell scikit-learn whether there is anything to predict with."""
        return bool(self.is_fitted())

    def __sklearn_tags__(self) -> Any:
        """Tell scikit-learn what the classifier takes."""
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags


class ErrorDrivenEstimator(Estimator):
    """An estimator that learns from mistakes: a notebook shows how its training went."""

    # In a notebook.

    def _facts(self) -> list[tuple[str, str]]:
        """Return the course of the training, and what there is to say of any fit."""
        cut, cycle = self.ledger_.cut, self.cycle_
        ended = "with a clean pass" if self.converged_ else "without a clean pass"
        if cut is not None:
            ended = f"early: back to pass {cut.pass_number:,}, of the best held-out accuracy"
        elif cycle is not None:
            ended = f"in a cycle: the weights of pass {cycle.start:,} come back every {cycle.period:,} passes"
        facts = [
            ("passes", f"{self.n_iter_:,}, {self.n_seen_:,} examples presented"),
            ("mistakes", f"{self.n_mistakes_:,}, {self.mistakes_per_pass_[-1]:,} of them in the last pass"),
            ("ended", ended),
        ]
        if hasattr(self, "radius_"):
            facts.append(("radius R", f"{number(self.radius_)}; bounds(X, y) finds γ and the bound R²/γ²"))
        return facts + super()._facts()

    def _mistaken(self) -> tuple[Array, Array] | None:
        """Return the examples of the mistakes and their classes, by code, where they are stored."""
        ledger = self.ledger_
        if ledger.stored is None or ledger.absent or ledger.stored.n == 0:
            return None
        rows, numbers = ledger.mistaken_rows()
        return (rows.source, numbers) if not rows.sparse else None

    def _picture(self) -> str:
        mistaken = self._mistaken() if self.n_features_in_ == 2 else None
        if mistaken is None:
            return ""
        points, numbers = mistaken
        true = self.ledger_.up >= 0
        which, first = np.unique(numbers[true], return_index=True)
        caption = "the mistaken examples, and what the learner says around them"
        return picture(self, np.asarray(points[which]), self.ledger_.up[true][first], caption)
