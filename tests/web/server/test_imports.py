"""The server starts, learns, predicts, snapshots and restarts without scikit-learn, pandas and scipy.stats."""

import json
import os
import subprocess
import sys

import pytest

HEAVY = ("sklearn", "pandas", "scipy.stats")
SCRIPT = """
import asyncio, json, sys
from pathlib import Path

import httpx

from separatrix.web.server.storage import snapshots
from separatrix.web.server.app import application
from separatrix.web.server.warming import warm
from separatrix.web.server.reading.request_reader import Limits
from separatrix.web.server.storage.store import CommitStore
from separatrix.web.server.writing.writer import Writer

folder, settings, body = Path(sys.argv[1]), json.loads(sys.argv[2]), json.loads(sys.argv[3])
model = Path(sys.argv[4]) if len(sys.argv) > 4 else None


async def exchange(app):
    client = httpx.AsyncClient(transport=httpx.ASGITransport(app=app), base_url="http://localhost")
    async with app.router.lifespan_context(app), client:
        await client.post("/learn", json=body | {"label": "ham"})
        learned = await client.post("/learn", json=body | {"label": "spam"})
        explained = await client.post("/explain", json=body)
        model = await client.get("/model")
        return [reply.status_code for reply in (learned, explained, model)], learned.json().get("examples", learned.text)


replies = []
for _ in range(2):  # the second time from the snapshot of the first
    store = CommitStore(folder)
    snapshots.begin(store, model, settings)
    writer = Writer(store, Limits())
    warm(writer.buffer.learning)
    replies.append(asyncio.run(exchange(application(writer))))
print(json.dumps({"replies": replies, "modules": sorted(sys.modules)}))
"""


def exchanged(folder, body, text=False, model=()):
    """Run a server in a process of its own; return the status codes and numbers of examples, and the unwanted modules."""
    settings = {"learner": "averaged", "rule": "pa1", "C": 1.0, "text": text, "bits": 10}
    command = [sys.executable, "-c", SCRIPT, folder / "state", json.dumps(settings), json.dumps(body), *model]
    finished = subprocess.run(list(map(str, command)), capture_output=True, text=True, env=os.environ, timeout=300)
    assert finished.returncode == 0, finished.stderr
    report = json.loads(finished.stdout)
    return report["replies"], [name for name in report["modules"] if name.startswith(HEAVY)]


@pytest.mark.parametrize(("text", "body"), [(False, {"features": {"free": 1}}), (True, {"text": "free entry"})])
def test_the_server_imports_no_scikit_learn(tmp_path, text, body):
    assert exchanged(tmp_path, body, text) == ([[[200, 200, 200], 2], [[200, 200, 200], 4]], [])


def test_a_server_of_table_rows_imports_no_scikit_learn(tmp_path):
    rows = [f"{'spam' if i % 3 else 'ham'},{i % 7 / 2},{i},{'shop' if i % 2 else 'home'},{i % 5 == 0}" for i in range(40)]
    (tmp_path / "table.csv").write_text("\n".join(["label,length,count,from,known", *rows]) + "\n")
    model = tmp_path / "table.sepx"
    train = [sys.executable, "-m", "separatrix", "train", tmp_path / "table.csv", "--label", "label", "-o", model]
    subprocess.run(list(map(str, train)), check=True, capture_output=True, timeout=300)
    body = {"row": {"length": 2.5, "count": 3, "from": "shop", "known": "True"}}
    replies, unwanted = exchanged(tmp_path, body, model=[model])
    assert [status for status, _ in replies] == [[200, 200, 200]] * 2
    assert not unwanted
