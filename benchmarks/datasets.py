"""The real data sets, where they are at hand (environment variable SEPARATRIX_DATA, or ../shared/data)."""

import bz2
import gzip
import os
import shlex
import statistics
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.datasets import load_svmlight_file

DATA = Path(os.environ.get("SEPARATRIX_DATA", Path(__file__).parents[2] / "shared" / "data"))


def absent() -> str:
    """Say that the real data are not at hand; nothing where they are."""
    return "" if DATA.is_dir() else f"the real data sets are not at {DATA}: set SEPARATRIX_DATA"


def a9a() -> tuple[Any, ...]:
    parts: list[Any] = []
    for name in ("trn", "tst"):
        with bz2.open(DATA / "libsvm" / f"a9a_zero_based.{name}.bz2") as file:
            X, y = load_svmlight_file(file, n_features=123, zero_based=True)
        parts += [with_narrow_indices(X), y]
    return tuple(parts)


def with_narrow_indices(X: Any) -> Any:
    """Some peers take no other."""
    X.indices, X.indptr = X.indices.astype(np.int32), X.indptr.astype(np.int32)
    return X


def svmguide3() -> tuple[Any, Any]:
    table = np.loadtxt(DATA / "libsvm" / "svmguide3.csv", delimiter=",", skiprows=1)
    return np.ascontiguousarray(table[:, 1:]), table[:, 0]


def sector() -> tuple[Any, ...]:
    parts: list[Any] = []
    for name in ("sector.scale.bz2", "sector.t.scale.bz2"):
        with bz2.open(DATA / "libsvm" / name) as file:
            X, y = load_svmlight_file(file, n_features=55_197)
        parts += [with_narrow_indices(X), y]
    return tuple(parts)


def labelled(path: Path, skip: int = 0) -> tuple[Any, list[str]]:
    """The labels and the texts of a file with a tab between them."""
    with gzip.open(path, "rt", encoding="utf-8") as file:
        lines = [line.split("\t", 1) for line in file.read().split("\n")[skip:] if line.strip()]
    return np.asarray([label for label, _ in lines]), [text for _, text in lines]


def news_texts() -> tuple[Any, ...]:
    return tuple(labelled(DATA / "20newsgroups" / f"20newsgroups-{name}.tab.gz", 3) for name in ("train", "test"))


def spam_texts() -> tuple[Any, list[str]]:
    return labelled(DATA / "sms_spam" / "SMSSpamCollection.gz")


def newsgroups() -> tuple[Any, ...]:
    """Sublinear tf-idf of the words, normalised."""
    from sklearn.feature_extraction.text import TfidfVectorizer

    labels, texts = zip(*news_texts(), strict=True)
    words = TfidfVectorizer(sublinear_tf=True)
    X, X_test = (with_narrow_indices(words.fit_transform(texts[0])), with_narrow_indices(words.transform(texts[1])))
    return X, labels[0], X_test, labels[1]


def auto_mpg() -> tuple[dict[str, list[str]], list[str]]:
    """Good or bad mileage by the median: six numeric columns, one with missing values, and the part of the world."""
    rows = [shlex.split(line) for line in (DATA / "auto_mpg" / "auto-mpg.data").read_text().splitlines()]
    mpg = [float(row[0]) for row in rows]
    names = ["cylinders", "displacement", "horsepower", "weight", "acceleration", "year"]
    table = {name: [row[j + 1] for row in rows] for j, name in enumerate(names)}
    table["maker"] = [{"1": "america", "2": "europe", "3": "asia"}[row[7]] for row in rows]
    return table, ["good" if value > statistics.median(mpg) else "bad" for value in mpg]


def mnist() -> tuple[Any, ...]:
    def read(name: str, skip: int) -> Any:
        with gzip.open(DATA / "mnist" / name) as file:
            return np.frombuffer(file.read(), np.uint8, offset=skip)

    parts = []
    for name in ("train", "t10k"):
        images = read(f"{name}-images-idx3-ubyte.gz", 16).reshape(-1, 784)
        parts += [(images / 255.0).astype(np.float32), read(f"{name}-labels-idx1-ubyte.gz", 8).astype(np.int64)]
    return tuple(parts)


def sms_spam(seed: int) -> tuple[Any, ...]:
    from sklearn.feature_extraction.text import CountVectorizer
    from sklearn.model_selection import train_test_split

    labels, texts = spam_texts()
    train, test, y, y_test = train_test_split(texts, labels, test_size=0.2, random_state=seed, stratify=labels)
    words = CountVectorizer(ngram_range=(1, 2), dtype=np.float64)
    seen, unseen = (with_narrow_indices(X) for X in (words.fit_transform(train), words.transform(test)))
    return seen, np.asarray(y), unseen, np.asarray(y_test)
