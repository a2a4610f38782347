"""Lines of labelled features: the kernel reads what orjson reads, to the last bit, or leaves it to orjson."""

import json
import random
from itertools import pairwise

import numpy as np
import orjson
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from separatrix.web.server.reading.feature_index import FeatureIndex
from separatrix.web.server.reading.request_reader import LARGEST, Limits, RequestError, RequestReader
from support.mutations import mutated
from support.scale import counts, property_examples

READER = RequestReader(None, Limits(features=20))
names = st.text(st.characters(codec="utf-8"), max_size=12) | st.sampled_from(
    ["a", "b", "free", 'quo"te', "back\\slash", "£", "features"]
)
values = st.one_of(
    st.floats(-LARGEST, LARGEST),
    st.integers(-(10**18), 10**18),
    st.sampled_from([0, -0.0, 0.1, 1e22, 1e23, 5e-324, 2**53 + 1]),
)
labels = st.sampled_from(["ham", "spam", "£", 'a"b', "tab\t"])
examples = st.fixed_dictionaries({"features": st.dictionaries(names, values, max_size=8), "label": labels})


def read(body, known=()):
    """What the kernel makes of lines: None, or features by name and labels."""
    index = FeatureIndex(known)
    lines = index.read(body, 20)
    if lines is None:
        assert index.listed == list(known)
        return None
    found = []
    for row in range(len(lines.label)):
        part = slice(lines.indptr[row], lines.indptr[row + 1])
        named = [index.listed[j] for j in lines.indices[part].tolist()]
        found.append((list(zip(named, lines.data[part].tolist(), strict=True)), lines.labels[lines.label[row]]))
    assert index.column == {name: j for j, name in enumerate(index.listed)}
    again = index.read(body, 20)
    assert np.array_equal(again.indices, lines.indices) and again.data.tobytes() == lines.data.tobytes()
    return found


def expected(body):
    told = READER.lines(body, True)
    ends = told.indptr.tolist()
    parts = [slice(*pair) for pair in pairwise(ends)]
    rows = [list(zip(told.names[part], told.data[part].tolist(), strict=True)) for part in parts]
    return list(zip(rows, told.labels, strict=True))


@settings(max_examples=property_examples(100))
@given(
    st.lists(examples, min_size=1, max_size=6),
    st.booleans(),
    st.sampled_from([(",", ":"), (", ", ": "), (" ,\t", "  :  ")]),
    st.booleans(),
    st.lists(names, unique=True, max_size=5),
)
def test_what_programs_write_is_read_as_orjson_reads_it(stream, ascii_only, separators, backwards, known):
    if backwards:
        stream = [dict(reversed(example.items())) for example in stream]
    written = [json.dumps(example, ensure_ascii=ascii_only, separators=separators) for example in stream]
    body = "\r\n\n".join(written).encode()
    found = read(body, known)
    want = expected(body)
    if found is None:
        hard = any(
            abs(v) >= 2**53 or 0 < abs(v) < 1e-300 or len(repr(v)) > 19 for e in stream for v in e["features"].values()
        )
        halves = ascii_only and any(ord(c) > 0xFFFF for e in stream for name in e["features"] for c in name)
        long = any(len(name.encode()) > 1000 for e in stream for name in e["features"])
        assert hard or halves or long, "an ordinary line was left to somebody slower"
    else:
        assert [label for _, label in found] == [label for _, label in want]
        for (mine, _), (theirs, _) in zip(found, want, strict=True):
            assert [(name, np.float64(v).tobytes()) for name, v in mine] == [(n, np.float64(v).tobytes()) for n, v in theirs]


@settings(max_examples=property_examples(150))
@given(st.lists(examples, min_size=1, max_size=3), st.data())
def test_whatever_is_read_is_what_orjson_reads(stream, data):
    """Lines with something broken in them: if the kernel reads them at all, it is right."""
    body = bytearray(b"\n".join(json.dumps(example).encode() for example in stream))
    for _ in range(data.draw(st.integers(1, 3))):
        at = data.draw(st.integers(0, len(body) - 1))
        match data.draw(st.integers(0, 2)):
            case 0:
                body[at] = data.draw(st.sampled_from(b'{}":,\\ \n0123.eE+-au[]\xff\x00'))
            case 1:
                del body[at]
            case 2:
                body[at:at] = data.draw(
                    st.sampled_from([b",", b'"', b"0", b"{", b"}", b"\\", b"\n", b'"label": 1, ', b"\x01"])
                )
        if not body:
            return
    found = read(bytes(body))
    if found is not None:
        assert repr(found) == repr(expected(bytes(body)))


