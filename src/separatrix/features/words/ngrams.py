"""From texts to n-grams and their hashes, a block of texts at a time; each kind of token is a regular expression."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

from separatrix.engine.rows import Array
from separatrix.features.words.arrow_text import Texts
from separatrix.features.words.characters import NO_TABLE, characters
from separatrix.kernels.text import characters as folding
from separatrix.kernels.text import tokens as kernels
from separatrix.kernels.text.characters import NEITHER, PAD, SINGLE, WORD

BLOCK_BYTES = 1 << 17
BLOCK_TEXTS = 1 << 11


class Kind(NamedTuple):
    """A kind of token: what a character that is neither of a word nor a space is, and whether one-character words count."""

    other: np.uint8
    long_only: bool = False


PATTERNS = {
    r"\w+|[^\w\s]": Kind(SINGLE),
    r"\w+": Kind(NEITHER),
    r"(?u)\b\w\w+\b": Kind(NEITHER, long_only=True),
    r"\S+": Kind(WORD),
}
"""The tokens on offer: each is what `re.findall(pattern, text.lower())` finds."""


class Grams(NamedTuple):
    """The n-grams text[begin[t] : end[t]] of a block, those of its text i from ptr[i] to ptr[i+1].

    The arrays are the analyzer's own: the next block overwrites them.
    """

    text: Array
    begin: Array
    end: Array
    hashes: Array
    ptr: Array

    @property
    def n_texts(self) -> int:
        """How many texts the block has."""
        return len(self.ptr) - 1


class Scratch:
    """Buffers that grow when asked for more and are never given back: one for each name."""

    def __init__(self) -> None:
        self._buffers: dict[str, Array] = {}

    def room(self, name: str, size: int, dtype: Any) -> Array:
        """Return the first `size` entries of a buffer; what it held is lost when it grows."""
        buffer = self._buffers.get(name)
        if buffer is None or len(buffer) < size:
            buffer = self._buffers[name] = np.empty(size + size // 4, dtype)
        return buffer[:size]


class Analyzer:
    """Makes n-grams of texts: words (`token_pattern`), characters, or characters within words."""

    def __init__(self, analyzer: str, token_pattern: str, ngram_range: tuple[int, int], lowercase: bool) -> None:
        self.analyzer = analyzer
        self.kind = PATTERNS[token_pattern if analyzer == "word" else r"\S+"]
        self.low, self.high = ngram_range
        self.lowercase = lowercase
        self.scratch = Scratch()
        self.table = NO_TABLE

    def blocks(self, chunks: list[Texts]) -> Iterator[tuple[Grams, float]]:
        """Yield the n-grams of all texts, block after block, each with the share of the bytes that has been read by then."""
        done, total = 0, sum(texts.size for texts in chunks)
        for texts in chunks:
            for begin, end in self._cuts(texts):
                block = texts.part(begin, end)
                done += block.size
                yield self._grams(*block), done / max(1, total)

    def _cuts(self, texts: Texts) -> Iterator[tuple[int, int]]:
        """Yield ranges of texts that fit into the nearer caches together with their n-grams."""
        size = BLOCK_BYTES if self.analyzer == "word" else BLOCK_BYTES // (2 * (self.high - self.low + 1))
        total = np.cumsum(texts.end - texts.begin)
        begin, n = 0, len(total)
        while begin < n:
            before = total[begin - 1] if begin else 0
            end = int(np.searchsorted(total, before + size, side="right"))
            end = min(max(end, begin + 1), begin + BLOCK_TEXTS, n)
            yield begin, end
            begin = end

    def _grams(self, data: Array, begin: Array, end: Array) -> Grams:
        room, n = self.scratch.room, len(begin)
        text, at, kinds = self._folded(data, begin, end)
        if self.analyzer == "char":
            size = int(at[-1]) + PAD
            text, folded = room("laid", size, np.uint8), text
            starts, stops = room("piece begin", size, np.uint32), room("piece end", size, np.uint32)
            sizes, groups = room("sizes", n, np.int64), np.ones(n, np.int64)
            kernels.lay_characters(folded, kinds, at, text, starts, stops, sizes)
        else:
            text, starts, stops, sizes, groups = self._words(text, at, kinds)
        ptr = room("ptr", n + 1, np.int64)
        within = self.analyzer == "char_wb"
        total = kernels.count_grams(sizes, groups, self.low, self.high, within, ptr)
        if self.low != 1 or self.high != 1:
            first, last = room("gram begin", total, np.uint32), room("gram end", total, np.uint32)
            kernels.find_grams(starts, stops, sizes, self.low, self.high, within, first, last)
        else:
            first, last = starts[:total], stops[:total]
        hashes = room("hashes", total, np.uint32)
        kernels.hash_grams(text, first, last, hashes)
        return Grams(text, first, last, hashes, ptr)

    def _folded(self, data: Array, begin: Array, end: Array) -> tuple[Array, Array, Array]:
        """Return the lower-cased text of a block, where each text begins in it, and the kind of each byte."""
        n, longest = len(begin), int((end - begin).sum())
        at = self.scratch.room("at", n + 1, np.uint32)
        while True:
            size = (longest if self.table is NO_TABLE else 3 * longest) + n + PAD
            text, kinds = self.scratch.room("text", size, np.uint8), self.scratch.room("kinds", size, np.uint8)
            if folding.fold(data, begin, end, *self.table, self.lowercase, int(self.kind.other), text, kinds, at):
                return text, at, kinds
            self.table = characters()

    def _words(self, text: Array, at: Array, kinds: Array) -> tuple[Array, Array, Array, Array, Array]:
        """Return (text, begin, end, pieces of each run, runs of each text): words of texts, or characters of words."""
        room, n, size = self.scratch.room, len(at) - 1, int(at[-1])
        starts, stops = room("begin", size + 1, np.uint32), room("end", size + 1, np.uint32)
        sizes = room("sizes", n, np.int64)
        n_tokens = kernels.find_tokens(kinds, size, self.kind.other == SINGLE, starts, stops)
        if self.kind.long_only:
            n_tokens = kernels.drop_single(text, n_tokens, starts, stops)
        kernels.deal_tokens(at, n_tokens, starts, sizes)
        if self.analyzer == "char_wb":
            laid = room("laid", size + 2 * n_tokens + PAD, np.uint8)
            first, last = (room(name, size + 2 * n_tokens, np.uint32) for name in ("piece begin", "piece end"))
            lengths = room("word sizes", n_tokens, np.int64)
            kernels.lay_padded_words(text, n_tokens, starts, stops, laid, first, last, lengths)
            return laid, first, last, lengths, sizes
        if self.high > 1:
            laid = room("laid", size + n_tokens + PAD, np.uint8)
            kernels.lay_apart(text, n_tokens, starts, stops, laid)
            text = laid
        return text, starts, stops, sizes, np.ones(n, np.int64)
