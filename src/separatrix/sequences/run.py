"""The state of a structured perceptron that learns: its weights, their lazy sum, its ledger; and the passes it makes."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

import numpy as np

from separatrix.engine.parcel import Parcel, State, flag
from separatrix.engine.rows import NO_WEIGHT, Array, Floats, Ints, frozen
from separatrix.kernels.codes import rule_code
from separatrix.kernels.sequences import paths
from separatrix.sequences.encoded import SPARE, Encoded, PathWeights, places_of, rows_of, used_rows
from separatrix.sequences.ledger import SequenceLedger
from separatrix.sequences.schemes import forbidden_transitions

BLOCK_TOKENS = 1 << 16
"""A call of the kernel presents about so many tokens, after which Ctrl-C is heard."""
SAFELY_FINITE = 1e300
SINGLE = 1e-6
"""Weights that a file rounded to float32 are that close to what they were."""
_WEIGHTS = ("_W", "_U")


class TaggedSequences(NamedTuple):
    """What is presented: tokens, the code of each one's tag, and the weight of each sequence (none: all 1)."""

    encoded: Encoded
    codes: Array
    weight: Floats = NO_WEIGHT


def room_for(encoded: Encoded, K: int) -> tuple[Array, ...]:
    """Return what the kernels need to find the best path of a sequence: emissions, leads, path, links, rows and values."""
    longest = max(2, encoded.longest)
    widest = max(1, int(np.diff(encoded.indptr).max(initial=0)))
    kinds = (*(((longest * K + SPARE, "f8"),) * 2), (longest, "i4"), ((K + 1) ** 2 + SPARE, "f8"))
    return tuple(np.zeros(size, kind) for size, kind in (*kinds, (2 * widest, "u8"), (2 * widest, "f8")))


def best_paths(encoded: Encoded, weights: PathWeights, forbidden: Array, begin: int = 0, end: int | None = None) -> Array:
    """Return the codes of the best paths of sequences begin…end, one after the other."""
    end = len(encoded) if end is None else end
    (places, W, T), K, starts = weights, weights.K, encoded.starts
    out = np.empty(int(starts[end] - starts[begin]), np.int32)
    paths.tag(encoded.rows, starts, begin, end, frozen(places), (W, T), forbidden, K, room_for(encoded, K), out)
    return out


