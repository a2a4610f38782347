"""Feature templates: `word[-1]`, `suffix3[0]`, `word[-1]|word[0]`, `shape[0]`, `pos[1]`, compiled for the kernels.

| view | what it is |
|---|---|
| `word`, `pos`, `col2`, `col3`, … | the first, second, third, … column |
| `lower` | the word in lower case |
| `prefix3`, `suffix3` | its first or last three characters (any number) |
| `shape` | X for capitals, x for other letters, d for digits, other characters themselves: Xxxx-dd |
| `brief` | the same with repetitions left out: Xx-d |
| `bias` | nothing: a feature that every token has |

The number in brackets says how many tokens after the present one the view is taken; parts that are joined by `|` are one
feature.
"""

from __future__ import annotations

import hashlib
import re
from collections import Counter
from collections.abc import Sequence
from functools import partial
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from separatrix.data.errors import did_you_mean
from separatrix.engine.parcel import Parcel, State, StateError, whole
from separatrix.engine.rows import NO_WEIGHT, Array, frozen
from separatrix.kernels.sequences import templates as kernels
from separatrix.kernels.threads import in_order
from separatrix.sequences.encoded import Encoded
from separatrix.sequences.tokens import Sentences, Values, distinct, padded

DEFAULT = "default"
FARTHEST = 100
BLOCK_TOKENS = 1 << 14
"""So many tokens get their features in one call of the kernel."""
_VIEWS = {"word": kernels.WHOLE, "lower": kernels.LOWER, "shape": kernels.SHAPE, "brief": kernels.BRIEF}
_NAMED_VIEWS = (*_VIEWS, "pos", "prefix3", "suffix3", "col2", "bias")
_WORD_TEMPLATES = (
    "bias",
    *(f"word[{i}]" for i in (-2, -1, 0, 1, 2)),
    *(f"word[{i}]|word[{i + 1}]" for i in (-2, -1, 0, 1)),
    "word[-1]|word[0]|word[1]",
    *("lower[0]", "shape[0]", "brief[-1]", "brief[0]", "brief[1]"),
    *(f"prefix{n}[0]" for n in (2, 3, 4)),
    *(f"suffix{n}[0]" for n in (1, 2, 3, 4)),
    *("suffix3[-1]", "suffix3[1]"),
)
_TAG_TEMPLATES = (
    *(f"pos[{i}]" for i in (-2, -1, 0, 1, 2)),
    *(f"pos[{i}]|pos[{i + 1}]" for i in (-2, -1, 0, 1)),
    *(f"pos[{i}]|pos[{i + 1}]|pos[{i + 2}]" for i in (-2, -1, 0)),
    *("word[0]|pos[-1]", "word[0]|pos[1]", "word[-1]|pos[0]", "word[1]|pos[0]"),
)


class View(NamedTuple):
    """A view: of which column, its kind for the kernels, and a number of characters."""

    column: int
    kind: int
    n: int


class Part(NamedTuple):
    """A view of the token so many places after the present one."""

    view: View
    offset: int


def default_templates(n_columns: int) -> list[str]:
    """Return a good set of templates for words, for words with parts of speech, and for more columns."""
    more = [f"col{c}[{i}]" for c in range(2, n_columns) for i in (-1, 0, 1)]
    return [*_WORD_TEMPLATES, *(_TAG_TEMPLATES if n_columns > 1 else ()), *more]


def parse_template(text: str, n_columns: int) -> list[Part]:
    """Return the parts of a template.

    Examples
    --------
    >>> parse_template("word[-1]|suffix3[0]", 1)
    [Part(view=View(column=0, kind=0, n=0), offset=-1), Part(view=View(column=0, kind=3, n=3), offset=0)]
    """
    if text.strip() == "bias":
        return []
    parts = []
    for piece in text.split("|"):
        match = re.fullmatch(r"\s*([a-z]+)(\d*)\s*\[\s*([+-]?\d{1,3})\s*\]\s*", piece)
        if not match:
            raise ValueError(f"the template {text!r} has the part {piece!r}: write a view and a place, such as word[-1]")
        name, digits, offset = match[1], match[2], int(match[3])
        if name in _VIEWS and not digits:
            view = View(0, _VIEWS[name], 0)
        elif name in ("prefix", "suffix") and digits and int(digits):
            view = View(0, kernels.PREFIX if name == "prefix" else kernels.SUFFIX, int(digits))
        elif (name == "pos" and not digits) or (name == "col" and digits):
            view = View(1 if name == "pos" else int(digits), kernels.WHOLE, 0)
        else:
            near = did_you_mean(name + digits, _NAMED_VIEWS)
            raise ValueError(f"the template {text!r} has the unknown view {name + digits!r}{near}")
        if view.column >= n_columns:
            only = "only one column" if n_columns == 1 else f"{n_columns} columns"
            raise ValueError(f"the template {text!r} needs column {view.column}, counted from 0, and the tokens have {only}")
        if abs(offset) > FARTHEST:
            raise ValueError(f"the template {text!r} looks {abs(offset)} tokens away; {FARTHEST} is the farthest")
        parts.append(Part(view, offset))
    return parts


