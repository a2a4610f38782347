"""Requests that ask for too much: memory is claimed before it is used, answers come in parts, and each refusal says why."""

import asyncio
import json
import logging
import socket
import threading
import time
from collections import Counter
from pathlib import Path

import httpx
import pytest

from separatrix.web.exchange import Call, ServerError
from separatrix.web.server import app as apps
from separatrix.web.server import queries
from separatrix.web.server.app import Tokens, application
from separatrix.web.server.memory_budget import MemoryBudget, MemoryLimitError, ProcessMemory, resident
from separatrix.web.server.reading import bodies
from separatrix.web.server.reading.request_reader import Limits, RequestReader
from separatrix.web.server.storage import snapshots
from separatrix.web.server.storage.store import CommitStore
from separatrix.web.server.writing.writer import Writer
from support.served_store import FRESH
from support.server_process import examples, run, served

LINES = {"content-type": "application/x-ndjson"}
STREAM = list(examples(60, classes=("a", "b", "c", "d")))
MB = 1 << 20


def in_lines(stream):
    return b"\n".join(json.dumps({"features": x, "label": y}).encode() for x, y in stream)


def asked(folder, ask, limits=None, memory=None, settings=FRESH, **options):
    """Let `ask` talk to an application in this process, by a client, and return what it returns."""
    store = CommitStore(folder)
    snapshots.begin(store, None, settings)
    writer = Writer(store, limits or Limits(), memory=memory)
    app = application(writer, **options)

    async def exchange():
        client = httpx.AsyncClient(transport=httpx.ASGITransport(app=app), base_url="http://localhost", timeout=60)
        async with app.router.lifespan_context(app), client:
            reply = await client.post("/learn", content=in_lines(STREAM), headers=LINES | options.get("headers", {}))
            assert "tokens" in options or reply.status_code == 200, reply.text
            return await ask(client, writer, app)

    return asyncio.run(exchange())


async def raw(app, path, parts, take=None):
    """Send a body in parts as ASGI does; return the status and the parts of the answer. `take` is awaited for each part."""
    sent, answer = list(parts), []

    async def receive():
        if not sent:
            await asyncio.Event().wait()
        part = sent.pop(0)
        return part if isinstance(part, dict) else {"type": "http.request", "body": part}

    async def send(message):
        if take is not None and message["type"] == "http.response.body":
            await take()
        answer.append(message)

    headers = [(b"host", b"localhost"), (b"content-type", b"application/x-ndjson")]
    scope = {"type": "http", "method": "POST", "path": path, "query_string": b"", "headers": headers, "scheme": "http"}
    await app(scope | {"asgi": {"version": "3.0"}, "http_version": "1.1", "server": ("localhost", 80)}, receive, send)
    return answer[0]["status"], [message["body"] for message in answer[1:]]


def test_an_answer_comes_in_parts_and_is_what_it_was(tmp_path, monkeypatch):
    monkeypatch.setattr(queries, "rows_at_once", lambda n: 7)

    async def ask(client, writer, app):
        status, parts = await raw(app, "/predict", [in_lines(STREAM)])
        assert status == 200 and len(parts) == 10 and parts[-1] == b""
        lines = b"".join(parts).splitlines()
        single = [(await client.post("/predict", json={"features": x})).content for x, _ in STREAM]
        assert lines == single
        whole = await client.post("/predict", content=in_lines(STREAM), headers=LINES)
        assert whole.content.splitlines() == single and writer.memory.requests.claimed == 0
        invalid = await client.post("/predict", content=in_lines(STREAM) + b"\n{", headers=LINES)
        assert invalid.status_code == 400 and "line 61" in invalid.json()["error"], "all is read before anything is sent"

    asked(tmp_path / "s", ask)


def test_a_request_has_a_limit_of_scores(tmp_path):
    async def ask(client, writer, app):
        for path in ("/predict", "/learn"):
            refused = await client.post(path, content=in_lines(STREAM * 5), headers=LINES)
            assert refused.status_code == 413
            assert "300 examples × 4 classes exceed the limit of 1,000 scores per request" in refused.json()["error"]
            assert "send at most 250 examples at a time" in refused.json()["error"]
            accepted = await client.post(path, content=in_lines(STREAM * 4), headers=LINES)
            assert accepted.status_code == 200

    asked(tmp_path / "s", ask, Limits(scores=1000))


