"""Progress bars for `verbose=1`: passes, mistakes, held-out accuracy, time left; or steps of other work."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager

Report = Callable[[int, float | None], None]


@contextmanager
def passes_bar(verbose: int, max_iter: int | None, name: str) -> Iterator[Report]:
    """Yield a function to call after each pass with its mistakes and the held-out accuracy, if any."""
    if not verbose:
        yield lambda mistakes, held_out: None
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn("passes  {task.fields[news]}"),
        TimeElapsedColumn(),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=Console(stderr=True)) as progress:
        task = progress.add_task(name, total=max_iter, news="")

        def report(mistakes: int, held_out: float | None) -> None:
            news = f"{mistakes:,} mistakes" + ("" if held_out is None else f", held-out accuracy {held_out:.4f}")
            progress.update(task, advance=1, news=news)
            if max_iter is not None and mistakes == 0:
                progress.update(task, total=progress.tasks[task].completed)

        yield report


@contextmanager
def steps_bar(verbose: int, total: int, name: str) -> Iterator[Callable[[str], None]]:
    """Yield a function to call before each of `total` steps with what is being done; nothing is left behind."""
    if not verbose:
        yield lambda doing: None
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

    columns = (TextColumn(name), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn(), TextColumn("{task.fields[doing]}"))
    console = Console(stderr=True)
    with Progress(*columns, console=console, transient=True, disable=not console.is_terminal) as progress:
        task = progress.add_task(name, total=total, doing="")
        begun = False

        def report(doing: str) -> None:
            nonlocal begun
            progress.update(task, advance=int(begun), doing=f"{doing:<30}")
            begun = True

        yield report
