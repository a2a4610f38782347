"""What a fitted structured perceptron can do: tag, show its weights, replay its ledger."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from separatrix.engine.parameters import NotFittedError, Parameterized
from separatrix.engine.parcel import Parcel, State, StateError, flag, whole, word
from separatrix.engine.rows import Array, Floats, Ints
from separatrix.kernels.threads import in_order, threads_of
from separatrix.learners.inputs import example_weight
from separatrix.sequences import inputs
from separatrix.sequences.encoded import Encoded, PathWeights
from separatrix.sequences.ledger import SequenceLedger
from separatrix.sequences.run import SequenceRun, best_paths
from separatrix.sequences.templates import TemplateFeatures
from separatrix.sequences.tokens import Paths

if TYPE_CHECKING:
    from separatrix.sequences.bounds import SequenceBounds
    from separatrix.sequences.explaining import TokenExplanation
    from separatrix.sequences.tracing import SequenceTrace

SENTENCE = 1 << 15
"""To tag one sentence costs about as much as to read so many bytes."""


class SequenceTagger(Parameterized):
    """The fitted state of a `SequencePerceptron`, and all that is done with it but learning."""

    rule: str
    C: float
    scheme: str | None
    averaged: bool
    n_jobs: int | None
    not_fitted_error: type[Exception] = NotFittedError
    classes_: Array
    run_: SequenceRun
    features_: inputs.Features
    mistakes_per_pass_: list[int]
    validation_scores_: list[float]
    converged_: bool
    n_iter_: int
    shard_mistakes_: Ints
    """Of a training on shards: the mistakes of each pass and shard; `mix_` is how weights were mixed."""
    mix_: str

    def is_fitted(self) -> bool:
        """Tell whether there is anything to predict with."""
        return hasattr(self, "run_")

    def _check_fitted(self) -> None:
        if not self.is_fitted():
            raise self.not_fitted_error(f"this {self.public_name()} is not fitted yet: call fit first")

    def _forget_weights(self) -> None:
        self.__dict__.pop("_predicting", None)

    def weights(self) -> tuple[Floats, Floats]:
        """Return the weights that predict: (n_features, n_classes) of features, and those of transitions.

        The latter have one row and column more than there are tags: the last row is the start, the last column the end.
        """
        return self.path_weights().dense()

    def path_weights(self) -> PathWeights:
        """Return the weights that predict as the kernels read them."""
        self._check_fitted()
        kept: tuple[bool, PathWeights] | None = self.__dict__.get("_predicting")
        if kept is None or kept[0] != self.averaged:
            kept = self._predicting = (self.averaged, self.run_.weights(self.averaged))
        return kept[1]

    @property
    def coef_(self) -> Floats:
        """The weights of the features, a row for each tag."""
        return self._published("coef_").dense()[0].T

    @property
    def transitions_(self) -> Floats:
        """The weights of two tags in a row: from, to."""
        return self._published("transitions_").links[:-1, :-1]

    @property
    def start_(self) -> Floats:
        """The weight of each tag at the start."""
        return self._published("start_").links[-1, :-1]

    @property
    def end_(self) -> Floats:
        """The weight of each tag at the end."""
        return self._published("end_").links[:-1, -1]

    @property
    def transition_features_(self) -> dict[tuple[Any, Any], float]:
        """The weights of two tags in a row that are not 0, by their names, as sklearn-crfsuite has them."""
        weights = self._published("transition_features_").links[:-1, :-1]
        return self._named(self.classes_.tolist(), weights)

    @property
    def state_features_(self) -> dict[tuple[str, Any], float]:
        """The weights of features and tags that are not 0, by their names; of templates only hashes are kept, no names."""
        weights = self._published("state_features_")
        if isinstance(self.features_, TemplateFeatures):
            raise AttributeError(
                "features of templates are stored without names; explain(sequence, token) names those of a token"
            )
        return self._named(self.features_.names(), weights.dense()[0])

    @property
    def ledger_(self) -> SequenceLedger:
        """The mistakes, in order."""
        if not self.is_fitted():
            raise AttributeError(f"this {self.public_name()} has no ledger_ before it is fitted")
        return self.run_.ledger

    @property
    def n_mistakes_(self) -> int:
        """How many mistakes were made."""
        return self.ledger_.total

    @property
    def n_features_in_(self) -> int:
        """How many features have weights."""
        if not self.is_fitted():
            raise AttributeError(f"this {self.public_name()} has no n_features_in_ before it is fitted")
        return self.run_.n_features

    def _named(self, names: list[Any], weights: Floats) -> dict[tuple[Any, Any], float]:
        tags = self.classes_.tolist()
        places = zip(*np.nonzero(weights), strict=True)
        return {(names[i], tags[k]): float(weights[i, k]) for i, k in places}

    def _published(self, name: str) -> PathWeights:
        if not self.is_fitted():
            raise AttributeError(f"this {self.public_name()} has no {name} before it is fitted")
        return self.path_weights()

    def encode(self, X: Any) -> Encoded:
        """Return sequences as the model sees them; features that it does not know are left out."""
        self._check_fitted()
        kind = inputs.kind_of(X)
        if kind not in (None, self.features_.kind):
            raise ValueError(f"X has {inputs.KINDS[kind]}, but the model was trained on {inputs.KINDS[self.features_.kind]}")
        if isinstance(self.features_, TemplateFeatures):
            return self.features_.encode(X, False, threads=threads_of(self.n_jobs, len(X) * SENTENCE))
        return self.features_.encode(X, False)

    def checked(self, encoded: Encoded) -> Encoded:
        """Return these sequences; raise where the ledger's corrections of them do not give the weights."""
        if not self.run_.follows_from(encoded):
            raise ValueError(
                "X does not have the sequences of the training: the ledger's corrections on these do not give the weights"
            )
        return encoded

    def predict(self, X: Any) -> list[list[Any]]:
        """Return the best path of each sequence, as a list of tags."""
        encoded = self.encode(X)
        codes = self.predict_codes(encoded)
        tags, starts = self.classes_[codes].tolist(), encoded.starts.tolist()
        return Paths(tags[begin:end] for begin, end in pairwise(starts))

    def predict_codes(self, encoded: Encoded) -> Array:
        """Return the place among `classes_` of the tag of each token, one sequence after the other."""
        threads = threads_of(self.n_jobs, len(encoded) * SENTENCE)
        bounds = np.searchsorted(encoded.starts, np.linspace(0, int(encoded.starts[-1]), 4 * threads + 1)[1:-1]).tolist()
        bounds = sorted({0, *(bounds if threads > 1 else ()), len(encoded)})
        weights, forbidden = self.path_weights(), self.run_.forbidden
        parts = in_order(lambda part: best_paths(encoded, weights, forbidden, *part), pairwise(bounds), threads)
        return np.concatenate([np.empty(0, np.int32), *parts])

    def predict_single(self, sequence: Any) -> list[Any]:
        """Return the best path of one sequence."""
        return self.predict([sequence])[0]

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """Return the share of tokens, or of their sequences' weights, whose tag is predicted."""
        predicted = self.predict(X)
        inputs.check_lengths(y, [len(path) for path in predicted])
        right = np.array([a == b for path, tags in zip(predicted, y, strict=True) for a, b in zip(path, tags, strict=True)])
        weight = example_weight(sample_weight, len(predicted))
        each = np.repeat(weight, [len(path) for path in predicted]) if weight.size else None
        return float(np.average(right, weights=each)) if right.size else 1.0

    def replay(self, X: Any = None, mistakes: int | None = None) -> tuple[Floats, Floats]:
        """Return the weights that the ledger's corrections add up to, as `weights` has them.

        Parameters
        ----------
        X : the sequences of the training; None: those that `record=True` stored
        mistakes : None: the weights that predict, bit for bit; a number: the last weights after so many mistakes
        """
        encoded = None if X is None else self.encode(X)
        averaged = self.averaged and mistakes is None
        replayed: tuple[Floats, Floats] = self.ledger_.replay(
            encoded, self.n_features_in_, averaged=averaged, mistakes=mistakes
        )
        return replayed

    def bounds(self, X: Any, y: Any) -> SequenceBounds:
        """Return the bound on the mistakes of the training, by the theorem that applies; X and y are those of the fit."""
        from separatrix.sequences.bounds import sequence_bounds

        encoded = self.encode(X)
        tags = inputs.read_tags(y, encoded)
        if late := inputs.late_tags(self.classes_, tags.names):
            raise ValueError(f"y has tags that the model never met: {np.array(late[:5]).tolist()}")
        return sequence_bounds(self, encoded, tags.among(self.classes_))

    def explain(self, sequence: Any, token: int, *, against: Any = None, X: Any = None, n: int = 10) -> TokenExplanation:
        """Return why a token of a sequence has its tag, and not another.

        Parameters
        ----------
        token : its place in the sequence, from 0
        against : the tag to compare with; None: the one that would cost the path least
        X : the sequences of the training, to find the mistakes behind the lead; None: those that `record=True` stored
        n : how many terms and mistakes to list
        """
        from separatrix.sequences.explaining import explain_token

        return explain_token(self, sequence, token, against, None if X is None else self.checked(self.encode(X)), n)

    def trace(self, X: Any, mistake: int | None = None) -> SequenceTrace:
        """Return one mistake of the training on X, by its number from 1: the trellis, both paths, and what changed.

        None is the last mistake. `print` shows the trace, and its `to_html` is a page.
        """
        from separatrix.sequences.tracing import trace_mistake

        self._check_fitted()
        return trace_mistake(self, X, mistake)

    # Saving.

    def pack(self, parcel: Parcel, at: str) -> State:
        """Put the fitted tagger into a parcel."""
        parcel.format = 3
        parcel.put(f"{at}.mistakes_per_pass_", np.array(self.mistakes_per_pass_, np.int64))
        parcel.put(f"{at}.validation_scores_", np.array(self.validation_scores_, np.float64))
        # Set since the fit, these are of the next one: what the file holds learned by those of the run.
        learned_by = {"rule": self.run_.rule, "C": self.run_.C, "scheme": self.run_.scheme}
        parameters = self.get_params()
        parameters |= {name: value for name, value in learned_by.items() if value != parameters[name]}
        return {
            "parameters": {name: parcel.put_value(f"{at}.{name}", value) for name, value in parameters.items()},
            "n_features": self.n_features_in_,
            "classes": parcel.put_labels(f"{at}.classes", self.classes_),
            "tokens": self.features_.pack(parcel, f"{at}.features"),
            "runs": [self.run_.pack(parcel, f"{at}.run", self.averaged)],
            "converged": bool(self.converged_),
        }

    @classmethod
    def unpack(cls, state: State, parcel: Parcel, at: str) -> Self:
        """Return the tagger that a parcel holds."""
        model = cls(**{name: parcel.take_value(f"{at}.{name}", value) for name, value in state["parameters"].items()})
        model.check_parameters()
        model.classes_ = parcel.take_labels(f"{at}.classes", state["classes"])
        kind = word(state["tokens"], "kind", inputs.FEATURES)
        model.features_ = inputs.FEATURES[kind].unpack(state["tokens"], parcel, f"{at}.features")
        n_features = whole(state, "n_features", 0, 2**31 - 1)
        if model.features_.n != n_features:
            raise StateError(f"{model.features_.n:,} features have names, and {n_features:,} have weights")
        model.run_ = model.new_run(model.classes_, 0)
        (run,) = state["runs"]
        model.run_.unpack(run, parcel, f"{at}.run", n_features, bool(model.averaged))
        model.mistakes_per_pass_ = parcel.take(f"{at}.mistakes_per_pass_", "i8", (-1,), low=0).tolist()
        model.validation_scores_ = parcel.take(f"{at}.validation_scores_", "f8", (-1,)).tolist()
        model.n_iter_, model.converged_ = len(model.mistakes_per_pass_), flag(state, "converged")
        return model

    def new_run(self, classes: Array, n_features: int) -> SequenceRun:
        """Return a run that has learned nothing, with room for the weights of so many features."""
        run = SequenceRun(classes, self.rule, float(self.C), self.scheme)
        run.resize(n_features)
        return run

    # scikit-learn.

    def __sklearn_is_fitted__(self) -> bool:
        """Tell scikit-learn whether there is anything to predict with."""
        return self.is_fitted()

    def __sklearn_tags__(self) -> Any:
        """Tell scikit-learn, the only caller, that this takes sequences and not rows."""
        from sklearn.utils import InputTags, Tags, TargetTags

        read = InputTags(two_d_array=False, string=True)
        return Tags(estimator_type=None, target_tags=TargetTags(required=True), input_tags=read)

    def __repr__(self) -> str:
        defaults = type(self)().get_params()
        changed = [f"{name}={value!r}" for name, value in self.get_params().items() if value != defaults[name]]
        return f"{self.public_name()}({', '.join(changed)})"
