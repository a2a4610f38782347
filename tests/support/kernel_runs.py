"""Runs of the kernel perceptron, and the order in which they met their examples."""

import numpy as np
from sklearn.datasets import load_digits

from separatrix.engine.presenting import Problem
from separatrix.engine.rows import Rows
from separatrix.solvers.dual import visited

DIGITS = load_digits(return_X_y=True)
PREDICT_WITH = ("last", "averaged", "voted", "random")


def polynomial(degree, constant):
    return {"kernel": "poly", "degree": degree, "gamma": 1, "coef0": constant}


def visiting_order(model, X, weight=None):
    problem = Problem(Rows(X), np.zeros(len(X)), np.empty(0) if weight is None else np.asarray(weight, float))
    passes = range(model.n_iter_)
    return [int(i) for p in passes for i in visited(model.order, problem, model.random_state, p)]
