"""The options that several verbs share, besides those of `data/options.py`, each declared once."""

from pathlib import Path
from typing import Annotated

from separatrix.data.options import Argument, Option
from separatrix.data.options import Engine as Engine
from separatrix.data.options import Output as Output

ModelFile = Annotated[Path, Argument(help="A model written by `separatrix train -o`.")]
FeatureModel = Annotated[
    Path | None,
    Option(
        "--model",
        group="features",
        help="Use the features that this model makes of the columns, words included.",
    ),
]
ModelFormula = Annotated[
    str | None,
    Option(
        metavar="FORMULA",
        group="features",
        help="Use the columns of a formula such as 'y ~ a + C(b)', which also names the label; needs separatrix[stats].",
    ),
]
Json = Annotated[bool, Option("--json", group="running", help="Print JSON.")]
Quiet = Annotated[bool, Option("--quiet", "-q", group="running", help="Show no progress bar.")]
