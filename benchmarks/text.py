"""Text features beside scikit-learn's vectorizers: same tokens, same width, same matrix, in one run on one core.

Each pair is timed in turns, best of several; every line says whether the two matrices are equal (bit for bit where the
weights are counts, else up to a relative 1e-12). The last table is what the default features reach with a linear classifier.

    OMP_NUM_THREADS=1 python -m benchmarks.text [repeats]
"""

import gzip
import sys
from functools import partial

import numpy as np
import pyarrow as pa
from sklearn.feature_extraction.text import CountVectorizer, HashingVectorizer, TfidfTransformer, TfidfVectorizer
from sklearn.model_selection import train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.svm import LinearSVC

import separatrix
from benchmarks.datasets import DATA, absent
from benchmarks.harness import Quality, Row
from benchmarks.report import show
from benchmarks.timing import in_turns

TextFeatures = partial(separatrix.TextFeatures, n_jobs=1)  # the peers have one thread

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


def equal(ours, theirs, exact):
    """Whether two matrices are the same: to the last bit, or each number within a relative 1e-12."""
    theirs.sort_indices()
    same = ours.shape == theirs.shape
    same = same and np.array_equal(ours.indptr, theirs.indptr) and np.array_equal(ours.indices, theirs.indices)
    if exact:
        return Quality("the same matrix, bit for bit", same and np.array_equal(ours.data, theirs.data))
    return Quality("the same matrix within 1e-12", same and np.allclose(ours.data, theirs.data, rtol=1e-12, atol=0))


def speed(texts, repeats):
    """Yield a row for each kind of features: ours from an Arrow column, with the ratio from a Python list as a note."""
    TextFeatures(**PLAIN).transform(["compile first"])

    def row(what, peer, theirs, ours, exact, repeats=repeats, floor=None, texts=texts):
        column, size = pa.array(texts), sum(len(text.encode()) for text in texts) / 1e6
        (slow, fast, listed), (expected, got, _) = in_turns(
            lambda: theirs(texts), lambda: ours(column), lambda: ours(texts), repeats=repeats
        )
        note = f"{size / fast.best:.0f} MB/s; from a list {slow.best / listed.best:.1f}×"
        what = f"20newsgroups, {len(texts):,} texts: {what}"
        return Row(what, "TextFeatures", peer, fast, slow, floor, equal(got, expected, exact), note=note)

    for signed in (True, False):
        theirs = HashingVectorizer(alternate_sign=signed)
        ours = TextFeatures(**PLAIN, alternate_sign=signed)
        what = f"hash words, {'signed' if signed else 'unsigned'}"
        yield row(what, "HashingVectorizer", theirs.transform, ours.transform, True, floor=15)
    theirs = HashingVectorizer(token_pattern=RICH, ngram_range=(1, 2), alternate_sign=False)
    ours = TextFeatures(tf="count", idf=False)
    yield row("hash 1–2-grams and marks", "HashingVectorizer", theirs.transform, ours.transform, True, 2)
    theirs = HashingVectorizer(analyzer="char_wb", ngram_range=(2, 5), alternate_sign=False)
    ours = TextFeatures(analyzer="char_wb", ngram_range=(2, 5), tf="count", idf=False)
    few = {"texts": texts[: len(texts) // 4]}
    yield row("hash characters 2–5 in words", "HashingVectorizer", theirs.transform, ours.transform, True, 1, **few)
    counts = HashingVectorizer(token_pattern=RICH, ngram_range=(1, 2), alternate_sign=False, norm=None)
    theirs = make_pipeline(counts, TfidfTransformer(sublinear_tf=True))
    peer, ours = "HashingVectorizer, TfidfTransformer", TextFeatures()
    yield row("default (hashed tf-idf), fit and transform", peer, theirs.fit_transform, ours.fit_transform, False, 2)
    ours = TextFeatures(keep_names=0)
    yield row("the same without names", peer, theirs.fit_transform, ours.fit_transform, False, 2)
    yield row("default, transform", peer, theirs.transform, TextFeatures().fit(texts).transform, False, 2)
    ours = TextFeatures(**PLAIN, columns="vocabulary", norm=None)
    yield row("vocabulary of words, counts", "CountVectorizer", CountVectorizer().fit_transform, ours.fit_transform, True)
    theirs = TfidfVectorizer(token_pattern=RICH, ngram_range=(1, 2), sublinear_tf=True)
    ours = TextFeatures(columns="vocabulary")
    yield row("vocabulary of 1–2-grams, tf-idf", "TfidfVectorizer", theirs.fit_transform, ours.fit_transform, False, 2)


def rows(quick, repeats=None):
    """The suite "text"."""
    if absent():
        yield Row.missing("20newsgroups", "", absent())
        return
    texts, _ = newsgroups("train")
    yield from speed(texts[:1000] if quick else texts, repeats or (2 if quick else 3))


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
    show(list(rows(False, repeats)))
    accuracy()


if __name__ == "__main__":
    main(*(int(argument) for argument in sys.argv[1:]))
