"""How tags mark entities: B-X begins one of type X, I-X is inside, O is outside; IOBES adds E-X (its end) and S-X (alone).

An entity begins at B and S, after O, after E and S, and where the type changes. Hence IOB1 and IOE tags are read rightly,
too, and so are predictions that break the rules of their scheme, in the way conlleval counts them.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from separatrix.engine.rows import Array, Ints

SCHEMES: Final = ("bio", "iob2", "iobes")
"""iob2 is another name of bio."""
_KNOWN: Final = "BIOES"


def parts_of(tag: object) -> tuple[str, str]:
    """Return the letter and the type of a tag.

    Examples
    --------
    >>> parts_of("B-NP"), parts_of("O"), parts_of("I"), parts_of("noun")
    (('B', 'NP'), ('O', ''), ('I', ''), ('I', 'noun'))
    """
    letter, dash, kind = str(tag).partition("-")
    if letter in _KNOWN and len(letter) == 1 and (dash or letter != "O"):
        return letter, kind
    return ("O", "") if letter == "O" and not dash else ("I", str(tag))


def marks_entities(tags: list[str]) -> bool:
    """Tell whether tags mark entities: each has a letter of a scheme, and some have a type, are B and O, or all are O."""
    letters, names = {tag.partition("-")[0] for tag in tags}, set(tags)
    return letters <= {*_KNOWN} and (any("-" in tag for tag in tags) or {"B", "O"} <= names or names == {"O"})


def tags_beyond(scheme: str | None, tags: list[object]) -> list[object]:
    """Return the tags that only another scheme has: E-X and S-X where the scheme is bio, which says nothing of them."""
    return [tag for tag in tags if scheme in ("bio", "iob2") and parts_of(tag)[0] in ("E", "S")]


def forbidden_transitions(classes: Array, scheme: str | None) -> Array:
    """Return a flat matrix of K+1 rows and columns, 1 where a tag may not follow another; an empty one without a scheme.

    The last row is the start of a sequence, the last column its end. bio: I-X comes after B-X or I-X. iobes: B-X and I-X are
    followed by I-X or E-X, and these come only so.
    """
    if scheme is None:
        return np.empty(0, np.uint8)
    outside = ("O", "")
    parts = [*map(parts_of, classes.tolist()), outside]
    matrix = np.zeros((len(parts), len(parts)), np.uint8)
    for i, (before, before_type) in enumerate(parts):
        for j, (after, after_type) in enumerate(parts):
            same = before in "BI" and before_type == after_type
            if scheme == "iobes":
                matrix[i, j] = (after in "IE") != (before in "BI") or (after in "IE" and not same)
            else:
                matrix[i, j] = after == "I" and not same
    return matrix.reshape(-1)


def first_forbidden(codes: Array, starts: Ints, forbidden: Array, K: int) -> tuple[int, int] | None:
    """Return the sequence and the place of the first forbidden transition of some paths; None where there is none.

    A place is that of the tag that may not follow; one behind the last token means that no sequence ends so.
    """
    if not forbidden.size:
        return None
    begins = starts[:-1][starts[1:] > starts[:-1]]
    ends = starts[1:][starts[1:] > starts[:-1]]
    before = np.append(K, codes[:-1]) if codes.size else codes
    before = before.astype(np.int64)
    before[begins] = K
    wrong = np.flatnonzero(forbidden[before * (K + 1) + codes])
    at_end = ends[forbidden[codes[ends - 1].astype(np.int64) * (K + 1) + K] != 0]
    places = [*(int(t) for t in wrong[:1]), *(int(t) - 1 for t in at_end[:1])]
    if not places:
        return None
    first = min(places)
    sequence = int(np.searchsorted(starts, first, side="right")) - 1
    is_end = not (wrong.size and wrong[0] == first)
    return sequence, first - int(starts[sequence]) + is_end


def entities(letters: Array, kinds: Ints, starts: Ints) -> tuple[Ints, Ints]:
    """Return where the entities of tagged tokens begin and end, from the letter and the type of each token's tag."""
    n = len(letters)
    if not n:
        return np.empty(0, np.int64), np.empty(0, np.int64)
    previous, previous_kind = np.append("O", letters[:-1]), np.append(-1, kinds[:-1])
    first_tokens = starts[:-1][starts[1:] > starts[:-1]]
    previous[first_tokens] = "O"
    inside = letters != "O"
    begins = inside & (np.isin(letters, ["B", "S"]) | np.isin(previous, ["O", "E", "S"]) | (kinds != previous_kind))
    # An entity ends before the next one begins, before an O, and with its sequence.
    stops = np.append(begins[1:] | ~inside[1:], True)
    stops[first_tokens[1:] - 1] = True
    ends = np.flatnonzero(inside & stops)
    return np.flatnonzero(begins), ends + 1
