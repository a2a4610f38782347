"""The built site: it needs no other host, shows its formulas and the lab, and fits a phone."""

import functools
import http.server
import os
import re
import subprocess
import sys
import threading

import pytest

from support.browser import chromium, watched
from support.documents import ROOT

PAGES = ("index.html", "faq.html", "glossary.html", "theory.html", "benchmarks.html", "tutorials/L4.html", "learners.html")
FOREIGN = re.compile(r'<(?:script|img|iframe|source|link)\b[^>]*?\b(?:src|href)="(?:https?:)?//[^"]*"')
pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    pytest.importorskip("mkdocs")
    pytest.importorskip("material")
    folder = tmp_path_factory.mktemp("site")
    environment = os.environ | {"NO_MKDOCS_2_WARNING": "1"}
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "-q", "-d", str(folder)]
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    return folder


def test_no_page_names_a_file_of_another_host(site):
    pages = list(site.rglob("*.html"))
    assert len(pages) > 40
    assert not [(page.name, found) for page in pages for found in FOREIGN.findall(page.read_text(encoding="utf-8"))]


@pytest.mark.browser
@pytest.mark.parametrize("width", [390, 1280])
def test_pages_load_alone_and_fit(site, width):
    class Quiet(http.server.SimpleHTTPRequestHandler):
        def log_message(self, *_):
            pass

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(Quiet, directory=str(site)))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    url = f"http://127.0.0.1:{server.server_port}"
    try:
        with chromium() as browser:
            for name in PAGES:
                with watched(browser, url, viewport={"width": width, "height": 900}) as page:
                    page.goto(f"{url}/{name}")
                    page.wait_for_selector("h1")
                    assert page.evaluate("document.documentElement.scrollWidth") <= width, name
                    if name == "theory.html":
                        assert page.locator("math").count() > 100 and "arithmatex" not in page.content()
                    if name == "index.html":
                        page.frame_locator("iframe.lab").locator("#where b").first.wait_for()
                        cut_off = "document.documentElement.scrollHeight - innerHeight"
                        assert page.frames[1].evaluate(cut_off) <= 0, "the lab is cut off"
    finally:
        server.shutdown()
        server.server_close()
