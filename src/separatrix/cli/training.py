"""What `separatrix train` adds to a training: progress bars, interrupts that leave a checkpoint, the printed summary."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial

import click

from separatrix.cli.errors import in_options
from separatrix.cli.progress_bars import ShardProgress, TrainingProgress
from separatrix.training.options import TrainOptions
from separatrix.training.run import Training
from separatrix.training.summary import Summary


def progress_of(options: TrainOptions, quiet: bool) -> TrainingProgress | ShardProgress:
    """Return the progress bar of a training."""
    return TrainingProgress(quiet) if options.engine is None else ShardProgress(quiet)


class InterruptibleTraining(Training):
    """A training that an interrupt ends between two blocks, where a checkpoint can be written."""

    @contextmanager
    def passes(self) -> Iterator[None]:
        """Note an interrupt during the passes instead of raising it."""
        if threading.current_thread() is not threading.main_thread():
            yield
            return
        handler = signal.signal(signal.SIGINT, self._request_stop)
        try:
            yield
        finally:
            signal.signal(signal.SIGINT, handler)

    def _request_stop(self, number: int, frame: object) -> None:
        self.stopping = True


def printed(summary: Summary) -> str:
    """Return the figures as a person reads them in a terminal."""
    bold, alarm = partial(click.style, bold=True), partial(click.style, fg="yellow", bold=True)
    return "\n".join(summary.lines(bold, alarm, in_options))


def as_options(summary: Summary) -> Summary:
    """Return the figures with remedies as options of the command line, as JSON has them."""
    texts = {name: [*map(in_options, summary[name])] for name in ("notes", "problems", "warnings") if name in summary}
    columns = [in_options(line) if line.startswith("note: ") else line for line in summary["columns"]]
    return Summary(summary, **texts, columns=columns)