def memory(requests=100 * MB, models=100 * MB):
    return ProcessMemory(1 << 40, MemoryBudget(requests), MemoryBudget(models))


def test_large_requests_share_a_budget(tmp_path):
    """A request holds its share until it is answered; one beyond the rest is told to wait, one beyond all never fits."""
    body = in_lines(STREAM)
    room = memory(requests=bodies.MEMORY_PER_BYTE * 2 * len(body))

    async def ask(client, writer, app):
        large = await client.post("/predict", content=body * 3, headers=LINES)
        assert large.status_code == 413 and "--max-memory" in large.json()["error"]
        go_on, taken = asyncio.Event(), asyncio.Event()

        async def take():
            taken.set()
            await go_on.wait()

        holding = asyncio.create_task(raw(app, "/predict", [body + b"\n" + body[:-200].rpartition(b"\n")[0]], take))
        await taken.wait()
        busy = await client.post("/predict", content=body, headers=LINES)
        assert (busy.status_code, busy.headers["retry-after"]) == (429, "1")
        small = await client.post("/predict", json={"features": {"f1": 1}})
        assert small.status_code == 200, "small requests still pass"
        go_on.set()
        assert (await holding)[0] == 200
        assert (await client.post("/predict", content=body, headers=LINES)).status_code == 200
        assert room.requests.claimed == 0

    asked(tmp_path / "s", ask, memory=room)


def test_who_takes_an_answer_too_slowly_is_disconnected(tmp_path, monkeypatch):
    monkeypatch.setattr(queries, "rows_at_once", lambda n: 10)
    monkeypatch.setattr(bodies, "ANSWER_SECONDS", 0.05)

    async def ask(client, writer, app):
        status, parts = await raw(app, "/predict", [in_lines(STREAM)], asyncio.Event().wait)
        assert (status, parts, writer.memory.requests.claimed) == (200, [], 0)

    asked(tmp_path / "s", ask)


def test_nobody_predicts_for_a_client_that_has_left(tmp_path, monkeypatch):
    monkeypatch.setattr(queries, "rows_at_once", lambda n: 10)
    predicted, lines = [], queries.prediction_lines
    monkeypatch.setattr(queries, "prediction_lines", lambda *some: predicted.append(1) or lines(*some))

    async def ask(client, writer, app):
        gone = {"type": "http.disconnect"}
        status, parts = await raw(app, "/predict", [in_lines(STREAM), gone])
        assert (status, parts, len(predicted), writer.memory.requests.claimed) == (200, [], 1, 0)

    asked(tmp_path / "s", ask)


def test_a_model_grows_no_further_than_its_memory(tmp_path):
    room = memory()

    async def ask(client, writer, app):
        room.models.limit = room.models.claimed + 4 * MB
        grown = 0
        for n in (100, 1_000, 10_000, 9_999):
            features = {f"new{n}-{i}": 1.0 for i in range(n)}
            reply = await client.post("/learn", json={"features": features, "label": "a"})
            if reply.status_code == 200:
                grown += n
            else:
                error = reply.json()["error"]
                assert reply.status_code == 422 and "--max-memory" in error and "nothing was learned" in error, error
        assert 1_100 <= grown < 21_099 and room.models.claimed <= room.models.limit
        assert (await client.get("/stats")).json()["features"] == grown + 300 - _unseen()
        again = await client.post("/learn", content=in_lines(STREAM), headers=LINES)
        assert again.status_code == 200, "what needs no growth is still learned from"

    asked(tmp_path / "s", ask, memory=room)


def _unseen():
    return 300 - len({name for x, _ in STREAM for name in x})


