"""Which learner should I use? Ten of them on the same folds of 569 breast tumours, from naive Bayes to a kernel."""

from statistics import mean, stdev

import matplotlib.pyplot as plt
from sklearn.datasets import load_breast_cancer

from separatrix import compare
from separatrix.plots import ComparisonDisplay

LEARNERS = ["naive Bayes", "LDA", "logistic regression", "k-NN", "decision tree", "linear SVM"]
LEARNERS += ["Perceptron", "AveragedPerceptron", "KernelPerceptron", "separatrix train"]

tumours = load_breast_cancer(as_frame=True)
comparison = compare(tumours.data, tumours.target_names[tumours.target], models=LEARNERS, folds=10, curves=False)
best, *others = comparison.rows
print(f"{len(tumours.data)} tumours, ten folds; always guessing {comparison.baseline:.3f}\n")
print("learner              accuracy   behind   numbers in the model")
print(f"{best.model:20} {best.accuracy:8.3f} {best.parameters:31,}")

# All learners had the same folds, so compare them fold by fold: is one behind by more than chance?
for other in others:
    behind = [mine - theirs for mine, theirs in zip(best.accuracies, other.accuracies, strict=True)]
    error = stdev(behind) / len(behind) ** 0.5
    verdict = "behind" if mean(behind) > 2 * error else "could be chance"
    print(f"{other.model:20} {other.accuracy:8.3f}   {mean(behind):.3f} ± {error:.3f} {other.parameters:14,}   {verdict}")

ComparisonDisplay.from_comparison(comparison)
plt.show()
