"""Titles before a table, row names without a title, and first lines that fit neither."""

import io

import pytest

from separatrix.data.errors import DataError
from separatrix.data.reading import open_source

ROWS = [f"{k},{k % 7},{'yes' if k % 7 > 3 else 'no'}" for k in range(30)]


def opened(*lines, **options):
    return open_source(io.BytesIO(("\n".join(lines) + "\n").encode()), **options)


def read(*lines, **options):
    source = opened(*lines, **options)
    return source, [row for batch in source for row in batch.table.to_pylist()]


@pytest.mark.parametrize(
    "titles",
    [
        ["Report"],
        ["Report, of today, by a machine, of ours"],
        ["Report", "", "made, today", "", ""],
        ["Report,,", ",,", ",,"],
        ["account,12 345 678", "from,2024-01-01", "to,2024-01-31"],
    ],
)
def test_titles_are_passed_over(titles):
    source, rows = read(*titles, "id,amount,label", *ROWS)
    assert source.schema.names == ["id", "amount", "label"] and len(rows) == 30
    n = sum(bool(title) for title in titles)
    are = "line before the table is" if n == 1 else "lines before the table are"
    first = titles[0].replace(",12", " 12").replace(", ", " ").rstrip(",")
    assert source.notes == [f"the file object: {n} {are} skipped, the first: '{first}'"]
    assert next(iter(opened(*titles, "id,amount,label", *ROWS))).origin.place(0).endswith(f"line {len(titles) + 2}")


@pytest.mark.parametrize("titles", [["Report,,,"], ["Report,,,", "of 1 May,,,", ",,,"], ["Report"]])
def test_titles_above_a_table_whose_lines_end_with_a_delimiter(titles):
    padded = [f"{row}," for row in ("id,amount,label", *ROWS)]
    source, rows = read(*titles, *padded)
    assert source.schema.names == ["id", "amount", "label"] and len(rows) == 30
    assert source.notes[0].endswith("skipped, the first: 'Report'")
    assert next(iter(opened(*titles, *padded))).origin.place(0).endswith(f"line {len(titles) + 2}")
    source, rows = read(*padded)  # without titles, as before
    assert source.schema.names == ["id", "amount", "label"] and len(rows) == 30 and not source.notes


def test_a_title_before_rows_without_a_header():
    source, rows = read("Report", *ROWS)
    assert source.schema.names == ["c0", "c1", "c2"] and len(rows) == 30 and "'Report'" in source.notes[0]
    _, rows = read("Report", "id,amount,label", *ROWS, label="label", columns=["id", "amount"], expected={})
    assert len(rows) == 30
    with pytest.raises(DataError, match="line 1: 1 column where most lines have 3"):
        read("see you", *ROWS, expected={})  # for a model every line may be a row


@pytest.mark.parametrize("header", ["id,amount", "id,amount,label,remark"])
def test_a_header_that_does_not_fit_is_told_and_not_the_rows(header):
    for on_error in ("raise", "skip"):
        with pytest.raises(DataError, match=r"line 1: . columns where most lines have 3; name every column, quote values"):
            read(header, *ROWS, on_error=on_error)


def test_a_broken_first_row_can_be_left_out():
    with pytest.raises(DataError, match="line 1: 2 columns where most lines have 3"):
        read("17,3", *ROWS)
    source, rows = read("17,3", *ROWS, on_error="skip")
    assert len(rows) == 30 and "1 line before the table is skipped, the first: '17 3'" in source.notes[0]


def test_the_first_of_several_files_need_not_have_the_title(tmp_path):
    for k, title in enumerate(("", "Report\n", "other,things\n")):
        (tmp_path / f"part-{k}.csv").write_text(f"{title}id,amount,label\n" + "\n".join(ROWS) + "\n")
    source = open_source(str(tmp_path / "part-*.csv"))
    assert sum(batch.table.num_rows for batch in source) == 90 and len(source.notes) == 2


NAMED = [f"row {k},{line}" for k, line in enumerate(ROWS)]


