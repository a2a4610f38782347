"""The state of a structured perceptron that learns: its weights, their lazy sum, its ledger; and the passes it makes."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

import numpy as np

from separatrix.engine.parcel import Parcel, State, flag
from separatrix.engine.rows import NO_WEIGHT, Array, Floats, Ints, frozen
from separatrix.kernels.codes import rule_code
from separatrix.kernels.sequences import paths
from separatrix.sequences.encoded import Encoded
from separatrix.sequences.ledger import SequenceLedger
from separatrix.sequences.schemes import forbidden_transitions

BLOCK_TOKENS = 1 << 16
"""A call of the kernel presents about so many tokens, after which Ctrl-C is heard."""
SAFELY_FINITE = 1e300


class TaggedSequences(NamedTuple):
    """What is presented: tokens, the code of each one's tag, and the weight of each sequence (none: all 1)."""

    encoded: Encoded
    codes: Array
    weight: Floats = NO_WEIGHT


def room_for(longest: int, K: int) -> tuple[Array, ...]:
    """Return what the kernels need to find the best path of a sequence: emissions, leads, path and links."""
    longest = max(2, longest)
    kinds = ((longest * K, "f8"), (longest * K, "f8"), (longest, "i4"), ((K + 1) ** 2, "f8"))
    return tuple(np.zeros(size, kind) for size, kind in kinds)


def best_paths(encoded: Encoded, W: Floats, T: Floats, forbidden: Array, begin: int = 0, end: int | None = None) -> Array:
    """Return the codes of the best paths of sequences begin…end, one after the other."""
    end = len(encoded) if end is None else end
    K, starts = T.shape[0] - 1, encoded.starts
    lengths = np.diff(starts[begin : end + 1])
    out = np.empty(int(lengths.sum()), np.int32)
    weights = W.reshape(-1), T.reshape(-1)
    paths.tag(encoded.rows, starts, begin, end, weights, forbidden, K, room_for(int(lengths.max(initial=0)), K), out)
    return out


class _Snapshot(NamedTuple):
    arrays: tuple[Floats, ...]
    steps: int
    mistakes: int
    passes: int


class SequenceRun:
    """Weights that learn from sequences.

    Attributes
    ----------
    ledger : the mistakes
    n_features : how many features have weights
    n_sequences : how many sequences were given so far, which is the number of the next one
    """

    def __init__(self, classes: Array, rule: str, C: float, scheme: str | None) -> None:
        self.ledger = SequenceLedger(classes)
        self.rule, self.C, self.scheme = rule, C, scheme
        self.forbidden = frozen(forbidden_transitions(classes, scheme))
        self.n_features = self.n_sequences = 0
        K = len(classes)
        self._W, self._U, self._D = (np.zeros(0) for _ in range(3))
        self._T, self._UT, self._DT = (np.zeros((K + 1) ** 2) for _ in range(3))
        self.resumable = True

    @property
    def K(self) -> int:  # noqa: N802
        """How many tags there are."""
        return len(self.ledger.classes)

    # Growing.

    def resize(self, n_features: int) -> None:
        """Make room for the weights of so many features."""
        needed = n_features * self.K
        if needed > self._W.size:
            size = max(needed, 2 * self._W.size if self._W.size else needed)
            for name in ("_W", "_U", *(("_D",) if self.rule == "pa1" else ())):
                grown = np.zeros(size)
                old = getattr(self, name)
                grown[: old.size] = old
                setattr(self, name, grown)
        self.n_features = max(n_features, self.n_features)

    def insert_class(self, classes: Array, place: int) -> None:
        """Give a new tag weights of 0; the tags from its place on move up."""
        K, d = self.K, self.n_features
        for name in ("_W", "_U", "_D"):
            old = getattr(self, name)
            if old.size:
                setattr(self, name, np.insert(old[: d * K].reshape(d, K), place, 0.0, axis=1).reshape(-1))
        for name in ("_T", "_UT", "_DT"):
            square = getattr(self, name).reshape(K + 1, K + 1)
            setattr(self, name, np.insert(np.insert(square, place, 0.0, axis=0), place, 0.0, axis=1).reshape(-1))
        self.ledger.insert_class(classes, place)
        self.forbidden = frozen(forbidden_transitions(classes, self.scheme))

    # Learning.

    def present(self, tagged: TaggedSequences, order: Ints) -> int:
        """Present sequences in this order; return how many mistakes were made."""
        encoded, starts = tagged.encoded, tagged.encoded.starts
        codes, order = frozen(tagged.codes), frozen(order)
        room = room_for(encoded.longest, self.K)
        ends = np.cumsum(np.diff(starts)[order])
        begin = made = 0
        while begin < len(order):
            so_far = int(ends[begin - 1]) if begin else 0
            end = max(begin + 1, int(np.searchsorted(ends, so_far + BLOCK_TOKENS, side="right")))
            end = min(end, begin + BLOCK_TOKENS, len(order))
            n, tokens = end - begin, int(ends[end - 1]) - so_far
            out = tuple(np.empty(n, kind) for kind in ("i8", "i8", "f8", "f8", "i8", "i8"))
            found = np.empty(tokens, np.int32)
            count, steps, _ = paths.present(
                *(encoded.rows, starts, codes, tagged.weight, order, begin, end),
                *((self._W, self._T), (self._U, self._UT), (self._D, self._DT), self.forbidden),
                *(self.K, rule_code(self.rule), float(self.C), self.ledger.steps, room, (*out, found)),
            )
            self.ledger.steps = int(steps)
            if count:
                step, sequence, correction, lead, wrong, last = (column[: int(count)] for column in out)
                lengths = np.diff(last, prepend=0)
                places = np.arange(int(last[-1])) + np.repeat(starts[sequence] - (last - lengths), lengths)
                columns = (step, sequence + self.n_sequences, correction, lead, wrong, last)
                self.ledger.append((*columns, tagged.codes[places], found[: int(last[-1])]))
            made += int(count)
            begin = end
        return made

    def weights(self, averaged: bool) -> tuple[Floats, Floats]:
        """Return the weights that predict: (n_features, K) of features, and (K+1, K+1) of transitions."""
        K, n = self.K, self.n_features * self.K
        W, T = self._W[:n], self._T
        if averaged and self.resumable and self.ledger.steps:
            W, T = W - self._U[:n] / self.ledger.steps, T - self._UT / self.ledger.steps
        else:
            W, T = W.copy(), T.copy()
        return W.reshape(self.n_features, K), T.reshape(K + 1, K + 1)

    def parts(self) -> tuple[Floats, Floats, Floats, Floats]:
        """Return the last weights of features and of transitions, and the lazy sums of both, to be read and written."""
        n = self.n_features * self.K
        return self._W[:n].reshape(self.n_features, self.K), self._T, self._U[:n].reshape(self.n_features, self.K), self._UT

    def is_finite(self) -> bool:
        """Tell whether no weight has outgrown float64."""
        return all(bool(np.isfinite(array.sum())) for array in (self._W, self._T, self._U, self._UT))

    def snapshot(self, passes: int) -> _Snapshot:
        """Return a copy of the state."""
        arrays = tuple(array.copy() for array in (self._W, self._T, self._U, self._UT))
        return _Snapshot(arrays, self.ledger.steps, len(self.ledger), passes)

    def restore(self, snapshot: _Snapshot) -> None:
        """Go back to an earlier state."""
        self._W, self._T, self._U, self._UT = snapshot.arrays
        self.ledger.cut_to(snapshot.steps, snapshot.mistakes, snapshot.passes)

    # Saving.

    def pack(self, parcel: Parcel, at: str, averaged: bool) -> State:
        """Put the weights and the ledger into a parcel; without what only further learning needs, those that predict."""
        n = self.n_features * self.K
        resumable = parcel.resume and self.resumable
        W, T = (self._W[:n], self._T) if resumable else (array.reshape(-1) for array in self.weights(averaged))
        for name, weights in (("W", W), ("T", T), *((("U", self._U[:n]), ("UT", self._UT)) if resumable else ())):
            parcel.put_weights(f"{at}.{name}", weights)
        return {"resumable": resumable, "sequences": self.n_sequences, "ledger": self.ledger.pack(parcel, f"{at}.ledger")}

    def unpack(self, state: State, parcel: Parcel, at: str, n_features: int) -> None:
        """Take the weights and the ledger from a parcel."""
        self.n_features = n_features
        K, n = self.K, n_features * self.K
        self.resumable = flag(state, "resumable")
        self._W, self._T = parcel.take_weights(f"{at}.W", (n,)), parcel.take_weights(f"{at}.T", ((K + 1) ** 2,))
        if self.resumable:
            self._D = np.zeros(n if self.rule == "pa1" else 0)
            self._U, self._UT = parcel.take_weights(f"{at}.U", (n,)), parcel.take_weights(f"{at}.UT", ((K + 1) ** 2,))
        self.n_sequences = int(state["sequences"])
        self.ledger = SequenceLedger.unpack(state["ledger"], parcel, f"{at}.ledger", self.ledger.classes, n_features)


