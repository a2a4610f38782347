"""What the server answers: predictions, learning, explanations, the ledger, numbers, tokens; as offline."""

import gzip
import json
import re
import subprocess
import urllib.error
import urllib.request
from collections import Counter
from pathlib import Path

import numpy as np
import pytest

from separatrix import AveragedPerceptron, Model, TableFeatures, TextFeatures, explain, load, save
from separatrix.web import Client, ServerError
from separatrix.web.server.reading.request_reader import Limits, RequestError, RequestReader
from support.server_process import ServerProcess, examples, matrix, run, served


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    with served(tmp_path_factory.mktemp("http") / "state") as server:
        yield server


def ask(url, path, body=None, method=None, **headers):
    """One request; (status, headers, body), whatever the status."""
    request = urllib.request.Request(url + path, body, {name.replace("_", "-"): value for name, value in headers.items()})
    request.method = method or ("GET" if body is None else "POST")
    try:
        with urllib.request.urlopen(request, timeout=60) as reply:
            return reply.status, reply.headers, reply.read()
    except urllib.error.HTTPError as error:
        with error:
            return error.code, error.headers, error.read()


def test_from_nothing_to_predictions_explanations_and_a_model(tmp_path):
    with served(tmp_path / "state") as server:
        client = server.client()
        assert client.predict({"free": 1}) == {"prediction": None, "margin": None, "scores": [], "commit": 0}
        with pytest.raises(ServerError, match="409: nothing was learned yet"):
            client.save_model(tmp_path / "m.sepx")
        assert client.explain({"free": 1})["terms"] == []
        assert client.learn({"free": 1, "from": "bank"}, "spam") == {"learned": 1, "errors": 0, "mistakes": 0, "examples": 1}
        assert client.predict({})["prediction"] == "spam"
        assert client.learn({"noon": 1, "urgent": True}, "ham") == {"learned": 1, "errors": 1, "mistakes": 1, "examples": 2}
        assert client.learn({"free": 2}, "spam") == {"learned": 1, "errors": 1, "mistakes": 1, "examples": 3}
        told = client.explain({"free": 1, "noon": 1, "never met": 5})
        assert told["prediction"] == "ham" and told["score"] == told["total"] < 0
        said = {score["class"]: score["score"] for score in client.predict({"free": 1, "noon": 1})["scores"]}
        assert told["scores"] == [{"class": "spam", "score": said["spam"]}] and said["ham"] == -said["spam"]
        by_name = {term["name"]: term for term in told["terms"]}
        assert by_name["free"]["weight"] == pytest.approx(2 / 3) and by_name["noon"]["weight"] == pytest.approx(-2 / 3)
        assert "never met" not in by_name
        assert told["causes"] is told["n_mistakes"] is None and told["no_causes"]
        mistakes = list(client.ledger())
        assert [(m["number"], m["example"], m["raised"], m["lowered"]) for m in mistakes] == [
            (2, 3, "spam", "ham"),
            (1, 2, "ham", "spam"),
        ]
        assert mistakes[1]["features"] == {"noon": 1.0, "urgent": 1.0} and not mistakes[1]["undone"]
        assert client.undo(1) == {"undone": 1, "how": "subtracted"}
        assert [m["undone"] for m in client.ledger()] == [False, True]
        stats = client.stats()
        assert (stats["examples"], stats["errors"], stats["mistakes"], stats["undone"]) == (3, 2, 2, 1)
        assert {c["class"]: (c["examples"], c["errors"]) for c in stats["classes"]} == {"spam": (2, 1), "ham": (1, 1)}
        client.save_model(tmp_path / "m.sepx")
        model = load(tmp_path / "m.sepx").estimator
        assert model.feature_names_in_.tolist() == ["free", "from=bank", "noon", "urgent"]
        assert model.classes_.tolist() == ["ham", "spam"]


