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
from separatrix.web.server.live.live_model import LiveModel
from separatrix.web.server.warming import warm

assert application


def start_server(request):
    log = os.open(request["log"], os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644)
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    os.dup2(log, 1)
    os.dup2(log, 2)
    os.environ.update(request["env"])
    if request["file_size"] is not None:
        import resource

        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (request["file_size"], request["file_size"]))
    try:
        app(request["start"], prog_name="separatrix")
    except SystemExit as end:
        sys.stderr.flush()
        os._exit(end.code or 0)
    os._exit(0)


def main():
    warm(LiveModel(Model(AveragedPerceptron())))
    ended = {}
    for line in sys.stdin:
        request = json.loads(line)
        if "start" in request:
            answer = os.fork()
            if not answer:
                start_server(request)
            ended.pop(answer, None)  # ids of processes come round again
        else:
            pid = request.get("wait", request.get("poll"))
            if pid not in ended:
                ended_pid, status = os.waitpid(pid, 0 if "wait" in request else os.WNOHANG)
                if ended_pid:
                    ended[pid] = os.waitstatus_to_exitcode(status)
            answer = ended.get(pid)
        print(json.dumps(answer), flush=True)


if __name__ == "__main__":
    main()
