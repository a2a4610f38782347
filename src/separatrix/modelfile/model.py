"""What a model file holds: a classifier, the featurizer before it, and facts about the training."""

from __future__ import annotations

from collections.abc import Mapping
from copy import deepcopy
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from separatrix import __version__
from separatrix.data.errors import counted, did_you_mean
from separatrix.engine.hooks import hook
from separatrix.engine.labels import as_labels
from separatrix.engine.parameters import available_if

if TYPE_CHECKING:
    from separatrix.analysis.importances import Importances
    from separatrix.engine.protocols import Featurizer
    from separatrix.engine.rows import Array, Floats

AUTO = "auto"


def _require_probabilities(model: Model) -> None:
    """Raise an AttributeError, which says what to do, unless the classifier has probabilities."""
    estimator = model.estimator
    if hasattr(estimator, "predict_proba"):
        return
    if estimator is not None and not hasattr(estimator, "calibrate"):
        raise AttributeError(f"a {estimator.public_name()} has scores, and no probabilities")
    raise AttributeError(
        "the model is not calibrated: it has scores, and no probabilities; train it with calibrate=True, or call "
        "set_params(estimator__calibrate='sigmoid') before fit"
    )


def unfitted(part: Any) -> Any:
    """Return a new estimator or featurizer with the same parameters, as scikit-learn's `clone` does; of a value, a copy."""
    if not hasattr(part, "get_params") or isinstance(part, type):
        return deepcopy(part)
    return type(part)(**{name: unfitted(value) for name, value in part.get_params(deep=False).items()})


def _is_table(features: Any) -> bool:
    return getattr(features, "saved_as", "") == "TableFeatures"


