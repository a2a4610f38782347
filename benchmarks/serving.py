"""The feedback server beside River on the same skeleton, its delays under load, and its memory; ratios within one run.

    python -m benchmarks.serving        (or: separatrix bench serving)

Learning: the same stream (sms_spam as words, or made-up words where it is not at hand) is sent to `separatrix serve`, which
has every batch on the disk before it answers, and to River's `linear_model.Perceptron` behind our skeleton, which keeps it
in memory alone. River is served as River learns, an example a request; and, so that nobody is flattered, by the same batches
as ours. Delays: predictions one at a time while others learn, beside an empty "hello" of the skeleton with
as many connections. Memory: what an example more costs, once the words are known.
"""

import base64
import gzip
import multiprocessing
import re
import socket
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from pathlib import Path

import numpy as np
import orjson

from benchmarks.datasets import DATA
from benchmarks.harness import Row
from benchmarks.report import show
from benchmarks.timing import Times

LINES = "application/x-ndjson"


def stream():
    """Labelled bags of words."""
    path = DATA / "sms_spam" / "SMSSpamCollection.gz"
    if path.exists():
        with gzip.open(path, "rt", encoding="utf-8") as file:
            pairs = [line.rstrip("\n").split("\t", 1) for line in file]
        return [(dict(Counter(re.findall(r"\w+|[^\w\s]", text.lower()))), label) for label, text in pairs]
    rng = np.random.default_rng(0)
    words = [f"word{k}" for k in range(8000)]
    found = []
    for _ in range(5000):
        label = "spam" if rng.random() < 0.13 else "ham"
        some = np.minimum(rng.zipf(1.3, 17) + 40 * (label == "spam"), 7999)
        found.append(({words[k]: 1 for k in some}, label))
    return found


# Servers.


def river_application():
    """River's perceptron behind our skeleton: one example a request, or a line each; nothing is kept on a disk."""
    from river import linear_model
    from starlette.requests import Request

    from separatrix.web.skeleton import JSON, skeleton

    app = skeleton(body_limit=8 << 20)
    model = linear_model.Perceptron()

    async def hello(request: Request):
        return JSON({"hello": "you"})

    async def learn(request: Request):
        body = await request.body()
        lines = body.split(b"\n") if request.headers.get("content-type") == LINES else [body]
        for line in lines:
            told = orjson.loads(line)
            model.learn_one(told["features"], told["label"] == "spam")
        return JSON({"learned": len(lines)})

    app.add_route("/hello", hello)
    app.add_route("/learn", learn, methods=["POST"])
    return app


def peer():
    """Serve River's, and say where."""
    from separatrix.web.listening import listen, serve, url_of

    listener = listen("127.0.0.1", 0)
    serve(river_application(), listener, lambda: print(f"serving on {url_of(listener)}", file=sys.stderr, flush=True))


class Process:
    """A server in a process of its own."""

    def __init__(self, *command):
        self.process = subprocess.Popen([sys.executable, "-m", *command], stderr=subprocess.PIPE, text=True)
        for line in self.process.stderr:
            if found := re.search(r"on http://127.0.0.1:(\d+)", line):
                self.port = int(found.group(1))
                return
        raise SystemExit("the server did not start")

    def resident(self):
        return int(Path(f"/proc/{self.process.pid}/statm").read_text().split()[1]) * 4096

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.terminate()
        self.process.wait()
        self.process.stderr.close()


def ours(*options):
    folder = Path(tempfile.mkdtemp(prefix="serving-", dir="/var/tmp"))  # a disk: /tmp may be memory
    return Process("separatrix", "serve", str(folder / "state"), "--port", "0", *options), folder


# Clients: as little as possible between the request and the clock.


def request(path, body=b"", kind="application/json"):
    method = "POST" if body else "GET"
    head = f"{method} {path} HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: {kind}\r\nContent-Length: {len(body)}\r\n\r\n"
    return head.encode() + body


