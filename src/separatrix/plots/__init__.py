"""Pictures with matplotlib (`pip install 'separatrix[plot]'`), each made by one call, on your axes or its own.

They follow scikit-learn: `SomethingDisplay.from_estimator(...)` draws and returns the display, which has `ax_`, `figure_`,
its artists and its data. Nothing is ever shown by itself: call `pyplot.show()`, or save `figure_`.
"""

try:
    import matplotlib  # noqa: F401
except ImportError:
    raise ImportError("separatrix.plots draws with matplotlib, which is missing: pip install 'separatrix[plot]'") from None

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
