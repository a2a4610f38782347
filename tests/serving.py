"""A feedback server in a process of its own, for the tests: started, killed, started again."""

import contextlib
import os
import re
import signal
import subprocess
import sys
import time

from separatrix.web import Client


class Served:
    """`separatrix serve` on a folder, on a free port."""

    def __init__(self, folder, *options, env=None, wrapper=()):
        self.folder, self.options, self.wrapper = folder, options, wrapper
        self.env = {**os.environ, **(env or {})}
        self.process = None
        self.url = ""

    def start(self, port=0):
        command = [*self.wrapper, sys.executable, "-m", "separatrix", "serve", str(self.folder), "--port", str(port)]
        self.errors = open(f"{self.folder}.log", "ab")
        at = self.errors.tell()
        self.process = subprocess.Popen([*command, *self.options], stderr=self.errors, env=self.env)
        end = time.monotonic() + 120
        while time.monotonic() < end:
            told = self.log()[at:]
            if found := re.search(r"serving .* on (http://\S+)", told):
                self.url = found.group(1)
                return self
            if self.process.poll() is not None:
                self.errors.close()
                raise ChildProcessError(told)
            time.sleep(0.01)
        raise TimeoutError(self.log()[at:])

    def log(self):
        with open(f"{self.folder}.log") as file:
            return file.read()

    def client(self, **options):
        return Client(self.url, **options)

    def kill(self):
        """End it as a power cut ends a process: nothing is tidied up."""
        self.process.kill()
        self.process.wait()
        self.errors.close()

    def stop(self, number=signal.SIGTERM):
        """Ask it to end; return its exit status."""
        if self.process.poll() is None:
            self.process.send_signal(number)
        status = self.process.wait(60)
        self.errors.close()
        return status

    def resident(self):
        """Its memory in bytes."""
        with open(f"/proc/{self.process.pid}/statm") as file:
            return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")


@contextlib.contextmanager
def served(folder, *options, **how):
    """A server that is gone at the end, however the test went."""
    server = Served(folder, *options, **how).start()
    try:
        yield server
    finally:
        if server.process.poll() is None:
            server.kill()
        server.errors.close()


def examples(n, seed=0, classes=("ham", "spam", "other"), names=300):
    """Examples of a few named features each, some of which come up late, with labels that a linear rule gives."""
    import numpy as np

    rng = np.random.default_rng(seed)
    hidden = rng.normal(size=(names, len(classes)))
    for i in range(n):
        some = rng.permutation(20 + (names - 20) * i // n)[:6]
        x = {f"f{j}": round(float(rng.normal()), 3) for j in some}
        scores = sum(value * hidden[int(name[1:])] for name, value in x.items())
        yield x, classes[int(np.argmax(scores))]


def matrix(stream):
    """Examples as CSR, columns in the order in which the names were first met; and the names."""
    import scipy.sparse as sp

    index, indptr, indices, data = {}, [0], [], []
    for x, _ in stream:
        for name, value in x.items():
            indices.append(index.setdefault(name, len(index)))
            data.append(float(value))
        indptr.append(len(indices))
    return sp.csr_matrix((data, indices, indptr), shape=(len(stream), max(1, len(index)))), list(index)
