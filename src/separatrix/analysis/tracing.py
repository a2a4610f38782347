"""The trace of a run: every step, and at every mistake the two lines of Novikoff's proof (L1 10, L2 7, L4 6, L5 4).

    (1)  ‖w‖² ≤ k·R²         a correction adds at most ‖x‖² to ‖w‖², because y⟨w,x⟩ ≤ 0 at a mistake
    (2)  ⟨w,w*⟩ ≥ k·γ        and at least γ to ⟨w,w*⟩, for a separator w* of length 1 with margin γ

Together k²γ² ≤ ⟨w,w*⟩² ≤ ‖w‖² ≤ k·R², hence k ≤ R²/γ². Examples of weight s count s² in (1) and s in (2); K classes jointly
have 2R² in place of R². The trace is replayed from the ledger and the order of presentation; no decision is made again.
"""

from __future__ import annotations

import copy
import csv
import io
import json
from collections.abc import Iterator
from html import escape
from textwrap import fill
from typing import TYPE_CHECKING, Any

import numpy as np

from separatrix.analysis.best_separator import Separator, best_separator, flattened
from separatrix.engine.labels import Codes, as_labels, encode_as
from separatrix.engine.orders import order_for, visits
from separatrix.engine.rows import Ints, Rows, as_rows
from separatrix.engine.weights import Weights
from separatrix.estimators.notebook import MOST_POINTS, beside, cells_table, picture
from separatrix.learners.linear_base import LinearLearner

if TYPE_CHECKING:
    from rich.console import Console, ConsoleOptions, RenderResult
    from rich.table import Table

PROOF = ("k", "norm2", "k_R2", "progress", "k_gamma", "k2_gamma2", "holds")
COLUMNS = ("pass", "step", "example", "label", "score", "mistake", "rival", "w", *PROOF)
SLACK = 1e-9
SHOWN = 60
WIDTH = 79
MAX_STEPS = 100_000