def test_many_at_a_time_is_one_at_a_time(tmp_path):
    stream = list(examples(500))
    with served(tmp_path / "one") as one, served(tmp_path / "many") as many:
        first, second = one.client(), many.client()
        told = [first.learn(*pair) for pair in stream]
        batches = list(second.learn_many(stream, size=120))
        assert [batch["learned"] for batch in batches] == [120, 120, 120, 120, 20]
        for name in ("errors", "mistakes"):
            assert sum(batch[name] for batch in batches) == sum(one[name] for one in told)
        first.save_model(tmp_path / "one.sepx")
        second.save_model(tmp_path / "many.sepx")
        singly = [first.predict(x) for x, _ in stream[:50]]
        jointly = list(second.predict_many([x for x, _ in stream[:50]], size=20))
        assert [p["prediction"] for p in singly] == [p["prediction"] for p in jointly]
        assert [p["scores"] for p in singly] == [p["scores"] for p in jointly]
        names = [m["number"] for m in first.ledger()]
        assert names == list(range(len(names), 0, -1)) and len(names) == sum(one["mistakes"] for one in told)
    one, many = (load(tmp_path / f"{name}.sepx").estimator for name in ("one", "many"))
    assert np.array_equal(one.coef_, many.coef_) and one.n_seen_ == many.n_seen_
    X = matrix(stream)[0]
    offline = AveragedPerceptron().partial_fit(X, [y for _, y in stream])
    assert np.array_equal(one.coef_, offline.coef_)
    assert [p["prediction"] for p in singly] == offline.predict(X[:50]).tolist()


def served_error(folder, stream, *options):
    """Learn a stream with a server, in batches of its own; the progressive error that it tells, and its windows."""
    with served(folder, *options) as server:
        client = server.client()
        for _ in client.learn_many(stream, size=97):
            pass
        return client.stats()


def test_the_progressive_error_is_that_of_the_offline_run_on_built_in_data(tmp_path):
    from sklearn.datasets import load_digits

    X, y = load_digits(return_X_y=True)
    stream = [({f"p{j}": float(v) for j, v in enumerate(x) if v}, int(label)) for x, label in zip(X, y, strict=True)]
    stats = served_error(tmp_path / "state", stream)
    rows, _ = matrix(stream)
    offline = AveragedPerceptron().partial_fit(rows, y)
    assert stats["errors"] == offline.n_errors_ and stats["error"] == offline.n_errors_ / len(y)
    for window in stats["windows"]:
        end = AveragedPerceptron().partial_fit(rows[: window["to"]], y[: window["to"]], classes=None)
        assert sum(w["errors"] for w in stats["windows"] if w["to"] <= window["to"]) == end.n_errors_


@pytest.mark.parametrize("how", ["text", "words"])
def test_the_progressive_error_on_sms_spam_is_that_of_the_offline_run(tmp_path, data_folder, how):
    with gzip.open(data_folder / "sms_spam" / "SMSSpamCollection.gz", "rt", encoding="utf-8") as file:
        labels, texts = zip(*(line.rstrip("\n").split("\t", 1) for line in file), strict=True)
    if how == "text":
        X = TextFeatures(idf=False, n_features=2**18).fit_transform(list(texts))
        stats = served_error(tmp_path / "state", list(zip(texts, labels, strict=True)), "--text", "--rule", "pa1")
        offline = AveragedPerceptron(rule="pa1").partial_fit(X, list(labels))
    else:
        stream = [(dict(Counter(re.findall(r"\w+", t.lower()))), y) for t, y in zip(texts, labels, strict=True)]
        stats = served_error(tmp_path / "state", stream)
        offline = AveragedPerceptron().partial_fit(matrix(stream)[0], list(labels))
    assert (stats["examples"], stats["errors"]) == (5574, offline.n_errors_)
    assert stats["error"] == offline.n_errors_ / 5574
    assert stats["windows"][-1]["error"] < stats["windows"][0]["error"]


