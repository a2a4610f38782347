"""A feedback server in a process of its own, for the tests: started, killed, started again; and examples for it."""

import atexit
import contextlib
import json
import os
import re
import signal
import subprocess
import sys
import tempfile
import threading
import time
from functools import cache
from pathlib import Path

import numpy as np
import scipy.sparse as sp

from separatrix.web import Client


class ServerPool:
    """The process that servers are forked from (server_pool.py)."""

    def __init__(self):
        command = [sys.executable, str(Path(__file__).with_name("server_pool.py"))]
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.lock = threading.Lock()
        atexit.register(self.close)

    def ask(self, **request):
        with self.lock:
            self.process.stdin.write(json.dumps(request) + "\n")
            self.process.stdin.flush()
            return json.loads(self.process.stdout.readline())

    def close(self):
        self.process.stdin.close()
        self.process.wait()
        self.process.stdout.close()


server_pool = cache(ServerPool)


class ServerProcess:
    """`separatrix serve` on a folder, on a free port."""

    def __init__(self, folder, *options, env=None, file_size=None):
        self.folder, self.options, self.env, self.file_size = folder, options, env or {}, file_size
        self.url, self.pid = "", 0
        self.clients = []

    def start(self, port=0):
        at = len(self.log())
        arguments = ["serve", str(self.folder), "--port", str(port), *self.options]
        self.pid = server_pool().ask(start=arguments, log=f"{self.folder}.log", env=self.env, file_size=self.file_size)
        end = time.monotonic() + 120
        while time.monotonic() < end:
            new_log = self.log()[at:]
            if match := re.search(r"serving .* on (http://\S+)", new_log):
                self.url = match.group(1)
                return self
            if not self.alive():
                raise ChildProcessError(self.log()[at:])
            time.sleep(0.005)
        raise TimeoutError(self.log()[at:])

    def alive(self):
        return server_pool().ask(poll=self.pid) is None

    def log(self):
        path = Path(f"{self.folder}.log")
        return path.read_text() if path.exists() else ""

    def client(self, **options):
        self.clients.append(Client(self.url, **options))
        return self.clients[-1]

    def kill(self):
        """End it as a power cut ends a process: nothing is tidied up."""
        return self.stop(signal.SIGKILL)

    def stop(self, number=signal.SIGTERM):
        """Ask it to end; return its exit status."""
        if self.alive():
            os.kill(self.pid, number)
        for client in self.clients:
            client.close()
        return server_pool().ask(wait=self.pid)

    def resident(self):
        """Its memory in bytes."""
        return int(Path(f"/proc/{self.pid}/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


@contextlib.contextmanager
def served(folder, *options, **how):
    """A server that is gone at the end, however the test went."""
    server = ServerProcess(folder, *options, **how).start()
    try:
        yield server
    finally:
        server.kill()


def run(*arguments):
    """Run a command of ours; return its exit status and what it said."""
    with tempfile.NamedTemporaryFile(suffix=".log") as log:
        pid = server_pool().ask(start=[str(argument) for argument in arguments], log=log.name, env={}, file_size=None)
        status = server_pool().ask(wait=pid)
        return status, Path(log.name).read_text()


def examples(n, seed=0, classes=("ham", "spam", "other"), names=300):
    """Examples of a few named features each, some of which come up late, with labels that a linear rule gives."""
    rng = np.random.default_rng(seed)
    hidden = rng.normal(size=(names, len(classes)))
    for i in range(n):
        some = rng.permutation(20 + (names - 20) * i // n)[:6]
        x = {f"f{j}": round(float(rng.normal()), 3) for j in some}
        scores = sum(value * hidden[int(name[1:])] for name, value in x.items())
        yield x, classes[int(np.argmax(scores))]


def matrix(stream):
    """Examples as CSR, columns in the order in which the names were first met; and the names."""
    index, indptr, indices, data = {}, [0], [], []
    for x, _ in stream:
        for name, value in x.items():
            indices.append(index.setdefault(name, len(index)))
            data.append(float(value))
        indptr.append(len(indices))
    return sp.csr_matrix((data, indices, indptr), shape=(len(stream), max(1, len(index)))), list(index)
