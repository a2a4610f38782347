"""Iterative parameter mixing beside MLlib and dask_ml, and what a pass costs beyond the kernels.

    python -m benchmarks.cluster [spark] [dask] [quality] [overhead] [--rows N] [--write]

The data: rows of about 30 of 100,000 features, all 1, drawn as words are (a few are everywhere, most are rare), labels by
hidden weights with noise; sixteen shards of svmlight text, two more held out. Everybody reads the same files.

spark     on one session, local[2]: MLlib's LinearSVC (its defaults, data cached first, that time told apart), then ours to
          the first pass whose held-out accuracy is MLlib's or better; wall seconds from the files on
dask      on one LocalCluster of two processes, which have made a small fit of each kind before: dask_ml's
          Incremental(SGDClassifier) on blocks of CSR rows, 1, 5 and 25 passes (so many times its quickest pass); ours on the
          same blocks to its accuracy, the best of five
quality   test accuracy of eight shards and of thirty-two beside one machine, by how they are mixed
overhead  processor seconds of a pass, all processes together, beside the kernels' own, by shards and by d; bytes a pass
With --write the tables go into docs/scaling.md. A peer that is not installed is a row that says so.
"""

import argparse
import tempfile
import time
import warnings
from operator import itemgetter
from pathlib import Path

import numpy as np
import psutil
import scipy.sparse as sp

from benchmarks.end_to_end import start_of_numba
from benchmarks.harness import Quality, Row
from benchmarks.pages import put
from benchmarks.timing import Times, in_turns

D, WORDS, SHARDS, HELD, PASSES = 100_000, 30, 16, 2, 5
MANY, REPEATS = 25, 5
RULE = {"rule": "arow", "random_state": 0}
MIXED = ("uniform", "features")
SPAM = "sms_spam"
SMALL = ((0, (500, D), float), (1, (500,), int))


def rows_of(n, seed, d=D):
    """Return n rows, their features drawn with probability ~ 1/rank, and the labels."""
    rng = np.random.default_rng(seed)
    hidden = np.random.default_rng(99).normal(size=d)
    features = np.minimum((d ** rng.random((n, WORDS))).astype(np.int64), d - 1).astype(np.int32)
    X = sp.csr_matrix((np.ones(n * WORDS), features.reshape(-1), np.arange(0, n * WORDS + 1, WORDS)), shape=(n, d))
    X.sum_duplicates()
    X.data[:] = 1.0
    y = (X @ hidden + 2.0 * rng.normal(size=n) > 0).astype(np.int64)
    return X, y


