"""Many models in one server: each is what a server of its own would be, and none gets in the way of another."""

import asyncio
import gc
import threading
import time
import weakref
from collections import Counter

import pytest

from separatrix import AveragedPerceptron, load, save, train
from separatrix.data.errors import DataError
from separatrix.web.many import models as many_models
from separatrix.web.many.names import problem_of, stored
from separatrix.web.many.opening import declared_models
from separatrix.web.server.app import Tokens
from separatrix.web.server.live.live_model import LiveModel
from separatrix.web.server.writing import writer as writers
from support.many_models import ManyModels, in_one_loop
from support.server_process import examples, matrix

READ, LEARN, OWN_READ, OWN_LEARN = (f"{kind:-<16}" for kind in ("read", "learn", "own-read", "own-learn"))


REFUSED = [
    *("", ".", "..", "../x", "a/b", "a\\b", "a.b", "x.", "A", "Billing", "bïlling", "ﬁ", "ı", "a b", "a\n", "-a", "_a"),
    *("a" * 65, "con", "nul", "com1", "lpt9", ".deleted-x", "a\x00", "a%2fb", "lock-journal.", "\N{KELVIN SIGN}"),
]


@pytest.mark.parametrize("name", REFUSED)
def test_names_that_are_refused(name):
    assert problem_of(name)


@pytest.mark.parametrize("name", ["a", "0", "billing", "billing-eu_2", "models", "lock", "a" * 64])
def test_names_that_are_accepted(name):
    assert not problem_of(name)


@in_one_loop
async def test_a_model_is_what_a_server_of_its_own_would_be(tmp_path):
    streams = {f"m{k}": list(examples(60, seed=k)) for k in range(5)}
    async with ManyModels(tmp_path / "state") as many:
        for i in range(60):  # in turn, at the same time
            await asyncio.gather(*(many.learn(name, *stream[i]) for name, stream in streams.items()))
        for name, stream in streams.items():
            X, _ = matrix(stream)
            offline = AveragedPerceptron().partial_fit(X, [y for _, y in stream])
            reply = await many.client.get(f"/models/{name}/model")
            (tmp_path / "m.sepx").write_bytes(reply.content)
            assert (load(tmp_path / "m.sepx").estimator.coef_ == offline.coef_).all()
            assert (await many.ask("GET", f"/models/{name}/stats"))[1]["errors"] == offline.n_errors_
        status, listed = await many.ask("GET", "/models")
        assert status == 200 and (listed["total"], listed["open"], listed["next"]) == (5, 5, None)
        assert [(m["name"], m["examples"], m["commits"]) for m in listed["models"]] == [(f"m{k}", 60, 60) for k in range(5)]
        paths = (await many.ask("GET", "/openapi.json"))[1]["paths"]
        assert {"/models", "/models/{name}", "/models/{name}/predict", "/models/{name}/undo"} <= paths.keys()
        text = (await many.ask("GET", "/metrics"))[1]
        assert 'separatrix_requests_total{path="/models/{name}/learn",status="200"} 300' in text
        assert 'separatrix_examples_total{model="m3"} 60' in text and "separatrix_models_open 5" in text
        own = (await many.ask("GET", "/models/m3/metrics"))[1]
        assert 'separatrix_requests_total{path="/learn",status="200"} 60' in own
    assert not list(tmp_path.glob("state/*/store.db-wal")), "all were closed"
    async with ManyModels(tmp_path / "state") as many:
        listed = (await many.ask("GET", "/models"))[1]["models"]
        assert [(m["name"], m["open"], m["examples"]) for m in listed] == [(f"m{k}", False, 60) for k in range(5)]
        assert (await many.ask("GET", "/models/m0/stats"))[1]["examples"] == 60


