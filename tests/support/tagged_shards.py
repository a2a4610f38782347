"""Sentences whose tags follow from their words, as lists and as CoNLL files: what the tests of taggers on shards share."""

import numpy as np

COLOURS, THINGS = ("red", "green", "blue", "grey"), ("fox", "hat", "car", "tree", "door", "lamp")


def sentences(seed, n=60):
    """Sentences such as `the red fox`, whose tags follow from the words."""
    random = np.random.default_rng(seed)
    X, y = [], []
    for _ in range(n):
        colour, thing = random.choice(COLOURS), random.choice(THINGS)
        X.append(["the", str(colour), str(thing), "and", str(random.choice(THINGS))])
        y.append(["O", "B-thing", "I-thing", "O", "B-thing"])
    return X, y


def write(path, X, y):
    lines = (
        "\n".join(f"{word}\t{tag}" for word, tag in zip(words, tags, strict=True)) for words, tags in zip(X, y, strict=True)
    )
    path.write_text("\n\n".join(lines) + "\n")
    return str(path)


def same_weights(one, other):
    return all(np.array_equal(a, b) for a, b in zip(one.weights(), other.weights(), strict=True))


def written_shards(folder):
    """Write four shards, of which the third has a tag of its own and the last no token; return the pattern of the files."""
    for seed in range(3):
        X, y = sentences(seed, 20)
        late = ([["Ada", "is", "here"]], [["B-person", "O", "O"]]) if seed == 2 else ([], [])
        write(folder / f"part-{seed}.conll", X + late[0], y + late[1])
    (folder / "part-3.conll").write_text("\n\n")
    return str(folder / "part-*.conll")
