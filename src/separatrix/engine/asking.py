"""Whether a label is worth asking for: selective sampling (Cesa-Bianchi, Gentile and Zaniboni 2006).

The label of an example is asked for with probability b/(b + |margin|), the margin being that of the weights that learn: the
less sure the model is, the likelier. The expected mistakes of a perceptron that learns only from the labels that it asked
for have a bound like that of one which is told all labels (`analysis/bounds.py`, `asking_bound`).
"""

import numpy as np

from separatrix.engine.rows import Floats


def margins(scores: Floats) -> Floats:
    """Return |score| of each row where there is one score, of two classes; of several, the lead of the highest.

    Examples
    --------
    >>> margins(np.array([[-2.0], [0.5]])).tolist(), margins(np.array([[1.0, 3.0, 2.5]])).tolist()
    ([2.0, 0.5], [0.5])
    """
    if scores.shape[1] == 1:
        single: Floats = np.abs(scores[:, 0])
        return single
    highest = np.partition(scores, scores.shape[1] - 2, axis=1)
    lead: Floats = highest[:, -1] - highest[:, -2]
    return lead


def asking_probability(margin: Floats, b: float) -> Floats:
    """Return the probability with which a label is asked for.

    Examples
    --------
    >>> asking_probability(np.array([0.0, 1.0, 9.0]), 1.0).tolist()
    [1.0, 0.5, 0.1]
    """
    probability: Floats = b / (b + margin)
    return probability
