"""A proxy before a server that loses replies: the server has done what was asked, and the client does not hear of it."""

import socket
import threading


class FlakyProxy(threading.Thread):
    """Passes one request a connection on; `script` says what happens to the reply of each request to a path.

    "pass": it is passed on; "drop": the connection is closed without it; "cut": it is closed in the middle of it; "refuse":
    the request is not passed on, and the connection is closed; a number: the request is not passed on, and the reply
    has this status. When the script ends, all replies are passed on.
    """

    def __init__(self, url, path, script):
        super().__init__(daemon=True)
        host, port = url.removeprefix("http://").split(":")
        self.server, self.path, self.script = (host, int(port)), path, list(script)
        self.sent = []
        """What the server was sent at the path, and what it replied."""
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.url = f"http://127.0.0.1:{self.listener.getsockname()[1]}"
        self.lock = threading.Lock()

    def __enter__(self):
        self.start()
        return self

    def __exit__(self, *_):
        self.listener.close()

    def run(self):
        while True:
            try:
                connection, _ = self.listener.accept()
            except OSError:
                return
            threading.Thread(target=self.serve, args=(connection,), daemon=True).start()

    def serve(self, connection):
        with connection, connection.makefile("rb") as incoming:
            while request := read_message(incoming):
                is_watched = request.split(b" ", 2)[1] == self.path.encode()
                with self.lock:
                    action = self.script.pop(0) if is_watched and self.script else "pass"
                if action == "refuse":
                    return
                if isinstance(action, int):
                    body = b'{"error": "too busy"}'
                    connection.sendall(b"HTTP/1.1 %d Busy\r\nContent-Length: %d\r\n\r\n" % (action, len(body)) + body)
                    continue
                with socket.create_connection(self.server) as server, server.makefile("rb") as answers:
                    server.sendall(request)
                    reply = read_message(answers)
                if is_watched:
                    self.sent.append((request, reply))
                if action == "drop":
                    return
                connection.sendall(reply[: len(reply) // 2] if action == "cut" else reply)
                if action == "cut":
                    return


def read_message(stream):
    """Read a request or a reply with a length; empty at the end of the connection."""
    head = b""
    while not head.endswith(b"\r\n\r\n"):
        line = stream.readline()
        if not line:
            return b""
        head += line
    lengths = [int(line.split(b":")[1]) for line in head.split(b"\r\n") if line.lower().startswith(b"content-length:")]
    return head + stream.read(lengths[0] if lengths else 0)
