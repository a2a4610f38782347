"""Numbers as people write them are numbers, in whatever notation one column has; other texts stay what they are."""

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

from separatrix import TableFeatures
from separatrix.features.columns.notations import Notation


def numbers_of(texts, at=None):
    """The numbers that a column of text is read as."""
    features = TableFeatures(numbers="none").fit({"c": texts})
    assert features.roles_ == {"c": "number"}
    return features.transform({"c": texts if at is None else at}).toarray()[:, 0].tolist()


@pytest.mark.parametrize(
    ("texts", "numbers"),
    [
        (["3,847", "12", "1,200,500", "7.5"], [3847, 12, 1200500, 7.5]),
        (["1 234 567", "2 000", "3"], [1234567, 2000, 3]),
        (["1\u00a0234,5", "2\u202f000,25", "3"], [1234.5, 2000.25, 3]),
        (["1.234,5", "1.000.000", "2,5"], [1234.5, 1e6, 2.5]),
        (["1'234", "5.5", "1\u2019000'000"], [1234, 5.5, 1e6]),
        (["0,94", "1,5", "12"], [0.94, 1.5, 12]),
        (["0,940", "1,234", "3,847"], [0.940, 1.234, 3.847]),
        (["$9.42", "-$3", "($3.00)", "$-4", "\u2212$5", "12"], [9.42, -3, -3, -4, -5, 12]),
        (["€ 12,50", "€ 3,99", "1.234,00 €"], [12.5, 3.99, 1234]),
        (["12.50 EUR", "3 EUR", "1,000.25EUR"], [12.5, 3, 1000.25]),
        (["12 %", "3.5%", "-1%"], [12, 3.5, -1]),
        (["Rs. 1,200.50", "Rs. 3"], [1200.5, 3]),
        ([" $1 ", "$2"], [1, 2]),
        (["1.234,50-", "3,5", "12,00-"], [-1234.5, 3.5, -12]),
        (["1,234E+03", "2,5e-1", "-3E2", "1,5E1-"], [1234, 0.25, -300, -15]),
        (["1.5E3 EUR", "2 EUR", "3- EUR"], [1500, 2, -3]),
    ],
)
def test_a_column_in_one_notation_is_numbers(texts, numbers):
    assert numbers_of(texts) == numbers
    assert numbers_of(pd.Series(texts)) == numbers
    assert numbers_of(pa.array(texts, pa.large_string())) == numbers


@pytest.mark.parametrize(
    "texts",
    [
        ["$3", "€ 4", "$5", "€ 6"],
        ["12%", "0.12", "13%"],
        ["1.2.3", "1.10.0", "2.0.1"],
        ["192.168.1.1", "10.0.0.1", "10.0.0.2"],
        ["10-20", "20-30", "30-40"],
        ["1,234E", "2-,5", "-3,5-"],
        ["3 kg", "4 kg", "5 kg"],
        ["079 123 456", "012 345 678", "079 123 456"],
        ["3,847", "many", "1,200"],
        ["007", "042", "100"],
        ["1", "2", "3"],
        [",", ".", "%"],
    ],
)
def test_other_texts_stay_what_they_are(texts):
    assert TableFeatures().fit({"c": texts}).roles_["c"] in ("category", "text")


def test_typed_categories_are_not_read_as_numbers():
    assert TableFeatures().fit(pd.DataFrame({"c": pd.Categorical(["$3", "$4"])})).roles_ == {"c": "category"}


@pytest.mark.parametrize(
    ("texts", "note"),
    [
        (["3,847", "12"], "'3,847' is read as 3847,"),
        (["€ 1.234", "€ 2.500"], "'€ 1.234' is read as 1.234,"),
        (["3,847", "12", "1,200.5"], None),
        (["3,847", "1,234,567"], None),
        (["0,94", "3,847"], None),
        (["$3", "$4"], None),
    ],
)
def test_a_note_says_how_ambiguous_numbers_are_read(texts, note):
    (said,) = TableFeatures().fit({"c": texts}).notes_ or [None]
    assert said is None if note is None else note in said


