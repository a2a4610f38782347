"""The corrections behind an answer: together they are the lead, averaged or not, and undone ones are left out."""

import numpy as np
import orjson
import pytest

from separatrix.web import ServerError
from separatrix.web.exchange import Call
from separatrix.web.server import citations
from separatrix.web.server.queries import predictions
from separatrix.web.server.reading.request_reader import RequestError
from support.served_store import FRESH, ServedStore
from support.server_process import examples, served


def cited(one, x):
    return citations.citations(one.store, one.writer.buffer, one.reader.one(orjson.dumps({"features": x}), False))


@pytest.mark.parametrize("classes", [("ham", "spam"), ("ham", "spam", "other")])
@pytest.mark.parametrize("settings", [{}, {"learner": "last"}, {"rule": "pa1"}], ids=str)
def test_what_the_corrections_add_is_the_lead(tmp_path, settings, classes):
    one = ServedStore(tmp_path / "s", FRESH | settings)
    stream = list(examples(200, classes=classes, names=40))
    for i, (x, y) in enumerate(stream):
        body = orjson.dumps({"features": x, "label": y, "until_right": i % 7 == 0})
        one.writer.submit(one.reader.one(body, True), None, body).result(60)
    one.undo(3)
    for x, _ in stream[:30]:
        told = cited(one, x)
        assert told["sum"] == pytest.approx(told["lead"], abs=1e-9) and told["considered"] == told["of"]
        sizes = [abs(c["adds"]) for c in told["corrections"]]
        assert sizes == sorted(sizes, reverse=True) and len(sizes) <= 10
        assert 3 not in [c["number"] for c in told["corrections"]], "it was undone"
        (prediction,) = predictions(one.writer.buffer, one.reader.one(orjson.dumps({"features": x}), False))
        assert prediction["margin"] == pytest.approx(told["lead"], abs=1e-9)
    first = cited(one, stream[0][0])["corrections"][0]
    number = first["example"]
    assert first["features"] == pytest.approx(stream[number - 1][0]), "the example is named as it was sent"
    one.crash()


def test_the_cost_is_bounded_and_said(tmp_path, monkeypatch):
    monkeypatch.setattr(citations, "MOST_MISTAKES", 5)
    one = ServedStore(tmp_path / "s")
    for x, y in examples(100, names=30):
        one.learn([(x, y)])
    told = cited(one, {"f1": 1.0})
    assert told["considered"] == 5 < told["of"]
    one.crash()


def test_where_nothing_can_be_cited_it_is_said(tmp_path):
    arow = ServedStore(tmp_path / "a", FRESH | {"rule": "arow"})
    arow.learn(list(examples(30)))
    with pytest.raises(RequestError, match="arow scales corrections by variances"):
        cited(arow, {"f1": 1.0})
    arow.crash()
    exact = ServedStore(tmp_path / "b", keep_all=True)
    exact.learn(list(examples(30)))
    exact.undo(1)
    with pytest.raises(RequestError, match="after an exact undo"):
        cited(exact, {"f1": 1.0})
    exact.crash()


def test_predictions_with_ask_and_cite_over_http(tmp_path):
    with served(tmp_path / "state", "--ask", "0.5", "--learner", "last") as server:
        client = server.client()
        assert client.predict({"a": 1})["ask"] is True, "nothing is known"
        client.learn({"a": 1}, "no")
        client.learn({"b": 1}, "yes")
        sure, unsure = client.predict({"b": 1}), client.predict({"c": 1})
        assert sure["margin"] == 2.0 and sure["ask_probability"] == 0.5 / 2.5
        assert unsure["margin"] == 1.0 and unsure["ask_probability"] == 0.5 / 1.5, "the bias alone"
        lines = list(client.predict_many([{"b": 1}] * 2000))
        share = np.mean([line["ask"] for line in lines])
        assert abs(share - 0.2) < 0.05, "5.6 deviations"
        told = client.request("POST", "/predict", {"features": {"b": 1}, "cite": True})
        (correction,) = told["citations"]["corrections"]
        assert correction["features"] == {"b": 1.0} and correction["adds"] == told["citations"]["lead"] == 2.0
        assert told["citations"]["against"] == "no"
        with pytest.raises(ServerError, match='422: "cite" must be true or false'):
            client.request("POST", "/predict", {"features": {"b": 1}, "cite": "yes"})
        with pytest.raises(ServerError, match=r"422: .* one example at a time"):
            body = orjson.dumps({"features": {"b": 1}, "cite": True})
            client._json(Call("POST", "/predict", body, "application/x-ndjson"))
        assert "citations" not in client.predict({"cite": 1}), "a feature may have the name"
