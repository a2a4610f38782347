"""The metrics of a server of many models: requests by what they ask for, models, memory, and the counts of open models."""

from __future__ import annotations

from separatrix.web.many.models import Models
from separatrix.web.server.metrics import RequestMetrics, memory_lines, metric

_COUNTS = {
    "examples": "Examples learned from, by open model.",
    "errors": "Examples predicted wrongly before they were learned from, by open model.",
    "mistakes": "Updates of the weights, by open model.",
}


class ManyMetrics(RequestMetrics):
    """Counts the requests of all models together, as `/models/{name}/predict`."""

    def label(self, path: str) -> str:
        """Return the name under which requests of a path are counted."""
        if path.startswith("/models/"):
            _, slash, rest = path.removeprefix("/models/").partition("/")
            path = f"/{rest}" if slash else ""
            return f"/models/{{name}}{path}" if not slash or path in self.paths else "other"
        return path if path in self.paths or path == "/models" else "other"

    def text_of(self, models: Models, wrong_tokens: int) -> str:
        """Return all metrics in the Prometheus text format."""
        slots = models.slots()
        counts = {slot.name: slot.current_counts(models.folder) for slot in slots if slot.model is not None}
        failing = sum(bool(slot.problem or (slot.model and slot.model.writer.problem())) for slot in slots)
        waiting = sum(slot.model.writer.waiting for slot in slots if slot.model is not None)
        lines = [
            *metric("separatrix_models", "gauge", "Models of this server.", len(slots)),
            *metric("separatrix_models_open", "gauge", "Open models.", models.n_open),
            *metric("separatrix_models_open_limit", "gauge", "The most models that may be open.", models.most_open),
            *metric("separatrix_models_opened_total", "counter", "Times that a model was opened.", models.opened),
            *metric("separatrix_models_closed_total", "counter", "Times that a model was closed.", models.closed),
            *metric("separatrix_models_failing", "gauge", "Models that cannot be opened, or cannot learn.", failing),
            *metric("separatrix_waiting", "gauge", "Requests waiting to be learned from.", waiting),
            *metric("separatrix_wrong_tokens_total", "counter", "Requests with a wrong token.", wrong_tokens),
            *memory_lines(models.memory),
        ]
        for name, description in _COUNTS.items():
            lines += [f"# HELP separatrix_{name}_total {description}", f"# TYPE separatrix_{name}_total counter"]
            lines += [f'separatrix_{name}_total{{model="{model}"}} {count[name]}' for model, count in counts.items()]
        return "\n".join([*lines, *self.request_lines()]) + "\n"
