"""From raw columns to numbers: feature maps, text and tables.

In come NumPy arrays, Arrow columns, data frames or lists of texts; out goes one matrix, dense or CSR, with a name for each
column. `maps` has the public feature maps, `text` and `table` the featurizers, `words/` and `columns/` their parts.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from separatrix.features.maps import Bias as Bias
    from separatrix.features.maps import DiscMap as DiscMap
    from separatrix.features.maps import PolynomialMap as PolynomialMap
    from separatrix.features.maps import RandomFourier as RandomFourier
    from separatrix.features.maps import disc_weights as disc_weights

__all__ = ["Bias", "DiscMap", "PolynomialMap", "RandomFourier", "disc_weights"]


def __dir__() -> list[str]:
    return __all__


def __getattr__(name: str) -> Any:
    """Import a feature map when it is first used: text and tables need none of what the maps import."""
    if name not in __all__:
        raise AttributeError(f"module 'separatrix.features' has no attribute {name!r}")
    return getattr(import_module("separatrix.features.maps"), name)