class Line:
    """A connection that asks and waits."""

    def __init__(self, port):
        self.socket = socket.create_connection(("127.0.0.1", port))
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    def ask(self, sent):
        self.socket.sendall(sent)
        reply = self.socket.recv(65536)
        while b"\r\n\r\n" not in reply:
            reply += self.socket.recv(65536)
        head, _, body = reply.partition(b"\r\n\r\n")
        if not head.startswith(b"HTTP/1.1 200"):
            raise SystemExit(reply.decode("utf-8", "replace"))
        length = int(re.search(rb"content-length: (\d+)", head, re.I).group(1))
        while len(body) < length:
            body += self.socket.recv(65536)
        return body


def pour(port, requests, connections):
    """Seconds to send all requests over some connections."""
    lines = [Line(port) for _ in range(connections)]
    shares = [requests[k::connections] for k in range(connections)]
    threads = [
        threading.Thread(target=lambda line, share: [line.ask(sent) for sent in share], args=pair)
        for pair in zip(lines, shares, strict=True)
    ]
    begun = time.perf_counter()
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return time.perf_counter() - begun


def batches(examples, size):
    lines = [orjson.dumps({"features": x, "label": y}) for x, y in examples]
    return [request("/learn", b"\n".join(lines[at : at + size]), LINES) for at in range(0, len(lines), size)]


def learning(repeats):
    examples = stream()
    n, size = len(examples), 1000
    together = batches(examples, size)
    singly = [request("/learn", orjson.dumps({"features": x, "label": y})) for x, y in examples]
    ours_, theirs, batched = [], [], []
    (server, folder), river = ours(), Process("benchmarks.serving", "peer")
    with server, river:
        pour(server.port, together, 1), pour(river.port, together, 1)
        for _ in range(repeats):
            ours_.append(pour(server.port, together * 4, 4) / 4)
            theirs.append(pour(river.port, singly, 4))
            batched.append(pour(river.port, together * 4, 4) / 4)
        alone = min(pour(server.port, singly[:1500], 8) for _ in range(repeats)) / 1500
    subprocess.run(["rm", "-r", str(folder)], check=True)
    what, mine = f"learning {n:,} examples, durable", Times(ours_, ours_)
    note = f"{n / min(ours_):,.0f} examples/s on the disk; one a request, 8 connections: {1 / alone:,.0f}"
    yield Row(
        what,
        f"lines, {size:,} a request",
        "River, learn_one a request, in memory",
        mine,
        Times(theirs, theirs),
        20,
        note=note,
    )
    yield Row(what, f"lines, {size:,} a request", "River, the same lines, in memory", mine, Times(batched, batched))


def ask_for(port, sent, seconds, found):
    """Ask again and again, one of several requests at a time; the times that it took."""
    requests = sent if isinstance(sent, list) else [sent]
    line, times = Line(port), []
    end = time.perf_counter() + seconds
    while (begun := time.perf_counter()) < end:
        line.ask(requests[len(times) % len(requests)])
        times.append(time.perf_counter() - begun)
    found.put(times)


def keep_asking(port, sent, pause, seconds):
    line, end, at = Line(port), time.perf_counter() + seconds, 0
    while time.perf_counter() < end:
        line.ask(sent[at % len(sent)])
        at += 1
        time.sleep(pause)


def measured(port, sent, others, seconds):
    """The times of one connection while others ask, each in a process of its own."""
    found = multiprocessing.Queue()
    crowd = [multiprocessing.Process(target=keep_asking, args=(port, what, pause, seconds + 1)) for what, pause in others]
    asker = multiprocessing.Process(target=ask_for, args=(port, sent, seconds, found))
    for one in (*crowd, asker):
        one.start()
    times = found.get()
    for one in (*crowd, asker):
        one.join()
    return times


