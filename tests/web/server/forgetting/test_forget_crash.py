"""Killed while it forgets: the store is as it was or as it is afterwards, never between, and nothing of the row is left."""

import os
import random
import threading
import time
from contextlib import suppress

import numpy as np
import pytest

from separatrix import AveragedPerceptron, Model, load
from separatrix.web import Client, ServerError
from separatrix.web.server.live.commits import SparseRows
from separatrix.web.server.live.live_model import LiveModel
from support.scale import counts
from support.server_process import ServerProcess, examples, served

pytestmark = pytest.mark.crash
N = 120


def word(number):
    return f"customer-{number:05d}-x"


def is_anywhere(folder, number):
    return any(word(number).encode() in path.read_bytes() for path in folder.rglob("*") if path.is_file())


def judged(sent, left):
    """The model that learns from what is left, in order, and its names."""
    judge, column = LiveModel(Model(AveragedPerceptron())), {}
    for number in left:
        x, y, until_right = sent[number]
        new = [feature for feature in x if feature not in column]
        column |= {feature: len(column) + k for k, feature in enumerate(new)}
        row = SparseRows(np.array([*x.values()], float), np.array([column[f] for f in x]), np.array([0, len(x)]))
        judge.learn(row, [y], new, None, False, persistent=np.arange(int(until_right)))
    return judge.model(list(column)).estimator, list(column)


@pytest.mark.parametrize("wanted", counts(quick=4, slow=20, soak=200))
def test_killed_while_forgetting(tmp_path, wanted):
    chance = random.Random(os.environ.get("SEPARATRIX_SEED", "0"))
    folder = tmp_path / "state"
    server = ServerProcess(folder, "--keep-all", "--snapshot-every", "0.2").start()
    port = server.url.rpartition(":")[2]
    sent, left, outcomes = {}, [], {"before": 0, "after": 0}
    duration = 0.1

    def learn(client, n):
        for x, y in examples(n, seed=chance.getrandbits(32), names=60):
            number, until_right = len(sent) + 1, chance.random() < 0.2
            sent[number] = {word(number): 1.0, **x}, y, until_right
            assert client.learn(sent[number][0], y, until_right=until_right, pin=chance.random() < 0.1)["examples"] == number
            left.append(number)

    try:
        learn(server.client(), N)
        for _ in range(wanted):
            gone = sorted(chance.sample(left, chance.randint(1, 3)))
            acknowledged = []

            def forget(gone=gone, acknowledged=acknowledged, url=server.url):
                with suppress(ConnectionError, ServerError), Client(url, patience=0) as client:
                    acknowledged.append(client.forget(gone))

            thread = threading.Thread(target=forget)
            thread.start()
            time.sleep(1.3 * duration * chance.random())
            server.kill()
            thread.join()
            server.start(port)
            client = server.client()
            known = [receipt["removed"]["examples"] for receipt in client.forgotten()]
            is_after = gone in known
            outcomes["after" if is_after else "before"] += 1
            assert is_after or not acknowledged, "what was acknowledged is not taken back"
            assert client.stats()["examples"] == len(left) - (len(gone) if is_after else 0)
            assert [is_anywhere(folder, number) for number in gone] == [not is_after] * len(gone)
            if not is_after:
                begun = time.monotonic()
                client.forget(gone)
                duration = time.monotonic() - begun
            left = [number for number in left if number not in gone]
            assert not any(is_anywhere(folder, number) for number in gone)
            learn(client, 4)
    finally:
        server.kill()
    assert min(outcomes.values()) > 0 or wanted < 10, outcomes
    with served(folder) as again:
        client = again.client()
        client.save_model(tmp_path / "m.sepx")
        assert client.stats()["examples"] == len(left)
        pinned = client.regressions()["pinned"]
    assert set(pinned) <= set(left)
    model = load(tmp_path / "m.sepx").estimator
    offline, names = judged(sent, left)
    assert model.feature_names_in_.tolist() == names
    assert offline.coef_.tobytes() == model.coef_.tobytes() and offline.n_mistakes_ == model.n_mistakes_
