"""Every algorithm of the lectures in plain NumPy, as on the board. It is exact on integers and slow: the tests' oracle.

An example is a row x of X with its label y: ±1 for two classes, 0…K−1 for K. A learner presents examples in some order and
returns a `Run`: the weights after every step, and the mistakes. Everything else follows from the run. The products of a
score are added from the first to the last (`dot`), unlike in BLAS, so the lab's engine in the browser has the same bits.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

Array = np.ndarray[Any, np.dtype[Any]]
Labels = Sequence[int]
Order = Iterable[int]


@dataclass
class Mistake:
    """One mistake: at which step (from 1), on which example, up and down which class, by how much, at what score."""

    step: int
    example: int
    up: int
    down: int
    correction: float
    score: float


@dataclass
class Run:
    """What happened: the weights after each step (the first entry is the start) and the mistakes in order."""

    weights: list[Array]
    mistakes: list[Any] = field(default_factory=list)

    @property
    def last(self) -> Array:
        """The weights at the end."""
        return self.weights[-1]


def dot(M: Array, x: Array) -> Array:
    """⟨w,x⟩, or a score for each row of a matrix: products added from the first to the last."""
    return np.asarray(np.cumsum(M * x, axis=-1)[..., -1])


def augment(X: Array) -> Array:
    """L3 5, L4 10: x̃ = (x, 1), so that the bias is the last weight."""
    return np.hstack([X, np.ones((len(X), 1), X.dtype)])


# The orders (L1 5 "pick a pair", L2 4 "T passes", L5 3 "a random one"). Each is a list of example numbers, pass after pass.


def cyclic(n: int, passes: int) -> list[int]:
    """Every example in its place, again and again."""
    return list(range(n)) * passes


def permutation(n: int, passes: int, seed: int) -> list[int]:
    """A new uniform order each pass."""
    return [int(i) for p in range(passes) for i in np.random.default_rng([seed, p]).permutation(n)]


def random(n: int, passes: int, seed: int) -> list[int]:
    """Draws with replacement, n a pass (L5 3)."""
    return [int(i) for p in range(passes) for i in np.random.default_rng([seed, p]).integers(n, size=n)]


def shuffle(n: int, passes: int, seed: int, run: int, streams: int) -> list[int]:
    """Short runs of neighbouring rows in a random order, in windows of `streams` runs whose rows are scattered."""
    if run == 1:
        return permutation(n, passes, seed)
    order = []
    for p in range(passes):
        rng = np.random.default_rng([seed, p])
        starts = rng.permutation(np.arange(-int(rng.integers(run)), n, run))
        pattern = rng.permutation(run * streams)
        for first in range(0, len(starts), streams):
            window = [range(s, s + run) for s in starts[first : first + streams]]
            scattered = [window[q // run][q % run] for q in pattern if q // run < len(window)]
            order += [int(row) for row in scattered if 0 <= row < n]
    return order


# Two classes (L1 2 and 5, L2 4, L3 4–5, L4 2, L5 3).


def is_mistake(y: int, s: float, tie: str) -> bool:
    """The three meanings of a score of 0: L4 "mistake", L1 and L5 "+1", L2 "-1"."""
    if tie == "mistake":
        return y * s <= 0
    return y != (+1 if s > 0 or (s == 0 and tie == "+1") else -1)


def correction(rule: str, lead: float, square: float, margin: float, C: float, weight: float) -> float:
    """The size of the correction, 0 for none, of all rules but the first; `square` is ‖x‖², K classes jointly 2‖x‖²."""
    loss = max(0.0, 1.0 - lead)
    if rule == "margin":
        return weight * (lead <= margin)
    return 0.0 if loss == 0.0 or square == 0.0 else weight * STEPS[rule](loss, square, C)


STEPS: dict[str, Callable[[float, float, float], float]] = {
    "pa": lambda loss, square, C: loss / square,
    "pa1": lambda loss, square, C: min(C, loss / square),
    "pa2": lambda loss, square, C: loss / (square + 1 / (2 * C)),
}
"""The corrections of the rules that follow the hinge loss; a new rule adds its own here."""


def presented(order: Order, weight: Sequence[float] | None, rule: str) -> Iterator[tuple[int, int, float]]:
    """Number the steps: (step, example, weight), without weights of 0; all but three rules divide by the heaviest so far."""
    step, heaviest = 0, 1.0
    for i in order:
        c = 1.0 if weight is None else weight[i]
        if c:
            step, heaviest = step + 1, max(heaviest, c)
            yield step, i, c if rule in ("perceptron", "margin", "pa1") else c / heaviest


def perceptron(
    X: Array,
    y: Labels,
    order: Order,
    tie: str = "mistake",
    weight: Sequence[float] | None = None,
    rule: str = "perceptron",
    margin: float = 1.0,
    C: float = 1.0,
) -> Run:
    """Present the examples in order; on a mistake w ← w + yx (times the example's weight, where there are weights)."""
    run = Run([np.zeros(X.shape[1])])
    for step, i, c in presented(order, weight, rule):
        w, s = run.last, float(dot(run.last, X[i]))
        square = float(dot(X[i], X[i]))
        c = c * is_mistake(y[i], s, tie) if rule == "perceptron" else correction(rule, y[i] * s, square, margin, C, c)
        if c:
            w = w + c * y[i] * X[i]
            run.mistakes.append(Mistake(step, i, int(y[i] > 0), int(y[i] < 0), c, s))
        run.weights.append(w)
    return run


# K classes jointly (L2 5) and one against the rest.


def rival(label: int, s: Array, tie: str) -> int:
    """The class that beats the label: the highest wrong one, lowest index first; the label itself where it wins."""
    if tie == "first":
        return int(np.argmax(s))
    wrong = highest_wrong(label, s)
    return wrong if s[wrong] >= s[label] else label


def highest_wrong(label: int, s: Array) -> int:
    """The class that comes nearest to beating the label."""
    return max((k for k in range(len(s)) if k != label), key=lambda k: (s[k], -k))


def multiclass(
    X: Array,
    y: Labels,
    n_classes: int,
    order: Order,
    tie: str = "mistake",
    weight: Sequence[float] | None = None,
    rule: str = "perceptron",
    margin: float = 1.0,
    C: float = 1.0,
) -> Run:
    """A weight vector per class; on a mistake w_true ← w_true + x, w_rival ← w_rival − x."""
    run = Run([np.zeros((n_classes, X.shape[1]))])
    for step, i, c in presented(order, weight, rule):
        W, s = run.last, dot(run.last, X[i])
        r = rival(y[i], s, tie) if rule == "perceptron" else highest_wrong(y[i], s)
        lead = float(s[y[i]] - s[r])
        c = c * (r != y[i]) if rule == "perceptron" else correction(rule, lead, 2 * float(dot(X[i], X[i])), margin, C, c)
        if c:
            W = W.copy()
            W[y[i]] += c * X[i]
            W[r] -= c * X[i]
            run.mistakes.append(Mistake(step, i, int(y[i]), r, c, lead))
        run.weights.append(W)
    return run


def one_vs_rest(X: Array, y: Labels, n_classes: int, order: Order, tie: str = "mistake", **rule: Any) -> list[Run]:
    """K perceptrons, each with its class against all others."""
    order = list(order)
    return [perceptron(X, [1 if label == k else -1 for label in y], order, tie, **rule) for k in range(n_classes)]


def arow(X: Array, y: Labels, n_classes: int, order: Order, C: float, full: bool, weight: Any = None) -> Run:
    """Move along Σx by (1 − lead)/(v + 1/C), v = xᵀΣx of the lead; Σ ← Σ − Σx(Σx)ᵀ/(v + 1/C), or the diagonal of that."""
    K, d = (1 if n_classes == 2 else n_classes), X.shape[1]
    run, S = Run([np.zeros((K, d))]), [np.eye(d) for _ in range(K)]
    for step, i, c in presented(order, weight, "arow"):
        W, x = run.last, X[i]
        s = dot(W, x)
        r = highest_wrong(y[i], s) if K > 1 else 1 - y[i]
        moved = [(y[i], 1.0), (r, -1.0)] if K > 1 else [(0, 2.0 * y[i] - 1.0)]
        lead = float(sum(sign * s[k] for k, sign in moved))
        rate = c / (sum(float(dot(dot(S[k], x), x)) for k, _ in moved) + 1.0 / C)
        if lead < 1.0 and x.any():
            W = W.copy()
            for k, sign in moved:
                z = dot(S[k], x)
                W[k] += sign * (1.0 - lead) * rate * z
                S[k] = S[k] - rate * (np.outer(z, z) if full else np.diag(z * z))
            run.mistakes.append(Mistake(step, i, int(y[i]), int(r), (1.0 - lead) * rate, float(s[0] if K == 1 else lead)))
        run.weights.append(W)
    return run


# What follows from a run: the average, the votes, the pocket (L2 9, L4 8).


def averaged(run: Run, start: int = 0) -> Array:
    """The mean of the weights after each step beyond `start`."""
    return np.asarray(np.sum(run.weights[start + 1 :], axis=0) / (len(run.weights) - 1 - start))


def survivors(run: Run) -> list[tuple[Array, int]]:
    """Each weight vector that the run held after a step, with its survival count: L4's ((w_m), c_m)."""
    counted: list[tuple[Array, int]] = []
    for before, after in zip(run.weights, run.weights[1:], strict=False):
        if counted and after is before:
            counted[-1] = (after, counted[-1][1] + 1)
        else:
            counted.append((after, 1))
    return counted


def voted(run: Run, x: Array) -> int:
    """The sum of c_m · sign⟨w_m, x⟩: its sign is the vote; a voter with score 0 abstains."""
    return sum(c * int(np.sign(w @ x)) for w, c in survivors(run))


def voted_multiclass(run: Run, x: Array) -> Array:
    """The votes for each class: a voter whose highest score is tied abstains."""
    votes = np.zeros(len(run.last), int)
    for W, c in survivors(run):
        s = W @ x
        if np.sum(s == s.max()) == 1:
            votes[np.argmax(s)] += c
    return votes


def training_mistakes(w: Array, X: Array, y: Labels, tie: str = "mistake") -> int:
    """L1 3: how many training examples w gets wrong."""
    return sum(is_mistake(label, float(w @ x), tie) for x, label in zip(X, y, strict=True))


def pocket(run: Run, X: Array, y: Labels, steps_per_pass: int, tried: int = 10, tie: str = "mistake") -> Array:
    """The best survivor: replaced only by weights with fewer training mistakes.

    After each pass, try those of its weights that lasted longest so far; at the end, the last ones too.
    """
    best, fewest, judged = run.weights[0], training_mistakes(run.weights[0], X, y, tie), {id(run.weights[0])}
    for end in range(steps_per_pass, len(run.weights), steps_per_pass):
        new = {id(w) for w in run.weights[end - steps_per_pass : end + 1]} - judged
        candidates = [(w, c) for w, c in survivors(Run(run.weights[: end + 1])) if id(w) in new]
        longest = sorted(candidates, key=lambda candidate: -candidate[1])[:tried]
        if end + steps_per_pass >= len(run.weights):
            longest.append((run.last, 0))
        for w, _ in longest:
            mistakes = training_mistakes(w, X, y, tie)
            judged.add(id(w))
            if mistakes < fewest:
                best, fewest = w, mistakes
    return best


def fisher(X1: Array, X2: Array) -> Array:
    """L3 3: w = S⁻¹(μ₁ − μ₂), S = Σ₁ + Σ₂, with Σ the expectation of (x − μ)(x − μ)ᵀ."""
    mu1, mu2 = X1.mean(axis=0), X2.mean(axis=0)
    S = (X1 - mu1).T @ (X1 - mu1) / len(X1) + (X2 - mu2).T @ (X2 - mu2) / len(X2)
    return np.asarray(np.linalg.solve(S, mu1 - mu2))


def kernel_perceptron(G: Array, y: Labels, n_classes: int, order: Order, tie: str = "mistake", weight: Any = None) -> Run:
    """The same in the space of a kernel: the score is ⟨w,φ(x)⟩ = Σ αᵢk(xᵢ,x), the weights are the α, G holds k(xᵢ,xⱼ)."""
    run = Run([np.zeros(len(G)) if n_classes == 2 else np.zeros((n_classes, len(G)))])
    for step, i, c in presented(order, weight, "perceptron"):
        alpha, s = run.last.copy(), dot(run.last, G[i])
        if n_classes == 2 and is_mistake(y[i], float(s), tie):
            alpha[i] += c * y[i]
            run.mistakes.append(Mistake(step, i, int(y[i] > 0), int(y[i] < 0), c, float(s)))
        elif n_classes > 2 and (r := rival(y[i], s, tie)) != y[i]:
            alpha[y[i], i] += c
            alpha[r, i] -= c
            run.mistakes.append(Mistake(step, i, int(y[i]), r, c, float(s[y[i]] - s[r])))
        run.weights.append(alpha if run.mistakes and run.mistakes[-1].step == step else run.last)
    return run
