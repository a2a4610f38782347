"""A tagger's server: it tags, learns from corrections, and has after a restart exactly what it acknowledged."""

import asyncio

import httpx
import numpy as np
import pytest

from separatrix import SequencePerceptron, save
from separatrix.data.errors import DataError
from separatrix.web.server.app import Tokens
from separatrix.web.tagging.app import application
from separatrix.web.tagging.journal import JOURNAL, MODEL, Journal

X = [[("Rome", "N"), ("is", "V")], [("it", "P"), ("is", "V"), ("Rome", "N")]]
TAGS = [["B-x", "O"], ["O", "O", "B-x"]]
ZEST = {"tokens": [["zest", "N"], ["of", "P"]], "tags": ["B-new", "O"]}


@pytest.fixture
def model(tmp_path):
    save(SequencePerceptron(averaged=False, scheme="bio", random_state=0).fit(X, TAGS), tmp_path / "m.sepx")
    return tmp_path / "m.sepx"


class client:  # noqa: N801
    """Calls an application without a network."""

    def __init__(self, journal, tokens=None):
        self.app = application(journal, tokens=tokens or Tokens(), hosts=(), body_limit=1 << 16)

    def request(self, method, path, **content):
        async def call():
            transport = httpx.ASGITransport(self.app, raise_app_exceptions=False)
            async with httpx.AsyncClient(transport=transport, base_url="http://localhost") as web:
                return await web.request(method, path, **content)

        return asyncio.run(call())

    def post(self, path, **content):
        return self.request("POST", path, **content)

    def get(self, path):
        return self.request("GET", path)


def test_it_tags_and_learns_and_a_restart_has_it(tmp_path, model):
    journal = Journal(tmp_path / "state", model)
    web = client(journal)
    assert web.post("/predict", json={"tokens": [["Rome", "N"]]}).json() == {"tags": ["B-x"]}
    assert web.post("/predict", json={"sequences": [[["it", "P"]], []]}).json() == {"tags": [["O"], []]}
    answer = web.post("/learn", json=ZEST).json()
    assert answer["mistake"] is True and answer["learned"] == 1 and len(answer["predicted"]) == 2
    assert web.post("/predict", json={"tokens": ZEST["tokens"]}).json()["tags"] == ZEST["tags"]
    both = web.post("/learn", json={"sequences": X, "tags": TAGS}).json()
    assert both["learned"] == 2 and len(both["mistake"]) == 2
    assert web.get("/info").json()["tags"] == ["B-new", "B-x", "O"]
    refused = web.post("/forget", json={"examples": [1]})
    assert refused.status_code == 409 and "a tagger's server cannot forget" in refused.json()["error"]
    weights = journal.tagger.weights()
    journal.close()  # as a kill would: no model was written

    again = Journal(tmp_path / "state", None)
    assert (again.replayed, again.learned) == (2, 2)
    assert all(map(np.array_equal, again.tagger.weights(), weights))
    again.write_model()
    again.append([ZEST["tokens"]], [ZEST["tags"]])
    again.close()
    third = Journal(tmp_path / "state", None)
    assert (third.replayed, third.learned) == (1, 3)
    third.close()


@pytest.mark.parametrize("sentence", [[["w:Rome", "cap"], ["w:is"]], [{"w": "Rome"}, {"w": "is"}], [[1.0, 0.0], [0.0, 2.0]]])
def test_tokens_are_attributes_or_numbers_where_the_model_has_such(tmp_path, sentence):
    numbers = isinstance(sentence[0], list) and isinstance(sentence[0][0], float)
    tagger = SequencePerceptron(random_state=0).fit([np.array(sentence) if numbers else sentence], [["B-x", "O"]])
    save(tagger, tmp_path / "m.sepx")
    journal = Journal(tmp_path / "state", tmp_path / "m.sepx")
    web = client(journal)
    assert web.post("/predict", json={"tokens": sentence}).json() == {"tags": ["B-x", "O"]}
    assert web.post("/learn", json={"tokens": sentence, "tags": ["B-y", "O"]}).json()["mistake"] is True
    weights = journal.tagger.weights()
    journal.close()
    again = Journal(tmp_path / "state", None)
    assert again.replayed == 1 and all(map(np.array_equal, again.tagger.weights(), weights))
    again.close()


