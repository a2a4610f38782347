"""Exports predict the same on real tables, with gaps and with categories that were not learned from."""

import pandas as pd

from separatrix import AveragedPerceptron, Model, TableFeatures
from support.exported_models import assert_same, fitted_model

ADULT = [
    "age",
    "work",
    "weight",
    "school",
    "years",
    "married",
    "job",
    "kin",
    "race",
    "sex",
    "gain",
    "loss",
    "hours",
    "land",
    "y",
]


def test_adult(data_folder):
    markers = {"skipinitialspace": True, "na_values": "?", "header": None, "names": ADULT}
    train, test = (pd.read_csv(data_folder / "adult" / f"adult-{part}.csv.gz", **markers) for part in ("train", "test"))
    test = test[test["age"].notna()]
    for numbers in ("bins", "standard"):
        learner = AveragedPerceptron(random_state=0, max_iter=3, calibrate="sigmoid")
        model = fitted_model(learner, TableFeatures(numbers=numbers), train[ADULT[:-1]], train["y"])
        assert_same(model, test[ADULT[:-1]].astype({"age": float}))


def test_a_tenth_of_the_kdd_sample(data_folder):
    parts = [
        pd.read_csv(data_folder / "kddcup99" / name, header=None) for name in ("kddcup.data_10_percent.gz", "corrected.gz")
    ]
    train, test = (part.rename(columns=str) for part in (parts[0][::10], parts[1][::100]))
    model = Model(AveragedPerceptron(random_state=0, max_iter=2), TableFeatures())
    model.fit(train.drop(columns="41"), train["41"])
    assert len(model.classes_) > 15
    test.iloc[:5, 2] = "never met"
    assert_same(model, test.drop(columns="41"))


def test_auto_mpg(data_folder):
    names = ["mpg", "cylinders", "displacement", "horsepower", "weight", "acceleration", "year", "origin", "name"]
    frame = pd.read_csv(data_folder / "auto_mpg" / "auto-mpg.data", sep=r"\s+", header=None, names=names, na_values="?")
    assert frame["horsepower"].isna().sum() == 6
    for numbers in ("bins", "standard", "max-abs", "none"):
        features = TableFeatures(numbers=numbers, roles={"name": "drop"})
        model = Model(AveragedPerceptron(random_state=0, calibrate="sigmoid"), features)
        model.fit(frame.drop(columns="origin"), frame["origin"])
        assert_same(model, frame.drop(columns="origin"))