@in_one_loop
async def test_only_learning_creates_a_model(tmp_path):
    async with ManyModels(tmp_path / "state") as many:
        for method, path in (("POST", "predict"), ("GET", "stats"), ("GET", "learn"), ("POST", "explain"), ("GET", "x")):
            status, reply = await many.ask(method, f"/models/new/{path}", {"features": {"a": 1}})
            assert (status, reply["error"]) == (404, "there is no model 'new': its first POST to learn creates it")
        for name in ("..", "%2e%2e", "A", "a.b", "con", "a%2fb"):
            status, _ = await many.ask("POST", f"/models/{name}/learn", {"features": {"a": 1}, "label": "x"})
            assert status in (404, 422)
        assert not stored(tmp_path / "state") and {p.name for p in (tmp_path / "state").iterdir()} <= {
            "lock",
            "lock-journal",
        }
        status, reply = await many.ask("PUT", "/models/new", {"text": True, "rule": "pa1"})
        assert (status, reply["created"], reply["settings"]["text"]) == (201, True, True)
        assert (await many.ask("POST", "/models/new/learn", {"text": "free entry", "label": "spam"}))[0] == 200
        assert (await many.ask("PUT", "/models/new", {"rule": "pa1"}))[0] == 200
        for settings, message in (
            ({"rule": "pa3"}, "rule is 'pa3', but must be one of perceptron,"),
            ({"rul": "pa1"}, "there is no setting 'rul'; did you mean 'rule'?"),
            ({"bits": 99}, "bits is 99, but must be from 8 to 24"),
            ({"C": True}, "C is True, but must be a number"),
            ({"C": -1}, "C is -1, but must be positive"),
            ([1], "send the settings of the model as an object"),
        ):
            status, reply = await many.ask("PUT", "/models/other", settings)
            assert status == 422 and reply["error"].startswith(message), reply
        assert stored(tmp_path / "state") == ["new"]


@in_one_loop
async def test_tokens_of_one_model_and_for_all(tmp_path, monkeypatch):
    monkeypatch.setattr("separatrix.web.server.app.LEAST_DELAY", 0.0)
    file = tmp_path / "models.toml"
    file.write_text(f'[own]\nrule = "pa1"\nread_token = "{OWN_READ}"\nlearn_token = "{OWN_LEARN}"\n[plain]\n')
    body = {"features": {"a": 1}, "label": "x"}
    async with ManyModels(tmp_path / "state", tokens=Tokens(READ, LEARN), declared=declared_models(file)) as many:
        for closed in (True, False):
            for name, token, expected in (
                *(("own", None, 401), ("own", OWN_READ, 403), ("own", READ, 403), ("own", "wrong-" * 4, 401)),
                *(("plain", OWN_LEARN, 401), ("plain", READ, 403), ("own", OWN_LEARN, 200), ("own", LEARN, 200)),
                *(("plain", LEARN, 200), ("other", LEARN, 404)),
            ):
                status, reply = await many.ask("POST", f"/models/{name}/learn", body, token)
                assert status == expected, (name, token, reply, closed)
        for name, token, expected in (
            ("own", OWN_READ, 200),
            ("own", READ, 200),
            ("plain", OWN_READ, 401),
            ("own", None, 401),
        ):
            assert (await many.ask("GET", f"/models/{name}/stats", token=token))[0] == expected
            assert (await many.ask("GET", f"/models/{name}", token=token))[0] == expected
        for method, path in (("GET", "/models"), ("DELETE", "/models/own"), ("PUT", "/models/own"), ("GET", "/metrics")):
            assert (await many.ask(method, path, token=OWN_LEARN))[0] == 401, "its tokens are for itself"
        assert (await many.ask("DELETE", "/models/own", token=READ))[0] == 403
        assert (await many.ask("GET", "/models", token=READ))[1]["total"] == 2
        assert (await many.ask("GET", "/models/own/stats", token=READ))[1]["learner"].endswith("(rule='pa1')")
        assert (await many.client.get("/models/own/")).status_code == 200, "the page needs no token"
        assert (await many.ask("PUT", "/models/third", token=LEARN))[0] == 403
    assert stored(tmp_path / "state") == ["own", "plain"]


@in_one_loop
async def test_without_tokens_for_all_nobody_deletes_a_model_that_has_its_own(tmp_path, monkeypatch):
    monkeypatch.setattr("separatrix.web.server.app.LEAST_DELAY", 0.0)
    file = tmp_path / "models.toml"
    file.write_text(f'[own]\nread_token = "{OWN_READ}"\nlearn_token = "{OWN_LEARN}"\n[plain]\n')
    body = {"features": {"a": 1}, "label": "x"}
    async with ManyModels(tmp_path / "state", declared=declared_models(file)) as many:
        assert (await many.ask("POST", "/models/own/learn", body, OWN_LEARN))[0] == 200
        assert (await many.ask("POST", "/models/plain/learn", body))[0] == 200, "it has no tokens"
        for method, path in (("DELETE", "/models/own"), ("PUT", "/models/own"), ("GET", "/models"), ("GET", "/metrics")):
            for token in (None, OWN_LEARN):
                assert (await many.ask(method, path, token=token))[0] == 401, (method, path)
        assert (await many.ask("GET", "/models/own/stats", token=OWN_READ))[1]["examples"] == 1
    assert stored(tmp_path / "state") == ["own", "plain"]


