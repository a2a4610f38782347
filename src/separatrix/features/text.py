"""Text as features: words or characters, n-grams of them, hashed or listed, counted and weighed."""

from __future__ import annotations

import os
import unicodedata
from concurrent.futures import ThreadPoolExecutor
from numbers import Integral
from typing import Any, ClassVar, Self

import numpy as np
import scipy.sparse as sp
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.exceptions import NotFittedError
from sklearn.utils._param_validation import Interval, Options, StrOptions

from separatrix.engine.rows import Array, Floats
from separatrix.features.words.arrow_text import Texts, divided, texts_of
from separatrix.features.words.counts import NO_FACTOR, CountedRows
from separatrix.features.words.indexing import Hashed, Listed, inverse_frequency
from separatrix.features.words.ngrams import BLOCK_TEXTS, PATTERNS, Analyzer


class TextFeatures(TransformerMixin, BaseEstimator, auto_wrap_output_keys=None):  # type: ignore[call-arg, misc]
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
    n_jobs : how many threads transform, as in scikit-learn; the features are the same

    Examples
    --------
    >>> from separatrix import TextFeatures
    >>> features = TextFeatures().fit(["Free entry: call now!", "Call me", "Free?"])
    >>> X = features.transform(["CALL me free"])
    >>> sorted((round(float(x), 3), features.names_of(j)) for j, x in zip(X.indices, X.data))
    [(0.0, []), (0.428, ['call']), (0.428, ['free']), (0.563, ['call me']), (0.563, ['me'])]
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "analyzer": [StrOptions({"word", "char", "char_wb"})],
        "token_pattern": [StrOptions(set(PATTERNS))],
        "ngram_range": [tuple, list],
        "lowercase": ["boolean"],
        "columns": [StrOptions({"hashed", "vocabulary"})],
        "n_features": [Interval(Integral, 1, np.iinfo(np.int32).max, closed="both")],
        "alternate_sign": ["boolean"],
        "min_df": [Interval(Integral, 1, None, closed="left")],
        "max_features": [Interval(Integral, 1, None, closed="left"), None],
        "tf": [StrOptions({"count", "binary", "sublinear"})],
        "idf": ["boolean"],
        "norm": [StrOptions({"l2"}), None],
        "keep_names": [Interval(Integral, 0, np.iinfo(np.int32).max, closed="left")],
        "dtype": [Options(type, {np.float32, np.float64})],
        "n_jobs": [Integral, None],
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
        learned = self._begin()
        self._learn(texts_of(X), learned)
        if isinstance(learned, Listed):
            learned.order  # noqa: B018  an empty vocabulary is refused here
        return self._publish(learned)

    def partial_fit(self, X: Any, y: Any = None) -> Self:
        """Learn from some more texts: batches of any size give the same as all at once."""
        learned = self._so_far() or self._begin()
        self._learn(texts_of(X), learned)
        return self._publish(learned)

    def fit_transform(self, X: Any, y: Any = None, **_: Any) -> sp.csr_matrix:
        """Learn from the texts and return their features, in one reading."""
        learned = self._begin()
        rows = self._counted(texts_of(X), learned, learn=True)
        learned.count(rows)
        learned.settle(rows)
        self._publish(learned)
        return self._weighed(rows, learned)

    def partial_fit_transform(self, X: Any, y: Any = None) -> sp.csr_matrix:
        """Learn from some more texts and return their features, in one reading.

        Each text is weighed by the document frequencies up to and including itself, whatever the batches are.
        """
        learned = self._so_far() or self._begin()
        if isinstance(learned, Listed):
            raise ValueError('the columns of a vocabulary are known only at the end: fit it first, or use columns="hashed"')
        rows = self._counted(texts_of(X), learned, learn=True)
        factor = learned.count_one_by_one(rows)
        self._publish(learned)
        rows.weigh(self.tf, NO_FACTOR, factor, self.norm is not None)
        return rows.matrix(learned.width)

    def transform(self, X: Any) -> sp.csr_matrix:
        """Return the features of texts, a row each: a CSR matrix with sorted indices."""
        learned = self._so_far() or (self._known() if self._needs_fit() else self._begin(names=0))
        shares = divided(texts_of(X), self._jobs()) or [[]]
        if len(shares) == 1:
            return self._weighed(self._counted(shares[0], learned), learned)
        with ThreadPoolExecutor(len(shares)) as pool:
            rows, *others = pool.map(self._counted, shares, [learned] * len(shares))
        rows.append(others)
        return self._weighed(rows, learned)

    def _jobs(self) -> int:
        jobs = int(self.n_jobs or 1)
        return jobs if jobs > 0 else max(1, (os.cpu_count() or 1) + 1 + jobs)

    def _begin(self, names: int | None = None) -> Hashed | Listed:
        """Return columns of which nothing is known yet."""
        self._validate_params()
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

    def _so_far(self) -> Hashed | Listed | None:
        """Return what was learned, unless a parameter has changed since."""
        if not self.__sklearn_is_fitted__():
            return None
        for name, value in self._learned_with.items():
            if (now := getattr(self, name)) != value:
                raise ValueError(f"{name} was {value!r} when learning began and is {now!r}: it cannot change on the way")
        return self._learned

    def _publish(self, learned: Hashed | Listed) -> Self:
        if getattr(self, "_learned", None) is not learned:
            self._learned, self._learned_with = learned, self._settings()
        self._idf = NO_FACTOR
        return self

    def _settings(self) -> dict[str, Any]:
        """Return the parameters that the features depend on."""
        settings: dict[str, Any] = self.get_params()
        del settings["n_jobs"]
        return settings

    def _known(self) -> Hashed | Listed:
        """Return what was learned, or raise where nothing was."""
        if not self.__sklearn_is_fitted__():
            raise NotFittedError("this TextFeatures has learned nothing yet: call fit or partial_fit first")
        return self._learned

    def _needs_fit(self) -> bool:
        return self.columns == "vocabulary" or bool(self.idf)

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "_learned")

    def _analyzer(self) -> Analyzer:
        return Analyzer(self.analyzer, self.token_pattern, self._range(), self.lowercase)

    def _counted(self, chunks: list[Texts], learned: Hashed | Listed, learn: bool = False) -> CountedRows:
        """Return the rows of all texts; while learning, with columns that have yet to be settled."""
        rows = CountedRows(sum(texts.n for texts in chunks), self.dtype)
        keys = learned.learn if learn else learned.keys
        for grams, share in self._analyzer().blocks(chunks):
            rows.add(*keys(grams, rows), share)
        return rows

    def _learn(self, chunks: list[Texts], learned: Hashed | Listed) -> None:
        """Learn without keeping the rows."""
        rows = CountedRows(BLOCK_TEXTS, self.dtype)
        for grams, _ in self._analyzer().blocks(chunks):
            keys = learned.learn(grams, rows)
            if learned.counting:
                rows.clear()
                rows.add(*keys)
                learned.count(rows)

    def _weighed(self, rows: CountedRows, learned: Hashed | Listed) -> sp.csr_matrix:
        by_column = by_entry = NO_FACTOR
        if self.idf and (self._idf.size or rows.nnz >= learned.width // 4):
            by_column = self.idf_
        elif self.idf:
            by_entry = inverse_frequency(learned.n_texts, learned.df[rows.columns])
        rows.weigh(self.tf, by_column, by_entry, self.norm is not None)
        return rows.matrix(learned.width)

    @property
    def n_texts_(self) -> int:
        """How many texts were learned from."""
        return self._known().n_texts

    @property
    def n_features_out_(self) -> int:
        """How many columns there are."""
        return self._known().width

    @property
    def idf_(self) -> Floats:
        """The idf of each column."""
        learned = self._known()
        if not self._idf.size:
            self._idf = inverse_frequency(learned.n_texts, learned.df)
        return self._idf

    @property
    def vocabulary_(self) -> dict[str, int]:
        """The column of each n-gram of a vocabulary."""
        learned = self._known()
        if not isinstance(learned, Listed):
            raise AttributeError('vocabulary_ needs columns="vocabulary"')
        return {name: column for column, name in enumerate(learned.all_names())}

    def names_of(self, column: int) -> list[str]:
        """Return the n-grams that a column stands for, those of a hashed one in the order in which they were first seen.

        More than one means a collision. `has_unnamed` tells whether there were others, of which no name was kept.
        """
        return self._known().names_of(self._in_range(column))

    def has_unnamed(self, column: int) -> bool:
        """Tell whether n-grams without a name were hashed to the column, `keep_names` having been reached."""
        return self._known().has_unnamed(self._in_range(column))

    def _in_range(self, column: int) -> int:
        width = self._known().width
        if not 0 <= column < width:
            raise IndexError(f"there is no column {column}: there are {width}")
        return int(column)

    def get_feature_names_out(self, input_features: Any = None) -> Array:
        """Return a name for each column: its n-grams with " | " between them, or "column j" where none was seen."""
        return np.array(self._known().all_names(), dtype=object)

    def get_state(self) -> tuple[dict[str, Any], dict[str, Array]]:
        """Return all that was learned, and the parameters, as JSON values and plain arrays: `from_state` takes them back."""
        learned = self._known()
        parameters = self._settings() | {"ngram_range": list(self._range()), "dtype": np.dtype(self.dtype).name}
        state = {"parameters": parameters, "n_texts": learned.n_texts, "unicode": unicodedata.unidata_version}
        return state, learned.state()

    @classmethod
    def from_state(cls, state: dict[str, Any], arrays: dict[str, Array]) -> Self:
        """Return the transformer that `get_state` described."""
        parameters = state["parameters"]
        kept = {"ngram_range": tuple(parameters["ngram_range"]), "dtype": np.dtype(parameters["dtype"]).type}
        features = cls(**(parameters | kept))
        learned = features._begin()
        learned.restore(arrays)
        learned.n_texts = int(state["n_texts"])
        if np.min(learned.df, initial=0) < 0 or not int(np.max(learned.df, initial=0)) <= learned.n_texts < 1 << 62:
            raise ValueError(f"n_texts is {learned.n_texts}, and a column occurs in more of them, or in fewer than none")
        return features._publish(learned)

    def __sklearn_tags__(self) -> Any:
        """Tell scikit-learn what the transformer takes."""
        tags = super().__sklearn_tags__()
        tags.input_tags.string = True
        tags.input_tags.one_d_array = True
        tags.input_tags.two_d_array = False
        tags.requires_fit = self._needs_fit()
        return tags
