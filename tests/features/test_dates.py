"""Dates and times, written or typed, become year, month, day of the week, hour and an ordinal under names that say so."""

import datetime

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from separatrix import TableFeatures
from separatrix.features.columns.date_forms import DateForm
from support.text_corpus import same, same_state


def read(texts, name="c"):
    """The form of a column of texts and what they are read as."""
    features = TableFeatures().fit({name: texts})
    assert features.roles_ == {name: "date"}
    form = features.schema.roles[name].form
    return form.order, [str(t) for t in form.parsed(pa.array(texts, pa.large_binary())).to_pylist()]


@pytest.mark.parametrize(
    ("texts", "order", "first"),
    [
        (["2024-03-01", "2023-12-31"], "year first", "2024-03-01 00:00:00"),
        (["2024-03-01T12:30:00Z", "2023-12-31T00:00:00Z"], "year first", "2024-03-01 12:30:00"),
        (["2024-03-01 12:30", "2023-12-31 1:05"], "year first", "2024-03-01 12:30:00"),
        (["2024-03-01T12:30:00.123456+02:00", "2023-12-31 00:00:00.5 +0100"], "year first", "2024-03-01 12:30:00"),
        (["2024/3/1", "2023/12/31"], "year first", "2024-03-01 00:00:00"),
        (["01/03/2024", "25/12/2023"], "day first", "2024-03-01 00:00:00"),
        (["03/25/2024", "01/02/2024"], "month first", "2024-03-25 00:00:00"),
        (["03/25/2024 1:05 PM", "01/02/2024 12:05 am"], "month first", "2024-03-25 13:05:00"),
        (["1.3.2024", "25.3.2024"], "day first", "2024-03-01 00:00:00"),
        (["03.25.2024", "1.2.2024"], "month first, dots", "2024-03-25 00:00:00"),
        (["25.12.99", "1.1.00"], "day first", "1999-12-25 00:00:00"),
        (["25-Mar-2024", "1-apr-2024"], "day and name", "2024-03-25 00:00:00"),
        (["25 March 2024", "1 May 2024"], "day and name", "2024-03-25 00:00:00"),
        (["Mon, 25 Mar 2024 12:30:45 GMT", "Tue, 26 Mar 2024 00:00:00 GMT"], "day and name", "2024-03-25 12:30:45"),
        (["25/Mar/2024:12:30:45 +0000", "26/Mar/2024:00:00:01 +0000"], "day and name", "2024-03-25 12:30:45"),
        (["Mar 25, 2024", "April 5, 2023"], "name and day", "2024-03-25 00:00:00"),
        (["20141013T000000", "20150101T120000"], "digits", "2014-10-13 00:00:00"),
        (["12:30", "08:15:20", "23:59"], "time", "1970-01-01 12:30:00"),
        (["7:05 pm", "12:00 AM"], "time", "1970-01-01 19:05:00"),
    ],
)
def test_written_forms(texts, order, first):
    found, dates = read(texts)
    assert (found, dates[0]) == (order, first)


def test_dots_do_not_follow_slashes_with_the_month_first():
    form = TableFeatures().fit({"d": ["03/25/2024", "01/02/2024"]}).schema.roles["d"].form
    assert form.parsed(pa.array([b"5.6.2024", b"5/6/2024"], pa.large_binary())).null_count == 1


def test_twelve_hours():
    assert read(["12:00 AM", "12:30 pm", "1:00 a.m."])[1] == [
        "1970-01-01 00:00:00",
        "1970-01-01 12:30:00",
        "1970-01-01 01:00:00",
    ]


@pytest.mark.parametrize(
    "texts",
    [
        ["2024-13-01", "2024-02-30", "2023-02-29"],
        ["01/13/2024", "13/01/2024", "02/01/2024"],
        ["25:30", "12:61", "30:00"],
        ["20240325", "20240326", "20240327"],
        ["1-2-3", "4-5-6", "7-8-9"],
        ["12/80", "120/80", "110/70"],
        ["2000-01", "2001-02", "2013-14"],
        ["May", "March 3", "June"],
        ["room 12:30", "room 13:30"],
        ["2024", "2023"],
    ],
)
def test_other_texts_are_no_dates(texts):
    assert TableFeatures().fit({"c": texts}).roles_ == {"c": "category"}


