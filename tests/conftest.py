"""What all tests share: Hypothesis without a deadline (the first call of a kernel compiles it), pictures without a screen,
and the real data sets."""

import os
import sys
from pathlib import Path

import pytest
from hypothesis import settings

sys.path.insert(0, str(Path(__file__).parent))

os.environ.setdefault("MPLBACKEND", "Agg")
settings.register_profile("separatrix", deadline=None, derandomize=True)
settings.load_profile("separatrix")

DATA = Path(os.environ.get("SEPARATRIX_DATA", Path(__file__).parents[2] / "shared" / "data"))


@pytest.fixture
def data_folder() -> Path:
    if not DATA.is_dir():
        pytest.skip(f"the real data sets are not at {DATA}; set SEPARATRIX_DATA")
    return DATA
