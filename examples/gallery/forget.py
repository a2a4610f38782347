"""A patient withdraws consent: delete one person's row from a trained model, and prove that it is gone."""

import tempfile
from pathlib import Path

import numpy as np
from sklearn.datasets import load_breast_cancer

from separatrix import forget, load, train
from separatrix.training.forgetting.checking import fault_of

tumours = load_breast_cancer(as_frame=True)
table = tumours.data.assign(diagnosis=tumours.target_names[tumours.target])
patient = 73

with tempfile.TemporaryDirectory() as folder:
    everyone, others, file = (Path(folder) / name for name in ("everyone.csv", "others.csv", "model.sepx"))
    table.to_csv(everyone, index=False)
    train(everyone, label="diagnosis", output=file)

    model = load(file)
    mistaken = model.estimator.ledger_.example
    print(f"of {len(mistaken)} mistakes that made the weights, {np.sum(mistaken == patient)} were about row {patient}")
    without, receipt = forget(model, patient, everyone, "diagnosis")
    print(receipt)

    # The proof needs neither the patient's row nor trust in `forget`: it trains on the others, and compares every bit.
    table.drop(index=patient).to_csv(others, index=False)
    print("\non the other 568 rows, what is wrong with the receipt?", fault_of(receipt, others, "diagnosis"))
    print("and on the rows of everyone?", fault_of(receipt, everyone, "diagnosis"))

# What it changes: the weights had been pulled towards this patient, and no longer are.
changed = np.sum(model.predict(table) != without.predict(table))
before, after = (each.decision_function(table.iloc[[patient]])[0] for each in (model, without))
print(f"\npredictions that changed: {changed} of {len(table)}; this patient's score: {before:.3f}, now {after:.3f}")
