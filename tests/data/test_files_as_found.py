"""Files as they are found: tables written in every manner, the real ones, and a line saying what is wrong."""

import bz2
import gzip
import io
import os
import re

import numpy as np
import pyarrow as pa
import pyarrow.parquet as parquet
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from separatrix.data.errors import DataError
from separatrix.data.formats import NAMES
from separatrix.data.reading import open_source
from support.file_formats import TABLE, rows_of, write, written
from support.scale import property_examples

# How tables of text are written.


def first_of(text, **options):
    source = open_source(io.BytesIO(text.encode()), **options)
    return source, rows_of(source)


def test_a_header_is_told_from_a_row():
    for text, names in [
        ("a,b\n1,2\n", ["a", "b"]),
        ("1,2\n3,4\n", ["c0", "c1"]),
        ("ham,hello\nspam,buy\nham,bye\nspam,now\n", ["c0", "c1"]),
        ("label,text\nham,hello\nspam,buy\nham,bye\nspam,now\n", ["label", "text"]),
        ("0,1,2,3\n5,1,2,3\n", ["0", "1", "2", "3"]),
        ("x,y,kind\n1,?,a\n2,3,b\n", ["x", "y", "kind"]),
        (",x,x\n1,2,3\n", ["c0", "x", "x_2"]),
        ("?,2\n1,2\n", ["c0", "c1"]),
        ("# made by hand\na,b\n1,2\n", ["a", "b"]),
        ("#a,b\n1,2\n", ["#a", "b"]),
        ("|1x3 Cross validator\n1, x, a.\n2, y, b.\n", ["c0", "c1", "c2"]),
    ]:
        assert first_of(text)[0].schema.names == names, text
    assert first_of("1,2\n3,4\n", header=True)[0].schema.names == ["1", "2"]
    few = "kind,message\nspam,win\nham,bye\n"  # too few rows to tell, but for what is known of the names
    assert first_of(few)[0].schema.names == ["c0", "c1"]
    for known in ({"label": "kind"}, {"columns": ["message"]}, {"columns": ["message", "kind"], "label": -1}):
        assert first_of(few, **known)[0].schema.names == ["kind", "message"]
    assert first_of(few, columns=["message", "length"])[0].schema.names == ["c0", "c1"]
    assert first_of("0,win\n1,bye\n", label="0")[0].schema.names == ["c0", "c1"]
    assert first_of("a,b\n1,2\n", header=False)[1][0] == {"c0": "a", "c1": "b"}


def test_quotes_that_do_not_pair_are_characters():
    text = 'ham\the said "yes\nspam\t"free" money\nham\t"\nham\tno\n'
    assert [row["c1"] for row in first_of(text)[1]] == ['he said "yes', '"free" money', '"', "no"]
    assert [row["c1"] for row in first_of('a,"b\nc"\nd,"e ""f"""\n')[1]] == ["b\nc", 'e "f"']
    assert [row["c1"] for row in first_of('1,"b"\n2,"c"\n', quote="")[1]] == ['"b"', '"c"']


def test_blanks_as_delimiters_and_quoted_names():
    text = '18.0   8   ?      3504.\t"ford torino"\n 15.0   8   350.0      3693.\t"buick"  \n'
    assert list(first_of(text)[1][0].values()) == [18.0, 8.0, None, 3504.0, "ford torino"]
    assert list(first_of(text)[1][1].values()) == [15.0, 8.0, 350.0, 3693.0, "buick"]


def test_orange_tables_with_their_three_lines():
    source, rows = first_of("Kind\tx\tnote\nd\tc\tstring\nclass\t\tmeta\n\na\t1\tone\nb\t?\ttwo\n")
    assert (source.label, rows[1]) == ("Kind", {"Kind": "b", "x": None, "note": "two"})
    assert [str(kind) for kind in source.schema.types] == ["string", "double", "string"]


