"""What `separatrix train` says in the end."""

from __future__ import annotations

from typing import Any

from rich.console import Console

from separatrix import __version__
from separatrix.data.reading import Source
from separatrix.engine.rules import RULES
from separatrix.files.ingest import Gathered


def summarise(
    source: Source,
    gathered: Gathered,
    learner: Any,
    digest: str,
    settings: dict[str, Any],
    training: float,
    reading: float,
) -> dict[str, Any]:
    """Return the figures; "facts" are those that the model file keeps."""
    blocks, held_out = gathered.blocks, gathered.held_out
    counts = dict(zip(map(str, gathered.classes.tolist()), blocks.class_counts().tolist(), strict=True))
    facts = {
        "data": digest,
        "format": source.format,
        "rows": blocks.n,
        "features": blocks.d,
        "classes": counts,
        "skipped": source.skipped,
        "settings": settings,
        "label": source.label,
        "version": __version__,
    }
    n = max(1, blocks.n)
    summary: dict[str, Any] = {
        "facts": facts,
        "data": source.name,
        "rows": blocks.n,
        "held_out": 0 if held_out is None else held_out.n,
        "features": blocks.d,
        "classes": counts,
        "skipped": source.skipped,
        "problems": source.problems[:3],
        "spilled_bytes": blocks.spilled,
        "columns": [] if gathered.features is None else gathered.features.describe().splitlines(),
        "learner": described(learner),
        "passes": learner.n_iter_,
        "converged": bool(learner.converged_),
        "mistakes_per_pass": list(map(int, learner.mistakes_per_pass_)),
        "seconds_reading": round(reading, 3),
        "seconds_training": round(training, 3),
    }
    if hasattr(learner, "progressive_errors_"):
        summary["progressive_error"] = learner.progressive_errors_ / n
    if hasattr(learner, "validation_scores_"):
        scores = learner.validation_scores_
        summary["held_out_accuracies"] = scores
        summary["held_out_accuracy"] = max(scores) if learner.early_stopping else scores[-1]
    if hasattr(learner, "C_"):
        summary["C"] = learner.C_
    return summary


def described(learner: Any) -> str:
    """Return the learner with its settings, in short."""
    name = type(learner).__name__
    shown = {"rule": learner.rule}
    if RULES[learner.rule].has_C:
        shown["C"] = getattr(learner, "C_", learner.C)
    if RULES[learner.rule].asks == "margin":
        shown["margin"] = learner.margin
    shown |= {
        "order": learner.order,
        "passes": learner.max_iter,
        **({"average_from": learner.average_from} if getattr(learner, "average_from", 1) > 1 else {}),
        "bias": learner.fit_intercept,
        "seed": learner.random_state,
    }
    return f"{name}({', '.join(f'{key}={value}' for key, value in shown.items())})"


def show(summary: dict[str, Any]) -> None:
    """Print the figures for a person."""
    console = Console(highlight=False, soft_wrap=True)
    classes = summary["classes"]
    several = ", ".join(f"{name} {count:,}" for name, count in list(classes.items())[:6]) + (
        " …" if len(classes) > 6 else ""
    )
    shards = f"{summary['shards']:,} shard{'s' * (summary['shards'] != 1)}, " if "shards" in summary else ""
    console.print(
        f"[bold]{summary['data']}[/bold]: {shards}{summary['rows']:,} rows, {len(classes)} classes ({several})", markup=True
    )
    if 2 * sum(count == 1 for count in classes.values()) > len(classes) > 2:
        named = summary["facts"].get("label")
        ask = "are these labels?" if named is None else f"is {named} the label? --label names another column"
        console.print(f"  most classes occur once: {ask}", markup=False)
    if summary["skipped"]:
        console.print(f"  skipped {summary['skipped']:,} lines, the first: {summary['problems'][0]}", markup=False)
    for line in summary["columns"]:
        console.print(f"  {line}", markup=False)
    console.print(f"  {summary['features']:,} features; {summary['learner']}", markup=False)
    done = f"{summary['passes']} passes" + (", converged" if summary["converged"] else "")
    read = f"read in {summary['seconds_reading']:.2f} s, " if "seconds_reading" in summary else "read and "
    console.print(f"  {read}trained in {summary['seconds_training']:.2f} s: {done}")
    if "mistakes_by_shard" in summary:
        console.print(f"  mistakes by shard in the last pass: {', '.join(map(str, summary['mistakes_by_shard'][-1][:16]))}")
        if summary["bound"]:
            console.print(f"  {summary['bound']}", markup=False)
    if "progressive_error" in summary:
        console.print(
            f"  progressive error {summary['progressive_error']:.4f} (first pass, each example before it was learned)"
        )
    if "held_out_accuracy" in summary:
        console.print(f"  held-out accuracy [bold]{summary['held_out_accuracy']:.4f}[/bold] on {summary['held_out']:,} rows")
    if "model" in summary:
        console.print(f"  written to {summary['model']} ({summary['bytes']:,} bytes)", markup=False)
    else:
        console.print("  not written: name a file with -o", markup=False)
