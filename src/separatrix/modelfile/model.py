"""A model in one file: safetensors with one key of canonical JSON. No pickle; the same training gives the same bytes.

The key `separatrix` holds {"body": …, "sha256": …}: the body says which classes are inside, with their parameters and what
they were trained on, and the sum is over the body and all arrays, so that a damaged file is told from a whole one. That a
file is whole does not make it honest: whatever is read is checked before it is used (packing.py, states.py, runs.py).
"""

from __future__ import annotations

import glob
import hashlib
import json
import os
import platform
import secrets
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import numpy as np
from safetensors import SafetensorError, safe_open
from safetensors.numpy import save_file
from sklearn.utils.validation import check_is_fitted

from separatrix import __version__
from separatrix.engine.rows import Array, Floats
from separatrix.modelfile.parcel import ModelFileError as ModelFileError
from separatrix.modelfile.parcel import Parcel, flag, whole
from separatrix.modelfile.states import CLASSIFIERS, FEATURES, pack, unpack

FORMAT = 1
"""Raised when files are written that an older version would misread; every older format stays readable."""
KEY = "separatrix"
MOST_HEADER_BYTES = 1 << 26


class Model:
    """What a model file holds: a classifier, the featurizer before it or None, and facts about the training.

    Examples
    --------
    >>> from separatrix import Model, Perceptron, TextFeatures
    >>> texts, labels = ["free money", "see you at noon"], ["spam", "ham"]
    >>> features = TextFeatures(n_features=1024).fit(texts)
    >>> model = Model(Perceptron(random_state=0).fit(features.transform(texts), labels), features)
    >>> model.predict(["free entry"]).tolist()
    ['spam']
    """

    def __init__(self, estimator: Any, features: Any = None, facts: dict[str, Any] | None = None) -> None:
        self.estimator, self.features = estimator, features
        self.facts: dict[str, Any] = {} if facts is None else facts
        self.arrays: dict[str, Array] = {}
        self.version, self.sha256 = __version__, ""

    def transform(self, X: Any) -> Any:
        """Return what the classifier sees of X: its features, or X itself where there is no featurizer."""
        return X if self.features is None else self.features.transform(X)

    def predict(self, X: Any) -> Array:
        """Return the predicted labels of the rows of a table, of texts, or of X."""
        labels: Array = self.estimator.predict(self.transform(X))
        return labels

    def decision_function(self, X: Any) -> Floats:
        """Return the scores of the rows."""
        scores: Floats = self.estimator.decision_function(self.transform(X))
        return scores

    def predict_proba(self, X: Any) -> Floats:
        """Return the probability of each class, where the classifier was calibrated."""
        shares: Floats = self.estimator.predict_proba(self.transform(X))
        return shares

    def info(self) -> dict[str, Any]:
        """Return what there is to know at a glance."""
        estimator, ledger = self.estimator, getattr(self.estimator, "ledger_", None)
        told: dict[str, Any] = {
            "estimator": type(estimator).__name__,
            "parameters": estimator.get_params(deep=False),
            "features": None if self.features is None else type(self.features).__name__,
            "n_features": int(estimator.n_features_in_),
            "classes": estimator.classes_.tolist(),
        }
        if ledger is not None:
            told["ledger"] = {"mistakes": len(ledger), "left_out": ledger.absent, "rows_stored": ledger.stored is not None}
        return told | {"facts": self.facts, "version": self.version, "sha256": self.sha256}

    def __repr__(self) -> str:
        before = "" if self.features is None else f"{type(self.features).__name__} → "
        classes = f"{len(self.estimator.classes_)} classes"
        return f"<Model: {before}{type(self.estimator).__name__}, {self.estimator.n_features_in_:,} features, {classes}>"


def save(
    model: Any,
    path: str | os.PathLike[str],
    *,
    features: Any = None,
    facts: dict[str, Any] | None = None,
    arrays: dict[str, Array] | None = None,
    ledger: bool = True,
) -> None:
    """Write a fitted classifier, or a `Model`, to a file: all of it, so that it goes on learning exactly as it would have.

    The file appears under its name only when it is complete and on the disk; until then the one before stays.

    Parameters
    ----------
    model : any of our fitted classifiers, or a `Model`
    path : the file to write, by custom with the ending .sepx
    features : the fitted featurizer that the classifier stands behind, or None
    facts, arrays : what else to keep: JSON values (the data, their schema, their sum), and arrays by name
    ledger : False leaves the mistakes out: a smaller file, that predicts and learns the same and cannot replay or explain by
        mistakes. A voted perceptron predicts with its mistakes, and needs them.

    Examples
    --------
    >>> import tempfile
    >>> from separatrix import Perceptron, load, save
    >>> path = tempfile.mkdtemp() + "/and.sepx"
    >>> save(Perceptron().fit([[0, 0], [0, 1], [1, 0], [1, 1]], [0, 0, 0, 1]), path)
    >>> load(path).predict([[1, 1], [1, 0]]).tolist()
    [1, 0]
    """
    if not isinstance(model, Model):
        model = Model(model)
    estimator, features = model.estimator, model.features if features is None else features
    check_is_fitted(estimator)
    parcel = Parcel()
    body: dict[str, Any] = {
        "format": FORMAT,
        "version": __version__,
        "estimator": pack(estimator, CLASSIFIERS, parcel, "estimator", ledger),
        "features": None if features is None else pack(features, FEATURES, parcel, "features"),
        "facts": model.facts if facts is None else facts,
        "whole": ledger,
        "arrays": sorted(arrays or {}),
    }
    for name, array in (arrays or {}).items():
        parcel.put(f"arrays.{name}", array)
    _check_width(features, estimator.n_features_in_)
    try:
        text = _canonical(body)
    except (TypeError, ValueError, RecursionError) as error:
        raise ModelFileError(f"facts must be JSON values: {error}") from None
    metadata = {KEY: _canonical({"body": json.loads(text), "sha256": _sum(text, parcel.arrays)})}
    with replacing(path) as temporary:
        try:
            save_file(parcel.arrays, temporary, metadata)
        except SafetensorError as error:
            raise OSError(f"{os.fspath(path)} could not be written: {error}") from None