def test_a_text_model_from_nothing_explains_by_words(tmp_path):
    with served(tmp_path / "state", "--text", "--bits", "16") as server:
        client = server.client()
        for _ in range(3):
            client.learn("free entry: call now", "spam")
            client.learn("see you at noon", "ham")
        assert client.predict("free call")["prediction"] == "spam"
        names = {term["name"]: term["product"] for term in client.explain("free call at noon")["terms"]}
        assert names["free"] > 0 > names["noon"]
        assert set(names) == {"free", "call", "at", "noon", "free call", "call at", "at noon", "BIAS"}
        client.learn("train to town", "travel")
        score = next(each["score"] for each in client.explain("free call")["scores"] if each["class"] == "ham")
        assert client.explain("free call", of="ham")["score"] == score
        assert client.explain("free call", of="ham", against="travel")["against"] == "travel"
        with pytest.raises(ServerError, match=r"there is no class 'spa'; the classes are .*did you mean 'spam'"):
            client.explain("free call", of="spa")
        assert {m["text"] for m in client.ledger()} <= {"free entry: call now", "see you at noon", "train to town"}
        client.save_model(tmp_path / "m.sepx")
        told = client.predict("free call")["scores"]
    scores = load(tmp_path / "m.sepx").decision_function(["free call"])
    assert {s["class"]: s["score"] for s in told} == dict(zip(("ham", "spam", "travel"), scores[0].tolist(), strict=True))


def test_a_column_that_was_left_out_may_hold_anything():
    features = TableFeatures().fit({"id": np.arange(50), "age": np.arange(50) % 7})
    assert features.left_out() == ["id"]
    reader = RequestReader(features, Limits())
    bodies = [{"row": {"id": number, "age": 3}} for number in (5, "A5", [1], None, {"no": 5})] + [{"row": {"age": 3}}]
    examples = reader.lines(b"\n".join(json.dumps(body).encode() for body in bodies), labelled=False)
    assert examples.n == 6
    expected = features.transform({"age": [3] * 6})
    assert np.array_equal(examples.indices, expected.indices) and np.array_equal(examples.data, expected.data)


def test_an_object_in_a_row_is_its_keys():
    reader = RequestReader(TableFeatures().fit({"user.age": [3, 4, 5], "job": ["a", "b", "a"]}), Limits())
    nested, flat = ({"row": row} for row in ({"user": {"age": 4}, "job": "b"}, {"user.age": 4, "job": "b"}))
    read, expected = (reader.one(json.dumps(body).encode(), False) for body in (nested, flat))
    assert read.indices.tolist() == expected.indices.tolist() and read.data.tolist() == expected.data.tolist()
    for row, why in (
        ({"user": {"wage": 4}}, "unknown column 'user.wage'"),
        ({"user": {"age": 1}, "user.age": 2}, "two values"),
    ):
        with pytest.raises(RequestError, match=why):
            reader.one(json.dumps({"row": row}).encode(), False)


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        ([{"age": "old"}], "\"row\", column 'age': 'old' is text, where numbers were learned from"),
        (
            [{"age": 1}, None, {"age": "1; roles='x'"}],
            "line 3: column 'age' holds a value that is of another kind than the one before",
        ),
        ([{"age": "1"}, None, {"age": "1; roles='x'"}], "line 3, column 'age': \"1; roles='x'\" is text, where numbers"),
        ([{"age": {"in": 5}}], "column 'age' holds struct<in: int64>, of which no features can be made"),
        ([{"member": "perhaps"}], "\"row\", column 'member': 'perhaps' is neither true nor false"),
    ],
)
def test_messages_about_rows_name_the_line_and_the_column_and_no_python(rows, message):
    features = TableFeatures().fit({"age": [3.5, 4, 5], "member": [True, False, None]})
    reader = RequestReader(features, Limits())
    bodies = [b"" if row is None else json.dumps({"row": row}).encode() for row in rows]
    with pytest.raises(RequestError) as error:
        reader.one(bodies[0], False) if len(bodies) == 1 else reader.lines(b"\n".join(bodies), False)
    assert message in error.value.message
    assert "roles={" not in error.value.message and not error.value.message.endswith(";")


