"""Each reason to end a training by itself: what it looks at, when it says yes, and what it writes into the history."""

import numpy as np
import pytest

from separatrix.engine.stopping import (
    FIRST_PROOF,
    FIRST_PROOF_OF_CYCLIC,
    PASS_CAP,
    SEPARABLE_PASS_CAP,
    CleanPass,
    Cycle,
    HeldOutStall,
    History,
    LossStall,
    PassLimit,
    ProvenInseparable,
    StateDigests,
    WeightsRepeat,
    reasons,
    why_not_converged,
)


class FakePasses:
    """Passes that were written down beforehand: the state before each, and the answers to what may be asked."""

    def __init__(self, states=(), *, clean=True, verdicts=(), past=()):
        self.states, self.clean, self.verdicts, self.past = iter(states), clean, iter(verdicts), past
        self.seconds = []

    def sweep_is_clean(self):
        return self.clean

    def snapshot(self, passes):
        return f"after pass {passes}"

    def state(self):
        return (np.array(next(self.states)),)

    def past_states(self):
        return [(np.array(state),) for state in self.past]

    def cycle_start(self, period):
        return 100 + period

    def verdict(self, seconds):
        self.seconds.append(seconds)
        return next(self.verdicts)


NOTHING = FakePasses()


def history_of(passes, **more):
    return History([1] * passes, [1.0] * passes, **more)


def ends_after(reason, history, passes, **columns):
    """Append to the history pass by pass; return the numbers of the passes after which the reason says yes."""
    ends = []
    for number, values in enumerate(zip(*columns.values(), strict=True), 1):
        history.mistakes.append(1)
        for name, value in zip(columns, values, strict=True):
            getattr(history, name).append(value)
        if reason.after(history, passes):
            ends.append(number)
    return ends


# A clean pass.


def test_a_pass_without_a_mistake_ends_training():
    assert CleanPass().after(History([2, 0]), NOTHING)
    assert not CleanPass().after(History([0, 2]), NOTHING)
    assert not CleanPass().before(History([2, 0]), NOTHING)


def test_a_pass_that_skipped_examples_counts_only_if_a_sweep_finds_no_mistake():
    assert not CleanPass().after(History([0]), FakePasses(clean=False))


# A cycle.


@pytest.mark.parametrize("ends", [True, False])
def test_a_state_that_comes_back_is_a_cycle(ends):
    reason, history, passes = WeightsRepeat(ends=ends), History(), FakePasses([3, 1, 2, 1, 2, 1, 2, 1, 2])
    answers = []
    while history.cycle is None:
        answers.append(reason.before(history, passes))
    assert history.cycle == Cycle(102, 2)
    assert answers[-1] is ends and not any(answers[:-1])
    assert reason.before(history, passes) is ends, "the cycle stays, and the state is not asked for again"
    assert not reason.after(history, passes)


def test_states_from_before_an_interruption_count():
    states = [3, 1, 2, 1, 2, 1, 2, 1, 2, 1, 2]
    whole, history = WeightsRepeat(ends=True), History()
    passes = FakePasses(states)
    needed = next(number for number in range(len(states)) if whole.before(history, passes))
    for cut in range(needed):
        resumed, history = WeightsRepeat(ends=True), History()
        passes = FakePasses(states[cut:], past=states[:cut])
        assert next(number for number in range(len(states)) if resumed.before(history, passes)) == needed - cut
        assert history.cycle == Cycle(102, 2)


def test_digests_stand_for_states():
    digests = StateDigests()
    states = [[1.0, 0.0], [2.0, 0.0], [3.0, 0.0], [2.0, -0.0], [3.0, 0.0]]
    returned = [digests.add(np.array(state[:1]), np.array(state[1:])) for state in states]
    assert np.array_equal(returned[1], returned[3]), "−0 is 0"
    assert not np.array_equal(returned[0], returned[1])
    assert digests.first_repeated(2) == 2
    again = StateDigests(list(digests.digests))
    assert np.array_equal(again.states(), returned)


# A proof.


def clock(*times):
    return iter(times).__next__


