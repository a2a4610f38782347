"""Request counters in the Prometheus text format, and the request log."""

from __future__ import annotations

import logging
import time
from collections import Counter
from typing import Any

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from separatrix.web.server.forgetting.numbers import forgotten_numbers
from separatrix.web.server.memory_budget import ProcessMemory, resident
from separatrix.web.server.writing.writer import Writer

log = logging.getLogger("separatrix.serve")
BOUNDS = (0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 1.0, 10.0)


class RequestMetrics:
    """Counts requests by path and status, with a histogram of their durations."""

    def __init__(self, paths: set[str], requests_logged: bool) -> None:
        self.paths, self.requests_logged = paths, requests_logged
        self.statuses: Counter[tuple[str, int]] = Counter()
        self.seconds: Counter[str] = Counter()
        self.buckets: Counter[tuple[str, float]] = Counter()
        self.predicted = 0

    def record(self, method: str, path: str, status: int, seconds: float) -> None:
        """Count a request."""
        label = self.label(path)
        self.statuses[label, status] += 1
        self.seconds[label] += seconds  # type: ignore[assignment]
        self.buckets[label, next((bound for bound in BOUNDS if seconds <= bound), float("inf"))] += 1
        if self.requests_logged:
            log.info("%s %s %d %.1f ms", method, label, status, 1000 * seconds)

    def label(self, path: str) -> str:
        """Return the name under which requests of a path are counted."""
        return path if path in self.paths else "other"

    def text(self, writer: Writer, wrong_tokens: int) -> str:
        """Return all metrics in the Prometheus text format."""
        memory, forgotten = writer.memory, len(forgotten_numbers(writer.store.forgettings))
        with writer.buffer.reading() as (live_model, number):
            counts, features, classes = live_model.progressive, live_model.n_names, len(live_model.classes)
            totals = counts.examples, counts.errors, counts.mistakes
            drifting, in_runs = counts.drift()["drifting"], counts.in_runs()
        lines = [
            *metric("separatrix_examples_total", "counter", "Examples learned from.", totals[0]),
            *metric(
                "separatrix_errors_total", "counter", "Examples predicted wrongly before they were learned from.", totals[1]
            ),
            *metric("separatrix_mistakes_total", "counter", "Updates of the weights.", totals[2]),
            *metric("separatrix_forgotten_total", "counter", "Examples forgotten.", forgotten),
            *metric("separatrix_drifting", "gauge", "Whether the progressive error has risen.", int(drifting)),
            *metric("separatrix_labels_in_runs", "gauge", "Whether labels come as in sorted rows.", int(in_runs)),
            *metric("separatrix_features", "gauge", "Features seen so far.", features),
            *metric("separatrix_classes", "gauge", "Classes seen so far.", classes),
            *metric("separatrix_commits_total", "counter", "Commits of the store.", number),
            *metric(
                "separatrix_commit_seconds_total",
                "counter",
                "Seconds spent on commits since start-up.",
                writer.commit_seconds,
            ),
            *metric(
                "separatrix_keyed_again_total",
                "counter",
                "Retried requests, answered from their idempotency key.",
                writer.keyed_again,
            ),
            *metric("separatrix_predictions_total", "counter", "Examples predicted since start-up.", self.predicted),
            *metric("separatrix_waiting", "gauge", "Requests waiting to be learned from.", writer.waiting),
            *metric("separatrix_ready", "gauge", "Whether the server can learn.", int(not writer.problem())),
            *metric("separatrix_wrong_tokens_total", "counter", "Requests with a wrong token since start-up.", wrong_tokens),
            *memory_lines(memory),
            *metric(
                "separatrix_snapshot_timestamp_seconds", "gauge", "Unix time of the last snapshot.", writer.snapshot_time
            ),
            *self.request_lines(),
        ]
        return "\n".join(lines) + "\n"

    def request_lines(self) -> list[str]:
        """Return the numbers of requests, and how long they took."""
        lines = [
            "# HELP separatrix_requests_total HTTP requests by path and status.",
            "# TYPE separatrix_requests_total counter",
        ]
        for (path, status), n in sorted(self.statuses.items()):
            lines.append(f'separatrix_requests_total{{path="{path}",status="{status}"}} {n}')
        lines += [
            "# HELP separatrix_request_seconds Duration of HTTP requests.",
            "# TYPE separatrix_request_seconds histogram",
        ]
        for path in sorted(self.seconds):
            below = 0
            for bound in (*BOUNDS, float("inf")):
                below += self.buckets[path, bound]
                edge = "+Inf" if bound == float("inf") else f"{bound:g}"
                lines.append(f'separatrix_request_seconds_bucket{{path="{path}",le="{edge}"}} {below}')
            lines.append(f'separatrix_request_seconds_sum{{path="{path}"}} {self.seconds[path]:.6f}')
            lines.append(f'separatrix_request_seconds_count{{path="{path}"}} {below}')
        return lines


def memory_lines(memory: ProcessMemory) -> list[str]:
    """Return what the process may use, what is claimed of it, and what it holds."""
    return [
        *metric("separatrix_memory_limit_bytes", "gauge", "What the process may use.", memory.limit),
        *metric("separatrix_memory_models_bytes", "gauge", "Claimed for models.", memory.models.claimed),
        *metric("separatrix_memory_requests_bytes", "gauge", "Claimed for requests.", memory.requests.claimed),
        *metric("separatrix_memory_resident_bytes", "gauge", "What the process holds.", resident()),
    ]


def metric(name: str, kind: str, description: str, value: Any) -> list[str]:
    """Return the lines of one metric."""
    return [f"# HELP {name} {description}", f"# TYPE {name} {kind}", f"{name} {value}"]


class MetricsMiddleware:
    """Records every request of an application."""

    def __init__(self, app: ASGIApp, metrics: RequestMetrics) -> None:
        self.app, self.metrics = app, metrics

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle one request."""
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        started, status = time.perf_counter(), 500

        async def observe(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
            await send(message)

        try:
            await self.app(scope, receive, observe)
        finally:
            path = scope["path"].removeprefix(scope.get("root_path", ""))
            self.metrics.record(scope["method"], path, status, time.perf_counter() - started)
