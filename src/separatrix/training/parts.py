"""What the options of a training mean: the learner and the features, as plain classes or as the public ones."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from separatrix.data.errors import DataError
from separatrix.data.reading import Source
from separatrix.files.ingest import roles_for
from separatrix.modelfile.registry import CLASSIFIERS, FEATURIZERS
from separatrix.training.options import TrainOptions, ngram_range, number_or_auto

if TYPE_CHECKING:
    from separatrix.features.table import TableFeaturizer

CLASS_OF = {
    "averaged": "AveragedPerceptron",
    "last": "Perceptron",
    "voted": "VotedPerceptron",
    "pocket": "PocketPerceptron",
}
DEFAULTS = TrainOptions("")
OF_COLUMNS = ("bins", "ngrams", "char_ngrams", "tf", "idf")
"""Options of features, which numbers that are taken as they are do not have."""


def learner_of(options: TrainOptions, plain: bool = False) -> Any:
    """Return the learner that the options describe, not fitted; a `plain` one needs no scikit-learn."""
    if options.average_from > 1 and options.learner != "averaged":
        raise DataError(f"average_from= supports the learner averaged, not {options.learner}")
    if options.average_from > options.passes:
        raise DataError(f"average_from={options.average_from} is after the last of {options.passes} passes")
    averaging: dict[str, Any] = {"average_from": options.average_from} if options.learner == "averaged" else {}
    return CLASSIFIERS[CLASS_OF[options.learner]].resolve(plain)(
        rule=options.rule,
        **averaging,
        C=number_or_auto(options.C),
        margin=options.margin,
        tie=options.tie,
        multi_class=options.multi_class,
        order=options.order,
        fit_intercept=options.bias,
        max_iter=options.passes,
        early_stopping=options.early_stopping,
        n_iter_no_change=options.patience,
        class_weight=options.class_weight,
        calibrate="sigmoid" if options.calibrate else None,
        random_state=options.seed,
        record=options.record,
    )


def featurizer_of(options: TrainOptions, roles: dict[str, str], plain: bool = False) -> TableFeaturizer:
    """Return the features that the options describe, not learned."""
    if options.bins and options.numbers not in (None, "bins"):
        raise DataError(f"bins= cannot be combined with numbers={options.numbers!r}")
    table, text = (FEATURIZERS[name].resolve(plain) for name in ("TableFeatures", "TextFeatures"))
    features: TableFeaturizer = table(
        roles=roles,
        numbers=options.numbers or "bins",
        n_bins=options.bins or "auto",
        text=text(n_features=1 << options.bits, **_text_parameters(options)),
    )
    return features


def _text_parameters(options: TrainOptions) -> dict[str, Any]:
    """Return the parameters of text features that the options name."""
    if options.ngrams and options.char_ngrams:
        raise DataError("ngrams= cannot be combined with char_ngrams=")
    parameters: dict[str, Any] = {}
    if options.ngrams:
        parameters["ngram_range"] = ngram_range("ngrams", options.ngrams)
    if options.char_ngrams:
        parameters |= {"analyzer": "char_wb", "ngram_range": ngram_range("char_ngrams", options.char_ngrams)}
    named = {"tf": options.tf, "idf": options.idf}
    return parameters | {name: value for name, value in named.items() if value is not None}


def features_for(options: TrainOptions, source: Source) -> TableFeaturizer | None:
    """Return the features of a source, not learned; None for numbers, which are taken as they are."""
    if source.kind == "rows":
        if options.roles() or options.numbers:
            raise DataError(f"{source.name}: {source.format} data have no columns that could have a role")
        if ignored := next((name for name in OF_COLUMNS if getattr(options, name) is not None), None):
            raise DataError(f"{source.name}: {source.format} data have no columns that {ignored}= could apply to")
        return None
    assert source.schema is not None
    names = [name for name in source.schema.names if name != source.label]
    return featurizer_of(options, roles_for(source.name, source.schema.names, names, options.roles()), plain=True)


def default_learner() -> Any:
    """Return the learner of `train` without options."""
    return learner_of(DEFAULTS)


def default_features() -> TableFeaturizer:
    """Return the features of `train` without options."""
    return featurizer_of(DEFAULTS, {})
