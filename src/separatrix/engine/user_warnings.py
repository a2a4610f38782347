"""Warnings that point to the line of the user's program, however deep in the package they arise."""

import contextlib
import functools
import os
import sys
import warnings
from pathlib import Path

_OURS = (f"{Path(__file__).parents[1]}{os.sep}", functools.__file__, contextlib.__file__)
"""Where our own code runs, also as a cached property or a context manager."""
_CALLERS = ("sklearn", "joblib")
"""Packages whose pipelines and searches call our estimators for the user."""


def warn_user(message: str, category: type[Warning] = UserWarning) -> None:
    """Warn at the innermost line that is neither ours nor scikit-learn's."""
    callers = (getattr(sys.modules.get(name), "__file__", None) for name in _CALLERS)
    places = (*_OURS, *(f"{Path(file).parent}{os.sep}" for file in callers if file is not None))
    frame, level = sys._getframe(1), 2  # Python 3.12 has `skip_file_prefixes` for this
    while frame.f_back is not None and frame.f_code.co_filename.startswith(places):
        frame, level = frame.f_back, level + 1
    warnings.warn(message, category, stacklevel=level)
