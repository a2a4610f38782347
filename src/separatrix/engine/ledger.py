"""The mistakes of a run, in order: the one record from which everything else follows.

The last weights are the sum of the corrections; the average, the votes and the pocket follow from *when* each mistake was
made. Corrections are stored and replayed, never decided again, so a replay gives the fitted weights bit for bit.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

from separatrix.engine.labels import as_labels, encode_as
from separatrix.engine.mistake_columns import MistakeColumns
from separatrix.engine.parcel import MOST, Parcel, State, StateError, flag, whole, word
from separatrix.engine.rows import NO_WEIGHT, Array, Floats, Rows, Store, as_rows, frozen
from separatrix.engine.rules import Rule
from separatrix.engine.weights import Flat, Weights, averaged, n_outputs, with_class
from separatrix.kernels.learning import replays

NEVER = 1 << 62


class Mistake(NamedTuple):
    """One mistake: `up` and `down` are the classes whose weights it raised and lowered (None: one-vs-rest has no other)."""

    pass_number: int
    step: int
    example: int
    up: Any
    down: Any
    correction: float
    score: float | None


class Cut(NamedTuple):
    """Where early stopping cut the run: the pass and step it went back to, and how many later mistakes it dropped."""

    pass_number: int
    step: int
    dropped: int


class Ledger(MistakeColumns):
    """The mistakes of a run.

    `len(ledger)` is their number and iterating yields each as a `Mistake`. The columns `step`, `example`, `up`, `down`,
    `correction` (empty when every correction is 1), `shrink` (of the rules that keep variances) and `score` (empty unless
    recorded) are arrays; `up` and `down` are places in `classes`, −1 for none. `kept` is how many of them the fitted weights
    consist of. What is a mistake is for the `rule` to say: with a margin to keep, a right answer can be one. `absent` counts
    the mistakes that a model file was saved without: nothing can be replayed without them.
    """

    def __init__(
        self,
        classes: Array,
        n_features: int,
        *,
        bias: bool,
        tie: int,
        scored: bool,
        start: Weights | None,
        rule: Rule | None = None,
        joint: bool = False,
    ) -> None:
        super().__init__(scored)
        self.classes = classes
        self.rule = rule or Rule()
        self.joint = joint
        self.weighted = False
        self.limit: int | None = None
        self.grown = False
        self.n_features = n_features
        self.bias = bias
        self.tie = tie
        self.start = start
        self.steps = 0
        self.absent = 0
        self.average_after = NEVER
        self.pass_starts: list[tuple[int, int]] = []
        self.kept: int | None = None
        self.cut: Cut | None = None
        self.stored: Store | None = None

    @property
    def total(self) -> int:
        """The number of mistakes, kept or not."""
        return self.absent + len(self)

    def __iter__(self) -> Iterator[Mistake]:
        """Yield the mistakes in order."""
        starts = [step for step, _ in self.pass_starts]
        passes_of = np.searchsorted(starts, self.step, side="left")
        names = [*self.classes.tolist(), None]
        for m in range(len(self)):
            yield Mistake(
                int(passes_of[m]),
                int(self.step[m]),
                int(self.example[m]),
                names[self.up[m]],
                names[self.down[m]],
                float(self.correction[m]) if self.correction.size else 1.0,
                float(self.score[m]) if self.score.size else None,
            )

    def __repr__(self) -> str:
        if self.absent and not len(self):
            return f"<Ledger: none of {self.total:,} mistakes kept, {self.steps:,} steps, {len(self.pass_starts)} passes>"
        return f"<Ledger: {len(self):,} mistakes in {self.steps:,} steps, {len(self.pass_starts)} passes>"

    # Writing, as a run goes on.

    def begin_pass(self) -> None:
        """Note that a pass starts here."""
        self.pass_starts.append((self.steps, self.total))

    def append(
        self,
        step: Array,
        example: Array,
        up: Array,
        down: Array,
        correction: Array,
        score: Array,
        shrink: Array = NO_WEIGHT,
    ) -> None:
        """Add mistakes; where that makes more than `limit`, let go of all of them and only count on."""
        if self.limit is not None and (self.absent or len(self) + len(step) > self.limit):
            self.let_go()
            self.absent += len(step)
            return
        if self._correction.size or np.any(correction != 1.0):
            if not self._correction.size:
                self._correction.append(np.ones(len(self)))
            self._correction.append(correction)
        self._step.append(step)
        self._example.append(example)
        self._up.append(up)
        self._down.append(down)
        if self.rule.spread:
            self._shrink.append(shrink)
        if self._scored:
            self._score.append(score)

    def let_go(self) -> None:
        """Keep only the number of the mistakes made so far."""
        self.absent += len(self)
        for column in self._columns:
            column.replace(column.values[:0].copy())

    def count_only(self) -> None:
        """Keep only the number of the mistakes made so far, without their rows, and record no scores from now on."""
        self.let_go()
        self.stored, self._scored = None, False

    def insert_class(self, classes: Array, place: int) -> None:
        """Make room for a class that was first met now."""
        if self.score.size and len(self.classes) == 2:  # from the score of w to the lead of w over −w
            self._score.replace(2.0 * self.score * np.where(self.up == 1, 1.0, -1.0))
        for column in (self._up, self._down):
            codes = column.values.astype(np.int64)
            column.replace(np.empty(0, column.values.dtype))
            column.append(codes + (codes >= place))
        if self.start is not None:
            self.start = Weights(*(with_class(w, len(self.classes), place) for w in self.start))
        self.classes, self.grown = classes, True

    def resize(self, d: int) -> None:
        """Let there be d features."""
        if self.start is not None:
            start = Flat(self._n_outputs, self.n_features, False, self.start)
            start.resize(d)
            self.start = start.weights()
        if self.stored is not None:
            self.stored.resize(d)
        self.n_features = d

    def cut_to(self, pass_number: int, steps: int, mistakes: int) -> None:
        """Go back to the end of a pass, forgetting what came after and saying so."""
        self.cut = Cut(pass_number, steps, self.total - mistakes)
        self.steps = steps
        self.absent = min(self.absent, mistakes)
        del self.pass_starts[pass_number:]
        for column in self._columns:
            column.truncate(min(mistakes, len(column.values)))

    def keep_rows(self, rows: Rows, offset: int, since: int) -> None:
        """Store the rows of the mistakes from number `since` on, each example once; `rows` begin at example `offset`."""
        fresh, place = np.unique(self.example[since:].astype(np.int64), return_inverse=True)
        self.stored = self.stored or Store(self.n_features)
        self._row.append(place + self.stored.n)
        self.stored.add(rows.take(fresh - offset))

    def keep_examples(self, numbers: Array, rows: Rows) -> None:
        """Store the rows of these examples, sorted, which are all that any mistake was made on."""
        self.stored = Store(self.n_features)
        self.stored.add(rows)
        self._row.replace(np.searchsorted(numbers, self.example).astype(np.uint32))

    # Saving.

    def pack(self, parcel: Parcel, at: str, with_mistakes: bool) -> State:
        """Put the ledger into a parcel, with its mistakes or only with their number."""
        stored = "none"
        if with_mistakes:
            self.pack_columns(parcel, at)
            if self.stored is not None:
                stored = self.stored.rows().pack(parcel, f"{at}.rows")
        if self.start is not None:
            self.start.pack(parcel, f"{at}.start")
        parcel.put(f"{at}.pass_starts", np.array(self.pass_starts, dtype=np.int64).reshape(-1, 2))
        return {
            **{name: getattr(self, name) for name in ("weighted", "grown", "steps", "average_after")},
            "kept": self.kept,
            "cut": None if self.cut is None else [*self.cut],
            "scored": bool(self._scored),
            "absent": self.absent + (0 if with_mistakes else len(self)),
            "started": self.start is not None,
            "columns": with_mistakes,
            "stored": stored,
        }

    def unpack(self, state: State, parcel: Parcel, at: str) -> None:
        """Fill a new ledger with what a parcel holds."""
        self.weighted, self.grown = flag(state, "weighted"), flag(state, "grown")
        self.steps = whole(state, "steps")
        self.average_after = whole(state, "average_after", -1)
        self.absent = whole(state, "absent")
        if flag(state, "started"):
            self.start = Weights.unpack(parcel, f"{at}.start", self._n_outputs, self.n_features)
        if flag(state, "columns"):
            self._unpack_mistakes(word(state, "stored", ("none", "dense", "csr")), parcel, at)
        starts = parcel.take(f"{at}.pass_starts", "i8", (-1, 2), low=0, high=MOST)
        if starts.size and (starts[:, 0].max() > self.steps or starts[:, 1].max() > self.total):
            raise StateError(f"{at}.pass_starts begin after the end")
        self.pass_starts = [(step, mistakes) for step, mistakes in starts.tolist()]
        self.kept = None if state["kept"] is None else whole(state, "kept", 0, self.total)
        self.cut = None if state["cut"] is None else Cut(*(whole(state["cut"], i) for i in range(3)))  # type: ignore[arg-type]

    def _unpack_mistakes(self, stored: str, parcel: Parcel, at: str) -> None:
        has_rows, last = stored != "none", len(self.classes) - 1
        self.unpack_columns(parcel, at, self.steps, last, shrinks=bool(self.rule.spread), has_rows=has_rows)
        if not has_rows:
            return
        rows = Rows.unpack(stored, parcel, f"{at}.rows", self.n_features)
        if len(self) and int(self.row.max()) >= rows.n:
            raise StateError(f"{at}.row refers to rows that are missing")
        self.stored = Store(self.n_features)
        self.stored.add(rows)

    # Reading.

    def weights(self, X: Any = None) -> Weights:
        """Replay to exactly the fitted weights: the last, the averaged or the pocketed ones, as the learner has it.

        X is the training data (all batches of a stream, one after the other); it is not needed where the mistakes' rows
        were stored (`record=True`, and every voted perceptron).
        """
        last = self.at(len(self) if self.kept is None else self.kept, X)
        elapsed = self.steps - self.average_after
        if elapsed <= 0:
            return last
        before = frozen(self.step.astype(np.float64) - 1.0 - self.average_after)
        late = self._replay(len(self), X, before)
        return averaged(last, late, elapsed)

    def at(self, k: int, X: Any = None) -> Weights:
        """Return the weights after the first k mistakes."""
        if not 0 <= k <= len(self):
            raise ValueError(f"k must be between 0 and the {len(self)} mistakes of the ledger, got {k}")
        return self._replay(k, X, NO_WEIGHT, self.start)

    def _check_whole(self) -> None:
        if self.absent:
            why = "the model was saved without them" if self.limit is None else f"there were more than {self.limit:,}"
            why = "training on shards only counts them" if self.limit == 0 else why
            raise ValueError(f"{self.absent:,} mistakes of the ledger were not kept ({why}): nothing can be replayed")

    def _replay(self, k: int, X: Any, scale: Floats, start: Weights | None = None) -> Weights:
        self._check_whole()
        rows, numbers = self.mistaken_rows(X)
        state = self.state(rows.sparse, start)
        self.replay_into(state, rows, numbers, slice(0, k), scale)
        return state.weights()

    def state(self, sparse: bool, start: Weights | None) -> Flat:
        """Return the weights before the first mistake, and Σ where the rule keeps one, for a replay."""
        return Flat(self._n_outputs, self.n_features, sparse, start, spread=self.rule.spread)

    def replay_into(self, state: Flat, rows: Rows, numbers: Array, which: slice, scale: Floats = NO_WEIGHT) -> None:
        """Apply the corrections of some mistakes to `state`; mistake m was made on row numbers[m]."""
        for part, block, at in self._blocks(rows, numbers, which):
            replays.replay(
                *(block.parts, self.n_features, at, *self._pairs(part), self._of(self.correction, part)),
                *(self._of(self.shrink, part), self._of(scale, part), *state.arrays, state.K, self.bias),
                self.rule.spread == "full",
            )

    def directions(self, state: Flat, rows: Rows, numbers: Array, which: slice) -> tuple[Array, Array]:
        """Return Σx̃ of some mistakes, the bias last, for the class raised and for the class lowered; `state` goes on."""
        raised, lowered = np.zeros((2, which.stop - which.start, self.n_features + 1))
        for part, block, at in self._blocks(rows, numbers, which):
            here = slice(part.start - which.start, part.stop - which.start)
            replays.directions(
                *(block.parts, self.n_features, at, *self._pairs(part), self._of(self.shrink, part)),
                *(*state.arrays, state.K, self.bias, self.rule.spread == "full", raised[here], lowered[here]),
            )
        return raised, raised if state.K == 1 else lowered

    def _blocks(self, rows: Rows, numbers: Array, which: slice) -> Iterator[tuple[slice, Rows, Array]]:
        """Yield some mistakes in blocks: which they are, rows that a kernel can read, and the row of each among them."""
        for begin in range(which.start, which.stop, rows.block):
            part = slice(begin, min(begin + rows.block, which.stop))
            block, at = rows, frozen(numbers[part].astype(np.int64))
            if rows.parts is None:
                block, at = rows.take(at), frozen(np.arange(part.stop - part.start))
            yield part, block, at

    def _pairs(self, part: slice) -> tuple[Array, Array]:
        return frozen(self.up[part].astype(np.int32)), frozen(self.down[part].astype(np.int32))

    @staticmethod
    def _of(column: Floats, part: slice) -> Floats:
        return column[part] if column.size else NO_WEIGHT

    def mistaken_rows(self, X: Any = None) -> tuple[Rows, Array]:
        """Return rows, stored or of X, and the row of each mistake among them."""
        self._check_whole()
        if self.stored is not None:
            return self.stored.rows(), self.row
        if X is None:
            raise ValueError("the rows of the mistakes were not stored: pass the training X, or train with record=True")
        rows = as_rows(X)
        if rows.d != self.n_features or (len(self) and rows.n <= int(self.example.max())):
            raise ValueError(
                f"X of shape {(rows.n, rows.d)} is not what the ledger was written on: "
                f"it needs {self.n_features} features and a row {int(self.example.max(initial=0))}"
            )
        return rows, self.example

    @property
    def _n_outputs(self) -> int:
        return n_outputs(len(self.classes))

    def survival(self, since: int = 0) -> Floats:
        """Return how many steps the weights before each mistake from `since` on lasted, then those of the last weights.

        A weight vector lasts from the step that made it up to the one before the next mistake (L4 8).
        """
        step = self.step.astype(np.int64)
        ends = np.append(step[since:], self.steps + 1)
        begin = step[since - 1] if since else 1
        return np.diff(ends, prepend=begin).astype(np.float64)

    def verify(self, X: Any, y: Any) -> bool:
        """Tell whether every mistake really was one, given the corrections before it, on these data."""
        self._check_whole()
        rows = as_rows(X)
        labels = as_labels(y)
        if rows.d != self.n_features or len(labels) != rows.n:
            return False
        try:
            codes = encode_as(self.classes, labels)
        except ValueError:
            return False
        if len(self) and (rows.n <= int(self.example.max()) or np.any(np.diff(self.step.astype(np.int64)) < 0)):
            return False
        state = self.state(rows.sparse, self.start)
        length = np.sqrt(np.sum(state.W**2) + np.sum(state.b**2))
        memo = np.array([length, float(length == 0.0)])
        how = self.bias, self.joint, self.tie, self.rule.code, self.rule.margin
        for part, block, at in self._blocks(rows, self.example, slice(0, len(self))):
            true = codes if block is rows else codes[self.example[part].astype(np.int64)]
            right = replays.audit(
                *(block.parts, self.n_features, frozen(true), at, *self._pairs(part), self._of(self.correction, part)),
                *(self._of(self.shrink, part), self._of(self.score, part), *state.arrays, np.empty(state.K), how),
                *(self.rule.C, not self.weighted, not self.grown, memo),
            )
            if right < part.stop - part.start:
                return False
        return True