def test_eight_digits_are_dates_where_the_name_says_so():
    numbers = [20240325, 20231231, 20200229]
    for holder in ({"sale_date": numbers}, {"sale_date": [str(number) for number in numbers]}):
        features = TableFeatures().fit(holder)
        assert features.roles_ == {"sale_date": "date"}
        assert "sale_date > 2020-02-29" in features.get_feature_names_out().tolist()
    assert TableFeatures().fit({"c": numbers}).roles_ == {"c": "number"}
    assert TableFeatures().fit({"sale_date": [20240325, 20240399]}).roles_ == {"sale_date": "number"}
    assert TableFeatures().fit({"date": [1711324800, 1711411200]}).roles_ == {"date": "number"}


def test_the_features_and_their_names():
    table = {"signup": ["2023-12-31", "2024-03-01", "2024-03-04", None]}
    features = TableFeatures().fit(table)
    assert features.get_feature_names_out().tolist() == [
        "signup > 2023-12-31",
        "signup > 2024-03-01",
        "signup is missing",
        "signup year > 2023",
        "signup month=12",
        "signup month=3",
        "signup day of week=Sun",
        "signup day of week=Fri",
        "signup day of week=Mon",
    ]
    assert features.transform(table).toarray().tolist() == [
        [0, 0, 0, 0, 1, 0, 1, 0, 0],
        [1, 0, 0, 1, 0, 1, 0, 1, 0],
        [1, 1, 0, 1, 0, 1, 0, 0, 1],
        [0, 0, 1, 0, 0, 0, 0, 0, 0],
    ]
    assert features.describe().splitlines()[1].split() == ["signup", "date", "9", "1"]
    assert features.transform({"signup": ["2030-07-03"]}).toarray().tolist() == [[1, 1, 0, 1, 0, 0, 0, 0, 0]]


def test_hours_are_features_where_it_is_not_always_midnight():
    timed = TableFeatures().fit({"at": ["2024-03-01 12:30", "2024-03-01 00:00"]})
    assert timed.get_feature_names_out().tolist() == [
        "at > 2024-03-01",
        "at month=3",
        "at day of week=Fri",
        "at hour > 0",
        "at hour=12",
        "at hour=0",
    ]
    times = TableFeatures().fit({"at": ["12:30", "00:00", "08:15:20"]})
    assert times.get_feature_names_out().tolist() == ["at > 00:00", "at > 08:15:20", "at hour=12", "at hour=0", "at hour=8"]


def test_scaled_ordinals_where_numbers_are_not_binned():
    features = TableFeatures(numbers="none").fit({"c": ["2024-03-01", "2024-03-03"]})
    assert features.get_feature_names_out().tolist()[:2] == ["c", "c year"]
    assert features.transform({"c": ["2024-03-01", "2024-03-03"]}).toarray()[:, 0].tolist() == [-1, 1]


MOMENTS = [datetime.datetime(2024, 3, 1, 12, 30), datetime.datetime(2023, 12, 31), None, datetime.datetime(2024, 3, 4, 7)]


def test_every_holder_of_dates_gives_the_same():
    expected = TableFeatures().fit(pa.table({"c": pa.array(MOMENTS)}))
    X = expected.transform(pa.table({"c": pa.array(MOMENTS)}))
    texts = [None if moment is None else moment.isoformat(" ") for moment in MOMENTS]
    holders = [
        {"c": MOMENTS},
        pd.DataFrame({"c": MOMENTS}),
        pl.DataFrame({"c": MOMENTS}),
        pd.DataFrame({"c": pd.to_datetime(pd.Series(MOMENTS)).dt.tz_localize("UTC")}),
        pa.table({"c": pa.array(MOMENTS, pa.timestamp("ns"))}),
        {"c": texts},
        {"c": [None if text is None else text.replace(" ", "T") + "+05:00" for text in texts]},
    ]
    for holder in holders:
        ours = TableFeatures().fit(holder)
        assert same(ours.transform(holder), X)
        assert ours.get_feature_names_out().tolist() == expected.get_feature_names_out().tolist()
        assert all(same(features.transform(other), X) for other in holders for features in (ours, expected))


def test_dates_times_and_durations_of_arrow():
    days = TableFeatures().fit({"c": [datetime.date(2024, 3, 1), datetime.date(2024, 3, 4)]})
    assert days.get_feature_names_out().tolist()[0] == "c > 2024-03-01"
    for unit in (pa.time32("s"), pa.time32("ms"), pa.time64("us"), pa.time64("ns")):
        times = TableFeatures().fit({"c": pa.array([datetime.time(7, 30), datetime.time(12)], unit)})
        assert times.get_feature_names_out().tolist() == ["c > 07:30", "c hour=7", "c hour=12"]
    lasting = TableFeatures().fit({"c": [datetime.timedelta(seconds=90), datetime.timedelta(days=1)]})
    assert lasting.get_feature_names_out().tolist() == ["c > 90"]


