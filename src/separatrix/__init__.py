"""separatrix: error-driven linear classification. Learn a boundary from mistakes, and keep the mistakes."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from separatrix.analysis.cross_validation import compare as compare
    from separatrix.analysis.evaluating.counting import evaluate as evaluate
    from separatrix.analysis.evaluating.evaluation import Evaluation as Evaluation
    from separatrix.analysis.explaining import explain as explain
    from separatrix.analysis.explanation import Explanation as Explanation
    from separatrix.analysis.fewest_mistakes import fewest_mistakes as fewest_mistakes
    from separatrix.analysis.mislabelled import suspects as suspects
    from separatrix.analysis.separation.check import check_separation as check_separation
    from separatrix.analysis.separation.report import SeparationCheck as SeparationCheck
    from separatrix.analysis.tracing import Trace as Trace
    from separatrix.analysis.tracing import trace as trace
    from separatrix.data.formats.svmlight import load_svmlight as load_svmlight
    from separatrix.engine.ledger import Ledger as Ledger
    from separatrix.estimators.featurizers import TableFeatures as TableFeatures
    from separatrix.estimators.featurizers import TextFeatures as TextFeatures
    from separatrix.estimators.fisher import FisherDiscriminant as FisherDiscriminant
    from separatrix.estimators.kernel_perceptron import KernelPerceptron as KernelPerceptron
    from separatrix.estimators.linear import AveragedPerceptron as AveragedPerceptron
    from separatrix.estimators.linear import PassiveAggressive as PassiveAggressive
    from separatrix.estimators.linear import Perceptron as Perceptron
    from separatrix.estimators.linear import PocketPerceptron as PocketPerceptron
    from separatrix.estimators.linear import VotedPerceptron as VotedPerceptron
    from separatrix.estimators.max_margin import MaxMarginClassifier as MaxMarginClassifier
    from separatrix.estimators.max_margin import margin as margin
    from separatrix.modelfile.archive import load as load
    from separatrix.modelfile.archive import save as save
    from separatrix.modelfile.model import Model as Model
    from separatrix.proofs.certificate import Certificate as Certificate
    from separatrix.proofs.certificate import certify as certify
    from separatrix.sequences.conll import read_conll as read_conll
    from separatrix.sequences.evaluation import SequenceEvaluation as SequenceEvaluation
    from separatrix.sequences.evaluation import evaluate_sequences as evaluate_sequences
    from separatrix.sequences.perceptron import SequencePerceptron as SequencePerceptron
    from separatrix.training.forgetting.forget import forget as forget
    from separatrix.training.recipe import train as train

__version__ = "0.1.0"

_HOMES = {
    "AveragedPerceptron": "estimators.linear",
    "Certificate": "proofs.certificate",
    "Evaluation": "analysis.evaluating.evaluation",
    "Explanation": "analysis.explanation",
    "FisherDiscriminant": "estimators.fisher",
    "KernelPerceptron": "estimators.kernel_perceptron",
    "Ledger": "engine.ledger",
    "MaxMarginClassifier": "estimators.max_margin",
    "Model": "modelfile.model",
    "PassiveAggressive": "estimators.linear",
    "Perceptron": "estimators.linear",
    "PocketPerceptron": "estimators.linear",
    "SeparationCheck": "analysis.separation.report",
    "SequenceEvaluation": "sequences.evaluation",
    "SequencePerceptron": "sequences.perceptron",
    "TableFeatures": "estimators.featurizers",
    "TextFeatures": "estimators.featurizers",
    "Trace": "analysis.tracing",
    "VotedPerceptron": "estimators.linear",
    "certify": "proofs.certificate",
    "check_separation": "analysis.separation.check",
    "compare": "analysis.cross_validation",
    "evaluate": "analysis.evaluating.counting",
    "evaluate_sequences": "sequences.evaluation",
    "explain": "analysis.explaining",
    "fewest_mistakes": "analysis.fewest_mistakes",
    "forget": "training.forgetting.forget",
    "load": "modelfile.archive",
    "load_svmlight": "data.formats.svmlight",
    "margin": "estimators.max_margin",
    "read_conll": "sequences.conll",
    "save": "modelfile.archive",
    "suspects": "analysis.mislabelled",
    "trace": "analysis.tracing",
    "train": "training.recipe",
}

__all__ = [
    "AveragedPerceptron",
    "Certificate",
    "Evaluation",
    "Explanation",
    "FisherDiscriminant",
    "KernelPerceptron",
    "Ledger",
    "MaxMarginClassifier",
    "Model",
    "PassiveAggressive",
    "Perceptron",
    "PocketPerceptron",
    "SeparationCheck",
    "SequenceEvaluation",
    "SequencePerceptron",
    "TableFeatures",
    "TextFeatures",
    "Trace",
    "VotedPerceptron",
    "__version__",
    "certify",
    "check_separation",
    "compare",
    "evaluate",
    "evaluate_sequences",
    "explain",
    "fewest_mistakes",
    "forget",
    "load",
    "load_svmlight",
    "margin",
    "read_conll",
    "save",
    "suspects",
    "trace",
    "train",
]


def __getattr__(name: str) -> Any:
    """Import a public name when it is first used: importing the package itself costs nothing."""
    if name not in _HOMES:
        raise AttributeError(f"module 'separatrix' has no attribute {name!r}")
    return getattr(import_module(f"separatrix.{_HOMES[name]}"), name)


def __dir__() -> list[str]:
    return __all__
