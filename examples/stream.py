"""A stream read once: the error on each example before it is learned from, and a class that turns up late."""

import numpy as np
from sklearn.datasets import load_digits

from separatrix import AveragedPerceptron

X, y = load_digits(return_X_y=True)
order = np.random.default_rng(0).permutation(len(y))
early, nines = order[y[order] != 9], order[y[order] == 9]
order = np.concatenate([early[:800], np.random.default_rng(1).permutation(np.concatenate([early[800:], nines]))])

model, errors = AveragedPerceptron(rule="arow"), 0
print("examples  classes  error so far  error in this batch")
for batch in np.split(order, range(200, len(order), 200)):
    model.partial_fit(X[batch], y[batch])
    here, errors = (model.n_errors_ - errors) / len(batch), model.n_errors_
    print(
        f"{model.n_seen_:8,}  {len(model.classes_):7}  {errors / model.n_seen_:12.3f}  {here:.3f} {'█' * round(80 * here)}"
    )

single = AveragedPerceptron(rule="arow")
for i in order:
    single.partial_fit(X[[i]], y[[i]])
print("one example at a time, the same weights bit for bit:", np.array_equal(single.coef_, model.coef_))
