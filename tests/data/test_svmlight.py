"""The byte parser reads what `float` reads, to the last bit, or says what is wrong; the loader is scikit-learn's, sooner."""

import io
import math
import os
import re
import subprocess
import sys
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import example, given, settings
from hypothesis import strategies as st
from sklearn.datasets import dump_svmlight_file, load_svmlight_file

import separatrix
from separatrix import load_svmlight
from separatrix.data.errors import DataError
from separatrix.data.formats.svmlight import MOST, parse
from separatrix.data.streams import PADDING, Block
from separatrix.kernels.parsing import svmlight as kernels
from support.scale import property_examples

NUMBER = re.compile(rb"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?")
TOKEN = re.compile(rb"[^ \t\r\x0b\x0c]+")


def block(text):
    text += b"" if text.endswith(b"\n") else b"\n"
    return Block(np.frombuffer(text + bytes(PADDING), np.uint8), len(text))


def oracle_line(line, least, most):
    """Return (label, query, indices, values), None for a line without an example, or (what is wrong, where in the line)."""
    tokens = [(found.start(), found[0]) for found in TOKEN.finditer(line.split(b"#")[0])]
    if not tokens:
        return None
    at, label = tokens[0]
    if not NUMBER.fullmatch(label):
        return kernels.NO_LABEL, at
    query, indices, values = -1, [], []
    too_large = (kernels.NO_LABEL, at) if math.isinf(float(label)) else None
    for at, token in tokens[1:]:
        if not token[:1].isdigit():
            if not token.startswith(b"qid"):
                return kernels.NO_INDEX, at
            if indices or query >= 0 or not re.fullmatch(rb"qid:\d{1,18}", token):
                return kernels.NO_QUERY, at
            query = int(token[4:])
            continue
        index, colon, value = re.fullmatch(rb"(\d+)(:?)(.*)", token, re.S).groups()
        if not colon:
            return kernels.NO_COLON, at
        if len(index) > 18 or int(index) > most:
            return kernels.TOO_HIGH, at
        if int(index) < least:
            return kernels.TOO_LOW, at
        if indices and int(index) <= indices[-1]:
            return kernels.NOT_RISING, at
        if not NUMBER.fullmatch(value):
            return kernels.NO_VALUE, at
        if math.isinf(float(value)):
            too_large = too_large or (kernels.NO_VALUE, at)
        indices.append(int(index))
        values.append(float(value))
    return too_large or (float(label), query, [index - least for index in indices], values)


def oracle(text, least, most, skip):
    """Return the rows with their lines, and the faults: what, where, line."""
    rows, faults, at = [], [], 0
    for number, line in enumerate(text.removesuffix(b"\n").split(b"\n"), 1):
        found = oracle_line(line, least, most)
        if found is not None and len(found) == 2:
            faults.append((found[0], at + found[1], number))
            if not skip:
                break
        elif found is not None:
            rows.append((number, *found))
        at += len(line) + 1
    return rows, faults


def bits(values):
    return np.asarray(values, np.float64).view(np.uint64).tolist()


def agree(text, least=1, most=MOST, skip=True):
    rows, faults = oracle(text, least, most, skip)
    found = parse(block(text), least, most, skip)
    if faults and not skip:
        assert found.faults[0] == faults[0]
        return
    assert (found.faults, found.n_faults) == (faults, len(faults))
    assert found.lines.tolist() == [row[0] for row in rows]
    assert bits(found.labels) == bits([row[1] for row in rows])
    assert found.queries.tolist() == [row[2] for row in rows]
    assert np.diff(found.indptr).tolist() == [len(row[3]) for row in rows]
    assert found.indices.tolist() == [index for row in rows for index in row[3]]
    assert bits(found.values) == bits([value for row in rows for value in row[4]])
    assert found.n_lines == len(text.removesuffix(b"\n").split(b"\n"))


def shown(x, digits, form):
    return f"{x:.{digits}{form}}"


