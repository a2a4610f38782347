"""A server of many models, killed at random moments: of each model, what was acknowledged is there once, and nothing else.

The judge is what the clients wrote down when they were answered. Every example holds a feature that names its model and the
example, so that the names of a recovered model tell which examples it has learned from, and of which model they were.
"""

import os
import random
import threading
import time

import numpy as np
import pytest

from separatrix import AveragedPerceptron, load
from separatrix.web import Client
from support.scale import counts
from support.server_process import ServerProcess, examples, matrix, served

pytestmark = pytest.mark.crash
CLIENTS = 4
SHAPES = {"quick": (24, 12), "slow": (100, 40), "soak": (1000, 100)}
"""The number of models, and of corrections of each."""


class Load(threading.Thread):
    """A client that sends the examples of its models in turn, a few at a time, and writes down what was acknowledged."""

    def __init__(self, url, streams, seed):
        super().__init__()
        self.url, self.streams, self.random = url, streams, random.Random(seed)
        self.acknowledged = {name: [] for name in streams}
        self.failed = None

    def run(self):
        left = {name: list(stream) for name, stream in self.streams.items()}
        clients = {name: Client(f"{self.url}/models/{name}", patience=600, timeout=60) for name in left}
        try:
            while left:
                name = self.random.choice(list(left))
                size = self.random.choice([1, 1, 1, 5, 10])
                some, left[name] = left[name][:size], left[name][size:]
                client = clients[name]
                if len(some) == 1:
                    client.learn(*some[0], key=f"{name}-{self.random.getrandbits(64)}")
                else:
                    list(client.learn_many(some))
                self.acknowledged[name] += [next(iter(x)) for x, _ in some]
                client.close()
                if not left[name]:
                    del left[name]
        except Exception as error:
            self.failed = error
        finally:
            for client in clients.values():
                client.close()


def judge(client, name, stream, acknowledged, path):
    """Compare a recovered model with the clients' notes, and with learning offline in the order that it was learned."""
    client.save_model(path)
    model = load(path).estimator
    by_id = {next(iter(x)): (x, y) for x, y in stream}
    order = [feature for feature in model.feature_names_in_.tolist() if feature.startswith("id-")]
    assert set(acknowledged) <= set(order), "acknowledged and lost"
    assert set(order) <= by_id.keys(), "an example of another model"
    assert len(order) == len(set(order)) == client.stats()["examples"] == model.n_seen_, "counted twice, or half there"
    X, names = matrix([by_id[feature] for feature in order])
    assert names == model.feature_names_in_.tolist()
    whole = AveragedPerceptron().partial_fit(X, [by_id[feature][1] for feature in order])
    assert np.array_equal(model.coef_, whole.coef_) and np.array_equal(model.intercept_, whole.intercept_)
    return len(order)


@pytest.mark.parametrize("kills", counts(quick=2, slow=6, soak=100))
def test_many_models_killed_at_random_moments(tmp_path, request, kills):
    n_models, each = SHAPES[request.node.callspec.id]
    chance = random.Random(os.environ.get("SEPARATRIX_SEED", "0"))
    streams = {
        f"m{k}": [({f"id-m{k}-{i}": 1.0, **x}, y) for i, (x, y) in enumerate(examples(each, seed=k, names=60))]
        for k in range(n_models)
    }
    folder = tmp_path / "state"
    server = ServerProcess(folder, "--many", "--snapshot-every", "2").start()
    port = server.url.rpartition(":")[2]
    names = list(streams)
    loads = [
        Load(server.url, {name: streams[name] for name in names[k::CLIENTS]}, chance.getrandbits(32)) for k in range(CLIENTS)
    ]
    for load_ in loads:
        load_.start()
    killed = 0
    try:
        while killed < kills:
            wanted = n_models * each * (killed + chance.random()) / (kills + 1)  # the kills are spread over the load
            while sum(len(some) for load_ in loads for some in load_.acknowledged.values()) < wanted:
                assert any(load_.is_alive() for load_ in loads), [load_.failed for load_ in loads]
                time.sleep(0.002)
            time.sleep(chance.random() * 0.01)
            server.kill()
            killed += 1
            server.start(port)
        for load_ in loads:
            load_.join(600)
        assert [load_.failed for load_ in loads] == [None] * CLIENTS
    finally:
        server.kill()
    learned = 0
    with served(folder, "--many") as server:
        for load_ in loads:
            for name, acknowledged in load_.acknowledged.items():
                assert len(acknowledged) == each
                with server.client().model(name) as client:
                    learned += judge(client, name, streams[name], acknowledged, tmp_path / "m.sepx")
        assert server.stop() == 0
    assert learned == n_models * each
    print(f"{killed} kills, {n_models:,} models, {learned:,} corrections: none lost, none counted twice, none mixed up")


def test_the_judge_can_fail(tmp_path):
    """A correction that was not sent, and one that another model has learned, are noticed."""
    with served(tmp_path / "state", "--many") as server:
        stream = [({f"id-a-{i}": 1.0, **x}, y) for i, (x, y) in enumerate(examples(10))]
        with server.client().model("a") as client:
            list(client.learn_many(stream))
            assert judge(client, "a", stream, ["id-a-3"], tmp_path / "m.sepx") == 10
            with pytest.raises(AssertionError, match="acknowledged and lost"):
                judge(client, "a", stream, ["id-a-10"], tmp_path / "m.sepx")
            client.learn({"id-b-0": 1.0}, "ham")
            with pytest.raises(AssertionError, match="an example of another model"):
                judge(client, "a", stream, [], tmp_path / "m.sepx")
