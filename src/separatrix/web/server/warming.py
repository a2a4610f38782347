"""Compiles the kernels of the server before the first request."""

from __future__ import annotations

import numpy as np

from separatrix.modelfile.model import Model
from separatrix.web.server.live.commits import Commit, SparseRows
from separatrix.web.server.live.live_model import LiveModel
from separatrix.web.server.reading.feature_index import FeatureIndex


def warm(live_model: LiveModel) -> None:
    """Compile the kernels for learning and predicting on a throwaway model, so that no request has to wait for it."""
    learner = live_model.learner.unfitted()
    first, second = LiveModel(Model(learner)), LiveModel(Model(learner))
    rows = SparseRows(np.ones(4), np.array([0, 1, 0, 1]), np.array([0, 1, 2, 3, 4]))
    for labels, new_names in ((["a", "b", "b", "a"], ["x", "y"]), (["a", "b", "c", "a"], [])):
        second.apply(Commit.unpack(first.learn(rows, labels, new_names, None, False).pack()))
        second.scores(rows)
    FeatureIndex(["x"]).read(b'{"features": {"x": 1, "y": 2.5}, "label": "a"}', 2)