def test_row_names_without_a_title_are_left_out():
    source, rows = read("size,amount,label", *NAMED)
    assert source.schema.names == ["size", "amount", "label"] and source.label == "label"
    assert rows[3] == {"size": 3.0, "amount": 3.0, "label": "no"}
    assert "line 1: the header has no name for the first column, which is left out" in source.notes[0]
    _, rows = read("size,amount,label", *[line.replace("row ", "") for line in NAMED[1:4]])  # 1, 2, 3
    assert len(rows) == 3
    with pytest.raises(DataError, match=r"line 5, column 3 \(amount\): 'inf' is not a finite number"):
        read("size,amount,label", *NAMED[:3], "x,3,inf,no", *NAMED[4:])


@pytest.mark.parametrize(
    "lines",
    [
        ["size,amount,label", *[f"a,{line}" for line in ROWS]],  # the same name again
        ["id,amount,label", *NAMED],  # the rows have names already
        ["size,name,label", *[f"{k},Smith, John,yes" for k in range(30)]],  # a comma too many
        ["size,3,label", *NAMED],  # no header
    ],
)
def test_other_fields_without_a_title_are_an_error(lines):
    with pytest.raises(DataError, match=r"line 1: 3 columns where most lines have 4"):
        read(*lines)


@pytest.mark.parametrize("end", ["\n", "\r\n"])
@pytest.mark.parametrize("before", ["", "\ufeff"], ids=["", "mark"])
def test_a_header_that_comes_again_is_no_row(end, before):
    header = "id,amount,label"
    text = end.join([header, *ROWS[:10], before + header, *ROWS[10:20], before + header, before + header, *ROWS[20:], ""])
    for batch_bytes in (1 << 20, 64):
        source = open_source(io.BytesIO(text.encode()), batch_bytes=batch_bytes)
        rows = [row for batch in source for row in batch.table.to_pylist()]
        assert len(rows) == 30 and source.schema.names == ["id", "amount", "label"] and source.skipped == 0
        assert rows[10] == {"id": 10.0, "amount": 3.0, "label": "no"}
        assert source.notes == ["the file object, line 12: the header is repeated: such lines are skipped"]
    source = open_source(io.BytesIO(text.encode()), header=False)
    assert sum(batch.table.num_rows for batch in source) == 34


def test_a_header_that_comes_again_among_words_and_late():
    words = ["red,a", "blue,b", "green,a", "red,b"] * 10
    source, rows = read("colour,kind", *words, "colour,kind", *words)
    assert source.schema.names == ["colour", "kind"] and len(rows) == 80
    source, rows = read("colour,kind", *words * 5000, "colour,kind", *words)
    assert len(rows) == 40 * 5001 and "line 200002: the header is repeated" in source.notes[0]
    source, rows = read(*words, "red,a", *words)  # a first row that comes again
    assert source.schema.names == ["c0", "c1"] and len(rows) == 81
    _, rows = read("text,label", "text,label 1", '"text,label",x', " text,label", *words, header=True)
    assert len(rows) == 43


def titled(*lines):
    try:
        return opened(*lines).reader.dialect.titled
    except DataError:
        return None


@pytest.mark.parametrize(
    ("first", "row", "is_header"),
    [
        ("0,1,2,3,target", "{x},{y},5,6,{label}", True),
        (",0,1,2,3,target", "{k},{x},{y},5,6,{label}", True),
        (",0,1,2,3", "{k},{x},{y},5,6", True),
        ("country,2019,2020,2021,grade", "c{y},{x},{y},7,{word}", True),
        ("2019,2020,grade", "{x},{y},{word}", True),
        ("5,6,a", "{x},{y},{word}", False),  # the label comes again
        ("5,7,grade", "{x},{y},{word}", False),  # the numbers do not count on
        ("5,6,x17", "{x},{y},x{k}", False),  # every row has another word
        ("5.0,6.0,grade", "{x},{y},{word}", False),
    ],
)
def test_names_that_are_numbers(first, row, is_header):
    rows = [row.format(k=k, x=k * 7 % 10, y=k * 3 % 11, label=k % 2, word="ab"[k % 2]) for k in range(40)]
    assert titled(first, *rows) is is_header
