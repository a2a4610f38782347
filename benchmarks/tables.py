"""Tables as features: which scaling of numbers, which learner for everything, and how fast.

Everything is read through `open_source`, and the roles are those that `TableFeatures` infers. Settings are compared by
cross-validation on the training data; the test data are only reported.

    OMP_NUM_THREADS=1 python -m benchmarks.tables [numbers] [others] [learners] [speed]
"""

import itertools
import sys
import time

import numpy as np
import pyarrow as pa
from sklearn.model_selection import StratifiedKFold, train_test_split
from sklearn.preprocessing import OneHotEncoder

from benchmarks.datasets import DATA
from separatrix import AveragedPerceptron, TableFeatures
from separatrix.data.reading import open_source

SEEDS = range(5)
NUMBERS = {
    "none": {"numbers": "none"},
    "max-abs": {"numbers": "max-abs"},
    "standard": {"numbers": "standard"},
    "bins, one-hot, 32": {"code": "one-hot"},
    "bins, thermometer, 8": {"n_bins": 8},
    "bins, thermometer, 16": {"n_bins": 16},
    "bins, thermometer, 32": {"n_bins": 32},
    "bins, thermometer, 64": {"n_bins": 64},
}
RULES = {
    "perceptron": {},
    "pa1, C=1": {"rule": "pa1"},
    "pa1, C=0.01": {"rule": "pa1", "C": 0.01},
    "arow, C=1": {"rule": "arow"},
}
LEARNERS = {
    "perceptron, 20 passes": {},
    "pa1, C=1, 10 passes": {"rule": "pa1", "max_iter": 10},
    "pa1, C=1, 20 passes": {"rule": "pa1"},
    'pa1, C="auto", 10 passes': {"rule": "pa1", "C": "auto", "max_iter": 10},
    "arow, C=1, 5 passes": {"rule": "arow", "max_iter": 5},
    "arow, C=1, 10 passes": {"rule": "arow", "max_iter": 10},
    "arow, C=3.3, 10 passes": {"rule": "arow", "C": 10 / 3, "max_iter": 10},
    "arow, C=10, 10 passes": {"rule": "arow", "C": 10.0, "max_iter": 10},
}


def table_of(*paths, label=None, **how):
    """The table of a file without its label, and the labels."""
    source = open_source(DATA.joinpath(*paths), label=label, **how)
    table = pa.Table.from_batches([batch.table for batch in source])
    return table.drop_columns([source.label]), np.array(table[source.label].to_pylist())


def adult():
    X, y = table_of("adult", "adult-train.csv.gz")
    X_test, y_test = table_of("adult", "adult-test.csv.gz")
    return X, y, X_test, np.array([label.rstrip(".") for label in y_test])


def auto_mpg():
    """Good or bad mileage, by the median."""
    X, mpg = table_of("auto_mpg", "auto-mpg.data", label="c0")
    return X, np.where(mpg.astype(float) > np.median(mpg.astype(float)), "good", "bad")


def newsgroups():
    return (*table_of("20newsgroups", "20newsgroups-train.tab.gz"), *table_of("20newsgroups", "20newsgroups-test.tab.gz"))


def sms_spam():
    return table_of("sms_spam", "SMSSpamCollection.gz", label="c0")


def kdd():
    return (*table_of("kddcup99", "kddcup.data_10_percent.gz"), *table_of("kddcup99", "corrected.gz"))


def score(learner, X, y, X_test, y_test, seeds=SEEDS):
    """The mean accuracy of learners that differ in their seed."""
    models = (AveragedPerceptron(random_state=seed, **learner).fit(X, y) for seed in seeds)
    return float(np.mean([model.score(X_test, y_test) for model in models]))


def folds(X, y, features, k=5):
    """Features of the training rows and of the held-out rows, of each fold; learned from the former alone."""
    for seen, unseen in StratifiedKFold(k, shuffle=True, random_state=0).split(np.zeros(len(y)), y):
        learned = TableFeatures(**features).fit(X.take(pa.array(seen)))
        yield learned.transform(X.take(pa.array(seen))), y[seen], learned.transform(X.take(pa.array(unseen))), y[unseen]


def numbers():
    X, y, X_test, y_test = adult()
    print("Averaged, 20 passes. Adult: five-fold cross-validation on the training data | test data, mean of five seeds.\n")
    print("| numbers | " + " | ".join(RULES) + " | features |")
    print("|---" * (len(RULES) + 2) + "|")
    for name, features in NUMBERS.items():
        parts, cells = list(folds(X, y, features)), []
        learned = TableFeatures(**features).fit(X)
        Z, Z_test = learned.transform(X), learned.transform(X_test)
        for learner in RULES.values():
            inside = np.mean([score(learner, *part, seeds=[0]) for part in parts])
            cells.append(f"{inside:.4f} | {score(learner, Z, y, Z_test, y_test):.4f}".replace(" | ", " / "))
        print(f"| {name} | {' | '.join(cells)} | {Z.shape[1]} |", flush=True)


