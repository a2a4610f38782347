"""The state of an object as JSON values and named arrays, and the checks that each value passes when it is read back.

A class that can be saved has `pack(parcel, at, …)`, which puts its arrays into a parcel under names that begin with `at` and
returns the rest as JSON, and `unpack(state, parcel, at, …)`, which trusts nothing that it reads.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from itertools import pairwise
from typing import Any

import numpy as np

from separatrix.kernels.arrays import Array, Floats

MOST = 1 << 62
"""The largest whole number in a state."""
SPARE_BYTES = 1 << 26
SPARE_FACTOR = 64
"""The places of few weights among zeros are stored where that does not save more than this factor and these bytes."""
MASKED_BYTES = 1 << 16
"""A smaller array is stored as it is, or by places: no version before format 2 reads a mask."""


State = dict[str, Any]
"""JSON values by name."""


class StateError(ValueError):
    """An object cannot be saved, or a state that was read cannot be trusted."""


def whole(state: Any, key: str, low: int = 0, high: int = MOST) -> int:
    """Return a whole number of a state."""
    value = state[key]
    if type(value) is not int or not low <= value <= high:
        raise StateError(f"{key} is {value!r:.60}, expected a whole number from {low} to {high}")
    return value


def number(state: Any, key: str) -> float:
    """Return a finite number of a state."""
    value = state[key]
    if type(value) not in (int, float) or not math.isfinite(value):
        raise StateError(f"{key} is {value!r:.60}, expected a finite number")
    return float(value)


def flag(state: Any, key: str) -> bool:
    """Return a truth value of a state."""
    value = state[key]
    if type(value) is not bool:
        raise StateError(f"{key} is {value!r:.60}, expected true or false")
    return value


def word(state: Any, key: str, among: Iterable[str]) -> str:
    """Return a word of a state, one of a few."""
    value = state[key]
    if type(value) is not str or value not in tuple(among):
        raise StateError(f"{key} is {value!r:.60}, which is unknown")
    return value


class Parcel:
    """Named arrays, as they are written to a file and read back.

    Attributes
    ----------
    ledger, resume : whether to put in the mistakes, and all else that only further learning needs; a learner refuses that
        predicts with what would be left out
    float32 : whether to round weights to float32
    format : of the file that these arrays need: 2 where an older version would not understand them
    """

    def __init__(
        self,
        arrays: dict[str, Array] | None = None,
        *,
        ledger: bool = True,
        resume: bool = True,
        float32: bool = False,
    ) -> None:
        self.arrays: dict[str, Array] = {} if arrays is None else arrays
        self.ledger, self.resume, self.float32 = ledger and resume, resume, float32
        self.format = 2 if float32 or not resume else 1

    def put(self, name: str, array: Array) -> None:
        """Add an array, in C order and little-endian."""
        self.arrays[name] = np.asarray(array, dtype=array.dtype.newbyteorder("<"), order="C")

    def take(
        self, name: str, kinds: str, shape: tuple[int, ...], *, low: float = -math.inf, high: float = math.inf
    ) -> Array:
        """Return an array of one of some kinds ("u4 i8") and of this shape (−1: any length), finite and in range."""
        array = self.arrays.get(name)
        if array is None:
            raise StateError(f"{name} is missing")
        if f"{array.dtype.kind}{array.dtype.itemsize}" not in kinds.split():
            raise StateError(f"{name} holds {array.dtype}, not {' or '.join(kinds.split())}")
        if array.ndim != len(shape) or any(n not in (-1, size) for n, size in zip(shape, array.shape, strict=True)):
            raise StateError(f"{name} has shape {array.shape}, which does not match the rest")
        if array.size and not (np.isfinite(array).all() and low <= array.min() and array.max() <= high):
            raise StateError(f"{name} holds NaN, infinity, or numbers out of range")
        return array.astype(array.dtype.newbyteorder("="), copy=False)

    def put_weights(self, name: str, weights: Floats) -> None:
        """Add weights, without the zeros where they are many."""
        if self.float32:
            with np.errstate(over="ignore"):
                weights = weights.astype(np.float32)
            if not np.isfinite(weights).all():
                raise StateError(f"{name} has weights that are too large for float32")
        flat = np.ascontiguousarray(weights).reshape(-1)
        places = np.flatnonzero(flat.view(f"i{flat.itemsize}"))  # by the bits: −0.0 is kept
        n, held = flat.size, places.size
        few = 3 * held < n if flat.nbytes < MASKED_BYTES else 64 * held < n  # 8 bytes for each, or a bit for all
        if few and 8 * n <= SPARE_BYTES + SPARE_FACTOR * 16 * held:
            self.put(f"{name}.places", places)
            self.put(f"{name}.values", flat[places])
        else:
            self.put_masked(name, weights, 0.0)

    def put_masked(self, name: str, array: Array, rest: float) -> None:
        """Add numbers, without those that are `rest` where that is smaller: a bit for each says whether it is stored."""
        flat = np.ascontiguousarray(array).reshape(-1)
        mask = flat.view(f"i{flat.itemsize}") != np.array(rest, flat.dtype).view(f"i{flat.itemsize}")
        if flat.nbytes < MASKED_BYTES or np.count_nonzero(mask) * flat.itemsize + flat.size // 8 >= flat.nbytes:
            self.put(name, array)
            return
        self.format = 2
        self.put(f"{name}.mask", np.packbits(mask, bitorder="little"))
        self.put(f"{name}.values", flat[mask])

    def take_weights(self, name: str, shape: tuple[int, ...]) -> Floats:
        """Return weights of a known shape, as float64."""
        if f"{name}.places" not in self.arrays:
            return self.take_masked(name, shape, 0.0)
        size = math.prod(shape)
        held = self.take(f"{name}.places", "i8", (-1,), low=0, high=size - 1)
        values = self.take(f"{name}.values", "f8 f4", held.shape)
        if 8 * size > SPARE_BYTES + SPARE_FACTOR * 16 * held.size or np.any(held[1:] <= held[:-1]):
            raise StateError(f"{name} leaves out more zeros than allowed, or is not sorted")
        weights = np.zeros(size)
        weights[held] = values
        return weights.reshape(shape)

    def take_masked(self, name: str, shape: tuple[int, ...], rest: float) -> Floats:
        """Return numbers of a known shape, as float64, with `rest` where none is stored."""
        if f"{name}.mask" not in self.arrays:
            return self.take(name, "f8 f4", shape).astype(np.float64, copy=False)
        size = math.prod(shape)
        packed = self.take(f"{name}.mask", "u1", ((size + 7) // 8,))  # so that a file has a bit for each number it claims
        mask = np.unpackbits(packed, bitorder="little").view(np.bool_)
        if mask[size:].any():
            raise StateError(f"{name}.mask is longer than the rest")
        places = np.flatnonzero(mask)  # three times as fast as to assign by the mask
        numbers = np.full(size, rest) if rest else np.zeros(size)
        numbers[places] = self.take(f"{name}.values", "f8 f4", places.shape)
        return numbers.reshape(shape)

    def put_strings(self, name: str, texts: Iterable[str]) -> None:
        """Add strings exactly as they are, laid end to end."""
        encoded = [text.encode("utf-8", "surrogatepass") for text in texts]
        self.put(f"{name}.lengths", np.array([len(text) for text in encoded], np.uint32))
        self.put(f"{name}.bytes", np.frombuffer(b"".join(encoded), np.uint8))

    def take_strings(self, name: str) -> list[str]:
        """Return strings."""
        ends = np.cumsum(self.take(f"{name}.lengths", "u4", (-1,)), dtype=np.int64).tolist()
        letters = self.take(f"{name}.bytes", "u1", (ends[-1] if ends else 0,)).tobytes()
        return [letters[begin:end].decode("utf-8", "surrogatepass") for begin, end in pairwise([0, *ends])]

    def put_labels(self, name: str, labels: Array) -> dict[str, Any]:
        """Add labels of any kind, and return how to read them back."""
        kind = labels.dtype.kind
        if kind in "biu" or (kind == "f" and labels.dtype.itemsize <= 8):
            self.put(name, labels)
            return {"kind": "numbers"}
        if not all(isinstance(label, str) for label in labels):
            raise StateError(f"the classes are of the type {labels.dtype}, which a model file cannot store")
        self.put_strings(name, labels.tolist())
        return {"kind": "objects"} if kind == "O" else {"kind": "strings", "width": labels.dtype.itemsize // 4}

    def take_labels(self, name: str, how: Any) -> Array:
        """Return labels, sorted as classes are."""
        kind = word(how, "kind", ("numbers", "strings", "objects"))
        if kind == "numbers":
            labels = self.take(name, "b1 i1 i2 i4 i8 u1 u2 u4 u8 f2 f4 f8", (-1,))
        elif kind == "objects":
            labels = np.array(self.take_strings(name), dtype=object)
        else:
            texts = self.take_strings(name)
            longest = max(1, *map(len, texts)) if texts else 1
            width = whole(how, "width", longest)
            if len(texts) * width > max(SPARE_BYTES, len(texts) * longest):
                raise StateError(f"{name} are {width} characters wide, far more than any of them needs")
            labels = np.array(texts, dtype=f"U{width}")
        if not labels.size or not np.all(labels[:-1] < labels[1:]):
            raise StateError(f"{name} must be non-empty, unique and sorted")
        return labels

    def put_value(self, name: str, value: Any) -> Any:
        """Return a parameter as JSON; what is no plain number or word is wrapped, with a word that says what it is."""
        if isinstance(value, np.generic):
            value = value.item()
        if value is None or type(value) in (bool, int, str):
            return value
        if type(value) is float:
            return value if math.isfinite(value) else {"float": repr(value)}
        if isinstance(value, dict):
            return {"pairs": [[self.put_value(name, k), self.put_value(name, v)] for k, v in value.items()]}
        if isinstance(value, list | tuple | np.ndarray):
            return {"list": [self.put_value(name, item) for item in value]}
        if isinstance(value, np.random.RandomState) and value.get_state(legacy=False)["bit_generator"] == "MT19937":
            _, key, *rest = value.get_state()
            self.put(name, np.asarray(key))
            return {"random_state": rest}
        raise StateError(f"{name} is a {type(value).__name__}, which a model file cannot store")

    def take_value(self, name: str, value: Any) -> Any:
        """Return a parameter."""
        if not isinstance(value, dict):
            return value
        ((kind, held),) = value.items()
        if kind == "float" and held in ("inf", "-inf", "nan"):
            return float(held)
        if kind == "pairs":
            return {self.take_value(name, k): self.take_value(name, v) for k, v in held}
        if kind == "list":
            return [self.take_value(name, item) for item in held]
        if kind == "random_state":
            made = np.random.RandomState()
            made.set_state(("MT19937", self.take(name, "u4", (624,)), *held))
            return made
        raise StateError(f"{name} is of an unknown kind")