class Model:
    """A classifier, the featurizer before it or None, and facts about the training: what a model file holds.

    `Model()` is the recipe of `train` with its defaults, as a scikit-learn classifier of raw data: `cross_val_score(Model(),
    frame, labels)`. It follows scikit-learn's estimator protocol without importing scikit-learn: `clone`, cross-validation
    and grid search over `estimator__C` or `features__n_bins` work on data frames, texts, arrays and CSR matrices.

    Parameters
    ----------
    estimator : the classifier; None: that of `train`, an averaged perceptron with rule="pa1" and 10 passes
    features : the featurizer before it: `TextFeatures`, `TableFeatures`, or None for none. By default "auto", as `train`
        does: none for arrays and sparse matrices, and table features for data frames and for lists of texts, which are a
        table of one column, "text". Of a fitted classifier, "auto" is None.
    facts : JSON values to store with the model: the data, their schema, the settings

    Attributes
    ----------
    estimator, features : the fitted parts after `fit`, the parameters before
    facts : what `train` tells of the data and the settings
    summary : the figures of the training, after `train`; `print(model.summary)` shows what the command prints
    evaluation : the `Evaluation` on the held-out rows, after `train` with `holdout` or `validate`
    cross_validation : the out-of-fold predictions, after `train(folds=…)`
    classes_, n_features_in_, feature_names_in_ : as in scikit-learn; the features are the columns that came in
    threshold_ : of two classes, the score of `classes_[1]` above which it is predicted, or None for 0; it can be set

    Examples
    --------
    >>> from separatrix import Model, Perceptron, TextFeatures
    >>> texts, labels = ["free money", "see you at noon"], ["spam", "ham"]
    >>> Model().fit(texts, labels).predict(["free entry"]).tolist()
    ['spam']

    Of parts that are fitted already:

    >>> features = TextFeatures(n_features=1024).fit(texts)
    >>> model = Model(Perceptron(random_state=0).fit(features.transform(texts), labels), features)
    >>> model.predict(["free entry"]).tolist()
    ['spam']
    """

    summary: Any = None
    evaluation: Any = None
    cross_validation: Any = None
    arrays: Mapping[str, Array] = {}
    """Arrays that were stored beside the model."""
    version, sha256 = __version__, ""
    """The version that wrote the file, and its checksum."""

    def __init__(
        self, estimator: Any = None, features: Featurizer | str | None = AUTO, facts: dict[str, Any] | None = None
    ) -> None:
        self._parameters: dict[str, Any] = {"estimator": estimator, "features": features}
        self._fitted: dict[str, Any] = {}
        self._facts: dict[str, Any] = {} if facts is None else facts

    @property
    def estimator(self) -> Any:
        """The classifier: the fitted one where there is one."""
        return (self._fitted or self._parameters)["estimator"]

    @estimator.setter
    def estimator(self, estimator: Any) -> None:
        self.set_params(estimator=estimator)

    @property
    def features(self) -> Any:
        """The featurizer before the classifier, the fitted one where there is one, or None."""
        features = (self._fitted or self._parameters)["features"]
        return None if isinstance(features, str) else features

    @features.setter
    def features(self, features: Any) -> None:
        self.set_params(features=features)

    @property
    def facts(self) -> dict[str, Any]:
        """What is known of the training, as JSON values."""
        return self._facts

    @facts.setter
    def facts(self, facts: dict[str, Any]) -> None:
        self._facts = facts

    # scikit-learn's estimator protocol.

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Return the two parts as they were given and, where `deep`, their parameters, such as "estimator__C"."""
        parameters = dict(self._parameters)
        if deep:
            for name in self._parameters:
                part = self._part(name)
                if hasattr(part, "get_params"):
                    parameters |= {f"{name}__{key}": value for key, value in part.get_params().items()}
        return parameters

    def set_params(self, **parameters: Any) -> Self:
        """Replace a part, or set a parameter of one; a fitted model stays as it is until it is fitted again."""
        for key, value in parameters.items():
            name, _, nested = key.partition("__")
            if key == "facts":
                self._facts = value
                continue
            if name not in self._parameters:
                near = did_you_mean(f"estimator__{key}", self.get_params())
                raise ValueError(f"{name!r} is not a parameter of Model; its parameters are estimator and features{near}")
            if nested:
                part = self._part(name)
                if part is None:
                    raise ValueError(f"{key}: this model has no {name}")
                part.set_params(**{nested: value})
                self._parameters[name] = part
            else:
                self._parameters[name] = value
                self._fitted = {}
        return self

    def _part(self, name: str) -> Any:
        """Return a part as it was given, or the one that stands for the default."""
        part = self._parameters[name]
        if name == "estimator" and part is None:
            return hook("default_learner")()
        return hook("default_features")() if name == "features" and isinstance(part, str) else part

    def fit(self, X: Any, y: Any, sample_weight: Any = None, **settings: Any) -> Self:
        """Learn the features of X, if there are any to learn, and the classifier; the parameters stay as they are.

        Rows of a table without a label are left out, with a warning, as `train` does.

        Parameters
        ----------
        X : data frame of pandas or polars, pyarrow table, dict of columns, list of texts, array or CSR matrix
        y : the labels
        sample_weight : the weight of each row, which multiplies its corrections
        settings : others of the classifier's `fit`, such as X_val and y_val
        """
        settings |= {} if sample_weight is None else {"sample_weight": sample_weight}
        features = self._parameters["features"]
        if isinstance(features, str) and features != AUTO:
            raise ValueError(f"features={features!r} must be 'auto', None, or one of TextFeatures and TableFeatures")
        estimator = self._to_fit("estimator")
        if isinstance(features, str) and hasattr(estimator, "predict_single"):
            features = None  # a tagger makes features of its tokens itself
        if isinstance(features, str) or _is_table(features):
            fitted, facts = hook("fit_model")(estimator, unfitted(features), X, y, **settings)
        else:
            if features is not None:
                features = self._to_fit("features")
                X = features.fit_transform(X, y) if hasattr(features, "fit_transform") else features.fit(X, y).transform(X)
                if settings.get("X_val") is not None:
                    settings["X_val"] = features.transform(settings["X_val"])
            fitted, facts = {"estimator": estimator.fit(X, y, **settings), "features": features}, {}
        self._fitted, self._facts = fitted, facts
        for name in ("summary", "evaluation", "cross_validation", "arrays", "version", "sha256"):
            self.__dict__.pop(name, None)
        return self

    def _to_fit(self, name: str) -> Any:
        """Return a part to fit: a new one with its parameters or, for a warm start, the one that was fitted before."""
        part = self._part(name)
        if getattr(part, "warm_start", False) and self._fitted:
            return self._fitted[name].set_params(**part.get_params(deep=False))
        return unfitted(part)

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """Return the accuracy: the share of rows, or of their weights, whose label is predicted; of a tagger, of tokens."""
        if self.estimator is not None and self.estimator.public_name() == "SequencePerceptron":
            self.check_fitted()
            return float(self.estimator.score(X, y, sample_weight))
        predicted, labels = self.predict(X), as_labels(y)
        if len(predicted) != len(labels):
            raise ValueError(f"X and y have inconsistent numbers of samples: [{len(predicted)}, {len(labels)}]")
        return float(np.average(predicted == labels, weights=sample_weight))

    def is_fitted(self) -> bool:
        """Tell whether there is anything to predict with."""
        estimator = self.estimator
        return estimator is not None and bool(estimator.is_fitted())

    @property
    def classes_(self) -> Array:
        """The classes of the classifier, sorted."""
        self.check_fitted()
        classes: Array = self.estimator.classes_
        return classes

    @property
    def threshold_(self) -> float | None:
        """Of two classes, the score of `classes_[1]` above which it is predicted; None stands for 0."""
        self.check_fitted()
        threshold: float | None = self.estimator.threshold_
        return threshold

    @threshold_.setter
    def threshold_(self, threshold: float | None) -> None:
        self.check_fitted()
        self.estimator.threshold_ = threshold

    @property
    def n_features_in_(self) -> int:
        """How many columns came in."""
        return int(self._reader().n_features_in_)

    @property
    def feature_names_in_(self) -> Array:
        """The names of the columns that came in, where they had names."""
        names: Array = self._reader().feature_names_in_
        return names

    def _reader(self) -> Any:
        """Return the part that reads the columns."""
        self.check_fitted()
        return self.estimator if self.features is None else self.features

    def check_fitted(self) -> None:
        """Raise before the first fit."""
        if not self.is_fitted():
            raise self._part("estimator").not_fitted_error("this Model is not fitted yet: call fit first")

    def __sklearn_is_fitted__(self) -> bool:
        """Tell scikit-learn whether there is anything to predict with."""
        return self.is_fitted()

    def __sklearn_tags__(self) -> Any:
        """Tell scikit-learn, the only caller, what the model takes."""
        from sklearn.utils import ClassifierTags, InputTags, Tags, TargetTags, TransformerTags

        features = self._parameters["features"]
        read = InputTags(sparse=features is None or features == AUTO)
        if features is not None:
            read.string = read.categorical = True
            read.allow_nan = features != AUTO
        return Tags(
            estimator_type="classifier",
            target_tags=TargetTags(required=True),
            classifier_tags=ClassifierTags(),
            transformer_tags=TransformerTags(),
            input_tags=read,
        )

    # Predictions.

    def transform(self, X: Any) -> Any:
        """Return what the classifier sees of X: its features, or the numbers of X where there is no featurizer."""
        X = self._seen(X)
        if self.features is not None:
            return X
        rows = self.estimator.read_rows(X)
        rows.survey()
        return rows.source

    def fit_transform(self, X: Any, y: Any, **settings: Any) -> Any:
        """Fit, and return what the classifier sees of X."""
        return self.fit(X, y, **settings).transform(X)

    def _seen(self, X: Any) -> Any:
        """Return what the classifier is given: the features, or X itself where there is no featurizer."""
        self.check_fitted()
        if self.features is None:
            return X
        return self.features.matrix(X) if _is_table(self.features) else self.features.transform(X)

    def predict(self, X: Any) -> Array:
        """Return the predicted labels of the rows of a table, of texts, or of X."""
        X = self._seen(X)
        labels: Array = self.estimator.predict(X)
        return labels

    def decision_function(self, X: Any) -> Floats:
        """Return the scores of the rows."""
        X = self._seen(X)
        scores: Floats = self.estimator.decision_function(X)
        return scores

    @available_if(_require_probabilities)
    def predict_proba(self, X: Any) -> Floats:
        """Return the probability of each class, where the classifier was calibrated."""
        X = self._seen(X)
        shares: Floats = self.estimator.predict_proba(X)
        return shares

    def importances(self, n: int = 20, X: Any = None) -> Importances:
        """Return the n largest weights by the names of their features, of each class if there are more than two.

        With rows, texts or a table as X, features are ranked by how much their parts of the score vary over these rows.
        """
        largest: Importances = hook("importances")(self, n, X)
        return largest

    def info(self) -> dict[str, Any]:
        """Return what there is to know at a glance."""
        self.check_fitted()
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
        if hasattr(estimator, "run_"):
            summary["resumable"] = estimator.run_.resumable
        if ledger is not None:
            summary["ledger"] = {
                "mistakes": len(ledger),
                "left_out": ledger.absent,
                "rows_stored": ledger.stored is not None,
            }
        return summary | {"facts": self.facts, "version": self.version, "sha256": self.sha256}

    def __repr__(self) -> str:
        if self.estimator is None:
            return "<Model: the recipe of train, not fitted>"
        before = "" if self.features is None else f"{self.features.public_name()} → "
        if not self.is_fitted():
            return f"<Model: {before}{self.estimator.public_name()}, not fitted>"
        counts = f"{counted(self.estimator.n_features_in_, 'feature')}, {counted(len(self.estimator.classes_), 'class')}"
        return f"<Model: {before}{self.estimator.public_name()}, {counts}>"
