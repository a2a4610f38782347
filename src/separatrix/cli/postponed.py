"""Imports that wait until they are used: half of the start-up would be modules that scikit-learn imports and no verb calls.

`importlib.util.LazyLoader` makes a module whose code runs at the first look at one of its attributes.
"""

import sys
from collections.abc import Sequence
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec, PathFinder
from importlib.util import LazyLoader
from types import ModuleType

MODULES = frozenset({"numpy.f2py", "numpy.testing", "pandas", "scipy.optimize", "scipy.special", "scipy.stats"})


class Postponing(MetaPathFinder):
    """Finds the modules that are to wait."""

    def find_spec(self, name: str, path: Sequence[str] | None, target: ModuleType | None = None) -> ModuleSpec | None:
        """The module's spec with a loader that waits; None for any other module."""
        if name not in MODULES:
            return None
        spec = PathFinder.find_spec(name, path, target)
        if spec is not None and spec.loader is not None:
            spec.loader = LazyLoader(spec.loader)
        return spec


def postpone() -> None:
    """From now on these modules wait; those already imported stay as they are."""
    if not any(isinstance(finder, Postponing) for finder in sys.meta_path):
        sys.meta_path.insert(0, Postponing())
