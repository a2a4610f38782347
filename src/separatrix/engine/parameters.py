"""Parameters of plain learners and featurizers: reading, setting and checking them as scikit-learn's estimators do.

A class derived from `Parameterized` lists its parameters in `__init__`, stores each under its own name, and declares in
`constraints` what each may be. Constraints combine with `|`:

>>> size = whole(1) | choices("auto") | none
>>> size.allows(3), size.allows(0)
(True, False)
>>> str(size)
"an int in the range [1, inf), 'auto' or None"
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from difflib import get_close_matches
from inspect import signature
from numbers import Integral, Real
from types import MethodType
from typing import Any, ClassVar, Self

import numpy as np


class ParameterError(ValueError, TypeError):
    """A parameter of a wrong type or value.

    Attributes
    ----------
    parameter, value : which one, and what it was given
    allowed, choices : what it may be, in words, and the strings among that
    """

    parameter: str = ""
    value: Any = None
    allowed: str = ""
    choices: tuple[str, ...] = ()


class NotFittedError(ValueError, AttributeError):
    """A learner or featurizer was used before it was fitted."""


class Constraint:
    """What a parameter may be: one alternative or more, each a description and a test of a value."""

    def __init__(self, *alternatives: tuple[str, Callable[[Any], bool]], choices: tuple[str, ...] = ()) -> None:
        self.alternatives = alternatives
        self.choices = choices

    def allows(self, value: Any) -> bool:
        """Tell whether a value satisfies one of the alternatives."""
        return any(test(value) for _, test in self.alternatives)

    def __or__(self, other: Constraint) -> Constraint:
        """Return the constraint that allows what either allows."""
        return Constraint(*self.alternatives, *other.alternatives, choices=self.choices + other.choices)

    def __str__(self) -> str:
        """Return the alternatives, as they follow "must be" in an error."""
        *descriptions, last = (description for description, _ in self.alternatives)
        return f"{', '.join(descriptions)} or {last}" if descriptions else last


def choices(*values: str) -> Constraint:
    """Return the constraint to be one of some strings."""
    description = repr(values[0]) if len(values) == 1 else f"a str among {{{', '.join(map(repr, values))}}}"
    return Constraint((description, lambda value: isinstance(value, str) and value in values), choices=values)


def number(low: float | None = None, high: float | None = None, closed: str = "left") -> Constraint:
    """Return the constraint to be a real number between two bounds, None being no bound.

    Parameters
    ----------
    closed : which of the bounds are allowed themselves: "left", "right", "both" or "neither"
    """
    return _interval("a float", Real, low, high, closed)


def whole(low: int | None = None, high: int | None = None) -> Constraint:
    """Return the constraint to be a whole number from `low` to `high`, both of them allowed, None being no bound."""
    return _interval("an int", Integral, low, high, "left" if high is None else "both")


def _interval(kind: str, type_: type, low: float | None, high: float | None, closed: str) -> Constraint:
    lowest = -math.inf if low is None else low
    highest = math.inf if high is None else high
    left, right = closed in ("left", "both"), closed in ("right", "both")

    def lies_between(value: Any) -> bool:  # NaN compares as false with both bounds
        return bool((lowest <= value if left else lowest < value) and (value <= highest if right else value < highest))

    if low is None and high is None and type_ is Integral:
        return Constraint((kind, lambda value: isinstance(value, Integral)))
    return Constraint(
        (
            f"{kind} in the range {'[' if left else '('}{lowest}, {highest}{']' if right else ')'}",
            lambda value: isinstance(value, type_) and lies_between(value),
        )
    )


def instance_of(*types: type) -> Constraint:
    """Return the constraint to be an instance of one of some types."""
    return Constraint(*((f"an instance of {type_.__name__!r}", _is_instance(type_)) for type_ in types))


def _is_instance(type_: type) -> Callable[[Any], bool]:
    return lambda value: isinstance(value, type_)


function = Constraint(("a callable", callable))
none = Constraint(("None", lambda value: value is None))
boolean = Constraint(("a bool", lambda value: isinstance(value, bool | np.bool_)))
verbosity = whole(0) | boolean
seed = whole(0, 2**32 - 1) | instance_of(np.random.RandomState) | none
float_type = Constraint(
    ("the type float32 or float64", lambda value: value in (np.float32, np.float64) and isinstance(value, type))
)


def check_parameters(parameters: Mapping[str, Any], constraints: Mapping[str, Constraint], name: str) -> None:
    """Raise a `ParameterError` for the first parameter that its constraint does not allow.

    Examples
    --------
    >>> check_parameters({"C": -1.0}, {"C": number(0, closed="neither")}, "Perceptron")  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    separatrix...ParameterError: The 'C' parameter of Perceptron must be a float in the range (0, inf). Got -1.0 instead.
    """
    for parameter, value in parameters.items():
        if parameter in constraints and not constraints[parameter].allows(value):
            constraint = constraints[parameter]
            nearest = get_close_matches(value, constraint.choices, n=1) if isinstance(value, str) else []
            meant = f" Did you mean {nearest[0]!r}?" if nearest else ""
            error = ParameterError(
                f"The {parameter!r} parameter of {name} must be {constraint}. Got {value!r} instead.{meant}"
            )
            error.parameter, error.value, error.allowed = parameter, value, str(constraint)
            error.choices = constraint.choices
            raise error


class Parameterized:
    """An object whose parameters are the arguments of its constructor, each stored under its own name.

    Attributes
    ----------
    constraints : what each parameter may be
    saved_as : the name of the public class, in model files and in errors; "": the name of the class itself
    """

    constraints: ClassVar[Mapping[str, Constraint]] = {}
    saved_as: ClassVar[str] = ""

    @classmethod
    def parameter_names(cls) -> list[str]:
        """Return the names of the parameters, sorted as scikit-learn sorts them."""
        arguments = list(signature(cls.__init__).parameters.values())[1:]
        return sorted(argument.name for argument in arguments if argument.kind != argument.VAR_KEYWORD)

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Return the parameters, and those of parameters that have some as "name__parameter" where `deep`."""
        parameters: dict[str, Any] = {}
        for name in self.parameter_names():
            value = getattr(self, name)
            if deep and hasattr(value, "get_params") and not isinstance(value, type):
                parameters |= {f"{name}__{key}": nested for key, nested in value.get_params().items()}
            parameters[name] = value
        return parameters

    def set_params(self, **parameters: Any) -> Self:
        """Set some parameters; "name__parameter" is a parameter of the parameter "name"."""
        names = self.parameter_names()
        for key, value in parameters.items():
            name, _, nested = key.partition("__")
            if name not in names:
                raise ParameterError(f"{name!r} is not a parameter of {self.public_name()}; its parameters are {names}")
            if nested:
                getattr(self, name).set_params(**{nested: value})
            else:
                setattr(self, name, value)
        return self

    def check_parameters(self) -> None:
        """Raise a `ParameterError` for the first parameter of a wrong type or value."""
        check_parameters(self.get_params(deep=False), self.constraints, self.public_name())

    def public_name(self) -> str:
        """Return the name of the public class, for messages and model files."""
        return self.saved_as or type(self).__name__


class available_if:  # noqa: N801
    """Decorate a method that exists only while `check(self)` does not raise an AttributeError."""

    def __init__(self, check: Callable[[Any], None]) -> None:
        self.check = check

    def __call__(self, method: Callable[..., Any]) -> Any:
        """Return the method with its condition."""
        return _AvailableMethod(method, self.check)


class _AvailableMethod:
    def __init__(self, method: Callable[..., Any], check: Callable[[Any], None]) -> None:
        self.method, self.check = method, check
        self.__doc__, self.__name__ = method.__doc__, method.__name__

    def __get__(self, instance: Any, owner: Any = None) -> Callable[..., Any]:
        if instance is None:
            return self.method
        self.check(instance)
        return MethodType(self.method, instance)