def test_a_zone_gives_the_time_that_is_read_there():
    moments = pa.array([datetime.datetime(2024, 3, 1, 22, 30), None], pa.timestamp("us", "Europe/Zurich"))
    names = TableFeatures().fit(pa.table({"c": moments})).get_feature_names_out().tolist()
    assert {"c day of week=Fri", "c hour=23"} <= set(names)


def test_dates_before_1970_and_far_away():
    form = DateForm("year first")
    texts = ["0001-01-01", "1969-12-31 23:59:59", "9999-12-31"]
    dates = form.parsed(pa.array(texts, pa.large_binary()))
    assert [str(date) for date in dates.to_pylist()] == ["0001-01-01 00:00:00", "1969-12-31 23:59:59", "9999-12-31 00:00:00"]
    names = TableFeatures().fit({"c": texts}).get_feature_names_out().tolist()
    assert {"c > 0001-01-01", "c > 1969-12-31 23:59:59", "c hour=23", "c day of week=Wed"} <= set(names)


def test_a_note_says_which_comes_first_where_no_value_shows_it():
    features = TableFeatures().fit({"c": ["01/03/2024", "05/06/2024"]})
    (note,) = features.notes_
    assert "'01/03/2024' is read with the day first" in note
    assert "c > 2024-03-01" in features.get_feature_names_out().tolist()
    assert not TableFeatures().fit({"c": ["01/03/2024", "05/16/2024"]}).notes_


def test_errors_among_many_are_missing_with_a_note():
    texts = [f"2024-03-{k % 28 + 1:02d}" for k in range(100)] + ["soon"]
    features = TableFeatures().fit({"c": texts})
    assert features.notes_ == ["column 'c': 1 value is not a date such as 2024-03-25 ('soon'): taken for missing"]
    assert features.transform({"c": ["later"]}).toarray().sum() == 1
    strict = TableFeatures().fit({"c": texts[:-1]})
    with pytest.raises(ValueError, match=r"row 1, column 'c': 'soon' is not a date such as 2024-03-25"):
        strict.transform({"c": ["2024-03-01", "soon"]})


def test_roles_that_are_asked_for():
    by_name = TableFeatures(roles={"c": "date"}).fit({"c": ["20240325", "20240301", "soon"]})
    assert by_name.roles_ == {"c": "date"}
    assert by_name.notes_ != []
    unix = TableFeatures(roles={"c": "date"}).fit({"c": [1711324800, 1711411200]})
    assert unix.get_feature_names_out().tolist()[0] == "c > 2024-03-25"
    for parts in (10**3, 10**6, 10**9):  # pandas gives nanoseconds
        finer = TableFeatures(roles={"c": "date"}).fit({"c": [1711324800 * parts, 1711411200 * parts]})
        assert finer.get_feature_names_out().tolist() == unix.get_feature_names_out().tolist()
        finest, coarsest = finer.transform({"c": [1711411200 * parts]}), unix.transform({"c": [1711411200]})
        assert finest.nnz and finest.toarray().tolist() == coarsest.toarray().tolist()
    assert TableFeatures(roles={"c": "category"}).fit({"c": ["2024-03-01"]}).get_feature_names_out() == ["c=2024-03-01"]
    with pytest.raises(ValueError, match="column 'c': 'soon' is no date in a known form"):
        TableFeatures(roles={"c": "date"}).fit({"c": ["soon", "late"]})
    with pytest.raises(ValueError, match="column 'c': 7 is no date"):
        TableFeatures(roles={"c": "date"}).fit({"c": [7, 8]})
    empty = TableFeatures(roles={"c": "date"}).fit(pa.table({"c": pa.nulls(3), "x": [1, 2, 3]}))
    assert empty.transform(pa.table({"c": pa.nulls(3), "x": [1, 2, 3]})).shape == (3, 2)


def test_a_state_with_an_unknown_form_is_refused():
    with pytest.raises(ValueError, match="the state is broken: 'century first' is no form of dates"):
        DateForm("century first")


def test_saved_dates_transform_as_before():
    rng = np.random.default_rng(0)
    moments = np.datetime64("2020-01-01", "s") + rng.integers(0, 10**8, 500)
    table = pa.table({"c": pa.array(moments), "x": rng.normal(size=500)})
    for how in ({}, {"code": "one-hot"}, {"numbers": "standard"}):
        features = TableFeatures(**how).fit(table)
        again = TableFeatures.from_state(*features.get_state())
        assert same_state(again, features)
        assert same(again.transform(table), features.transform(table))