def test_a_trained_table_model_takes_rows(tmp_path):
    table = {"age": [22, 38, 60, 41, 30, 55], "job": ["clerk", "cook", "clerk", "cook", "cook", None]}
    features = TableFeatures().fit(table)
    labels = ["no", "yes", "no", "yes", "yes", "no"]
    trained = AveragedPerceptron(random_state=0).fit(features.transform(table), labels)
    save(Model(trained, features), tmp_path / "m.sepx")
    with served(tmp_path / "state", "--model", str(tmp_path / "m.sepx")) as server:
        client = server.client()
        rows = [dict(zip(table, row, strict=True)) for row in zip(*table.values(), strict=True)]
        assert [p["prediction"] for p in client.predict_many(rows)] == trained.predict(features.transform(table)).tolist()
        for given in (rows[1], rows[5], {"age": 50}):
            told, offline = client.explain(given), explain(Model(trained, features), {"job": None} | given).to_dict()
            assert told["columns"] == offline["columns"] and told["score"] == offline["score"]
        client.learn(rows[5], "yes")
        client.save_model(tmp_path / "after.sepx")
        for bad, why in [
            ({"row": {"age": "old"}}, "age"),
            ({"row": {"wage": 1}}, "column 'wage'"),
            ({"row": {"age": [1]}}, ""),
            ({"features": {"age": 1}}, '"row" is missing'),
        ]:
            status, _, reply = ask(server.url, "/predict", json.dumps(bad).encode())
            assert status == 422 and why in json.loads(reply)["error"], reply
    offline = trained.partial_fit(features.transform({k: v[5:] for k, v in table.items()}), ["yes"])
    assert np.array_equal(load(tmp_path / "after.sepx").estimator.coef_, offline.coef_)


@pytest.mark.parametrize(
    ("learner", "why"),
    [("voted", "VotedPerceptron cannot learn"), ("pocket", "PocketPerceptron cannot learn"), ("balanced", "class weights")],
)
def test_models_that_cannot_go_on_are_refused(tmp_path, learner, why):
    from separatrix import PocketPerceptron, VotedPerceptron

    kinds = {
        "voted": VotedPerceptron(),
        "pocket": PocketPerceptron(),
        "balanced": AveragedPerceptron(class_weight="balanced"),
    }
    save(kinds[learner].set_params(random_state=0).fit([[0, 1], [1, 0]], ["a", "b"]), tmp_path / "m.sepx")
    status, told = run("serve", tmp_path / "state", "--model", tmp_path / "m.sepx", "--port", "0")
    assert status == 2 and why in told and "Traceback" not in told


