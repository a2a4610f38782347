"""`save` and `load`: a model in one file, safetensors with one key of canonical JSON, and no pickle.

The key `separatrix` holds {"body": …, "sha256": …}: the body says which classes are inside, with their parameters and what
they were trained on; the checksum covers the body and all arrays, so that a corrupted file is detected. A valid checksum
does not make a file honest: whatever is read is checked before it is used (`engine.parcel` and the `unpack` of each class).
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from safetensors import SafetensorError, safe_open
from safetensors.numpy import save_file

from separatrix import __version__
from separatrix.data.atomic import is_regular, replacing
from separatrix.data.errors import OutputError
from separatrix.engine.parcel import Parcel, StateError, flag, number, whole, word
from separatrix.engine.pipelines import parts_of
from separatrix.modelfile.errors import ModelFileError
from separatrix.modelfile.model import Model
from separatrix.modelfile.registry import (
    CLASSIFIERS,
    pack_classifier,
    pack_featurizer,
    unpack_classifier,
    unpack_featurizer,
)

if TYPE_CHECKING:
    from separatrix.engine.protocols import Featurizer, Learner
    from separatrix.kernels.arrays import Array

FORMAT = 3
"""Raised when files are written that an older version would misread; every older format stays readable.

A file has the lowest format that can describe it (`Parcel.format`). Format 2 has a threshold of the decision between two
classes, masks, float32, and models that cannot continue to learn. Format 3 has taggers of sequences.
"""
KEY = "separatrix"
MOST_HEADER_BYTES = 1 << 26


def save(
    model: Learner | Model | Any,
    path: str | os.PathLike[str],
    *,
    features: Featurizer | None = None,
    facts: dict[str, Any] | None = None,
    arrays: dict[str, Array] | None = None,
    ledger: bool = True,
    resume: bool = True,
    float32: bool = False,
) -> None:
    """Write a fitted classifier, or a `Model`, to a file: all of it, so that learning can continue exactly as it would have.

    The file appears under its name only when it is complete and on the disk; until then an earlier file stays.

    Parameters
    ----------
    model : any of our fitted classifiers, a `Model`, or scikit-learn's `Pipeline` of our featurizer and our classifier
    path : the file to write, by custom with the ending .sepx
    features : the fitted featurizer before the classifier, or None
    facts, arrays : what else to store: JSON values (the data, their schema, their checksum), and arrays by name
    ledger : False leaves the mistakes out: a smaller file, that predicts and learns the same and cannot replay or explain by
        mistakes. A voted and a kernel perceptron predict with their mistakes, and need them.
    resume : False leaves out the mistakes and all else that only further learning needs, such as the sums behind averaged
        weights: a file that predicts the same, and cannot continue to learn. Of a `FisherDiscriminant` and a
        `MaxMarginClassifier` nothing is left out.
    float32 : True rounds the weights to float32, which may change predictions where two scores are nearly equal

    Examples
    --------
    >>> import tempfile
    >>> from separatrix import Perceptron, load, save
    >>> path = tempfile.mkdtemp() + "/and.sepx"
    >>> save(Perceptron().fit([[0, 0], [0, 1], [1, 0], [1, 1]], [0, 0, 0, 1]), path)
    >>> load(path).predict([[1, 1], [1, 0]]).tolist()
    [1, 0]
    """
    if isinstance(model, Model):
        model.check_fitted()
        facts = model.facts if facts is None else facts
    if not isinstance(facts or {}, dict):
        raise ModelFileError(f"facts is a {type(facts).__name__}, not a dict")
    estimator, own_features = parts_of(model)
    features = own_features if features is None else features
    parcel = Parcel(ledger=ledger, resume=resume, float32=float32)
    try:
        body: dict[str, Any] = {
            "version": __version__,
            "estimator": pack_classifier(estimator, parcel, "estimator"),
            "features": None if features is None else pack_featurizer(features, parcel, "features"),
            "facts": facts or {},
            "whole": parcel.ledger,
            "arrays": sorted(arrays or {}),
        }
    except StateError as error:
        raise ModelFileError(str(error)) from None
    body["format"] = parcel.format
    for name, array in (arrays or {}).items():
        if array.dtype.kind not in "biuf":
            raise ModelFileError(f"arrays[{name!r}] holds {array.dtype}, which a model file cannot store")
        parcel.put(f"arrays.{name}", array)
    _check_width(features, estimator.n_features_in_)
    try:
        body = json.loads(_canonical(body))  # the keys of which are strings, and sorted as such
        text = _canonical(body)
        metadata = {KEY: _canonical({"body": body, "sha256": _checksum(text, parcel.arrays)})}
    except (TypeError, ValueError, RecursionError) as error:
        raise ModelFileError(f"facts must be JSON values: {error}") from None
    _check_loads(_Content(body, Parcel(parcel.arrays), ""))
    with replacing(path) as temporary:
        try:
            save_file(parcel.arrays, temporary, metadata)
        except SafetensorError as error:
            raise OutputError(f"{os.fspath(path)} could not be written: {error}") from None
        with open(temporary, "rb") as file:
            header = int.from_bytes(file.read(8), "little")
        if header > MOST_HEADER_BYTES:
            raise ModelFileError(
                f"facts and names take {header:,} bytes, more than the {MOST_HEADER_BYTES:,} that a model file may have"
            )


def learned_checksum(model: Learner | Model | Any) -> str:
    """Return the SHA-256 of what a model has learned and of its parameters, whatever its facts and its version; −0 is 0."""
    estimator, features = parts_of(model)
    parcel = Parcel()
    parts = [pack_classifier(estimator, parcel, "estimator")]
    if features is not None:
        parts.append(pack_featurizer(features, parcel, "features"))
    # A float array has both signs of zero where an addition has made −0 of it.
    arrays = {name: array + 0.0 if array.dtype.kind == "f" else array for name, array in parcel.arrays.items()}
    return _checksum(_canonical(parts), arrays)


def load(path: str | os.PathLike[str], *, plain: bool = False) -> Model:
    """Read a model file, whoever wrote it: its contents are checked, and none of them is executed.

    Raises `ModelFileError`, a ValueError, with one line that names the file and what is wrong with it.

    Parameters
    ----------
    path : the file to read
    plain : True: linear learners and featurizers as plain classes, which need no scikit-learn

    Examples
    --------
    See `save`:

    >>> from separatrix import load
    >>> load("no.sepx")
    Traceback (most recent call last):
    FileNotFoundError: [Errno 2] No such file or directory: 'no.sepx'
    """
    with _errors_named(path):
        return _model(_read(os.fspath(path)), plain)


def _model(content: _Content, plain: bool) -> Model:
    """Return the model that a file holds."""
    body, parcel = content.body, content.parcel
    estimator = unpack_classifier(body["estimator"], parcel, "estimator", plain)
    features = _features(content, estimator.n_features_in_, plain)
    model = Model(estimator, features, body["facts"])
    model.arrays = {name: parcel.arrays[f"arrays.{name}"] for name in body.get("arrays", [])}
    model.version, model.sha256 = str(body["version"]), content.sha256
    return model


def _check_loads(content: _Content) -> None:
    """Raise for what `load` would refuse, before it is written: weights that are not finite, unknown parameters."""
    try:
        _model(content, plain=True)
    except Exception as error:
        raise ModelFileError(f"this model cannot be saved, since it could not be loaded: {_reason(error)}") from error


def holds_tagger(path: str | os.PathLike[str]) -> bool:
    """Tell whether a model file holds a tagger of sequences; what is wrong with the file is for `load` to say."""
    try:
        with safe_open(path, framework="np") as file:
            return '"class":"SequencePerceptron"' in (file.metadata() or {}).get(KEY, "")
    except (OSError, SafetensorError):
        return False


class Description(NamedTuple):
    """What a model file says of itself: `describe` returns it."""

    class_name: str
    parameters: dict[str, Any]
    classes: list[Any]
    n_features: int
    mistakes: int
    passes: int
    features: Any
    facts: dict[str, Any]
    threshold: float | None
    resumable: bool


def describe(path: str | os.PathLike[str]) -> Description:
    """Read what a model file says of itself, without making the classifier: nothing is compiled or even imported for it."""
    with _errors_named(path):
        content = _read(os.fspath(path))
        state, parcel = content.body["estimator"], content.parcel
        n_features = whole(state, "n_features", 1)
        mistakes, passes = [], whole(state, "n_iter") if "n_iter" in state else 0
        for name in (f"estimator.run{state.get('chosen', 0)}.per_pass", "estimator.mistakes_per_pass_"):
            if name in parcel.arrays:
                mistakes = parcel.take(name, "i8", (-1,), low=0).tolist()
                passes = len(mistakes)
        return Description(
            word(state, "class", CLASSIFIERS),
            {name: parcel.take_value(f"estimator.{name}", value) for name, value in state["parameters"].items()},
            parcel.take_labels("estimator.classes", state["classes"]).tolist(),
            *(n_features, sum(mistakes), passes),
            *(_features(content, n_features, True), content.body["facts"]),
            number(state, "threshold") if "threshold" in state else None,
            all(flag({"resumable": True} | run, "resumable") for run in state.get("runs", [])),
        )


@contextmanager
def _errors_named(path: str | os.PathLike[str]) -> Iterator[None]:
    """Turn whatever is wrong with a file into one line that names it."""
    try:
        yield
    except OSError:
        raise
    except (ModelFileError, StateError) as error:
        raise ModelFileError(f"{os.fspath(path)}: {error}") from None
    except Exception as error:
        raise ModelFileError(f"{os.fspath(path)} is corrupted or was tampered with: {_reason(error)}") from error


def _reason(error: Exception) -> str:
    return str(error).split("\n")[0][:200] or type(error).__name__


class _Content(NamedTuple):
    body: dict[str, Any]
    parcel: Parcel
    sha256: str


def _read(path: str) -> _Content:
    """Read a file, and check its format and its checksum."""
    with as_file(path) as name:
        return _read_file(name)


@contextmanager
def as_file(path: str | os.PathLike[str]) -> Iterator[str]:
    """Give the name of a file that can be read twice: `path` itself, or a temporary copy of what a pipe gives."""
    if is_regular(path):
        yield os.fspath(path)
        return
    with tempfile.NamedTemporaryFile(prefix="separatrix-") as copy:
        with open(path, "rb") as source:
            shutil.copyfileobj(source, copy)
        copy.flush()
        yield copy.name


def _read_file(path: str) -> _Content:
    _check_header(path)
    try:
        with safe_open(path, framework="np") as file:
            text = (file.metadata() or {}).get(KEY)
            if text is None:
                raise ModelFileError("a safetensors file, but not a separatrix model")
            content = json.loads(text, parse_constant=_no_constant)
            body = content["body"]
            if whole(body, "format", 1) > FORMAT:
                raise ModelFileError(
                    f"written by separatrix {body.get('version')!s:.20} in format {body['format']}, and separatrix "
                    f"{__version__} knows formats up to {FORMAT}: update it to read this file"
                )
            arrays = {name: file.get_tensor(name) for name in file.keys()}
    except SafetensorError as error:
        raise ModelFileError(f"not a complete safetensors file: {str(error)[:200]}") from None
    if _checksum(_canonical(body), arrays) != content["sha256"]:
        raise ModelFileError("checksum mismatch: the file is corrupted")
    flag(body, "whole")
    if not isinstance(body["facts"], dict):
        raise ModelFileError("its facts are not a JSON object")
    return _Content(body, Parcel(arrays), content["sha256"])


def _features(content: _Content, n_features: int, plain: bool) -> Any:
    """Return the featurizer of a file, or None."""
    state = content.body["features"]
    if state is None:
        return None
    _check_hashed(state, n_features)
    features = unpack_featurizer(state, content.parcel, "features", plain)
    _check_width(features, n_features)
    return features


def _check_header(path: str) -> None:
    """Refuse what cannot be a safetensors file before anything parses it."""
    with open(path, "rb") as file:
        begin, size = file.read(9), os.fstat(file.fileno()).st_size
    length = int.from_bytes(begin[:8], "little")
    if len(begin) < 9 or begin[8:] != b"{":
        raise ModelFileError("not a model file")
    if not 2 <= length <= min(MOST_HEADER_BYTES, size - 8):
        raise ModelFileError(f"corrupted or truncated: its header claims {length:,} bytes, and the file has {size:,}")


def _no_constant(name: str) -> Any:
    raise ModelFileError(f"{name} is not a JSON value")


def _canonical(value: Any) -> str:
    return json.dumps(value, sort_keys=True, separators=(",", ":"), allow_nan=False)


def _checksum(text: str, arrays: dict[str, Array]) -> str:
    """Return the SHA-256 of the body and of all arrays, in the order of their names."""
    total = hashlib.sha256(text.encode())
    for name in sorted(arrays):
        array = arrays[name]
        little = array.dtype.newbyteorder("<")
        total.update(_canonical([name, little.str, array.shape]).encode())
        total.update(np.ascontiguousarray(array, dtype=little).data)
    return total.hexdigest()


def _check_width(features: Any, d: int) -> None:
    width = getattr(features, "n_features_out_", d)
    if width != d:
        raise ModelFileError(f"the featurizer makes {width:,} features and the classifier was trained on {d:,}")


def _check_hashed(state: Any, d: int) -> None:
    """Refuse hashed columns beyond those of the classifier before room is made for them."""
    if isinstance(state, dict):
        learned = state.get("parameters") if "n_texts" in state else None
        if isinstance(learned, dict) and learned.get("columns") == "hashed" and whole(learned, "n_features") > d:
            raise ModelFileError(f"its featurizer is wider than the {d:,} features of its classifier")
        state = list(state.values())
    for part in state if isinstance(state, list) else ():
        _check_hashed(part, d)