class SequencePasses:
    """The passes of a run over sequences in memory, as `engine/loop.py` asks for them."""

    def __init__(
        self,
        run: SequenceRun,
        tagged: TaggedSequences,
        order_of: Callable[[int], Ints],
        accuracy: Callable[[], float] | None,
    ) -> None:
        self.run, self.tagged, self._order_of, self._accuracy = run, tagged, order_of, accuracy

    def make_pass(self, number: int) -> tuple[int, float]:
        """Present all sequences once."""
        ledger = self.run.ledger
        ledger.pass_starts.append((ledger.steps, ledger.total))
        steps = ledger.steps
        mistakes = self.run.present(self.tagged, self._order_of(number))
        return mistakes, mistakes / max(1, ledger.steps - steps)

    def sweep_is_clean(self) -> bool:
        """A pass without a mistake presented all sequences to the same weights."""
        return True

    def held_out_accuracy(self) -> float | None:
        """Return the share of right tags of the held-out sequences, if there are any."""
        return None if self._accuracy is None else self._accuracy()

    def snapshot(self, passes: int) -> Any:
        """Return a copy of the state."""
        return self.run.snapshot(passes)

    def restore(self, snapshot: Any) -> None:
        """Go back to an earlier pass."""
        self.run.restore(snapshot)

    def finish(self) -> None:
        """Nothing is due at the end."""

    def state(self) -> tuple[Array, ...]:
        """Return nothing: cycles are not looked for."""
        return ()

    def past_states(self) -> Iterable[tuple[Array, ...]]:
        """Return nothing."""
        return ()

    def cycle_start(self, period: int) -> int:
        """Cycles are not looked for."""
        return period

    def verdict(self, seconds: float) -> str:
        """Nothing is proven about sequences."""
        return "undecided"

    def is_finite(self) -> bool:
        """Tell whether no weight has outgrown float64; the weights are looked at only where that could be."""
        entries, ledger = self.tagged.encoded, self.run.ledger
        largest = float(ledger.correction.sum()) * ledger.steps * len(entries.indices)
        largest *= max(1.0, float(np.abs(entries.data).max(initial=0.0)))
        return largest < SAFELY_FINITE or self.run.is_finite()