def test_wrong_requests_are_refused_in_one_sentence(server):
    client = server.client()
    list(client.learn_many([({"a": 1}, "x"), ({"b": 1}, "y")]))
    for body, status, why in [
        (b"{", 400, "invalid JSON"),
        (b"", 400, "invalid JSON"),
        (b'{"features": {"a": NaN}, "label": "x"}', 400, "invalid JSON"),
        (b'{"features": {"a": 1e999}, "label": "x"}', 400, "invalid JSON"),
        (b'{"features": {"a": -1e101}, "label": "x"}', 422, "'a' is too large"),
        (b'{"features": {"a": null}, "label": "x"}', 422, "must be a number"),
        (b'{"features": {"a": [1]}, "label": "x"}', 422, "must be a number"),
        (b'{"features": [1], "label": "x"}', 422, '"features" must be an object'),
        (b'{"features": {"a": 1}}', 422, '"label" is missing'),
        (b'{"label": "x"}', 422, '"features" is missing'),
        (b"[]", 422, "a JSON object"),
        (b'{"features": {"a": 1}, "label": null}', 422, "a label must be a string or an integer"),
        (b'{"features": {"a": 1}, "label": [1]}', 422, "a label must be a string or an integer"),
        (b'{"features": {"a": 1}, "label": true}', 422, "a label must be a string or an integer"),
        (b'{"features": {"a": 1}, "label": 1.5}', 422, "a label must be a string or an integer"),
        (b'{"features": {"a": 1}, "label": ""}', 422, "a label must have"),
        (b'{"features": {"a": 1}, "label": "\\u0000"}', 422, "a label must have"),
        (b'{"features": {"a": 1}, "label": 3}', 422, "all strings or all integers"),
        (json.dumps({"features": {"n" * 1001: 1}, "label": "x"}).encode(), 422, "more than 1000 characters"),
        (json.dumps({"features": {"a": 1}, "label": "x" * 1001}).encode(), 422, "1 to 1000 characters"),
        (b'{"features": {"a": 1}, "label": "\\ud800"}', 400, "invalid JSON"),
        (b"\xff\xfe", 400, "invalid JSON"),
        (b"[" * 100_000, 400, "invalid JSON"),
    ]:
        found, headers, reply = ask(server.url, "/learn", body)
        assert (found, headers["content-type"]) == (status, "application/json"), body[:80]
        assert why in json.loads(reply)["error"], reply
    lines = b'{"features": {"a": 1}, "label": "x"}\n\n{"features": {"a": "b"}, "label": 7.5}\n'
    status, _, reply = ask(server.url, "/learn", lines, content_type="application/x-ndjson")
    assert status == 422 and "line 3" in json.loads(reply)["error"]
    status, _, reply = ask(server.url, "/learn", b'{"features": {}, "label": "x"}', Idempotency_Key="no spaces")
    assert status == 422 and "Idempotency-Key" in json.loads(reply)["error"]
    for path in ("/ledger?limit=0", "/ledger?limit=501", "/ledger?before=x", "/ledger?before=-1"):
        assert ask(server.url, path)[0] == 422
    for body in (b"{}", b'{"mistake": "1"}', b'{"mistake": 0}', b'{"mistake": true}', b"[]"):
        assert ask(server.url, "/undo", body)[0] == 422
    assert ask(server.url, "/undo", b'{"mistake": 999}')[0] == 404
    assert ask(server.url, "/../../etc/passwd")[0] == 404 and ask(server.url, "/learn")[0] == 405
    assert client.stats()["examples"] == 2, "nothing of all that was learned from"
    assert "Traceback" not in server.log()


def test_pages_and_numbers(server):
    status, headers, page = ask(server.url, "/")
    assert status == 200 and b"<title>" in page and b"http://" not in page and b"https://" not in page
    assert "default-src 'none'" in headers["content-security-policy"]
    for path in ("/status.js", "/status.css"):
        status, headers, content = ask(server.url, path)
        assert status == 200 and content and headers["x-content-type-options"] == "nosniff"
    assert json.loads(ask(server.url, "/healthz")[2]) == {"status": "alive"}
    assert json.loads(ask(server.url, "/readyz")[2]) == {"status": "ready"}
    text = ask(server.url, "/metrics")[2].decode()
    assert re.search(r'^separatrix_requests_total\{path="/healthz",status="200"\} \d+$', text, re.M)
    for line in text.splitlines():
        assert re.fullmatch(r"# (HELP|TYPE) [a-z_]+ .+|[a-z_]+(\{[^}]*\})? [0-9.e+-]+", line), line
    found = json.loads(ask(server.url, "/openapi.json")[2])
    assert set(found["paths"]) >= {"/predict", "/learn", "/explain", "/model", "/ledger", "/stats", "/healthz", "/readyz"}


READ, LEARN = "a token for reading", "a token for learning"


