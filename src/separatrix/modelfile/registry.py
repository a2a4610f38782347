"""Which classes a model file can hold, and where they live.

A file stores the public name of a class, never a module's path. A linear learner and a featurizer exist twice: as a plain
class, which needs no scikit-learn, and as the public one with scikit-learn's contract. Both pack to the same bytes.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any, NamedTuple

from separatrix.engine.parcel import Parcel, State, word
from separatrix.modelfile.errors import ModelFileError

if TYPE_CHECKING:
    from separatrix.engine.protocols import Featurizer, Learner


class Homes(NamedTuple):
    """Where a class lives: the public one, and the plain one where there is one, as "module:name"."""

    public: str
    plain: str

    def resolve(self, plain: bool) -> type[Any]:
        """Return the plain or the public class, importing its module."""
        module, _, name = (self.plain if plain else self.public).partition(":")
        class_: type[Any] = getattr(import_module(f"separatrix.{module}"), name)
        return class_


def _only(home: str) -> Homes:
    return Homes(home, home)


CLASSIFIERS = {
    "Perceptron": Homes("estimators.linear:Perceptron", "learners.linear:LastLearner"),
    "AveragedPerceptron": Homes("estimators.linear:AveragedPerceptron", "learners.linear:AveragedLearner"),
    "VotedPerceptron": Homes("estimators.linear:VotedPerceptron", "learners.linear:VotedLearner"),
    "PocketPerceptron": Homes("estimators.linear:PocketPerceptron", "learners.linear:PocketLearner"),
    "PassiveAggressive": Homes("estimators.linear:PassiveAggressive", "learners.linear:PassiveAggressiveLearner"),
    "KernelPerceptron": _only("estimators.kernel_perceptron:KernelPerceptron"),
    "FisherDiscriminant": _only("estimators.fisher:FisherDiscriminant"),
    "MaxMarginClassifier": _only("estimators.max_margin:MaxMarginClassifier"),
    "SequencePerceptron": _only("sequences.perceptron:SequencePerceptron"),
}
FEATURIZERS = {
    "TableFeatures": Homes("estimators.featurizers:TableFeatures", "features.table:TableFeaturizer"),
    "TextFeatures": Homes("estimators.featurizers:TextFeatures", "features.text:TextFeaturizer"),
}


def name_of(thing: Any, homes: dict[str, Homes]) -> str:
    """Return the name under which an object is stored; raise for one that no model file can hold."""
    name = getattr(thing, "saved_as", "") or type(thing).__name__
    if name not in homes or not any(type(thing) is homes[name].resolve(plain) for plain in (True, False)):
        raise ModelFileError(f"a {type(thing).__name__} cannot be stored in a model file; these can: {', '.join(homes)}")
    return name


def pack_classifier(classifier: Learner, parcel: Parcel, at: str) -> State:
    """Put a fitted classifier into a parcel."""
    name = name_of(classifier, CLASSIFIERS)
    if not classifier.is_fitted():
        raise classifier.not_fitted_error(f"this {name} is not fitted yet: call fit first")
    return {"class": name, **classifier.pack(parcel, at)}


def unpack_classifier(state: State, parcel: Parcel, at: str, plain: bool) -> Any:
    """Return the classifier that a parcel holds."""
    return CLASSIFIERS[word(state, "class", CLASSIFIERS)].resolve(plain).unpack(state, parcel, at)


def pack_featurizer(featurizer: Featurizer, parcel: Parcel, at: str) -> State:
    """Put a fitted featurizer into a parcel."""
    name = name_of(featurizer, FEATURIZERS)
    state, arrays = featurizer.get_state()
    for key, array in arrays.items():
        parcel.put(f"{at}.{key}", array)
    return {"class": name, "state": state, "arrays": sorted(arrays)}


def unpack_featurizer(state: State, parcel: Parcel, at: str, plain: bool) -> Any:
    """Return the featurizer that a parcel holds."""
    featurizer = FEATURIZERS[word(state, "class", FEATURIZERS)].resolve(plain)
    missing = [name for name in state["arrays"] if f"{at}.{name}" not in parcel.arrays]
    if missing:
        raise ModelFileError(f"{at}.{missing[0]} is missing")
    arrays = {name: parcel.arrays[f"{at}.{name}"] for name in state["arrays"]}
    native = {name: array.astype(array.dtype.newbyteorder("="), copy=False) for name, array in arrays.items()}
    return featurizer.from_state(state["state"], native)
