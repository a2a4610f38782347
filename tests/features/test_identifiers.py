"""Identifiers are told from measurements, in whole files, folds and hold-outs, in order and shuffled."""

import numpy as np
import pytest
from sklearn.model_selection import KFold, cross_val_score
from sklearn.pipeline import make_pipeline

from separatrix import AveragedPerceptron, TableFeatures
from separatrix.features.columns.identifiers import is_named_like_identifier
from support.passengers import passengers

N = 900
DRAW = np.random.default_rng(0)
OTHER = {"x": DRAW.normal(size=N), "kind": DRAW.choice(["a", "b", "c"], N)}
ROWS = np.arange(1, N + 1)


def decision(name: str, values: np.ndarray) -> tuple[str, str]:
    """Return the role of a column beside two others, and the note on it."""
    n = len(values)
    features = TableFeatures().fit({name: values} | {other: column[:n] for other, column in OTHER.items()})
    notes = [note for note in features.notes_ if repr(name) in note]
    assert len(notes) <= 1
    return features.roles_[name], "".join(notes)


def orders(values: np.ndarray) -> list[np.ndarray]:
    """Return values as they are, reversed, shuffled, with a quarter held out, and a fold of each kind."""
    shuffled = np.random.default_rng(1).permutation(values)
    kept = np.random.default_rng(2).random(len(values)) > 0.25
    return [values, values[::-1], shuffled, values[kept], values[len(values) // 5 :], shuffled[len(values) // 5 :]]


@pytest.mark.parametrize(
    "name",
    [
        *"id ID Id _id PassengerId customer_id CustomerID userid CLIENTNUM customer_no CustomerNumber account index".split(),
        *"row key uuid no nr rowid row_number record_id id_client ID_code idx order_key EmployeeNumber rownames id2".split(),
        *("Unnamed: 0", "", "Customer ID", "S. No.", "customer number", "#", "row index"),
    ],
)
def test_names_of_identifiers(name):
    assert is_named_like_identifier(name)


@pytest.mark.parametrize(
    "name",
    [
        *"humid paid acid grid solid android covid bid madrid druid liquid price_index body_mass_index rooms_number".split(),
        *"number_of_rooms n_rooms zip salary population year age customers users no_of_children keyboard monkey".split(),
        *"rowing hidden idea width video x0 x y c fnlwgt order rank identity".split(),
        *("price paid", "no. of doors"),
    ],
)
def test_names_of_measurements(name):
    assert not is_named_like_identifier(name)


def test_a_column_without_a_title_is_one_that_the_reader_named():
    assert is_named_like_identifier("c0", ["c0", "age", "job"])
    assert not is_named_like_identifier("c0", ["c0", "c1", "c2"])
    assert not is_named_like_identifier("c0", ["c0"])


@pytest.mark.parametrize("name", ["PassengerId", "Unnamed: 0", "id", "c0"])
@pytest.mark.parametrize("start", [0, 1, 1000, 1_000_000])
def test_row_numbers_with_a_name_are_left_out_in_any_order_and_part(name, start):
    for values in orders(ROWS + start):
        role, note = decision(name, values)
        assert role == "drop"
        assert f"looks like an identifier (its name, {len(values)} different whole numbers in {len(values)} rows" in note
        assert note.endswith(f": left out; keep it with roles={{{name!r}: 'number'}}")


@pytest.mark.parametrize("name", ["customer_id", "customer_no", "account", "CLIENTNUM"])
@pytest.mark.parametrize("n", [15, 150, N])
def test_customer_numbers_are_left_out(name, n):
    values = np.unique(np.exp(DRAW.uniform(np.log(1e5), np.log(1e8), n)).astype(np.int64))
    for each in orders(DRAW.permutation(values)):
        assert decision(name, each)[0] == "drop"


def test_a_few_repeats_and_gaps_do_not_save_an_identifier():
    values = ROWS.astype(np.float64)
    values[::20] = np.nan
    assert decision("id", values)[0] == "drop"
    values = np.random.default_rng(3).permutation(N)
    values[:40] = values[40:80]
    assert decision("id", values)[0] == "drop"


def test_row_numbers_without_a_name_are_left_out_in_order_and_noted_shuffled():
    for values, role in zip(orders(ROWS), ["drop", "drop", "number", "drop", "drop", "number"], strict=True):
        found, note = decision("c", values)
        assert found == role
        assert "looks like an identifier" in note
        assert ("in order" in note) == (role == "drop")
        if role == "number":
            assert note.endswith("kept; leave it out with roles={'c': 'drop'}")


def test_one_sign_is_noted_and_the_column_kept():
    uneven = np.cumsum(DRAW.integers(1, 100_000, N))  # order: a table sorted by a real measurement
    long = DRAW.choice(np.arange(10_000_000, 99_999_999), N, replace=False)  # form: long numbers of one length
    repeated = DRAW.integers(0, N, N)  # name: not nearly all different
    fractions = DRAW.normal(size=N)
    for name, values in (("population", uneven), ("c", long), ("user_id", repeated), ("id", fractions)):
        role, note = decision(name, values)
        assert role == "number"
        assert f"kept; leave it out with roles={{{name!r}: 'drop'}}" in note


MEASUREMENTS = {
    "fractions": DRAW.normal(size=150),
    "fractions, sorted": np.sort(DRAW.normal(size=150)),
    "fractions, ascending as ids do": np.arange(150) + 0.5,
    "years": np.arange(1900, 2020),
    "years, shuffled": DRAW.permutation(np.arange(1900, 2020)),
    "months": np.array([100 * year + month for year in range(2000, 2021) for month in range(1, 13)]),
    "days": 20230100 + np.add.outer(100 * np.arange(12), np.arange(1, 29)).ravel(),
    "seconds since 1970": 1_700_000_000 + np.arange(N),
    "milliseconds since 1970, a minute apart": 1_700_000_000_000 + 60_000 * np.arange(N),
    "prices": DRAW.integers(100_000, 900_000, 150) // 1000 * 1000,
    "salary": DRAW.lognormal(10.5, 0.5, 300).astype(int),
    "population": DRAW.lognormal(10, 2, 500).astype(int),
    "zip codes": DRAW.integers(10000, 99999, N),
    "weights of a sample": DRAW.integers(12_000, 1_400_000, N),
    "distinct by chance": DRAW.choice(np.arange(100_000), 30, replace=False),
    "few": np.arange(12),
}


@pytest.mark.parametrize("name", MEASUREMENTS)
def test_measurements_stay_without_a_word(name):
    for values in orders(MEASUREMENTS[name]):
        assert decision("measured", values) == ("number", "")


def test_measurements_sorted_by_their_values_stay():
    for name in ("salary", "population", "weights of a sample", "distinct by chance"):
        assert decision("measured", np.unique(MEASUREMENTS[name]))[0] == "number"
    assert decision("age", np.sort(DRAW.permutation(np.arange(20, 81))[:30]))[0] == "number"


def test_text_that_is_different_in_most_rows_says_how_to_keep_it():
    role, note = decision("ticket", np.array([f"A/{k:05}" for k in range(N)]))
    assert role == "drop"
    assert (
        note == "column 'ticket' has 900 different values in 900 rows: left out; keep it with roles={'ticket': 'category'}"
    )


def test_the_decision_is_stored_with_the_features():
    table = {"id": ROWS} | OTHER
    state, arrays = TableFeatures().fit(table).get_state()
    features = TableFeatures.from_state(state, arrays)
    assert features.roles_["id"] == "drop"
    few = {name: values[:3] for name, values in table.items()}
    del few["id"]
    assert features.transform(few).shape[0] == 3


@pytest.mark.parametrize("shuffle", [False, True])
def test_an_identifier_costs_a_cross_validated_classifier_nothing(shuffle):
    table, survived = passengers(0)
    folds = KFold(5, shuffle=shuffle, random_state=0 if shuffle else None)
    model = make_pipeline(TableFeatures(), AveragedPerceptron(random_state=0))
    with_id = cross_val_score(model, table, survived, cv=folds).mean()
    without = cross_val_score(model, table.drop(columns="PassengerId"), survived, cv=folds).mean()
    assert abs(with_id - without) <= 0.01
    assert without > (survived == "no").mean() + 0.05


@pytest.mark.parametrize("name", ["Invoice", "loan", "claim", "transaction"])
def test_amounts_in_a_small_table_stay_and_numbers_of_their_papers_do_not(name):
    amounts = np.random.default_rng(3).choice(np.arange(10_000, 90_000), 60, replace=False)
    assert decision(name, amounts)[0] == "number"
    assert decision(f"{name}_id", amounts)[0] == "drop"
