"""The mistake bound of parameter mixing for a model that was trained on shards, and the margin that it needs."""

from __future__ import annotations

from math import inf, sqrt

import numpy as np

from separatrix.analysis.bounds import Bound, Bounds, margin_rule_bound, mixing_bound
from separatrix.cluster.mixing import Mixture
from separatrix.cluster.work import FindSmallestLead
from separatrix.engine.rules import RULES
from separatrix.modelfile.model import Model
from separatrix.proofs.certificate import Certificate
from separatrix.sequences.bounds import SequenceBounds
from separatrix.sequences.tagger import SequenceTagger


def margin_of(mixture: Mixture) -> float | None:
    """Return the margin of the last weights, the smallest lead over ‖w‖, after a clean pass; None if it has no meaning."""
    learner, run = mixture.learner, mixture.run
    if not learner.converged_ or not RULES[learner.rule].ends or (mixture.w.shape[1] > 1 and not run.joint):
        return None
    smallest: float = mixture.engine.reduce(mixture.work(FindSmallestLead, mixture.w), mixture.filled).value
    return float(smallest / np.linalg.norm(mixture.w))


def bounds(model: Model, certificate: Certificate | None = None) -> Bounds | SequenceBounds:
    """Return Σ over passes and shards of μ·mistakes with its upper bound for data of margin γ.

    γ is taken from a certificate, or else from the model's own weights, whose margin was measured after a clean pass.
    """
    estimator = model.estimator
    if isinstance(estimator, SequenceTagger):
        return _bounds_of_tagger(model)
    mistakes = estimator.shard_mistakes_
    gamma = model.facts.get("margin")
    if certificate is not None and certificate.verdict == "separable" and certificate.margin is not None:
        gamma = float(certificate.margin[0])
    summary = estimator.n_mistakes_, len(mistakes), estimator.radius_, gamma
    theorem = RULES[estimator.rule].theorem
    if theorem not in ("perceptron", "margin") or estimator.ledger_.weighted or estimator.ledger_.start is not None:
        return Bounds(*summary, why_none="it is for the perceptron and margin rules, equal weights and a start from zero")
    if gamma is None:
        return Bounds(*summary, why_none="no pass was clean, and there is no certificate: the margin is unknown")
    R = estimator.radius_ * (sqrt(2.0) if estimator.run_.joint else 1.0)
    if theorem == "margin":
        name, largest = "(R²+2β)/γ²", margin_rule_bound(R, gamma, float(estimator.margin))
    else:
        name, largest = "2R²/γ²" if estimator.run_.joint else "R²/γ²", mixing_bound(R, gamma)
    title = f"iterative parameter mixing {name}, {mistakes.shape[1]} shards"
    return Bounds(*summary, [Bound(title, "Σμ·mistakes", weighted_mistakes(model), largest)])


def _bounds_of_tagger(model: Model) -> SequenceBounds:
    """Return the bound for a tagger; R is that of the corrections that were made."""
    tagger, R, gamma = model.estimator, model.facts["radius"], model.facts["margin"] or 0.0
    figures = tagger.n_mistakes_, weighted_mistakes(model), R, gamma
    if gamma <= 0.0:
        why = "no pass was clean: the margin is unknown" if tagger.rule == "perceptron" else "it is for rule='perceptron'"
        return SequenceBounds(*figures, inf, f"no bound: {why}")
    title = f"iterative parameter mixing, {tagger.shard_mistakes_.shape[1]} shards: Σμ·mistakes ≤ R²/γ²"
    return SequenceBounds(*figures, (R / gamma) ** 2, title)


def weighted_mistakes(model: Model) -> float:
    """Return Σ over passes and shards of (mixing weight × mistakes); mixing by features counts a shard as 1/S."""
    mistakes = model.estimator.shard_mistakes_.astype(np.float64)
    if model.estimator.mix_ != "mistakes":
        return float(mistakes.sum() / mistakes.shape[1])
    totals = mistakes.sum(axis=1)
    return float(sum((row @ row) / total for row, total in zip(mistakes, totals, strict=True) if total))
