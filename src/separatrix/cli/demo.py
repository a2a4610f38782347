"""`separatrix demo`: Example 1 of L4 stepped through with its proof lines, then handwritten digits, trained and timed."""

import time
from collections.abc import Callable

from rich.console import Console
from rich.table import Table

from separatrix.analysis.tracing import trace
from separatrix.data.lectures import EXAMPLES
from separatrix.estimators.linear import AveragedPerceptron, Perceptron, PocketPerceptron, VotedPerceptron
from separatrix.estimators.linear_base import LinearLearner
from separatrix.proofs.certificate import certify
from separatrix.proofs.wording import lines


def show() -> None:
    """Show both parts."""
    console = Console()
    example = EXAMPLES["L4.1"]
    with console.status("compiling the kernels (only the first time) …"):
        steps = trace(Perceptron(order="cyclic", fit_intercept=False, tie=example.tie), example.X, example.y)
    console.print("\n[bold]A perceptron, step by step[/bold]  (L4, example 1: four points, no bias)")
    console.print("From w = (0, 0): a mistake is y·⟨w,x⟩ ≤ 0, and corrects w ← w + yx.\n")
    console.print(steps.table())
    console.print(f"\n{steps.explanation()}\n", highlight=False)
    _xor(console)
    _digits(console)


def _xor(console: Console) -> None:
    example = EXAMPLES["L4.xor"]
    console.print("[bold]And where it cannot be done[/bold]  (L4, example 2: XOR, with a bias)\n")
    console.print(*lines(certify(example.X, example.y)), sep="\n", highlight=False, markup=False)
    console.print()


def _digits(console: Console) -> None:
    from sklearn.datasets import load_digits
    from sklearn.model_selection import train_test_split

    X, y = load_digits(return_X_y=True)
    X_train, X_test, y_train, y_test = train_test_split(X, y, test_size=0.25, random_state=0, stratify=y)
    console.print(
        f"[bold]The same rule on real data[/bold]  ({len(X_train):,} handwritten digits of {X.shape[1]} pixels,\n"
        f"ten classes jointly; held-out accuracy on {len(X_test)} others)\n"
    )
    learners: list[tuple[str, Callable[..., LinearLearner]]] = [
        ("the last weights", Perceptron),
        ("the average of all", AveragedPerceptron),
        ("the votes of all", VotedPerceptron),
        ("the best survivor", PocketPerceptron),
    ]
    table = Table(box=None, pad_edge=False, header_style="dim")
    for name, justify in (("learner", "left"), ("predicts with", "left"), ("held-out", "right"), ("mistakes", "right")):
        table.add_column(name, justify=justify, no_wrap=True)  # type: ignore[arg-type]
    table.add_column("passes", justify="right", no_wrap=True)
    table.add_column("trained in", justify="right", no_wrap=True)
    accuracy = 0.0
    with console.status("training …"):
        for what, learner in learners:
            model = learner(random_state=0)
            model.fit(X_train, y_train).predict(X_test[:1])
            begin = time.perf_counter()
            model.fit(X_train, y_train)
            took = time.perf_counter() - begin
            accuracy = model.score(X_test, y_test)
            table.add_row(
                type(model).__name__,
                what,
                f"{accuracy:.1%}",
                f"{model.n_mistakes_:,}",
                f"{model.n_iter_}{' (clean)' if model.converged_ else ''}",
                f"{1000 * took:.1f} ms",
            )
    console.print(table)
    console.print("\nEvery mistake is in the ledger: the first three of the last run were")
    for mistake in list(model.ledger_)[:3]:
        console.print(f"  step {mistake.step}: example {mistake.example}, a {mistake.up}, was taken for a {mistake.down}")
    console.print("\nIn Python: [bold]from separatrix import AveragedPerceptron[/bold], a scikit-learn classifier.")
