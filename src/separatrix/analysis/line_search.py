"""Where few mistakes may lie: the least squares solution, and the step along a line with the fewest mistakes, exactly."""

from __future__ import annotations

import numpy as np

from separatrix.engine.rows import Floats


def least_squares(Z: Floats) -> Floats:
    """Return the w with the leads nearest to 1."""
    return np.asarray(np.linalg.lstsq(Z, np.ones(len(Z)), rcond=None)[0])


def best_step(scores: Floats, slopes: Floats) -> tuple[float, int]:
    """Return the t with the fewest s + t·r ≤ 0 over scores s and slopes r, and that number.

    The count changes only at the t where a score is 0; after sorting these, one cumulative sum gives it on every piece.
    """
    moving = slopes != 0
    still = int(np.sum(scores[~moving] <= 0))
    s, r = scores[moving], slopes[moving]
    if not s.size:
        return 0.0, still
    at = -s / r
    order = np.argsort(at)
    at, rising = at[order], r[order] > 0
    count = still + int(np.sum(rising)) + np.concatenate([[0], np.cumsum(np.where(rising, -1, 1))])
    is_wide = np.concatenate([[True], np.diff(at) > 1e-12 * (1 + np.abs(at[1:])), [True]])
    count = np.where(is_wide, count, len(scores) + 1)
    k = int(np.argmin(count))
    if k == 0:
        return float(at[0] - 1.0), int(count[0])
    if k == len(at):
        return float(at[-1] + 1.0), int(count[-1])
    return float((at[k - 1] + at[k]) / 2), int(count[k])
