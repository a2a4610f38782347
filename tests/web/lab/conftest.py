"""The lab exported as static files, and a plain web host that serves them."""

import functools
import http.server
import threading

import pytest
from click.testing import CliRunner

from separatrix.cli import app
from separatrix.web.lab.site import SINGLE_FILE


class QuietHandler(http.server.SimpleHTTPRequestHandler):
    """A plain web host that knows nothing of the lab."""

    def log_message(self, *_):
        pass


@pytest.fixture(scope="module")
def exported(tmp_path_factory):
    folder = tmp_path_factory.mktemp("export") / "site"
    result = CliRunner().invoke(app, ["lab", "--export", str(folder)])
    assert result.exit_code == 0 and str(folder / SINGLE_FILE) in result.stdout
    return folder


@pytest.fixture(scope="module")
def host(exported):
    """The address at which a plain web host serves the exported files, below a folder."""
    handler = functools.partial(QuietHandler, directory=str(exported.parent))
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}/site"
        server.shutdown()
