"""Text in other encodings than UTF-8, and with other line ends than line feeds."""

import gzip
import io

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from separatrix.data.encodings import Transcoder, detected, first_undecodable, is_utf8, mended
from separatrix.data.errors import DataError
from separatrix.data.reading import open_source

TABLE = "größe,trank,y\n" + "".join(f"{i / 4},{('café', 'thé', 'Übung')[i % 3]},{'né'[i % 2]}\n" for i in range(60))
LINES = "".join(f'{{"größe": {i}, "trank": "café", "y": "{"né"[i % 2]}"}}\n' for i in range(60))


def rows(data, **options):
    source = open_source(io.BytesIO(data) if isinstance(data, bytes) else data, **options)
    return source, [row for batch in source for row in batch.table.to_pylist()]


@pytest.mark.parametrize("text", [TABLE, TABLE.replace(",", "\t"), LINES], ids=["csv", "tsv", "jsonl"])
@pytest.mark.parametrize("encoding", ["utf-8-sig", "latin-1", "windows-1252", "utf-16", "utf-16-le", "utf-16-be", "utf-32"])
@pytest.mark.parametrize("ends", ["\n", "\r\n", "\r"], ids=["lf", "crlf", "cr"])
@pytest.mark.parametrize("compressed", [False, True], ids=["plain", "gzip"])
def test_a_text_is_read_alike_in_every_encoding(text, encoding, ends, compressed):
    expected = rows(text.encode())[1]
    assert len(expected) == 60
    data = text.replace("\n", ends).encode(encoding)
    source, found = rows(gzip.compress(data) if compressed else data)
    assert found == expected
    assert bool(source.notes) == (encoding != "utf-8-sig")
    assert list(source) and len(source.notes) == (encoding != "utf-8-sig")  # said once
    assert rows(data, encoding=encoding)[1] == expected
    assert rows(data, encoding=encoding)[0].notes == []


def test_the_encoding_that_is_assumed_is_noted():
    source, _ = rows(TABLE.encode("latin-1"))
    assert source.notes == [
        "the file object: the text is not UTF-8: read as windows-1252; if that is wrong, name it with encoding="
    ]
    _, found = rows(TABLE.encode("mac-roman"), encoding="mac-roman")
    assert found == rows(TABLE.encode())[1]


def test_lines_that_end_in_both_ways_and_marks_at_the_front():
    text = "a,y\r\n1,x\n2,z\r\n3,x\r4,z\n"
    assert [row["a"] for row in rows(text.encode())[1]] == [1, 2, 3, 4]
    source, found = rows("\ufeff\ufeff".encode() + text.encode())
    assert source.schema.names == ["a", "y"] and len(found) == 4
    assert [row["a"] for row in rows(b'\xef\xbb\xbf{"a": 1, "y": "b"}\r\n{"a": 2, "y": "c"}\r\n')[1]] == [1, 2]


LATE = b"".join(b"%d,word%d,%s\n" % (i % 97, i % 3, b"ab"[i % 2 : i % 2 + 1]) for i in range(120_000))


def test_a_byte_that_comes_late(tmp_path):
    path = tmp_path / "late.csv"
    path.write_bytes(b"x,w,y\n" + LATE + b"1,caf\xe9,a\n2,na\xc3\xafve,b\n")
    source, found = rows(path)
    assert [row["w"] for row in found[-2:]] == ["café", "naïve"]
    assert source.notes == [
        f"{path}, line 120002: the text is not all UTF-8: other bytes are read as windows-1252; if that is wrong, "
        "name it with encoding="
    ]
    with pytest.raises(DataError) as caught:
        rows(path, encoding="utf-8")
    offset = len(LATE) + len(b"x,w,y\n1,caf")
    assert str(caught.value) == (
        f"{path}, line 120002, column 2: byte 0xe9 is not utf-8; name the encoding with encoding=, or leave such lines out "
        f"with on_error='skip' (the byte is at offset {offset:,} of the text)"
    )
    source, found = rows(path, encoding="utf-8", on_error="skip")
    assert len(found) == 120_001 and source.skipped == 1


def test_a_late_byte_among_json_lines():
    lines = b'{"a": 1, "y": "b"}\n' * 60_000 + '{"a": 2, "y": "é"}\n'.encode("latin-1")
    source, found = rows(lines)
    assert found[-1]["y"] == "é" and len(source.notes) == 1
    with pytest.raises(DataError, match=r"line 60001: byte 0xe9 is not utf-8; .*at offset 1,140,015 of the text"):
        rows(lines, encoding="utf-8")
    assert len(rows(lines, encoding="utf-8", on_error="skip")[1]) == 60_000


@pytest.mark.parametrize(
    ("data", "encoding", "message"),
    [
        (b"a,y\n1,x\n2,caf\xe9 \n", "utf-16", "line 1: the text is not utf-16; name another encoding"),
        ("a,y\n1,x\n2,z\n".encode("utf-16") + b"1", "utf-16", "line 4: byte 0x31 at offset 26 is not utf-16"),
        (b"a,y\n1,x\n2,caf\x81\n", "windows-1252", r"line 3, column 2: byte 0x81 is not cp1252; .*offset 13"),
        (b"a,y\n1,x\n2,\x82\xff\n", "shift_jis", "line 3, column 2: byte 0x82 is not shift_jis"),
    ],
)
def test_what_an_encoding_does_not_have_is_named(tmp_path, data, encoding, message):
    path = tmp_path / "data.csv"
    path.write_bytes(data)
    with pytest.raises(DataError, match=message) as caught:
        rows(path, encoding=encoding)
    assert str(path) in str(caught.value)


def test_mostly_utf8_stays_utf8():
    assert detected("é".encode() * 100 + b"\xe9 ") == "utf-8"
    assert detected(b"\xe9 " * 10 + "é".encode()) == "windows-1252"
    assert detected("né".encode()[:-1], whole=False) == "utf-8"  # cut inside a letter
    assert detected("né".encode()[:-1], whole=True) == "windows-1252"


@given(st.text(max_size=60), st.sampled_from(["utf-8", "utf-16", "utf-16-be", "utf-32"]), st.integers(1, 9))
@settings(max_examples=50, deadline=None)
def test_a_transcoder_gives_utf8_whatever_the_size_of_the_pieces(text, encoding, size):
    data = text.encode(encoding, "ignore")
    text = text.encode("utf-8", "ignore").decode()
    transcoder, pieces = Transcoder(io.BytesIO(data[3:]), data[:3], encoding, "data"), []
    while piece := transcoder.read(size):
        pieces.append(piece)
    assert b"".join(pieces).decode() == text
    assert first_undecodable(io.BytesIO(data), encoding) is None


@given(st.binary(max_size=40))
@settings(max_examples=100, deadline=None)
def test_utf8_is_told_as_python_tells_it(data):
    try:
        assert data.decode() == mended(data)
        valid = True
    except UnicodeDecodeError:
        valid = False
    assert is_utf8(np.frombuffer(data, np.uint8)) == valid