def load(path: str | os.PathLike[str]) -> Model:
    """Read a model file, whoever wrote it: what is inside is checked, and nothing inside is run.

    Raises `ModelFileError`, a ValueError, with one line that names the file and what is wrong with it.

    Examples
    --------
    See `save`:

    >>> from separatrix import load
    >>> load("no.sepx")
    Traceback (most recent call last):
    FileNotFoundError: [Errno 2] No such file or directory: 'no.sepx'
    """
    try:
        return _read(os.fspath(path))
    except OSError:
        raise
    except ModelFileError as error:
        raise ModelFileError(f"{os.fspath(path)}: {error}") from None
    except Exception as error:
        why = str(error).split("\n")[0][:200] or type(error).__name__
        raise ModelFileError(f"{os.fspath(path)} is broken or was tampered with: {why}") from error


def _read(path: str) -> Model:
    _check_header(path)
    try:
        with safe_open(path, framework="np") as file:
            text = (file.metadata() or {}).get(KEY)
            if text is None:
                raise ModelFileError("a safetensors file, but no model of separatrix")
            told = json.loads(text, parse_constant=_no_constant)
            body = told["body"]
            if whole(body, "format", 1) > FORMAT:
                raise ModelFileError(
                    f"written by separatrix {body.get('version')!s:.20} in format {body['format']}, and separatrix "
                    f"{__version__} knows formats up to {FORMAT}: update it to read this file"
                )
            arrays = {name: file.get_tensor(name) for name in file.keys()}
    except SafetensorError as error:
        raise ModelFileError(f"not a whole safetensors file: {str(error)[:200]}") from None
    if _sum(_canonical(body), arrays) != told["sha256"]:
        raise ModelFileError("damaged: its contents do not have the sum that was written with them")
    parcel = Parcel(arrays)
    flag(body, "whole")
    estimator = unpack(body["estimator"], CLASSIFIERS, parcel, "estimator")
    features = None
    if body["features"] is not None:
        _check_hashed(body["features"], estimator.n_features_in_)
        features = unpack(body["features"], FEATURES, parcel, "features")
        _check_width(features, estimator.n_features_in_)
    if not isinstance(body["facts"], dict):
        raise ModelFileError("its facts are no JSON object")
    model = Model(estimator, features, body["facts"])
    model.arrays = {name: arrays[f"arrays.{name}"] for name in body.get("arrays", [])}
    model.version, model.sha256 = str(body["version"]), told["sha256"]
    return model


def _check_header(path: str) -> None:
    """Refuse what cannot be a safetensors file before anything parses it."""
    with open(path, "rb") as file:
        begin, size = file.read(9), os.fstat(file.fileno()).st_size
    length = int.from_bytes(begin[:8], "little")
    if len(begin) < 9 or begin[8:] != b"{":
        raise ModelFileError("not a model file")
    if not 2 <= length <= min(MOST_HEADER_BYTES, size - 8):
        raise ModelFileError(f"broken or cut short: its header claims {length:,} bytes, and the file has {size:,}")


def _no_constant(name: str) -> Any:
    raise ModelFileError(f"{name} is no JSON value")


def _canonical(value: Any) -> str:
    return json.dumps(value, sort_keys=True, separators=(",", ":"), allow_nan=False)


def _sum(text: str, arrays: dict[str, Array]) -> str:
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


def _writer(process: int | str) -> str:
    """Who writes a file: the machine and the process."""
    return f"{platform.node()[:40].replace('.', '-')}-{process}"


def _clear_left_behind(path: Path) -> None:
    """Remove what writers of this file that were killed have left beside it."""
    for left in path.parent.glob(f".{glob.escape(path.name[:160])}.{glob.escape(_writer(''))}*.part"):
        process = left.name.split(".")[-3].rpartition("-")[2]
        if process.isdigit() and not _runs(int(process)):
            left.unlink(missing_ok=True)


def _runs(process: int) -> bool:
    if sys.platform == "win32":  # where asking is killing
        return True
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except OSError:
        return True
    return True


@contextmanager
def replacing(path: str | os.PathLike[str]) -> Iterator[str]:
    """Give the name of a new file beside `path`, which takes its place at the end, or is gone if anything failed."""
    path = Path(os.path.realpath(path))
    _clear_left_behind(path)
    temporary = path.with_name(f".{path.name[:160]}.{_writer(os.getpid())}.{secrets.token_hex(4)}.part")
    os.close(os.open(temporary, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o666))
    try:
        rights = temporary.stat().st_mode
        yield str(temporary)
        temporary.chmod(rights)  # safetensors makes its files private
        with open(temporary, "rb+") as file:
            os.fsync(file.fileno())
        os.replace(temporary, path)
    except BaseException:
        with suppress(OSError):
            os.unlink(temporary)
        raise
    with suppress(OSError, AttributeError):  # the name itself, where folders can be synced
        folder = os.open(path.parent, os.O_RDONLY | os.O_DIRECTORY)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)
