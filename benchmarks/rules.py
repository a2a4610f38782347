"""The update rules against published figures and peers: `python -m benchmarks.rules` from the project's root.

Prints Markdown, which `--write` also puts into docs/rules.md. Times are those of whole fits, best of several,
measured alternately in this run, each in one thread.
"""

import argparse
import os
import warnings
from pathlib import Path

import numpy as np
from sklearn.linear_model import LogisticRegression
from sklearn.svm import LinearSVC

from benchmarks import datasets
from benchmarks.timing import best
from separatrix import AveragedPerceptron, Perceptron
from separatrix.engine.rules import RULES
from separatrix.learners import auto_c

warnings.filterwarnings("ignore", message="Maximum number of iteration")
ORDERS = 20
SEEDS = 5
TEXT_C = 0.2
PUBLISHED = {"perceptron": 0.332, "pa": 0.318, "pa1": 0.236, "arow-full": 0.222}
POWERS = range(-10, 5)


class Page:
    """What is printed, kept for the documentation."""

    def __init__(self):
        self.lines = []

    def say(self, line=""):
        print(line, flush=True)
        self.lines.append(line)

    def table(self, *columns):
        self.say()
        self.row(*columns)
        self.row(*["---"] * len(columns))

    def row(self, *cells):
        self.say("| " + " | ".join(str(cell) for cell in cells) + " |")


def online_rate(X, y, rule, C):
    rates, updates = [], []
    for seed in range(ORDERS):
        model = Perceptron(rule=rule, C=C, fit_intercept=False, max_iter=1, order="permutation", random_state=seed).fit(X, y)
        rates.append(model.n_errors_ / len(y))
        updates.append(model.n_mistakes_)
    return np.mean(rates), np.std(rates), np.mean(updates)


def over_the_grid(X, y, rule):
    """The rates of a rule for each C of the grid (one, for a rule without a C), and which is the least."""
    grid = [2.0**k for k in POWERS] if RULES[rule].has_C else [1.0]
    curve = [online_rate(X, y, rule, C) for C in grid]
    return curve, int(np.argmin([rate for rate, _, _ in curve]))


def svmguide3(page):
    X, y = datasets.svmguide3()
    page.say("## Online mistake rates on svmguide3")
    page.say()
    page.say(f"One pass, no bias, raw features, mean and deviation over {ORDERS} random orders.")
    page.say("C is the best of the grid 2⁻¹⁰ … 2⁴.")
    page.say("Published: LIBOL's manual, table 3, whose AROW keeps the whole matrix.")
    page.table("rule", "C", "mistake rate", "published", "difference", "updates")
    curves = {}
    for rule in ("perceptron", "pa", "pa1", "pa2", "arow", "arow-full"):
        curves[rule], least = over_the_grid(X, y, rule)
        rate, spread, updates = curves[rule][least]
        known = PUBLISHED.get(rule, PUBLISHED["arow-full"] if rule == "arow" else None)
        C = f"2^{POWERS[least]}" if len(curves[rule]) > 1 else ""
        difference = f"{rate - known:+.3f}" if known else ""
        page.row(rule, C, f"{rate:.3f} ± {spread:.3f}", known or "", difference, f"{updates:.1f}")
    page.say()
    page.say("The curve over C:")
    page.table("C", *(f"2^{k}" for k in POWERS))
    for rule in ("pa1", "pa2", "arow", "arow-full"):
        page.row(rule, *(f"{rate:.3f}" for rate, _, _ in curves[rule]))
    page.say()


def side_by_side(page, name, data, peers, ours, repeats):
    """Print accuracy and fit time of peers and of ours; ours are functions of a seed, of which accuracies are means."""
    X, y, X_test, y_test = data
    fits = [lambda model=model: model.fit(X, y) for model in peers.values()]
    fits += [lambda make=make: make(0).fit(X, y) for make in ours.values()]
    times = dict(zip([*peers, *ours], best(*fits, repeats=repeats), strict=True))
    fastest = min(times[peer] for peer in peers)
    for peer, model in peers.items():
        page.row(name, peer, f"{model.score(X_test, y_test):.4f}", f"{times[peer]:.4f}", f"{fastest / times[peer]:.1f}")
    for kind, make in ours.items():
        scores = [make(seed).fit(X, y).score(X_test, y_test) for seed in range(SEEDS)]
        shown = f"{np.mean(scores):.4f} ({min(scores):.4f}–{max(scores):.4f})"
        page.row(name, kind, shown, f"{times[kind]:.4f}", f"{fastest / times[kind]:.1f}")


def averaged(passes, **settings):
    return lambda seed: AveragedPerceptron(max_iter=passes, random_state=seed, **settings)


