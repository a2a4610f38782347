"""Teach the perceptron: every step of a run that fits on the board, the picture of it, and why it has to end."""

import matplotlib.pyplot as plt
from sklearn.datasets import load_iris

from separatrix import Perceptron, certify, trace
from separatrix.plots import BoundaryDisplay, ProofDisplay

# Four points, one line through the origin. Each mistake adds or subtracts the point that was wrong, no more.
X, y = [[4, 0], [1, 1], [0, 1], [-2, -2]], [1, -1, -1, 1]
board = Perceptron(order="cyclic", fit_intercept=False)
print(trace(board, X, y))

# The same on 150 flowers: is setosa on one side of a plane? The lower line rises like k², the upper one like k, so they
# cross, and there is no room for a mistake beyond the crossing.
iris = load_iris()
flowers, setosa = iris.data, iris.target == 0
learner = Perceptron(order="cyclic", max_iter=None)
run = trace(learner, flowers, setosa)
print(f"\niris, setosa or not: R² = {run.R2:.2f}, γ = {run.gamma:.4f}, so at most R²/γ² = {run.bound:.1f} mistakes")
print("  k    k²γ²  ≤  ‖w‖²  ≤   kR²")
for step in run.mistakes:
    print(f"{step['k']:3} {step['k2_gamma2']:7.2f} {step['norm2']:8.2f} {step['k_R2']:8.2f}")
print(f"both lines hold at every mistake: {run.holds}; after {len(run.mistakes)} of them, a pass was clean")

figure, (left, right) = plt.subplots(1, 2, figsize=(9.5, 4.4), layout="constrained")
BoundaryDisplay.from_estimator(board.fit(X, y), X, y, ax=left)
left.set_title("four points")
ProofDisplay.from_estimator(learner.fit(flowers, setosa), flowers, setosa, certificate=certify(flowers, setosa), ax=right)
right.set_title("150 flowers")
plt.show()