def test_a_few_errors_are_missing_with_a_note_and_later_too():
    texts = [f"${k}.50" for k in range(100)] + ["unknown", None]
    features = TableFeatures(numbers="none").fit({"c": texts})
    assert features.roles_ == {"c": "number"}
    assert "column 'c': 1 value is not a number such as $1,234.5 ('unknown'): taken for missing" in features.notes_
    assert features.transform({"c": ["n/k", "$2"]}).toarray().tolist() == [[0, 1], [2, 0]]
    again = TableFeatures.from_state(*features.get_state())
    assert again.notes_ == features.notes_
    assert again.transform({"c": ["n/k"]}).toarray().tolist() == [[0, 1]]
    for missing in ([*texts[:40], "unknown"], texts + ["#NV", "k.A.", "-"] * 9):  # these say that there is no number
        assert TableFeatures().fit({"c": missing}).roles_ == {"c": "number"}
    for too_many in ([*texts[:40], "sold"], texts + ["sold"] * 3, texts[:40] + ["unknown"] * 41):
        assert TableFeatures().fit({"c": too_many, "x": np.arange(len(too_many)) % 3}).roles_["c"] in ("drop", "category")


def test_errors_after_the_first_block_are_missing_too(monkeypatch):
    monkeypatch.setattr("separatrix.features.columns.arrow_columns.BLOCK_ROWS", 50)
    features = TableFeatures(numbers="none")
    for k in range(12):
        features.partial_fit({"c": [f"${10 * k + j}.25" for j in range(9)] + ["?" if k > 8 else "$1"]})
    assert features.roles_ == {"c": "number"}
    assert ["3 values are not a number" in note for note in features.notes_] == [True]
    assert features.transform({"c": ["?", "$2"]}).toarray().tolist() == [[0, 1], [2, 0]]


def test_a_value_that_does_not_fit_is_named_at_prediction():
    features = TableFeatures().fit({"c": ["3,847.5", "12"]})
    with pytest.raises(ValueError, match=r"row 1, column 'c': 'many' is not a number such as 1,234.5, as those learned"):
        features.transform({"c": ["12", "many"]})
    with pytest.raises(ValueError, match="'0,94' is not a number"):
        features.transform({"c": ["0,94"]})


def test_numbers_at_prediction_are_numbers_whatever_the_notation():
    assert numbers_of(["1.234,5", "0,5"], at=[1.234, 2.0]) == [1.234, 2.0]
    assert numbers_of(["12 %", "3 %"], at=pa.array([5, 6], pa.int8())) == [5, 6]


def test_a_role_that_is_asked_for_reads_the_notation():
    features = TableFeatures(numbers="none", roles={"c": "number"}).fit({"c": ["$1", "$2.5", "unknown"]})
    assert features.transform({"c": ["$7", "unknown"]}).toarray().tolist() == [[7, 0], [0, 1]]
    plain = TableFeatures(numbers="none", roles={"c": "number"}).fit({"c": ["1", "2.5"]})
    assert plain.transform({"c": ["7"]}).toarray().tolist() == [[7]]
    with pytest.raises(ValueError, match="'many' is text, where numbers were learned from"):
        TableFeatures(roles={"c": "number"}).fit({"c": ["many", "words"]})


def test_numbers_that_identify_rows_are_left_out_in_any_notation():
    features = TableFeatures().fit({"id": [f"{k:,}" for k in range(1000, 1100)], "x": np.arange(100) % 7})
    assert features.roles_ == {"id": "drop", "x": "number"}


def test_texts_that_are_not_utf_8_are_no_numbers():
    texts = pa.array([b"$1"] * 99 + [b"\xff"], pa.binary())
    features = TableFeatures(numbers="none").fit(pa.table({"c": texts}))
    assert features.roles_ == {"c": "number"}
    assert features.transform(pa.table({"c": texts})).toarray()[-1].tolist() == [0, 1]


def test_a_notation_describes_and_saves_itself():
    notation = Notation(".", ",", "€", False)
    assert notation.describe() == "a number such as €1.234,5"
    assert Notation(**notation.state()) == notation


@pytest.mark.parametrize(
    ("learned", "others", "word", "first"),
    [
        ([f"{k % 9 + 1}.{k:03},50 €" for k in range(100)], ["2,687.99 €", "788.27 €"], "#NV", "2,687.99 €"),
        ([f"{k % 28 + 1}.{k % 12 + 1}.2024" for k in range(100)], ["Mar 25, 2024", "20240325"], "k.A.", "Mar 25, 2024"),
    ],
)
def test_a_column_written_in_another_way_is_refused_though_errors_were_learned_from(learned, others, word, first):
    features = TableFeatures().fit({"c": [*learned, word]})
    assert features.transform({"c": [word, "sold", None]}).shape[0] == 3  # no numbers or dates: missing
    assert features.transform({"c": [*learned[:5], *others]}).shape[0] == 7  # as few as when learning
    for values in (others, others[:1], [*others, word, learned[0]]):
        with pytest.raises(ValueError, match=rf"row \d, column 'c': '{first}' is not a .* such as"):
            features.transform({"c": values})
