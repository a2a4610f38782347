"""A fit made again without some of its examples: in the same order, in which those are skipped, and from the ledger.

What is fitted from the data (classes, weights of classes, C, held-out examples) is fitted again without them. Where that
changes nothing for the examples that are left, the earlier mistakes are repeated up to the first one on a forgotten example
(`engine/rehearsal.py`); else training starts from the beginning, and `why` says so.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from separatrix.engine.orders import Gaps, gaps_for
from separatrix.engine.presenting import Problem
from separatrix.engine.rehearsal import Rehearsal, check_mistakes, check_order
from separatrix.engine.rows import Floats, Ints
from separatrix.engine.run import Run
from separatrix.engine.stopping import History

if TYPE_CHECKING:
    from separatrix.learners.linear_base import LinearLearner


@dataclass
class Forgetting:
    """The order of a training without the forgotten examples, and the earlier training where it is at hand.

    Attributes
    ----------
    seed, gaps : the order of all examples, and those of them that it skips
    earlier, problem, forgotten : the earlier learner, what it was trained on, and what of that is forgotten now
    why : why training starts from the beginning; "": it does not
    skipped : how many presentations the ledger made unnecessary
    first_mistake : the first mistake, from 0, that was made on a forgotten example; None: there is none
    """

    seed: int
    gaps: Gaps
    earlier: LinearLearner | None = None
    problem: Problem | None = None
    forgotten: Ints | None = None
    why: str = ""
    skipped: int = 0
    first_mistake: int | None = None

    @classmethod
    def of(cls, earlier: LinearLearner, problem: Problem, forgotten: Ints, why: str = "") -> Forgetting:
        """Return the order without some examples, sorted, of a fitted learner and what it was trained on."""
        run, gaps = earlier.run_, _gaps_of(earlier.run_, problem)
        check_order(run, problem, gaps)
        on_forgotten = np.flatnonzero(np.isin(run.ledger.example, forgotten))
        first = int(on_forgotten[0]) if on_forgotten.size else None
        return cls(run.seed, gaps.joined(forgotten), earlier, problem, forgotten, why, first_mistake=first)

    def rehearsal(self, run: Run, problem: Problem) -> Rehearsal | None:
        """Return the earlier mistakes, to repeat them in a new run on what is left; None: start from the beginning."""
        if self.earlier is None or self.problem is None or self.forgotten is None:
            return None
        earlier, before = self.earlier.run_, self.problem
        self.why = self.why or self._change(run, problem)
        if self.why:
            return None
        gaps = earlier.gaps if earlier.gaps.numbers.size else Gaps(earlier.gaps.numbers, self.gaps.run)
        rehearsal = Rehearsal(earlier, before, gaps, self.forgotten)
        # Only a reason to stop that looks at the losses needs those of each pass.
        rehearsal.trusted = rehearsal.reaches_end and self.earlier.tol is None
        return rehearsal

    def _change(self, run: Run, problem: Problem) -> str:
        """Return what is different for the examples that are left; "" where nothing is."""
        assert self.earlier is not None and self.problem is not None and self.forgotten is not None
        earlier = self.earlier.run_
        if len(run.classes) != len(earlier.classes) or not np.array_equal(run.classes, earlier.classes):
            return "a class has no example left"
        if run.last.d != earlier.last.d:
            return "there are other features"
        if run.rule != earlier.rule:
            return f"C was chosen again: {run.rule.C:g} in place of {earlier.rule.C:g}"
        if not self.problem.weight.size and not problem.weight.size:
            before = self.problem.weight
        else:
            before = _weights(self.problem)
        if before.size and not np.array_equal(np.delete(before, self.forgotten), _weights(problem)):
            balanced = "the weights of the classes have changed"
            held_out = "other examples are held out"
            return balanced if self.earlier.class_weight is not None else held_out
        if earlier.heaviest.size and before.max(initial=0.0) > 1.0:
            return "weights count relative to the heaviest one presented before"
        if _has_lost_variance(earlier):
            return "variances have shrunk to 0, where examples may be misjudged without a correction"
        return ""


def check_data(earlier: LinearLearner, problem: Problem) -> None:
    """Raise where the mistakes of a fitted learner show that it was fitted on other data than these."""
    gaps = _gaps_of(earlier.run_, problem)
    check_order(earlier.run_, problem, gaps)
    check_mistakes(earlier.run_, problem, gaps)


def _gaps_of(run: Run, problem: Problem) -> Gaps:
    return run.gaps if run.gaps.numbers.size else gaps_for(run.order, problem.rows, problem.codes)


def _has_lost_variance(run: Run) -> bool:
    """Tell whether x̃ᵀΣx̃ may have been 0 for an example x that is not, of which the ledger would say nothing."""
    if not run.rule.spread:
        return False
    sigma, sigma_intercept = run.last.spreads()
    if run.rule.spread == "diagonal":
        return bool(np.any(sigma <= 0.0) or np.any(sigma_intercept <= 0.0))
    values = np.linalg.eigvalsh(sigma)
    return bool(np.any(values[:, 0] <= 1e-9 * values[:, -1]))


def _weights(problem: Problem) -> Floats:
    return problem.weight if problem.weight.size else np.ones(problem.rows.n)


def trained(
    begin: Callable[[], Run], make_passes: Callable[[Run], History], problem: Problem, without: Forgetting | None
) -> tuple[Run, History]:
    """Return a run after its passes, and their history; examples that are forgotten are skipped."""
    run = begin()
    if without is None:
        return run, make_passes(run)
    run.gaps = without.gaps
    rehearsal = run.rehearsal = without.rehearsal(run, problem)
    history = make_passes(run)
    if rehearsal is not None and rehearsal.trusted and history.passes < len(rehearsal.earlier.ledger.pass_starts):
        # Training ends sooner than it did, where the errors and losses counted so far are not known without scores.
        run = begin()
        run.gaps = without.gaps
        rehearsal = run.rehearsal = without.rehearsal(run, problem)
        assert rehearsal is not None
        rehearsal.trusted = False
        history = make_passes(run)
    run.rehearsal = None
    without.skipped = 0 if rehearsal is None else rehearsal.steps
    return run, history
