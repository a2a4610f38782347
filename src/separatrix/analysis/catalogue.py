"""The map of classifiers: which view each takes and how it learns (L1 1, L2 1, 6 and 11, L5 1).

A generative model describes how the examples of each class are distributed, and is learned by counts or averages in one
pass. A discriminative model describes the label given the example. A discriminant function describes only the boundary, and
is learned from mistakes or by widening the margin. Each model is an entry of the table `MAP`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple, Protocol, Self

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis as LDA  # noqa: N817
from sklearn.discriminant_analysis import QuadraticDiscriminantAnalysis as QDA  # noqa: N817
from sklearn.linear_model import LogisticRegression
from sklearn.naive_bayes import GaussianNB, MultinomialNB
from sklearn.neighbors import KNeighborsClassifier
from sklearn.svm import LinearSVC
from sklearn.tree import DecisionTreeClassifier

from separatrix.analysis.model_features import Form
from separatrix.engine.rows import Array, Floats
from separatrix.estimators.fisher import FisherDiscriminant
from separatrix.estimators.kernel_perceptron import KernelPerceptron
from separatrix.estimators.linear import AveragedPerceptron, PassiveAggressive, Perceptron, PocketPerceptron, VotedPerceptron
from separatrix.estimators.max_margin import MaxMarginClassifier


class NaiveBayes(ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """Naive Bayes of mixed features: the first `n_numbers` are Gaussian given the class, the others are counts."""

    def __init__(self, n_numbers: int = 0) -> None:
        self.n_numbers = n_numbers

    def fit(self, X: Any, y: Array) -> NaiveBayes:
        """Compute the counts, means and variances of each class."""
        self.parts_ = [model.fit(features, y) for model, features in self._split(X, GaussianNB(), MultinomialNB())]
        self.classes_ = self.parts_[0].classes_
        self.log_prior_: Floats = np.log(np.bincount(y)[self.classes_] / len(y))
        return self

    def predict(self, X: Any) -> Array:
        """Return the classes with the highest p(x | y) p(y)."""
        parts = [model.predict_joint_log_proba(features) for model, features in self._split(X, *self.parts_)]
        winners: Array = self.classes_[np.argmax(sum(parts) - (len(parts) - 1) * self.log_prior_, axis=1)]
        return winners

    def _split(self, X: Any, *models: Any) -> Iterator[tuple[Any, Any]]:
        """Yield (model, features) for each kind of features that is present."""
        numbers = X[:, : self.n_numbers]
        kinds = [numbers.toarray() if hasattr(numbers, "toarray") else numbers, X[:, self.n_numbers :]]
        present = [features for features in kinds if features.shape[1]]
        if len(models) > len(present):
            models = tuple(model for model, features in zip(models, kinds, strict=True) if features.shape[1])
        yield from zip(models, present, strict=True)


class Setting(NamedTuple):
    """What a model may depend on: the seed, and how many of the features are numbers, not counts."""

    seed: int
    n_numbers: int


class Classifier(Protocol):
    """What cross-validation needs of a model."""

    def fit(self, X: Any, y: Any) -> Any:
        """Learn from examples."""
        ...

    def predict(self, X: Any) -> Array:
        """Return the labels of examples."""
        ...


class _HasWeights(Protocol):
    coef_: Floats
    intercept_: Floats


class _NearestNeighbours(KNeighborsClassifier):  # type: ignore[misc]
    """k nearest neighbours; `size_` is how many numbers it remembers."""

    def fit(self, X: Any, y: Any) -> Self:
        """Remember the examples."""
        self.size_ = int(X.size)
        super().fit(X, y)
        return self


def _weights(model: _HasWeights) -> int:
    return int(np.size(model.coef_) + np.size(model.intercept_))


def _naive_bayes_size(model: NaiveBayes) -> int:
    sizes = [m.theta_.size + m.var_.size if hasattr(m, "theta_") else m.feature_log_prob_.size for m in model.parts_]
    return int(sum(sizes) + len(model.classes_) - 1)


def _gaussian_size(model: LDA | QDA) -> int:
    K, d = model.means_.shape
    covariances = K if isinstance(model, QDA) else 1
    return int(K * d + covariances * d * (d + 1) // 2 + K - 1)


def _tree_size(model: DecisionTreeClassifier) -> int:
    leaves = model.get_n_leaves()
    return int(2 * (model.tree_.node_count - leaves) + leaves)


def _voters_size(model: VotedPerceptron) -> int:
    rows, _ = model.ledger_.mistaken_rows()
    return int(rows.source.size + len(model.ledger_))


class View(NamedTuple):
    """An entry of the map: a model, the view it takes, how it learns, and the form of its features.

    `size` counts the numbers that a fitted model predicts with. A `dense` model cannot read sparse matrices; a model that
    `remembers` compares test examples with training examples.
    """

    model: str
    view: str
    learns: str
    make: Callable[[Setting], Classifier]
    size: Callable[[Any], int] = _weights
    form: Form = Form.SCALED
    dense: bool = False
    remembers: bool = False


GENERATIVE, DISCRIMINATIVE, DISCRIMINANT = "generative", "discriminative", "discriminant function"

MAP = (
    View(
        "naive Bayes", GENERATIVE, "one pass, counts", lambda s: NaiveBayes(s.n_numbers), _naive_bayes_size, Form.AS_THEY_ARE
    ),
    View("LDA", GENERATIVE, "one pass, moments", lambda s: LDA(), _gaussian_size, Form.FULL_RANK, dense=True),
    View("QDA", GENERATIVE, "one pass, moments", lambda s: QDA(reg_param=0.01), _gaussian_size, Form.FULL_RANK, dense=True),
    View("logistic regression", DISCRIMINATIVE, "gradient", lambda s: LogisticRegression(max_iter=1000)),
    View("k-NN", DISCRIMINATIVE, "memory", lambda s: _NearestNeighbours(), lambda m: m.size_, remembers=True),
    View(
        "decision tree",
        DISCRIMINATIVE,
        "splits",
        lambda s: DecisionTreeClassifier(random_state=s.seed),
        _tree_size,
        Form.AS_THEY_ARE,
    ),
    View("FisherDiscriminant", DISCRIMINANT, "one pass, moments", lambda s: FisherDiscriminant(), form=Form.FULL_RANK),
    View("linear SVM", DISCRIMINANT, "margin, squared", lambda s: LinearSVC(random_state=s.seed)),
    View("MaxMarginClassifier", DISCRIMINANT, "margin", lambda s: MaxMarginClassifier(random_state=s.seed)),
    View("Perceptron", DISCRIMINANT, "mistakes", lambda s: Perceptron(random_state=s.seed)),
    View("AveragedPerceptron", DISCRIMINANT, "mistakes, average", lambda s: AveragedPerceptron(random_state=s.seed)),
    View(
        "VotedPerceptron",
        DISCRIMINANT,
        "mistakes, votes",
        lambda s: VotedPerceptron(random_state=s.seed),
        _voters_size,
        remembers=True,
    ),
    View("PocketPerceptron", DISCRIMINANT, "mistakes, pocket", lambda s: PocketPerceptron(random_state=s.seed)),
    View(
        "KernelPerceptron",
        DISCRIMINANT,
        "mistakes, kernel",
        lambda s: KernelPerceptron(kernel="rbf", predict_with="averaged", random_state=s.seed),
        lambda m: m.support_.size * m.n_features_in_ + m.dual_coef_.size,
        remembers=True,
    ),
    View("PassiveAggressive", DISCRIMINANT, "mistakes, loss", lambda s: PassiveAggressive(random_state=s.seed)),
    View(
        "averaged PA-I",
        DISCRIMINANT,
        "loss, average",
        lambda s: AveragedPerceptron(rule="pa1", C="auto", random_state=s.seed),
    ),
    View(
        "averaged AROW",
        DISCRIMINANT,
        "loss, variances",
        lambda s: AveragedPerceptron(rule="arow", random_state=s.seed),
    ),
    View(
        "separatrix train",
        DISCRIMINANT,
        "loss, average",
        lambda s: AveragedPerceptron(rule="pa1", C=1.0, max_iter=10, random_state=s.seed),
        form=Form.AS_IN_TRAIN,
    ),
)
"""All models; the last is what `separatrix train` learns unless told otherwise, on its features."""


def chosen_views(models: str | Sequence[str] | None) -> list[View]:
    """Return the entries of the map with these names; capitals, spaces and hyphens do not matter."""
    if models is None:
        return list(MAP)
    views = {_plain(view.model): view for view in MAP}
    names = models.split(",") if isinstance(models, str) else list(models)
    if strange := [name for name in names if not isinstance(name, str)]:
        raise TypeError(f"models takes names, such as {MAP[0].model!r}, not {strange[0]!r}")
    unknown = [name for name in names if _plain(name) not in views]
    if unknown or not names:
        problem = f"there is no model {unknown[0]!r}" if unknown else "no model is named"
        raise ValueError(f"{problem}; there are {', '.join(view.model for view in MAP)}")
    return [views[name] for name in dict.fromkeys(_plain(name) for name in names)]


def _plain(name: str) -> str:
    return "".join(letter for letter in name.lower() if letter.isalnum())
