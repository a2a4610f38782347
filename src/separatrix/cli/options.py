"""Options that several verbs have."""

from pathlib import Path
from typing import Annotated

import typer

Data = Annotated[
    str,
    typer.Argument(
        help="A file (svmlight, CSV, JSON lines, Parquet, Arrow, npz), a pattern, - or a name: iris, lecture:L4.1 …"
    ),
]
Label = Annotated[str | None, typer.Option(help="The label's column, by name or number from 0; the last one if not given.")]
Positive = Annotated[str | None, typer.Option(help="This class against all the others.")]
Drop = Annotated[list[str] | None, typer.Option(help="A column to leave out; may be given again.")]
InModel = Annotated[
    Path | None, typer.Option("--model", help="Look at the features that this model makes of the columns, words included.")
]
