"""The featurizers as scikit-learn transformers: `TextFeatures` and `TableFeatures`."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
import pyarrow as pa
from sklearn import get_config
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.exceptions import NotFittedError

from separatrix.engine.user_warnings import warn_user
from separatrix.features.columns.arrow_columns import frame_of
from separatrix.features.table import TableFeaturizer
from separatrix.features.text import TextFeaturizer

CONTAINERS = ("default", "pandas", "polars")
MOST_COLUMNS = 1 << 14
"""The most columns of a data frame that `set_output` makes of features."""


class _Featurizer(TransformerMixin, BaseEstimator):  # type: ignore[misc]
    """A transformer whose `set_output` makes sparse data frames; scikit-learn's own would refuse a sparse matrix."""

    _container: str | None = None

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(auto_wrap_output_keys=None, **options)

    def set_output(self, *, transform: str | None = None) -> Self:
        """Choose what `transform` and `fit_transform` return.

        Parameters
        ----------
        transform : "default": a CSR matrix; "pandas" or "polars": a data frame; None: no change
        """
        if transform not in (None, *CONTAINERS):
            raise ValueError(f"transform must be one of {', '.join(CONTAINERS)}, got {transform!r}")
        self._container = transform or self._container
        return self

    def __sklearn_clone__(self) -> Self:
        """Return a clone, which keeps the choice of `set_output` as scikit-learn's own transformers do."""
        clone: Self = super().__sklearn_clone__()
        return clone.set_output(transform=self._container)

    def _contained(self, features: Any, X: Any) -> Any:
        """Return a CSR matrix as it is, or in the container that `set_output` chose; pandas gets sparse columns."""
        container = self._container or get_config()["transform_output"]
        if container == "default":
            return features
        if features.shape[1] > MOST_COLUMNS:
            raise ValueError(
                f"set_output(transform={container!r}) makes a column of each feature, and there are "
                f"{features.shape[1]:,}: have fewer of text with n_features, or call set_output(transform='default') for a "
                "sparse matrix"
            )
        names = self.get_feature_names_out()
        if container == "polars":
            import polars

            return polars.DataFrame(features.toarray(), schema=names.tolist())
        import pandas  # type: ignore[import-untyped]

        index = X.index if isinstance(X, pandas.DataFrame | pandas.Series) else None
        return pandas.DataFrame.sparse.from_spmatrix(features, index, names)


class TextFeatures(TextFeaturizer, _Featurizer):
    r"""Turn a column of texts into a sparse matrix of weighed n-grams.

    The defaults (words and punctuation marks, one and two in a row, sublinear tf-idf, unit length) serve short messages and
    long articles alike. Tokens are exactly what `re.findall(token_pattern, text.lower())` finds, for text of any script;
    malformed UTF-8 is read as `bytes.decode("utf-8", "replace")` reads it; None and NaN are empty texts.

    Parameters
    ----------
    analyzer : "word"; "char": n-grams of characters, two spaces or more being one; "char_wb": the same within words, with a
        blank before and after each (both as in scikit-learn)
    token_pattern : what a word is: `\w+|[^\w\s]`, words and single marks; `\w+`; `(?u)\b\w\w+\b`, scikit-learn's words of
        two characters or more; `\S+`
    ngram_range : (fewest, most) words or characters of an n-gram
    lowercase : whether to lower-case the text first, as `str.lower` does
    columns : "hashed": column |h| mod `n_features` for the 32-bit MurmurHash3 h; "vocabulary": one for each n-gram seen
    n_features : the number of hashed columns
    alternate_sign : count −1 where h is negative, so that n-grams sharing a column cancel rather than add up
    min_df : the fewest texts that an n-gram of the vocabulary must occur in
    max_features : the most columns of a vocabulary: the most frequent n-grams, of equally frequent ones the first in order
    tf : "count", "binary" or "sublinear", 1 + ln(count)
    idf : multiply by ln((1 + n)/(1 + df)) + 1, for n texts of which df have the column, and by 0 where none has: what was
        never seen has no part in a row's length either, as with a vocabulary
    norm : "l2": rows of length 1; None
    keep_names : how many names of hashed columns to keep; 0: none
    dtype : float64 or float32
    n_jobs : how many threads transform; None: OMP_NUM_THREADS, or one for each core; the features are the same

    Examples
    --------
    >>> from separatrix import TextFeatures
    >>> features = TextFeatures().fit(["Free entry: call now!", "Call me", "Free?"])
    >>> X = features.transform(["CALL me free"])
    >>> sorted((round(float(x), 3), features.names_of(j)) for j, x in zip(X.indices, X.data))
    [(0.0, []), (0.428, ['call']), (0.428, ['free']), (0.563, ['call me']), (0.563, ['me'])]
    """

    not_fitted_error = NotFittedError

    def fit_transform(self, X: Any, y: Any = None, **fit_params: Any) -> Any:
        """Learn from the texts and return their features, in one reading."""
        return self._contained(super().fit_transform(X, y, **fit_params), X)

    def transform(self, X: Any) -> Any:
        """Return the features of texts, a row each: a CSR matrix with sorted indices, or as `set_output` says."""
        return self._contained(super().transform(X), X)

    def __sklearn_is_fitted__(self) -> bool:
        return self.is_fitted()

    def __sklearn_tags__(self) -> Any:
        """Tell scikit-learn what the transformer takes."""
        tags = super().__sklearn_tags__()
        tags.input_tags.string = True
        tags.input_tags.one_d_array = True
        tags.input_tags.two_d_array = False
        tags.requires_fit = self.needs_fit()
        return tags