class Trace:
    """The steps of a training run, as `trace` returns them.

    `rows` is a list of dicts: `pass`, `step`, `example`, `label`, `score` (two classes: ⟨w,x⟩ + b before the step; K: the
    lead of the true class), `mistake`, `rival` (the class that was predicted instead), `w` (the weights after the step, the
    bias last; K classes: a list for each). The k-th mistake also has `norm2` = ‖w‖², `k_R2` (the bound of line 1),
    `progress` = ⟨w,w*⟩, `k_gamma` (the bound of line 2), `k2_gamma2`, and whether the lines hold. Line 2 is None without a
    separator w*; both lines are None if the proof does not apply to the rule or to the initial weights.
    """

    def __init__(self, model: LinearLearner, separator: Separator | None, examples: Rows) -> None:
        self.model = model
        self.separator = separator
        self.examples = examples
        self.rows: list[dict[str, Any]] = []
        self.complete = True

    @property
    def R2(self) -> float:  # noqa: N802
        """R² of line 1: the largest ‖x̃‖², twice that for K classes jointly."""
        return self.model.radius_**2 * (2.0 if len(self.model.classes_) > 2 else 1.0)

    @property
    def gamma(self) -> float | None:
        """The margin γ of the separator, if there is one."""
        return None if self.separator is None else self.separator.gamma

    @property
    def bound(self) -> float | None:
        """R²/γ², if there is a separator."""
        return None if self.gamma is None else self.R2 / self.gamma**2

    @property
    def mistakes(self) -> list[dict[str, Any]]:
        """The steps that were mistakes."""
        return [row for row in self.rows if row["mistake"]]

    @property
    def proof_applies(self) -> bool:
        """Whether the proof applies to this run: the perceptron rule, starting from zero weights."""
        return self.model.ledger_.rule.entry.theorem == "perceptron" and self.model.ledger_.start is None

    @property
    def holds(self) -> bool | None:
        """Whether both lines hold at every mistake; None if the proof does not apply to the run."""
        return all(row["holds"] for row in self.mistakes) if self.proof_applies else None

    # Conversions.

    def to_frame(self) -> Any:
        """Return a pandas data frame with one row for each step."""
        try:
            import pandas as pd  # type: ignore[import-untyped]
        except ImportError:
            raise ImportError("to_frame needs pandas: pip install pandas; or use .rows, a list of dicts") from None
        return pd.DataFrame(self.rows, columns=list(COLUMNS))

    def to_json(self) -> str:
        """Return JSON with the steps and a summary of the run."""
        model = self.model
        return json.dumps(
            {
                "classes": model.classes_.tolist(),
                "radius": model.radius_,
                "gamma": self.gamma,
                "separator": None if self.separator is None else _as_list(self.separator.weights, model.ledger_.bias),
                "bound": self.bound,
                "converged": model.converged_,
                "cycle": None if model.cycle_ is None else model.cycle_._asdict(),
                "n_mistakes": len(model.ledger_),
                "complete": self.complete,
                "holds": self.holds,
                "steps": self.rows,
            },
            ensure_ascii=False,
        )

    def to_csv(self) -> str:
        """Return comma-separated values, one line for each step; w is a JSON list."""
        out = io.StringIO()
        writer = csv.DictWriter(out, COLUMNS, lineterminator="\n")
        writer.writeheader()
        for row in self.rows:
            writer.writerow(row | {"w": json.dumps(row["w"])})
        return out.getvalue()

    def to_markdown(self) -> str:
        """Return a Markdown table with the explanation below it."""
        heads, cells = self._heads(), list(self._cells())
        lines = [heads, ["---"] * len(heads), *([cell.replace("|", "\\|") for cell in row] for row in cells)]
        return "\n".join("| " + " | ".join(line) + " |" for line in lines) + "\n\n" + self.explanation() + "\n"

    def _repr_html_(self) -> str:
        text = escape(self.explanation()).replace("\n", "<br>")
        return cells_table(self._heads(), self._cells(SHOWN)) + beside(f"<p>{text}</p>", self._picture())

    def _picture(self) -> str:
        """Return a picture of the examples and of the decisions, if there are two features and not too many examples."""
        X, labels = self.examples.source, {row["example"]: row["label"] for row in self.rows}
        if self.examples.sparse or self.examples.d != 2 or not 0 < len(labels) <= MOST_POINTS:
            return ""
        model, presented = self.model, sorted(labels)
        codes = encode_as(model.classes_, np.array([labels[i] for i in presented]))
        caption = "the examples, and the class that the learner predicts around them"
        points = np.asarray(X[presented], dtype=np.float64)
        return picture(model, points, codes, caption)

    def _heads(self) -> list[str]:
        line1 = "‖w‖² ≤ 2k·R²" if len(self.model.classes_) > 2 else "‖w‖² ≤ k·R²"
        score = "lead" if len(self.model.classes_) > 2 else "⟨w,x⟩+b" if self.model.ledger_.bias else "⟨w,x⟩"
        return ["pass", "i", "x", "y", score, "", "w after", line1, "⟨w,w*⟩ ≥ k·γ"]

    def _cells(self, most: int | None = None) -> Iterator[list[str]]:
        """Yield the cells of the table, without its middle if it is longer than `most` rows."""
        rows = self.rows
        cut = most is not None and len(rows) > most
        half = (most or 0) // 2
        for number, row in enumerate([*rows[:half], *rows[-half:]] if cut else rows):
            if cut and number == half:
                yield ["…", "", "", "", "", f"{len(rows) - 2 * half:,} steps", "", "", ""]
            x = self.examples.take(np.array([row["example"]])).source
            x = x.toarray()[0] if self.examples.sparse else x[0]
            outcome = f"mistake {row['k']}" if row["mistake"] else "right"
            if row["mistake"] and len(self.model.classes_) > 2:
                outcome += f" (for {row['rival']})"
            line1 = f"{_number(row['norm2'])} ≤ {_number(row['k_R2'])}" if row["k_R2"] is not None else ""
            line2 = f"{_number(row['progress'])} ≥ {_number(row['k_gamma'])}" if row["k_gamma"] is not None else ""
            place = [str(row["pass"]), str(row["example"]), _vector(x), str(row["label"]), _number(row["score"])]
            yield [*place, outcome, _vector(row["w"]), line1, line2]

    def table(self) -> Table:
        """Return the steps as a table for the terminal."""
        from rich.table import Table

        table = Table(box=None, pad_edge=False, header_style="dim")
        for name in self._heads():
            table.add_column(name, justify="right" if name in ("pass", "i", "y", "lead", "⟨w,x⟩") else "left")
        for cells in self._cells(SHOWN):
            style = "green" if cells[5] == "right" else "yellow"
            table.add_row(*cells[:5], f"[{style}]{cells[5]}[/{style}]", *cells[6:])
        return table

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        yield self.table()
        yield ""
        yield self.explanation()

    def __repr__(self) -> str:
        from rich.console import Console

        out = io.StringIO()
        Console(file=out, width=200, color_system=None).print(self)
        return "\n".join(line.rstrip() for line in out.getvalue().rstrip().splitlines())

    def explanation(self) -> str:
        """Return how the run ended and what the theorem says about it, with the numbers of this run."""
        model, k, cut = self.model, len(self.model.ledger_), self.model.ledger_.cut
        if not self.complete:
            sentences = [f"The first {len(self.rows):,} steps of {model.n_seen_:,}."]
        elif model.converged_:
            w = self.rows[-1]["w"]
            sentences = [f"Pass {model.n_iter_} is clean: w = {_vector(w)} separates the examples, after {_mistakes(k)}."]
        else:
            number = model.n_iter_ if cut is None else cut.pass_number
            passes = "1 pass" if number == 1 else f"{number:,} passes"
            sentences = [f"After {passes} and {_mistakes(k)} there has been no clean pass."]
            if cut is not None:
                sentences.append(
                    f"Training returned to this pass after {model.n_iter_:,}: it had the best held-out accuracy."
                )
        if model.cycle_ is not None:
            start, period = model.cycle_
            every = "every pass" if period == 1 else f"every {period} passes"
            sentences.append(f"The weights at the start of pass {start} come back {every}, so training would never end.")
        return "\n".join(fill(text, WIDTH) for text in (" ".join(sentences), self._theorem()))

    def _theorem(self) -> str:
        k, R2, gamma = len(self.mistakes), self.R2, self.gamma
        if not self.proof_applies:
            return "The proof does not apply to this run: it requires the perceptron rule and zero initial weights."
        if gamma is None or self.bound is None:
            return (
                "No separator of these examples was found, so there is no margin γ and no bound on the mistakes. "
                f"Line 1 of the proof holds nevertheless: ‖w‖² ≤ k·R² with R² = {_number(R2)}."
            )
        weighted = self.model.ledger_.correction.size > 0
        lines = "k²γ² ≤ ‖w‖² ≤ k·R²" if not weighted else "(Σs)²γ² ≤ ‖w‖² ≤ Σs²·R²"
        if weighted:
            return f"Both lines hold at every mistake (w* is the best separator, γ = {_number(gamma)} its margin): {lines}."
        twice = " (twice the largest ‖x‖², for K classes)" if len(self.model.classes_) > 2 else ""
        bound = int(self.bound * (1 + 1e-9))
        return (
            f"Both lines hold at every mistake (w* is the best separator, γ = {_number(gamma)} its margin), so {lines}, "
            f"hence k ≤ R²/γ² = {_number(R2)}/{_number(gamma**2)} = {bound:,}{twice}: in whatever order, "
            f"a perceptron makes at most {_mistakes(bound)} on these examples. Here it made {k:,}."
        )


