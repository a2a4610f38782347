"""Starts servers quickly: a process that has imported everything forks one for each line that asks for it.

A line on standard input is a JSON object: {"start": arguments, "log": file, "env": …, "file_size": bytes or null} gets the
process's id, {"wait": id} its exit status, {"poll": id} the same or null.
"""

import json
import os
import signal
import sys

from separatrix import AveragedPerceptron, Model
from separatrix.cli import app
from separatrix.web.server.app import application
from separatrix.web.server.live_model import LiveModel, warm

assert application


def child(told):
    log = os.open(told["log"], os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644)
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    os.dup2(log, 1)
    os.dup2(log, 2)
    os.environ.update(told["env"])
    if told["file_size"] is not None:
        import resource

        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (told["file_size"], told["file_size"]))
    try:
        app(told["start"], prog_name="separatrix")
    except SystemExit as end:
        sys.stderr.flush()
        os._exit(end.code or 0)
    os._exit(0)


def main():
    warm(LiveModel(Model(AveragedPerceptron())))
    ended = {}
    for line in sys.stdin:
        told = json.loads(line)
        if "start" in told:
            answer = os.fork()
            if not answer:
                child(told)
        else:
            pid = told.get("wait", told.get("poll"))
            if pid not in ended:
                found, status = os.waitpid(pid, 0 if "wait" in told else os.WNOHANG)
                if found:
                    ended[pid] = os.waitstatus_to_exitcode(status)
            answer = ended.get(pid)
        print(json.dumps(answer), flush=True)


if __name__ == "__main__":
    main()
