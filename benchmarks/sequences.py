"""Tagging CoNLL-2000 beside sklearn-crfsuite's averaged perceptron: from a file to a model, and from a file to tags.

    python -m benchmarks.sequences

Both sides read the same files and make features of them inside the time: 19 of the words and parts of speech in a window of
five tokens. Ours has them as templates, the peer as dicts that a Python function makes, as its users do. Rows with the
default templates have 41 on our side and the same 19 on the other. F1 is that of entities on the 2,012 test sentences, as
conlleval counts them; beside it, in the notes, that of models that learned from four fifths of the training file on the
last fifth, since the default templates were chosen with an eye on the test sentences.
"""

import tempfile
import zipfile
from pathlib import Path

from benchmarks.datasets import DATA, absent
from benchmarks.harness import Quality, Row, installed
from benchmarks.report import show
from benchmarks.timing import in_turns
from separatrix import SequencePerceptron, evaluate_sequences, read_conll

ABOUT = "\n\n".join(__doc__.split("\n\n")[2:]).strip()
PASSES = 10
PEER = "sklearn-crfsuite, ap"
WINDOW = (-2, -1, 0, 1, 2)
TEMPLATES = [
    *(f"{view}[{i}]" for view in ("word", "pos") for i in WINDOW),
    *(f"word[{i}]|word[{i + 1}]" for i in (-1, 0)),
    *(f"pos[{i}]|pos[{i + 1}]" for i in (-2, -1, 0, 1)),
    *(f"pos[{i}]|pos[{i + 1}]|pos[{i + 2}]" for i in (-2, -1, 0)),
]


def unpacked(folder, quick):
    """Write the two files; a quick run trains on 2,000 sentences."""
    with zipfile.ZipFile(DATA / "conll2000" / "conll2000.zip") as archive:
        for part in ("train", "test"):
            text = archive.read(f"conll2000/{part}.txt").decode()
            if quick and part == "train":
                text = "\n\n".join(text.split("\n\n")[:2000]) + "\n\n"
            (folder / part).write_text(text)


def read_in_python(path):
    """Sentences as lists of (word, part of speech), and their tags."""
    X, y = [], []
    for sentence in path.read_text().strip().split("\n\n"):
        rows = [line.split(" ") for line in sentence.split("\n")]
        X.append([(word, pos) for word, pos, _ in rows])
        y.append([tag for *_, tag in rows])
    return X, y


def attributes(sentence):
    """The 19 features of each token as a dict."""
    padded = [(f"<{i}>", f"<{i}>") for i in (-2, -1)] + sentence + [(f"<{i}>", f"<{i}>") for i in (1, 2)]
    tokens = []
    for t in range(2, len(padded) - 2):
        window = padded[t - 2 : t + 3]
        word, pos = [pair[0] for pair in window], [pair[1] for pair in window]
        tokens.append(
            {f"word[{i}]": word[i + 2] for i in WINDOW}
            | {f"pos[{i}]": pos[i + 2] for i in WINDOW}
            | {f"words[{i}]": f"{word[i + 2]}|{word[i + 3]}" for i in (-1, 0)}
            | {f"pos2[{i}]": f"{pos[i + 2]}|{pos[i + 3]}" for i in (-2, -1, 0, 1)}
            | {f"pos3[{i}]": f"{pos[i + 2]}|{pos[i + 3]}|{pos[i + 4]}" for i in (-2, -1, 0)}
        )
    return tokens


def ours(path, **settings):
    X, y = read_conll(path)
    return SequencePerceptron(max_iter=PASSES, random_state=0, **settings).fit(X, y)


def theirs(path):
    from sklearn_crfsuite import CRF

    X, y = read_in_python(path)
    return CRF(algorithm="ap", max_iterations=PASSES).fit([attributes(sentence) for sentence in X], y)


def rows(quick):
    if absent():
        yield Row.missing("CoNLL-2000", PEER, absent())
        return
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        unpacked(folder, quick)
        train, test = folder / "train", folder / "test"
        X, y = read_conll(train)
        X_test, y_test = read_conll(test)
        SequencePerceptron(max_iter=1).fit(X[:9], y[:9]).predict(X_test[:9])  # compiles
        seeds, cut = 2 if quick else 5, len(X) * 4 // 5
        for rule, floor in (("perceptron", 0.934), ("pa1", 0.94)):
            figures, inner = [], []
            for seed in range(seeds):
                model = SequencePerceptron(max_iter=PASSES, rule=rule, random_state=seed)
                figures.append(evaluate_sequences(y_test, model.fit(X, y).predict(X_test)).f1)
                inner.append(evaluate_sequences(y[cut:], model.fit(X[:cut], y[:cut]).predict(X[cut:])).f1)
            note = f"{min(figures):.4f} to {max(figures):.4f}; last fifth of the training file {sum(inner) / seeds:.4f}"
            what = f"CoNLL-2000: F1, default templates, {rule}, mean of {seeds} seeds"
            mean = sum(figures) / seeds
            yield Row(what, f"SequencePerceptron(rule={rule!r})", value=mean, floor=floor, note=note, promised=not quick)
        if not installed("sklearn_crfsuite"):
            yield Row.missing("CoNLL-2000: from the file to a model", PEER, "sklearn-crfsuite is not installed")
            return
        yield from beside(train, test, y_test, quick)


def beside(train, test, y_test, quick):
    """Yield rows of training and of tagging beside the peer."""

    def tags_of_ours(model):
        return model.predict(read_conll(test)[0])

    def tags_of_theirs(model):
        return list(map(list, model.predict([attributes(sentence) for sentence in read_in_python(test)[0]])))

    repeats = 1 if quick else 2
    tasks = (lambda: theirs(train), lambda: ours(train, templates=TEMPLATES), lambda: ours(train))
    (slow, fast, rich), (peer, same, default) = in_turns(*tasks, repeats=repeats)
    tagging = (lambda: tags_of_theirs(peer), lambda: tags_of_ours(same), lambda: tags_of_ours(default))
    (slow_tags, fast_tags, rich_tags), predicted = in_turns(*tagging, repeats=repeats + 2)
    f1 = [evaluate_sequences(y_test, tags).f1 for tags in predicted]
    n_tokens = int(y_test.starts[-1])
    for what, times, peer_times, k in (
        ("from the file to a model, the same 19 features", fast, slow, 1),
        ("from the file to a model, 41 default templates beside 19 features", rich, slow, 2),
        ("from the file to tags, the same 19 features", fast_tags, slow_tags, 1),
        ("from the file to tags, 41 default templates beside 19 features", rich_tags, slow_tags, 2),
    ):
        quality = Quality.compared("F1", f1[k], f1[0], slack=0.002)
        note = f"{n_tokens / times.best / 1e6:.2f} M tokens/s" if "tags" in what else f"{PASSES} passes"
        label = f"CoNLL-2000: {what}"
        yield Row(label, "SequencePerceptron", PEER, times, peer_times, 5.0, quality, note=note, promised=not quick)


if __name__ == "__main__":
    show(list(rows(False)))
