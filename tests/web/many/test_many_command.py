"""`separatrix serve --many` as a command: backups, repair, memory, and what it refuses."""

import json

import pytest

from separatrix import AveragedPerceptron, save
from separatrix.web import Client, ServerError
from separatrix.web.server.memory_budget import resident
from support.server_process import examples, run, served


def test_the_command_backs_up_restores_and_refuses(tmp_path):
    folder = tmp_path / "state"
    with served(folder, "--many") as server:
        with Client(server.url) as root:
            for name in ("a", "b"):
                with root.model(name) as client:
                    list(client.learn_many(list(examples(50, seed=ord(name)))))
        status, told = run("backup", folder, tmp_path / "backups")
        assert status == 0 and told.count("50 examples in 1 commit") == 2
        status, told = run("serve", folder, "--many", "--port", "0")
        assert status == 2 and "is being served by another process" in told
        status, told = run("serve", folder / "a", "--port", "0")
        assert status == 2 and "is being served by another process" in told
        assert server.stop() == 0 and "ended; everything acknowledged is on disk" in server.log()
    status, told = run("serve", folder, "--port", "0")
    assert status == 2 and f"{folder} holds the stores of 2 models: add --many" in told
    status, told = run("serve", folder, "--models", "x.toml", "--port", "0")
    assert status == 2 and "add --many" in told
    status, told = run("serve", folder / "a", "--many", "--port", "0")
    assert status == 2 and "holds the store of one model: leave out --many" in told
    status, told = run("serve", folder, "--many", "--as-of", "5", "-o", "x.sepx")
    assert status == 2 and "--as-of is for one model" in told
    status, told = run("restore", tmp_path / "backups", folder)
    assert status == 2 and "exists and is not empty" in told
    status, told = run("restore", tmp_path / "backups", tmp_path / "restored")
    assert status == 0 and told.count("50 examples") == 2
    with served(tmp_path / "restored", "--many") as server, Client(server.url) as root:
        assert [(m["name"], m["examples"]) for m in root.models()] == [("a", 50), ("b", 50)]
        with root.model("b") as client:
            assert client.stats()["examples"] == 50
    status, told = run("serve", folder / "a", "--as-of", "50", "-o", tmp_path / "then.sepx")
    assert status == 0 and "after 50 examples" in told
    assert json.dumps(sorted(p.name for p in (tmp_path / "backups").iterdir())) == '["a.zip", "b.zip"]'


@pytest.mark.slow
@pytest.mark.skipif(not resident(), reason="the memory of a process is read from /proc")
def test_the_process_stays_within_its_memory(tmp_path):
    """Models are created until many had to be closed; the first ones are opened again, with what they had learned."""
    limit, most = 420 << 20, 0
    with served(tmp_path / "state", "--many", "--max-memory", "420M") as server, Client(server.url) as root:
        for k in range(250):
            body = {"features": {f"own{k}-{j}": 1 for j in range(50)}, "label": "x"}
            assert root.request("POST", f"/models/m{k}/learn", body, key=f"key-{k}")["examples"] == 1
            most = max(most, server.resident())
        page = root.request("GET", "/models")
        assert page["total"] == 250 and 20 < page["open"] < 240 and most < limit
        for k in range(0, 60, 10):
            assert root.request("GET", f"/models/m{k}/stats")["features"] == 50


def test_repair_of_one_model_among_many(tmp_path):
    folder = tmp_path / "state"
    with served(folder, "--many") as server, Client(server.url) as root:
        for name in ("a", "b"):
            with root.model(name) as client:
                list(client.learn_many(list(examples(50))))
    (folder / "a" / "head").unlink()
    with served(folder, "--many", "--accept-loss") as server, Client(server.url, patience=0) as root:
        assert "a: " in server.log() and "later commits may be lost" in server.log()
        with root.model("a") as client:
            assert client.stats()["examples"] == 50
        with root.model("c") as client, pytest.raises(ServerError, match="404"):
            client.stats()


def test_options_of_a_new_model_that_would_be_without_effect_are_refused(tmp_path):
    save(AveragedPerceptron(rule="pa1").fit([[1.0, 0.0], [0.0, 1.0]], ["a", "b"]), tmp_path / "m.sepx")
    with served(tmp_path / "state", "--rule", "pa1") as server:
        server.client().learn({"a": 1}, "x")
        assert server.stop() == 0
    for options, message in (
        ((tmp_path / "state", "--rule", "arow"), "--rule arow is for a new model, and that of "),
        ((tmp_path / "state", "--text"), "did not begin with --text: leave it out"),
        ((tmp_path / "new", "--model", tmp_path / "m.sepx", "--C", "2"), "--C 2.0 is for a model that starts from nothing"),
        (
            (tmp_path / "many", "--many", "--model", tmp_path / "m.sepx", "--rule", "arow"),
            "this one starts from m.sepx",
        ),
    ):
        status, said = run("serve", *options, "--port", "0")
        assert status == 2 and message in said and said.count("\n") == 1, said
    for options in (("--rule", "pa1"), ()):  # which say nothing else
        with served(tmp_path / "state", *options) as server:
            assert "rule='pa1'" in server.client().stats()["learner"] and server.client().stats()["examples"] == 1
            assert server.stop() == 0