def delays(seconds, repeats):
    examples = stream()
    predict = request("/predict", orjson.dumps({"features": examples[7][0]}))
    hello = request("/hello")
    single = [request("/learn", orjson.dumps({"features": x, "label": y})) for x, y in examples[:500]]
    fifty = batches(examples, 50)
    idle, busy = ("hello alone", "hello, with three others"), ("healthz, while three learn", "predict, while three learn")
    table = {name: [] for name in (*idle, "predict alone", *busy)}
    (server, folder), plain = ours(), Process("benchmarks.serving", "peer")
    with server, plain:
        pour(server.port, batches(examples, 1000), 1)
        for _ in range(repeats):
            table["hello alone"].append(measured(plain.port, hello, [], seconds))
            table["hello, with three others"].append(
                measured(plain.port, hello, [([hello], p) for p in (0.002, 0.002, 0.02)], seconds)
            )
            table["predict alone"].append(measured(server.port, predict, [], seconds))
            mixed = [(single, 0.002), (single, 0.002), (fifty, 0.02)]
            for name, sent in zip(busy, (request("/healthz"), predict), strict=True):
                table[name].append(measured(server.port, sent, mixed, seconds))
    subprocess.run(["rm", "-r", str(folder)], check=True)
    p50, p99 = (
        {name: statistics.median(np.percentile(t, q) for t in runs) for name, runs in table.items()} for q in (50, 99)
    )
    told = "; ".join(f"{name}: {1e3 * p50[name]:.2f} and {1e3 * p99[name]:.2f} ms" for name in table)
    under = p99["predict, while three learn"]
    ratio = under / p99["hello, with three others"]
    limit = p99["healthz, while three learn"] / p99["hello, with three others"]
    note = f"at the limit {limit:.1f}: healthz, which computes nothing, while three learn; p50 and p99 of {told}"
    yield Row("p99 of predict while three learn ÷ of hello with as many", value=ratio, at_most=3, note=note)
    yield Row("the same ÷ p99 of hello alone", value=under / p99["hello alone"])


def memory(rounds):
    examples = stream()
    together = batches(examples, 1000)
    server, folder = ours("--snapshot-every", "5")
    with server:
        for _ in range(5):
            pour(server.port, together, 1)
        learned, sizes = [], []
        for k in range(rounds):
            pour(server.port, together, 1)
            learned.append((k + 6) * len(examples))
            sizes.append(server.resident())
    subprocess.run(["rm", "-r", str(folder)], check=True)
    half = len(sizes) // 2
    slope = np.polyfit(learned[half:], sizes[half:], 1)[0]
    first, last = (f"{sizes[k] / 2**20:.0f} MB after {learned[k]:,}" for k in (0, -1))
    note = f"{first} examples, {last}; {slope:.2f} bytes an example over the last {learned[-1] - learned[half]:,}"
    yield Row("memory for 10 million examples more", value=10e6 * slope / 2**20, unit="MB", at_most=100, note=note)


