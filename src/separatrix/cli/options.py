"""The options that several verbs share, besides those of `data/options.py`, each declared once."""

from pathlib import Path
from typing import Annotated

from separatrix.data.options import Argument, Option

ModelFile = Annotated[Path, Argument(help="A model written by `separatrix train -o`.")]
FeatureModel = Annotated[
    Path | None,
    Option(
        "--model",
        group="features",
        help="Use the features that this model makes of the columns, words included.",
    ),
]
Engine = Annotated[
    str | None,
    Option(
        metavar="WHERE",
        group="running",
        help="Where to work, one shard per file: local:4 (processes), dask://HOST:PORT or spark://HOST:PORT.",
    ),
]
Output = Annotated[Path | None, Option("-o", "--output", group="running", help="File to write.")]
Json = Annotated[bool, Option("--json", group="running", help="Print JSON.")]
Quiet = Annotated[bool, Option("--quiet", "-q", group="running", help="Show no progress bar.")]