def test_missing_values_are_null_unless_quoted():
    _, rows = first_of('x,t\n1,a\n?,?\nNA,NA\n,\nnan,"NA"\nnull,None\n', label="x")
    assert [row["x"] for row in rows] == [1, None, None, None, None, None]
    assert [row["t"] for row in rows] == ["a", None, None, None, "NA", None]
    _, rows = first_of("x,t\n1,-\n2,?\n", missing=("-",))
    assert [row["t"] for row in rows] == [None, "?"]


def test_types_are_those_of_the_values_and_labels_stay_as_they_are_written():
    source, rows = first_of("n,t,y\n1,x1,+1\n2.5,2,-1\n")
    assert [str(kind) for kind in source.schema.types] == ["double", "string", "int64"]
    assert rows == [{"n": 1.0, "t": "x1", "y": 1}, {"n": 2.5, "t": "2", "y": -1}]
    assert [row["y"] for row in first_of("n,y\n1,1.0\n2,1\n")[1]] == ["1.0", "1"]
    assert first_of("n,y\n1,1\n2,2\n", types={"n": "text"})[1][0] == {"n": "1", "y": 1}
    assert first_of("n,y\n1,1\n2,2\n", label="n")[0].label == "n"
    assert first_of("n,y\n1,1\n2,2\n", label=0)[0].label == "n"
    assert first_of("n,y\n1,1\n2,2\n", label="-1")[0].label == "y"


def test_numbers_of_text_are_those_of_float():
    rng = np.random.default_rng(0)
    texts = [repr(x) for x in np.exp(rng.uniform(-700, 700, 500)).tolist()] + ["+1.5", ".5", "5.", "1E5", " 7 ", "00012"]
    _, rows = first_of("".join(f"{text},a\n" for text in texts))
    assert [row["c0"] for row in rows] == [float(text) for text in texts]


def test_a_column_of_numbers_with_one_slip_is_not_taken_for_text(tmp_path):
    path = write(tmp_path / "data.csv", "x,y\n" + "1,a\n2,b\n" * 500 + "oops,a\n" + "3,a\n" * 500)
    source = open_source(path)
    (batch,) = source
    assert batch.table["x"].type == pa.float64() and batch.table["x"].is_null().to_pylist().index(True) == 1000
    assert source.notes == [
        f"column x: 1 value of 1,501 is not a number, the first 'oops' at {path}, line 1002: taken as missing"
    ]
    list(source)
    assert len(source.notes) == 1 and source.skipped == 0  # said once


@given(st.text(',;\t "\n\r1a?', max_size=60))
@settings(max_examples=property_examples(150))
def test_delimited_text_without_quotes_is_its_lines_cut_at_the_delimiter(text):
    options = {"format": "csv", "quote": "", "header": False, "missing": (), "on_error": "skip"}
    file = io.BytesIO(text.encode())
    try:
        names = open_source(file, **options).schema.names
        source = open_source(file, types=dict.fromkeys(names, "text"), **options)
        found = [
            (batch.origin.number(i), *row.values()) for batch in source for i, row in enumerate(batch.table.to_pylist())
        ]
    except DataError:
        found = []
    if not found:
        return
    written = source.reader.dialect
    expected = []
    for number, line in enumerate(re.split("\r\n|\r|\n", text), 1):
        cells = line.split() if written.delimiter == " " else line.split(written.delimiter)
        if (line.strip(" \t") and len(cells) == len(names)) or (len(cells) > 1 and len(cells) == len(names)):
            expected.append((number, *(cell.strip() for cell in cells)))
    assert found == expected


@given(st.text(',;\t "\n\r1a?', max_size=60), st.sampled_from(["auto", '"']), st.sampled_from(["raise", "skip"]))
@settings(max_examples=property_examples(150))
def test_delimited_text_with_quotes_is_read_or_refused(text, quote, on_error):
    try:
        list(open_source(io.BytesIO(text.encode()), format="csv", quote=quote, on_error=on_error))
    except DataError as problem:
        assert "\n" not in str(problem)