def vectors(n, repeats, dimension=384):
    """The same vectors as packed vectors, as lists, and as features by name: learned in lines, and predicted one by one."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, dimension)).astype("<f4")
    labels = [f"topic {k}" for k in np.argmax(X @ rng.normal(size=(dimension, 8)), axis=1)]
    forms = {
        "packed": [{"vector": base64.b64encode(x.tobytes()).decode()} for x in X],
        "a list": [{"vector": x} for x in X.tolist()],
        "features": [{"features": {f"d{j}": value for j, value in enumerate(x)}} for x in X.tolist()],
    }
    learn, predict = {name: [] for name in forms}, {name: [] for name in forms}
    servers = {name: ours(*([] if name == "features" else ["--vectors"])) for name in forms}
    try:
        sent = {}
        for name, examples in forms.items():
            lines = [orjson.dumps({**x, "label": label}) for x, label in zip(examples, labels, strict=True)]
            sent[name] = [request("/learn", b"\n".join(lines[at : at + 100]), LINES) for at in range(0, n, 100)]
            pour(servers[name][0].port, sent[name], 1)
        for _ in range(repeats):
            for name, examples in forms.items():
                port = servers[name][0].port
                learn[name].append(pour(port, sent[name], 2))
                predict[name].append(pour(port, [request("/predict", orjson.dumps(x)) for x in examples[:500]], 1))
    finally:
        for server, folder in servers.values():
            server.__exit__()
            subprocess.run(["rm", "-r", str(folder)], check=True)
    features = Times(learn["features"], learn["features"]), Times(predict["features"], predict["features"])
    for name in ("packed", "a list"):
        for what, times, theirs in (
            (f"learning {n:,} vectors of {dimension} values", learn[name], features[0]),
            (f"predicting 500 vectors of {dimension} values, one a request", predict[name], features[1]),
        ):
            yield Row(what, f"vectors, {name}", "the same values as features", Times(times, times), theirs)


def many(n, seconds, repeats):
    """A server of many models beside that of one: the delay of predictions, what an open model takes, and the start."""
    examples = stream()
    each = [(x, y) for x, y in examples[:2000] if len(x) < 30]
    parts = [[each[(7 * k + i) % len(each)] for i in range(20)] for k in range(n)]
    predicting = orjson.dumps({"features": examples[7][0]})

    def lines_of(k):
        return b"\n".join(orjson.dumps({"features": x, "label": y}) for x, y in parts[k])

    (server, folder), (one, other) = ours("--many"), ours()
    state = str(folder / "state")
    order = np.random.default_rng(0).permutation(n)
    spread = [request(f"/models/m{k}/predict", predicting) for k in order]
    table = {"one model": [], f"{n:,} models": []}
    with server, one:
        pour(one.port, [request("/learn", lines_of(0), LINES)], 1)
        pour(server.port, [request("/models/m0/learn", lines_of(0), LINES)], 1)
        first = server.resident()
        pour(server.port, [request(f"/models/m{k}/learn", lines_of(k), LINES) for k in range(1, n)], 4)
        took = (server.resident() - first) / (n - 1)
        threads = len(list(Path(f"/proc/{server.process.pid}/task").iterdir()))
        files = len(list(Path(f"/proc/{server.process.pid}/fd").iterdir()))
        for _ in range(repeats):
            table["one model"].append(measured(one.port, request("/predict", predicting), [], seconds))
            table[f"{n:,} models"].append(measured(server.port, spread, [], seconds))
    p50, p99 = ({name: min(np.percentile(t, q) for t in runs) for name, runs in table.items()} for q in (50, 99))
    told = "; ".join(f"{name}: {1e3 * p50[name]:.2f} and {1e3 * p99[name]:.2f} ms" for name in table)
    ratio = p99[f"{n:,} models"] / p99["one model"]
    note = f"p50 and p99 of {told}; {threads} threads, {files:,} open files"
    yield Row(f"p99 of predict among {n:,} open models ÷ of one model", value=ratio, at_most=2, note=note)
    yield Row("memory of an open model of 20 examples", value=took / 2**20, unit="MB", at_most=1)
    starts = {"none": [], "all": []}
    for _ in range(repeats):
        for which, place in (("none", str(folder / "empty")), ("all", state)):
            begun = time.perf_counter()
            with Process("separatrix", "serve", place, "--port", "0", "--many") as again:
                starts[which].append(time.perf_counter() - begun)
                if which == "all":
                    opening = pour(again.port, spread, 1) / n
    none, all_ = (min(starts[which]) for which in ("none", "all"))
    note = f"{none:.2f} s without, {all_:.2f} s with; then {1e3 * opening:.1f} ms for the first prediction of each"
    yield Row(f"start with {n:,} models ÷ with none", value=all_ / none, at_most=1.5, note=note)
    subprocess.run(["rm", "-r", str(folder), str(other)], check=True)


def rows(quick=False):
    yield from learning(1 if quick else 3)
    yield from vectors(*((500, 1) if quick else (2000, 5)))
    yield from delays(*((1, 1) if quick else (6, 3)))
    yield from memory(5 if quick else 60)
    yield from many(*((50, 1, 1) if quick else (1000, 6, 3)))


if __name__ == "__main__":
    peer() if sys.argv[1:] == ["peer"] else show(list(rows()))
