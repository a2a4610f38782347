"""`open_source`: any data, by path, pattern, pipe or built-in name, as a stream of batches of bounded size.

    source = open_source("part-*.csv.gz", label="species")
    for batch in source:   # of kind "columns": batch.table, a pyarrow.RecordBatch; of kind "rows": batch.X and batch.y
        ...                # batch.origin.place(i) names row i for a message

A source can be read again and again, except a pipe, unless it is copied into a file (`kept`). Nothing is read twice at once,
and nothing else is kept.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

from separatrix.data import built_in, sniffing
from separatrix.data.batches import BATCH_BYTES, BATCH_ROWS, MISSING, Options
from separatrix.data.encodings import AUTO, UTF8, assumed, encoding_called, first_undecodable, is_undecodable
from separatrix.data.errors import DataError, NoExampleError, ReadAgainError, Skips, counted, did_you_mean
from separatrix.data.formats import FORMATS
from separatrix.data.options import ON_ERROR
from separatrix.data.streams import STDIN, Stream, cores, digest_of, expand, is_pipe

if TYPE_CHECKING:
    import pyarrow as pa

    from separatrix.data.dialects.layouts import Layout
    from separatrix.data.stray_words import StrayWords

Spec = str | os.PathLike[str] | IO[bytes] | Sequence[str | os.PathLike[str]]


class Source:
    """Data as a stream of batches.

    Attributes
    ----------
    kind : "rows", numbers (X and perhaps y), or "columns", a table.
    format : svmlight, csv, jsonl, parquet, arrow, npz or built-in.
    files : the files it is read from.
    schema : the columns and their types, of a table.
    label : the name of the label's column, of a table.
    feature_names : the names of X's columns, of built-in data.
    """

    def __init__(
        self, name: str, places: list[Any], form: str, reader: Any, options: Options, pipe: Stream | None = None
    ) -> None:
        self.name = name
        self.format = form
        self.files = tuple(place if isinstance(place, str) else name for place in places)
        self.kind: str = reader.kind
        self.reader = reader
        self.feature_names: tuple[str, ...] | None = getattr(reader, "feature_names", None)
        self._places = places
        self._options = options
        self._pipe = pipe
        self._used = False
        self._digest: bytes | None = None
        if options.settle and hasattr(reader, "settle"):
            for stream in self._streams():
                reader.settle(stream)
            reader.settled()
        self.schema: pa.Schema | None = getattr(reader, "schema", None)
        self.label: str | None = getattr(reader, "label", None)

    @property
    def rereadable(self) -> bool:
        """Whether it can be read again: a pipe cannot."""
        return self._pipe is None

    @contextmanager
    def kept(self, folder: Path | None = None) -> Iterator[None]:
        """Copy a pipe into a temporary file, decompressed and as UTF-8, from which it can be read again inside a with."""
        if self._pipe is None or self._used:
            yield
            return
        pipe, self._pipe = self._pipe, None
        self._places = [pipe.seekable(folder)]
        self._digest = None if pipe.digest is None else pipe.digest.digest()
        self._options = replace(self._options, encoding=UTF8)
        try:
            yield
        finally:
            pipe.close()

    @property
    def n_features(self) -> int | None:
        """How many features the rows have; of svmlight data, which do not say so, the most seen so far."""
        return getattr(self.reader, "width", None)

    @property
    def why_alone(self) -> str:
        """What a message about a table of one column adds: of text, that no delimiter was found."""
        return getattr(self.reader, "why_alone", "")

    @property
    def delimiter(self) -> str | None:
        """The delimiter of a table of text without a header: a model stores it to know such a table again."""
        return untitled_delimiter(self.reader)

    @property
    def skipped(self) -> int:
        """How many lines were left out, in the reading that is under way or the last one."""
        return self._options.skips.count

    @property
    def problems(self) -> list[str]:
        """Why the first few of them were."""
        return list(self._options.skips.reasons)

    @property
    def notes(self) -> list[str]:
        """What a person should know of how the data were read."""
        return list(self._options.notes.values())

    def add_note(self, name: str, note: str) -> None:
        """Add to the notes, once for each name."""
        self._options.notes.setdefault(name, note)

    def read_as(self, other: Source, unused: Collection[str] = ()) -> None:
        """Read the columns that another table has, too, as that one reads them, as numbers or as text, if they are used."""
        self._options.unused.update(unused)
        if hasattr(self.reader, "settled"):
            self.reader.settled()
        kinds = getattr(self.reader, "kinds", {})
        of_other = {name: kind for name, kind in getattr(other.reader, "kinds", {}).items() if name not in unused}
        kinds |= {name: of_other[name] for name in kinds if of_other.get(name) in ("whole", "number", "text")}
        self.schema = getattr(self.reader, "schema", None)

    def __iter__(self) -> Iterator[Any]:
        self._options.skips.clear()
        rows, has_rows = self._options.batch_rows, False
        if hasattr(self.reader, "strays"):
            self.reader.strays.clear()
        for stream in self._streams():
            for batch in self._adapting(self.reader.batches(stream), stream):
                has_rows = True
                yield from (batch[begin : begin + rows] for begin in range(0, len(batch), rows))
        if not has_rows:
            skipped = f"; skipped {counted(self.skipped, 'line')}, the first: {self.problems[0]}" if self.skipped else ""
            raise NoExampleError(f"{self.name}: there is no example in it{skipped}")
        self._judge_words()

    def _adapting(self, batches: Iterator[Any], stream: Stream | None) -> Iterator[Any]:
        """Yield batches; where labels turn out to be text, have the next reading give text."""
        try:
            yield from batches
        except ReadAgainError as problem:
            if self.rereadable:
                self.schema = self.reader.schema
                raise
            raise DataError(f"{problem}; put the data into a file, which can be read twice") from None
        except DataError as problem:
            if stream is None or not (is_undecodable(str(problem)) and self.rereadable):
                raise
            place = self._places[self.files.index(stream.name)] if stream.name in self.files else self._places[0]
            encoding = stream.encoding if self._options.encoding == AUTO else self._options.encoding
            again = self._open(place)
            found = first_undecodable(again.file, encoding or UTF8)
            again.close()
            raise (
                problem if found is None else DataError(f"{problem} (the byte is at offset {found:,} of the text)")
            ) from None

    def _judge_words(self) -> None:
        """Note the words in columns of numbers; where there are many in one, have the next reading give text, and raise."""
        strays: StrayWords | None = getattr(self.reader, "strays", None)
        if strays is None:
            return
        strays.forget(self._options.unused)
        if not strays.words:
            return
        if self._options.expected is not None:
            many, useless = [], strays.useless()
            if useless:
                raise DataError(f"{self.name}, {strays.finding(useless[0])}; the model has learned numbers")
        else:
            many = strays.many()
        self._options.notes.update((f"words of {name}", strays.note(name)) for name in strays.words if name not in many)
        fixed = [name for name in many if name in self._options.types or not self.rereadable]
        if fixed:
            remedy = "" if self.rereadable else "; put the data into a file, which can be read twice"
            raise DataError(f"{self.name}, {strays.finding(fixed[0])}{remedy}")
        if many:
            self.reader.kinds |= dict.fromkeys(many, "text")
            self.schema = self.reader.schema
            for name in many:
                self._options.notes[f"words of {name}"] = f"{strays.finding(name)}: taken for text"
            raise ReadAgainError(f"{self.name}, {strays.finding(many[0])}; read the source again: the column is text now")

    def _streams(self) -> Iterator[Stream | None]:
        if not self._places:  # built-in data, and data in memory
            yield None
        encoding = self._options.encoding
        for place in self._places:
            stream = self._open(place)
            try:
                if len(self._places) > 1 and (other := sniffing.sniff(stream, encoding)) != self.format:
                    raise DataError(
                        f"{stream.name} looks like {other}, but {self.files[0]} like {self.format}; read them apart"
                    )
                as_text(stream, self.format, self._options)
                yield stream
            finally:
                stream.close()

    def _open(self, place: Any) -> Stream:
        if self._pipe is None:
            if not isinstance(place, str):
                place.seek(0)
            return Stream(place, self.name if len(self._places) == 1 else None)
        if self._used:
            raise DataError(f"{self.name} can be read only once; put the data into a file to read them again")
        self._used = True
        return self._pipe

    def fingerprint(self, digest_of: Callable[[Any], bytes] = digest_of) -> str:
        """Return a hash of the bytes the data come from, whatever the files are called; of a pipe, once it has been read."""
        whole = hashlib.sha256()
        for digest in self._digests(digest_of):
            whole.update(digest)
        return whole.hexdigest()

    def _digests(self, digest_of: Callable[[Any], bytes]) -> Iterator[bytes]:
        if not self._places:
            yield self.reader.digest()
        elif self._digest is not None:
            yield self._digest
        elif self._pipe is not None:
            if not self._used or self._pipe.digest is None:
                raise DataError(f"{self.name} has no fingerprint before it has been read")
            yield self._pipe.digest.digest()
        else:
            yield from map(digest_of, self._places)


def untitled_delimiter(reader: Any) -> str | None:
    """Return the delimiter of a table of text without a header, None of any other data."""
    dialect = getattr(reader, "dialect", None)
    return None if dialect is None or dialect.titled else str(dialect.delimiter)


def open_source(
    spec: Spec,
    *,
    format: str | None = None,
    label: str | int | None = None,
    header: bool | str = "auto",
    delimiter: str | None = None,
    quote: str = "auto",
    types: Mapping[str, str] | None = None,
    missing: Sequence[str] = MISSING,
    zero_based: bool | str = "auto",
    n_features: int | None = None,
    on_error: str = "raise",
    batch_rows: int = BATCH_ROWS,
    batch_bytes: int = BATCH_BYTES,
    threads: int | None = None,
    settle: bool = False,
    columns: Sequence[str] = (),
    encoding: str = "auto",
    label_words: Sequence[str] = (),
    label_needed: bool = True,
    layout: Layout | None = None,
    expected: Mapping[str, str] | None = None,
    unused: Collection[str] = (),
    keep: Sequence[str] = (),
) -> Source:
    r"""Open data: a path or several, a pattern, "-" (standard input), a binary file object, or a built-in name.

    Parameters
    ----------
    format : what it is, where the first bytes would not tell.
    label : the label's column, by name or counted from 0; the last one if not given.
    header, delimiter, quote : of delimited text; "auto" and None: detected from the first lines; quote="" for none.
    types : of columns by name: "number", "whole" or "text".
    missing : what stands for a missing value in delimited text.
    zero_based, n_features : of svmlight.
    on_error : "raise", or "skip" to leave out lines that cannot be read; `skipped` counts them.
    batch_rows, batch_bytes : the most rows of a batch, and about how many bytes are read at a time.
    threads : how many blocks are read at a time; as many as there are cores if not given.
    settle : look at all of a text before its columns get their types, and keep whole numbers whole.
    columns : names that a header would have: a first line that has all of them, or the label's, is one.
    encoding : of text, such as "utf-8", "latin-1" or "utf-16"; "auto": detected from the first megabyte.
    label_words : words that stand for a missing value in other columns of delimited text, but are labels among labels.
    label_needed : whether it is an error if a table has no column of the label's name; else `label` is None there.
    layout : the columns by their places, where a model was trained on a file without a header.
    expected : what a model has learned of columns by name, "number" or "text", some of which may not be there: they are read
        so, and words among numbers are missing. Without it, a column of numbers in which a reading finds 2 % or more words
        is text in the next one, and `ReadAgainError` is raised.
    unused : columns that nobody will look at, such as those that a model leaves out: whatever they hold is no error.
    keep : columns, by name or by number from 0, or "all", whose values as they are written `batch.kept` has.

    Examples
    --------
    >>> import io
    >>> source = open_source(io.BytesIO(b"width,height,kind\n1,2.5,a\n3,?,b\n"))
    >>> source.kind, source.label, source.schema.names
    ('columns', 'kind', ['width', 'height', 'kind'])
    >>> [batch.table.to_pylist()[1] for batch in source]
    [{'width': 3.0, 'height': None, 'kind': 'b'}]
    """
    if on_error not in ON_ERROR:
        raise DataError(f"on_error={on_error!r}: it must be raise or skip")
    if batch_rows < 1 or batch_bytes < 1:
        raise ValueError("batch_rows and batch_bytes must be at least 1")
    for what, sign in (("delimiter", delimiter or ","), ("quote", "" if quote == "auto" else quote)):
        if len(sign) > 1 or not sign.isascii():
            raise ValueError(f"{what} is {sign!r}, not one character of ASCII")
    entry = None if format is None else sniffing.format_called(format)
    if entry is not None and entry.variant_of:
        delimiter = delimiter or entry.options.get("delimiter")
        entry = FORMATS[entry.variant_of]
    form = None if entry is None else entry.name
    options = Options(
        label,
        header,
        delimiter,
        quote,
        dict(types or {}),
        tuple(missing),
        zero_based,
        n_features,
        batch_rows,
        batch_bytes,
        threads or min(cores(), 8),
        settle,
        Skips(on_error == "skip"),
        tuple(columns),
        encoding_called(encoding),
        tuple(label_words),
        label_needed,
        layout,
        expected,
        set(unused),
        tuple(keep),
    )
    if isinstance(spec, str) and form is None and built_in.is_known(spec):
        return Source(spec, [], "built-in", built_in.BuiltInReader(spec, options), options)
    return _from_files(spec, form, options)


def _from_files(spec: Spec, form: str | None, options: Options) -> Source:
    places = _places(spec)
    pipe = next((place for place in places if is_pipe(place)), None)
    if pipe is not None and (len(places) > 1 or options.settle):
        name = "standard input" if pipe == STDIN else getattr(pipe, "name", pipe)
        raise DataError(f"{name} can be read only once, and not beside files")
    stream = Stream(places[0])
    try:
        form = form or sniffing.sniff(stream, options.encoding)
        as_text(stream, form, options)
        reader = FORMATS[form].open(stream, options)
        if reader.kind == "rows" and options.label is not None and options.label_needed:
            what = f"{form} data have their labels with them: there is no column {options.label!r} to choose"
            raise DataError(f"{stream.name}: {what}")
    finally:
        if pipe is None:
            stream.close()
    name = stream.name if len(places) == 1 else f"{stream.name} and {len(places) - 1} more"
    return Source(name, places, form, reader, options, None if pipe is None else stream)


def as_text(stream: Stream, form: str, options: Options) -> None:
    """Have a stream give its text as UTF-8, where the format is one of text; note an encoding that is only assumed."""
    if FORMATS[form].binary:
        return
    encoding = stream.as_text(options.encoding)
    if options.encoding == AUTO and encoding != UTF8:
        options.notes.setdefault(f"encoding of {stream.name}", assumed(stream.name, encoding))


def _places(spec: Spec) -> list[Any]:
    """Return the paths, or the file object, that are meant."""
    if hasattr(spec, "read"):
        return [spec]
    several = [spec] if isinstance(spec, str | os.PathLike) else list(spec)
    if not several:
        raise DataError("no file is named")
    places = [place for each in several for place in expand(each)]
    for place in places:
        if place != STDIN and not Path(place).exists():
            names = ", ".join(built_in.NAMES)
            near = _nearest(place)
            raise DataError(f"{place}: no such file, and no built-in name ({names}, lecture:L4.1 and so on){near}")
    return places


def _nearest(place: str) -> str:
    """Return a question about a file of the same folder, or a built-in name, that is written much like this path."""
    folder = Path(place).parent
    files = [entry.name for entry in folder.iterdir()] if folder.is_dir() else []
    return did_you_mean(Path(place).name, [*files[:1000], *built_in.NAMES])