def test_names_are_bounded_in_bytes(tmp_path):
    async def ask(client, writer, app):
        before = (await client.get("/stats")).json()["features"]
        long = "ü" * 400
        for body in ({"features": {long: 1}, "label": "a"}, {"features": {"x": long}, "label": "a"}):
            for kind in ({}, LINES):
                reply = await client.post("/learn", content=json.dumps(body, ensure_ascii=False).encode(), headers=kind)
                assert reply.status_code == 422 and "--name-limit" in reply.json()["error"]
        assert (await client.get("/stats")).json()["features"] == before
        short = await client.post("/learn", json={"features": {"ü": 1}, "label": "a"})
        assert short.status_code == 200 and (await client.get("/stats")).json()["features"] == before + 1

    names = sum(len(name) for name in {name for x, _ in STREAM for name in x})
    asked(tmp_path / "s", ask, Limits(names=names + 700))


def test_a_page_of_the_ledger_is_bounded_in_bytes(tmp_path, monkeypatch):
    monkeypatch.setattr(queries, "PAGE_BYTES", 2000)

    async def ask(client, writer, app):
        numbers, before = [], ""
        while True:
            page = await client.get(f"/ledger?limit=500{before}")
            assert len(page.content) < 2600
            numbers += [mistake["number"] for mistake in page.json()["mistakes"]]
            if page.json()["next"] is None:
                return numbers, page.json()["total"]
            before = f"&before={page.json()['next']}"

    numbers, total = asked(tmp_path / "s", ask)
    assert numbers == list(range(total, 0, -1)) and total > 10


def test_wrong_tokens_are_counted_logged_and_slowed(tmp_path, monkeypatch, caplog):
    monkeypatch.setattr(apps, "LEAST_DELAY", 0.2)
    right = {"authorization": "Bearer " + "r" * 16}

    async def ask(client, writer, app):
        loop = asyncio.get_running_loop()
        begun = loop.time()
        wrong = [client.get("/stats", headers={"authorization": f"Bearer {'x' * 15}{i}"}) for i in range(5)]
        waiting = asyncio.gather(*wrong)
        await asyncio.sleep(0.01)
        assert (await client.get("/stats", headers=right)).status_code == 200 and loop.time() - begun < 0.2
        assert (await client.get("/stats")).status_code == 401 and loop.time() - begun < 0.2, "no token is no guess"
        assert {reply.status_code for reply in await waiting} == {401}
        assert 0.6 < loop.time() - begun < 5, "the more at a time, the later"
        return (await client.get("/metrics", headers=right)).text

    text = asked(tmp_path / "s", ask, tokens=Tokens("r" * 16, "l" * 16))
    assert "separatrix_wrong_tokens_total 5" in text
    (record,) = [record for record in caplog.records if "wrong token" in record.getMessage()]
    assert record.levelno == logging.WARNING and "x" * 15 not in record.getMessage()


def test_logged_payloads_cannot_forge_lines(tmp_path, caplog):
    caplog.set_level(logging.INFO)

    async def ask(client, writer, app):
        await client.post(
            "/predict", content=b'{"features":\r\n{"\x1b[2J\xe2\x80\xae":1}}\n2030-01-01T00:00:00Z INFO forged'
        )

    asked(tmp_path / "s", ask, payloads_logged=True)
    (message,) = [record.getMessage() for record in caplog.records if record.getMessage().startswith("/predict")]
    assert message.isprintable() and r'{"features":\r\n{"\x1b[2J\u202e":1}}\n2030' in message


def test_a_budget_never_gives_more_than_it_has():
    budget = MemoryBudget(100)
    budget.claim(60)
    with pytest.raises(MemoryLimitError) as full:
        budget.claim(41)
    assert budget.claimed == 60 and not full.value.never
    budget.release(60)
    with pytest.raises(MemoryLimitError) as full:
        budget.claim(101)
    assert full.value.never
    process = ProcessMemory.of(1000 * MB, 200 * MB)
    assert process.requests.limit + process.models.limit == 800 * MB and process.requests.limit == 400 * MB
    with pytest.raises(MemoryLimitError):
        MemoryBudget(1 << 50, process_limit=resident() + MB).claim(2 * MB)
    assert ProcessMemory.of().limit > 0


