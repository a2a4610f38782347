"""The one error of model files."""

from separatrix.data.errors import DataError


class ModelFileError(DataError):
    """A model cannot be stored in a file, or a file is not a model that could be trusted."""