@given(st.binary(max_size=80), st.sampled_from([None, "csv", "tsv", "svmlight", "jsonl", "parquet", "arrow", "npz"]))
@settings(max_examples=property_examples(100))
def test_bytes_of_any_kind_are_read_or_refused(data, form):
    for prefix in (
        b"",
        b"PAR1",
        b"ARROW1\0\0",
        b"\xff\xff\xff\xff",
        b"PK\x03\x04.npy",
        b'{"a": 1}\n{',
        b"\x1f\x8b",
        b"BZh9",
    ):
        try:
            list(open_source(io.BytesIO(prefix + data), format=form))
        except DataError as problem:
            assert "\n" not in str(problem)


# What cannot be read.


@pytest.mark.parametrize(
    ("data", "options", "message"),
    [
        ("", {}, "the file is empty"),
        ("\n \n", {}, "the file is empty"),
        ("a,b\n", {}, "there is no example in it"),
        ("a,b\n1,2\n1\n", {}, "line 3: 1 column where line 1 has 2; leave such lines out with on_error='skip'"),
        ("a,b\n\n1,2\n1,2,3\n", {}, "line 4: 3 columns where line 1 has 2"),
        ("a,b\n1,2\ninf,2\n", {}, "line 3, column 1 (a): 'inf' is not a finite number"),
        ("a,b\n1,2\n1e999,2\n", {}, "line 3, column 1 (a): '1e999' is not a finite number"),
        ("a,b\n1,2\n", {"label": "c"}, "line 1: there is no column 'c'; the columns are a, b"),
        ("a,b\n1,2\n", {"label": 5}, "line 1: there is no column 5; there are 2, counted from 0"),
        (
            "a^y\n1^x\n",
            {"label": "y"},
            "the columns are c0; all is one column: the delimiter is none of tab, semicolon, bar, comma",
        ),
        ("a;y\n1;x\n", {"label": "y", "format": "tsv"}, "the columns are c0; all is one column: the delimiter is not '\\t'"),
        (
            "a;y\n1;x\n",
            {"label": 1, "delimiter": ","},
            "there are 1, counted from 0; all is one column: the delimiter is not ','",
        ),
        ("a,b\n1,2\n", {"types": {"z": "text"}}, "there is no column 'z'; the columns are a, b (types names it)"),
        ("a,b\n1,2\n", {"types": {"a": "real"}}, "'real', not one of whole, number, text"),
        ("a,b\n1,2\n", {"format": "xml"}, "format='xml' is not one of svmlight, csv"),
        (b"a,b\n1,x\n2,\xff\n", {"encoding": "utf-8"}, "line 3, column 2: byte 0xff is not utf-8; name the encoding"),
        (b"a,b\n1,x\n2,\x81\n", {}, "line 3, column 2: byte 0x81 is neither utf-8 nor windows-1252; name the encoding"),
        ("a,b\n1,x\n", {"encoding": "latin-11"}, "encoding 'latin-11' is not known; did you mean 'latin-1'?"),
        ('a,b\n1,x\n2,"y\n3,z\n', {"quote": '"'}, "line 3: a quote is never closed"),
        ('a,b\n1,x\n2,"y"z\n', {"quote": '"'}, "line 3: text goes on behind a closing quote"),
        (b"a,b\n1,x\n2,\0\n", {}, "or it is damaged: there is a zero byte (line 3, offset 10)"),
        (b"\0\1\2\3 what is this", {}, NAMES),
        (b"\x00\x00\x08\x03 images", {}, "IDX files are not supported"),
        (b"\x93NUMPY...", {}, "save X and y together"),
        (b"PK\x03\x04 something.txt", {}, "this is a zip archive and not a NumPy one"),
        (b"PAR1 and no more", {}, "this cannot be read as parquet"),
        (b"ARROW1 and no more", {}, "this cannot be read as arrow"),
        (b"\xfd7zXZ\0", {}, "xz is not supported; compress with gzip"),
        (gzip.compress(b"a,b\n" + b"1,2\n" * 10**6)[:-100], {}, "the gzip data are corrupted or truncated"),
        (bz2.compress(b"a,b\n" + b"1,2\n" * 10**5)[:-10], {}, "the bz2 data are corrupted or truncated"),
        (
            pa.compress(b"a,b\n" + b"1,2\n" * 10**5, codec="zstd", asbytes=True)[:-3],
            {},
            "the zstd data are corrupted or truncated",
        ),
        ("1 1:1\n1 1:1 1:2\n", {}, "line 2, column 7: index 1 does not rise"),
        ("1 1:1\n1 0:2\n", {"zero_based": False}, "line 2, column 3: index 0 where indices count from 1"),
        ("1 1:1\n1 7:2\n", {"n_features": 5}, "line 2, column 3: index 7 is above 5; raise n_features"),
        ("1 1:nan\n", {}, "line 1, column 3: 'nan' is not a finite number"),
        ("1 1:1\n", {"label": "x"}, "svmlight data have their labels with them"),
        ('{"a": 1}\n\n{"a": \n', {}, "line 3: this is not JSON"),
        ('{"a": 1}\n3\n', {}, "line 2: '3' is not an object"),
        ('{"a": [1, 2]}\n', {}, "line 1: key 'a' holds '[1, 2]'"),
        ('{"a": [{"b": 1}]}\n', {}, "are read: remove it, or give its values keys of their own"),
        ('{"a": {"b": 1}, "a.b": 2}\n', {}, "line 1: two values are called 'a.b', of a key and of an object"),
        ('{"a": 1}\n{"a": -Infinity}\n', {}, "line 2: key 'a': -inf is not a finite number"),
        ('{"a": 1e999}\n', {}, "line 1: key 'a': inf is not a finite number"),
        ('[{"a": 1}]\n', {}, "this is one JSON array"),
        (written(lambda f: np.savez(f, Z=np.ones(3))), {}, "there is Z; X and y are needed"),
        (written(lambda f: np.savez(f, X=np.ones((3, 2)), y=np.ones(2))), {}, "X has 3 rows, but y has the shape (2,)"),
        (written(lambda f: np.savez(f, X=np.ones(3), y=np.ones(3))), {}, "float64 of shape (3,), not a matrix"),
        (
            written(lambda f: np.savez(f, X=np.array([[1, 2], [3, np.nan]]))),
            {},
            "row 2, column 1 of X: nan is not a finite number",
        ),
        (written(lambda f: np.savez(f, X=np.array([[1, {}]]))), {}, "Python objects are not read"),
        (written(lambda f: np.savez(f, X=np.ones((9, 9))))[:300], {}, "this cannot be read as .npz"),
        (written(lambda f: parquet.write_table(pa.table({"a": [[1.5]]}), f)), {}, "column a holds list<"),
        (written(lambda f: parquet.write_table(pa.table({"a": [1.0, np.inf]}), f)), {}, "row 2, column a: infinity is not"),
        (
            written(lambda f: parquet.write_table(pa.table([[1], [2], [3]], names=["b", "a", "a"]), f)),
            {},
            "more than one column is called a; rename or drop one of them",
        ),
        (written(lambda f: parquet.write_table(TABLE, f))[:-9], {}, "this cannot be read as parquet"),
    ],
)
def test_what_is_wrong_is_said_in_one_line(tmp_path, data, options, message):
    path = write(tmp_path / "data", data)
    with pytest.raises(DataError) as caught:
        list(open_source(path, **options))
    said = str(caught.value)
    assert message in said and "\n" not in said and len(said) < 400
    assert str(path) in said or "types[" in said or "format" in said or "encoding" in said


