"""A fitted linear classifier as a scikit-learn object: a classifier, or a pipeline that reads texts or raw columns."""

from __future__ import annotations

import itertools
import re
from typing import Any

import numpy as np
import scipy.sparse as sp

from separatrix.engine.protocols import Classifier
from separatrix.engine.rows import Floats
from separatrix.exporting.column_terms import (
    MISSING_WORDS,
    Bins,
    Choice,
    Items,
    Line,
    Term,
    Truth,
    Words,
    column_terms,
)
from separatrix.exporting.linear_decision import LinearDecision, linear_decision
from separatrix.features.columns.categories import UNIT
from separatrix.features.text import TextFeaturizer

_DENSE = 0.25
"""From this share of nonzero weights on they are stored as a dense array."""


def to_sklearn(model: Classifier) -> Any:
    """Return a scikit-learn object that predicts the same, and pickles without this library.

    It is a `LinearSVC`, or a `LogisticRegression` with the same probabilities if the classifier was calibrated, in a
    `FixedThresholdClassifier` if it has a threshold. For a `Model` with a featurizer it is a `Pipeline` that takes raw
    texts, or data frames with the columns of the table, of scikit-learn's own classes and NumPy's functions. Building it
    for a table needs pandas.

    Examples
    --------
    >>> from separatrix import Perceptron
    >>> from separatrix.exporting import to_sklearn
    >>> model = Perceptron(order="cyclic").fit([[0, 0], [0, 1], [1, 0], [1, 1]], [0, 0, 0, 1])
    >>> to_sklearn(model).predict([[1, 1], [1, 0]]).tolist()
    [1, 0]
    """
    from sklearn.pipeline import make_pipeline

    decision = linear_decision(model)
    if decision.features is None:
        return _classifier(decision, decision.coef)
    if isinstance(decision.features, TextFeaturizer):
        return make_pipeline(*_text_steps(decision.features), _classifier(decision, decision.coef))
    transformer, weights = _of_columns(column_terms(decision, "scikit-learn", (Bins, Line, Truth, Choice, Items, Words)))
    return make_pipeline(transformer, _classifier(decision, weights.T.copy()))


def _classifier(decision: LinearDecision, coef: Floats) -> Any:
    from sklearn.linear_model import LogisticRegression
    from sklearn.svm import LinearSVC

    slope, names = decision.slope, decision.names
    classifier: Any = LinearSVC() if slope is None else LogisticRegression()
    coef, intercept = (coef, decision.intercept) if slope is None else (slope * coef, slope * decision.intercept)
    if decision.tie_is_positive and not decision.threshold:
        # scikit-learn gives a score of 0 to the first class, so b moves up to the next number: w·x + b = 0 becomes > 0.
        intercept = np.nextafter(intercept, np.inf)
    classifier.coef_, classifier.intercept_ = coef, intercept
    classifier.classes_, classifier.n_features_in_ = decision.classes, coef.shape[1]
    classifier.n_iter_ = np.zeros(1, np.int32)
    if names is not None:
        classifier.feature_names_in_ = np.array(names, dtype=object)
    float64 = decision.features is not None and np.dtype(decision.features.dtype) == np.float64
    if float64 and np.count_nonzero(coef) < _DENSE * coef.size:  # scikit-learn multiplies sparse matrices of one type
        classifier.sparsify()
    return _at_threshold(classifier, decision) if decision.threshold else classifier


def _at_threshold(classifier: Any, decision: LinearDecision) -> Any:
    """Return the classifier with the threshold; its scores and probabilities stay as they are."""
    from sklearn.model_selection import FixedThresholdClassifier

    threshold = decision.threshold * (1.0 if decision.slope is None else decision.slope)
    if not decision.tie_is_positive:  # scikit-learn compares by ≥
        threshold = float(np.nextafter(threshold, np.inf))
    settings = {"threshold": threshold, "pos_label": decision.classes[1], "response_method": "decision_function"}
    thresholded: Any = FixedThresholdClassifier(classifier, **settings)
    thresholded.estimator_, thresholded.n_features_in_ = classifier, classifier.n_features_in_
    if decision.names is not None:
        thresholded.feature_names_in_ = classifier.feature_names_in_
    return thresholded


# Tables.


def _of_columns(terms: list[Term]) -> tuple[Any, Floats]:
    """Return a fitted ColumnTransformer, and the weights of the features that it makes, a row each."""
    from sklearn.compose import ColumnTransformer
    from sklearn.pipeline import make_pipeline

    try:
        from pandas import DataFrame  # type: ignore[import-untyped]
    except ImportError:
        raise ImportError(
            "a scikit-learn pipeline that reads a table needs the package pandas: pip install pandas"
        ) from None
    parts = [(term, *made) for term in terms for made in _made_of(term)]
    # The names of scikit-learn's steps must differ, and have no "__".
    names = [f"{term.name} ({k})".replace("__", "_") for k, (term, _, _) in enumerate(parts, 1)]
    steps = [(name, make_pipeline(*made), [term.name]) for name, (term, made, _) in zip(names, parts, strict=True)]
    example = DataFrame({term.name: _EXAMPLES.get(type(term), [0.0, np.nan]) for term in terms})
    transformer = ColumnTransformer(steps, sparse_threshold=1.0).fit(example)
    for name, (term, _, _) in zip(names, parts, strict=True):
        _settle(transformer.named_transformers_[name], term)
    return transformer, np.vstack([weights for _, _, weights in parts])


_EXAMPLES: dict[type, list[Any]] = {Choice: ["", None], Items: ["", None], Words: ["", None]}
"""Values to fit transformers with whose features do not depend on them."""


