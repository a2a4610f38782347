"""Plots with matplotlib (`pip install 'separatrix[plot]'`), one file for each.

A fitted estimator and examples come in; a display goes out, as in scikit-learn: `SomethingDisplay.from_estimator(...)` draws
on the given axes or in a new figure, and returns an object with `ax_`, `figure_`, its artists and its data. Nothing is shown
automatically: call `pyplot.show()`, or save `figure_`. A new plot is a new file and its export here.
"""

try:
    import matplotlib  # noqa: F401
except ImportError:
    raise ImportError("separatrix.plots needs matplotlib: pip install 'separatrix[plot]'") from None

from separatrix.plots.boundary import BoundaryDisplay
from separatrix.plots.comparison import ComparisonDisplay
from separatrix.plots.margins import MarginDisplay
from separatrix.plots.passes import PassesDisplay
from separatrix.plots.path import PathDisplay
from separatrix.plots.projections import ProjectionDisplay
from separatrix.plots.proof import ProofDisplay
from separatrix.plots.weights import WeightsDisplay

__all__ = [
    "BoundaryDisplay",
    "ComparisonDisplay",
    "MarginDisplay",
    "PassesDisplay",
    "PathDisplay",
    "ProjectionDisplay",
    "ProofDisplay",
    "WeightsDisplay",
]
