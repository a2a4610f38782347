"""Iterative parameter mixing beside MLlib and dask_ml, and what a pass costs beyond the kernels.

    python -m benchmarks.cluster [rows] [spark] [dask] [overhead]

The data: rows of about 30 of 100,000 features, all 1, drawn as words are (a few are everywhere, most are rare), labels by
hidden weights with noise; sixteen shards of svmlight text, two more held out. Everybody reads the same files.

spark     on one session, local[2]: MLlib's LinearSVC (its defaults, data cached first, that time told apart), then ours to
          the first pass whose held-out accuracy is MLlib's or better; wall seconds from the files on
dask      on one LocalCluster of two processes, which have made a small fit of each kind before: dask_ml's
          Incremental(SGDClassifier) on blocks of CSR rows, 1, 5 and 25 passes (so many times its quickest pass); ours on the
          same blocks to its accuracy, the best of five
overhead  processor seconds of a pass, all processes together, beside the kernels' own, by shards and by d; bytes a pass
A peer that is not installed is a row that says so.
"""

import contextlib
import io
import sys
import tempfile
import time
import warnings
from operator import itemgetter
from pathlib import Path

import numpy as np
import psutil
import scipy.sparse as sp

from benchmarks.harness import Quality, Row
from benchmarks.timing import Times

D, WORDS, SHARDS, HELD, PASSES = 100_000, 30, 16, 2, 5
MANY, REPEATS = 25, 5
RULE = {"rule": "arow", "random_state": 0}


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
    """Return the seconds to the goal, the pass, and the accuracies."""
    from separatrix import Perceptron
    from separatrix.cluster import fit

    clock = Clock()
    held_out = test if y_test is None else (test, y_test)
    learner = Perceptron(max_iter=passes, **RULE)
    fit(learner, train, y, engine=engine, held_out=held_out, working=clock.working)
    reached = [k for k, score in enumerate(learner.validation_scores_, 1) if score >= goal]
    return (clock.after(reached[0]) if reached else np.inf), (reached or [0])[0], learner.validation_scores_, clock


def told(what, seconds, reading, used, accuracy):
    print(f"| {what} | {seconds:.1f} | {reading:.1f} | {used:.1f} | {accuracy:.4f} |", flush=True)


def beside_mllib(train, test):
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
    told(f"MLlib LinearSVC, {n:,} rows", whole, read, used, accuracy)
    seconds, number, scores, clock = ours(f"{train}/*", f"{test}/*", session, accuracy, PASSES)
    mine = clock.used[f"pass {number}"]
    told(f"ours to that accuracy, pass {number}", seconds, clock.at["reading"], mine, scores[number - 1])
    told(f"ours, {PASSES} passes", clock.after(PASSES), clock.at["reading"], clock.used[f"pass {PASSES}"], scores[-1])
    alone = (whole - read) / (seconds - clock.at["reading"])
    print(f"times shorter: {whole / seconds:.1f}; without reading {alone:.1f}; in processor time {used / mine:.1f}")
    session.stop()
    return Row(
        f"{n:,} rows of text to MLlib's accuracy, on one Spark session",
        ours=f"pass {number}",
        peer="MLlib LinearSVC",
        our_times=Times([seconds], [mine]),
        their_times=Times([whole], [used]),
        floor=3,
        quality=Quality.compared("held-out accuracy", scores[number - 1], accuracy),
        note=f"in processor time {used / mine:.1f}",
    )


def beside_dask_ml(rows):
    import dask
    import dask.array as da
    from dask_ml.wrappers import Incremental
    from distributed import Client, LocalCluster, wait
    from sklearn.linear_model import SGDClassifier

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
        for number in range(1, MANY + 1):
            began, before = time.perf_counter(), processor()
            (peer.fit if number == 1 else peer.partial_fit)(X, y, classes=[0, 1])
            passes.append((time.perf_counter() - began, processor() - before))
            if number in (1, PASSES, MANY):
                judged[number] = peer.estimator_.score(X_held, y_held)
        for number, accuracy in judged.items():
            theirs, used = number * min(passes)[0], number * min(passes)[1]
            told(f"dask_ml Incremental(SGDClassifier), {number} passes", theirs, 0.0, used, accuracy)
            tries = [ours(X, X_test, client, accuracy, 3, y, y_test) for _ in range(REPEATS)]
            seconds, reached, scores, clock = min(tries, key=itemgetter(0))
            mine = clock.used[f"pass {reached}"]
            told(f"ours to that accuracy, pass {reached}", seconds, clock.at["reading"], mine, scores[reached - 1])
            alone = theirs / number / (clock.after(3) - clock.after(2))
            print(f"times shorter: {theirs / seconds:.1f}; a pass by itself {alone:.1f}", end="; ")
            print(f"in processor time {used / mine:.1f}", flush=True)
            yield Row(
                f"{rows:,} rows in memory to the accuracy of {number} of its passes, on one Dask cluster",
                ours=f"pass {reached}",
                peer="dask_ml Incremental(SGDClassifier)",
                our_times=Times([seconds], [mine]),
                their_times=Times([theirs], [used]),
                floor=5,
                quality=Quality.compared("held-out accuracy", scores[reached - 1], accuracy),
                note=f"in processor time {used / mine:.1f}; a pass by itself {alone:.1f}",
            )


SMALL = ((0, (500, D), float), (1, (500,), int))


def overhead():
    """Print what a pass costs beyond the kernels, by engine, shards and d."""
    from distributed import Client, LocalCluster

    from separatrix import Perceptron
    from separatrix.cluster import fit
    from separatrix.cluster.dask import Dask
    from separatrix.cluster.local import Local

    passes, n = 5, 64_000
    print("| d | shards | features of a shard | kernels | local:2 | Dask | bytes down | bytes up |")
    print("|---|---|---|---|---|---|---|---|")
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
                told = f"{len(np.unique(X[::shards].indices)):,} | {kernels:.3f} | " + " | ".join(f"{t:.3f}" for t in times)
                print(f"| {d:,} | {shards} | {told} | {sizes[0]:,.0f} | {sizes[1]:,.0f} |", flush=True)


def rows(quick=False):
    size = 1 << 15 if quick else 1 << 20
    with warnings.catch_warnings(), contextlib.redirect_stdout(io.StringIO()), tempfile.TemporaryDirectory() as folder:
        warnings.simplefilter("ignore")
        found = []
        try:
            found.append(beside_mllib(*write(Path(folder), size)))
        except ImportError as missing:
            found.append(Row.missing("text to MLlib's accuracy", "MLlib LinearSVC", str(missing)))
        try:
            found += beside_dask_ml(size)
        except ImportError as missing:
            found.append(Row.missing("rows to its accuracy", "dask_ml Incremental(SGDClassifier)", str(missing)))
    yield from found


def main():
    rows = int(sys.argv[1]) if len(sys.argv) > 1 else 1 << 20
    wanted = sys.argv[2:] or ["spark", "dask", "overhead"]
    warnings.simplefilter("ignore")
    if "spark" in wanted:
        with tempfile.TemporaryDirectory() as folder:
            train, test = write(Path(folder), rows)
            print(HEAD, flush=True)
            try:
                beside_mllib(train, test)
            except ImportError as missing:
                print(f"| MLlib | not installed: {missing} | | | |")
    if "dask" in wanted:
        print(HEAD, flush=True)
        try:
            list(beside_dask_ml(rows))
        except ImportError as missing:
            print(f"| dask_ml | not installed: {missing} | | | |")
    if "overhead" in wanted:
        overhead()


if __name__ == "__main__":
    main()