def test_a_proof_is_looked_for_as_the_passes_double_for_as_long_as_training_took():
    passes = FakePasses(verdicts=["undecided", "undecided", "inseparable"])
    reason = ProvenInseparable(4, clock(100.0, 100.2, 100.3, 150.0))
    answers = {number: reason.before(history_of(number), passes) for number in range(16)}
    assert not any(answers.values()) and passes.seconds == [10.0, 1.0]
    assert reason.before(history_of(16), passes) and passes.seconds == [10.0, 1.0, 50.0]
    assert not reason.after(history_of(16), passes)


@pytest.mark.parametrize(("verdict", "ends"), [("inseparable", True), ("touching", True), ("separable", False)])
def test_only_a_proof_that_no_pass_will_be_clean_ends_training(verdict, ends):
    passes, history = FakePasses(verdicts=[verdict]), history_of(2)
    reason = ProvenInseparable(2, clock(0.0, 1.0))
    assert reason.before(history, passes) is ends and history.verdict == verdict
    history.mistakes += [1, 1]
    assert reason.before(history, passes) is ends, "a verdict is final: no other proof is looked for"


def test_a_resumed_training_looks_for_the_proofs_that_are_still_due():
    reason, passes = ProvenInseparable(4, clock(0.0, 1.0)), FakePasses(verdicts=["inseparable"])
    assert not any(reason.before(history_of(number), passes) for number in range(9, 16))
    assert reason.before(history_of(16), passes)


# Held-out examples.


def test_without_held_out_examples_nothing_stalls():
    assert not HeldOutStall(1).after(history_of(5), NOTHING)


def test_held_out_accuracy_that_does_not_rise_ends_training_and_the_best_pass_is_remembered():
    history = History()
    ends = ends_after(HeldOutStall(3), history, NOTHING, scores=[0.5, 0.7, 0.7, 0.6, 0.7])
    assert ends == [5], "an equal score is no rise"
    assert history.best_pass == 2 and history.best == "after pass 2"


def test_a_rise_starts_the_count_again():
    history = History()
    assert ends_after(HeldOutStall(2), history, NOTHING, scores=[0.5, 0.4, 0.6, 0.5, 0.5]) == [5]
    assert history.best == "after pass 3"


# The loss.


def test_a_loss_that_does_not_fall_by_tol_ends_training():
    assert ends_after(LossStall(0.1, 2), History(), NOTHING, losses=[1.0, 0.5, 0.45, 0.41, 0.2]) == [4]


def test_a_fall_of_exactly_tol_counts_and_slow_falls_do_not_add_up():
    assert ends_after(LossStall(0.25, 2), History(), NOTHING, losses=[1.0, 0.75, 0.5, 0.25]) == []
    assert ends_after(LossStall(0.25, 3), History(), NOTHING, losses=[1.0, 0.9, 0.8, 0.7]) == [4]


def test_tol_may_be_minus_infinity():
    assert ends_after(LossStall(-np.inf, 1), History(), NOTHING, losses=[1.0, 2.0, 3.0]) == []


# The limit.


def test_so_many_passes_are_made():
    limit = PassLimit(3)
    assert [limit.after(history_of(n), NOTHING) for n in (1, 2, 3)] == [False, False, True]
    assert [limit.before(history_of(n), NOTHING) for n in (0, 2, 3, 4)] == [False, False, True, True]


@pytest.mark.parametrize(
    ("verdict", "ends_on_separable", "cap"),
    [
        ("undecided", True, PASS_CAP),
        ("separable", True, SEPARABLE_PASS_CAP),
        ("separable", False, PASS_CAP),
    ],
)
def test_without_a_limit_there_is_a_cap_that_is_higher_where_a_clean_pass_must_come(verdict, ends_on_separable, cap):
    limit = PassLimit(None, ends_on_separable=ends_on_separable)
    assert limit.limit(History(verdict=verdict)) == cap
    assert not limit.after(history_of(cap - 1, verdict=verdict), NOTHING)
    assert limit.after(history_of(cap, verdict=verdict), NOTHING)


# What parameters mean.


