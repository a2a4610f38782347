"""Identifiers are told from measurements, in whole files, folds and hold-outs, in order and shuffled."""

import numpy as np
import pytest
from sklearn.model_selection import KFold, cross_val_score
from sklearn.pipeline import make_pipeline

from separatrix import AveragedPerceptron, TableFeatures
from separatrix.features.columns.identifiers import SMALL, Naming, naming_of, signs_of
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


def decision_without_titles(values: np.ndarray) -> tuple[str, str]:
    """Return the role of the first of three columns without titles, and the note on it."""
    n = len(values)
    features = TableFeatures().fit({"c0": values, "c1": OTHER["x"][:n], "c2": OTHER["kind"][:n]})
    return features.roles_["c0"], "".join(features.notes_)


def orders(values: np.ndarray) -> list[np.ndarray]:
    """Return values as they are, reversed, shuffled, with a quarter held out, and a fold of each kind."""
    shuffled = np.random.default_rng(1).permutation(values)
    kept = np.random.default_rng(2).random(len(values)) > 0.25
    return [values, values[::-1], shuffled, values[kept], values[len(values) // 5 :], shuffled[len(values) // 5 :]]


@pytest.mark.parametrize(
    "name",
    [
        *"id ID Id _id PassengerId customer_id CustomerID userid uuid key rowid record_id id_client ID_code".split(),
        *"id2 order_key SK_ID_CURR SK_ID_PREV pid oid objid appid idclient clientid Kundennummer ID_Kunde matricule".split(),
        *("Unnamed: 0", "", "Customer ID", "#", "row index", "__index_level_0__", "UserID "),
    ],
)
def test_names_of_identifiers(name):
    assert naming_of(name) is Naming.IDENTIFIER


@pytest.mark.parametrize(
    "name",
    [
        *"CLIENTNUM customer_no CustomerNumber account index row no nr row_number EmployeeNumber rownames idx".split(),
        *"ORDERNUMBER passenger_num numero_client reference sample_idx product".split(),
        *("S. No.", "customer number", "Kunden-Nr.", "numéro"),
    ],
)
def test_names_of_numbers_that_may_be_handed_out(name):
    assert naming_of(name) is Naming.NUMBER


@pytest.mark.parametrize(
    "name", "follower_num visitor_number atomic_number cetane_number id_score id_confidence nct_number".split()
)
def test_names_of_quantities(name):
    assert naming_of(name) is Naming.QUANTITY


@pytest.mark.parametrize(
    "name",
    [
        *"humid paid acid grid solid android covid bid madrid druid liquid price_index body_mass_index rooms_number".split(),
        *"number_of_rooms n_rooms zip salary population age customers users no_of_children keyboard monkey".split(),
        *"rowing hidden idea width video x0 x y c fnlwgt order rank identity level_1 mid kid numerology".split(),
        *("price paid", "no. of doors"),
    ],
)
def test_names_of_measurements(name):
    assert naming_of(name) is Naming.NOTHING


def test_a_column_without_a_title_is_one_that_the_reader_named():
    assert naming_of("c0", ["c0", "age", "job"]) is Naming.IDENTIFIER
    assert naming_of("c0", ["c0", "c1", "c2"]) is Naming.UNTITLED
    assert naming_of("c0", ["c0"]) is Naming.UNTITLED


@pytest.mark.parametrize("name", ["PassengerId", "Unnamed: 0", "id", "c0"])
@pytest.mark.parametrize("start", [0, 1, 1000, 1_000_000])
def test_row_numbers_with_a_name_are_left_out_in_any_order_and_part(name, start):
    for values in orders(ROWS + start):
        role, note = decision(name, values)
        assert role == "drop"
        assert f"looks like an identifier (its name, {len(values)} different whole numbers in {len(values)} rows" in note
        assert note.endswith(f": left out; keep it with roles={{{name!r}: 'number'}}")


@pytest.mark.parametrize("n", [15, 150, N])
def test_customer_numbers_are_left_out(n):
    values = np.unique(np.exp(DRAW.uniform(np.log(1e5), np.log(1e8), n)).astype(np.int64))
    for each in orders(DRAW.permutation(values)):
        assert decision("customer_id", each)[0] == "drop"
        assert decision("customer_no", each)[0] == "number"  # of several lengths, they may count something


@pytest.mark.parametrize("name", ["customer_no", "account", "CLIENTNUM", "product", "index"])
@pytest.mark.parametrize("n", [60, 150, N])
@pytest.mark.parametrize("range_of_values", [(10_000, 100_000), (708_000_000, 829_000_000)])
def test_numbers_of_one_length_are_left_out_where_the_name_agrees(name, n, range_of_values):
    draw = np.random.default_rng(n)
    for each in orders(draw.permutation(np.unique(draw.integers(*range_of_values, n)))):
        assert decision(name, each)[0] == "drop"


@pytest.mark.parametrize("name", ["row", "index", "no", "RowNumber"])
@pytest.mark.parametrize("n", [12, 60, N])
def test_row_numbers_are_left_out_where_the_name_may_mean_them(name, n):
    for values in (np.arange(n), np.arange(1, n + 1), DRAW.permutation(n)):
        assert decision(name, values)[0] == "drop"


def small_measurements() -> dict[str, np.ndarray]:
    """Return measurements of small tables whose names or order are those of identifiers."""
    draw = np.random.default_rng(8)
    return {
        "follower_num": (10 ** draw.uniform(1, 6, 300)).astype(int),
        "visitor_number": draw.integers(1000, 90_000, 100),
        "monthly visitor number": draw.integers(30_000, 80_000, 100),
        "passenger_num": draw.integers(1000, 90_000, 100),
        "population_number": draw.integers(10**4, 10**7, 100),
        "atomic_number": np.arange(1, 93),
        "cetane_number": draw.permutation(np.arange(30, 70))[:12],
        "iodine no": draw.permutation(200)[:15],
        "account": draw.integers(100, 50_000, 60),
        "index": draw.integers(3500, 4800, 40),
        "product": draw.permutation(10**5)[:50],
        "policy": draw.permutation(10**4)[:40],
        "id_score": draw.permutation(10**4)[:40],
        "hp": np.sort(draw.permutation(200)[:100] + 50),
        "age": np.sort(draw.permutation(np.arange(18, 78))[:50]),
        "temperature": np.arange(20, 60),
        "depth": np.arange(0, 200, 2),
        "wavelength": np.arange(698, 398, -2),
        "day": np.arange(1, 366),
        "week": np.arange(1, 53),
        "time": np.arange(900),
    }


@pytest.mark.parametrize("name", small_measurements())
def test_measurements_of_small_tables_stay(name):
    values = small_measurements()[name]
    assert decision(name, values)[0] == "number"
    assert decision(name, np.sort(values))[0] == "number"


def test_columns_of_large_tables_are_left_out_by_form_and_order():
    for n in (SMALL, SMALL - 1):
        signs = signs_of("measured", np.arange(float(n)))
        assert signs.words == [f"{n:,} different whole numbers in {n:,} rows", "in order"]
        assert signs.enough == (n == SMALL)
    assert not signs_of("time", np.arange(5000.0)).enough
    assert signs_of("atomic_number", np.arange(5000.0)).enough


@pytest.mark.parametrize("first", [1_000_000_001, 700_000_000, 1_700_000_000_000, 1600])
def test_consecutive_numbers_that_might_be_times_are_noted_and_left_out_where_the_name_agrees(first):
    values = first + np.arange(500)
    for order in (values, np.random.default_rng(0).permutation(values)):
        role, note = decision("measured", order)
        assert role == "number"
        assert note.endswith("kept; leave it out with roles={'measured': 'drop'}")
        assert decision("reference", order)[0] == "drop"
        assert decision("timestamp", order) == ("number", "")
    if first > 2000:
        assert not signs_of("measured", first + np.arange(5000.0)).enough


@pytest.mark.parametrize("name", ["account", "index", "customer_no"])
def test_fractions_and_negative_numbers_are_no_numbers_of_customers(name):
    assert decision(name, DRAW.normal(size=N)) == ("number", "")
    assert decision(name, DRAW.permutation(N) - 100) == ("number", "")


def test_a_few_repeats_and_gaps_do_not_save_an_identifier():
    values = ROWS.astype(np.float64)
    values[::20] = np.nan
    assert decision("id", values)[0] == "drop"
    values = np.random.default_rng(3).permutation(N)
    values[:40] = values[40:80]
    assert decision("id", values)[0] == "drop"


def test_row_numbers_without_titles_are_left_out_in_order_and_noted_shuffled():
    for values, role in zip(orders(ROWS), ["drop", "drop", "number", "drop", "drop", "number"], strict=True):
        found, note = decision_without_titles(values)
        assert found == role
        assert "looks like an identifier" in note
        assert ("in order" in note) == (role == "drop")
        if role == "number":
            assert note.endswith("kept; leave it out with roles={'c0': 'drop'}")


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
    "years": np.repeat(np.arange(1900, 2020), 2)[DRAW.permutation(240)],
    "years, some left out": np.delete(np.arange(1900, 2020), [3, 50]),
    "months": np.array([100 * year + month for year in range(2000, 2021) for month in range(1, 13)]),
    "days": 20230100 + np.add.outer(100 * np.arange(12), np.arange(1, 29)).ravel(),
    "seconds since 1970": 1_700_000_000 + np.cumsum(DRAW.integers(1, 9, N)),
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