@in_one_loop
async def test_a_model_that_cannot_be_created_leaves_nothing_behind(tmp_path):
    """What a new model has of the file that it starts from cannot be set, and is not taken for what was asked."""
    numbered = AveragedPerceptron(rule="pa1").fit([[1.0, 0.0], [0.0, 1.0]], ["a", "b"])
    save(numbered, tmp_path / "numbered.sepx")
    save(train(["free entry", "see you"] * 4, label=["spam", "ham"] * 4), tmp_path / "text.sepx")
    for file, settings, message in (
        ("numbered.sepx", {"rule": "arow"}, "rule cannot be set: new models start from numbered.sepx"),
        ("numbered.sepx", {"C": 0.5, "vectors": True}, "C cannot be set"),
        ("text.sepx", {"vectors": True}, "--vectors needs a model of numbered features"),
        ("text.sepx", {"cosine": True}, "cosine scales vectors: set vectors, too"),
        (None, {"cosine": True}, "cosine scales vectors: set vectors, too"),
    ):
        async with ManyModels(tmp_path / "state", model=file and tmp_path / file) as many:
            status, reply = await many.ask("PUT", "/models/new", settings)
            assert status == 422 and message in reply["error"], reply
            assert (await many.ask("GET", "/models"))[1]["total"] == 0
        assert not (tmp_path / "state" / "new").exists()
    async with ManyModels(tmp_path / "state", model=tmp_path / "numbered.sepx") as many:
        status, reply = await many.ask("PUT", "/models/new", {"vectors": True})
        assert (status, reply["settings"]) == (201, {"vectors": True, "cosine": False})
        assert "rule='pa1'" in (await many.ask("GET", "/models/new/stats"))[1]["learner"]
        status, reply = await many.ask("PUT", "/models/new", {"rule": "perceptron"})
        assert (status, reply["error"]) == (409, "the model 'new' exists already, with the rule of its initial model")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[a", "is not TOML"),
        ("a = 1", "a model is a table"),
        ("[A]", "'A' cannot be the name of a model"),
        ("[a]\nrul = 1", "model 'a': there is no setting 'rul'; did you mean 'rule'"),
        ('[a]\nread_token = "short"', "at least 16 characters"),
        (f'[a]\nread_token = "{READ}"\nlearn_token = "{READ}"', "must differ"),
    ],
)
def test_declarations_that_are_refused(tmp_path, text, message):
    (tmp_path / "m.toml").write_text(text)
    with pytest.raises(DataError, match=message):
        declared_models(tmp_path / "m.toml")


@in_one_loop
async def test_the_least_used_are_closed_and_open_again(tmp_path):
    async with ManyModels(tmp_path / "state", most_open=3) as many:
        for k in range(8):
            await many.learn(f"m{k}", {"a": 1, f"own{k}": 1}, "x")
        assert many.models.n_open == 3 and [k for k in range(8) if many.models.is_open(f"m{k}")] == [5, 6, 7]
        await many.ask("GET", "/models/m5/stats")
        await many.learn("m0", {"b": 1}, "y")
        assert [k for k in range(8) if many.models.is_open(f"m{k}")] == [0, 5, 7]
        listed = (await many.ask("GET", "/models"))[1]["models"]
        assert [m["examples"] for m in listed] == [2, *[1] * 7]
        assert [m["errors"] for m in listed] == [1, *[0] * 7], "known from before it was closed"
        closed = weakref.ref(many.models._slots["m7"].model.writer)
        gc.collect()
        gc.disable()
        try:
            for k in range(6):
                await many.learn(f"m{k}", {"c": 1}, "x")
            end = time.monotonic() + 10
            while (is_held := closed() is not None) and time.monotonic() < end:  # a thread may be about to let it go
                await asyncio.sleep(0.01)
        finally:
            gc.enable()
        assert not is_held, "what was closed takes no memory, also before the garbage collector runs"
        for k in (6, 7):
            await many.learn(f"m{k}", {"c": 1}, "x")
        for k in range(8):
            assert (await many.ask("GET", f"/models/m{k}/stats"))[1]["examples"] == 2 + (k == 0)
    assert many.opener.memory.models.claimed == 0, "what was claimed is released"