def text(page, repeats):
    page.say("## Text with many classes")
    page.say()
    page.say("Sublinear tf-idf words, normalised; ours learn the classes jointly, ten passes, no bias.")
    page.say(f"Accuracies of ours are means of {SEEDS} seeds (least–most).")
    page.say("The last column is the time of the fastest peer over the row's.")
    page.table("data", "learner", "test accuracy", "fit, s", "times faster")
    for name, data in (("20newsgroups", datasets.newsgroups()), ("sector", datasets.sector())):
        peers = {"LinearSVC": LinearSVC()}
        ours = {
            f"averaged PA-I, C = {TEXT_C}": averaged(10, rule="pa1", C=TEXT_C, fit_intercept=False),
            "averaged AROW, C = 1": averaged(10, rule="arow", C=1.0, fit_intercept=False),
            "averaged AROW, C = 1, five passes": averaged(5, rule="arow", C=1.0, fit_intercept=False),
            "averaged perceptron": averaged(10, fit_intercept=False),
        }
        side_by_side(page, name, data, peers, ours, repeats)
    page.say()


def a9a(page, repeats):
    page.say("## Two classes, sparse: a9a")
    page.say()
    page.say(f"Five passes; mean of {SEEDS} seeds (least–most).")
    page.table("data", "learner", "test accuracy", "fit, s", "times faster")
    peers = {"LinearSVC": LinearSVC(), "LogisticRegression": LogisticRegression()}
    ours = {
        "averaged perceptron": averaged(5),
        "averaged PA-I, C = 0.01": averaged(5, rule="pa1", C=0.01),
        "averaged AROW, C = 0.1": averaged(5, rule="arow", C=0.1),
    }
    side_by_side(page, "a9a", datasets.a9a(), peers, ours, 3 * repeats)
    page.say()


def auto(page, repeats):
    page.say('## What C="auto" costs, and what it finds')
    page.say()
    page.say("Averaged, ten passes; the price is the fit time over that of one fit with the chosen C.")
    page.say(f"{len(auto_c.POWERS)} C's are tried.")
    page.say("The best C is that of the grid with the highest test accuracy: an oracle's choice.")
    page.table("data", "rule", "price", "chosen C", "test accuracy", "best C", "its accuracy", "default C = 1")
    X, y = datasets.svmguide3()
    rng = np.random.default_rng(0)
    order = rng.permutation(len(y))
    guide = (X[order[:900]], y[order[:900]], X[order[900:]], y[order[900:]])
    dense = rng.normal(size=(100_000, 64)).astype(np.float32)
    label = (dense @ rng.normal(size=64) + 3 * rng.normal(size=len(dense)) > 0).astype(int)
    sets = {
        "a9a": datasets.a9a(),
        "20newsgroups": datasets.newsgroups(),
        "sector": datasets.sector(),
        "sms_spam": datasets.sms_spam(0),
        "svmguide3": guide,
        "dense, 80,000 × 64": (dense[:80_000], label[:80_000], dense[80_000:], label[80_000:]),
    }
    for name, (X, y, X_test, y_test) in sets.items():
        for rule in ("pa1", "arow"):
            common = {"rule": rule, "max_iter": 10, "random_state": 0}
            model = AveragedPerceptron(C="auto", **common).fit(X, y)
            fits = [lambda C=C: AveragedPerceptron(C=C, **common).fit(X, y) for C in ("auto", model.C_)]  # noqa: B023
            whole, single = best(*fits, repeats=repeats)
            scores = {C: AveragedPerceptron(C=C, **common).fit(X, y).score(X_test, y_test) for C in model.C_scores_}
            top = max(scores, key=scores.__getitem__)
            default = AveragedPerceptron(**common).fit(X, y).score(X_test, y_test)
            shown = (f"{model.C_:.4g}", f"{scores[model.C_]:.4f}", f"{top:.4g}", f"{scores[top]:.4f}", f"{default:.4f}")
            page.row(name, rule, f"{whole / single:.1f}", *shown)
    page.say()


def main():
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    parser = argparse.ArgumentParser(description=__doc__)
    suites = {
        "svmguide3": lambda page, _: svmguide3(page),
        "text": text,
        "a9a": a9a,
        "auto": auto,
    }
    parser.add_argument("suite", nargs="*", choices=[*suites, []], help="which tables (all of them by default)")
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--write", action="store_true", help="write docs/rules.md")
    chosen = parser.parse_args()
    page = Page()
    page.say("# The rules, measured")
    page.say()
    page.say("Written by `python -m benchmarks.rules --write`; two cores, one thread for each fit.")
    page.say()
    for name in chosen.suite or suites:
        suites[name](page, chosen.repeats)
    if chosen.write:
        Path("docs/rules.md").write_text("\n".join(page.lines).rstrip() + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
