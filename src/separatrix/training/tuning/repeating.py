"""The command, and the call in Python, that repeat a training."""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from separatrix.data.options import Option
from separatrix.training.options import TrainOptions, declared_options

NOT_REPEATED = ("tune", "budget", "folds", "oof")


def _given(options: TrainOptions) -> Iterator[tuple[str, Option, Any]]:
    """Yield the options that are not at their defaults: their names in Python, declarations and values."""
    for name, (field, _, _, default, declaration) in declared_options().items():
        value = getattr(options, field)
        if value != default and name not in NOT_REPEATED:
            yield name, declaration, value


def repeated(options: TrainOptions) -> str:
    """Return the command that trains with these options, or the call where a command cannot say them."""
    in_words = isinstance(options.data, str | Path) and not isinstance(options.class_weight, dict)
    in_words &= options.validate is None or isinstance(options.validate, str)
    return shell_command(options) if in_words else python_call(options)


def shell_command(options: TrainOptions) -> str:
    """Return the command that trains with these options.

    Examples
    --------
    >>> shell_command(TrainOptions("my data.csv", label="y", rule="arow", C="0.25", bias=False, drop=["a", "b"]))
    "separatrix train 'my data.csv' --label y --drop a --drop b --rule arow -C 0.25 --no-bias"
    """
    words = ["separatrix", "train", str(options.data)]
    if options.label is not None:
        words += ["--label", str(options.label)]
    for name, declaration, value in _given(options):
        flag = declaration.flags[0] if declaration.flags else f"--{name.replace('_', '-')}"
        if isinstance(value, bool):
            yes, _, no = flag.partition("/")
            words.append(yes if value else no)
        else:
            for each in value if isinstance(value, list) else [value]:
                words += [flag, str(each)]
    return shlex.join(words)


def python_call(options: TrainOptions) -> str:
    """Return the call of `train` with these options; what is in memory is `data`, `labels` and `held_out`.

    Examples
    --------
    >>> python_call(TrainOptions("data.csv", label="y", rule="arow", C="0.25"))
    "train('data.csv', label='y', rule='arow', C=0.25)"
    """
    data, label = options.data, options.label
    words = [_shown(data, "data")]
    if getattr(data, "labels", None) is not None:
        words.append("label=labels")
    elif label is not None:
        words.append(f"label={label!r}")
    for name, _, value in _given(options):
        is_number = name == "C" and value != "auto"
        if not (name == "text" and getattr(data, "is_texts", False)):
            words.append(f"{name}={value if is_number else _shown(value, 'held_out')}")
    return f"train({', '.join(words)})"


def _shown(value: Any, name: str) -> str:
    """Return a value as Python has it; data in memory are called `name`."""
    if hasattr(value, "source"):
        return name
    if isinstance(value, list):
        return f"[{', '.join(_shown(each, name) for each in value)}]"
    return repr(str(value) if isinstance(value, Path) else value)
