"""The training loop with passes that were written down beforehand: what is asked in which order, and how it ends."""

import numpy as np
import pytest

from separatrix.engine.loop import OUTGROWN, train
from separatrix.engine.stopping import Cycle, HeldOutStall, History, PassLimit, WeightsRepeat, reasons


class FakePasses:
    """Passes whose mistakes, losses and held-out scores are given, and a log of all that the loop does."""

    def __init__(self, mistakes, *, losses=None, scores=None, states=None, finite=None):
        self.mistakes, self.losses = mistakes, losses or [0.0] * len(mistakes)
        self.scores, self.states, self.finite = scores, states, finite or [True] * len(mistakes)
        self.log, self.made = [], 0

    def make_pass(self, number):
        self.log.append(f"pass {number}")
        self.made = number + 1
        return self.mistakes[number], self.losses[number]

    def sweep_is_clean(self):
        return True

    def held_out_accuracy(self):
        return None if self.scores is None else self.scores[self.made - 1]

    def snapshot(self, passes):
        self.log.append(f"snapshot {passes}")
        return passes

    def restore(self, snapshot):
        self.log.append(f"restore {snapshot}")

    def finish(self):
        self.log.append("finish")

    def state(self):
        return (np.array([self.states[self.made]]),)

    def past_states(self):
        return [(np.array([state]),) for state in self.states[: self.made]]

    def cycle_start(self, period):
        return next(k for k, state in enumerate(self.states, 1) if state == self.states[k - 1 + period])

    def verdict(self, seconds):
        return "undecided"

    def is_finite(self):
        return self.finite[self.made - 1]


class LoggingReason:
    """A reason that logs its questions and says yes at one of them."""

    def __init__(self, name, log, yes=""):
        self.name, self.log, self.yes = name, log, yes

    def answer(self, question):
        self.log.append(f"{self.name} {question}")
        return self.yes == question

    def before(self, history, passes):
        return self.answer(f"before {history.passes}")

    def after(self, history, passes):
        return self.answer(f"after {history.passes}")


def log_of(passes, *answers):
    """Train with a logging reason for each answer; return the history and the log."""
    named = [LoggingReason(name, passes.log, yes) for name, yes in zip("ABC", answers, strict=False)]
    history = train(passes, named, after_pass=lambda history: passes.log.append(f"report {history.ended or 'none'}"))
    return history, passes.log


def test_every_reason_is_asked_after_a_pass_and_the_first_yes_counts():
    history, log = log_of(FakePasses([3, 2]), "", "after 2", "after 2")
    assert log == [
        *("A before 0", "B before 0", "C before 0", "pass 0", "A after 1", "B after 1", "C after 1", "report none"),
        *("A before 1", "B before 1", "C before 1", "pass 1", "A after 2", "B after 2", "C after 2", "report B"),
        "finish",
    ]
    assert history == History([3, 2], [0.0, 0.0], ended="B")


def test_a_yes_before_a_pass_ends_training_without_it():
    history, log = log_of(FakePasses([3, 2]), "", "before 1", "before 1")
    assert log[-3:] == ["A before 1", "B before 1", "finish"] and "pass 1" not in log
    assert (history.ended, history.passes) == ("B", 1)


def test_the_history_has_mistakes_losses_and_scores():
    passes = FakePasses([4, 0], losses=[0.5, 0.25], scores=[0.75, 1.0])
    history = train(passes, reasons(order="shuffle", max_iter=5, patience=5))
    assert history == History([4, 0], [0.5, 0.25], [0.75, 1.0], ended="clean")
    assert passes.log == ["pass 0", "pass 1", "finish"], "scores alone do not stop early: nothing is remembered"


@pytest.mark.parametrize(
    ("scores", "mistakes", "ended", "log"),
    [
        ([0.5, 0.8, 0.7, 0.8], [3] * 4, "held-out", ["pass 2", "pass 3", "restore 2"]),
        ([0.5, 0.8, 0.7], [3, 3, 0], "clean", ["pass 2", "restore 2"]),
        ([0.5, 0.6, 0.7], [3, 3, 0], "clean", ["pass 2", "snapshot 3", "finish"]),
    ],
    ids=["stalled", "clean, but worse", "clean and best"],
)
def test_early_stopping_goes_back_to_the_best_pass(scores, mistakes, ended, log):
    passes = FakePasses(mistakes, scores=scores)
    history = train(passes, reasons(order="shuffle", max_iter=9, patience=2, early_stopping=True))
    assert history.ended == ended and passes.log[-len(log) :] == log


def test_a_loss_that_stalls_ends_training():
    passes = FakePasses([1] * 5, losses=[1.0, 0.5, 0.5, 0.5, 0.5])
    history = train(passes, reasons(order="shuffle", max_iter=9, patience=2, tol=0.1))
    assert (history.ended, history.passes) == ("loss", 4) and passes.log[-1] == "finish"


@pytest.mark.parametrize(("max_iter", "ended", "made"), [(None, "cycle", 2), (6, "limit", 6)])
def test_a_cycle_ends_training_only_without_a_limit(max_iter, ended, made):
    passes = FakePasses([1] * 8, states=[5, 6, 6, 6, 6, 6, 6, 6])
    history = train(passes, reasons(order="cyclic", max_iter=max_iter, patience=5))
    assert (history.ended, history.passes, history.cycle) == (ended, made, Cycle(2, 1))


def test_numbers_that_outgrow_float64_are_an_error():
    passes = FakePasses([1, 1], finite=[True, False])
    with pytest.raises(ValueError, match="outgrew float64"):
        train(passes, [PassLimit(5)])
    assert passes.log == ["pass 0", "pass 1"], "nothing is finished or reported"
    with pytest.raises(ValueError, match="the scores"):
        train(FakePasses([1], finite=[False]), [PassLimit(5)], outgrown="the scores")
    assert "float64" in OUTGROWN


@pytest.mark.parametrize("cut", range(6))
def test_a_resumed_training_is_that_which_was_not_interrupted(cut):
    def some_passes():
        scores = [0.5, 0.7, 0.6, 0.8, 0.7, 0.7]
        return FakePasses([1] * 6, losses=[0.5] * 6, scores=scores, states=[9, 1, 2, 3, 1, 2, 3])

    def some_reasons():
        return [WeightsRepeat(ends=False), HeldOutStall(2), PassLimit(6)]

    expected, whole = train(some_passes(), some_reasons()), some_passes()
    train(whole, some_reasons())
    first, second = some_passes(), some_passes()
    history = train(first, [WeightsRepeat(ends=False), HeldOutStall(9), PassLimit(cut)])
    second.made, history.ended = history.passes, ""
    assert train(second, some_reasons(), history) == expected
    assert expected.ended == "held-out" and history is not expected
    calls = [call for call in first.log if call.startswith(("pass", "snapshot"))]
    assert calls + second.log == whole.log


def test_a_training_that_has_ended_makes_no_pass_but_goes_back_to_its_best_one():
    passes = FakePasses([1] * 3, scores=[0.9, 0.8, 0.7])
    history = History([1] * 3, [0.0] * 3, [0.9, 0.8, 0.7], best=1, ended="limit")
    train(passes, [HeldOutStall(5), PassLimit(3)], history)
    assert passes.log == ["restore 1"]
    passes = FakePasses([1] * 3)
    train(passes, [PassLimit(3)], History([1] * 3, [0.0] * 3, ended="limit"))
    assert passes.log == ["finish"]
