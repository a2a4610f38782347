"""What the verbs do with a tagger of sequences: tag a CoNLL file, evaluate, explain, trace."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import IO, Any

import click
import numpy as np

from separatrix.cli.errors import tell
from separatrix.data.encodings import AUTO
from separatrix.data.errors import DataError, counted
from separatrix.data.options import TextOptions
from separatrix.modelfile.archive import load
from separatrix.modelfile.model import Model
from separatrix.sequences.conll import COMMENT, ConllFile, tagged_columns
from separatrix.sequences.evaluation import evaluate_sequences

AROUND = 30
"""So many words are shown before and after a token."""


def check_unused(reading: TextOptions, **options: Any) -> str:
    """Raise for an option that means nothing to a tagger; return the encoding of the file."""
    how = reading.reading()
    encoding: str = how.pop("encoding", AUTO)
    for name in (*(name for name, value in options.items() if value not in (None, [])), *how):
        raise DataError(f"--{name.replace('_', '-')} is not for taggers of sequences")
    return encoding


def columns_of(model: Model) -> int:
    """Return how many columns of a file the tagger looks at."""
    features = model.estimator.features_
    if features.kind != "columns":
        raise DataError("the model was trained on attributes in Python, and not on the columns of a file: tag in Python")
    return int(features.n_columns)


def read_for(verb: str, model: Model, data: str, encoding: str, *, tagged: bool) -> ConllFile:
    """Return a file with the columns of the training, and the tags behind them where they are needed."""
    n = columns_of(model)
    file = ConllFile(data, encoding)
    tell(verb, file.notes)
    if len(file.columns) != n + 1 and (tagged or len(file.columns) != n):
        wanted = f"{n + 1}, the tag last" if tagged else f"{n}, or {n + 1} with a tag at the end"
        raise DataError(f"{file.name} has {counted(len(file.columns), 'column')}; the model needs {wanted}")
    return file


def predict_sequences(path: Path, data: str, output: Path | None, encoding: str) -> int:
    """Write each line of a file with the predicted tag behind it, as conlleval reads it."""
    from separatrix.data.atomic import replacing

    model = load(path, plain=True)
    file = read_for("predict", model, data, encoding, tagged=False)
    tagger = model.estimator.set_params(n_jobs=-1)
    encoded = tagger.encode(file.sentences(columns_of(model)))
    codes = tagger.predict_codes(encoded)
    separator = "\t" if file.by_tab else " "
    names = np.array([f"{separator}{tag}\n".encode() for tag in tagger.classes_.tolist()], object)
    if output is None:
        _write(sys.stdout.buffer, file, names[codes])
        sys.stdout.buffer.flush()
        return 0
    with replacing(output) as name, open(name, "wb") as out:
        _write(out, file, names[codes])
    click.echo(f"{counted(len(codes), 'tag')} written to {output}", err=True)
    return 0


def _write(out: IO[bytes], file: ConllFile, ends: Any) -> None:
    text = file.columns[0].text.tobytes()
    begins, line_ends = file.columns[0].begin.tolist(), file.columns[-1].end.tolist()
    last_tokens = set((file.starts[1:] - 1).tolist())
    pieces, before = [], 0
    for t, (begin, end, tag) in enumerate(zip(begins, line_ends, ends.tolist(), strict=True)):
        if file.comments:
            pieces += [line for line in text[before:begin].splitlines(keepends=True) if line.startswith(COMMENT)]
            before = end
        pieces += [text[begin:end], tag]
        if t in last_tokens:
            pieces.append(b"\n")
    out.write(b"".join(pieces))


def explain_tags(
    path: Path, data: str, encoding: str, row: int, token: int | None, against: str | None, top: int, as_json: bool
) -> int:
    """Print why a token of a sequence has its tag; without a token, by how much each tag of the sequence leads."""
    model = load(path, plain=True)
    file = read_for("explain", model, data, encoding, tagged=False)
    tagger, sentences = model.estimator, file.sentences(columns_of(model))
    if row > len(sentences):
        raise DataError(f"{data} has {counted(len(sentences), 'sequence')}; there is no sequence {row:,}")
    sentence = sentences[row - 1]
    if token is not None and token > len(sentence):
        raise DataError(f"sequence {row:,} has {counted(len(sentence), 'token')}; there is no token {token:,}")
    places = range(len(sentence)) if token is None else [token - 1]
    explanations = [tagger.explain(sentence, place, against=against, n=top) for place in places]
    if as_json:
        click.echo(json.dumps([each.to_dict() for each in explanations], ensure_ascii=False))
        return 0
    click.echo(f"sequence {row:,}: {_shown([words[0] for words in sentence], token)}\n")
    if token is not None:
        click.echo(explanations[0].text(first=1))
        return 0
    width = max(len(token[0]) for token in sentence)
    for number, (words, each) in enumerate(zip(sentence, explanations, strict=True), 1):
        click.echo(f"{number:>4}  {words[0]:<{width}}  {each.tag}, ahead of {each.against} by {each.lead:.4g}")
    click.echo("\n--token shows the terms of one of them")
    return 0


def _shown(words: list[str], token: int | None) -> str:
    """Return the words of a sequence; of many, those around a token."""
    if token is None:
        return " ".join(words)
    begin, end = max(0, token - 1 - AROUND), token + AROUND
    return " ".join([*["…"] * (begin > 0), *words[begin:end], *["…"] * (end < len(words))])


def trace_tagger(
    data: str, encoding: str, mistake: int | None, order: str, passes: int, seed: int, html: Path | None
) -> int:
    """Train a tagger on a file by the perceptron rule, and show one of its mistakes."""
    from separatrix.sequences.perceptron import ORDERS, SequencePerceptron

    file = ConllFile(data, encoding)
    tell("trace", file.notes)
    X, y = tagged_columns(file)
    if order not in ORDERS:
        raise DataError(f"--order {order} is not for taggers of sequences: use {' or '.join(ORDERS)}")
    model = SequencePerceptron(order=order, max_iter=passes, random_state=seed)
    trace = model.fit(X, y).trace(X, mistake)
    if html is None:
        click.echo(trace.text(first=1))
        return 0
    from separatrix.data.atomic import replacing

    with replacing(html) as name:
        size = Path(name).write_bytes(trace.to_html(first=1).encode())
    click.echo(f"wrote {html} ({size:,} bytes): open it in a browser")
    return 0


def evaluate_tagger(path: Path, data: str, encoding: str, as_json: bool) -> int:
    """Print the figures of a tagger on a file that has tags."""
    model = load(path, plain=True)
    file = read_for("evaluate", model, data, encoding, tagged=True)
    predicted = model.estimator.set_params(n_jobs=-1).predict(file.sentences(columns_of(model)))
    evaluation = evaluate_sequences(file.tags(), predicted)
    click.echo(evaluation.to_json() if as_json else str(evaluation))
    return 0
