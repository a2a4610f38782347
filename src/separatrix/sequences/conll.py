"""CoNLL files: a token a line, its columns separated by tabs or spaces, an empty line between sequences."""

from __future__ import annotations

import io
import os
from typing import IO, Any

import numpy as np

from separatrix.data.encodings import AUTO, UTF8, assumed, encoding_called
from separatrix.data.errors import DataError, NoExampleError, counted
from separatrix.data.sniffing import check_text
from separatrix.data.streams import Stream, blocks, expand
from separatrix.engine.rows import Ints, frozen
from separatrix.engine.user_warnings import warn_user
from separatrix.kernels.sequences import columns as kernels
from separatrix.sequences.tokens import Column, Sentences, TagSequences

BLOCK = 1 << 24
DOCUMENT_START = b"-DOCSTART-"
"""What stands in place of a token where a document begins; without the other columns it is taken for an empty line."""
COMMENT = b"# "
_MARK = frozen(np.frombuffer(DOCUMENT_START, np.uint8))


class ConllFile:
    """The tokens of a CoNLL file: its columns, its sequences, and where each token stands.

    Attributes
    ----------
    name, columns, starts : the file, its columns of strings, and the first token of each sequence
    lines : the line of each token, from 1
    comments : how many lines in front of sequences were left out, such as `# text = …` of CoNLL-U
    by_tab : whether tabs separate the columns; else spaces do
    notes : what a person should know of how the file was read
    digest : a hash of the bytes of a pipe, which cannot be read again; None of a file
    """

    def __init__(self, source: str | os.PathLike[str] | IO[bytes], encoding: str = AUTO) -> None:
        encoding = encoding_called(encoding)
        places: list[Any] = [*expand(source)] if isinstance(source, str | os.PathLike) else [source]
        if len(places) != 1:
            raise DataError(f"{os.fspath(source)!s} stands for {len(places)} files: give one CoNLL file")  # type: ignore[arg-type]
        stream = Stream(places[0])
        self.name = stream.name
        try:
            check_text(stream)
            found = stream.as_text(encoding)
            pieces = [block.text[: block.end] for block in blocks(stream, BLOCK)]
            self.digest = None if stream.digest is None else stream.digest.digest()
        finally:
            stream.close()
        self.notes = [assumed(self.name, found)] if encoding == AUTO and found != UTF8 else []
        text = np.concatenate([*pieces, np.zeros(16, np.uint8)])
        size = len(text) - 16
        visible = text[:size] > ord(" ")
        if not visible.any():
            raise NoExampleError(f"{self.name} has no token")
        lines = (line for line in io.BytesIO(bytes(text[:size])) if line.strip() and not _is_bare_mark(line))
        first = next(lines, b"")
        if first.startswith((COMMENT, DOCUMENT_START)):
            first = next((line for line in lines if not line.startswith((COMMENT, DOCUMENT_START))), first)
        if not first:
            raise NoExampleError(f"{self.name} has no token")
        self.by_tab = b"\t" in first
        words = first.rstrip(b"\r\n ").split(b"\t") if self.by_tab else first.rstrip(b"\r\n").split(b" ")
        self._split(frozen(text), size, len(words) if self.by_tab else sum(word != b"" for word in words))
        if not len(self.lines):
            raise NoExampleError(f"{self.name} has no token")

    def _split(self, text: Any, size: int, width: int) -> None:
        n_lines = int(np.count_nonzero(text[:size] == ord("\n")))
        n_tokens = min(n_lines, size // (2 * width) + 1)  # a column takes two bytes; and the line that is read now
        begins, ends = np.empty(n_tokens * width, np.int64), np.empty(n_tokens * width, np.int64)
        starts, lines = np.empty(n_lines + 1, np.int64), np.empty(n_lines, np.int64)
        tokens, sequences, wrong, n, self.comments = map(
            int, kernels.split_lines(text, size, self.by_tab, width, _MARK, begins, ends, starts, lines)
        )
        if wrong:
            if n < 0:
                raise DataError(f"{self.name}, line {wrong}: column {-n} is empty")
            raise DataError(
                f"{self.name}, line {wrong} has {counted(n, 'column')}, and the lines before it have {width}: a line is a "
                f"token with its columns, separated by {'tabs' if self.by_tab else 'spaces'}, or empty"
            )
        self.starts: Ints = starts[: sequences + 1]
        self.lines: Ints = lines[:tokens]
        begin, end = begins[: tokens * width].reshape(tokens, width), ends[: tokens * width].reshape(tokens, width)
        self.columns = [
            Column(text, np.ascontiguousarray(begin[:, c]), np.ascontiguousarray(end[:, c])) for c in range(width)
        ]

    def sentences(self, n_columns: int) -> Sentences:
        """Return the first columns as sequences of tokens."""
        return Sentences(self.columns[:n_columns], self.starts)

    def place(self, i: int, t: int) -> str:
        """Return where token t of sequence i stands."""
        return f"{self.name}, line {self.lines[self.starts[i] + t]},"

    def tags(self) -> TagSequences:
        """Return the last column as tags."""
        return TagSequences.of(self.columns[-1], self.starts)


def read_conll(path: str | os.PathLike[str] | IO[bytes], *, tags: bool = True, encoding: str = AUTO) -> Any:
    r"""Read a CoNLL file: a token a line, columns separated by tabs or spaces, an empty line after each sequence.

    Parameters
    ----------
    path : the file, plain or compressed, or a binary file object
    tags : True: the last column has the tags, and (sentences, tags) is returned; False: there are none, and sentences are
    encoding : of the text, such as "latin-1"; "auto": detected, with a warning where it is not UTF-8

    Returns
    -------
    sentences : `Sentences`, for the X of `SequencePerceptron`
    tags : for its y; a list of lists of strings in all that matters

    Examples
    --------
    >>> import io
    >>> from separatrix import read_conll
    >>> X, y = read_conll(io.BytesIO(b"dogs NNS B-NP\nbark VBP B-VP\n\nyes UH O\n"))
    >>> X[0], y[0]
    ([('dogs', 'NNS'), ('bark', 'VBP')], ['B-NP', 'B-VP'])
    """
    file = ConllFile(path, encoding)
    for note in file.notes:
        warn_user(note, UserWarning)
    if not tags:
        return file.sentences(len(file.columns))
    return tagged_columns(file, "; or use tags=False")


def tagged_columns(file: ConllFile, remedy: str = "") -> tuple[Sentences, TagSequences]:
    """Return the sentences of a file and their tags, which are its last column."""
    if len(file.columns) < 2:
        raise DataError(f"{file.name} has only one column: with tags there are two or more, the tag last{remedy}")
    return file.sentences(len(file.columns) - 1), file.tags()


def _is_bare_mark(line: bytes) -> bool:
    return line.lstrip().startswith(DOCUMENT_START) and len(line.split()) == 1
