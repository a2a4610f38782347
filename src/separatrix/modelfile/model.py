"""What a model file holds: a classifier, the featurizer before it, and facts about the training."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from separatrix import __version__

if TYPE_CHECKING:
    from separatrix.engine.protocols import Featurizer
    from separatrix.engine.rows import Array, Floats


class Model:
    """What a model file holds: a classifier, the featurizer before it or None, and facts about the training.

    Examples
    --------
    >>> from separatrix import Model, Perceptron, TextFeatures
    >>> texts, labels = ["free money", "see you at noon"], ["spam", "ham"]
    >>> features = TextFeatures(n_features=1024).fit(texts)
    >>> model = Model(Perceptron(random_state=0).fit(features.transform(texts), labels), features)
    >>> model.predict(["free entry"]).tolist()
    ['spam']
    """

    def __init__(self, estimator: Any, features: Featurizer | None = None, facts: dict[str, Any] | None = None) -> None:
        self.estimator: Any = estimator
        self.features = features
        self.facts: dict[str, Any] = {} if facts is None else facts
        self.arrays: dict[str, Array] = {}
        self.version, self.sha256 = __version__, ""

    def transform(self, X: Any) -> Any:
        """Return what the classifier sees of X: its features, or X itself where there is no featurizer."""
        return X if self.features is None else self.features.transform(X)

    def predict(self, X: Any) -> Array:
        """Return the predicted labels of the rows of a table, of texts, or of X."""
        labels: Array = self.estimator.predict(self.transform(X))
        return labels

    def decision_function(self, X: Any) -> Floats:
        """Return the scores of the rows."""
        scores: Floats = self.estimator.decision_function(self.transform(X))
        return scores

    def predict_proba(self, X: Any) -> Floats:
        """Return the probability of each class, where the classifier was calibrated."""
        shares: Floats = self.estimator.predict_proba(self.transform(X))
        return shares

    def info(self) -> dict[str, Any]:
        """Return what there is to know at a glance."""
        estimator, ledger = self.estimator, getattr(self.estimator, "ledger_", None)
        summary: dict[str, Any] = {
            "estimator": type(estimator).__name__,
            "parameters": estimator.get_params(deep=False),
            "features": None if self.features is None else type(self.features).__name__,
            "n_features": int(estimator.n_features_in_),
            "classes": estimator.classes_.tolist(),
        }
        if ledger is not None:
            summary["ledger"] = {
                "mistakes": len(ledger),
                "left_out": ledger.absent,
                "rows_stored": ledger.stored is not None,
            }
        return summary | {"facts": self.facts, "version": self.version, "sha256": self.sha256}

    def __repr__(self) -> str:
        before = "" if self.features is None else f"{type(self.features).__name__} → "
        classes = f"{len(self.estimator.classes_)} classes"
        return f"<Model: {before}{type(self.estimator).__name__}, {self.estimator.n_features_in_:,} features, {classes}>"
