"""Which labels are probably wrong? 1,797 handwritten digits, twenty of them relabelled by us, and what it finds besides."""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits

from separatrix import suspects

digits = load_digits()
X, truth = digits.data, digits.target

# To know how well the ranking works, falsify twenty labels that it has to find again.
false = np.random.default_rng(0).choice(len(truth), 20, replace=False)
labels = truth.copy()
labels[false] = (labels[false] + 1) % 10

ranked = suspects(X, labels)
for looked_at in (10, 20, 30):
    print(f"among the {looked_at} most suspicious of {len(X):,}: {np.isin(ranked.rows[:looked_at], false).sum()} of the 20")
print("\nthe first five:")
for suspect in ranked[:5]:
    print(f"  row {suspect.row}: labelled {suspect.label}, rather {suspect.suggested} (it was {truth[suspect.row]})")

# The labels as they come with the data: nobody falsified any, and some rows deserve a second look all the same.
figure, axes = plt.subplots(2, 6, figsize=(8, 3.3), layout="constrained")
print("\nthe data as they are; the most suspicious:")
for suspect, ax in zip(suspects(X, truth)[:12], axes.flat, strict=True):
    ax.imshow(digits.images[suspect.row], cmap="gray_r")
    ax.set_title(f"{suspect.label}, or {suspect.suggested}?")
    ax.set_axis_off()
    print(f"  row {suspect.row}: labelled {suspect.label}, rather {suspect.suggested}")
plt.show()