def test_tokens_are_asked_for(tmp_path):
    env = {"SEPARATRIX_READ_TOKEN": READ, "SEPARATRIX_LEARN_TOKEN": LEARN}
    with served(tmp_path / "state", "--host", "0.0.0.0", env=env) as server:
        url = server.url.replace("0.0.0.0", "127.0.0.1")
        example = b'{"features": {"a": 1}, "label": "x"}'
        for token, reads, learns in [(None, 401, 401), ("wrong", 401, 401), (READ, 200, 403), (LEARN, 200, 200)]:
            headers = {} if token is None else {"Authorization": f"Bearer {token}"}
            assert ask(url, "/predict", example, **headers)[0] == reads
            assert ask(url, "/stats", **headers)[0] == reads
            assert ask(url, "/metrics", **headers)[0] == reads
            assert ask(url, "/learn", example, **headers)[0] == learns
        assert ask(url, "/undo", b'{"mistake": 1}', Authorization=f"Bearer {READ}")[0] == 403
        assert ask(url, "/healthz")[0] == ask(url, "/readyz")[0] == ask(url, "/")[0] == 200
        assert ask(url, "/stats")[1]["www-authenticate"] == "Bearer"
        with Client(url, token=LEARN) as client:
            assert client.stats()["examples"] == 1
        assert ask(url, "/healthz", host="evil.example")[0] == 421
        assert READ not in server.log() and LEARN not in server.log()


def test_other_hosts_need_tokens_and_a_folder_has_one_server(tmp_path):
    status, told = run("serve", tmp_path / "state", "--host", "0.0.0.0", "--port", "0")
    assert status == 2 and "can be reached by others" in told
    status, told = run("serve", tmp_path / "state", "--host", "0.0.0.0", "--port", "0", "--read-token", READ)
    assert status == 2 and "can be reached by others" in told
    (tmp_path / "short").write_text("short\n")
    status, told = run("serve", tmp_path / "state", "--port", "0", "--learn-token-file", tmp_path / "short")
    assert status == 2 and "16" in told
    with served(tmp_path / "state") as server:
        with pytest.raises(ChildProcessError, match="is being served by another process"):
            ServerProcess(tmp_path / "state").start()
        port = server.url.rpartition(":")[2]
        status, told = run("serve", tmp_path / "other", "--port", port)
        assert status == 2 and "try another --port" in told
        assert server.client().stats()["examples"] == 0


def test_logs_hold_no_payloads_unless_asked(tmp_path):
    with served(tmp_path / "quiet", "--log", "requests") as server:
        server.client().learn({"a secret": 1}, "hush")
        assert ask(server.url, "/learn", b'{"features": {"a secret": [1]}, "label": "x"}')[0] == 422
        assert "POST /learn 200" in server.log() and "secret" not in server.log() and "hush" not in server.log()
    with served(tmp_path / "loud", "--log", "payloads") as server:
        server.client().learn({"a secret": 1}, "hush")
        assert "a secret" in server.log()


def test_the_lines_of_the_document_work(tmp_path):
    root = Path(__file__).parents[3]
    page = (root / "docs" / "serving.md").read_text()
    (tmp_path / "labelled.ndjson").write_text('{"text": "see you at noon", "label": "ham"}\n')
    with (
        served(tmp_path / "state", "--text") as server,
        served(tmp_path / "v", "--vectors", "--cosine") as vectors,
        served(tmp_path / "m", "--many", "--text") as many,
    ):
        lines = [
            line.replace("http://127.0.0.1:8018", vectors.url) for line in page.splitlines() if line.startswith("curl ")
        ]
        for line in lines:
            line = line.replace("http://127.0.0.1:8017", (many if "/models" in line else server).url)
            done = subprocess.run(["bash", "-c", line], capture_output=True, text=True, cwd=tmp_path, check=True)
            assert '"error":"' not in done.stdout, line
        (code,) = re.findall(r"```text\n(from separatrix\.web.*?)```", page, re.S)
        made = {"labelled": [("lunch at noon?", "ham"), ("free entry", "spam")]}
        exec(code.replace("http://127.0.0.1:8017", server.url), made)
        made["client"].close()
        assert len(lines) == 14 and load(tmp_path / "model.sepx").estimator.classes_.tolist() == ["ham", "spam"]
        assert server.client().stats()["examples"] == 6 and vectors.client().stats()["examples"] == 1
