"""What nobody should send: the server answers with the right code, in bounded memory, and goes on."""

import contextlib
import http.client
import json
import socket
import threading
import time
from collections import Counter
from urllib.parse import urlsplit

import pytest

from support.scale import scaled
from support.server_process import examples, served

MB = 1 << 20
ROOM = 150 * MB
"""What the server may grow by while it is attacked: queues, bodies on their way, and what the allocator keeps."""


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    with served(tmp_path_factory.mktemp("hard") / "state") as server:
        client = server.client()
        list(client.learn_many(examples(500)))
        yield server
        assert "Traceback" not in server.log()


@pytest.fixture(autouse=True)
def unharmed(server):
    """After whatever a test sends, the server answers, has learned nothing else, and is not much larger."""
    client = server.client()
    before, size = client.stats()["examples"], server.resident()
    yield
    deadline = time.monotonic() + 60
    while server.resident() > size + ROOM and time.monotonic() < deadline:
        time.sleep(0.1)
    assert server.resident() < size + ROOM
    assert client.stats()["examples"] == before
    assert client.predict({"f1": 1.0})["prediction"] is not None


def connection(server, timeout=60):
    parts = urlsplit(server.url)
    return contextlib.closing(http.client.HTTPConnection(parts.hostname, parts.port, timeout=timeout))


def plug(server):
    parts = urlsplit(server.url)
    return socket.create_connection((parts.hostname, parts.port), timeout=60)


def post(server, path, body, kind="application/json"):
    with connection(server) as one:
        one.request("POST", path, body, {"Content-Type": kind})
        reply = one.getresponse()
        return reply.status, reply.read()


@pytest.mark.slow
def test_a_million_features(server):
    for path in ("/learn", "/predict", "/explain"):
        body = json.dumps({"features": {f"x{i}": 1 for i in range(400_000)}, "label": "spam"}).encode()
        assert len(body) < 8 * MB
        status, reply = post(server, path, body)
        assert status == 413 and b"400,000 features exceed the limit of 10,000" in reply
        body = json.dumps({"features": {f"x{i}": 1 for i in range(1_000_000)}, "label": "spam"}).encode()
        assert len(body) > 8 * MB
        assert post_whatever_happens(server, path, body) == 413


def head(path, length):
    return f"POST {path} HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\n{length}\r\n\r\n".encode()


def post_whatever_happens(server, path, body):
    """The status, also where the server answers before it has been told everything."""
    with plug(server) as one:
        one.sendall(head(path, f"Content-Length: {len(body)}"))
        with contextlib.suppress(OSError):
            one.sendall(body)
        return int(one.recv(4096).split()[1])


def test_a_hundred_megabytes_said_and_unsaid(server):
    assert post_whatever_happens(server, "/learn", b"x" * 100 * MB) == 413
    with plug(server) as one:
        one.sendall(head("/learn", "Transfer-Encoding: chunked"))
        chunk = b"100000\r\n" + b"x" * MB + b"\r\n"
        with contextlib.suppress(OSError):
            for _ in range(100):
                one.sendall(chunk)
        assert int(one.recv(4096).split()[1]) == 413


@pytest.mark.slow
def test_many_large_bodies_at_once_are_bounded(server):
    """Forty clients send seven megabytes each and then stall: what is held is limited, and the rest told to wait."""
    size = server.resident()
    plugs = []
    try:
        for _ in range(40):
            one = plug(server)
            plugs.append(one)
            one.sendall(head("/learn", "Content-Length: 8000000"))
        threads = [threading.Thread(target=_pour, args=(one, b"x" * 7 * MB)) for one in plugs]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert server.resident() < size + ROOM
        assert server.client().predict({"f1": 1.0})["prediction"] is not None
        told = set()
        for one in plugs:
            one.settimeout(0.2)
            with contextlib.suppress(OSError):
                told.add(one.recv(4096).split()[1])
        assert told == {b"429"}
    finally:
        for one in plugs:
            one.close()