def test_paths_that_are_none(tmp_path):
    with pytest.raises(DataError, match=r"nowhere\.csv: no such file, and no built-in name"):
        open_source("nowhere.csv")
    with pytest.raises(DataError, match=r"nowhere-\*: no file matches"):
        open_source("nowhere-*")
    with pytest.raises(DataError, match="is a directory; give a file, or a pattern such as"):
        open_source(tmp_path)
    with pytest.raises(DataError, match="no file is named"):
        open_source([])
    with pytest.raises(DataError, match=r"no such example; there are lecture:L1\.8"):
        open_source("lecture:L9.9")
    with pytest.raises(ValueError, match="on_error='ignore'"):
        open_source("iris", on_error="ignore")
    if os.geteuid():
        write(tmp_path / "locked", "a,b\n").chmod(0)
        with pytest.raises(DataError, match="locked: Permission denied"):
            open_source(tmp_path / "locked")


def test_a_zero_that_comes_late_is_named(tmp_path):
    path = write(tmp_path / "late.svm", "1 1:1\n" * 400_000 + "1 0:1\n")
    with pytest.raises(
        DataError, match="line 400001, column 3: index 0 where indices count from 1; read it with zero_based=True"
    ):
        list(open_source(path))
    assert sum(len(batch) for batch in open_source(path, zero_based=True)) == 400_001


