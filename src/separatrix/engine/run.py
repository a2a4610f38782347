"""A run: the weights while they are trained, the clock and the ledger (L1 5, L2 4, 9, L3 5, L4 2–8)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from math import isfinite
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from separatrix.engine.labels import with_newcomer
from separatrix.engine.ledger import NEVER, Ledger
from separatrix.engine.loop import OUTGROWN
from separatrix.engine.orders import NO_GAPS, Gaps, Visits
from separatrix.engine.parcel import MOST, Parcel, State, StateError, flag, number, whole, word
from separatrix.engine.presenting import Mistakes, Presenter, Problem, Sink
from separatrix.engine.rows import NO_ORDER, Array, Floats, Ints, Rows, writable
from separatrix.engine.rules import MULTI_CLASS, ORDERS, RULES, TIES, Rule, tie_code
from separatrix.engine.weights import Flat, Weights, averaged, n_outputs
from separatrix.kernels.codes import TIE_IS_FIRST, TIE_IS_PLUS
from separatrix.kernels.learning import passes
from separatrix.kernels.threads import in_order

if TYPE_CHECKING:
    from separatrix.engine.rehearsal import Rehearsal


class Snapshot(NamedTuple):
    """How things were after a pass."""

    passes: int
    steps: int
    mistakes: int
    kept: int | None
    last: Weights
    late: Weights
    spread: list[Array]


_UNTOUCHED = {"diagonal": 1.0, "full": 0.0}
"""What most numbers of Σ are as long as nothing has corrected them."""


class Run:
    """The state of one training: its weights, its clock and its ledger."""

    gaps: Gaps = NO_GAPS
    """The examples that were forgotten, which the order skips."""
    rehearsal: Rehearsal | None = None
    """Where examples are being forgotten: the earlier run, whose mistakes take the place of presentations."""

    def __init__(
        self,
        classes: Array,
        n_features: int,
        *,
        bias: bool,
        tie: str,
        multi_class: str,
        average: bool,
        scored: bool,
        rule: Rule | None = None,
        keeps_rows: bool = False,
        start: Weights | None = None,
        resumable: bool = True,
    ) -> None:
        self.resumable = resumable
        self.bias, self.tie, self.multi_class, self.average = bias, tie, multi_class, average
        self.keeps_rows = keeps_rows
        self.rule = rule or Rule()
        self.ledger = Ledger(
            *(classes, n_features),
            bias=bias,
            tie=tie_code(tie, len(classes), multi_class),
            scored=scored,
            start=start,
            rule=self.rule,
            joint=len(classes) > 2 and multi_class == "joint",
        )
        self.last = self.ledger.state(False, start) if resumable else Flat(n_outputs(len(classes)), 0, False)
        self.late = Flat(self.last.K, n_features if average and resumable else 0, False)
        self.tally = np.zeros(2)
        self.heaviest: Floats = np.ones(1) if self.rule.entry.relative else np.empty(0)
        self.per_pass: list[int] = []
        self.rows_seen, self.steps_dropped = 0, 0
        self.radius_squared, self.streaming = 0.0, False
        self.order, self.seed = "cyclic", 0
        self.left_out: Ints = NO_ORDER
        self.used: Weights | None = None
        self._presenter: Presenter | None = None

    @property
    def classes(self) -> Array:
        """The classes met or declared so far, sorted."""
        return self.ledger.classes

    @property
    def joint(self) -> bool:
        """Whether K > 2 classes are corrected in pairs."""
        return self.ledger.joint

    @property
    def errors(self) -> int:
        """How many examples would have been given another class than their own, when they were presented."""
        return int(self.tally[0])

    def add_class(self, label: Any) -> None:
        """Meet a class for the first time: it starts from zero weights."""
        self.check_resumable()
        before = len(self.classes)
        classes, place = with_newcomer(self.classes, label)
        self.ledger.tie = tie_code(self.tie, len(classes), self.multi_class)
        for flat in (self.last, self.late):
            flat.add_class(before, place)
        self.ledger.insert_class(classes, place)
        self.ledger.joint = len(classes) > 2 and self.multi_class == "joint"
        self.used = None

    def resize(self, d: int) -> None:
        """Make room for d features, or leave out all but the first d."""
        self.check_resumable()
        self.last.resize(d)
        if self.average:
            self.late.resize(d)
        self.ledger.resize(d)
        self.used = None

    def stream(self) -> None:
        """Begin the one pass that a stream is, unless it has begun."""
        if not self.streaming:
            if self.ledger.average_after == NEVER:
                self.average_from_here()
            self.streaming = True
            self.ledger.begin_pass()
            self.per_pass.append(0)

    def average_from_here(self) -> None:
        """Let the average begin with the next step."""
        if self.average:
            self.ledger.average_after = self.ledger.steps

    def check_resumable(self) -> None:
        """Raise where only the weights that predict were saved."""
        if not self.resumable:
            raise ValueError(
                "the model was saved with resume=False, without what further learning needs: it predicts, and cannot "
                "continue to learn; train again, and save without resume=False"
            )

    def weights(self) -> Weights:
        """Return the weights that the learner will use: averaged where it averages and has begun to, else the last."""
        if self.used is None:
            elapsed = self.ledger.steps - self.ledger.average_after
            try:
                with np.errstate(over="raise", invalid="raise"):
                    averages = elapsed > 0
                    self.used = averaged(self.last.view(), self.late.view(), elapsed) if averages else self.last.weights()
            except FloatingPointError:
                raise ValueError(OUTGROWN) from None
        return self.used

    def snapshot(self, passes: int) -> Snapshot:
        """Return how things are after so many passes."""
        ledger = self.ledger
        state = self.last.weights(), self.late.weights(), self.last.spreads()
        return Snapshot(passes, ledger.steps, ledger.total, ledger.kept, *state)

    def is_finite(self) -> bool:
        """Tell whether weights and averages are finite."""
        return all(are_finite(W) for W in (self.last.W, self.late.W))

    def restore(self, then: Snapshot) -> None:
        """Go back to how things were after an earlier pass."""
        self.steps_dropped = self.ledger.steps - then.steps
        self.ledger.cut_to(then.passes, then.steps, then.mistakes)
        self.ledger.kept = then.kept
        self.last.load(then.last)
        self.late.load(then.late)
        if then.spread:
            self.last.load_spread(then.spread)
        self.used = None

    def begin_pass(self, number: int, average_from: int) -> None:
        """Begin pass `number`, from 0; the average begins with pass `average_from`, from 1."""
        if number + 1 == average_from:
            self.average_from_here()
        self.ledger.begin_pass()

    def present(self, problem: Problem, blocks: Iterable[Visits], numbers: int | Ints = 0) -> int:
        """Present blocks of visits; return the number of mistakes. Row i is example numbers[i], or `numbers` + i if one."""
        ledger = self.ledger
        if self.rehearsal is not None and (repeated := self.rehearsal.make_pass(self, problem)) is not None:
            return repeated

        def record(mistakes: Mistakes, copied: Ints | None) -> None:
            step, example, _, up, down, correction, score, shrink = mistakes
            row = example if copied is None else copied[example]
            example = row + numbers if isinstance(numbers, int) else numbers[row]
            ledger.append(step, example, up, down, correction, score, shrink)

        before = ledger.total
        with self.presenting(problem.rows) as presenter:
            for block in blocks:
                if presenter is None:
                    ledger.steps += _count_presented(problem, block)
                else:
                    presenter.present_anywhere(problem, block, record)
        return ledger.total - before

    def present_to(
        self, problem: Problem, begin: int, end: int, sink: Sink, flags: Array, rows_at_once: int, slots: Ints = NO_ORDER
    ) -> None:
        """Present rows begin…end in order, handing the mistakes to `sink` and not to the ledger.

        `slots` has the output of each class, where the weights have room for more classes than there are.
        """
        with self.presenting(problem.rows, slots) as presenter:
            block = Visits(NO_ORDER, begin, end)
            if presenter is None:
                self.ledger.steps += _count_presented(problem, block)
            else:
                presenter.present(problem, block, sink, flags=flags, rows_at_once=rows_at_once)

    @contextmanager
    def presenting(self, rows: Rows, slots: Ints = NO_ORDER) -> Iterator[Presenter | None]:
        """Yield the presenter of this run, whose clock is the ledger's; None while there is a single class."""
        self.check_resumable()
        if rows.d != self.last.d:
            raise ValueError(f"the weights are for {self.last.d} features, but X has {rows.d}: fit again")
        ledger, self.used = self.ledger, None
        self.last.lay(rows.sparse)
        self.late.lay(rows.sparse)
        if len(self.classes) < 2:  # nothing can be a mistake
            yield None
            return
        presenter = self._presenter
        if presenter is None:
            presenter = self._presenter = Presenter(
                *(self.last, self.late, self.rule, self.bias, self.joint, ledger.tie, np.array([self.rule.C])),
                *(ledger.steps, ledger.average_after, self.heaviest, self.tally),
            )
        presenter.last, presenter.late, presenter.heaviest, presenter.tally = self.last, self.late, self.heaviest, self.tally
        presenter.joint, presenter.tie, presenter.slots = self.joint, ledger.tie, slots
        presenter.steps, presenter.average_after = ledger.steps, ledger.average_after
        try:
            yield presenter
        finally:
            ledger.steps = presenter.steps
        self.last.check_spread()

    def training_mistakes(self, problem: Problem, flat: Flat, *, decided: bool = False) -> float:
        """Return the weight of the examples that are mistakes to the rule under some weights, correcting nothing.

        With `decided`, it is the decision that counts, whatever the rule: the sign, or the highest of the outputs.
        """
        total = 0.0
        joint, tie = self.joint or (decided and flat.K > 1), self.ledger.tie
        rule = (RULES["perceptron"].code, 0.0) if decided else (self.rule.code, self.rule.margin)
        if decided and flat.K > 1 and tie == TIE_IS_PLUS:
            tie = TIE_IS_FIRST
        flat.lay(problem.rows.sparse)

        def mistaken(bounds: tuple[int, int]) -> float:
            begin, end = bounds
            here, at = (problem, begin) if problem.rows.parts is not None else (problem.taken(np.arange(begin, end)), 0)
            weight: float = passes.count_mistakes(
                *(here.rows.parts, here.rows.d, here.codes, here.weight, at, at + end - begin),
                *(flat.W, flat.b, np.empty(flat.K), self.bias, joint, tie, *rule),
            )
            return weight

        for weight in in_order(mistaken, problem.rows.blocks(), problem.rows.threads(flat.K)):
            total += weight
        return total

    # Saving.

    def pack(self, parcel: Parcel, at: str) -> State:
        """Put the run into a parcel; the weights that it uses are enough to predict."""
        resumable = self.resumable and parcel.resume
        if not resumable:
            parcel.format = 2
        if resumable:
            self.last.weights().pack(parcel, f"{at}.last")
        if resumable and self.average:
            self.late.weights().pack(parcel, f"{at}.late")
        if not resumable or self.ledger.kept is not None:
            self.weights().pack(parcel, f"{at}.used")
        if resumable and self.rule.spread:
            sigma, sigma_intercept = self.last.spreads()
            parcel.put_masked(f"{at}.sigma", sigma, _UNTOUCHED[self.rule.spread])
            parcel.put(f"{at}.sigma_intercept", sigma_intercept)
        parcel.put(f"{at}.tally", self.tally)
        parcel.put(f"{at}.per_pass", np.array(self.per_pass, dtype=np.int64))
        parcel.put(f"{at}.left_out", self.left_out)
        if self.gaps.numbers.size:
            parcel.put(f"{at}.forgotten", self.gaps.numbers)
        names = ("tie", "multi_class", "rows_seen", "steps_dropped", "streaming", "order", "seed")
        return {
            **{name: getattr(self, name) for name in names},
            **{name: bool(getattr(self, name)) for name in ("bias", "average", "keeps_rows")},
            "radius_squared": float(self.radius_squared),
            **({"heaviest": float(self.heaviest[0])} if np.any(self.heaviest > 1.0) else {}),
            "rule": {"name": self.rule.name, "margin": float(self.rule.margin), "C": float(self.rule.C)},
            "ledger": self.ledger.pack(parcel, f"{at}.ledger", resumable and parcel.ledger),
            **({} if resumable else {"resumable": False}),
            **({"shuffled_runs": self.gaps.run} if self.gaps.numbers.size else {}),
        }

    @classmethod
    def unpack(cls, classes: Array, d: int, state: State, parcel: Parcel, at: str) -> Run:
        """Return the run that a parcel holds."""
        K, average, settings = n_outputs(len(classes)), flag(state, "average"), state["rule"]
        rule = Rule(word(settings, "name", RULES), number(settings, "margin"), number(settings, "C"))
        resumable = flag({"resumable": True} | state, "resumable")
        # What a file holds comes first, and then the room for as many features as it claims.
        weights = Weights.unpack(parcel, f"{at}.last" if resumable else f"{at}.used", K, d)
        spread: list[Array] = []
        if resumable and rule.spread:
            shape = (K, d) if rule.spread == "diagonal" else (K, d + 1, d + 1)
            sigma = parcel.take_masked(f"{at}.sigma", shape, _UNTOUCHED[rule.spread])
            spread = [sigma, parcel.take(f"{at}.sigma_intercept", "f8", (K,))]
        run = cls(
            *(classes, d),
            bias=flag(state, "bias"),
            tie=word(state, "tie", TIES),
            multi_class=word(state, "multi_class", MULTI_CLASS),
            average=average,
            scored=flag(state["ledger"], "scored"),
            rule=rule,
            keeps_rows=flag(state, "keeps_rows"),
            resumable=resumable,
        )
        if resumable:
            run.last.load(weights)
        if resumable and average:
            run.late.load(Weights.unpack(parcel, f"{at}.late", K, d))
        if spread:
            run.last.load_spread(spread)
        run.tally = parcel.take(f"{at}.tally", "f8", (2,))
        run.per_pass = parcel.take(f"{at}.per_pass", "i8", (-1,), low=0, high=MOST).tolist()
        run.rows_seen, run.steps_dropped = whole(state, "rows_seen"), whole(state, "steps_dropped")
        run.left_out = parcel.take(f"{at}.left_out", "i8", (-1,), low=0, high=max(0, run.rows_seen - 1))
        if "shuffled_runs" in state:
            numbers = parcel.take(f"{at}.forgotten", "i8", (-1,), low=0, high=MOST)
            last = numbers[-1] if numbers.size else -1
            if np.any(numbers[1:] <= numbers[:-1]) or last >= run.rows_seen + len(numbers):
                raise StateError(f"{at}.forgotten are not sorted, or more than there were")
            run.gaps = Gaps(numbers, whole(state, "shuffled_runs", 1))
        run.streaming, run.seed = flag(state, "streaming"), whole(state, "seed", 0, 1 << 128)
        run.order = word({"order": "cyclic"} | state, "order", ORDERS)  # the first files did not store it
        if (radius_squared := number(state, "radius_squared")) < 0.0:
            raise StateError("radius_squared is negative")
        run.radius_squared, run.heaviest[:] = radius_squared, max(1.0, number({"heaviest": 1.0} | state, "heaviest"))
        run.ledger.unpack(state["ledger"], parcel, f"{at}.ledger")
        if not resumable:
            run.used = weights
        elif run.ledger.kept is not None:
            run.used = Weights.unpack(parcel, f"{at}.used", K, d)
        return run

    def __getstate__(self) -> dict[str, Any]:
        return self.__dict__ | {"_presenter": None}

    def __setstate__(self, state: dict[str, Any]) -> None:
        # Earlier versions had neither.
        earlier: dict[str, Any] = {"heaviest": np.ones(int(state["rule"].entry.relative)), "resumable": True}
        state = earlier | state
        self.__dict__.update(state, **{name: writable(state[name]) for name in ("tally", "heaviest")})


def are_finite(values: Floats) -> bool:
    """Tell whether all numbers are finite; a finite sum shows it at once."""
    with np.errstate(invalid="ignore", over="ignore"):
        return isfinite(np.add.reduce(values)) or bool(np.isfinite(values).all())


def _count_presented(problem: Problem, block: Visits) -> int:
    if not problem.weight.size:
        return block.end - block.begin
    which = block.order[block.begin : block.end] if block.order.size else slice(block.begin, block.end)
    return int(np.count_nonzero(problem.weight[which]))
