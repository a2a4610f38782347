"""separatrix: error-driven linear classification. Learn a boundary from mistakes, and keep the mistakes."""

import gc
from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from separatrix.certificate import Certificate as Certificate
    from separatrix.certificate import certify as certify
    from separatrix.data.svmlight import load_svmlight as load_svmlight
    from separatrix.explaining import explain as explain
    from separatrix.explanation import Explanation as Explanation
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
    from separatrix.modelfile import Model as Model
    from separatrix.modelfile import load as load
    from separatrix.modelfile import save as save
    from separatrix.suspicion import suspects as suspects
    from separatrix.table import TableFeatures as TableFeatures
    from separatrix.text import TextFeatures as TextFeatures
    from separatrix.tracing import Trace as Trace
    from separatrix.tracing import trace as trace
    from separatrix.trials import compare as compare

__version__ = "0.1.0"

_HOMES = {
    "AveragedPerceptron": "linear",
    "Certificate": "certificate",
    "Explanation": "explanation",
    "FisherDiscriminant": "fisher",
    "KernelPerceptron": "kernel",
    "Ledger": "ledger",
    "MaxMarginClassifier": "margins",
    "Model": "modelfile",
    "PassiveAggressive": "linear",
    "Perceptron": "linear",
    "PocketPerceptron": "linear",
    "TableFeatures": "table",
    "TextFeatures": "text",
    "Trace": "tracing",
    "VotedPerceptron": "linear",
    "certify": "certificate",
    "compare": "trials",
    "explain": "explaining",
    "fewest_mistakes": "fewest",
    "load": "modelfile",
    "load_svmlight": "data.svmlight",
    "margin": "margins",
    "save": "modelfile",
    "suspects": "suspicion",
    "trace": "tracing",
}

__all__ = [
    "AveragedPerceptron",
    "Certificate",
    "Explanation",
    "FisherDiscriminant",
    "KernelPerceptron",
    "Ledger",
    "MaxMarginClassifier",
    "Model",
    "PassiveAggressive",
    "Perceptron",
    "PocketPerceptron",
    "TableFeatures",
    "TextFeatures",
    "Trace",
    "VotedPerceptron",
    "__version__",
    "certify",
    "compare",
    "explain",
    "fewest_mistakes",
    "load",
    "load_svmlight",
    "margin",
    "save",
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
