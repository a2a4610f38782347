"""The progress bar of training: rows and rows a second, mistakes, held-out accuracy, time left."""

from __future__ import annotations

import sys
from types import TracebackType
from typing import Any, Self

from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

from separatrix.files.out_of_core import State


class Meter:
    """A bar on standard error, where that is a terminal; nothing is left of it in the end."""

    def __init__(self, quiet: bool) -> None:
        columns = (
            TextColumn("{task.description}"),
            BarColumn(),
            TextColumn("{task.completed:,} rows"),
            TextColumn("{task.fields[news]}"),
            TimeElapsedColumn(),
            TimeRemainingColumn(),
        )
        off = quiet or not sys.stderr.isatty()
        self._bar = Progress(*columns, console=Console(stderr=True), transient=True, disable=off)
        self._tasks: dict[str, Any] = {}

    def __enter__(self) -> Self:
        self._bar.__enter__()
        return self

    def __exit__(self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None) -> None:
        self._bar.__exit__(kind, value, trace)

    def read(self, doing: str, rows: int) -> None:
        """Note rows that were read."""
        if doing not in self._tasks:
            self._tasks[doing] = self._bar.add_task(doing, total=None, news="")
        self._bar.advance(self._tasks[doing], rows)

    def begin(self, passes: int, rows: int) -> None:
        """Begin to train."""
        self._tasks["training"] = self._bar.add_task("training", total=passes * rows, news="")

    def trained(self, state: State, rows: int, n: int) -> None:
        """Note rows that were learned from."""
        task = self._tasks["training"]
        speed = self._bar.tasks[self._bar.task_ids.index(task)].speed
        news = f"pass {state.number + 1}, {state.per_pass[-1]:,} mistakes"
        if state.number:
            news += f", progressive error {state.errors / max(1, n):.4f}"
        if state.scores:
            news += f", held-out accuracy {state.scores[-1]:.4f}"
        if speed:
            news += f", {speed:,.0f} rows/s"
        self._bar.update(task, advance=rows, news=news)
