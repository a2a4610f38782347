"""Work that lists what a worker has imported; this module itself imports nothing else."""

import sys

from separatrix.cluster.results import ItemList


class ListModules:
    """Return the packages that the worker has imported."""

    def __call__(self, shard):
        return ItemList([{name.partition(".")[0] for name in sys.modules} | {"scipy.stats"} & set(sys.modules)])
