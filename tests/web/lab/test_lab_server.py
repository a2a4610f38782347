"""The lab as a server: what it hands out, what it refuses, how it starts and ends."""

import asyncio
import os
import signal
import subprocess
import sys
import threading
import time

import httpx
import pytest
from click.testing import CliRunner
from starlette.exceptions import HTTPException

from separatrix.cli import app
from separatrix.web.lab.app import BODY_LIMIT, _open_browser, lab
from separatrix.web.lab.site import site
from separatrix.web.lab.trainer import Trainer
from separatrix.web.listening import listen


def ask(method, path, *, host="127.0.0.1:8765", app=None, **options):
    async def asked():
        transport = httpx.ASGITransport(app=app or lab(), raise_app_exceptions=False)
        async with httpx.AsyncClient(transport=transport, base_url="http://127.0.0.1:8765") as client:
            return await client.request(method, path, headers={"host": host, **options.pop("headers", {})}, **options)

    return asyncio.run(asked())


def test_the_page_and_its_files_and_nothing_else():
    assert ask("GET", "/").headers["content-type"].startswith("text/html")
    app = lab()
    for name, content in site().items():
        reply = ask("GET", f"/{name}", app=app)
        assert reply.status_code == 200 and reply.content == content
        assert reply.headers["x-content-type-options"] == "nosniff"
    assert ask("GET", "/main.js").headers["content-type"].startswith("text/javascript")
    for path in ("/nothing.js", "/..%2f..%2flab.py", "/%2e%2e/lab.py", "/page.js", "/docs", "/openapi.json", "/api/run"):
        assert ask("GET", path).status_code in (404, 405)


def test_a_recipe_becomes_a_document():
    reply = ask("POST", "/api/run", json={"data": "lecture:L4.1"})
    assert reply.status_code == 200
    assert reply.json()["w"] == [[0, 0], [4, 0], [3, -1], [1, -3]]
    names = [entry["name"] for entry in ask("GET", "/lab.json").json()["lectures"]]
    assert names == ["L1.8", "L2.4", "L4.1", "L4.xor", "L4.6", "L3.6"]


@pytest.mark.parametrize(
    ("recipe", "status", "message"),
    [
        (
            {"data": "csv", "csv": "a,b,k\n1,x,u\n2,3,v\n"},
            400,
            "pasted.csv, line 2, column 2 (b): 'x' is not a finite number",
        ),
        ({"data": "../../etc/passwd"}, 400, "there is no data set called '../../etc/passwd'"),
        ({"tie": "maybe"}, 422, "tie"),
        ({"n": 10**9}, 422, "n: Input should be less than or equal to 20000"),
        ({"unknown": 1}, 422, "unknown: Extra inputs are not permitted"),
        ({"points": [[1, 2]]}, 422, "points.0.2"),
    ],
)
def test_what_cannot_be_run_is_one_sentence(recipe, status, message):
    reply = ask("POST", "/api/run", json=recipe)
    assert reply.status_code == status
    assert list(reply.json()) == ["error"] and message in reply.json()["error"]
    assert "Traceback" not in reply.text


def test_a_body_that_is_no_recipe_is_one_sentence():
    def refusal(content, kind="application/json"):
        reply = ask("POST", "/api/run", content=content, headers={"content-type": kind})
        return reply.status_code, reply.json()["error"]

    assert refusal(b'{"rule": "none"}')[1].startswith("rule: 'none' is not one of perceptron, ")
    assert refusal(b'{"n": ')[1].startswith("the body: Invalid JSON: EOF while parsing")
    assert refusal(b"[]") == (422, "the body: Input should be an object")
    assert refusal(b'{"gap": NaN}') == (422, "gap: Input should be a finite number")
    assert refusal(b"{}", "text/plain") == (422, "the body: send the recipe as application/json")


def test_foreign_hosts_foreign_pages_and_large_bodies_are_turned_away():
    recipe = {"data": "lecture:L4.1"}
    assert ask("GET", "/", host="evil.example").status_code == 421
    assert ask("POST", "/api/run", json=recipe, host="evil.example:8765").status_code == 421
    assert ask("POST", "/api/run", json=recipe, headers={"origin": "http://evil.example"}).status_code == 403
    assert ask("POST", "/api/run", json=recipe, headers={"sec-fetch-site": "cross-site"}).status_code == 403
    reply = ask("POST", "/api/run", json={"data": "csv", "csv": "x" * BODY_LIMIT})
    assert reply.status_code == 413 and "longer than" in reply.json()["error"]