def test_what_is_refused_leaves_no_trace(tmp_path, model):
    journal = Journal(tmp_path / "state", model)
    web, weights = client(journal), journal.tagger.weights()
    for path, body, status, message in (
        ("/predict", b"{", 400, "not JSON"),
        ("/predict", b"[]", 422, "must be"),
        ("/predict", b'{"tokens": "Rome"}', 422, "must be a list of tokens"),
        ("/predict", b'{"tokens": ["Rome"]}', 422, "1 columns, but the model was trained on 2"),
        ("/learn", b'{"tokens": [["Rome", "N"]]}', 422, '"tags" is missing'),
        ("/learn", b'{"tokens": [["Rome", "N"]], "tag": ["O"]}', 422, "unknown field 'tag'; did you mean 'tags'?"),
        ("/learn", b'{"tokens": [["Rome", "N"]], "tags": "O"}', 422, "must be a list of tags"),
        ("/learn", b'{"tokens": [["Rome", "N"]], "tags": []}', 422, "0 tags for 1 tokens"),
        ("/learn", b'{"tokens": [["late", "N"]], "tags": ["I-x"]}', 422, "forbids"),
        ("/learn", b'{"tokens": [["Rome", "N"]], "tags": [1]}', 422, "cannot be sorted"),
    ):
        reply = web.post(path, content=body)
        assert (reply.status_code, message in reply.json()["error"]) == (status, True), reply.text
    assert (tmp_path / "state" / JOURNAL).read_bytes() == b""
    assert all(map(np.array_equal, journal.tagger.weights(), weights))
    journal.close()


def test_tokens_are_needed_where_they_are_set(tmp_path, model):
    journal = Journal(tmp_path / "state", model)
    web = client(journal, Tokens("r" * 16, "l" * 16))
    read = {"authorization": "Bearer " + "r" * 16}
    assert web.post("/predict", json={"tokens": []}).status_code == 401
    assert web.post("/predict", json={"tokens": []}, headers=read).json() == {"tags": []}
    assert web.post("/learn", json=ZEST, headers=read).status_code == 403
    journal.close()


def test_damage_and_two_servers(tmp_path, model):
    state = tmp_path / "state"
    journal = Journal(state, model)
    with pytest.raises(DataError, match="another server uses"):
        Journal(state, None)
    for _ in range(2):
        client(journal).post("/learn", json=ZEST)
    journal.close()
    with pytest.raises(DataError, match="has a tagger already"):
        Journal(state, model)
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "commits.db").write_text("")
    with pytest.raises(DataError, match="is not empty, and has no tagger"):
        Journal(tmp_path / "other", model)
    content = (state / JOURNAL).read_bytes()
    (state / JOURNAL).write_bytes(content + b"0000 [[")  # a write that a kill cut off
    torn = Journal(state, None)
    assert torn.replayed == 2
    torn.append([ZEST["tokens"]], [ZEST["tags"]])
    torn.close()
    assert (state / JOURNAL).read_bytes() == content + content.splitlines(keepends=True)[0]
    (state / JOURNAL).write_bytes(content.replace(b"zest", b"rest", 1))
    with pytest.raises(DataError, match="line 1 is damaged"):
        Journal(state, None)
    assert (state / MODEL).is_file()


def test_learning_ends_where_the_journal_cannot_be_written(tmp_path, model, monkeypatch):
    journal = Journal(tmp_path / "state", model)
    web = client(journal)
    monkeypatch.setattr(journal, "append", lambda *_: (_ for _ in ()).throw(OSError("no space left")))
    assert web.get("/readyz").json() == {"status": "ready"}
    assert web.post("/learn", json=ZEST).status_code == 500
    assert (web.get("/readyz").status_code, web.get("/healthz").json()) == (503, {"status": "alive"})
    monkeypatch.undo()
    refused = web.post("/learn", json=ZEST)
    assert refused.status_code == 503 and "no space left" in refused.json()["error"]
    journal.close()
