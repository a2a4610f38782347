"""The clients: what they return, what they retry, and that a retry is never learned from twice."""

import asyncio
import inspect
import json
import socket
import subprocess
import sys
import threading
import time

import pytest

from separatrix import load
from separatrix.web import AsyncClient, Client, ServerError, ServerUnreachableError
from separatrix.web.exchange import Call, Patience, Server
from support.flaky_proxy import FlakyProxy
from support.server_process import examples, served


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    with served(tmp_path_factory.mktemp("clients") / "state", "--many") as server:
        yield server


class Awaited:
    """An asynchronous client with the methods of the other one."""

    def __init__(self, url, **options):
        self.client = AsyncClient(url, **options)
        self.loop = asyncio.new_event_loop()

    def model(self, name):
        other = object.__new__(Awaited)
        other.loop, other.client = self.loop, self.client.model(name)
        return other

    def __getattr__(self, name):
        method = getattr(self.client, name)

        async def listed(things):
            return [thing async for thing in things]

        def call(*arguments, **options):
            result = method(*arguments, **options)
            return self.loop.run_until_complete(listed(result) if inspect.isasyncgen(result) else result)

        return call


@pytest.fixture(params=[Client, Awaited], ids=["sync", "async"])
def connect(request):
    clients = []

    def connect(url, **options):
        clients.append(request.param(url, **options))
        return clients[-1]

    yield connect
    for client in clients:
        client.close()
        if isinstance(client, Awaited):
            client.loop.close()


def name_of(request):
    return "".join(c if c.isalnum() else "-" for c in request.node.name.lower())[-60:].strip("-")


def test_both_clients_have_the_same_methods():
    def public(kind):
        return {
            name: list(inspect.signature(method).parameters)
            for name, method in vars(kind).items()
            if not name.startswith("_") and callable(method)
        }

    assert public(Client) == public(AsyncClient)


def test_every_request_of_the_server(server, connect, request, tmp_path):
    stream = list(examples(60))
    root = connect(server.url)
    name = name_of(request)
    assert root.create_model(name, rule="pa1") == {
        "name": name,
        "created": True,
        "settings": {
            "learner": "averaged",
            "rule": "pa1",
            "C": 1.0,
            "text": False,
            "bits": 18,
            "vectors": False,
            "cosine": False,
        },
    }
    assert root.create_model(name, rule="pa1")["created"] is False
    with pytest.raises(ServerError, match=r"409: the model .* exists already, with rule='pa1'"):
        root.create_model(name, rule="perceptron")
    client = root.model(name)
    assert client.predict(stream[0][0])["prediction"] is None
    assert client.learn(*stream[0]) == {"learned": 1, "errors": 0, "mistakes": 0, "examples": 1}
    replies = list(client.learn_many(stream[1:], size=20))
    assert [reply["examples"] for reply in replies] == [21, 41, 60]
    some = [x for x, _ in stream[:30]]
    singly = [client.predict(x) for x in some]
    assert list(client.predict_many(some, size=7)) == singly
    mistakes = list(client.ledger())
    stats = client.stats()
    assert len(mistakes) == stats["mistakes"] == sum(r["mistakes"] for r in replies) and stats["examples"] == 60
    explanation = client.explain(stream[5][0], of="spam", against="ham")
    assert (explanation["of"], explanation["against"]) == ("spam", "ham")
    assert sum(term["product"] for term in explanation["terms"]) == pytest.approx(explanation["total"])
    assert client.undo(mistakes[0]["number"])["undone"] == mistakes[0]["number"]
    client.save_model(tmp_path / "m.sepx")
    assert load(tmp_path / "m.sepx").estimator.n_seen_ == 60
    assert client.request("GET", "/readyz") == {"status": "ready"}
    assert name in [summary["name"] for summary in root.models()]
    assert root.delete_model(name) == {"deleted": name, "examples": 60}
    with pytest.raises(ServerError, match="404: there is no model"):
        client.stats()
    client.close()


def test_large_answers_come_in_chunks(server, connect, request):
    client = connect(f"{server.url}/models/{name_of(request)}")
    client.learn({"a": 1}, "x")
    answers = list(client.predict_many([{"a": 1}] * 5000, size=5000))
    assert len(answers) == 5000 and {answer["prediction"] for answer in answers} == {"x"}


def test_a_model_that_its_first_example_creates(server, connect, request):
    client = connect(f"{server.url}/models/{name_of(request)}")
    with pytest.raises(ServerError) as missing:
        client.stats()
    assert missing.value.status == 404 and missing.value.reply["input"] == "features"
    assert client.learn({"a": 1}, "x")["examples"] == 1


@pytest.mark.parametrize(
    "script",
    [["drop"], ["cut"], ["drop", "cut", "drop"], ["refuse", "drop"], [503, "drop"], [429, 503], [502, 504, "drop"]],
    ids=str,
)
def test_a_lost_reply_is_not_learned_from_twice(server, connect, request, script):
    """The server has committed when the connection is lost: the client sends it again under the same key."""
    path = f"/models/{name_of(request)}"
    with FlakyProxy(server.url, f"{path}/learn", script) as proxy:
        client = connect(proxy.url + path)
        assert client.learn({"a": 1}, "x") == {"learned": 1, "errors": 0, "mistakes": 0, "examples": 1}
        assert client.learn({"b": 1}, "y")["examples"] == 2
        assert [reply["examples"] for reply in client.learn_many([({"a": 1}, "x")] * 3, size=3)] == [5]
        assert client.stats()["examples"] == 5
    assert not proxy.script
    first = [sent for sent, _ in proxy.sent if b'{"a": 1}, "label": "x"}' in sent and b"ndjson" not in sent]
    committed = sum(action in ("drop", "cut") for action in script) + 1
    keys = {line for sent in first for line in sent.split(b"\r\n") if line.startswith(b"Idempotency-Key")}
    assert len(first) == committed and len(keys) == 1, "each time under the same key"


