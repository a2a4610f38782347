"""Text features beside scikit-learn's vectorizers: same tokens, same width, same matrix, in one run on one core.

Each pair is timed in turns, best of several; every line says whether the two matrices are equal (bit for bit where the
weights are counts, else up to a relative 1e-12). The last table is what the default features reach with a linear classifier.

    OMP_NUM_THREADS=1 python -m benchmarks.text [repeats]
"""

import gzip
import sys
import time

import numpy as np
import pyarrow as pa
from sklearn.feature_extraction.text import CountVectorizer, HashingVectorizer, TfidfTransformer, TfidfVectorizer
from sklearn.model_selection import train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.svm import LinearSVC

from benchmarks.datasets import DATA
from separatrix import TextFeatures

RICH = r"\w+|[^\w\s]"
PLAIN = {"token_pattern": r"(?u)\b\w\w+\b", "ngram_range": (1, 1), "tf": "count", "idf": False}


def newsgroups(part):
    with gzip.open(DATA / "20newsgroups" / f"20newsgroups-{part}.tab.gz", "rt", errors="replace") as file:
        lines = [line.split("\t", 1) for line in file.read().split("\n")[3:] if "\t" in line]
    return [text for _, text in lines], np.array([label for label, _ in lines])


def sms_spam():
    with gzip.open(DATA / "sms_spam" / "SMSSpamCollection.gz", "rt", encoding="utf-8") as file:
        labels, texts = zip(*(line.rstrip("\n").split("\t", 1) for line in file), strict=True)
    return list(texts), np.array(labels)


def in_turns(repeats, *acts):
    """The best time of each act, and what it gave."""
    best, gave = [np.inf] * len(acts), [None] * len(acts)
    for _ in range(repeats):
        for k, act in enumerate(acts):
            begin = time.perf_counter()
            gave[k] = act()
            best[k] = min(best[k], time.perf_counter() - begin)
    return best, gave


def equal(ours, theirs, exact):
    theirs.sort_indices()
    if ours.shape != theirs.shape or not np.array_equal(ours.indptr, theirs.indptr):
        return "NO"
    if not np.array_equal(ours.indices, theirs.indices):
        return "NO"
    if exact:
        return "bit for bit" if np.array_equal(ours.data, theirs.data) else "NO"
    return "1e-12" if np.allclose(ours.data, theirs.data, rtol=1e-12, atol=0) else "NO"


def speed(repeats):
    texts, _ = newsgroups("train")
    column = pa.array(texts)
    size = sum(len(text.encode()) for text in texts) / 1e6
    print(f"20newsgroups, {len(texts):,} texts, {size:.1f} MB; times in seconds\n")
    print("| what | scikit-learn | ours | MB/s | ratio | from a list | equal |")
    print("|---|---|---|---|---|---|---|")

    def line(what, theirs, ours, exact, repeats=repeats):
        (slow, fast, listed), (expected, got, _) = in_turns(
            repeats, lambda: theirs(texts), lambda: ours(column), lambda: ours(texts)
        )
        print(
            f"| {what} | {slow:.3f} | {fast:.4f} | {size / fast:.0f} | {slow / fast:.1f} | {slow / listed:.1f} "
            f"| {equal(got, expected, exact)} |",
            flush=True,
        )

    for signed in (True, False):
        theirs = HashingVectorizer(alternate_sign=signed)
        ours = TextFeatures(**PLAIN, alternate_sign=signed)
        line(f"hash words, {'signed' if signed else 'unsigned'}", theirs.transform, ours.transform, True)
    theirs = HashingVectorizer(token_pattern=RICH, ngram_range=(1, 2), alternate_sign=False)
    line("hash 1–2-grams and marks", theirs.transform, TextFeatures(tf="count", idf=False).transform, True, 2)
    theirs = HashingVectorizer(analyzer="char_wb", ngram_range=(2, 5), alternate_sign=False)
    ours = TextFeatures(analyzer="char_wb", ngram_range=(2, 5), tf="count", idf=False)
    line("hash characters 2–5 in words", theirs.transform, ours.transform, True, 1)
    counts = HashingVectorizer(token_pattern=RICH, ngram_range=(1, 2), alternate_sign=False, norm=None)
    theirs = make_pipeline(counts, TfidfTransformer(sublinear_tf=True))
    line("default (hashed tf-idf), fit and transform", theirs.fit_transform, TextFeatures().fit_transform, False, 2)
    line("the same without names", theirs.fit_transform, TextFeatures(keep_names=0).fit_transform, False, 2)
    line("default, transform", theirs.transform, TextFeatures().fit(column).transform, False, 2)
    line(
        "vocabulary of words, counts",
        CountVectorizer().fit_transform,
        TextFeatures(**PLAIN, columns="vocabulary", norm=None).fit_transform,
        True,
    )
    line(
        "vocabulary of 1–2-grams, tf-idf",
        TfidfVectorizer(token_pattern=RICH, ngram_range=(1, 2), sublinear_tf=True).fit_transform,
        TextFeatures(columns="vocabulary").fit_transform,
        False,
        2,
    )


def accuracy():
    print("\nAccuracy with LinearSVC as the classifier\n")
    print("| features | sms_spam, mean of 5 splits | 20newsgroups |")
    print("|---|---|---|")
    texts, labels = sms_spam()
    train, y = newsgroups("train")
    test, y_test = newsgroups("test")
    kinds = {
        "default": TextFeatures(keep_names=0),
        "default, 2^18 columns": TextFeatures(keep_names=0, n_features=2**18),
        "default, signed": TextFeatures(keep_names=0, alternate_sign=True),
        "default, vocabulary": TextFeatures(columns="vocabulary"),
        "without idf": TextFeatures(idf=False),
        "words only, 1–2-grams": TextFeatures(keep_names=0, token_pattern=r"(?u)\b\w\w+\b"),
        "characters 2–5 in words, no idf": TextFeatures(analyzer="char_wb", ngram_range=(2, 5), idf=False),
    }
    for name, features in kinds.items():
        scores = []
        for seed in range(5):
            seen, unseen, known, asked = train_test_split(texts, labels, test_size=0.2, random_state=seed, stratify=labels)
            model = make_pipeline(features, LinearSVC(random_state=0)).fit(seen, known)
            scores.append(model.score(unseen, asked))
        news = make_pipeline(features, LinearSVC(random_state=0)).fit(train, y).score(test, y_test)
        print(f"| {name} | {np.mean(scores):.4f} | {news:.4f} |", flush=True)


def main(repeats=5):
    TextFeatures(**PLAIN).transform(["compile first"])
    speed(repeats)
    accuracy()


if __name__ == "__main__":
    main(*(int(argument) for argument in sys.argv[1:]))
