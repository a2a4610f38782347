"""Step through a perceptron with its proof; needs no files.

Then XOR, which no linear classifier gets right, and four learners on handwritten digits.
"""

import time
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from rich.console import Console


def demo() -> int:
    """Show Example 1 of L4 with its proof lines, XOR with its certificate, and four learners on handwritten digits."""
    from rich.console import Console

    console = Console()
    _show_steps(console)
    _show_xor(console)
    _show_digits(console)
    return 0


def _show_steps(console: "Console") -> None:
    from separatrix.analysis.tracing import trace
    from separatrix.data.lectures import EXAMPLES
    from separatrix.estimators.linear import Perceptron

    example = EXAMPLES["L4.1"]
    with console.status("compiling the kernels (only the first time) …"):
        steps = trace(Perceptron(order="cyclic", fit_intercept=False, tie=example.tie), example.X, example.y)
    console.print("\n[bold]A perceptron, step by step[/bold]  (L4, example 1: four points, no bias)")
    console.print("From w = (0, 0): a mistake is y·⟨w,x⟩ ≤ 0, and the update is w ← w + yx.\n")
    console.print(steps.table())
    console.print(f"\n{steps.explanation()}\n", highlight=False)


def _show_xor(console: "Console") -> None:
    from separatrix.data.lectures import EXAMPLES
    from separatrix.proofs.certificate import certify
    from separatrix.proofs.wording import lines

    example = EXAMPLES["L4.xor"]
    console.print("[bold]And where it cannot be done[/bold]  (L4, example 2: XOR, with a bias)\n")
    console.print(*lines(certify(example.X, example.y)), sep="\n", highlight=False, markup=False)
    console.print()


def _show_digits(console: "Console") -> None:
    from rich.table import Table
    from sklearn.datasets import load_digits
    from sklearn.model_selection import train_test_split

    from separatrix.estimators.linear import AveragedPerceptron, Perceptron, PocketPerceptron, VotedPerceptron

    X, y = load_digits(return_X_y=True)
    X_train, X_test, y_train, y_test = train_test_split(X, y, test_size=0.25, random_state=0, stratify=y)
    console.print(
        f"[bold]The same rule on real data[/bold]  ({len(X_train):,} handwritten digits of {X.shape[1]} pixels,\n"
        f"ten classes jointly; held-out accuracy on {len(X_test)} others)\n"
    )
    learners: dict[str, Any] = {
        "the last weights": Perceptron,
        "the average of all": AveragedPerceptron,
        "the votes of all": VotedPerceptron,
        "the best survivor": PocketPerceptron,
    }
    table = Table(box=None, pad_edge=False, header_style="dim")
    table.add_column("learner", no_wrap=True)
    table.add_column("predicts with", no_wrap=True)
    for name in ("held-out", "mistakes", "passes", "trained in"):
        table.add_column(name, justify="right", no_wrap=True)
    with console.status("training …"):
        for predicts_with, learner in learners.items():
            model = learner(random_state=0)
            model.fit(X_train, y_train).predict(X_test[:1])  # compiles what is not compiled yet
            begin = time.perf_counter()
            model.fit(X_train, y_train)
            seconds = time.perf_counter() - begin
            table.add_row(
                type(model).__name__,
                predicts_with,
                f"{model.score(X_test, y_test):.1%}",
                f"{model.n_mistakes_:,}",
                f"{model.n_iter_}{' (clean)' if model.converged_ else ''}",
                f"{1000 * seconds:.1f} ms",
            )
    console.print(table)
    console.print("\nEvery mistake is in the ledger: the first three of the last run were")
    for mistake in list(model.ledger_)[:3]:
        console.print(f"  step {mistake.step}: example {mistake.example}, a {mistake.up}, was taken for a {mistake.down}")
    console.print("\nIn Python: [bold]from separatrix import AveragedPerceptron[/bold], a scikit-learn classifier.")