def _made_of(term: Term) -> list[tuple[list[Any], Floats]]:
    """Return one or more lists of steps that make features of a column, each with the weights of the features."""
    from sklearn.feature_extraction.text import CountVectorizer
    from sklearn.impute import SimpleImputer
    from sklearn.preprocessing import StandardScaler

    if isinstance(term, Line):
        imputer = SimpleImputer(strategy="constant", fill_value=0.0, add_indicator=True)
        return [([_as_type(np.float64), StandardScaler(), imputer], np.vstack([term.weights, term.missing]))]
    if isinstance(term, Words):
        return [([*_filled(), *_text_steps(term.features)], term.weights)]
    if isinstance(term, Choice):
        return [_of_category(term)]
    if isinstance(term, Items):
        delimiters = re.escape(term.delimiter) + UNIT
        pattern = rf"(?a)[^\s{delimiters}](?:[^{delimiters}]*[^\s{delimiters}])?"
        vocabulary = {value: k for k, value in enumerate(term.values)}
        counter = CountVectorizer(
            token_pattern=pattern, lowercase=False, binary=True, vocabulary=vocabulary, dtype=np.float64
        )
        missing = np.tile(term.missing, (len(MISSING_WORDS), 1))
        return [([*_filled(), counter], term.weights), ([_as_type(str), _one_hot(MISSING_WORDS)], missing)]
    bins = term.bins if isinstance(term, Truth) else term
    # Of NaN, digitize says that it exceeds all bounds.
    digitize = _function(np.digitize, bins=bins.bounds, right=True)
    return [([_as_type(np.float64), digitize, _one_hot(range(len(bins.table)))], bins.table)]


def _of_category(term: Choice) -> tuple[list[Any], Floats]:
    """Return the steps and weights of a column of categories; `StringDType` refuses numbers in one of text."""
    spellings = [(word, weights) for words, weights in zip(term.spellings, term.weights, strict=True) for word in words]
    known = {word for word, _ in spellings}
    steps: list[Any]
    if not term.spelled:
        missing = next(word for k in itertools.count() if (word := "missing" + "?" * k) not in known)
        steps = [*_imputers(missing), _as_type(np.dtypes.StringDType(coerce=False)), _as_type(object)]
        spellings.append((missing, term.missing))
    elif confused := known.intersection(MISSING_WORDS):
        raise ValueError(
            f"column {term.name!r} has the category {min(confused)!r}, which scikit-learn's encoder does not tell from "
            "a missing value: rename it before training"
        )
    else:
        steps = [_as_type(str)]
        spellings += [(word, term.missing) for word in MISSING_WORDS]
    return [*steps, _one_hot([word for word, _ in spellings])], np.array([weights for _, weights in spellings])


def _function(function: Any, **arguments: Any) -> Any:
    from sklearn.preprocessing import FunctionTransformer

    return FunctionTransformer(function, kw_args=arguments)


def _as_type(kind: Any) -> Any:
    return _function(np.asarray, dtype=kind)


def _one_hot(values: Any) -> Any:
    from sklearn.preprocessing import OneHotEncoder

    return OneHotEncoder(categories=[list(values)], handle_unknown="ignore")


def _imputers(word: str) -> list[Any]:
    """Return steps that write a word where a text is missing, be it NaN or None."""
    from sklearn.impute import SimpleImputer

    return [SimpleImputer(missing_values=gap, strategy="constant", fill_value=word) for gap in (np.nan, None)]


def _filled() -> list[Any]:
    """Return steps that make one array of a column of text, with empty texts where they are missing."""
    return [_as_type(object), *_imputers(""), _function(np.ravel)]


def _settle(pipeline: Any, term: Term) -> None:
    """Give the fitted steps of a column what was learned of it."""
    if isinstance(term, Line):
        scaler = pipeline.named_steps["standardscaler"]
        scaler.mean_, scaler.scale_ = np.array([term.shift]), np.array([1.0 / term.scale])
        scaler.var_ = scaler.scale_**2
    elif isinstance(term, Words) and term.features.idf:
        pipeline.named_steps["tfidftransformer"].idf_ = term.features.idf_


# Texts.


def _text_steps(features: TextFeaturizer) -> list[Any]:
    """Return scikit-learn's vectorizer, and its weighting where there is any, that make the same features."""
    from sklearn.feature_extraction.text import CountVectorizer, HashingVectorizer, TfidfTransformer

    settings = {
        "analyzer": features.analyzer,
        "token_pattern": features.token_pattern,
        "ngram_range": tuple(features.ngram_range),
        "lowercase": features.lowercase,
        "binary": features.tf == "binary",
        "decode_error": "replace",
        "dtype": features.dtype,
    }
    if features.columns == "vocabulary":
        vectorizer = CountVectorizer(vocabulary=features.vocabulary_, **settings)
    else:
        signed = features.alternate_sign and features.tf != "binary"
        if signed and features.tf == "sublinear":
            raise ValueError("scikit-learn has no sublinear counts with alternate signs: train with alternate_sign=False")
        vectorizer = HashingVectorizer(n_features=features.n_features, alternate_sign=signed, norm=None, **settings)
    if features.tf != "sublinear" and not features.idf and features.norm is None:
        return [vectorizer]
    weigher = TfidfTransformer(norm=features.norm, use_idf=features.idf, sublinear_tf=features.tf == "sublinear")
    weigher.fit(sp.csr_matrix((1, features.n_features_out_)))
    if features.idf:
        weigher.idf_ = features.idf_
    return [vectorizer, weigher]
