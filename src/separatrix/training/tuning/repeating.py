"""The command, and the call in Python, that repeat a training."""

from __future__ import annotations

import shlex
from collections.abc import Iterator
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
    """Return the call of `train` with these options; what is in memory is `data`, and its labels are `labels`.

    Examples
    --------
    >>> python_call(TrainOptions("data.csv", label="y", rule="arow", C="0.25"))
    "train('data.csv', label='y', rule='arow', C=0.25)"
    """
    in_memory = not isinstance(options.data, str)
    words = ["data" if in_memory else repr(options.data)]
    if options.label is not None:
        words.append(f"label={options.label!r}")
    for name, _, value in _given(options):
        shown = value if name == "C" and value != "auto" else repr(str(value) if name in ("output", "checkpoint") else value)
        words.append(f"{name}={shown}")
    return f"train({', '.join(words)})"