class TableFeatures(TableFeaturizer, _Featurizer):
    """Turn a table of mixed columns into a sparse matrix.

    Each column gets a role from its type and its first rows (at most 16,384): numbers, dates, categories, sets, truth
    values, texts, or dropped; `roles` overrides. Missing values (None, NaN, null) have a feature of their own where some
    were learned from, and none otherwise. Learning goes batch by batch in bounded memory, and the batches leave no trace in
    the result.

    Parameters
    ----------
    roles : of columns by name: "number", "date", "category", "set", "boolean", "text" or "drop"
    numbers : "bins": quantile bins of the values that are not 0, which is a bin of its own; "standard": mean 0 (unless most
        values are 0) and deviation 1; "max-abs": divided by the largest size; "none": as they are
    n_bins : about how many bins; a value as frequent as a bin has one to itself. "auto": 32, and fewer, down to 4, where
        there are more than 64 columns of numbers
    code : of bins. "thermometer": a feature for each threshold, "age > 37", and 1 for all that are exceeded; "one-hot": a
        feature for each bin
    max_categories : how many categories of a column get a feature each, the first come first; later ones share hashed ones
    n_hashed : how many hashed features such a column has
    text : the `TextFeatures` for columns of text; by default its defaults, with 2^20 features divided among the columns
    dtype : float64 or float32

    Attributes
    ----------
    roles_ : the role of each column
    notes_ : what was left out, and why
    n_features_out_ : the number of features
    n_rows_ : how many rows were learned from

    Examples
    --------
    >>> from separatrix import TableFeatures
    >>> table = {"age": [22, 38, 38, None], "job": ["clerk", "cook", None, "clerk"], "gain": [0.0, 0.0, 0.0, 5178.0]}
    >>> features = TableFeatures().fit(table)
    >>> features.get_feature_names_out().tolist()
    ['age > 22', 'age is missing', 'job=clerk', 'job=cook', 'job is missing', 'gain > 0']
    >>> features.transform({"age": [30], "job": ["pilot"], "gain": [100.0]}).toarray()
    array([[1., 0., 0., 0., 0., 1.]])
    """

    not_fitted_error = NotFittedError
    text_class = TextFeatures

    def fit_transform(self, X: Any, y: Any = None, **fit_params: Any) -> Any:
        """Learn the columns and return the features of the table; warn of columns that alone predict the labels `y`."""
        features = super().fit_transform(X, y, **fit_params)
        labels = None if y is None else _as_labels(y, features.shape[0])
        if labels is not None:
            search = self.leak_search()
            search.offer(frame_of(X).table, labels, 0)
            for telling in search.report():
                warn_user(str(telling))
        return features

    def transform(self, X: Any) -> Any:
        """Return the features of a table, a row each: a CSR matrix with sorted indices, or as `set_output` says.

        The columns that were learned from must be there, in any order; others are passed over. A category that was never met
        has no feature.
        """
        return self._contained(super().transform(X), X)

    def __sklearn_is_fitted__(self) -> bool:
        return self.is_fitted()

    def __sklearn_tags__(self) -> Any:
        """Tell scikit-learn what the transformer takes."""
        tags = super().__sklearn_tags__()
        tags.input_tags.string = True
        tags.input_tags.categorical = True
        tags.input_tags.allow_nan = True
        return tags


def _as_labels(y: Any, n: int) -> Any:
    """Return y as an Arrow array if it holds n labels, and None if it holds anything else, such as measurements."""
    values = np.asarray(y)
    if values.shape != (n,) or values.dtype.kind not in "OUSbiuf":
        return None
    if values.dtype.kind == "f" and not (values == np.floor(values)).all():
        return None
    try:
        return pa.array(values.astype(object) if values.dtype.kind in "US" else values)
    except (pa.ArrowInvalid, pa.ArrowTypeError):
        return None