NUMBERS = st.one_of(
    st.floats(allow_nan=False, allow_infinity=False).map(repr),
    st.builds(shown, st.floats(allow_nan=False, allow_infinity=False), st.integers(0, 25), st.sampled_from("eg")),
    st.builds(shown, st.floats(-1e6, 1e6), st.integers(0, 30), st.just("f")),
    st.from_regex(r"\A[+-]?([0-9]{1,25}\.?[0-9]{0,25}|\.[0-9]{1,25})([eE][+-]?[0-9]{1,4})?\Z"),
    st.sampled_from(
        ["nan", "inf", "-", "", "1e", "0x10", "1_0", "1e400", "-1e-400", "٣", "1e99999999999999999999", "00", "-0"]
    ),
)
TOKENS = st.one_of(
    st.builds("{}:{}".format, st.integers(0, 40), NUMBERS),
    st.builds("{}:{}".format, st.integers(MOST - 3, MOST + 3) | st.integers(10**17, 10**20), NUMBERS),
    st.sampled_from(
        ["qid:3", "qid:", "qid:123456789012345678", "qid:1234567890123456789", "qi", "1:", ":1", "5", "# x 1:2", "\0"]
    ),
)
LINES = st.builds(
    lambda label, tokens, gap, end: gap.join([label, *tokens]) + end,
    NUMBERS,
    st.lists(TOKENS, max_size=6),
    st.sampled_from([" ", "  ", "\t", " \x0b"]),
    st.sampled_from(["", " ", "\r", " # 1:1", "#"]),
)


@given(st.lists(LINES, max_size=8), st.sampled_from([0, 1]), st.sampled_from([MOST, 20]), st.booleans())
@settings(max_examples=property_examples(150))
def test_lines_are_read_as_the_oracle_reads_them(lines, least, most, skip):
    agree("\n".join(lines).encode(), least, most, skip)


@given(st.binary(max_size=60) | st.text("0123456789+-.eE:# \t\r\nqid,x\0", max_size=80).map(str.encode), st.booleans())
@example(b"", True)
@example(b"\n\n#\n 1", False)
@settings(max_examples=property_examples(200))
def test_bytes_of_any_kind_are_read_as_the_oracle_reads_them(text, skip):
    agree(text, 0, MOST, skip)


def read_numbers(texts):
    found = parse(block(b"".join(b"0 1:%s\n" % text.encode() for text in texts)), 1)
    assert found.n_faults == 0
    return bits(found.values)


@given(st.lists(st.floats(allow_nan=False, allow_infinity=False), min_size=1, max_size=50), st.integers(1, 25))
def test_numbers_are_those_of_float_to_the_last_bit(values, digits):
    texts = [repr(value) for value in values] + [f"{value:.{digits}g}" for value in values]
    texts = [text for text in texts if abs(float(text)) < math.inf]
    assert read_numbers(texts) == bits([float(text) for text in texts])


def test_every_power_of_ten_with_long_and_short_digits():
    rng = np.random.default_rng(0)
    texts = []
    for q in range(-345, 310):
        digits = [
            1,
            5,
            9007199254740991,
            9007199254740993,
            2**64 - 1,
            10**19 - 1,
            10**18,
            *rng.integers(1, 10**18, 40).tolist(),
        ]
        texts += [f"{w}e{q}" for w in digits] + [f"-{str(w)[0]}.{str(w)[1:]}E{q:+05d}" for w in digits]
    texts = [text for text in texts if abs(float(text)) < math.inf]
    assert read_numbers(texts) == bits([float(text) for text in texts])


def test_half_way_between_two_doubles():
    rng = np.random.default_rng(1)
    texts = []
    for value in np.concatenate([rng.uniform(0.5, 2, 300), 2.0 ** rng.integers(50, 70, 300) * rng.uniform(1, 2, 300)]):
        middle = (Fraction(value) + Fraction(np.nextafter(value, np.inf))) / 2
        scale = middle.denominator.bit_length() - 1
        exact = str(middle.numerator * 5**scale)
        texts += [f"{exact}e-{scale}"] + [f"{exact[:n]}e{len(exact) - n - scale}" for n in (16, 17, 18, 19, 20)]
        texts.append(f"{int(exact[:19]) + 1}e{len(exact[:19]) - 19 + len(exact) - 19 - scale}")
    texts += ["2.2250738585072011e-308", "2.2250738585072014e-308", "4.9e-324", "2e-324", "1.7976931348623157e308"]
    assert read_numbers(texts) == bits([float(text) for text in texts])