@pytest.mark.parametrize(
    ("parameters", "names"),
    [
        ({"order": "shuffle", "max_iter": 20}, "clean limit"),
        ({"order": "cyclic", "max_iter": 20}, "clean cycle limit"),
        ({"order": "cyclic", "max_iter": 20, "repeats": False}, "clean limit"),
        ({"order": "shuffle", "max_iter": None}, "clean proof limit"),
        ({"order": "cyclic", "max_iter": None}, "clean cycle proof limit"),
        ({"order": "cyclic", "max_iter": None, "repeats": False}, "clean proof limit"),
        ({"order": "shuffle", "max_iter": 20, "early_stopping": True}, "clean held-out limit"),
        ({"order": "shuffle", "max_iter": 20, "tol": 0.1}, "clean loss limit"),
        ({"order": "shuffle", "max_iter": 20, "tol": 0.1, "early_stopping": True}, "clean held-out limit"),
        ({"order": "cyclic", "max_iter": None, "early_stopping": True}, "clean cycle proof held-out limit"),
        ({"order": "random", "max_iter": None, "tol": 0.1}, "clean proof loss limit"),
    ],
)
def test_parameters_mean_reasons(parameters, names):
    assert [reason.name for reason in reasons(patience=3, **parameters)] == names.split()


def test_reasons_have_the_numbers_of_the_parameters():
    _, cycle, _, loss, limit = reasons(order="cyclic", max_iter=None, patience=3, tol=0.25, ends_on_separable=False)
    assert cycle.ends and (loss.tol, loss.patience) == (0.25, 3)
    assert (limit.max_iter, limit.ends_on_separable) == (None, False)
    _, cycle, stall, limit = reasons(order="cyclic", max_iter=7, patience=4, early_stopping=True)
    assert not cycle.ends and stall.patience == 4 and limit.max_iter == 7


@pytest.mark.parametrize(("order", "first"), [("cyclic", FIRST_PROOF_OF_CYCLIC), ("shuffle", FIRST_PROOF)])
def test_the_first_proof_comes_later_where_a_cycle_may_come_first(order, first):
    proof = next(reason for reason in reasons(order=order, max_iter=None, patience=1) if reason.name == "proof")
    passes = FakePasses(verdicts=["inseparable"])
    assert not proof.before(history_of(first - 1), passes) and proof.before(history_of(first), passes)


# Why training until convergence did not converge.


@pytest.mark.parametrize("ended", ["clean", "held-out", "loss"])
def test_no_warning_where_training_ended_as_it_was_asked_to(ended):
    assert why_not_converged(history_of(5, ended=ended, verdict="separable"), rule="perceptron") is None


@pytest.mark.parametrize(
    ("history", "options", "facts"),
    [
        (history_of(1234, ended="proof", verdict="inseparable"), {}, ["inseparable", "1,234 passes", "certify"]),
        (history_of(64, ended="proof", verdict="touching"), {}, ["touching", "margin of 0", "64 passes"]),
        (history_of(9, ended="limit", verdict="separable"), {}, ["separable", "9 passes", "MaxMarginClassifier"]),
        (
            history_of(9, ended="limit", verdict="separable"),
            {"ends_on_separable": False},
            ["separable", "rule='pa'", "max_iter"],
        ),
        (history_of(9, ended="cycle", cycle=Cycle(4, 10)), {}, ["weights", "pass 4", "period of 10", "after 9"]),
        (history_of(9, ended="cycle", cycle=Cycle(4, 10)), {"kernel": True}, ["scores", "pass 4", "period of 10"]),
        (history_of(9, ended="limit"), {}, ["9 passes", "nothing could be proven", "max_iter"]),
        (history_of(9, ended="limit"), {"kernel": True}, ["9 passes", "kernel"]),
    ],
)
def test_the_warning_says_why(history, options, facts):
    why = why_not_converged(history, rule="pa", **options)
    assert why is not None and all(fact in why for fact in facts), why


# The history.


def test_a_history_tells_of_its_last_and_of_its_best_pass():
    history = History([4, 2, 3], [0.0] * 3, [0.5, 0.75, 0.75])
    assert (history.passes, history.best_pass, history.news()) == (3, 2, (3, 0.75))
    history = History([4, 2], [0.0] * 2)
    assert (history.passes, history.best_pass, history.news()) == (2, 0, (2, None))