def test_lines_are_parsed_in_parts_as_if_at_once(monkeypatch):
    reader = RequestReader(None, Limits())
    body = in_lines(STREAM).replace(b"\n", b"\n\n \n") + b"\n"
    whole = reader.lines(body, True)
    monkeypatch.setattr("separatrix.web.server.reading.request_reader._PART", 100)
    parts = reader.lines(body, True)
    assert (parts.names, parts.labels) == (whole.names, whole.labels)
    assert (parts.data == whole.data).all() and (parts.indptr == whole.indptr).all()
    with pytest.raises(Exception, match="line 179: invalid JSON"):
        reader.lines(body + b"{", True)


@pytest.mark.skipif(not resident(), reason="the memory of a process is read from /proc")
def test_a_large_prediction_takes_little_memory_and_sigterm_little_time(tmp_path):
    """40,000 examples in a megabyte: the answer once took ten times its size. Then many new classes, and the end."""
    stream = [(x, f"c{i % 12}") for i, (x, _) in enumerate(examples(60))]
    with served(tmp_path / "state") as server:
        client = server.client(patience=0)
        list(client.learn_many(stream))
        before = _peak(server)
        body = b"\n".join([b'{"features": {"f1": 1}}'] * 40_000)
        answer = client._send(Call("POST", "/predict", body, "application/x-ndjson"))
        assert answer.count(b"\n") == 40_000 and len(answer) > 15 * MB
        assert _peak(server) - before < 60 * MB
        labels = in_lines([({"f1": 1.0, f"n{i}": 1.0}, f"new{i:05}") for i in range(4_000)])
        with socket.create_connection(("127.0.0.1", int(server.url.rpartition(":")[2]))) as one:
            head = "POST /learn HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/x-ndjson\r\n"
            one.sendall(f"{head}Content-Length: {len(labels)}\r\n\r\n".encode() + labels)
            begun = time.monotonic()
            assert server.stop() == 0 and time.monotonic() - begun < 15


@pytest.mark.slow
@pytest.mark.skipif(not resident(), reason="the memory of a process is read from /proc")
def test_the_whole_process_stays_within_its_memory(tmp_path):
    """Features are added until that is refused, with a snapshot each second, while large predictions come all the time."""
    limit, statuses = 700 * MB, Counter()
    with served(tmp_path / "state", "--max-memory", "700M", "--snapshot-every", "1") as server:
        client = server.client(patience=60)  # what is refused because of the large requests is sent again
        list(client.learn_many([(x, f"c{i % 20}") for i, (x, _) in enumerate(examples(60))]))
        large, ended = b"\n".join([b'{"features": {"f1": 1}}'] * 100_000), threading.Event()

        def predict():
            one = server.client(patience=0)
            while not ended.is_set():
                try:
                    statuses[200] += bool(one._send(Call("POST", "/predict", large, "application/x-ndjson")))
                except ServerError as error:
                    statuses[error.status] += 1

        threads = [threading.Thread(target=predict) for _ in range(4)]
        for thread in threads:
            thread.start()
        grown = 0
        with pytest.raises(ServerError, match="--max-memory") as refused:
            for k in range(100):
                client.learn({f"feature {k} {i}": 1.0 for i in range(10_000)}, "c1")
                grown += 1
        assert refused.value.status == 422 and grown >= 3
        assert client.learn({"f1": 1.0}, "c2")["learned"] == 1
        ended.set()
        for thread in threads:
            thread.join()
        assert set(statuses) <= {200, 429} and statuses[200] and statuses[429], statuses
        assert _peak(server) < limit, f"{_peak(server) / MB:.0f} MB"
        assert server.stop() == 0


def _peak(server):
    status = Path(f"/proc/{server.pid}/status").read_text()
    return int(status.partition("VmHWM:")[2].split()[0]) * 1024


def test_too_little_memory_is_refused_at_the_start(tmp_path):
    status, said = run("serve", tmp_path / "s", "--max-memory", "100M", "--port", "0")
    assert status == 2 and "--max-memory 100M is too little: the server itself needs" in said
    status, said = run("serve", tmp_path / "s", "--max-memory", "much", "--port", "0")
    assert status == 2 and "--max-memory='much' is not a size" in said
