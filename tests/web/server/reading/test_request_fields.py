"""Fields of a request: one that would be ignored is refused, since a misspelt one looks like a setting that holds."""

import pytest

from separatrix.web.server.reading.request_reader import Limits, RequestError, RequestReader

READER = RequestReader(None, Limits())


@pytest.mark.parametrize(
    ("line", "labelled", "message"),
    [
        (b'{"features": {"a": 1}, "label": "x", "until_rigth": true}', True, "'until_rigth'; did you mean 'until_right'"),
        (b'{"features": {"a": 1}, "label": "x", "sample_weight": 3}', True, "'sample_weight': the fields are features"),
        (b'{"features": {"a": 1}, "label": "x", "cite": true}', True, "'cite'"),
        (b'{"features": {"a": 1}, "text": "a"}', False, "'text'"),
        (b'{"features": {"a": 1}, "pin": true}', False, "'pin'"),
    ],
)
def test_unknown_fields_are_refused_by_name(line, labelled, message):
    for read, place in (
        (READER.one, ""),
        (lambda *body: READER.lines(b'{"features": {}, "label": 1}\n' + body[0], body[1]), "line 2: "),
    ):
        with pytest.raises(RequestError, match=f"^{place}unknown field {message}"):
            read(line, labelled)


def test_labelled_examples_can_be_predicted():
    assert READER.one(b'{"features": {"a": 1}, "label": "x"}', False).names == ["a"]