def write(folder, rows):
    """Write the shards; return the folders of training and of held-out ones."""
    tokens = np.array([f"{j + 1}:1" for j in range(D)], dtype=object)
    for name, shards in (("train", SHARDS), ("test", HELD)):
        (folder / name).mkdir()
        for s in range(shards):
            X, y = rows_of(rows // SHARDS, [len(name), s])
            words = tokens[X.indices]
            with open(folder / name / f"part-{s:02}.svm", "w") as file:
                for i in range(X.shape[0]):
                    file.write(f"{y[i]} {' '.join(words[X.indptr[i] : X.indptr[i + 1]])}\n")
    return folder / "train", folder / "test"


HEAD = "| | seconds | of it reading | processor seconds | held-out accuracy |\n|---|---|---|---|---|"


def processor():
    """Return the processor seconds of this process and of all that it started: what a busy machine does not change."""
    own = psutil.Process()
    return sum(sum(one.cpu_times()[:2]) for one in [own, *own.children(recursive=True)])


class Clock:
    """When each pass was over, counted from the beginning."""

    def __init__(self):
        self.began, self.at, self.used = time.perf_counter(), {}, {}
        self.before = processor()

    def working(self, doing, done, total):
        self.at[doing] = time.perf_counter() - self.began
        if done == total:
            self.used[doing] = processor() - self.before

    def after(self, number):
        """Return the seconds until pass `number`, from 1, was over."""
        return self.at[f"pass {number}"]


def ours(train, test, engine, goal, passes=10, y=None, y_test=None):
    """Return the seconds to the goal, the pass (the last one where it is not reached), and the accuracies."""
    from separatrix import Perceptron
    from separatrix.cluster import fit

    clock = Clock()
    held_out = test if y_test is None else (test, y_test)
    learner = Perceptron(max_iter=passes, **RULE)
    fit(learner, train, y, engine=engine, held_out=held_out, working=clock.working)
    scores = learner.validation_scores_
    reached = next((k for k, score in enumerate(scores, 1) if score >= goal), len(scores))
    return clock.after(reached), reached, scores, clock


class Page(list):
    """Lines of a table, printed as they come where somebody reads them."""

    def __init__(self, read=False):
        super().__init__()
        self.read = read

    def add(self, line):
        self.append(line)
        if self.read:
            print(line, flush=True)

    def told(self, what, seconds, reading, used, accuracy):
        self.add(f"| {what} | {seconds:.1f} | {reading:.1f} | {used:.1f} | {accuracy:.4f} |")


def least_seconds(engine, numbers, held_out, passes, computed):
    """The limit of a training: rounds of as many tasks that do nothing, and what one process computed, on two cores."""
    rounds = (lambda: engine.reduce(callable, [*numbers, *held_out]), lambda: engine.reduce(callable, held_out))
    rounds += (lambda: engine.reduce(callable, numbers),)
    (reading, judging, passing), _ = in_turns(*rounds, repeats=3, warm_up=1)
    return reading.best + passes * judging.best + (passes - 1) * passing.best + computed / 2


def beside_mllib(train, test, page):
    from pyspark.ml.classification import LinearSVC
    from pyspark.sql import SparkSession

    maker = SparkSession.builder.master("local[2]").config("spark.driver.memory", "6g").config("spark.ui.enabled", "false")
    session = maker.config("spark.ui.showConsoleProgress", "false").getOrCreate()
    session.sparkContext.setLogLevel("ERROR")
    began, before = time.perf_counter(), processor()
    data, held = (session.read.format("libsvm").option("numFeatures", D).load(str(f)).cache() for f in (train, test))
    n = data.count()
    read = time.perf_counter() - began
    model = LinearSVC().fit(data)
    whole, used = time.perf_counter() - began, processor() - before
    accuracy = model.transform(held).filter("prediction = label").count() / held.count()
    data.unpersist()
    page.add(HEAD)
    page.told(f"MLlib LinearSVC, {n:,} rows", whole, read, used, accuracy)
    seconds, number, scores, clock = ours(f"{train}/*", f"{test}/*", session, accuracy, PASSES)
    mine = clock.used[f"pass {number}"]
    page.told(f"ours to that accuracy, pass {number}", seconds, clock.at["reading"], mine, scores[number - 1])
    page.told(f"ours, {PASSES} passes", clock.after(PASSES), clock.at["reading"], clock.used[f"pass {PASSES}"], scores[-1])
    alone = (whole - read) / (seconds - clock.at["reading"])
    page.add(f"\n{whole / seconds:.1f} times shorter; {alone:.1f} without the reading; {used / mine:.1f} in processor time.")
    from separatrix.cluster.engines import Engine
    from separatrix.cluster.spark import Spark

    engine = Spark(session)
    shards = [engine.add_shards(f"{folder}/*") for folder in (train, test)]
    computed = ours(f"{train}/*", f"{test}/*", Engine(), accuracy, number)[3].used[f"pass {number}"]
    limit = start_of_numba(train.parent, 3) + least_seconds(engine, *shards, number, computed)
    note = (
        f"; at the limit {whole / limit:.1f}: a start of Numba, tasks that do nothing, and one process's work on two cores"
    )
    session.stop()
    what = f"{n:,} rows of text to MLlib's accuracy, on one Spark session"
    accuracies = scores[number - 1], accuracy
    return raced(what, "MLlib LinearSVC", 6, (seconds, mine), (whole, used), number, accuracies, note)


def raced(what, peer, floor, mine, theirs, number, accuracies, note=""):
    """The row of two (wall, processor) seconds and two accuracies; ours has its own after pass `number`."""
    times = (Times([wall], [used]) for wall, used in (mine, theirs))
    said = f"in processor time {theirs[1] / mine[1]:.1f}{note}"
    return Row(what, f"pass {number}", peer, *times, floor, Quality.compared("held-out accuracy", *accuracies), note=said)


def beside_dask_ml(rows, page, marks=(1, PASSES, MANY), repeats=REPEATS):
    import dask
    import dask.array as da
    from dask_ml.wrappers import Incremental
    from distributed import Client, LocalCluster, wait
    from sklearn.linear_model import SGDClassifier

    from separatrix.cluster.dask import Dask
    from separatrix.cluster.engines import Engine

    with LocalCluster(2, threads_per_worker=1, dashboard_address=":0") as cluster, Client(cluster) as client:
        n, empty = rows // SHARDS, sp.csr_matrix((0, 0))
        pairs = client.persist([dask.delayed(rows_of)(n, [5, s]) for s in range(SHARDS + HELD)])
        blocks = [(da.from_delayed(p[0], (n, D), float, empty), da.from_delayed(p[1], (n,), int)) for p in pairs]
        X, y = (da.concatenate([b[k] for b in blocks[:SHARDS]]).persist() for k in (0, 1))
        X_test, y_test = (da.concatenate([b[k] for b in blocks[SHARDS:]]).persist() for k in (0, 1))
        wait([X, y, X_test, y_test])
        few = [da.from_delayed(dask.delayed(rows_of)(500, [6])[k], shape, kind) for k, shape, kind in SMALL]
        peer = Incremental(SGDClassifier(loss="hinge", random_state=0))
        peer.fit(*few, classes=[0, 1])
        ours(few[0], few[0], client, 0.0, 1, few[1], few[1])
        X_held, y_held = (client.compute(part).result() for part in (X_test, y_test))
        passes, judged = [], {}
        for number in range(1, max(marks) + 1):
            began, before = time.perf_counter(), processor()
            (peer.fit if number == 1 else peer.partial_fit)(X, y, classes=[0, 1])
            passes.append((time.perf_counter() - began, processor() - before))
            if number in marks:
                judged[number] = peer.estimator_.score(X_held, y_held)
        pieces = [rows_of(n, [5, s]) for s in range(SHARDS + HELD)]
        computed = ours(pieces[:SHARDS], pieces[SHARDS:], Engine(), 0.0, 1)[3].used["pass 1"]
        engine = Dask(client)
        limit = least_seconds(engine, *(engine.add_shards(*data) for data in ((X, y), (X_test, y_test))), 1, computed)
        page.add("| | seconds | processor seconds | held-out accuracy | ours to that accuracy | processor seconds |")
        page.add("|---|---|---|---|---|---|")
        for number, accuracy in judged.items():
            theirs, used = number * min(passes)[0], number * min(passes)[1]
            tries = [ours(X, X_test, client, accuracy, 3, y, y_test) for _ in range(repeats)]
            seconds, reached, scores, clock = min(tries, key=itemgetter(0))
            mine = clock.used[f"pass {reached}"]
            alone = theirs / number / (clock.after(3) - clock.after(2))
            name = "`dask_ml` `Incremental(SGDClassifier)`, 1 pass" if number == 1 else f"{number} passes"
            how = f"{seconds:.2f} s ({theirs / seconds:.1f}×), pass {reached}, {scores[reached - 1]:.4f}"
            page.add(f"| {name} | {theirs:.1f} | {used:.1f} | {accuracy:.4f} | {how} | {mine:.1f} |")
            what = f"{rows:,} rows in memory to the accuracy of {number} of its passes, on one Dask cluster"
            found = scores[reached - 1], accuracy
            note = f"; a pass by itself {alone:.1f}"
            if reached == 1:
                note += f"; at the limit {theirs / limit:.1f}: empty tasks, and one process's work on two cores"
            floor = 1.5 if number == 1 else 5
            yield raced(
                *(what, "dask_ml Incremental(SGDClassifier)", floor, (seconds, mine), (theirs, used), reached, found, note)
            )


def texts_of(name, seed):
    """Features by our own defaults, words and pairs of words, hashed: of 20 newsgroups, or of a split of sms_spam."""
    from benchmarks.datasets import news_texts, spam_texts
    from separatrix import TextFeatures

    if name == SPAM:
        labels, messages = spam_texts()
        order = np.random.default_rng(seed).permutation(len(labels))
        parts = [(labels[some], [messages[i] for i in some]) for some in (order[1115:], order[:1115])]
    else:
        parts = news_texts()
    (y, texts), (y_test, unseen) = parts
    features = TextFeatures().fit(texts)
    return features.transform(texts), y, features.transform(unseen), y_test


def quality(page, sizes=(8, 32), data=("a9a", "sms_spam", "20 newsgroups, words", "20 newsgroups"), seeds=5):
    """Test accuracy of shards beside one machine: averaged PA-I, averaged from the first pass and from the second half."""
    from benchmarks.datasets import a9a, newsgroups
    from separatrix import AveragedPerceptron
    from separatrix.cluster import fit

    page.add(
        "| data | passes, averaged from | one machine | " + " | ".join(f"{S}, {m}" for S in sizes for m in MIXED) + " |"
    )
    page.add("|---" * (3 + len(MIXED) * len(sizes)) + "|")
    plain = {"a9a": a9a, "20 newsgroups, words": newsgroups}
    for name in data:
        sets = [plain[name]()] if name in plain else [texts_of(name, k) for k in range(seeds if name == SPAM else 1)]
        for passes, since in ((10, 1), (10, 6)) if name == "20 newsgroups" else ((10, 1), (10, 6), (20, 11)):
            settings = {"rule": "pa1", "max_iter": passes, "random_state": 0, "average_from": since}
            found = {}
            for X, y, X_test, y_test in sets:
                order = np.random.default_rng(0).permutation(len(y))  # files are sorted by class
                learner = AveragedPerceptron(**settings).fit(X[order], y[order])
                found.setdefault("one", []).append(learner.score(X_test, y_test))
                for S in sizes:
                    shards = [(X[order[s::S]], y[order[s::S]]) for s in range(S)]
                    for mix in MIXED:
                        fit(learner, shards, mix=mix)
                        found.setdefault((S, mix), []).append(learner.score(X_test, y_test))
            found = {key: np.mean(scores) for key, scores in found.items()}
            told = " | ".join(f"{score:.4f}" for score in found.values())
            page.add(f"| {name} | {passes}, {since} | {told} |")
            if (passes, since) == (10, 6):
                mine, one = found[8, "features"], found["one"]
                said = f"test accuracy {mine:.4f} beside {one:.4f}, averaged PA-I from pass {since} of {passes}"
                yield Row(
                    f"{name}: eight shards above one machine", value=100 * (mine - one), unit="points", floor=-0.3, note=said
                )


def overhead(page):
    """Tell what a pass costs beyond the kernels, by engine, shards and d."""
    from distributed import Client, LocalCluster

    from separatrix import Perceptron
    from separatrix.cluster import fit
    from separatrix.cluster.dask import Dask
    from separatrix.cluster.local import Local

    passes, n = 5, 64_000
    page.add("| d | shards | features of a shard | kernels | local:2 | Dask | Dask by the model | bytes down | bytes up |")
    page.add("|---|---|---|---|---|---|---|---|---|")
    found = []
    with LocalCluster(2, threads_per_worker=1, dashboard_address=":0") as cluster, Client(cluster) as client:
        for d in (10_000, 100_000, 1_000_000, 10_000_000):
            X, y = rows_of(n, 1, d)
            learner = Perceptron(max_iter=passes, random_state=0).fit(X, y)
            began = time.process_time()
            learner.fit(X, y)
            kernels = (time.process_time() - began) / passes
            for shards in (2, 8, 32):
                times, sizes = [], (0.0, 0.0)
                with tempfile.TemporaryDirectory() as folder:
                    for s in range(shards):
                        part = X[s::shards]
                        parts = {"data": part.data, "indices": part.indices, "indptr": part.indptr, "shape": part.shape}
                        np.savez(Path(folder) / f"{s:02}.npz", format=b"csr", y=y[s::shards], **parts)
                    for engine in (Local(2), Dask(client)):
                        clock = Clock()
                        learner = Perceptron(max_iter=passes, random_state=0)
                        fit(learner, f"{folder}/*.npz", engine=engine, working=clock.working)
                        times.append((clock.used[f"pass {passes}"] - clock.used["pass 1"]) / (passes - 1))
                        sizes = engine.sent / passes, engine.received / passes
                        engine.close()
                found.append((d, shards, len(np.unique(X[::shards].indices)), kernels, *times, *sizes))
                print(f"d = {d:,}, {shards} shards", flush=True)
    S, f, kernels, processes, tasks = (np.array([row[k] for row in found]) for k in (1, 2, 3, 4, 5))
    (fixed, each, by_feature), error = modelled(tasks - kernels, S, f)
    for row, guess in zip(found, fixed + each * S + by_feature * S * f + kernels, strict=True):
        d, shards, features, *times, down, up = row
        told = " | ".join(f"{t:.3f}" for t in (*times, guess))
        page.add(f"| {d:,} | {shards} | {features:,} | {told} | {down:,.0f} | {up:,.0f} |")
    said = "{:.0f} ms + S·({:.1f} ms + {:.2f} µs·f) of processor beyond the kernels, within {:.0f} %."
    page.add("\nFitted to Dask's rows: " + said.format(1e3 * fixed, 1e3 * each, 1e6 * by_feature, 100 * error))
    other, error = modelled(processes - kernels, S, f)
    page.add("To the processes': " + said.format(1e3 * other[0], 1e3 * other[1], 1e6 * other[2], 100 * error))
    carried(page, fixed, each, by_feature)


def carried(page, fixed, each, by_feature):
    """What the model says of clusters that are not here: 10⁹ rows, a shard a worker, 10 Gbit/s, 5 ms of latency."""
    n, kernel, speed, latency, task = 10**9, 0.27e-6, 1.25e9, 5e-3, 1e-3
    page.add("\n| W = S | d | f | kernels | shards | driver | down | up | a pass | of the ideal |")
    page.add("|---" * 10 + "|")
    for d in (10**6, 10**7):
        chance = 1 / np.arange(1, d + 1) / np.log(d)
        for W in (10, 100, 300, 1000):
            f = -np.expm1(-WORDS * n / W * chance).sum()
            part = 8 * d if 3 * f >= d else 12 * f
            levels = int(np.ceil(np.log(W) / np.log(8)))
            parts = n * kernel / W, each + by_feature * f, fixed + task * W * 8 / 7
            way = int(np.ceil(np.log2(W))) * 8 * d / speed, levels * (latency + 8 * part / speed)
            whole = sum(parts) + sum(way)
            told = " | ".join(f"{t:.2f} s" for t in (*parts, *way, whole))
            page.add(f"| {W:,} | {d:,} | {f:,.0f} | {told} | {100 * parts[0] / whole:.0f} % |")


def modelled(seconds, S, f):
    """Fit fixed + S·(each + by_feature·f), none of them negative; return them and the largest relative error."""
    from scipy.optimize import nnls

    terms = np.column_stack([np.ones(len(S)), S, S * f]) / seconds[:, None]
    found, _ = nnls(terms, np.ones(len(S)))
    return found, np.abs(terms @ found - 1).max()


def rows(quick=False):
    size, few = (1 << 15, ((1, PASSES), 1)) if quick else (1 << 20, ())
    warnings.simplefilter("ignore")
    yield from quality(Page(), (8,), ("a9a",) if quick else ("a9a", SPAM, "20 newsgroups, words"))
    if quick:
        yield Row.missing("text to MLlib's accuracy", "MLlib LinearSVC", "left out of a quick run: it takes half a minute")
    else:
        try:
            with tempfile.TemporaryDirectory() as folder:
                yield beside_mllib(*write(Path(folder), size), Page())
        except ImportError as missing:
            yield Row.missing("text to MLlib's accuracy", "MLlib LinearSVC", str(missing))
    try:
        yield from beside_dask_ml(size, Page(), *few)
    except ImportError as missing:
        yield Row.missing("rows to its accuracy", "dask_ml Incremental(SGDClassifier)", str(missing))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("parts", nargs="*", help="spark, dask, quality, overhead; all if none is named")
    parser.add_argument("--rows", type=int, default=1 << 20)
    parser.add_argument("--write", action="store_true", help="write the tables into docs/scaling.md")
    chosen = parser.parse_args()
    warnings.simplefilter("ignore")
    for part in chosen.parts or ("quality", "spark", "dask", "overhead"):
        page = Page(read=True)
        try:
            if part == "spark":
                with tempfile.TemporaryDirectory() as folder:
                    beside_mllib(*write(Path(folder), chosen.rows), page)
            elif part == "dask":
                list(beside_dask_ml(chosen.rows, page))
            else:
                list({"quality": quality, "overhead": overhead}[part](page) or ())
        except ImportError as missing:
            page.add(f"not installed: {missing}")
        if chosen.write:
            put("docs/scaling.md", f"benchmarks.cluster {part}", "\n".join(page))


if __name__ == "__main__":
    main()
