"""Work that kills its worker, and data in shards: what the tests of the engines share."""

import gzip
import os
import signal
from pathlib import Path

import numpy as np

from separatrix import TextFeatures, load_svmlight
from separatrix.cluster.tagging.work import MakeTaggerPass
from separatrix.cluster.work import MakePass, SummarizeShard


class KillsWorkers:
    """The same work, but the first `times` shards that are read or passed over are lost with their workers, once each."""

    def __init__(self, work, folder, times):
        self.work, self.folder, self.times = work, str(folder), times

    def __call__(self, shard):
        died = Path(self.folder)
        here = died / f"{type(self.work).__name__}-{getattr(self.work, 'number', 0)}-{shard.number}"
        if not here.exists() and len(list(died.iterdir())) < self.times:
            here.touch()
            self.work(shard)
            os.kill(os.getpid(), signal.SIGKILL)
        return self.work(shard)


class KillsEveryWorker:
    """Work that no worker survives."""

    def __call__(self, shard):
        os.kill(os.getpid(), signal.SIGKILL)


def losing_workers(engine, folder, times):
    """Return the engine, which will lose workers in the middle of passes."""
    plain = engine.reduce
    engine.reduce = lambda work, numbers, report=lambda done: None: plain(
        KillsWorkers(work, folder, times) if isinstance(work, MakePass | SummarizeShard | MakeTaggerPass) else work,
        numbers,
        report,
    )
    return engine


def whole_numbers(folder, shards=8, n=1200, d=20, K=2, seed=0, *, by_class=False):
    """Write examples of whole numbers in shards, dense, not separable; return the pattern of the files.

    With `by_class` they are sorted by class before they are cut into shards.
    """
    rng = np.random.default_rng(seed)
    X = rng.integers(-3, 4, (n, d)).astype(np.float64)
    y = np.argmax(X @ rng.normal(size=(d, K)) + 2.0 * rng.normal(size=(n, K)), axis=1)
    for s in range(shards):
        rows = np.array_split(np.argsort(y, kind="stable"), shards)[s] if by_class else slice(s, None, shards)
        np.savez(folder / f"part-{s:02}.npz", X=X[rows], y=y[rows])
    return str(folder / "part-*.npz")


def same(model, other):
    """Whether two models have the same weights, bit for bit, and made the same mistakes."""
    a, b = model.estimator, other.estimator
    return (
        np.array_equal(a.coef_, b.coef_)
        and np.array_equal(a.intercept_, b.intercept_)
        and np.array_equal(a.shard_mistakes_, b.shard_mistakes_)
    )


def a9a(folder):
    """Return the training and the test examples of a9a."""
    parts = [
        load_svmlight(folder / "libsvm" / f"a9a_zero_based.{name}.bz2", n_features=123, zero_based=True)
        for name in ("trn", "tst")
    ]
    return [array for pair in parts for array in pair]


def newsgroups(folder):
    """Return the training and the test examples of 20newsgroups, the features learned from the former."""
    columns = []
    for name in ("train", "test"):
        with gzip.open(folder / "20newsgroups" / f"20newsgroups-{name}.tab.gz", "rt", encoding="utf-8") as file:
            lines = [line.split("\t", 1) for line in file.read().split("\n")[3:] if line.strip()]
        columns.append(tuple(zip(*lines, strict=True)))
    (y, texts), (y_test, texts_test) = columns
    words = TextFeatures(columns="vocabulary", token_pattern=r"(?u)\b\w\w+\b", ngram_range=(1, 1)).fit(texts)
    return words.transform(texts), np.array(y), words.transform(texts_test), np.array(y_test)