def _pour(one, body):
    one.settimeout(5)
    with contextlib.suppress(OSError):
        one.sendall(body)


@pytest.mark.slow
def test_slow_clients_are_given_up(server):
    with plug(server) as silent, plug(server) as slow, plug(server) as body:
        body.sendall(b"POST /learn HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 100\r\n\r\n{")
        begun = time.monotonic()
        slow.sendall(b"GET /stats HTTP/1.1\r\n")
        slow.settimeout(0.5)
        closed = False
        while not closed and time.monotonic() < begun + 30:
            assert server.client().predict({"f1": 1.0})["prediction"] is not None
            with contextlib.suppress(TimeoutError):
                try:
                    slow.sendall(b"X: y\r\n")
                    closed = slow.recv(1) == b""
                except OSError as error:
                    if isinstance(error, TimeoutError):
                        raise
                    closed = True
        assert closed and time.monotonic() < begun + 25, "a byte now and then does not keep a connection"
        silent.settimeout(20)
        assert silent.recv(1) == b"", "a connection that never asks is closed"
        body.settimeout(60)
        assert body.recv(4096).split()[1] == b"408", "a body that never ends is answered"


def test_a_thousand_connections_opened_and_dropped(server):
    size = server.resident()
    for _ in range(2):
        plugs = [plug(server) for _ in range(500)]
        for one in plugs:
            one.sendall(b"GET /healthz HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n")
        for one in plugs[::2]:
            assert one.recv(4096).split()[1] == b"200"
        for one in plugs:
            one.close()
    assert server.client().predict({"f1": 1.0})["prediction"] is not None
    assert server.resident() < size + ROOM


def test_broken_http_and_half_requests(server):
    for sent in (
        b"\x00\xff\n\n",
        b"GET\r\n\r\n",
        b"POST /learn HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: -1\r\n\r\n",
        b"POST /learn HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n",
        b"GET /" + b"x" * 100_000 + b" HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n",
    ):
        with plug(server) as one:
            one.sendall(sent)
            reply = one.recv(4096)
            assert reply.split()[1].startswith(b"4") and b"Traceback" not in reply, sent[:40]
    with plug(server) as one:
        one.sendall(b'POST /learn HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 50\r\n\r\n{"features": {"half": 1')
    with plug(server) as one:
        one.sendall(b"GET /model HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n")


@pytest.mark.slow
def test_the_promises_of_the_openapi_document_hold(tmp_path):
    """schemathesis sends what the document allows and what it does not: no answer is a 5xx, each is as documented."""
    schemathesis = pytest.importorskip("schemathesis")
    import warnings

    from hypothesis import HealthCheck, Phase, given, settings
    from hypothesis import strategies as st
    from schemathesis.checks import not_a_server_error
    from schemathesis.generation import GenerationMode
    from schemathesis.specs.openapi.checks import (
        content_type_conformance,
        response_schema_conformance,
        status_code_conformance,
    )

    checks = (not_a_server_error, status_code_conformance, content_type_conformance, response_schema_conformance)
    with warnings.catch_warnings(), served(tmp_path / "state") as server:
        warnings.simplefilter("ignore")
        list(server.client().learn_many(examples(50)))
        schema = schemathesis.openapi.from_url(f"{server.url}/openapi.json")
        statuses = Counter()
        for result in schema.get_all_operations():
            operation = result.ok()
            modes = [operation.as_strategy(generation_mode=mode) for mode in GenerationMode]

            @settings(
                max_examples=scaled(60),
                deadline=None,
                phases=[Phase.explicit, Phase.generate],
                suppress_health_check=list(HealthCheck),
                database=None,
            )
            @given(case=st.one_of(modes))
            def send(case):
                statuses[case.call_and_validate(checks=checks).status_code] += 1

            send()
        assert statuses.total() > 300 and statuses[200] > 50 and statuses[422] > 50, statuses
        assert "Traceback" not in server.log()
        assert server.client().predict({"f1": 1.0})["prediction"] is not None
