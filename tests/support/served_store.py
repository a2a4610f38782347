"""A store with a writer in this process, for tests that need no HTTP."""

import orjson

from separatrix.web.server.reading.request_reader import Limits
from separatrix.web.server.storage import snapshots
from separatrix.web.server.storage.store import CommitStore
from separatrix.web.server.writing.writer import Writer

FRESH = {"learner": "averaged", "rule": "perceptron", "C": 1.0, "text": False, "bits": 10}


class ServedStore:
    """A store with a writer, in this process."""

    def __init__(self, folder, settings=FRESH, model=None, **options):
        self.folder, self.settings, self.options, self.model = folder, settings, options, model
        self.open()

    def open(self):
        self.store = CommitStore(self.folder)
        try:
            snapshots.begin(self.store, self.model, self.settings)
            self.writer = Writer(self.store, self.options.pop("limits", Limits()), **self.options)
        except BaseException:
            self.store.close()
            raise
        self.reader = self.writer.reader
        self.writer.start()

    def learn(self, stream, key=None):
        body = b"\n".join(orjson.dumps({self.reader.field: x, "label": y}) for x, y in stream)
        return orjson.loads(self.writer.submit(self.reader.lines(body, True), key, body).result(60))

    def undo(self, number):
        return orjson.loads(self.writer.undo(number).result(60))

    def forget(self, *numbers):
        return orjson.loads(self.writer.forget(list(numbers)).result(60))

    @property
    def live_model(self):
        return self.writer.buffer._visible

    def crash(self):
        """Let go of the files without tidying up, as the end of the process would."""
        told = self.live_model.state()
        self.writer._closing = True
        with self.writer._wake:
            self.writer._wake.notify_all()
        self.writer._thread.join()
        self.store.close()
        return told