@pytest.mark.parametrize(
    ("text", "kept", "skipped"),
    [
        ("a,b\n1,x\n2\n3,y\n4,z,z\n", 2, 2),
        ("1 1:1\nx 1:1\n1 1:1 1:1\n1 2:1e999\n2 5:1\n" + "1 2:1\n! 1:1\n" * 40, 42, 43),
        ('{"a": 1}\n{"a": [1]}\nnonsense\n{"a": 2}\n', 2, 2),
    ],
)
def test_lines_that_cannot_be_read_are_skipped_and_counted(tmp_path, text, kept, skipped):
    source = open_source(write(tmp_path / "data", text), on_error="skip")
    assert sum(len(batch) for batch in source) == kept
    assert source.skipped == skipped
    assert 1 <= len(source.problems) <= 10 and all(str(tmp_path) in problem for problem in source.problems)
    assert sum(len(batch) for batch in source) == kept and source.skipped == skipped


# The real files.


REAL = {
    "sms_spam/SMSSpamCollection.gz": (5574, 2, {"label": 0}, {"ham": 4827, "spam": 747}),
    "20newsgroups/20newsgroups-train.tab.gz": (11293, 2, {}, None),
    "20newsgroups/20newsgroups-test.tab.gz": (7528, 2, {}, None),
    "adult/adult-train.csv.gz": (32561, 15, {}, {"<=50K": 24720, ">50K": 7841}),
    "adult/adult-test.csv.gz": (16281, 15, {}, {"<=50K.": 12435, ">50K.": 3846}),
    "kddcup99/corrected.gz": (311029, 42, {}, None),
    "auto_mpg/auto-mpg.data": (398, 9, {}, None),
    "uci/agaricus-lepiota.data.gz": (8124, 23, {"label": 0}, {"e": 4208, "p": 3916}),
    "uci/banknote_authentication.csv": (1372, 5, {}, {0: 762, 1: 610}),
    "uci/sonar.csv": (208, 61, {}, {"R": 97, "M": 111}),
    "uci/spambase.data.gz": (4601, 58, {}, {1: 1813, 0: 2788}),
    "libsvm/svmguide3.csv": (1243, 22, {"label": 0}, {1: 296, -1: 947}),
    "libsvm/svmguide3.t.csv": (41, 22, {"label": 0}, None),
}


@pytest.mark.parametrize("name", REAL)
def test_real_files_read_as_they_are(data_folder, name):
    rows, width, options, classes = REAL[name]
    source = open_source(data_folder / name, **options)
    tables = [batch.table for batch in source]
    table = pa.Table.from_batches(tables)
    assert (table.num_rows, table.num_columns) == (rows, width)
    assert table[source.label].null_count == 0
    if classes is not None:
        assert (
            dict(table[source.label].value_counts().to_pandas().map(lambda each: tuple(each.values())).tolist()) == classes
        )


