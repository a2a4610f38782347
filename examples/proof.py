"""The perceptron's convergence proof, traced: k²γ² ≤ ‖w‖² ≤ kR² at every mistake k, printed and drawn as text."""

from math import log

from sklearn.datasets import load_iris

from separatrix import Perceptron, trace

X, y = load_iris(return_X_y=True)
run = trace(Perceptron(order="cyclic", max_iter=None), X, y == 0)
print(f"setosa or not: R² = {run.R2:.2f}, γ = {run.gamma:.4f}, so at most R²/γ² = {run.bound:.1f} mistakes")
print(" k   k²γ²   ‖w‖²    kR²")
for step in run.mistakes:
    print(f"{step['k']:2} {step['k2_gamma2']:6.2f} {step['norm2']:6.2f} {step['k_R2']:6.2f}")
print(f"both lines hold at every mistake: {run.holds}; after {len(run.mistakes)} of them a pass was clean\n")

WIDTH, HEIGHT = 64, 16
FLOOR, CEILING = run.gamma**2, run.R2 * run.bound
picture = [[" "] * WIDTH for _ in range(HEIGHT)]


def draw(k, value, mark):
    """Put a mark where mistake k and this ‖w‖² are, both axes logarithmic."""
    right, up = log(k) / log(run.bound), log(value / FLOOR) / log(CEILING / FLOOR)
    picture[round((HEIGHT - 1) * (1 - up))][round((WIDTH - 1) * right)] = mark


for column in range(WIDTH):
    k = run.bound ** (column / (WIDTH - 1))
    draw(k, k * run.R2, "─")
    draw(k, (k * run.gamma) ** 2, "·")
for step in run.mistakes:
    draw(step["k"], step["norm2"], "●")
print(f"● ‖w‖² as it was, ─ the ceiling kR², · the floor k²γ²; they meet at k = {run.bound:.1f} (axes logarithmic)")
print("\n".join("│" + "".join(line).rstrip() for line in picture) + "\n└" + "─" * WIDTH)
