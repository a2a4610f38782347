"""Dealing rows anew among shards whose classes differ, as in a file that was sorted by class and then cut into shards.

Parameter mixing takes every shard for a sample of the whole: a shard of one class only learns to predict it always. The
driver knows the classes of each shard from the summaries. Where they differ, new shard k has the rows, of a group of old
shards, for which a random number says k: it depends on the seed, the old shard and the row only, so that any worker can
make any new shard, as often as needed, by reading the files of the group.
"""

from __future__ import annotations

import os
from dataclasses import replace
from math import log
from typing import Any

import numpy as np

from separatrix.cluster.engines import Engine
from separatrix.cluster.shards import CollectionSource, Deal, ShardReader, joined, new_training_id
from separatrix.data.errors import DataError
from separatrix.engine.rows import Floats, Ints

OUT_OF_PLACE = 0.25
"""Shards differ if this part of the rows of some class would have to move before each shard had its share of them …"""
CHANCE = 1e-6
"""… and if shards drawn at random differ so with a smaller chance than this."""
GROUP_SIZE = 16
"""A new shard is dealt from about so many files, each of which its worker must read …"""
GROUP_SKEW = 0.1
"""… or from more of them, where otherwise more than this part of the rows would be in a group that has too many of them."""


UNLIKE = """\
the shards hold different classes, so the model may be poor, and rows could not be dealt anew among them ({error}): \
shuffle the rows before they are divided into shards{remedy}"""
READABLE = ", or put the files where every worker can read them"


class UnlikeShardsWarning(UserWarning):
    """The shards hold different classes, and their rows could not be dealt anew."""


def held_out_shards(numbers: list[int], fraction: float, seed: int) -> tuple[list[int], list[int]]:
    """Return the shards to train on and those held out, which are drawn with the seed."""
    n = max(1, round(fraction * len(numbers)))
    if n >= len(numbers):
        raise ValueError(
            f"a fraction of {fraction:g} holds out {n} of {len(numbers)} shards and leaves none to train on: "
            "use more shards, or pass held_out"
        )
    held_out = set(np.random.default_rng([seed, len(numbers)]).permutation(numbers)[:n].tolist())
    return [number for number in numbers if number not in held_out], sorted(held_out)


def out_of_place(counts: Ints) -> Floats:
    """Return, for each class, the part of its rows that would have to move before each shard had its share of them.

    Examples
    --------
    >>> out_of_place(np.array([[50, 0], [50, 100]]))
    array([0.25, 0.25])
    """
    shares = counts.sum(axis=1) / counts.sum()
    distances: Floats = 0.5 * np.abs(counts / counts.sum(axis=0) - shares[:, None]).sum(axis=0)
    return distances


def shards_differ(counts: Ints) -> bool:
    """Tell whether the classes of shards differ, by more than chance and by enough to spoil the mixed weights.

    Examples
    --------
    >>> shards_differ(np.array([[500, 0], [0, 500]])), shards_differ(np.array([[260, 240], [240, 260]]))
    (True, False)
    >>> shards_differ(np.array([[3, 0], [0, 3]]))  # may be chance
    False
    """
    counts = counts[counts.any(axis=1)][:, counts.any(axis=0)]
    if len(counts) < 2:
        return False
    far = out_of_place(counts) >= OUT_OF_PLACE
    # Of the n rows of a class, a random shard has a part p or more (or p or less) with a chance of at most
    # exp(−n·KL(p, share)), also without replacement (Hoeffding 1963); these are two statements for each shard and class.
    shares = (counts.sum(axis=1) / counts.sum())[:, None]
    sizes = counts.sum(axis=0)
    exponents = sizes * _divergence(counts / sizes, shares)
    unlikely = (exponents > log(2 * counts.size / CHANCE)).any(axis=0)
    return bool((far & unlikely).any())


def _divergence(p: Floats, q: Floats) -> Floats:
    """Return the Kullback–Leibler divergence of two coins, one with chance p and one with chance q (0 < q < 1)."""
    with np.errstate(divide="ignore", invalid="ignore"):
        heads = np.where(p > 0, p * np.log(p / q), 0.0)
        tails = np.where(p < 1, (1 - p) * np.log((1 - p) / (1 - q)), 0.0)
    divergence: Floats = heads + tails
    return divergence


def grouped(counts: Ints) -> list[list[int]]:
    """Return the places of the shards in groups, each with about the class shares of the whole."""
    n_groups = -(-len(counts) // GROUP_SIZE)
    while n_groups > 1:
        groups = _balanced(counts, n_groups)
        totals = np.array([counts[group].sum(axis=0) for group in groups])
        if (out_of_place(totals) * totals.sum(axis=0)).sum() <= GROUP_SKEW * totals.sum():
            return groups
        n_groups //= 2
    return [list(range(len(counts)))]


def _balanced(counts: Ints, n_groups: int) -> list[list[int]]:
    """Put each shard, the largest first, into the group with room that lacks its classes most."""
    room = -(-len(counts) // n_groups)
    classes = counts.sum(axis=0)
    lacking = np.full((n_groups, len(classes)), 1.0 / n_groups)
    groups: list[list[int]] = [[] for _ in range(n_groups)]
    for place in np.argsort(-counts.sum(axis=1), kind="stable").tolist():
        full = [len(group) >= room for group in groups]
        best = int(np.where(full, -np.inf, lacking @ counts[place]).argmax())
        groups[best].append(place)
        lacking[best] -= counts[place] / classes
    return [sorted(group) for group in groups if group]


def new_shards(engine: Engine, reader: ShardReader, groups: list[list[int]], seed: int) -> ShardReader:
    """Return how the new shards are read, whose old ones `reader` has read; pairs (X, y) in this process are dealt at once.

    `groups` has the numbers of the shards of each group.
    """
    numbers = [number for group in groups for number in group]
    chunks = [engine.chunks[number] for number in numbers]
    if all(isinstance(chunk, tuple) for chunk in chunks):
        _deal_pairs(engine, Deal(seed, reader, [[(number, "", None) for number in group] for group in groups]), numbers)
        return replace(reader, training_id=new_training_id())
    if not all(map(is_file, chunks)) and not engine.common_folder:
        raise DataError("a worker has only its own pieces of a collection")
    members = [[(number, engine.names[number], _path(engine.chunks[number])) for number in group] for group in groups]
    return replace(reader, training_id=new_training_id(), deal=Deal(seed, reader, members))


def is_file(chunk: Any) -> bool:
    """Tell whether a shard is a file, which any worker may read."""
    return isinstance(chunk, str | os.PathLike)


def _path(chunk: Any) -> Any:
    """Return the path of a file, and None for a table: that is not sent again, but found in the common folder."""
    return chunk if is_file(chunk) else None


def _deal_pairs(engine: Engine, deal: Deal, numbers: list[int]) -> None:
    """Replace the pairs (X, y) of an engine by those of the new shards."""
    sources = {number: CollectionSource(engine.names[number], engine.chunks[number], None) for number in numbers}
    labels = {number: source.y for number, source in sources.items() if source.y is not None and len(source.y)}
    recipients = {old: deal.rows(old).next(len(y)) for old, y in labels.items()}
    for number in numbers:
        which = {old: np.flatnonzero(new == number) for old, new in recipients.items()}
        filled = [old for old, rows in which.items() if rows.size]
        y = np.concatenate([labels[old][which[old]] for old in filled or labels])
        engine.chunks[number] = joined([sources[old].X[which[old]] for old in filled]), y
