"""Print every published figure beside ours."""

from benchmarks.published import rows
from benchmarks.published.figures import main

main(rows)
