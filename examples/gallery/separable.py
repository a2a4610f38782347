"""Is my data linearly separable, and by how much? Thirteen measurements of 178 wines from three growers."""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_wine
from sklearn.preprocessing import scale

from separatrix import MaxMarginClassifier, certify, fewest_mistakes
from separatrix.plots import BoundaryDisplay

wine = load_wine()
# A gap in grams beside one in percent says nothing: measure every column in its own standard deviation.
X, grower = scale(wine.data), wine.target_names[wine.target]

for name in wine.target_names:
    certificate = certify(X, grower == name)
    low, high = certificate.geometric_margin  # proven: the margin lies between them
    print(f"{name}: {certificate.verdict}, with a gap of {2 * low:.4f} standard deviations;", end=" ")
    print(f"a perceptron makes at most {certificate.mistake_bound} mistakes")

# With two of the thirteen measurements there is no such line, and the proof is a handful of wines.
two = wine.feature_names.index("alcohol"), wine.feature_names.index("proline")
pair, kind = X[:, two], np.where(grower == "class_0", "class_0", "others")
certificate = certify(pair, kind)
print(f"\nclass_0 by alcohol and proline alone: {certificate.verdict}; no line gets all of these right:")
for row in certificate.witness.rows:
    print(f"  row {row}: alcohol {wine.data[row, two[0]]}, proline {wine.data[row, two[1]]:.0f}, {grower[row]}")
price = fewest_mistakes(pair, kind)
print(f"the best line of all gets {price.upper} of the 178 wrong (proven: at least {price.lower}), rows {price.mistaken}")

# Without these rows there is a gap again. The widest street through it, and where those wines lie:
kept = np.delete(np.arange(len(X)), price.mistaken)
widest = MaxMarginClassifier(C=None).fit(pair[kept], kind[kept])
print(f"without them the gap is {2 * widest.margin_:.4f} standard deviations wide")
BoundaryDisplay.from_estimator(widest, pair, kind)
plt.xlabel("alcohol, in standard deviations")
plt.ylabel("proline, in standard deviations")
plt.show()
