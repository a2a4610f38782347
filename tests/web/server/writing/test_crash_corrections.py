"""Killed while corrections that stick are learned and pinned: each acknowledged one is there once, with its pin.

The judge learns the examples again in this process, in the order in which the recovered model first met their names.
"""

import os
import random
import threading
import time

import numpy as np
import pytest

from separatrix import AveragedPerceptron, Model, load
from separatrix.web import Client
from separatrix.web.server.live.commits import SparseRows
from separatrix.web.server.live.live_model import LiveModel
from support.scale import counts
from support.server_process import ServerProcess, examples, served

pytestmark = pytest.mark.crash


class Corrections(threading.Thread):
    """A client that sends corrections one by one, each under a key, and writes down what was acknowledged."""

    def __init__(self, url, stream):
        super().__init__()
        self.url, self.stream = url, stream
        self.acknowledged, self.failed = {}, None

    def run(self):
        client = Client(self.url, patience=300, timeout=20)
        try:
            for x, y, until_right, pin in self.stream:
                name = next(iter(x))
                fields = {"features": x, "label": y, "until_right": until_right, "pin": pin}
                self.acknowledged[name] = client.request("POST", "/learn", fields, key=name)
        except Exception as error:
            self.failed = error
        finally:
            client.close()


def corrections(n, who, chance):
    """Examples with a feature of their own: a third are corrected until right, some are pinned, some have a wrong label."""
    for i, (x, y) in enumerate(examples(n, seed=chance.getrandbits(32), names=60)):
        label = chance.choice(["ham", "spam", "other"]) if chance.random() < 0.2 else y
        until_right = chance.random() < 0.33
        yield {f"id-{who}-{i}": 1.0, **x}, label, until_right, until_right and chance.random() < 0.2


@pytest.mark.parametrize("wanted", counts(quick=2, slow=8, soak=100))
def test_killed_among_corrections(tmp_path, wanted):
    chance = random.Random(os.environ.get("SEPARATRIX_SEED", "0"))
    folder = tmp_path / "state"
    server = ServerProcess(folder, "--snapshot-every", "0.3").start()
    port = server.url.rpartition(":")[2]
    streams = [list(corrections(40 * wanted, who, chance)) for who in range(3)]
    loads = [Corrections(server.url, stream) for stream in streams]
    for load_ in loads:
        load_.start()
    try:
        for _ in range(wanted):
            time.sleep(0.3 * chance.random())
            server.kill()
            server.start(port)
        for load_ in loads:
            load_.join(300)
        assert [load_.failed for load_ in loads] == [None] * 3
        server.kill()
    finally:
        server.kill()
    with served(folder) as again:
        client = again.client()
        client.save_model(tmp_path / "m.sepx")
        stats, page = client.stats(), client.request("GET", "/regressions")
        assert again.stop() == 0
    model = load(tmp_path / "m.sepx").estimator
    sent = {next(iter(entry[0])): entry for stream in streams for entry in stream}
    order = [name for name in model.feature_names_in_.tolist() if name.startswith("id-")]
    acknowledged = {name: reply for load_ in loads for name, reply in load_.acknowledged.items()}
    assert sorted(order) == sorted(acknowledged) and stats["examples"] == len(order), "lost, or counted twice"
    for number, name in enumerate(order, 1):
        assert acknowledged[name]["examples"] == number, "what was answered is what was stored"
        assert acknowledged[name].get("right", not sent[name][2]), "it was brought to the right side"
    judge, column = LiveModel(Model(AveragedPerceptron())), {}
    pinned = {}
    for number, name in enumerate(order, 1):
        x, y, until_right, pin = sent[name]
        new = [feature for feature in x if feature not in column]
        column |= {feature: len(column) + k for k, feature in enumerate(new)}
        row = SparseRows(np.array([*x.values()], float), np.array([column[f] for f in x]), np.array([0, len(x)]))
        judge.learn(row, [y], new, None, False, persistent=np.arange(int(until_right)))
        pinned |= {number: (row, y)} if pin else {}
    offline = judge.model(list(column)).estimator
    assert offline.coef_.tobytes() == model.coef_.tobytes() and offline.n_mistakes_ == model.n_mistakes_ == stats["mistakes"]
    assert page["pinned"] == list(pinned)
    broken = [number for number, (row, y) in pinned.items() if judge.decide(judge.scores(row)) != [y]]
    assert sorted(entry["example"] for entry in page["regressions"]) == broken