def shape(word: str, brief: bool = False) -> str:
    """Return the shape of a word.

    Examples
    --------
    >>> shape("Boeing-747"), shape("Boeing-747", brief=True)
    ('Xxxxxx-ddd', 'Xx-d')
    """
    signs = [chr(code) if (code := _class(c)) else c for c in word]
    return "".join(sign for i, sign in enumerate(signs) if not brief or not i or signs[i - 1] != sign)


def _class(character: str) -> int:
    if character.isdigit():
        return ord("d")
    return 0 if not character.isalpha() else ord("X" if character.isupper() or character.istitle() else "x")


_ASCII = np.array([_class(chr(c)) for c in range(128)], np.uint8)


def _classes(values: Values) -> Array:
    """Return the class of each character that occurs, by its code point."""
    beyond = values.text[values.text > 127]
    if not beyond.size:
        return frozen(np.append(_ASCII, np.zeros(0x110000 - 128, np.uint8)))
    table = np.zeros(0x110000, np.uint8)
    table[:128] = _ASCII
    for character in set(bytes(values.text).decode("utf-8", "replace")):
        table[ord(character)] = _class(character)
    return frozen(table)


class TemplateFeatures:
    """The features that templates make of columns of tokens, each with its number.

    Parameters
    ----------
    templates : "default", or a list of templates
    n_features : None: a vocabulary of all features met; else so many hashed features
    """

    kind = "columns"

    def __init__(self, templates: str | Sequence[str] = DEFAULT, n_features: int | None = None) -> None:
        self.templates, self.hashed_to = templates, None if n_features is None else int(n_features)
        self.used: list[str] = []
        self.n_columns = self._size = 0
        self._keys, self._numbers = np.empty(0, np.uint64), np.zeros(16, np.int32)

    @property
    def n(self) -> int:
        """How many features there are."""
        return self.hashed_to or self._size

    def _compile(self, n_columns: int) -> None:
        """Turn the templates into arrays for the kernel, once the number of columns is known."""
        if not self.used:
            used = default_templates(n_columns) if isinstance(self.templates, str) else list(self.templates)
            unfit = [text for text in used if not isinstance(text, str)]
            if not used or unfit:
                what = f"{unfit[0]!r:.60} is none" if unfit else "it is empty"
                raise ValueError(f"templates must be a list of strings such as 'word[0]', and {what}")
            repeated = {text for text, count in Counter(used).items() if count > 1}
            if repeated:
                raise ValueError(f"templates must be a list of different ones; repeated: {sorted(repeated)}")
            self.used, self.n_columns = used, n_columns
        parsed = [parse_template(text, self.n_columns) for text in self.used]
        parts = [part for template in parsed for part in template]
        self._views = sorted({part.view for part in parts})
        place_of = {view: place for place, view in enumerate(self._views)}
        self._parts = tuple(
            frozen(np.array(column, kind))
            for column, kind in (
                (np.append(0, np.cumsum([len(template) for template in parsed])), np.int64),
                ([place_of[part.view] for part in parts], np.int64),
                ([part.offset for part in parts], np.int64),
                ([_seed(text) for text in self.used], np.uint64),
            )
        )

    def encode(self, X: Any, learn: bool, keep_unknown: bool = False, threads: int = 1) -> Encoded:
        """Return sequences of tokens; features that are new get a number (`learn`) or are left out."""
        sentences = Sentences.of(X)
        width, n_tokens = len(sentences.columns), int(sentences.starts[-1])
        if not n_tokens:
            return Encoded.of(sentences.starts, NO_WEIGHT, np.empty(0), np.zeros(1))
        if not self.used or not hasattr(self, "_parts"):
            self._compile(width)
        if width != self.n_columns:
            raise ValueError(f"the tokens have {width} columns, but the model was trained on {self.n_columns}")
        looked_at = self._look(sentences)
        blocks = _blocks(sentences.starts)
        if learn and not self.hashed_to:
            parts = [self._learn(sentences, looked_at, *block) for block in blocks]
        else:
            work = partial(self._find, sentences, looked_at, keep_unknown=keep_unknown)
            parts = list(in_order(lambda block: work(*block), blocks, threads))
        lengths = [0, *np.cumsum([len(indices) for indices, _ in parts[:-1]])]
        indptr = np.concatenate([[0], *(ends[1:] + shift for (_, ends), shift in zip(parts, lengths, strict=True))])
        return Encoded.of(sentences.starts, NO_WEIGHT, np.concatenate([indices for indices, _ in parts]), indptr)

    def _look(self, sentences: Sentences) -> tuple[Array, Array, tuple[Array, Array]]:
        """Return the number of each token's value, the hashes of all views, and where those of each view begin."""
        values = [distinct(column) for column in sentences.columns]
        none = frozen(np.zeros(1, np.uint8)), frozen(np.zeros(1, np.int64))
        hashes, begins = [], [0]
        tables: dict[int, Array] = {}
        for column, kind, n in self._views:
            held = values[column]
            lower = _lowered(held) if kind == kernels.LOWER else none
            if kind in (kernels.SHAPE, kernels.BRIEF) and not tables:
                tables[column] = _classes(held)
            out = np.empty(len(held.offsets) - 1, np.uint64)
            kernels.view(held.text, held.offsets, *lower, tables.get(column, none[0]), kind, n, out)
            hashes.append(out)
            begins.append(begins[-1] + len(out))
        numbers = np.concatenate([held.value_of for held in values])
        places = frozen(np.array(begins, np.int64)), frozen(np.array([v.column for v in self._views] or [0], np.int64))
        return frozen(numbers), frozen(np.concatenate(hashes or [np.zeros(1, np.uint64)])), places

    def _learn(self, sentences: Sentences, looked_at: Any, begin: int, end: int) -> tuple[Array, Array]:
        tokens = int(sentences.starts[end] - sentences.starts[begin])
        most = self._size + tokens * len(self.used)
        if most > len(self._keys):
            self._keys = np.append(self._keys[: self._size], np.zeros(2 * most - self._size, np.uint64))
        if 2 * most > len(self._numbers):
            self._numbers = np.zeros(1 << (2 * most).bit_length(), np.int32)
            kernels.fill(self._keys, self._size, self._numbers)
        indices, indptr, n = self._extract(sentences, looked_at, begin, end, learn=True)
        if n >= 2**31 - 1:
            raise ValueError("the templates make more than 2³¹ features: give n_features, which hashes them")
        self._size = n
        return indices, indptr

    def _find(self, sentences: Sentences, looked_at: Any, begin: int, end: int, keep_unknown: bool) -> tuple[Array, Array]:
        indices, indptr, _ = self._extract(sentences, looked_at, begin, end, keep_unknown=keep_unknown)
        return indices, indptr

    def _extract(
        self, sentences: Sentences, looked_at: Any, begin: int, end: int, learn: bool = False, keep_unknown: bool = False
    ) -> tuple[Array, Array, int]:
        starts, (values, hashes, views) = sentences.starts, looked_at
        tokens, longest = int(starts[end] - starts[begin]), int(np.diff(starts[begin : end + 1]).max())
        indices, indptr = np.empty(tokens * len(self.used), np.int32), np.empty(tokens + 1, np.int64)
        n = kernels.extract(
            *(starts, begin, end, values, int(starts[-1]), hashes, views, self._parts, (self._keys, self._numbers)),
            *(self._size, self.hashed_to or 0, learn, keep_unknown),
            *(np.empty(max(1, longest * len(self.used)), np.uint64), indices, indptr),
        )
        return indices[: int(indptr[-1])], indptr, int(n)

    def names_of(self, X: Any, i: int, t: int) -> list[str]:
        """Return the names of the known features of token t of sequence i, in the order of the encoding."""
        sequence = Sentences.of([X[i]])
        numbers = self.encode(sequence, False, keep_unknown=True).indices.reshape(-1, len(self.used))[t]
        names = [self._name(text, sequence, t) for text in self.used]
        return [name for name, number in zip(names, numbers, strict=True) if number >= 0]

    def _name(self, template: str, sequence: Sentences, t: int) -> str:
        n, shown = int(sequence.starts[-1]), []
        for view, offset in parse_template(template, self.n_columns):
            at = t + offset
            if not 0 <= at < n:
                shown.append(f"<{'start' if at < 0 else 'end'}{at if at < 0 else f'+{at - n + 1}'}>")
                continue
            value = sequence.columns[view.column].at(at)
            made = {
                kernels.WHOLE: value,
                kernels.LOWER: value.lower(),
                kernels.PREFIX: value[: view.n],
                kernels.SUFFIX: value[-view.n :],
                kernels.SHAPE: shape(value),
                kernels.BRIEF: shape(value, True),
            }
            shown.append(made[view.kind])
        return f"{template}={'|'.join(shown)}" if shown else template

    # Saving.

    def pack(self, parcel: Parcel, at: str) -> State:
        """Put the vocabulary into a parcel."""
        parcel.put_strings(f"{at}.templates", self.used)
        if not self.hashed_to:
            parcel.put(f"{at}.keys", self._keys[: self._size])
        return {"kind": self.kind, "columns": self.n_columns, "hashed_to": self.hashed_to}

    @classmethod
    def unpack(cls, state: State, parcel: Parcel, at: str) -> TemplateFeatures:
        """Return the features that a parcel holds."""
        hashed = None if state["hashed_to"] is None else whole(state, "hashed_to", 1, 2**31 - 1)
        features = cls(used := parcel.take_strings(f"{at}.templates"), hashed)
        features._compile(whole(state, "columns", 1, 1 << 16))
        if not hashed:
            keys = parcel.take(f"{at}.keys", "u8", (-1,))
            if len(np.unique(keys)) != len(keys) or not used:
                raise StateError(f"{at}.keys has a feature twice")
            features._number(keys.copy())
        return features

    def _number(self, keys: Array) -> None:
        """Give the features of these hashes, all different, numbers in their order."""
        self._keys, self._size = keys, len(keys)
        self._numbers = np.zeros(1 << max(4, (2 * len(keys)).bit_length()), np.int32)
        kernels.fill(self._keys, self._size, self._numbers)

    def join(self, other: TemplateFeatures) -> None:
        """Take in the features that others met, in their order: those of shards are numbered as those of one file."""
        if other.n_columns != self.n_columns:
            raise ValueError(f"some tokens have {self.n_columns} columns, and others {other.n_columns}")
        if not self.hashed_to:
            keys = np.append(self._keys[: self._size], other._keys[: other._size])
            _, first = np.unique(keys, return_index=True)
            self._number(keys[np.sort(first)])

    def __getstate__(self) -> dict[str, Any]:
        """Return what is pickled: without the room for more features, and without what follows from the rest."""
        state = vars(self) | {"_keys": self._keys[: self._size]}
        return {name: value for name, value in state.items() if name not in ("_numbers", "_views", "_parts")}

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update(state)
        self._number(self._keys)


def _seed(template: str) -> int:
    digest = hashlib.blake2b("".join(template.split()).encode(), digest_size=8).digest()
    return int.from_bytes(digest, "little")


def _lowered(values: Values) -> tuple[Array, Array]:
    """Return the strings in lower case, end to end, and where each begins."""
    try:
        lowered = pc.utf8_lower(values.strings())
    except pa.ArrowInvalid:
        lowered = pa.array([text.lower() for text in values.decoded()], pa.large_string())
    _, offsets, text = lowered.buffers()
    return padded(np.frombuffer(text, np.uint8)), frozen(np.frombuffer(offsets, np.int64)[: len(lowered) + 1])


def _blocks(starts: Array) -> list[tuple[int, int]]:
    """Return ranges of sequences that have about BLOCK_TOKENS tokens each."""
    marks = np.searchsorted(starts, np.arange(0, starts[-1], BLOCK_TOKENS), side="left")
    bounds = np.unique([*marks.tolist(), len(starts) - 1]).tolist()
    return list(pairwise(bounds))
