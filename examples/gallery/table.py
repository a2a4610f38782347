"""A table with numbers, words, remarks and gaps: from the file to a model, and a reason that a customer can be told."""

from pathlib import Path
from textwrap import shorten

import matplotlib.pyplot as plt
import pandas as pd

from separatrix import evaluate, explain, train

# Loans, as a branch might write them down. What a column is for is found out; the running number is not to count.
loans = pd.read_csv(Path(__file__).with_name("loans.csv"))
past, later = loans[:400], loans[400:]
model = train(past, label="outcome", drop="number")
print(model.features.describe())

evaluation = evaluate(model, later, later["outcome"], positive="defaulted")
low, high = evaluation.interval
always = evaluation.baseline
print(f"\nright on {evaluation.accuracy:.2f} of {evaluation.rows} later loans (95 % interval {low:.2f} to {high:.2f});")
print(f"always saying {always.label!r} would be right on {always.accuracy:.2f}\n")

# A customer asks why. The score is a sum, and each column has its part in it: those below 0 are what to talk about.
customer = later.iloc[1]
explanation = explain(model, customer)
print(f"{explanation.prediction}: the score of repaid is {explanation.score:+.2f}, the sum of")
names = [f"{part.column}: {part.value}" if part.value is not None else part.column for part in explanation.columns]
for name, part in zip(names, explanation.columns, strict=True):
    print(f"  {part.product:+.2f}  {name}")

figure, ax = plt.subplots(figsize=(8, 3.5), layout="constrained")
parts = [part.product for part in explanation.columns]
ax.barh([shorten(name, 50, placeholder=" …") for name in names], parts, color=["C3" if part < 0 else "C0" for part in parts])
ax.invert_yaxis()
ax.set_xlabel("part of the score of repaid")
plt.show()
