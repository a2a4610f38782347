"""What a model file holds: a classifier, the featurizer before it, and facts about the training."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Self

import numpy as np

from separatrix import __version__
from separatrix.data.errors import counted

if TYPE_CHECKING:
    from separatrix.engine.protocols import Featurizer
    from separatrix.engine.rows import Array, Floats


class Model:
    """What a model file holds: a classifier, the featurizer before it or None, and facts about the training.

    It follows scikit-learn's estimator protocol without importing scikit-learn: `clone`, cross-validation and grid search on
    raw texts and tables work where its parts are the public classes.

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

    # scikit-learn's estimator protocol.

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Return the two parts and, where `deep`, their parameters as "estimator__C" and "features__n_features"."""
        parts = {"estimator": self.estimator, "features": self.features}
        if deep:
            for name, part in list(parts.items()):
                if part is not None:
                    parts |= {f"{name}__{key}": value for key, value in part.get_params().items()}
        return parts

    def set_params(self, **parameters: Any) -> Self:
        """Replace a part, or set a parameter of one."""
        for key, value in parameters.items():
            name, _, nested = key.partition("__")
            if name not in ("estimator", "features"):
                raise ValueError(f"{name!r} is not a parameter of Model; its parameters are estimator and features")
            if nested:
                getattr(self, name).set_params(**{nested: value})
            else:
                setattr(self, name, value)
        return self

    def fit(self, X: Any, y: Any, **settings: Any) -> Self:
        """Fit the featurizer, if there is one, and then the classifier; `settings` are those of its `fit`."""
        if self.features is not None:
            X = self.features.fit(X, y).transform(X)
        self.estimator.fit(X, y, **settings)
        self.facts, self.arrays, self.sha256 = {}, {}, ""
        return self

    def score(self, X: Any, y: Any) -> float:
        """Return the accuracy: the share of rows whose label is predicted."""
        return float(np.mean(self.predict(X) == np.asarray(y)))

    @property
    def classes_(self) -> Array:
        """The classes of the classifier, sorted."""
        classes: Array = self.estimator.classes_
        return classes

    def __sklearn_is_fitted__(self) -> bool:
        """Tell scikit-learn whether there is anything to predict with."""
        return bool(self.estimator.is_fitted())

    def __sklearn_tags__(self) -> Any:
        """Tell scikit-learn, the only caller, what the model takes."""
        from sklearn.utils import ClassifierTags, Tags, TargetTags

        classifier = ClassifierTags()
        return Tags(estimator_type="classifier", target_tags=TargetTags(required=True), classifier_tags=classifier)

    # Predictions.

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
            "estimator": estimator.public_name(),
            "parameters": estimator.get_params(deep=False),
            "features": None if self.features is None else self.features.public_name(),
            "n_features": int(estimator.n_features_in_),
            "classes": estimator.classes_.tolist(),
        }
        if getattr(estimator, "threshold_", None) is not None:
            summary["threshold"] = estimator.threshold_
        if ledger is not None:
            summary["ledger"] = {
                "mistakes": len(ledger),
                "left_out": ledger.absent,
                "rows_stored": ledger.stored is not None,
            }
        return summary | {"facts": self.facts, "version": self.version, "sha256": self.sha256}

    def __repr__(self) -> str:
        before = "" if self.features is None else f"{self.features.public_name()} → "
        if not self.estimator.is_fitted():
            return f"<Model: {before}{self.estimator.public_name()}, not fitted>"
        counts = f"{counted(self.estimator.n_features_in_, 'feature')}, {counted(len(self.estimator.classes_), 'class')}"
        return f"<Model: {before}{self.estimator.public_name()}, {counts}>"