def others():
    sets = {
        "Auto MPG": auto_mpg(),
        "spambase": table_of("uci", "spambase.data.gz"),
        "banknote": table_of("uci", "banknote_authentication.csv"),
        "sonar": table_of("uci", "sonar.csv"),
    }
    for name in ("breast_cancer", "wine", "digits"):
        batches = list(open_source(name))
        X, y = (np.concatenate([getattr(batch, part) for batch in batches]) for part in ("X", "y"))
        sets[name] = pa.table({f"x{j}": X[:, j] for j in range(X.shape[1])}), y
    print("\nOther tables, ten folds: averaged pa1, C=1, 10 passes, one seed\n")
    print("| numbers | " + " | ".join(sets) + " | mean |")
    print("|---" * (len(sets) + 2) + "|")
    for name, features in NUMBERS.items():
        cells = [
            np.mean([score({"rule": "pa1", "max_iter": 10}, *part, seeds=[0]) for part in folds(X, y, features, 10)])
            for X, y in sets.values()
        ]
        print(f"| {name} | {' | '.join(f'{cell:.4f}' for cell in cells)} | {np.mean(cells):.4f} |", flush=True)


def prepared(X, y, X_test, y_test):
    features = TableFeatures(dtype=np.float32).fit(X)
    return features.transform(X), y, features.transform(X_test), y_test


def splits():
    """Ten seeded splits of sms_spam, 80 to 20."""
    X, y = sms_spam()
    for seed in range(10):
        seen, unseen = train_test_split(np.arange(len(y)), test_size=0.2, random_state=seed, stratify=y)
        yield prepared(X.take(pa.array(seen)), y[seen], X.take(pa.array(unseen)), y[unseen])


def learners():
    print("\nOne setting for everything; TableFeatures' defaults.")
    print("Means: Adult and Auto MPG five seeds, 20newsgroups two, KDD one, sms_spam ten splits.\n")
    print("| averaged | Adult | sms_spam | 20newsgroups | Auto MPG, ten folds | KDD | its seconds |")
    print("|---|---|---|---|---|---|---|")
    people, messages, news = prepared(*adult()), list(splits()), prepared(*newsgroups())
    cars, packets = list(folds(*auto_mpg(), {}, 10)), prepared(*kdd())
    for name, learner in LEARNERS.items():
        figures = [
            score(learner, *people),
            np.mean([score(learner, *part, seeds=[0]) for part in messages]),
            score(learner, *news, seeds=range(2)),
            np.mean([score(learner, *part) for part in cars]),
        ]
        begin = time.perf_counter()
        figures.append(score(learner, *packets, seeds=[0]))
        seconds = time.perf_counter() - begin
        print(f"| {name} | {' | '.join(f'{figure:.4f}' for figure in figures)} | {seconds:.1f} |", flush=True)


def speed():
    source = open_source(DATA / "kddcup99" / "kddcup.data_10_percent.gz")
    begin = time.perf_counter()
    batches = list(source)
    read = time.perf_counter() - begin
    n = sum(map(len, batches))
    print(f"\nKDD Cup 99, {n:,} rows of {len(source.schema) - 1} columns, one core; reading takes {read:.2f} s\n")
    print("| features | learn, s | transform, s | rows/s, both | entries a row |")
    print("|---|---|---|---|---|")
    for name, how in itertools.islice(NUMBERS.items(), 2, None):
        best, entries = [np.inf, np.inf], 0
        for _ in range(3):
            features = TableFeatures(roles={source.label: "drop"}, **how)
            times = [time.perf_counter()]
            for batch in batches:
                features.partial_fit(batch)
            features.n_features_out_  # noqa: B018  the rest is learned
            times.append(time.perf_counter())
            entries = sum(features.transform(batch).nnz for batch in batches)
            times.append(time.perf_counter())
            best = np.minimum(best, np.diff(times))
        print(f"| {name} | {best[0]:.2f} | {best[1]:.2f} | {n / sum(best):,.0f} | {entries / n:.1f} |", flush=True)
    frame = pa.Table.from_batches([batch.table for batch in batches]).select([1, 2, 3]).to_pandas()
    begin = time.perf_counter()
    OneHotEncoder(handle_unknown="ignore").fit(frame).transform(frame)
    theirs = time.perf_counter() - begin
    begin = time.perf_counter()
    TableFeatures().fit(frame).transform(frame)
    print(f"\nits three columns of categories, learn and transform: scikit-learn's OneHotEncoder {theirs:.2f} s, ", end="")
    print(f"ours {time.perf_counter() - begin:.2f} s")


if __name__ == "__main__":
    for part in sys.argv[1:] or ["numbers", "others", "learners", "speed"]:
        {"numbers": numbers, "others": others, "learners": learners, "speed": speed}[part]()
