"""What all tests share: Hypothesis without a deadline (the first call of a kernel compiles it), pictures without a screen,
the markers that follow from fixtures, the browser, and the real data sets."""

import os
import sys
from pathlib import Path

import pytest
from hypothesis import settings

sys.path.insert(0, str(Path(__file__).parent))

from support.browser import chromium, lab_server, watched
from support.scale import property_examples

os.environ.setdefault("MPLBACKEND", "Agg")
settings.register_profile("separatrix", deadline=None, derandomize=True, max_examples=property_examples(30))
settings.load_profile("separatrix")

DATA = Path(os.environ.get("SEPARATRIX_DATA", Path(__file__).parents[2] / "shared" / "data"))


def pytest_itemcollected(item):
    """Mark the tests that drive a browser as `browser`, and those that read real data sets as `slow`."""
    if "browser" in item.fixturenames:
        item.add_marker(pytest.mark.browser)
    if "data_folder" in item.fixturenames:
        item.add_marker(pytest.mark.slow)


@pytest.fixture
def data_folder() -> Path:
    if not DATA.is_dir():
        pytest.skip(f"the real data sets are not at {DATA}; set SEPARATRIX_DATA")
    return DATA


@pytest.fixture(scope="module")
def lab_url():
    """The address of a lab."""
    with lab_server() as url:
        yield url


@pytest.fixture(scope="module")
def browser():
    with chromium() as opened:
        yield opened


@pytest.fixture
def page(browser, lab_url):
    """A page of the lab, which must not have a fault."""
    with watched(browser, lab_url) as opened:
        yield opened