class _Snapshot(NamedTuple):
    weights: tuple[Floats, ...]
    links: tuple[Floats, ...]
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
        self._places = np.zeros(0, np.int32)
        self._used = 0
        self._lay_out(*np.zeros((2, 1, len(classes))))
        self._T, self._UT, self._DT = (np.zeros((len(classes) + 1) ** 2) for _ in range(3))
        self.resumable = True
        self.stored_average: bool | None = None
        """Of weights that a file had alone, without what further learning needs: whether they are the mean."""

    @property
    def K(self) -> int:  # noqa: N802
        """How many tags there are."""
        return len(self.ledger.classes)

    # Growing.

    def resize(self, n_features: int) -> None:
        """Make room for the weights of so many features; what no correction has changed takes no memory."""
        if n_features > len(self._places):
            places = np.zeros(max(n_features, 2 * len(self._places)), np.int32)
            places[: len(self._places)] = self._places
            self._places = places
            self._lay_out(*(self._rows(name) for name in _WEIGHTS))
        self.n_features = max(n_features, self.n_features)

    def insert_class(self, classes: Array, place: int) -> None:
        """Give a new tag weights of 0; the tags from its place on move up."""
        K = self.K
        rows = [np.insert(self._rows(name), place, 0.0, axis=1) for name in _WEIGHTS]
        for name in ("_T", "_UT", "_DT"):
            square = getattr(self, name).reshape(K + 1, K + 1)
            setattr(self, name, np.insert(np.insert(square, place, 0.0, axis=0), place, 0.0, axis=1).reshape(-1))
        self.ledger.insert_class(classes, place)
        self.forbidden = frozen(forbidden_transitions(classes, self.scheme))
        self._lay_out(*rows)

    def _rows(self, name: str) -> Floats:
        """Return the rows of weights, of row 0 and of the features that have one."""
        return rows_of(getattr(self, name), self.K)[: self._used + 1]

    def _lay_out(self, W: Floats, U: Floats) -> None:
        """Put rows into arrays that have room for a row of every feature; what is never touched takes no memory."""
        size = (len(self._places) + 1) * self.K + SPARE
        self._W, self._U, self._D = np.zeros(size), np.zeros(size), np.zeros(size if self.rule == "pa1" else 0)
        self._W[: W.size], self._U[: U.size] = W.reshape(-1), U.reshape(-1)

    # Learning.

    def present(self, tagged: TaggedSequences, order: Ints) -> int:
        """Present sequences in this order; return how many mistakes were made."""
        encoded, starts = tagged.encoded, tagged.encoded.starts
        codes, order = frozen(tagged.codes), frozen(order)
        room = room_for(encoded, self.K)
        ends = np.cumsum(np.diff(starts)[order])
        begin = made = 0
        while begin < len(order):
            so_far = int(ends[begin - 1]) if begin else 0
            end = max(begin + 1, int(np.searchsorted(ends, so_far + BLOCK_TOKENS, side="right")))
            end = min(end, begin + BLOCK_TOKENS, len(order))
            n, tokens = end - begin, int(ends[end - 1]) - so_far
            out = tuple(np.empty(n, kind) for kind in ("i8", "i8", "f8", "f8", "i8", "i8"))
            found = np.empty(tokens, np.int32)
            count, steps, used = paths.present(
                *(encoded.rows, starts, codes, tagged.weight, order, begin, end, self._places, self._used),
                *((self._W, self._T), (self._U, self._UT), (self._D, self._DT), self.forbidden),
                *(self.K, rule_code(self.rule), float(self.C), self.ledger.steps, room, (*out, found)),
            )
            self.ledger.steps, self._used = int(steps), int(used)
            if count:
                step, sequence, correction, lead, wrong, last = (column[: int(count)] for column in out)
                lengths = np.diff(last, prepend=0)
                places = np.arange(int(last[-1])) + np.repeat(starts[sequence] - (last - lengths), lengths)
                columns = (step, sequence + self.n_sequences, correction, lead, wrong, last)
                self.ledger.append((*columns, tagged.codes[places], found[: int(last[-1])]))
            made += int(count)
            begin = end
        return made

    def weights(self, averaged: bool) -> PathWeights:
        """Return the weights that predict."""
        if self.stored_average not in (None, averaged):
            kept = "mean of the weights" if self.stored_average else "last weights"
            raise ValueError(f"the model was saved with the {kept} alone: averaged={averaged} needs a file with all of them")
        W, T = self._rows("_W").reshape(-1), self._T
        if averaged and self.resumable and self.ledger.steps:
            W, T = W - self._rows("_U").reshape(-1) / self.ledger.steps, T - self._UT / self.ledger.steps
        return PathWeights(frozen(self._places[: self.n_features].copy()), np.append(W, np.zeros(SPARE)), T.copy())

    def matrix(self, name: str) -> Floats:
        """Return the last weights ("_W") or their lazy sums ("_U"), a row for each feature."""
        rows: Floats = self._rows(name)[self._places[: self.n_features]]
        return rows

    def parts(self) -> tuple[Floats, Floats, Floats, Floats]:
        """Return the last weights of features and of transitions, and the lazy sums of both, to be read and written."""
        n, K = self.n_features, self.K
        if self._used != n or np.any(np.diff(self._places[:n], prepend=0) != 1):
            self.set_parts(self.matrix("_W"), self._T, self.matrix("_U"), self._UT, np.arange(n))
        W, U = (rows_of(array, K)[1 : n + 1] for array in (self._W, self._U))
        return W, self._T, U, self._UT

    def set_parts(self, W: Floats, T: Floats, U: Floats, UT: Floats, features: Ints | None = None) -> None:
        """Take what `parts` returns; rows are made for these features, None: for those with weights."""
        features = used_rows(W, U) if features is None else features
        self._places, self._used = places_of(features, len(W)).copy(), len(features)
        self._T, self._UT = T.copy(), UT.copy()
        self._lay_out(*(np.concatenate([np.zeros((1, self.K)), matrix[features]]) for matrix in (W, U)))

    def follows_from(self, encoded: Encoded) -> bool:
        """Tell whether the corrections of these sequences add up to the last weights; float32 of a file is near enough."""
        if self.ledger.absent:
            return True
        replayed = self.ledger.replay(encoded, self.n_features, averaged=False)
        weights = self.matrix("_W"), rows_of(self._T, self.K + 1)
        slack = SINGLE * max(float(np.abs(each).max(initial=0.0)) for each in weights)
        return all(np.allclose(a, b, rtol=SINGLE, atol=slack) for a, b in zip(replayed, weights, strict=True))

    def is_finite(self) -> bool:
        """Tell whether no weight has outgrown float64."""
        return all(bool(np.isfinite(array.sum())) for array in (self._rows("_W"), self._T, self._rows("_U"), self._UT))

    def snapshot(self, passes: int) -> _Snapshot:
        """Return a copy of the state."""
        weights, links = tuple(self._rows(name).copy() for name in _WEIGHTS), (self._T.copy(), self._UT.copy())
        return _Snapshot(weights, links, self.ledger.steps, len(self.ledger), passes)

    def restore(self, snapshot: _Snapshot) -> None:
        """Go back to an earlier state; features that got a row since keep it, with weights of 0."""
        self._lay_out(*snapshot.weights)
        self._T, self._UT = snapshot.links
        self.ledger.cut_to(snapshot.steps, snapshot.mistakes, snapshot.passes)

    # Saving.

    def __getstate__(self) -> dict[str, Any]:
        """Return what is pickled: without the room for rows that nothing has touched."""
        return vars(self) | {name: self._rows(name) for name in _WEIGHTS} | {"_D": None}

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update(state)
        self._lay_out(self._W, self._U)

    def pack(self, parcel: Parcel, at: str, averaged: bool) -> State:
        """Put the weights and the ledger into a parcel; without what only further learning needs, those that predict."""
        resumable = parcel.resume and self.resumable
        W, T = (self.matrix("_W"), self._T) if resumable else self.weights(averaged).dense()
        for name, weights in (("W", W), ("T", T), *((("U", self.matrix("_U")), ("UT", self._UT)) if resumable else ())):
            parcel.put_weights(f"{at}.{name}", weights.reshape(-1))
        return {"resumable": resumable, "sequences": self.n_sequences, "ledger": self.ledger.pack(parcel, f"{at}.ledger")}

    def unpack(self, state: State, parcel: Parcel, at: str, n_features: int, averaged: bool) -> None:
        """Take the weights and the ledger from a parcel."""
        self.n_features = n_features
        self.resumable = flag(state, "resumable")
        self.stored_average = None if self.resumable else averaged
        size, square = (n_features * self.K,), ((self.K + 1) ** 2,)
        W, T = parcel.take_weights(f"{at}.W", size), parcel.take_weights(f"{at}.T", square)
        U, UT = np.zeros(size), np.zeros(square)
        if self.resumable:
            U, UT = parcel.take_weights(f"{at}.U", size), parcel.take_weights(f"{at}.UT", square)
        self.set_parts(W.reshape(n_features, self.K), T, U.reshape(n_features, self.K), UT)
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
