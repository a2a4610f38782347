"""Saving and loading, and being the same afterwards: for the tests of model files."""

import json
import struct

import numpy as np
import scipy.sparse as sp
from safetensors.numpy import load as read_tensors
from safetensors.numpy import save as write_tensors
from sklearn.datasets import load_iris

from separatrix import load, save
from separatrix.modelfile import archive
from separatrix.solvers.dual_ledger import Dropped

IRIS = load_iris(as_frame=True)
IRIS.data = IRIS.data.sample(frac=1.0, random_state=0)
IRIS.target = IRIS.target[IRIS.data.index]
X, Y = IRIS.data.to_numpy(), IRIS.target.to_numpy()
TEXTS = ["Free money now!", "see you at noon", "win money", "noon at the office", "free free prize", "thank you"]
SPAM = np.array(["spam", "ham"] * 3)


def round_trip(model, path, **options):
    save(model, path, **options)
    again = load(path)
    assert type(again.estimator) is type(model)
    assert again.estimator.get_params() == model.get_params()
    return again.estimator


def same(a, b, X):
    """Everything public, and the scores, are equal bit for bit."""
    for name in [name for name in dir(b) if name.endswith("_") and not name.startswith("_")]:
        ours, theirs = getattr(a, name), getattr(b, name)
        if name == "run_":
            for mine, other in zip((ours.last, ours.late), (theirs.last, theirs.late), strict=True):
                assert all(map(np.array_equal, mine.weights(), other.weights())), name
        elif name == "ledger_":
            assert list(ours) == list(theirs) and repr(ours) == repr(theirs)
        elif name == "feature_names_in_":
            assert ours.dtype == theirs.dtype and ours.tolist() == theirs.tolist()
        elif isinstance(theirs, Dropped):
            assert repr(ours) == repr(theirs) and np.array_equal(ours.lost, theirs.lost)
            assert np.array_equal(ours.mistake, theirs.mistake) and np.array_equal(ours.example, theirs.example)
        elif sp.issparse(theirs):
            assert ours.dtype == theirs.dtype and ours.shape == theirs.shape and (ours != theirs).nnz == 0, name
        elif isinstance(theirs, np.ndarray):
            assert ours.dtype == theirs.dtype and ours.shape == theirs.shape and ours.tobytes() == theirs.tobytes(), name
        else:
            assert ours == theirs and type(ours) is type(theirs), name
    assert np.array_equal(a.decision_function(X), b.decision_function(X))
    assert np.array_equal(a.predict(X), b.predict(X)) and a.predict(X).dtype == b.predict(X).dtype


def parts(data):
    (length,) = struct.unpack("<Q", data[:8])
    header = json.loads(json.loads(data[8 : 8 + length])["__metadata__"]["separatrix"])
    return header["body"], {name: array.copy() for name, array in read_tensors(data).items()}


def signed(body, arrays):
    """A file whose sum is right, whatever is in it."""
    text = archive._canonical(body)
    header = {"body": body, "sha256": archive._checksum(text, arrays)}
    return write_tensors(arrays, {"separatrix": archive._canonical(header)})