@in_one_loop
async def test_a_model_in_use_is_never_closed(tmp_path, monkeypatch):
    """One model learns for a while; others come and go, and it finishes."""
    begun, let_go = threading.Event(), threading.Event()
    learn = LiveModel.learn

    def slowly(model, *arguments):
        if arguments[1] == ["slow"]:
            begun.set()
            assert let_go.wait(30)
        return learn(model, *arguments)

    monkeypatch.setattr(LiveModel, "learn", slowly)
    async with ManyModels(tmp_path / "state", most_open=1) as many:
        slow = asyncio.create_task(many.learn("slow", {"a": 1}, "slow"))
        await asyncio.to_thread(begun.wait, 30)
        writer = many.models._slots["slow"].model.writer
        for k in range(4):
            await many.learn(f"m{k}", {"a": 1}, "x")
            assert many.models.is_open("slow") and many.models._slots["slow"].model.writer is writer
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(many_models, "DELETE_SECONDS", 0.05)
            status, reply = await many.ask("DELETE", "/models/slow")
            assert (status, reply["error"]) == (409, "the model 'slow' is in use: try again")
        let_go.set()
        assert (await slow)["examples"] == 1
        await many.learn("m9", {"a": 1}, "x")
        assert not many.models.is_open("slow")
        assert (await many.ask("GET", "/models/slow/stats"))[1]["examples"] == 1


@in_one_loop
async def test_models_are_closed_when_their_memory_is_used_up(tmp_path):
    """The budget for models has room for about six: opening more, and growing, closes the least used."""
    each = many_models.OVERHEAD
    async with ManyModels(tmp_path / "state") as many:
        budget = many.opener.memory.models
        budget.limit = 6 * each + each // 2
        for k in range(20):
            await many.learn(f"m{k}", {"a": 1}, "x")
            assert budget.claimed <= budget.limit
        assert 3 <= many.models.n_open <= 6
        before = many.models.n_open
        wide = [{f"f{j}": 1.0 for j in range(500 * i, 500 * i + 500)} for i in range(6)]
        for x in wide:  # one model grows until it needs the room of others
            await many.learn("m19", x, "y")
        assert many.models.is_open("m19") and many.models.n_open < before
        budget.limit = budget.claimed + 1000
        for k in range(20):  # nothing else left to close: refused, and the model is as it was
            status, reply = await many.ask(
                "POST", "/models/m19/learn", {"features": {f"g{k}-{j}": 1 for j in range(2000)}, "label": "y"}
            )
            if status == 422:
                break
        assert "(--max-memory)" in reply["error"] and "nothing was learned" in reply["error"]
        assert (await many.ask("POST", "/models/m19/predict", {"features": {"a": 1}}))[0] == 200


@in_one_loop
async def test_memory_that_others_hold_closes_no_more_models_than_it_helps(tmp_path, monkeypatch):
    """The process is over its limit because of something else: a claim is refused, and most models stay open."""
    async with ManyModels(tmp_path / "state") as many:
        for k in range(6):
            await many.learn(f"m{k}", {"a": 1}, "x")
        for module in ("separatrix.web.server.memory_budget", "separatrix.web.many.models"):
            monkeypatch.setattr(f"{module}.resident", lambda: 1 << 60)
        status, reply = await many.ask("POST", "/models/new/learn", {"features": {"a": 1}, "label": "x"})
        assert status == 503 and "the model 'new' cannot be opened" in reply["error"] and "--max-memory" in reply["error"]
        assert many.models.n_open == 5
        assert (await many.ask("GET", "/models"))[1]["total"] == 6, "a model that was not created is not listed"