def test_a_port_in_use_is_one_line():
    with listen("127.0.0.1", 0) as taken:
        port = taken.getsockname()[1]
        result = CliRunner().invoke(app, ["lab", "--port", str(port), "--no-browser"])
    assert result.exit_code == 2
    assert result.stderr.startswith(f"separatrix lab: cannot listen on 127.0.0.1:{port}")
    assert len(result.stderr.splitlines()) == 1


def test_a_missing_browser_is_one_line(monkeypatch):
    said = []
    monkeypatch.setattr("webbrowser.open", lambda url: False)
    _open_browser("http://127.0.0.1:1", said.append)
    assert said == ["No browser was found; open http://127.0.0.1:1 in one."]


@pytest.mark.skipif(sys.platform == "win32", reason="sends SIGINT")
def test_it_says_where_it_is_and_ends_quietly_when_interrupted():
    reset = "import signal; signal.signal(signal.SIGINT, signal.default_int_handler)"  # a background job has it ignored
    started = f"{reset}; from separatrix.cli import app; app()"
    command = [sys.executable, "-c", started, "lab", "--port", "0", "--no-browser"]
    process = subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env={**os.environ, "PYTHONUNBUFFERED": "1"}
    )
    try:
        line = process.stdout.readline()
        url = line.split()[5]
        assert line.startswith("The lab is running at http://127.0.0.1:") and "Ctrl-C" in line
        assert httpx.get(f"{url}/lab.json", timeout=30).status_code == 200
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=30)
    finally:
        process.kill()
    assert process.returncode == 130
    assert (out, err) == ("", "")


# A run ends in time, and with the lab.

STUB = """if True:
    import os, sys, time
    print("ready", flush=True)
    for line in sys.stdin:
        if "sleep" in line:
            time.sleep(60)
        if "die" in line:
            os._exit(1)
        print(200, len(line), end="\\n" + line, flush=True)
"""


@pytest.fixture
def stub():
    """A trainer whose process answers with the recipe, sleeps or dies."""
    trainer = Trainer(0.5, (sys.executable, "-c", STUB))
    yield trainer
    trainer.finish()


def refused_run(trainer, recipe):
    with pytest.raises(HTTPException) as refused:
        trainer.run(recipe)
    return refused.value.status_code, refused.value.detail


def test_a_run_that_takes_too_long_or_dies_is_ended_and_the_next_one_works(stub):
    assert stub.run("first") == b"first\n"
    process = stub._process
    began = time.monotonic()
    status, line = refused_run(stub, "sleep")
    assert time.monotonic() - began < 5 and process.poll() is not None
    assert (status, line) == (400, "this took longer than 0.5 seconds and was ended: use fewer examples, labels or passes")
    status, line = refused_run(stub, "die")
    assert status == 500 and line.startswith("the process that trains has ended")
    assert stub.run("again") == b"again\n"


def test_closing_ends_a_run_at_once(stub):
    stub.seconds = 60.0
    stub.run("first")
    threading.Timer(0.2, stub.close).start()
    began = time.monotonic()
    assert refused_run(stub, "sleep") == (503, "the lab is shutting down") == refused_run(stub, "more")
    assert time.monotonic() - began < 5 and stub._process.poll() is not None


@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "win32", reason="sends SIGTERM")
def test_sigterm_ends_the_lab_and_its_run():
    command = [sys.executable, "-m", "separatrix", "lab", "--port", "0", "--no-browser"]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env={**os.environ, "PYTHONUNBUFFERED": "1"})
    replies = []
    many = {"data": "points", "points": [[k % 50, k // 50, f"class {k}"] for k in range(2_000)], "passes": 1_000}

    def ask_for_much(url):
        try:
            replies.append(httpx.post(f"{url}/api/run", json=many, timeout=120).status_code)
        except httpx.HTTPError as error:
            replies.append(error)

    try:
        url = process.stdout.readline().split()[5]
        assert httpx.post(f"{url}/api/run", json={}, timeout=180).status_code == 200
        thread = threading.Thread(target=ask_for_much, args=(url,))
        thread.start()
        time.sleep(2.0)
        assert not replies, "the run is too short for this test"
        began = time.monotonic()
        process.send_signal(signal.SIGTERM)
        assert process.wait(timeout=30) == -signal.SIGTERM and time.monotonic() - began < 5
        thread.join()
    finally:
        process.kill()
        process.stdout.close()
    assert replies == [503] or isinstance(replies[0], httpx.HTTPError)
