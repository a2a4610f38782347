"""A real browser for the tests of the pages: Debian's Chromium, driven by Playwright; and a lab for it to look at.

With SEPARATRIX_BROWSER=required a missing browser is a failure; else the tests that need it are skipped.
"""

import os
import shutil
import threading
from contextlib import contextmanager
from importlib.resources import files

import pytest

REQUIRED = os.environ.get("SEPARATRIX_BROWSER") == "required"
FLAGS = "--no-sandbox --disable-gpu --disable-background-networking --disable-component-update --disable-sync --no-first-run"


def missing(what):
    (pytest.fail if REQUIRED else pytest.skip)(what)


@contextmanager
def chromium():
    """A browser; Playwright's loop runs in this thread until it is closed."""
    path = shutil.which("chromium") or shutil.which("chromium-browser")
    if path is None:
        missing("there is no chromium on this machine")
    try:
        from playwright.sync_api import sync_playwright
    except ImportError:
        missing("playwright is not installed")
    with sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=path, args=FLAGS.split())
        yield browser
        browser.close()


@contextmanager
def lab_server():
    """The address of a lab that runs in a thread."""
    import uvicorn

    from separatrix.web.lab.app import lab
    from separatrix.web.listening import listen, url_of

    listener = listen("127.0.0.1", 0)
    server = uvicorn.Server(uvicorn.Config(lab(), log_level="error", lifespan="off"))
    thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]}, daemon=True)
    thread.start()
    yield url_of(listener)
    server.should_exit = True
    thread.join(10)
    listener.close()


@contextmanager
def watched(browser, base, allowed="no fault", **options):
    """A page of which every error, warning and foreign request is seen; but for what is `allowed`, there must be none."""
    context = browser.new_context(**{"viewport": {"width": 1280, "height": 900}, **options})
    page = context.new_page()
    faults = []
    page.on(
        "console",
        lambda message: message.type in ("error", "warning") and allowed not in message.text and faults.append(message.text),
    )
    page.on("pageerror", lambda error: faults.append(str(error)))
    page.on("request", lambda request: request.url.startswith((base, "data:", "blob:")) or faults.append(request.url))
    page.set_default_timeout(20_000)
    yield page
    context.close()
    assert [fault for fault in faults if allowed not in fault] == []


def axe():
    """The source of axe-core, as the package axe-playwright-python carries it."""
    try:
        return (files("axe_playwright_python") / "axe.min.js").read_text(encoding="utf-8")
    except ImportError:
        missing("axe-playwright-python is not installed")


def visit(page, url, state):
    """Open the lab in a state."""
    page.goto("about:blank")
    page.goto(f"{url}/#{state}")
    page.wait_for_selector("#where b")


def text_of(page, name):
    """What is written in a part of the page."""
    return page.locator(f"#{name}").inner_text()
