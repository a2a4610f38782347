"""The one training loop: passes until there is a reason to stop.

Whoever makes the passes (in memory, from blocks of a file, on shards, in the dual) is a `Passes`; when to stop is for the
reasons of `stopping` to say. Held-out examples are scored after each pass, and training goes back to the best pass where
early stopping asks for it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from separatrix.engine.stopping import HeldOutStall, History, Passes, Reason

OUTGROWN = "the weights outgrew float64: scale the features, or the sample and class weights, down"


def train(
    passes: Passes,
    reasons: Sequence[Reason],
    history: History | None = None,
    *,
    after_pass: Callable[[History], None] = lambda history: None,
    outgrown: str = OUTGROWN,
) -> History:
    """Make passes until one of the reasons says to stop; return what happened.

    Parameters
    ----------
    passes : makes the passes and answers questions about them
    reasons : asked in this order, before and after each pass; the first to say yes is `history.ended`
    history : of an earlier call that was interrupted, to resume from
    after_pass : called after each pass, when it is already known whether it was the last one
    outgrown : the message of the ValueError that is raised where numbers have outgrown float64
    """
    history = history or History()
    while not history.ended:
        history.ended = next((reason.name for reason in reasons if reason.before(history, passes)), "")
        if history.ended:
            break
        mistakes, loss = passes.make_pass(history.passes)
        if not passes.is_finite():
            raise ValueError(outgrown)
        history.mistakes.append(mistakes)
        history.losses.append(loss)
        score = passes.held_out_accuracy()
        if score is not None:
            history.scores.append(score)
        # Every reason is asked: that of the held-out examples remembers the best pass, whatever the others say.
        names = [reason.name for reason in reasons if reason.after(history, passes)]
        history.ended = names[0] if names else ""
        after_pass(history)
    stops_early = any(isinstance(reason, HeldOutStall) for reason in reasons)
    if stops_early and history.best is not None and history.best_pass < history.passes:
        passes.restore(history.best)
    else:
        passes.finish()
    return history
