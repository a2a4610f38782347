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

from separatrix.web.server import snapshots
from separatrix.web.server.app import application
from separatrix.web.server.live_model import warm
from separatrix.web.server.request_reader import Limits
from separatrix.web.server.store import CommitStore
from separatrix.web.server.writer import Writer

folder, settings, body = Path(sys.argv[1]), json.loads(sys.argv[2]), json.loads(sys.argv[3])


async def exchange(app):
    client = httpx.AsyncClient(transport=httpx.ASGITransport(app=app), base_url="http://localhost")
    async with app.router.lifespan_context(app), client:
        await client.post("/learn", json=body | {"label": "ham"})
        learned = await client.post("/learn", json=body | {"label": "spam"})
        explained = await client.post("/explain", json=body)
        model = await client.get("/model")
        return [reply.status_code for reply in (learned, explained, model)], learned.json()["examples"]


replies = []
for _ in range(2):  # the second time from the snapshot of the first
    store = CommitStore(folder)
    snapshots.begin(store, None, settings)
    writer = Writer(store, Limits())
    warm(writer.buffer.learning)
    replies.append(asyncio.run(exchange(application(writer))))
print(json.dumps({"replies": replies, "modules": sorted(sys.modules)}))
"""


@pytest.mark.parametrize(("text", "body"), [(False, {"features": {"free": 1}}), (True, {"text": "free entry"})])
def test_the_server_imports_no_scikit_learn(tmp_path, text, body):
    settings = {"learner": "averaged", "rule": "pa1", "C": 1.0, "text": text, "bits": 10}
    command = [sys.executable, "-c", SCRIPT, str(tmp_path / "state"), json.dumps(settings), json.dumps(body)]
    finished = subprocess.run(command, capture_output=True, text=True, env=os.environ, timeout=300)
    assert finished.returncode == 0, finished.stderr
    report = json.loads(finished.stdout)
    assert report["replies"] == [[[200, 200, 200], 2], [[200, 200, 200], 4]]
    assert not [name for name in report["modules"] if name.startswith(HEAVY)]
