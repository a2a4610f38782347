"""Vectors: as lists or packed, scaled or not, learned as the same numbers as features; one clear refusal for each fault."""

import base64

import numpy as np
import orjson
import pytest

from separatrix import AveragedPerceptron, load
from separatrix.web import ServerError
from separatrix.web.server.reading.request_reader import Limits, RequestError, RequestReader
from support.served_store import FRESH, ServedStore
from support.server_process import run, served

VECTORS = FRESH | {"vectors": True}
D = 24


def packed(x):
    return base64.b64encode(np.asarray(x, "<f4").tobytes()).decode()


def embeddings(n, seed=0, classes=("refund", "login", "delivery")):
    rng = np.random.default_rng(seed)
    hidden = rng.normal(size=(D, len(classes)))
    X = rng.normal(size=(n, D)).astype(np.float32)
    return X, [classes[k] for k in np.argmax(X @ hidden, axis=1)]


def learn(one, x, label, **marks):
    body = orjson.dumps({"vector": x, "label": label, **marks})
    return orjson.loads(one.writer.submit(one.reader.one(body, True), None, body).result(60))


@pytest.mark.parametrize("cosine", [False, True])
def test_learned_as_offline_however_they_are_sent_and_recovered_bit_for_bit(tmp_path, cosine):
    X, y = embeddings(300)
    one = ServedStore(tmp_path / "s", VECTORS | {"cosine": cosine})
    for i in range(150):
        learn(one, packed(X[i]) if i % 2 else X[i].tolist(), y[i])
    one.writer._maybe_snapshot()
    one.learn([(x.tolist(), label) for x, label in zip(X[150:], y[150:], strict=True)])
    state = one.crash()
    again = ServedStore(tmp_path / "s", VECTORS | {"cosine": cosine})
    assert again.live_model.state() == state and again.reader.vectors.dimension == D
    rows = X.astype(np.float64)
    if cosine:
        lengths = np.sqrt(np.einsum("ij,ij->i", rows, rows))
        rows = (rows / lengths[:, None]).astype(np.float32).astype(np.float64)
    offline = AveragedPerceptron()
    for i in range(300):  # one at a time: classes are added as they are met
        offline.partial_fit(rows[i : i + 1], y[i : i + 1])
    model = again.live_model.model(None).estimator
    assert np.allclose(model.coef_, offline.coef_, rtol=1e-9, atol=1e-12)
    assert model.n_mistakes_ == offline.n_mistakes_ and model.n_features_in_ == D
    again.crash()


FAULTS = [
    ([0.0] * D, "is zero: it has no direction"),
    (packed([float("nan")] + [1.0] * (D - 1)), "value 1 is not a finite float32 number"),
    (packed([1.0] * (D - 1) + [float("inf")]), f"value {D} is not a finite float32 number"),
    ([1e39] + [1.0] * (D - 1), "value 1 is not a finite float32 number"),
    ([1.0] * (D + 1), f"has {D + 1} values, and those of this model have {D}"),
    ([1.0] * (D - 1), f"has {D - 1} values, and those of this model have {D}"),
    (["1.0"] * D, "value 1 is not a number"),
    ([True] * D, "value 1 is not a number"),
    ([[1.0]] * D, "value 1 is not a number"),
    ([], "must be a list of numbers"),
    ({"a": 1}, "must be a list of numbers"),
    ("no base64!", "is not base64"),
    ("ä", "is not base64"),
    ("AAAA", "3 bytes in base64, which are no float32 numbers"),
    ("", "0 bytes in base64"),
]


def test_every_fault_is_one_clear_refusal_and_nothing_is_learned():
    reader = RequestReader(None, Limits(), {"vectors": True})
    reader.vectors.dimension = D
    for vector, message in FAULTS:
        for labelled in (True, False):
            with pytest.raises(RequestError, match=message) as refused:
                reader.one(orjson.dumps({"vector": vector, "label": "x"}), labelled)
            assert refused.value.status == 422, vector
    with pytest.raises(RequestError, match='line 2: "vector" has 2 values') as refused:
        reader.lines(orjson.dumps({"vector": [1.0] * D}) + b'\n{"vector": [1, 2]}', False)
    with pytest.raises(RequestError, match="5 values exceed the limit of 4 per example") as refused:
        RequestReader(None, Limits(features=4), {"vectors": True}).one(b'{"vector": [1, 2, 3, 4, 5]}', False)
    assert refused.value.status == 413


def test_requests_that_wait_together_cannot_have_two_dimensions(tmp_path):
    one = ServedStore(tmp_path / "s", VECTORS)
    with one.writer._wake:
        futures = []
        for x in ([1.0, 2.0], [1.0, 2.0, 3.0], [3.0, 4.0]):
            body = orjson.dumps({"vector": x, "label": "a"})
            futures.append(one.writer.submit(one.reader.one(body, True), None, body))
    assert orjson.loads(futures[0].result(60))["learned"] == 1
    with pytest.raises(RequestError, match="has 3 values, and those of this model have 2"):
        futures[1].result(60)
    assert orjson.loads(futures[2].result(60))["examples"] == 2
    one.crash()


def test_a_refused_first_vector_fixes_no_dimension(tmp_path):
    one = ServedStore(tmp_path / "s", VECTORS, limits=Limits(weights=10))
    with pytest.raises(RequestError, match="weight-limit"):
        learn(one, [1.0] * 11, "a")
    assert one.reader.vectors.dimension == 0
    assert learn(one, [1.0, 2.0], "a")["learned"] == 1
    one.crash()


def test_pins_ledger_and_explanations_of_vectors_over_http(tmp_path):
    with served(tmp_path / "state", "--vectors", "--cosine", "--learner", "last") as server:
        client = server.client()
        assert client.predict([1, 2, 3])["prediction"] is None
        client.learn([1, 0, 0], "a")
        fields = {"vector": packed([0, 3, 4]), "label": "b", "pin": True, "until_right": True}
        assert client.request("POST", "/learn", fields)["right"]
        assert client.predict([0, 30, 40])["prediction"] == "b"
        (mistake,) = client.ledger()
        assert mistake["vector"] == packed([0, 0.6, 0.8])
        terms = {term["name"]: term["value"] for term in client.explain([0, 3, 4])["terms"]}
        assert terms["x1"] == pytest.approx(0.6) and terms["x2"] == pytest.approx(0.8)
        with pytest.raises(ServerError, match='422: "vector" has 2 values, and those of this model have 3'):
            client.predict([0, 3])
        assert client.stats()["input"] == "vector" and client.stats()["features"] == 3
        client.request("POST", "/learn", {"vector": [0, 3, 4], "label": "a"})
        (broken,) = client.request("GET", "/regressions")["regressions"]
        assert broken["vector"] == packed([0, 0.6, 0.8])
        client.save_model(tmp_path / "m.sepx")
        server.kill()
    assert load(tmp_path / "m.sepx").estimator.n_features_in_ == 3
    with served(tmp_path / "state") as server, pytest.raises(ServerError, match="those of this model have 3"):
        server.client().learn([1, 2], "a")
    status, told = run("serve", tmp_path / "x", "--vectors", "--text")
    assert status == 2 and "exclude each other" in told
    status, told = run("serve", tmp_path / "x", "--cosine")
    assert status == 2 and "use it with --vectors" in told
