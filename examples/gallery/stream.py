"""Examples keep coming: learn from each as it comes, know the error without held-out data, correct a mistake at once."""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits

from separatrix import PassiveAggressive

X, y = load_digits(return_X_y=True)
# As it happens, a class turns up late: among the first 800 images there is no 9.
draw = np.random.default_rng(0)
order = draw.permutation(len(y))
early = order[y[order] != 9][:800]
order = np.concatenate([early, draw.permutation(np.setdiff1d(order, early))])

# Each image is read before its label is learned from, so the count of errors is honest without images kept aside.
reader = PassiveAggressive()
seen, rates = [], []
print("images  classes  errors in this batch")
for batch in np.split(order[:-97], 17):
    before = getattr(reader, "n_errors_", 0)
    reader.partial_fit(X[batch], y[batch])
    seen.append(reader.n_seen_)
    rates.append((reader.n_errors_ - before) / len(batch))
    print(f"{seen[-1]:6,}  {len(reader.classes_):7}  {rates[-1]:.2f} {'█' * round(60 * rates[-1])}")
print(f"progressive error: {reader.n_errors_ / reader.n_seen_:.3f}")

# The last 97 images come one by one. Where the reader is wrong, somebody says so, and it asks itself again.
rest, corrected = order[-97:], 0
for i in rest:
    answer = reader.predict(X[[i]])[0]
    if answer != y[i]:
        reader.partial_fit(X[[i]], y[[i]])
        corrected += 1
        print(f"image {i}: read as {answer}; told that it is {y[i]}, it reads {reader.predict(X[[i]])[0]}")
print(f"{corrected} corrections in {len(rest)} images")

plt.plot(seen, rates, "o-")
plt.axvline(800, color="gray", linestyle=":", label="the first 9 comes")
plt.xlabel("images seen")
plt.ylabel("share of errors in a batch of 100, before learning it")
plt.legend()
plt.show()
