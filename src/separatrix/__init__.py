"""separatrix: error-driven linear classification. Learn a boundary from mistakes, and keep the mistakes."""

import gc
from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from separatrix.certificate import Certificate as Certificate
    from separatrix.certificate import certify as certify
    from separatrix.fewest import fewest_mistakes as fewest_mistakes
    from separatrix.fisher import FisherDiscriminant as FisherDiscriminant
    from separatrix.kernel import KernelPerceptron as KernelPerceptron
    from separatrix.ledger import Ledger as Ledger
    from separatrix.linear import AveragedPerceptron as AveragedPerceptron
    from separatrix.linear import PassiveAggressive as PassiveAggressive
    from separatrix.linear import Perceptron as Perceptron
    from separatrix.linear import PocketPerceptron as PocketPerceptron
    from separatrix.linear import VotedPerceptron as VotedPerceptron
    from separatrix.margins import MaxMarginClassifier as MaxMarginClassifier
    from separatrix.margins import margin as margin
    from separatrix.suspicion import suspects as suspects
    from separatrix.tracing import Trace as Trace
    from separatrix.tracing import trace as trace
    from separatrix.trials import compare as compare

__version__ = "0.1.0"

_HOMES = {
    "AveragedPerceptron": "linear",
    "Certificate": "certificate",
    "FisherDiscriminant": "fisher",
    "KernelPerceptron": "kernel",
    "Ledger": "ledger",
    "MaxMarginClassifier": "margins",
    "PassiveAggressive": "linear",
    "Perceptron": "linear",
    "PocketPerceptron": "linear",
    "Trace": "tracing",
    "VotedPerceptron": "linear",
    "certify": "certificate",
    "compare": "trials",
    "fewest_mistakes": "fewest",
    "margin": "margins",
    "suspects": "suspicion",
    "trace": "tracing",
}

__all__ = [
    "AveragedPerceptron",
    "Certificate",
    "FisherDiscriminant",
    "KernelPerceptron",
    "Ledger",
    "MaxMarginClassifier",
    "PassiveAggressive",
    "Perceptron",
    "PocketPerceptron",
    "Trace",
    "VotedPerceptron",
    "__version__",
    "certify",
    "compare",
    "fewest_mistakes",
    "margin",
    "suspects",
    "trace",
]


def __getattr__(name: str) -> Any:
    """Import a public name when it is first used: importing the package itself costs nothing."""
    if name not in _HOMES:
        raise AttributeError(f"module 'separatrix' has no attribute {name!r}")
    collecting = gc.isenabled()
    gc.disable()  # a tenth of a second of the imports below would go into looking for garbage that is not there
    try:
        return getattr(import_module(f"separatrix.{_HOMES[name]}"), name)
    finally:
        if collecting:
            gc.enable()


def __dir__() -> list[str]:
    return __all__
