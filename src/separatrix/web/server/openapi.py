"""The OpenAPI document of the server, written by hand because requests are parsed by hand, for speed."""

from __future__ import annotations

from typing import Any

from separatrix import __version__
from separatrix.web.server.schemas import FIELDS, LABEL, SCHEMAS, object_of

_REASONS = {
    400: "invalid JSON, or an invalid request",
    401: "a token is missing, or wrong",
    403: "the token permits reading only, or the request is cross-origin",
    404: "not found",
    408: "the body did not arrive in time",
    409: "not possible in the current state",
    410: "examples that were sent under this key were forgotten",
    413: "the request exceeds a limit: send less at a time",
    421: "the server does not answer to this host",
    422: "valid JSON, but not a valid request, or the model would grow beyond a limit",
    429: "the server is busy: retry after Retry-After seconds",
    503: "not learned from, unless the message says otherwise: retry after Retry-After seconds with the same key",
}


def _json(schema: str, description: str) -> dict[str, Any]:
    return {
        "description": description,
        "content": {"application/json": {"schema": {"$ref": f"#/components/schemas/{schema}"}}},
    }


def _errors(*statuses: int) -> dict[str, Any]:
    return {str(status): _json("Error", _REASONS[status]) for status in sorted({401, 403, 421, *statuses})}


def document(field: str) -> dict[str, Any]:
    """Return the OpenAPI document of a server whose examples are in `field`: features, text, row or vector."""
    example, only = {field: FIELDS[field]}, {"additionalProperties": False}
    wish = {"type": "boolean", "default": False}
    schemas = SCHEMAS | {
        "Example": object_of(example, cite=wish, label=LABEL) | only,
        "LabelledExample": object_of(example | {"label": LABEL}, until_right=wish, pin=wish) | only,
    }

    def body(schema: str, lines: bool) -> dict[str, Any]:
        content: dict[str, Any] = {"application/json": {"schema": {"$ref": f"#/components/schemas/{schema}"}}}
        if lines:
            content["application/x-ndjson"] = {"schema": {"type": "string", "description": "one JSON object per line"}}
        return {"required": True, "content": content}

    reading = _errors(400, 408, 413, 422, 429)
    predicted = _json("Prediction", "the prediction, or one per line, each with the commit that made it")
    predicted["content"]["application/x-ndjson"] = {"schema": {"type": "string"}}
    key = {
        "name": "Idempotency-Key",
        "in": "header",
        "schema": {"type": "string", "minLength": 1, "maxLength": 200, "pattern": "^[A-Za-z0-9._:-]+$"},
        "description": "a retry with the same key within a day is not learned from again and gets the same reply",
    }
    paging = [
        {"name": "before", "in": "query", "schema": {"type": "integer", "minimum": 1, "maximum": 2**62}},
        {"name": "limit", "in": "query", "schema": {"type": "integer", "minimum": 1, "maximum": 500, "default": 50}},
    ]
    binary = {
        "description": "a model file",
        "content": {"application/octet-stream": {"schema": {"type": "string", "format": "binary"}}},
    }
    text = {
        "description": "metrics in the Prometheus text format",
        "content": {"text/plain": {"schema": {"type": "string"}}},
    }

    def operation(name: str, summary: str, reply: dict[str, Any], errors: dict[str, Any], **more: Any) -> dict[str, Any]:
        return {"operationId": name, "summary": summary, "responses": {"200": reply, **errors}, **more}

    def named(name: str) -> dict[str, Any]:
        schema = object_of({name: {"type": "integer", "minimum": 1, "maximum": 2**53}})
        return {"required": True, "content": {"application/json": {"schema": schema}}}

    listed = {"type": "array", "items": {"type": "integer", "minimum": 1, "maximum": 2**53}, "minItems": 1}
    forgetting = {"required": True, "content": {"application/json": {"schema": object_of({"examples": listed})}}}
    reads: list[Any] = [{"read": []}]
    writes: list[Any] = [{"learn": []}]
    anyone: list[Any] = []
    paths: dict[str, Any] = {
        "/predict": {
            "post": operation(
                "predict",
                "Predict one example, or one per line.",
                predicted,
                reading,
                requestBody=body("Example", True),
                security=reads,
            )
        },
        "/learn": {
            "post": operation(
                *("learn", "Learn from one labelled example, or one per line; replies once it is on the disk."),
                *(_json("Learned", "learned from and stored on the disk"), _errors(400, 408, 410, 413, 422, 429, 503)),
                requestBody=body("LabelledExample", True),
                parameters=[key],
                security=writes,
            )
        },
        "/explain": {
            "post": operation(
                "explain",
                "Explain a prediction: the terms whose sum is the score, by default the lead of the predicted class.",
                _json("Explanation", "the explanation"),
                reading,
                requestBody=body("Example", False),
                parameters=[{"name": name, "in": "query", "schema": {"type": "string"}} for name in ("class", "against")],
                security=reads,
            )
        },
        "/undo": {
            "post": operation(
                "undo",
                "Undo a mistake.",
                _json("Undone", "the mistake was undone"),
                _errors(400, 404, 408, 409, 413, 422, 429, 503),
                requestBody=named("mistake"),
                security=writes,
            )
        },
        "/unpin": {
            "post": operation(
                "unpin",
                "Take an example out of the regression set.",
                _json("Unpinned", "the example is no longer pinned"),
                _errors(400, 404, 408, 413, 422, 429, 503),
                requestBody=named("example"),
                security=writes,
            )
        },
        "/forget": {
            "post": operation(
                "forget",
                "Forget examples by their numbers, as if they had never been sent; replies once nothing of them is left.",
                _json("Forgotten", "the receipt"),
                _errors(400, 404, 408, 409, 413, 422, 429, 503),
                requestBody=forgetting,
                security=writes,
            )
        },
        "/forgotten": {
            "get": operation(
                *("forgotten", "The receipts of all that was forgotten."),
                *(_json("Receipts", "the receipts"), _errors()),
                security=reads,
            )
        },
        "/regressions": {
            "get": operation(
                "regressions",
                "The pinned examples, and those of them that are predicted wrongly now: since when, and because of what.",
                _json("Regressions", "the regression set"),
                _errors(),
                security=reads,
            )
        },
        "/ledger": {
            "get": operation(
                "ledger",
                "List the mistakes, newest first; a page may be shorter than `limit`, and `next` continues it.",
                _json("Ledger", "a page of mistakes"),
                _errors(422),
                parameters=paging,
                security=reads,
            )
        },
        "/stats": {
            "get": operation(
                "stats",
                "Statistics: what was learned, and the progressive validation error.",
                _json("Stats", "the statistics"),
                _errors(),
                security=reads,
            )
        },
        "/model": {"get": operation("model", "Download the model as a file.", binary, _errors(409, 429), security=reads)},
        "/metrics": {"get": operation("metrics", "Metrics for Prometheus.", text, _errors(), security=reads)},
        "/healthz": {
            "get": operation(
                "healthz", "Whether the process is alive.", _json("Health", "alive"), _errors(), security=anyone
            )
        },
        "/readyz": {
            "get": operation(
                "readyz",
                "Whether the server can learn.",
                _json("Health", "the store and both threads are well"),
                _errors(503),
                security=anyone,
            )
        },
    }
    bearer = {"type": "http", "scheme": "bearer"}
    return {
        "openapi": "3.1.0",
        "info": {"title": "separatrix: the feedback server", "version": __version__},
        "paths": paths,
        "components": {"schemas": schemas, "securitySchemes": {"read": bearer, "learn": bearer}},
    }
