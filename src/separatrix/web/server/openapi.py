"""What the server promises: its OpenAPI document, written by hand because requests are read by hand, for speed."""

from __future__ import annotations

from typing import Any

from separatrix import __version__
from separatrix.web.server.request_reader import LARGEST, MOST_LETTERS

_LABEL = {"oneOf": [{"type": "string", "minLength": 1, "maxLength": MOST_LETTERS}, {"type": "integer"}]}
_KNOWN_LABEL = {"type": ["string", "integer", "number", "boolean", "null"]}
_VALUE = {
    "oneOf": [
        {"type": "number", "minimum": -LARGEST, "maximum": LARGEST},
        {"type": "boolean"},
        {"type": "string", "maxLength": MOST_LETTERS // 2},
    ]
}
_FIELDS: dict[str, dict[str, Any]] = {
    "features": {
        "type": "object",
        "additionalProperties": _VALUE,
        "propertyNames": {"maxLength": MOST_LETTERS // 4},
        "example": {"free": 1, "money": 2, "from": "bank"},
    },
    "text": {"type": "string", "example": "free entry: call now"},
    "row": {"type": "object", "example": {"age": 37, "job": "cook"}},
}
_COUNT = {"type": "integer", "minimum": 0}
_NUMBER_OR_NULL = {"type": ["number", "null"]}


def _object(required: dict[str, Any], **optional: Any) -> dict[str, Any]:
    return {"type": "object", "properties": required | optional, "required": list(required)}


_SCORE = _object({"class": _KNOWN_LABEL, "score": {"type": "number"}})
_SCHEMAS: dict[str, Any] = {
    "Error": _object({"error": {"type": "string"}}),
    "Prediction": _object({"prediction": _KNOWN_LABEL, "scores": {"type": "array", "items": _SCORE}, "commit": _COUNT}),
    "Learned": _object({"learned": _COUNT, "errors": _COUNT, "mistakes": _COUNT, "examples": _COUNT}),
    "Undone": _object({"undone": _COUNT, "how": {"type": "string", "enum": ["subtracted", "replayed"]}}),
    "Explanation": _object(
        {
            "prediction": _KNOWN_LABEL,
            "score": {"type": "number"},
            "scores": {"type": "array", "items": _SCORE},
            "terms": {
                "type": "array",
                "items": _object(
                    {
                        "name": {"type": "string"},
                        "value": {"type": "number"},
                        "weight": {"type": "number"},
                        "product": {"type": "number"},
                    }
                ),
            },
            "columns": {
                "type": ["array", "null"],
                "items": _object({"column": {"type": "string"}, "value": {}, "product": {"type": "number"}}),
            },
            "total": {"type": "number"},
            "commit": _COUNT,
        }
    ),
    "Mistake": _object(
        {
            "number": _COUNT,
            "time": {"type": "number"},
            "example": _COUNT,
            "raised": _KNOWN_LABEL,
            "lowered": _KNOWN_LABEL,
            "correction": {"type": "number"},
            "undone": {"type": "boolean"},
        },
        features={"type": "object"},
        text={"type": "string"},
        row={"type": "object"},
    ),
    "Ledger": _object(
        {
            "mistakes": {"type": "array", "items": {"$ref": "#/components/schemas/Mistake"}},
            "total": _COUNT,
            "next": {"type": ["integer", "null"]},
        }
    ),
    "Stats": _object(
        {
            "examples": _COUNT,
            "errors": _COUNT,
            "mistakes": _COUNT,
            "undone": _COUNT,
            "error": _NUMBER_OR_NULL,
            "windows": {
                "type": "array",
                "items": _object({"from": _COUNT, "to": _COUNT, "errors": _COUNT, "error": {"type": "number"}}),
            },
            "classes": {
                "type": "array",
                "items": _object({"class": _KNOWN_LABEL, "examples": _COUNT, "errors": _COUNT, "error": _NUMBER_OR_NULL}),
            },
            "drift": _object(
                {
                    "drifting": {"type": "boolean"},
                    "deviations": _NUMBER_OR_NULL,
                    "recent": _NUMBER_OR_NULL,
                    "before": _NUMBER_OR_NULL,
                }
            ),
            "features": _COUNT,
            "commits": _COUNT,
            "waiting": _COUNT,
            "input": {"type": "string", "enum": list(_FIELDS)},
            "learner": {"type": "string"},
        }
    ),
    "Health": _object({"status": {"type": "string"}}),
}

_REASONS = {
    400: "not JSON, or no valid request",
    401: "a token is needed",
    403: "the token may read, not learn; or a page of another site asked",
    404: "there is no such thing",
    408: "the body came too slowly",
    409: "not in this state",
    413: "more than is taken",
    421: "the server does not answer to this host",
    422: "JSON, but not what is asked for",
    429: "too much waits: try again after Retry-After seconds",
    503: "nothing can be written at the moment: try again after Retry-After seconds",
}


def _json(schema: str, description: str) -> dict[str, Any]:
    return {
        "description": description,
        "content": {"application/json": {"schema": {"$ref": f"#/components/schemas/{schema}"}}},
    }


def _refusals(*statuses: int) -> dict[str, Any]:
    return {str(status): _json("Error", _REASONS[status]) for status in sorted({401, 403, 421, *statuses})}


def document(field: str) -> dict[str, Any]:
    """Return the OpenAPI document of a server whose examples have `field`: features, text or row."""
    example = {field: _FIELDS[field]}
    schemas = _SCHEMAS | {"Example": _object(example), "LabelledExample": _object(example | {"label": _LABEL})}

    def body(schema: str, lines: bool) -> dict[str, Any]:
        content: dict[str, Any] = {"application/json": {"schema": {"$ref": f"#/components/schemas/{schema}"}}}
        if lines:
            content["application/x-ndjson"] = {"schema": {"type": "string", "description": "a JSON object a line"}}
        return {"required": True, "content": content}

    reading = _refusals(400, 408, 413, 422, 429)
    predicted = _json("Prediction", "the prediction; of lines, one each")
    predicted["content"]["application/x-ndjson"] = {"schema": {"type": "string"}}
    key = {
        "name": "Idempotency-Key",
        "in": "header",
        "schema": {"type": "string", "minLength": 1, "maxLength": 200, "pattern": "^[A-Za-z0-9._:-]+$"},
        "description": "a request sent again under its key counts once and gets the same answer, for a day",
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
        "description": "the numbers, as Prometheus reads them",
        "content": {"text/plain": {"schema": {"type": "string"}}},
    }

    def op(name: str, what: str, good: dict[str, Any], bad: dict[str, Any], **more: Any) -> dict[str, Any]:
        return {"operationId": name, "summary": what, "responses": {"200": good, **bad}, **more}

    undo = {
        "required": True,
        "content": {
            "application/json": {"schema": _object({"mistake": {"type": "integer", "minimum": 1, "maximum": 2**53}})}
        },
    }
    reads: list[Any] = [{"read": []}]
    writes: list[Any] = [{"learn": []}]
    anyone: list[Any] = []
    paths: dict[str, Any] = {
        "/predict": {
            "post": op(
                "predict",
                "Predict one example, or one a line.",
                predicted,
                reading,
                requestBody=body("Example", True),
                security=reads,
            )
        },
        "/learn": {
            "post": op(
                *("learn", "Learn from one labelled example, or one a line; answered once it is on the disk."),
                *(_json("Learned", "learned from, and on the disk"), _refusals(400, 408, 413, 422, 429, 503)),
                requestBody=body("LabelledExample", True),
                parameters=[key],
                security=writes,
            )
        },
        "/explain": {
            "post": op(
                "explain",
                "The terms that a score is the sum of.",
                _json("Explanation", "why"),
                reading,
                requestBody=body("Example", False),
                security=reads,
            )
        },
        "/undo": {
            "post": op(
                "undo",
                "Take a mistake back.",
                _json("Undone", "taken back"),
                _refusals(400, 404, 408, 409, 413, 422, 429, 503),
                requestBody=undo,
                security=writes,
            )
        },
        "/ledger": {
            "get": op(
                "ledger",
                "The mistakes, the newest first.",
                _json("Ledger", "a page of mistakes"),
                _refusals(422),
                parameters=paging,
                security=reads,
            )
        },
        "/stats": {
            "get": op(
                "stats",
                "What was learned, and the progressive error.",
                _json("Stats", "the numbers"),
                _refusals(),
                security=reads,
            )
        },
        "/model": {"get": op("model", "The model as a file.", binary, _refusals(409, 429), security=reads)},
        "/metrics": {"get": op("metrics", "The numbers for Prometheus.", text, _refusals(), security=reads)},
        "/healthz": {"get": op("healthz", "Is the process alive?", _json("Health", "yes"), _refusals(), security=anyone)},
        "/readyz": {"get": op("readyz", "Can it learn?", _json("Health", "yes"), _refusals(503), security=anyone)},
    }
    bearer = {"type": "http", "scheme": "bearer"}
    return {
        "openapi": "3.1.0",
        "info": {"title": "separatrix: the feedback server", "version": __version__},
        "paths": paths,
        "components": {"schemas": schemas, "securitySchemes": {"read": bearer, "learn": bearer}},
    }