@in_one_loop
async def test_deleting_a_model_deletes_all_of_it(tmp_path):
    folder = tmp_path / "state"
    async with ManyModels(folder) as many:
        await many.learn("a", {"x": 1}, "one")
        await many.learn("b", {"x": 1}, "one")
        assert await many.ask("DELETE", "/models/a") == (200, {"deleted": "a", "examples": 1})
        assert (await many.ask("DELETE", "/models/a"))[0] == 404
        assert {path.name for path in folder.iterdir() if path.is_dir()} == {"b"}
        assert (await many.ask("GET", "/models/a/stats"))[0] == 404
        await many.learn("a", {"y": 1}, "two")
        assert (await many.ask("GET", "/models/a/stats"))[1]["examples"] == 1
    (folder / "a").rename(folder / ".deleted-a-0123")  # as if a kill had come before the files were removed
    async with ManyModels(folder) as many:
        assert [m["name"] for m in (await many.ask("GET", "/models"))[1]["models"]] == ["b"]
    assert {path.name for path in folder.iterdir() if path.is_dir()} == {"b"}


@in_one_loop
async def test_requests_while_a_model_is_deleted_and_created_again(tmp_path):
    """Learning and deleting at the same time: each answer is true of the model it speaks of."""
    async with ManyModels(tmp_path / "state") as many:
        counts = Counter()

        async def learn(k):
            for i in range(30):
                status = 409
                while status == 409:  # it is being deleted
                    status, reply = await many.ask("POST", "/models/a/learn", {"features": {f"f{k}-{i}": 1}, "label": "x"})
                    await asyncio.sleep(0.005)
                assert status == 200, reply
                counts[reply["examples"]] += 1

        async def delete():
            for _ in range(10):
                await asyncio.sleep(0.02)
                status, reply = await many.ask("DELETE", "/models/a")
                assert status in (200, 404), reply

        await asyncio.gather(*map(learn, range(4)), delete())
        await many.ask("DELETE", "/models/a")
        assert counts.total() == 120 and counts[1] > 1, "it was created again"
        assert all(counts[n] >= counts[n + 1] for n in range(1, 120)), "each model has counted from one"
        assert not stored(tmp_path / "state")


@in_one_loop
async def test_one_damaged_store_leaves_the_others_alone(tmp_path, monkeypatch):
    monkeypatch.setattr(many_models, "RETRY_SECONDS", 0.0)
    async with ManyModels(tmp_path / "state") as many:
        for name in "abc":
            await many.learn(name, {"x": 1}, "one")
    kept = (tmp_path / "state" / "b" / "head").read_bytes()
    (tmp_path / "state" / "b" / "head").unlink()
    async with ManyModels(tmp_path / "state") as many:
        assert (await many.learn("a", {"y": 1}, "two"))["examples"] == 2
        for path in ("learn", "predict"):
            status, reply = await many.ask("POST", f"/models/b/{path}", {"features": {"x": 1}, "label": "one"})
            assert status == 503 and "head is missing or damaged" in reply["error"]
        listed = {m["name"]: m for m in (await many.ask("GET", "/models"))[1]["models"]}
        assert "head is missing" in listed["b"]["problem"] and listed["a"]["problem"] is listed["c"]["problem"] is None
        assert "separatrix_models_failing 1" in (await many.ask("GET", "/metrics"))[1]
        assert (await many.ask("GET", "/readyz"))[0] == 200
        (tmp_path / "state" / "b" / "head").write_bytes(kept)
        assert (await many.learn("b", {"y": 1}, "two"))["examples"] == 2
        assert (await many.ask("GET", "/models/b"))[1]["problem"] is None


@in_one_loop
async def test_a_long_queue_does_not_keep_others_waiting(tmp_path, monkeypatch):
    """More models learn slowly than there are threads; each of them gives way after a group of requests."""
    monkeypatch.setattr("separatrix.web.many.pool.LEARNING_THREADS", 2)
    monkeypatch.setattr(writers, "MOST_AT_ONCE", 1)
    learn = LiveModel.learn

    def slowly(model, *arguments):
        time.sleep(0.02)
        return learn(model, *arguments)

    monkeypatch.setattr(LiveModel, "learn", slowly)
    async with ManyModels(tmp_path / "state") as many:
        done = []

        async def one(name, i):
            await many.learn(name, {f"f{i}": 1}, "x")
            done.append(name)

        tasks = [asyncio.create_task(one(f"busy{k}", i)) for k in range(3) for i in range(20)]
        await asyncio.sleep(0.1)
        await one("short", 0)
        assert done.index("short") < 40, "it did not wait for the queues of the others"
        await asyncio.gather(*tasks)
        for k in range(3):
            assert (await many.ask("GET", f"/models/busy{k}/stats"))[1]["examples"] == 20
