"""An experiment: examples, a feature map, a learner, and the Python program that does the same."""

from __future__ import annotations

from dataclasses import dataclass, field
from inspect import signature
from textwrap import fill
from typing import TYPE_CHECKING, Any, TypeAlias

from separatrix.engine.rows import Floats
from separatrix.learners.linear_base import LinearLearner

if TYPE_CHECKING:  # these need scikit-learn, which a page of a linear learner does without
    from separatrix.estimators.kernel_perceptron import KernelPerceptron
    from separatrix.features import DiscMap, PolynomialMap, RandomFourier

FeatureMap: TypeAlias = "DiscMap | PolynomialMap | RandomFourier"


@dataclass(frozen=True)
class Experiment:
    """Dense examples and the learner to train on them; `code` is the Python code that makes `X`, `y` and the split."""

    name: str
    X: Floats
    y: Any
    features: tuple[str, ...]
    model: LinearLearner | KernelPerceptron
    code: tuple[str, ...]
    phi: FeatureMap | None = None
    held_out: tuple[Floats, Any] | None = None
    recipe: dict[str, Any] = field(default_factory=dict)
    source: dict[str, list[str]] = field(default_factory=lambda: {"features": [], "classes": []})
    """The features and classes of the data before some of them were selected."""

    @property
    def has_kernel(self) -> bool:
        """Whether the learner uses a kernel instead of weights."""
        return not isinstance(self.model, LinearLearner)

    def snippet(self) -> str:
        """Return a Python program that does the same training and prints the numbers of the page."""
        names = [self.model.public_name(), *([] if self.has_kernel else ["certify", "trace"])]
        lines = [f"from separatrix import {', '.join(sorted(names))}", *self.code]
        if self.phi is not None:
            lines[1:1] = [f"from separatrix.features import {type(self.phi).__name__}"]
            at = next((i for i, line in enumerate(lines) if "train_test_split(" in line), len(lines))
            lines[at:at] = [f"X = {self.phi!r}.fit_transform(X)"]
        held_out = ", X_val=X_val, y_val=y_val" if self.held_out is not None else ""
        lines += [
            f"model = {constructor_call(self.model)}",
            f"model.fit(X, y{held_out})",
            'print("mistakes", model.n_mistakes_, "in passes", model.mistakes_per_pass_, "clean:", model.converged_)',
        ]
        if self.held_out is not None:
            lines.append('print("held-out accuracy", model.validation_scores_)')
        if self.has_kernel:
            lines += ["for mistake in model.ledger_:", "    print(mistake.step, mistake.example, mistake.up)"]
        else:
            lines += [
                'print("predicts with", model.coef_.tolist(), model.intercept_.tolist())',
                "for row in trace(model, X, y).mistakes:",
                '    print(row["k"], row["step"], row["example"], row["w"], row["norm2"])',
                f"print(certify(X, y, fit_intercept={self.model.fit_intercept}))",
            ]
        imports = sorted({line for line in lines if line.startswith(("import ", "from "))}, key=_import_rank)
        return "\n".join([*imports, "", *(line for line in lines if line not in imports)]) + "\n"


def constructor_call(model: LinearLearner | KernelPerceptron) -> str:
    """Return the Python code that makes a model, with the parameters that are not the defaults, in lines of 80 columns.

    Examples
    --------
    >>> from separatrix.learners.linear import LastLearner
    >>> constructor_call(LastLearner(order="cyclic", max_iter=5))
    "Perceptron(max_iter=5, order='cyclic')"
    """
    defaults = {name: parameter.default for name, parameter in signature(type(model)).parameters.items()}
    values = {name: value for name, value in model.get_params(deep=False).items() if repr(value) != repr(defaults[name])}
    name = f"{model.public_name()}("
    call = f"{name}{', '.join(f'{key}={value!r}' for key, value in values.items())})"
    return fill(call, 80, subsequent_indent=" " * len(name), break_long_words=False, break_on_hyphens=False)


def _import_rank(line: str) -> tuple[bool, bool, str]:
    """Return the sort key of an import: whole modules first, our own last."""
    return "separatrix" in line, line.startswith("from "), line


def plain_names(d: int) -> tuple[str, ...]:
    """Return x₁, x₂, …, the names of features without names.

    Examples
    --------
    >>> plain_names(2)
    ('x₁', 'x₂')
    """
    return tuple("x" + "".join("₀₁₂₃₄₅₆₇₈₉"[int(digit)] for digit in str(j + 1)) for j in range(d))
