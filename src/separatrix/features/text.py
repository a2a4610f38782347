"""Text as features: words or characters, n-grams of them, hashed or listed, counted and weighed."""

from __future__ import annotations

import unicodedata
from copy import copy
from numbers import Integral
from typing import Any, ClassVar, Self

import numpy as np
import scipy.sparse as sp

from separatrix.engine.parameters import (
    Constraint,
    NotFittedError,
    Parameterized,
    boolean,
    choices,
    float_type,
    instance_of,
    none,
    whole,
)
from separatrix.engine.rows import Array, Floats
from separatrix.features.words.arrow_text import Texts, divided, texts_of
from separatrix.features.words.counts import NO_FACTOR, CountedRows
from separatrix.features.words.indexing import ColumnIndex, Hashed, Listed, inverse_frequency
from separatrix.features.words.ngrams import BLOCK_TEXTS, PATTERNS, Analyzer
from separatrix.kernels.threads import in_order, threads_of

COST = 64
"""To count the n-grams of a byte of text takes about as long as to read so many bytes of numbers."""


class TextFeaturizer(Parameterized):
    """Turn a column of texts into a sparse matrix of weighted n-grams, without scikit-learn.

    `separatrix.TextFeatures` is this class as a scikit-learn transformer, and describes the parameters.
    """

    saved_as = "TextFeatures"
    not_fitted_error: ClassVar[type[Exception]] = NotFittedError
    constraints: ClassVar[dict[str, Constraint]] = {
        "analyzer": choices("word", "char", "char_wb"),
        "token_pattern": choices(*PATTERNS),
        "ngram_range": instance_of(tuple, list),
        "lowercase": boolean,
        "columns": choices("hashed", "vocabulary"),
        "n_features": whole(1, np.iinfo(np.int32).max),
        "alternate_sign": boolean,
        "min_df": whole(1),
        "max_features": whole(1) | none,
        "tf": choices("count", "binary", "sublinear"),
        "idf": boolean,
        "norm": choices("l2") | none,
        "keep_names": whole(0, np.iinfo(np.int32).max - 1),
        "dtype": float_type,
        "n_jobs": whole() | none,
    }

    def __init__(
        self,
        *,
        analyzer: str = "word",
        token_pattern: str = r"\w+|[^\w\s]",
        ngram_range: tuple[int, int] = (1, 2),
        lowercase: bool = True,
        columns: str = "hashed",
        n_features: int = 2**20,
        alternate_sign: bool = False,
        min_df: int = 1,
        max_features: int | None = None,
        tf: str = "sublinear",
        idf: bool = True,
        norm: str | None = "l2",
        keep_names: int = 2**20,
        dtype: Any = np.float64,
        n_jobs: int | None = None,
    ) -> None:
        self.analyzer = analyzer
        self.token_pattern = token_pattern
        self.ngram_range = ngram_range
        self.lowercase = lowercase
        self.columns = columns
        self.n_features = n_features
        self.alternate_sign = alternate_sign
        self.min_df = min_df
        self.max_features = max_features
        self.tf = tf
        self.idf = idf
        self.norm = norm
        self.keep_names = keep_names
        self.dtype = dtype
        self.n_jobs = n_jobs

    def fit(self, X: Any, y: Any = None) -> Self:
        """Learn the texts' document frequencies, names and, where asked for, vocabulary.

        Parameters
        ----------
        X : list, NumPy array, Series or Arrow array of strings or bytes
        y : ignored
        """
        index = self._new_index()
        self._learn(texts_of(X), index)
        if isinstance(index, Listed):
            index.order  # noqa: B018  an empty vocabulary is refused here
        return self.adopt(index)

    def partial_fit(self, X: Any, y: Any = None) -> Self:
        """Learn from some more texts: batches of any size give the same as all at once."""
        index = self._so_far() or self._new_index()
        self._learn(texts_of(X), index)
        return self.adopt(index)

    def fit_transform(self, X: Any, y: Any = None, **_: Any) -> sp.csr_matrix:
        """Learn from the texts and return their features, in one reading."""
        index = self._new_index()
        rows = self._counted(texts_of(X), index, learn=True)
        index.count(rows)
        index.settle(rows)
        self.adopt(index)
        return self._weighed(rows, index)

    def partial_fit_transform(self, X: Any, y: Any = None) -> sp.csr_matrix:
        """Learn from some more texts and return their features, in one reading.

        Each text is weighed by the document frequencies up to and including itself, whatever the batches are.
        """
        index = self._so_far() or self._new_index()
        if isinstance(index, Listed):
            raise ValueError('the columns of a vocabulary are known only at the end: fit it first, or use columns="hashed"')
        rows = self._counted(texts_of(X), index, learn=True)
        factor = index.count_one_by_one(rows)
        self.adopt(index)
        rows.weigh(self.tf, NO_FACTOR, factor, self.norm is not None)
        return rows.matrix(index.width)

    def transform(self, X: Any) -> sp.csr_matrix:
        """Return the features of texts, a row each: a CSR matrix with sorted indices."""
        index = self._so_far() or (self.index if self.needs_fit() else self._new_index(names=0))
        texts = texts_of(X)
        shares = divided(texts, threads_of(self.n_jobs, COST * sum(chunk.size for chunk in texts))) or [[]]
        if len(shares) == 1:
            return self._weighed(self._counted(shares[0], index), index)
        rows, *others = in_order(lambda share: self._counted(share, index), shares, len(shares))
        rows.append(others)
        return self._weighed(rows, index)

    def matrix(self, X: Any) -> sp.csr_matrix:
        """Return the features of texts as a CSR matrix, whatever `set_output` says."""
        return TextFeaturizer.transform(self, X)

    def _new_index(self, names: int | None = None) -> ColumnIndex:
        """Return columns of which nothing is known yet."""
        self.check_parameters()
        low, high = self._range()
        if not 1 <= low <= high:
            raise ValueError(f"ngram_range is {self.ngram_range!r}: it must be two whole numbers, 1 ≤ fewest ≤ most")
        if self.columns == "vocabulary":
            return Listed(self.min_df, self.max_features)
        signed = self.alternate_sign and self.tf != "binary"
        return Hashed(self.n_features, signed, self.idf, self.keep_names if names is None else names)

    def _range(self) -> tuple[int, int]:
        if len(self.ngram_range) != 2 or not all(isinstance(n, Integral) for n in self.ngram_range):
            return 0, 0
        return int(self.ngram_range[0]), int(self.ngram_range[1])

    def _so_far(self) -> ColumnIndex | None:
        """Return what was learned, unless a parameter has changed since."""
        if not self.is_fitted():
            return None
        for name, value in self._parameters_then.items():
            if (now := getattr(self, name)) != value:
                raise ValueError(
                    f"{name} was {value!r} when learning began and is {now!r}: it cannot change; call fit() again"
                )
        return self._index

    def adopt(self, index: ColumnIndex) -> Self:
        """Take over what was learned of the columns, with the parameters of now."""
        if getattr(self, "_index", None) is not index:
            self._index, self._parameters_then = index, self._settings()
        self._idf = NO_FACTOR
        return self

    def _settings(self) -> dict[str, Any]:
        """Return the parameters that the features depend on."""
        settings: dict[str, Any] = self.get_params()
        del settings["n_jobs"]
        return settings

    @property
    def index(self) -> ColumnIndex:
        """What was learned of the columns: document frequencies and names; raises before the fit."""
        if not self.is_fitted():
            raise self.not_fitted_error("this TextFeatures has learned nothing yet: call fit or partial_fit first")
        return self._index

    def needs_fit(self) -> bool:
        """Tell whether the parameters ask for something that is learned from texts."""
        return self.columns == "vocabulary" or bool(self.idf)

    def is_fitted(self) -> bool:
        """Tell whether something was learned."""
        return hasattr(self, "_index")

    def _analyzer(self) -> Analyzer:
        return Analyzer(self.analyzer, self.token_pattern, self._range(), self.lowercase)

    def _counted(self, chunks: list[Texts], index: ColumnIndex, learn: bool = False) -> CountedRows:
        """Return the rows of all texts; while learning, with columns that have yet to be settled."""
        rows = CountedRows(sum(texts.n for texts in chunks), self.dtype)
        keys = index.learn if learn else index.keys
        for grams, share in self._analyzer().blocks(chunks):
            rows.add(*keys(grams, rows), share)
        return rows

    def _learn(self, chunks: list[Texts], index: ColumnIndex) -> None:
        """Learn without keeping the rows."""
        rows = CountedRows(BLOCK_TEXTS, self.dtype)
        for grams, _ in self._analyzer().blocks(chunks):
            keys = index.learn(grams, rows)
            if index.counting:
                rows.clear()
                rows.add(*keys)
                index.count(rows)

    def _weighed(self, rows: CountedRows, index: ColumnIndex) -> sp.csr_matrix:
        by_column = by_entry = NO_FACTOR
        if self.idf and (self._idf.size or rows.nnz >= index.width // 4):
            by_column = self.idf_
        elif self.idf:
            by_entry = inverse_frequency(index.n_texts, index.df[rows.columns])
        rows.weigh(self.tf, by_column, by_entry, self.norm is not None)
        return rows.matrix(index.width)

    @property
    def n_texts_(self) -> int:
        """How many texts were learned from."""
        return self.index.n_texts

    @property
    def n_features_out_(self) -> int:
        """How many columns there are."""
        return self.index.width

    @property
    def idf_(self) -> Floats:
        """The idf of each column."""
        index = self.index
        if not self._idf.size:
            self._idf = inverse_frequency(index.n_texts, index.df)
        return self._idf

    @property
    def vocabulary_(self) -> dict[str, int]:
        """The column of each n-gram of a vocabulary."""
        index = self.index
        if not isinstance(index, Listed):
            raise AttributeError('vocabulary_ needs columns="vocabulary"')
        return {name: column for column, name in enumerate(index.all_names())}

    def names_of(self, column: int) -> list[str]:
        """Return the n-grams that a column stands for, those of a hashed one in the order in which they were first seen.

        More than one means a collision. `has_unnamed` tells whether there were others, of which no name was kept.
        """
        return self.index.names_of(self._in_range(column))

    def names_in(self, X: Any) -> dict[int, list[str]]:
        """Return the n-grams that some texts have, by their columns: several where they have the same hash.

        Other n-grams that are hashed to the same column are not named, as they are by `names_of`. A column of a vocabulary
        has one n-gram, whatever the texts are, and is left out.

        Examples
        --------
        >>> from separatrix import TextFeatures
        >>> features = TextFeatures(n_features=2, ngram_range=(1, 1)).fit(["free money", "at noon"])
        >>> features.names_of(1), features.names_in(["money at home"])[1]
        (['at', 'noon'], ['at', 'home'])
        """
        names: dict[int, list[str]] = {}
        if (index := self._so_far() or self._new_index(names=0)) and isinstance(index, Hashed):
            for grams, _ in self._analyzer().blocks(texts_of(X)):
                for column, those in index.names_in(grams).items():
                    names[column] = list(dict.fromkeys([*names.get(column, []), *those]))
        return names

    def has_unnamed(self, column: int) -> bool:
        """Tell whether n-grams without a name were hashed to the column, `keep_names` having been reached."""
        return self.index.has_unnamed(self._in_range(column))

    def _in_range(self, column: int) -> int:
        width = self.index.width
        if not 0 <= column < width:
            raise IndexError(f"there is no column {column}: there are {width}")
        return int(column)

    def get_feature_names_out(self, input_features: Any = None) -> Array:
        """Return a name for each column: its n-grams with " | " between them, or "column j" where none was seen."""
        return np.array(self.index.all_names(), dtype=object)

    def get_state(self) -> tuple[dict[str, Any], dict[str, Array]]:
        """Return all that was learned, and the parameters, as JSON values and plain arrays: `from_state` takes them back."""
        index = self.index
        parameters = self.json_parameters()
        del parameters["n_jobs"]
        state = {"parameters": parameters, "n_texts": index.n_texts, "unicode": unicodedata.unidata_version}
        return state, index.state()

    def json_parameters(self) -> dict[str, Any]:
        """Return the parameters as JSON values: `from_parameters` takes them back."""
        return self.get_params() | {"ngram_range": list(self._range()), "dtype": np.dtype(self.dtype).name}

    @classmethod
    def from_parameters(cls, parameters: dict[str, Any]) -> Self:
        """Return the transformer that `json_parameters` described, not fitted."""
        types = {"ngram_range": tuple(parameters["ngram_range"]), "dtype": np.dtype(parameters["dtype"]).type}
        return cls(**(parameters | types))

    def without_names(self) -> Self:
        """Return the same features without the names of hashed columns, which `transform` does not need."""
        features = copy(self)
        if isinstance(self._index, Hashed):
            features._index = copy(self._index)
            features._index.names = None
        return features

    @classmethod
    def from_state(cls, state: dict[str, Any], arrays: dict[str, Array]) -> Self:
        """Return the transformer that `get_state` described."""
        features = cls.from_parameters(state["parameters"])
        index = features._new_index()
        index.restore(arrays)
        index.n_texts = int(state["n_texts"])
        if np.min(index.df, initial=0) < 0 or not int(np.max(index.df, initial=0)) <= index.n_texts < 1 << 62:
            raise ValueError(f"n_texts is {index.n_texts}, and a column occurs in more of them, or in fewer than none")
        return features.adopt(index)