def test_auto_mpg_has_six_unknown_horsepowers(data_folder):
    (batch,) = open_source(data_folder / "auto_mpg" / "auto-mpg.data")
    assert batch.table["c3"].null_count == 6
    assert [str(kind) for kind in batch.table.schema.types] == ["double"] * 8 + ["string"]
    assert batch.table["c8"][0].as_py() == "chevrolet chevelle malibu"
    texts = (data_folder / "auto_mpg" / "auto-mpg.data").read_text().splitlines()
    assert batch.table["c0"].to_pylist() == [float(text.split()[0]) for text in texts]


def test_messages_of_sms_spam_are_whole(data_folder):
    with gzip.open(data_folder / "sms_spam" / "SMSSpamCollection.gz", "rt", encoding="utf-8", newline="\n") as file:
        lines = [[field.strip() for field in line.split("\t", 1)] for line in file]
    rows = rows_of(open_source(data_folder / "sms_spam" / "SMSSpamCollection.gz", label=0, missing=()))
    assert [list(row.values()) for row in rows] == lines


@pytest.mark.parametrize(
    ("header", "row", "delimiter"),
    [
        ("noise,amount,tags,label", '37,0.64,"a;y",yes', ","),
        ("tags,x,y", "Comedy|Drama,-0.7,ret", ","),
        ("place,label", "48.1;11.5,yes", ","),
        ("noise;amount;label", "17;0,94;yes", ";"),
        ("name;place", "a;48,1|11,5", ";"),
        ("", '5,"a;y",yes', ","),
        ("", "Comedy|Drama,-0.7,ret", ","),
        ("", "37,48;11,yes", ","),
        ("", "0,94;yes", ";"),
        ("", "0,94;1,25", ";"),
        ("", "spam;win cash, now", ";"),
        ("", '"Smith, John";5', ";"),
        ("", "ham\tsee you,later", "\t"),
        ("", "x|1,5|y", "|"),
    ],
)
def test_of_two_delimiters_in_every_row_the_one_between_the_columns(header, row, delimiter):
    text = "\n".join([*([header] if header else []), *[row] * 20]) + "\n"
    source = open_source(io.BytesIO(text.encode()))
    assert source.reader.dialect.delimiter == delimiter
    assert sum(batch.table.num_rows for batch in source) == 20
    if header:
        assert source.schema.names == header.split(delimiter)


def test_of_two_delimiters_the_one_that_gives_the_names_which_a_model_knows():
    text = "a;b,c;d\n" + "1;2,3;4\n" * 20
    for label, delimiter in (("d", ";"), ("c;d", ",")):
        assert open_source(io.BytesIO(text.encode()), label=label).reader.dialect.delimiter == delimiter


def test_a_blank_before_a_quote_is_named():
    data = b'id, text, kind\n1, "quoted, text", a\n2, "more, of it", b\n'
    with pytest.raises(DataError, match="line 2: 4 columns where line 1 has 3; a blank before a quote makes it"):
        list(open_source(io.BytesIO(data)))
    with pytest.raises(DataError, match="line 3: 4 columns where line 1 has 3; leave such lines out"):
        list(open_source(io.BytesIO(b"id,text,kind\n1,a,b\n2,quoted, text,b\n")))


def test_repeated_titles_are_noted():
    source = open_source(io.BytesIO(b"a,b,a,a,kind\n1,2,3,4,x\n2,3,4,5,y\n"))
    assert source.schema.names == ["a", "b", "a_2", "a_3", "kind"]
    assert "line 1: more than one column is called 'a': a later one is called 'a_2' here, and 1 more so" in source.notes[0]
    taken = open_source(io.BytesIO(b"a,b,a,a_2,kind\n1,2,3,4,x\n2,3,4,5,y\n"))
    assert taken.schema.names == ["a", "b", "a_2_2", "a_2", "kind"]
    assert not open_source(io.BytesIO(b",b,kind\n1,2,x\n2,3,y\n")).notes
