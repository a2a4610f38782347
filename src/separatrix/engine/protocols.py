"""What the rooms above ask of a fitted classifier and of a fitted featurizer, whatever class they are of."""

from __future__ import annotations

from typing import Any, Protocol

from separatrix.engine.parcel import Parcel, State
from separatrix.engine.rows import Array, Floats, Ints, Rows


class Classifier(Protocol):
    """Any fitted classifier: one of ours, a `Model`, or one of scikit-learn's, in a pipeline or a search too."""

    @property
    def classes_(self) -> Array:
        """The classes, sorted."""

    def predict(self, X: Any) -> Array:
        """Return the predicted label of each row."""


class Learner(Protocol):
    """A classifier that decides by scores and can be saved: a plain learner of `learners`, or an estimator."""

    classes_: Array
    n_features_in_: int
    not_fitted_error: type[Exception]

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Return the parameters by name."""

    def is_fitted(self) -> bool:
        """Tell whether there is anything to predict with."""

    def read_rows(self, X: Any, reset: bool = False) -> Rows:
        """Return X as the kernels read it."""

    def scores(self, rows: Rows) -> Floats:
        """Return the scores of rows, a column for each output."""

    def winners(self, scores: Floats, n_classes: int) -> Ints:
        """Return the code of the class that each row of scores is for, whatever the threshold is."""

    def decide(self, scores: Floats, n_classes: int) -> Ints:
        """Return the code of the class that each row of scores is predicted as."""

    def decision_function(self, X: Any) -> Floats:
        """Return the scores of X: one a row for two classes, one a class for more."""

    def predict(self, X: Any) -> Array:
        """Return the predicted labels of X."""

    def pack(self, parcel: Parcel, at: str) -> State:
        """Put the fitted classifier into a parcel, and return the rest of its state as JSON."""


class Featurizer(Protocol):
    """A featurizer of texts or tables that can be saved."""

    @property
    def n_features_out_(self) -> int:
        """The number of features."""

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Return the parameters by name."""

    def public_name(self) -> str:
        """Return the name of the public class."""

    def fit(self, X: Any, y: Any = None) -> Any:
        """Learn the features of texts or of a table; return the featurizer itself."""

    def get_feature_names_out(self, input_features: Any = None) -> Array:
        """Return the name of each feature."""

    def names_of(self, feature: int, /) -> list[str]:
        """Return the names of what one feature stands for: several where they share a hash."""

    def transform(self, X: Any) -> Any:
        """Return the features of texts, or of the rows of a table, as a matrix."""

    def get_state(self) -> tuple[State, dict[str, Array]]:
        """Return the learned state as JSON and arrays."""