GUARDED = """
import ctypes, mmap, sys
import numpy as np
sys.path.insert(0, sys.argv[1])
from separatrix.data.streams import Block
from separatrix.data.formats.svmlight import parse
page = mmap.PAGESIZE
held = mmap.mmap(-1, 65 * page)
address = ctypes.addressof(ctypes.c_char.from_buffer(held))
assert ctypes.CDLL(None, use_errno=True).mprotect(ctypes.c_void_p(address + 64 * page), page, 0) == 0
memory = np.frombuffer(held, np.uint8)
rng, texts = np.random.default_rng(0), []
alphabet = np.frombuffer(b"0123456789012345678901234567890123456789+-.eE::::#  \\t\\nqid", np.uint8)
texts += [rng.choice(alphabet, size=rng.integers(0, 200)).tobytes() for _ in range(3000)]
texts += [b"1 1:2", b"1", b"1 qid", b"1 qid:", b"1 1:12345678", b"1 12345678:1234567890123456789e-12345678", b""]
texts += [b"1 1:1e", b"1 1:-", b"1 1:.", b"1 1:1.", b"-", b"+1e+"]
count = 0
for text in texts:
    text += b"\\n"
    begin = 64 * page - len(text) - 8
    memory[begin : 64 * page - 8] = np.frombuffer(text, np.uint8)
    memory[64 * page - 8 : 64 * page] = ord("7")
    for skip in (True, False):
        count += len(parse(Block(memory[begin : 64 * page], len(text)), 0, skip=skip))
print(count)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="mprotect is called as on Linux")
def test_no_byte_outside_the_text_is_read(tmp_path):
    environment = os.environ | {"NUMBA_BOUNDSCHECK": "1", "NUMBA_CACHE_DIR": str(tmp_path)}
    source = str(Path(separatrix.__file__).parents[1])
    done = subprocess.run(
        [sys.executable, "-c", GUARDED, source], env=environment, capture_output=True, text=True, timeout=300
    )
    assert done.returncode == 0, done.stderr
    assert int(done.stdout) > 1000


# The loader.


def same(ours, theirs):
    X, y, *queries = ours
    A, b, *others = theirs
    assert type(X) is type(A) and X.shape == A.shape and X.dtype == A.dtype
    assert np.array_equal(X.data, A.data) and np.array_equal(X.indices, A.indices) and np.array_equal(X.indptr, A.indptr)
    assert np.array_equal(y, b) and y.dtype == b.dtype
    assert all(np.array_equal(one, other) for one, other in zip(queries, others, strict=True))


@pytest.mark.parametrize("zero_based", [True, False])
@pytest.mark.parametrize("dtype", [np.float64, np.float32, np.int64])
def test_the_loader_returns_what_scikit_learn_returns(tmp_path, zero_based, dtype):
    rng = np.random.default_rng(0)
    X = sp.random(300, 40, 0.2, "csr", random_state=0)
    X.data = np.round(rng.normal(size=X.nnz) * 10)
    path, queries = tmp_path / "data.svm", rng.integers(5, size=300)
    dump_svmlight_file(X, rng.integers(-1, 2, 300), str(path), zero_based=zero_based, comment="two\nlines", query_id=queries)
    for base in ("auto", zero_based):
        for query_id in (True, False):
            asked = {"zero_based": base, "query_id": query_id, "dtype": dtype}
            same(load_svmlight(path, **asked), load_svmlight_file(str(path), **asked))
    same(load_svmlight(path, n_features=60), load_svmlight_file(str(path), n_features=60))
    same(load_svmlight(str(path), threads=1), load_svmlight_file(str(path)))
    with open(path, "rb") as file:
        same(load_svmlight(file), load_svmlight_file(str(path)))
        file.seek(0)
        same(load_svmlight(file.fileno()), load_svmlight_file(str(path)))


def test_a_file_in_parts_is_the_file(tmp_path):
    rng = np.random.default_rng(0)
    path = tmp_path / "data.svm"
    dump_svmlight_file(rng.integers(0, 3, (50, 7)), np.arange(50), str(path))
    size = path.stat().st_size
    for step in (1, 7, 100, size - 1, size):
        rows = []
        for offset in range(0, size, step):
            part = {"n_features": 7, "offset": offset, "length": step}
            if step >= 100:  # scikit-learn reads a line twice where a part is shorter than one
                same(load_svmlight(path, **part), load_svmlight_file(str(path), **part))
            rows += load_svmlight(path, **part)[1].tolist()
        assert rows == list(range(50))
    with pytest.raises(ValueError, match="n_features is required"):
        load_svmlight(path, offset=3)


def test_many_blocks_and_threads_give_the_same_rows(monkeypatch):
    rng = np.random.default_rng(0)
    file = io.BytesIO()
    dump_svmlight_file(sp.random(2000, 1000, 0.02, "csr", random_state=0), rng.integers(2, size=2000), file)
    monkeypatch.setattr("separatrix.data.batches.Options.batch_bytes", 1000)
    found = [load_svmlight(io.BytesIO(file.getvalue()), threads=threads) for threads in (1, 2, 5)]
    for one in found:
        same(one, load_svmlight_file(io.BytesIO(file.getvalue())))


def test_files_without_entries_and_labels_alone():
    X, y = load_svmlight(io.BytesIO(b"1\n2 # none\n\n3\n"))
    assert X.shape == (3, 1) and y.tolist() == [1, 2, 3]
    X, y = load_svmlight(io.BytesIO(b""))
    assert X.shape[0] == 0 and len(y) == 0


@pytest.mark.parametrize(
    ("text", "options", "message"),
    [
        (
            "1 1:2\n1 0:3\n",
            {"zero_based": False},
            "line 2, column 3: index 0 where indices count from 1; read it with zero_based",
        ),
        ("1 3:2 2:1\n", {}, "line 1, column 7: index 2 does not rise above the one before it; sort"),
        ("1 3:2 3:1\n", {}, "line 1, column 7: index 3 does not rise"),
        ("1 1:1\n\n# x\n1 2147483650:1\n", {}, "line 4, column 3: index 2147483650 is above 2147483646"),
        ("1 99999999999999999999999:1\n", {}, "index 99999999999999999999999 is above"),
        ("1 1:nan\n", {}, "line 1, column 3: 'nan' is not a finite number; mend the value of index 1"),
        ("1 1:-inf\n", {}, "'-inf' is not a finite number"),
        ("1 1:1e999\n", {}, "line 1, column 3: '1e999' is not a finite number"),
        ("nan 1:1\n", {}, "line 1, column 1: 'nan' is not a finite number; a line begins with its label"),
        ("cat 1:1\n", {}, "'cat' is not a finite number; a line begins with its label"),
        ("1,2 1:1\n", {}, "'1,2' is several labels"),
        ("1 1:x\n", {}, "'x' is not a finite number"),
        ("1 a:1\n", {}, "line 1, column 3: 'a:1' is not index:value"),
        ("1 2\n", {}, "'2' is not index:value"),
        ("1 -2:1\n", {}, "'-2:1' is not index:value"),
        ("1 1:1 qid:4\n", {}, "'qid:4' is not a query id"),
        ("1 1:1 5:1\n", {"n_features": 3}, "n_features is 3, but there is a feature 4"),
        ("1 qid:1 1:1\n1 1:1\n", {"query_id": True}, "row 2 has no qid"),
    ],
)
def test_what_cannot_be_read_is_named(tmp_path, text, options, message):
    path = tmp_path / "bad.svm"
    path.write_text(text)
    with pytest.raises(DataError) as caught:
        load_svmlight(path, **options)
    assert message in str(caught.value) and str(path) in str(caught.value) and "\n" not in str(caught.value)


def test_what_is_not_supported_is_refused_clearly(tmp_path):
    with pytest.raises(ValueError, match="multilabel=True is not supported"):
        load_svmlight("nowhere", multilabel=True)
    with pytest.raises(ValueError, match="zero_based='maybe'"):
        load_svmlight("nowhere", zero_based="maybe")
    with pytest.raises(DataError, match="nowhere: no such file"):
        load_svmlight("nowhere")
    with pytest.raises(DataError, match="is a directory"):
        load_svmlight(tmp_path)


FILES = ["a9a_zero_based.trn.bz2", "ijcnn1.trn.bz2", "agaricus.txt.train.gz", "letter.scale.gz", "heart_scale", "fourclass"]


@pytest.mark.parametrize("name", [*FILES, "svmguide1", "agaricus.txt.test", "sector.t.scale.bz2"])
def test_real_files_are_read_as_scikit_learn_reads_them(data_folder, name):
    path = data_folder / "libsvm" / name
    same(load_svmlight(path), load_svmlight_file(str(path)))
