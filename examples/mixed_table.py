"""A table of numbers, categories, booleans and remarks with missing values: roles, accuracy, an explanation."""

import random

from separatrix import AveragedPerceptron, Model, TableFeatures, explain

draw = random.Random(7)
REMARKS = ("the line drops every evening", "very happy with the service", None)


def customer():
    """Return a made-up customer: complaints and calls to support leave, long contracts stay."""
    months, calls = draw.randint(1, 72), draw.choice([0, 0, 0, 1, 1, 2, 3, 5, 8])
    plan, remark = draw.choice(["basic", "plus", "family"]), draw.choice(REMARKS)
    pull = 1.2 * (plan == "basic") + 0.5 * calls - 0.05 * months + 1.5 * (remark == REMARKS[0]) + draw.gauss(0, 0.5)
    if draw.random() < 0.05:
        months = None
    row = {"months": months, "calls": calls, "plan": plan, "paperless": draw.random() < 0.5, "remark": remark}
    return row, "leaves" if pull > 0.8 else "stays"


people = [customer() for _ in range(1_000)]
labels = [label for _, label in people]
table = {column: [row[column] for row, _ in people] for column in people[0][0]}
train = {column: values[:800] for column, values in table.items()}
test = {column: values[800:] for column, values in table.items()}

features = TableFeatures(roles={"remark": "text"}).fit(train)
print(features.describe())
learner = AveragedPerceptron(rule="pa1", max_iter=10, random_state=0).fit(features.transform(train), labels[:800])
model = Model(learner, features)
right = (model.predict(test) == labels[800:]).mean()
print(f"\nright on {right:.3f} of the other 200; always saying {labels[0]!r}: {labels[800:].count(labels[0]) / 200:.3f}")

row, label = people[821]
explanation = explain(model, row)
score = f"score {explanation.score:+.3f}, where below 0 leaves"
print(f"\n{row}\n{label}; predicted: {explanation.prediction}, {score}; the sum of")
for part in explanation.columns:
    print(f"  {part.column:10}{part.product:+.3f}")
