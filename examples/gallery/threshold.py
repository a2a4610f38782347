"""A missed cancer costs more than a needless biopsy: where should the threshold be? 569 breast tumours."""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_breast_cancer
from sklearn.model_selection import train_test_split

from separatrix import evaluate, train

tumours = load_breast_cancer(as_frame=True)
X, y = tumours.data, tumours.target_names[tumours.target]
X_train, X_test, y_train, y_test = train_test_split(X, y, test_size=0.3, random_state=0, stratify=y)

# Of a tumour that is malignant with probability p, a biopsy is needless with 1 − p and leaving it is wrong with p. It is
# cheaper to call it malignant as soon as 20·p > 1·(1 − p). For that, the probabilities must be right: calibrate them.
NEEDLESS, MISSED = 1, 20
model = train(X_train, label=y_train, calibrate=True)
usual = evaluate(model, X_test, y_test, positive="malignant")
careful = usual.at(usual.score_of(NEEDLESS / (NEEDLESS + MISSED)))

print(f"on {usual.rows} other tumours       missed  needless  accuracy  cost of a tumour")
for name, evaluation in (("probability above 1/2", usual), ("probability above 1/21", careful)):
    benign, malignant = evaluation.confusion
    cost = evaluation.cost(f"cost={NEEDLESS}:{MISSED}")
    print(f"{name:28}{malignant[0]:6} {benign[1]:9} {evaluation.accuracy:9.3f}  {cost:16.2f}")

# The model keeps the threshold, on the score of its second class, malignant: `predict`, a saved file, SQL, a server follow.
model.threshold_ = careful.threshold
print("predict follows:", evaluate(model, X_test, y_test, positive="malignant").accuracy == careful.accuracy)

probabilities = np.linspace(0.005, 0.995, 199)
costs = [usual.at(usual.score_of(p)).cost(f"cost={NEEDLESS}:{MISSED}") for p in probabilities]
plt.plot(probabilities, costs)
plt.axvline(NEEDLESS / (NEEDLESS + MISSED), color="black", linestyle=":", label="1/21, from the costs alone")
plt.xlabel("called malignant from this probability on")
plt.ylabel("mean cost of a tumour, on other tumours")
plt.legend()
plt.show()