def trace(estimator: LinearLearner, X: Any, y: Any, *, max_steps: int = MAX_STEPS) -> Trace:
    """Return every step of a linear learner on X, y, with the two lines of the proof at each mistake.

    An estimator that was fitted on exactly these data is used as it is; otherwise an unfitted copy of it is fitted.

    Parameters
    ----------
    estimator : a linear learner (`Perceptron`, `AveragedPerceptron`, …): two classes, or more of them jointly
    X, y : examples and labels
    max_steps : the trace ends after so many steps, with `complete` False

    Examples
    --------
    >>> from separatrix import Perceptron, trace
    >>> X, y = [[4, 0], [1, 1], [0, 1], [-2, -2]], [1, -1, -1, 1]
    >>> steps = trace(Perceptron(order="cyclic", fit_intercept=False), X, y)
    >>> [row["w"] for row in steps.mistakes], steps.holds, round(steps.bound)
    ([[4.0, 0.0], [3.0, -1.0], [1.0, -3.0]], True, 26)
    """
    if not isinstance(estimator, LinearLearner):
        raise TypeError(f"trace needs a linear learner such as Perceptron: {type(estimator).__name__} is not one of them")
    labels = as_labels(np.asarray(y))
    model = estimator
    if not _is_fitted_on(estimator, X, labels):
        model = estimator.unfitted(random_state=copy.deepcopy(estimator.random_state)).fit(X, labels)
    if len(model.classes_) > 2 and not model.run_.joint:
        raise ValueError('trace follows two classes, or K jointly: one-vs-rest is K runs at once; use multi_class="joint"')
    examples = as_rows(X)
    codes = encode_as(model.classes_, labels)
    presented = np.setdiff1d(np.arange(examples.n), model.run_.left_out)
    chosen = examples if len(presented) == examples.n else examples.take(presented)
    separator = best_separator(chosen, codes[presented], len(model.classes_), bias=model.ledger_.bias)
    result = Trace(model, separator, examples)
    for row in _steps(result, labels):
        if len(result.rows) == max_steps:
            result.complete = False
            break
        result.rows.append(row)
    return result