def test_many_lost_replies_of_many_tasks(server):
    """Twenty tasks learn over ten connections, and every third reply is lost."""
    path = "/models/many-tasks"

    async def learn(url):
        async with AsyncClient(url + path) as client:
            await client.learn({"begin": 1}, "x")
            await asyncio.gather(*(client.learn({f"f{k}": 1}, "xy"[k % 2]) for k in range(20)))
            return await client.stats()

    with FlakyProxy(server.url, f"{path}/learn", ["pass", "drop", "cut"] * 6) as proxy:
        stats = asyncio.run(learn(proxy.url))
    assert (stats["examples"], stats["features"]) == (21, 21)
    assert len(proxy.sent) > 21


def test_an_undo_is_never_sent_twice(server, connect, request):
    path = f"/models/{name_of(request)}"
    with FlakyProxy(server.url, f"{path}/undo", ["drop", 503]) as proxy:
        client = connect(proxy.url + path)
        client.learn({"a": 1}, "x")
        client.learn({"b": 1}, "y")
        with pytest.raises(ServerUnreachableError):
            client.undo(1)
        assert [mistake["undone"] for mistake in client.ledger()] == [True]
        with pytest.raises(ServerError, match="503: too busy"):
            client.undo(1)
        with pytest.raises(ServerError, match="409: mistake 1 was already undone"):
            client.undo(1)


def test_retries_end_and_the_error_has_the_key(server, connect, request):
    path = f"/models/{name_of(request)}"
    with FlakyProxy(server.url, f"{path}/learn", ["drop"] * 100) as proxy:
        client = connect(proxy.url + path, patience=1.5)
        begun = time.monotonic()
        with pytest.raises(ServerUnreachableError, match="it is not known whether this was learned") as lost:
            client.learn({"a": 1}, "x")
        assert time.monotonic() - begun < 15 and len(proxy.sent) > 1
        proxy.script.clear()
        assert client.learn({"a": 1}, "x", key=lost.value.key)["examples"] == 1
        assert client.stats()["examples"] == 1


def test_no_server_at_all(connect):
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
    with pytest.raises(ServerUnreachableError, match=f"no reply from http://127.0.0.1:{port}: .*[Cc]onnect"):
        connect(f"http://127.0.0.1:{port}", patience=0.1).stats()


def test_a_silent_server_times_out(connect):
    with socket.create_server(("127.0.0.1", 0)) as listener:
        client = connect(f"http://127.0.0.1:{listener.getsockname()[1]}", timeout=0.2, patience=0)
        begun = time.monotonic()
        with pytest.raises(ServerUnreachableError, match="no reply from"):
            client.stats()
        assert time.monotonic() - begun < 3


def test_what_is_no_http_is_an_error(connect):
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def answer():
            connection, _ = listener.accept()
            with connection:
                connection.recv(1000)
                connection.sendall(b"SSH-2.0-OpenSSH\r\n\r\n")

        thread = threading.Thread(target=answer)
        thread.start()
        with pytest.raises(ServerUnreachableError):
            connect(f"http://127.0.0.1:{listener.getsockname()[1]}", patience=0).stats()
        thread.join()


def test_errors_have_the_servers_message(server, connect, request):
    client = connect(f"{server.url}/models/{name_of(request)}")
    client.learn({"a": 1}, "x")
    with pytest.raises(ServerError, match="422: the labels of a model must be all strings or all integers") as refused:
        client.learn({"a": 1}, 3)
    assert refused.value.status == 422 and refused.value.message.startswith("the labels of a model")
    with pytest.raises(ValueError, match="Out of range float"):
        client.learn({"a": float("nan")}, "x")
    with pytest.raises(ServerError, match="422: 'No Model' cannot be the name of a model"):
        connect(f"{server.url}/models/No%20Model").stats()
    with pytest.raises(ValueError, match="it must look like"):
        connect("localhost:8017")


def test_pauses_grow_and_heed_the_server(monkeypatch):
    call, busy = Call("GET", "/stats"), ServerError(503, "busy")
    patience = Patience(60)
    pauses = [patience.pause_after(call, busy) for _ in range(8)]
    for pause, longest in zip(pauses, (0.05, 0.1, 0.2, 0.4, 0.8, 1.6, 2.0, 2.0), strict=True):
        assert longest / 2 <= pause <= longest
    assert Patience(60).pause_after(call, busy, "7") == 7.0
    for patience, problem, retry_after in (
        (Patience(60), ServerError(422, "wrong"), None),
        (Patience(5), busy, "7"),
        (Patience(0), busy, None),
    ):
        with pytest.raises(ServerError):
            patience.pause_after(call, problem, retry_after)
    assert Server.at("http://[::1]:80/models/x/") == ("http", "::1", 80, "/models/x")
    assert Server.at("https://example.org/models/x").url == "https://example.org/models/x"


def test_the_clients_import_nothing_heavy():
    code = """if True:
        import json, sys
        from separatrix.web import AsyncClient, Client
        print(json.dumps(sorted(sys.modules)))
    """
    modules = json.loads(subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout)
    heavy = ("numpy", "scipy", "numba", "pyarrow", "starlette", "uvicorn", "orjson", "sklearn", "pandas")
    assert not [name for name in modules if name.split(".")[0] in heavy]
