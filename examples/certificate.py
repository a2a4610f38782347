"""Proofs: that setosa can be told from the others, that the others cannot be told apart, and which label may be to blame."""

import numpy as np
from sklearn.datasets import load_digits, load_iris

from separatrix import Certificate, certify, fewest_mistakes, suspects

iris = load_iris()
X, y = iris.data, iris.target_names[iris.target]

setosa = certify(X, y == "setosa")
low, high = setosa.margin
print(f"setosa or not: {setosa.verdict}, margin between {low:.9f} and {high:.9f}")
print(f"a perceptron makes at most {setosa.mistake_bound} mistakes on it, in any order")

rest = y != "setosa"
pair = certify(X[rest], y[rest])
print(f"\nversicolor or virginica: {pair.verdict}; these {len(pair.witness)} flowers contradict each other:")
for i in pair.witness.rows:
    print(f"  {X[rest][i]} {y[rest][i]}")
stored = Certificate.from_json(pair.to_json())
print("the certificate, kept as JSON and checked against the data:", stored.verify(X[rest], y[rest]))
best = fewest_mistakes(X[rest], y[rest])
print(f"the fewest mistakes of any line: at least {best.lower}, at most {best.upper}")
others = np.delete(np.flatnonzero(rest), best.mistaken)
print(f"without row {best.mistaken[0]} of these hundred: {certify(X[others], y[others]).verdict}")

pixels, digits = load_digits(return_X_y=True)
wrong = np.random.default_rng(0).choice(len(digits), 20, replace=False)
spoiled = digits.copy()
spoiled[wrong] = (spoiled[wrong] + 1) % 10
ranked = suspects(pixels, spoiled)
hits = np.isin(ranked.rows[:20], wrong).sum()
print(f"\nof 20 digits with a false label among {len(digits):,}, {hits} are among the 20 most suspicious; the first three:")
for suspect in ranked[:3]:
    print(f"  row {suspect.row}: labelled {suspect.label}, rather {suspect.suggested} (it was {digits[suspect.row]})")
