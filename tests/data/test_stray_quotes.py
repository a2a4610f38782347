"""A quote without its partner, far from the beginning of a file: it must not swallow the rows behind it."""

import io

import pytest

from separatrix.data.errors import DataError
from separatrix.data.reading import open_source

N = 60_000
QUOTED = 7
"""Every so many rows have a quoted field with a comma, so that quotes are known to delimit fields."""


def rows(**changed):
    """Return rows such as "17,nice screen 17,yes", some of them changed by their number."""
    made = [f'{k},"nice, {k}",yes' if k % QUOTED == 0 and k < 50_000 else f"{k},nice {k},no" for k in range(N)]
    for k, line in changed.items():
        made[int(k[1:])] = line
    return ("noise,remark,label\n" + "\n".join(made) + "\n").encode()


def read(data, **options):
    source = open_source(io.BytesIO(data), **options)
    return source, [row for batch in source for row in batch.table.to_pylist()]


@pytest.mark.parametrize("batch_bytes", [1 << 21, 1 << 14], ids=["large blocks", "small blocks"])
@pytest.mark.parametrize(
    ("closing", "remark"),
    [
        ("59000,24 inch,no", "24 inch"),  # never closed
        ('59000,24" wide,no', '24" wide'),  # closed in the middle of a field
        ('59000,24",no', '24"'),  # closed at the end of a field, so that the record has the right number of them
        ('59000,"a, b",no', "a, b"),  # closed where a quoted field begins
    ],
)
@pytest.mark.parametrize("on_error", ["raise", "skip"])
def test_a_stray_quote_is_a_plain_character_of_its_line(closing, remark, on_error, batch_bytes):
    data = rows(k50001='5,"24 inch wide,no', k59000=closing)
    source, found = read(data, on_error=on_error, batch_bytes=batch_bytes)
    assert len(found) == N and source.skipped == 0
    assert found[50_001]["remark"] == '"24 inch wide' and found[59_000]["remark"] == remark
    assert [row["remark"] for row in found[50_002:59_000]] == [f"nice {k}" for k in range(50_002, 59_000)]
    assert source.notes == ["the file object, line 50003: a quote is never closed: it is read as a plain character"]


def test_several_stray_quotes():
    data = rows(k50001='5,"24 inch,no', k53000='5,"32 inch,no', k56000='5,"40 inch,no')
    _, found = read(data)
    assert len(found) == N and [found[k]["remark"] for k in (50_001, 53_000, 56_000)] == ['"24 inch', '"32 inch', '"40 inch']


def test_a_line_with_too_few_fields_and_a_stray_quote_is_one_line():
    data = rows(k50001='5,"24 inch wide')
    with pytest.raises(DataError, match="line 50003: 2 columns where line 1 has 3"):
        read(data)
    source, found = read(data, on_error="skip")
    assert len(found) == N - 1 and source.skipped == 1


def test_the_lines_that_a_quote_has_swallowed_are_counted():
    data = rows(k59990='5,"24 inch wide,no')  # too few lines behind it to be sure
    source, found = read(data, on_error="skip")
    assert len(found) == N - 10 and source.skipped == 10
    assert "line 59992: a quote is never closed" in source.problems[0]


def test_a_long_text_in_quotes_stays_one_field():
    text = "\n".join(f"line {k}, of a long text" for k in range(300))
    data = rows(k50001=f'5,"{text}",no', k50002="6,short,no")
    _, found = read(data)
    assert len(found) == N and found[50_001]["remark"] == text and found[50_002]["remark"] == "short"
