"""How large model files are, and how long they take to load: all of them side by side in one run.

    python -m benchmarks.model_files [--write]

Each model is trained once with the defaults of `separatrix train`, and saved in each form. "Before" is
the form of format 1, which leaves out zeros only where two thirds of the weights are. A load is the least processor time of
several, in turn. `--write` puts the table into docs/models.md.
"""

import argparse
import tempfile
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import numpy as np

from benchmarks.datasets import DATA
from benchmarks.pages import put
from benchmarks.timing import in_turns
from separatrix import load, save, train
from separatrix.engine import parcel

REPEATS = 25
SOURCES = {
    "20 newsgroups": ("20newsgroups/20newsgroups-train.tab.gz", "Category"),
    "sms_spam": ("sms_spam/SMSSpamCollection.gz", 0),
    "Adult": ("adult/adult-train.csv.gz", None),
}
FORMS = {
    "now": {},
    "`--float32`": {"float32": True},
    "`--no-resume`": {"resume": False},
    "both": {"float32": True, "resume": False},
}


def lines(folder: Path) -> Iterator[str]:
    """Yield the lines of the table."""
    names = ["before", *FORMS]
    yield f"| data | weights not 0 | {' | '.join(names)} | predictions that float32 changes |"
    yield f"|---|---|{'---|' * len(names)}---|"
    for title, (path, label) in SOURCES.items():
        model = train(DATA / path, label=label, float32=True, output=folder / "single.sepx")
        forms, smallest = {"before": folder / "before.sepx"}, parcel.MASKED_BYTES
        parcel.MASKED_BYTES = 1 << 62
        try:
            save(model, forms["before"])
        finally:
            parcel.MASKED_BYTES = smallest
        for k, options in enumerate(FORMS.values()):
            forms[str(k)] = folder / f"{k}.sepx"
            save(model, forms[str(k)], **options)
        times, _ = in_turns(*(partial(load, file, plain=True) for file in forms.values()), repeats=REPEATS, warm_up=1)
        share = np.count_nonzero(model.estimator.coef_) / model.estimator.coef_.size
        cells = [
            f"{file.stat().st_size / 1e6:.2f} MB, {1e3 * min(each.cpu):.1f} ms"
            for file, each in zip(forms.values(), times, strict=True)
        ]
        changed = f"{model.summary['float32_changed']:,} of {model.summary['rows']:,}"
        yield f"| {title} | {share:.0%} | {' | '.join(cells)} | {changed} |"


def main() -> None:
    """Print the table, or write it into the page."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--write", action="store_true")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        table = "\n".join(lines(Path(folder)))
    print(table)
    if arguments.write:
        put("docs/models.md", "benchmarks.model_files", table)


if __name__ == "__main__":
    main()
