"""The table of file formats: one entry says all that the other modules need to know of a format."""

import io
import sys

import pytest

from separatrix.data import sniffing
from separatrix.data.errors import DataError
from separatrix.data.formats import FORMATS, NAMES, Format
from separatrix.data.reading import open_source


@pytest.mark.parametrize("entry", FORMATS.values(), ids=FORMATS)
def test_an_entry_names_its_reader_and_every_alias_leads_to_it(entry):
    for name in (entry.name, entry.name.upper(), *entry.aliases):
        assert sniffing.format_called(name) is entry
    assert entry.name in NAMES
    assert bool(entry.reader) != bool(entry.variant_of)
    assert entry.variant_of in ("", *FORMATS)


def test_a_name_that_no_format_has():
    with pytest.raises(DataError, match=r"'xlsx' is not one of svmlight.*npz"):
        open_source("iris", format="xlsx")


def test_a_module_and_an_entry_make_a_format(monkeypatch):
    class DotsReader:
        """Lines of dots, each a row with their number."""

        kind = "rows"
        width = 1

        def __init__(self, stream, options):
            self.options = options

        def batches(self, stream):
            import numpy as np

            from separatrix.data.batches import RowBatch
            from separatrix.data.errors import Origin

            counts = [len(line) - 1 for line in stream.peek().splitlines()]
            yield RowBatch(np.array(counts, float)[:, None], np.array(counts), Origin(stream.name, 1))

    module = type(sys)("separatrix.data.formats.dots")
    module.DotsReader = DotsReader
    monkeypatch.setitem(sys.modules, module.__name__, module)
    recognizes = lambda head: head.startswith(b"!.")  # noqa: E731
    monkeypatch.setitem(FORMATS, "dots", Format("dots", "Dots", "dots.DotsReader", recognizes, aliases=("points",)))
    for form in (None, "dots", "points"):
        source = open_source(io.BytesIO(b"!..\n!....\n"), format=form)
        assert (source.format, source.kind) == ("dots", "rows")
        assert [batch.y.tolist() for batch in source] == [[2, 4]]