def _is_fitted_on(estimator: LinearLearner, X: Any, labels: Any) -> bool:
    """Return whether a learner has the complete ledger of a fit on exactly these data."""
    run = getattr(estimator, "run_", None)
    if run is None or run.streaming or run.ledger.absent or run.rows_seen != len(labels):
        return False
    if set(np.unique(labels).tolist()) != set(run.classes.tolist()):
        return False
    codes = encode_as(run.classes, labels)
    steps = sum(len(which) for _, which in presentations(estimator, as_rows(X), codes))
    return bool(run.ledger.steps == steps and run.ledger.verify(X, labels))


def presentations(model: LinearLearner, examples: Rows, codes: Codes) -> Iterator[tuple[int, Ints]]:
    """Yield (pass, examples in the order of their presentation), block by block; `codes` are their classes."""
    run = model.run_
    passes = len(run.ledger.pass_starts) if run.ledger.cut is None else run.ledger.cut.pass_number
    chosen_order = order_for(run.order, examples, codes)
    for number in range(passes):
        for order, begin, end, _ in visits(chosen_order, examples, run.seed, number, run.gaps):
            which = order[begin:end] if order.size else np.arange(begin, end)
            if run.left_out.size:
                which = which[~np.isin(which, run.left_out)]
            yield number + 1, which


def _steps(result: Trace, labels: Any) -> Iterator[dict[str, Any]]:
    model, examples = result.model, result.examples
    ledger = model.ledger_
    mistake_at = {int(step): m for m, step in enumerate(ledger.step)}
    codes = encode_as(model.classes_, labels)
    state = ledger.state(examples.sparse, ledger.start)
    names = model.classes_.tolist()
    step, steps_up, squares = 0, 0.0, 0.0
    for number, order in presentations(model, examples, codes):
        for i in order:
            step += 1
            scores = examples.scores(*state.weights(), np.array([i]))[0]
            score = float(scores[0]) if len(scores) == 1 else float(scores[codes[i]] - _best_rival(scores, codes[i]))
            row: dict[str, Any] = dict.fromkeys(COLUMNS)
            row |= {"pass": number, "step": step, "example": int(i), "label": names[codes[i]], "score": score}
            row["mistake"] = step in mistake_at
            if row["mistake"]:
                m = mistake_at[step]
                ledger.replay_into(state, examples, ledger.example, slice(m, m + 1))
                c = float(ledger.correction[m]) if ledger.correction.size else 1.0
                steps_up, squares = steps_up + c, squares + c * c
                row |= {"k": m + 1, "rival": names[ledger.down[m]]}
                row |= _proof(result, flattened(state.weights()), steps_up, squares)
            row["w"] = _as_list(state.weights(), model.ledger_.bias)
            yield row


def _best_rival(scores: Any, label: int) -> float:
    return float(np.delete(scores, label).max())


def _proof(result: Trace, w: Any, s: float, s2: float) -> dict[str, Any]:
    """Return the quantities of the proof for weights that are the sum of corrections s_1…s_k with Σs = s and Σs² = s2."""
    row: dict[str, Any] = {"norm2": float(w @ w)}
    if not result.proof_applies:
        return row
    row["k_R2"] = s2 * result.R2
    row["holds"] = row["norm2"] <= row["k_R2"] * (1.0 + SLACK)
    if result.separator is not None:
        gamma = result.separator.gamma
        row |= {"progress": float(w @ result.separator.flat), "k_gamma": s * gamma, "k2_gamma2": (s * gamma) ** 2}
        row["holds"] = bool(row["holds"] and row["progress"] >= row["k_gamma"] * (1.0 - SLACK))
    return row


def _as_list(weights: Weights, bias: bool) -> list[Any]:
    together = np.hstack([weights.coef, weights.intercept[:, None]]) if bias else weights.coef
    listed: list[Any] = together[0].tolist() if len(together) == 1 else together.tolist()
    return listed


def _number(value: float) -> str:
    whole = abs(value) >= 1e4 or value == round(value)
    return (f"{value:.0f}" if whole and abs(value) < 1e12 else f"{value:.4g}").replace("-", "−")


def _vector(values: Any) -> str:
    values = list(values)
    if values and isinstance(values[0], list):
        return " ".join(_vector(value) for value in values)
    numbers = [_number(value) for value in values[:8]] + (["…"] if len(values) > 8 else [])
    return "(" + ", ".join(numbers) + ")"


def _mistakes(k: int) -> str:
    return f"{k:,} mistake" if k == 1 else f"{k:,} mistakes"
