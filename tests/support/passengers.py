"""A made-up list of passengers: an identifier, a class, a sex, an age, a fare, a ticket, a name, and survival."""

import numpy as np
import pandas as pd

NAMES = (
    "Allen Berg Cook Dale Evans Frost Grant Hill Irwin Jones Kelly Lane Moore Nash Olsen Price Quinn Reed Stone Todd".split()
)


def passengers(seed: int, n: int = 891) -> tuple[pd.DataFrame, np.ndarray]:
    """Return the table and the labels."""
    draw = np.random.default_rng(seed)
    rank = draw.choice([1, 2, 3], n, p=[0.24, 0.21, 0.55])
    sex = draw.choice(["male", "female"], n, p=[0.65, 0.35])
    age = np.round(np.clip(draw.normal(41 - 5 * rank, 13), 0.5, 80))
    age[draw.random(n) < 0.2] = np.nan
    fare = np.round(draw.lognormal(5.2 - 1.1 * rank, 0.5), 2)
    ticket = [f"{draw.choice(['PC ', 'A/5 ', '', ''])}{number}" for number in draw.integers(10_000, 400_000, n)]
    title = np.where(sex == "male", "Mr.", "Mrs.")
    first = draw.choice(NAMES, (n, 2))
    name = [f"{last} {k}, {mr} {given}" for k, ((last, given), mr) in enumerate(zip(first, title, strict=True))]
    score = 2.6 * (sex == "female") - 1.0 * (rank - 2) - 0.02 * np.nan_to_num(age, nan=30) - 0.9
    survived = draw.random(n) < 1 / (1 + np.exp(-score))
    table = pd.DataFrame(
        {
            "PassengerId": np.arange(1, n + 1),
            "Pclass": rank,
            "Name": name,
            "Sex": sex,
            "Age": age,
            "Ticket": ticket,
            "Fare": fare,
        }
    )
    return table, np.where(survived, "yes", "no")