@pytest.mark.parametrize(
    "line",
    [
        '{"features": {"a": 01}, "label": "x"}',
        '{"features": {"a": 1.}, "label": "x"}',
        '{"features": {"a": .5}, "label": "x"}',
        '{"features": {"a": +1}, "label": "x"}',
        '{"features": {"a": 1.e5}, "label": "x"}',
        '{"features": {"a": -}, "label": "x"}',
        '{"features": {"a": 1,}, "label": "x"}',
        '{"features": {"a": 1} "label": "x"}',
        '{"features": {"a": 1}, "label": "x"} {}',
        '{"features": {"a": 1}, "label": "x", "label": "y"}',
        '{"features": {"a": 1, "a": 2}, "label": "x"}',
        '{"features": {"a": 1, "\\u0061": 2}, "label": "x"}',
        '{"features": {"a": true}, "label": "x"}',
        '{"features": {"a": "b"}, "label": "x"}',
        '{"features": {"a\\ud800": 1}, "label": "x"}',
        '{"features": {"a\\q": 1}, "label": "x"}',
        '{"features": {"a": 1e101}, "label": "x"}',
        '{"features": {' + ", ".join(f'"f{k}": 1' for k in range(21)) + '}, "label": "x"}',
        '{"features": {"' + "n" * 1001 + '": 1}, "label": "x"}',
        '{"features": {"a": 1}}',
        '{"label": "x"}',
        "[]",
        "",
    ],
)
def test_anything_else_is_left_to_somebody_slower(line):
    assert FeatureIndex([]).read(line.encode(), 20) is None


def test_names_can_be_many_and_can_be_taken_back():
    index = FeatureIndex(f"old{k}" for k in range(3000))
    body = b"\n".join(
        orjson.dumps({"features": {f"new{j}": j for j in range(k, k + 20)}, "label": "x"}) for k in range(0, 40_000, 20)
    )
    lines = index.read(body, 20)
    assert len(index.listed) == 43_000 and lines.indices.tolist() == list(range(3000, 43_000))
    index.truncate(3010)
    assert len(index.listed) == 3010 == len(index.column)
    again = index.read(body, 20)
    assert again.indices.tolist() == list(range(3000, 43_000)) and index.listed[-1] == "new39999"
    assert index.read(b'{"features": {"old7": 1, "new5": 2}, "label": "x"}', 20).indices.tolist() == [7, 3005]


def test_many_distinct_labels_are_left_to_somebody_slower():
    body = b"\n".join(orjson.dumps({"features": {}, "label": k}) for k in range(65))
    assert FeatureIndex([]).read(body, 20) is None
    with pytest.raises(RequestError, match="line 1: a label"):
        READER.lines(b'{"features": {}, "label": 9007199254740993}', True)


def test_minus_zero_has_a_sign_only_where_it_is_no_whole_number():
    body = b'{"features": {"a": -0, "b": -0.0, "c": -0e0, "d": 0}, "label": "x"}'
    assert repr(read(body)) == repr(expected(body)) == repr([([("a", 0.0), ("b", -0.0), ("c", -0.0), ("d", 0.0)], "x")])


# Many lines, with a generator that draws quickly.

FUZZ_NAMES = ["a", "b", "free", 'quo"te', "back\\slash", "£", "features", "label", "", "n" * 40, "\u2028", "😀"]
FUZZ_NUMBERS = [0, -0.0, 0.1, 1e22, 5e-324, 2**53 + 1, -7, 123456789.125, 1e-7, 99999999999999999999]
SIGNS = [b"{", b"}", b'"', b":", b",", b"\\", b" ", b"\n", b"\t", b"0", b".", b"e", b"-", b"null", b"\\u0061"]


def broken_lines(draw):
    """Return one to four lines as programs write them, most of them with something broken in them."""
    lines = []
    for _ in range(draw.randint(1, 4)):
        some = draw.choices(FUZZ_NAMES, k=draw.randint(0, 5))
        features = {name: draw.choice([*FUZZ_NUMBERS, draw.uniform(-1e6, 1e6)]) for name in some}
        example = {"features": features, "label": draw.choice(["ham", "spam", "£", 'a"b'])}
        separators = draw.choice([(",", ":"), (", ", ": "), (" ,\t", "  :  ")])
        lines.append(json.dumps(example, ensure_ascii=draw.random() < 0.5, separators=separators))
    text = draw.choice(["\n", "\r\n", "\n\n"]).join(lines).encode()
    for _ in range(draw.choice([0, 0, 1, 1, 2])):
        at, sign = draw.randrange(len(text) + 1), draw.choice(SIGNS)
        after = text[at + draw.choice([0, len(sign)]) :]
        text = mutated(text, draw) if draw.random() < 0.3 else text[:at] + sign + after
    return text, len(lines)


@pytest.mark.parametrize("number", counts(quick=1_000, soak=60_000))
def test_lines_are_read_as_orjson_reads_them_or_left_to_it(number):
    draw, outcomes = random.Random(60), {"read": 0, "left to orjson": 0, "refused by both": 0}
    done = 0
    while done < number:
        text, count = broken_lines(draw)
        done += count
        lines = read(text)
        try:
            want = expected(text)
        except RequestError:
            outcomes["refused by both"] += 1
            assert lines is None, text
            continue
        if lines is None:
            outcomes["left to orjson"] += 1
        else:
            outcomes["read"] += 1
            assert repr(lines) == repr(want), text
    print(outcomes)
    assert min(outcomes.values()) > 0
