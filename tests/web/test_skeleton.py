"""The skeleton of the lab and of the server: who may ask, how much, and what an error says."""

import asyncio

import httpx
import pytest
from starlette.requests import Request

from separatrix.web.listening import PortInUseError, listen, url_of
from separatrix.web.skeleton import JSON, skeleton


def an_app():
    app = skeleton(body_limit=1000)

    def hello(request: Request):
        return JSON({"hello": "you", "nothing": float("nan")})

    async def count(request: Request):
        return JSON({"sum": sum(await request.json())})

    def fail(request: Request):
        raise RuntimeError("a secret of the server")

    app.add_route("/hello", hello)
    app.add_route("/count", count, methods=["POST"])
    app.add_route("/fail", fail)
    return app


def ask(method, path, *, host="localhost:8000", **options):
    async def asked():
        transport = httpx.ASGITransport(app=an_app(), raise_app_exceptions=False)
        async with httpx.AsyncClient(transport=transport, base_url="http://localhost:8000") as client:
            headers = {"host": host, **options.pop("headers", {})}
            return await client.request(method, path, headers=headers, **options)

    return asyncio.run(asked())


@pytest.mark.parametrize("host", ["localhost", "localhost:8000", "127.0.0.1:1", "[::1]:8000", "LOCALHOST"])
def test_the_loopback_names_are_answered(host):
    reply = ask("GET", "/hello", host=host)
    assert reply.status_code == 200
    assert reply.json() == {"hello": "you", "nothing": None}
    assert "default-src 'none'" in reply.headers["content-security-policy"]
    assert reply.headers["x-content-type-options"] == "nosniff"


@pytest.mark.parametrize("host", ["evil.example", "localhost.evil.example", "127.0.0.1.evil.example:80", ""])
def test_foreign_hosts_are_turned_away(host):
    reply = ask("GET", "/hello", host=host)
    assert reply.status_code == 421
    assert "does not answer" in reply.json()["error"]


@pytest.mark.parametrize(
    "headers",
    [
        {"origin": "http://evil.example"},
        {"origin": "null"},
        {"origin": "http://localhost:9"},
        {"sec-fetch-site": "cross-site"},
    ],
)
def test_writes_from_another_site_are_turned_away(headers):
    assert ask("POST", "/count", json=[1, 2], headers=headers).status_code == 403


def test_writes_from_our_own_page_are_taken():
    assert ask("POST", "/count", json=[1, 2], headers={"origin": "http://localhost:8000"}).json() == {"sum": 3}


def test_a_long_body_is_refused_whether_or_not_its_length_is_said():
    assert ask("POST", "/count", content=b"[" + b"1," * 1000 + b"1]").status_code == 413

    async def parts():
        for _ in range(100):
            yield b"1" * 100

    reply = ask("POST", "/count", content=parts())
    assert reply.status_code == 413
    assert reply.json() == {"error": "the body is longer than 1000 bytes"}


def test_errors_are_one_sentence_without_a_trace():
    assert ask("GET", "/nothing").json() == {"error": "Not Found"}
    reply = ask("GET", "/fail")
    assert reply.status_code == 500
    assert "secret" not in reply.text and "Traceback" not in reply.text


def test_a_port_in_use_is_said():
    with listen("127.0.0.1", 0) as first:
        port = first.getsockname()[1]
        assert url_of(first) == f"http://127.0.0.1:{port}"
        with pytest.raises(PortInUseError, match=f"cannot listen on 127.0.0.1:{port}: .*try another --port"):
            listen("127.0.0.1", port)
