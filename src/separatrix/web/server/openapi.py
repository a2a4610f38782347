"""The OpenAPI document of the server, written by hand because requests are parsed by hand, for speed."""

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
    "vector": {
        "oneOf": [
            {"type": "array", "items": {"type": "number"}, "minItems": 1},
            {"type": "string", "description": "base64 of little-endian float32 numbers"},
        ],
        "example": [0.25, -0.5, 0.125],
    },
}
_COUNT = {"type": "integer", "minimum": 0}
_NUMBER_OR_NULL = {"type": ["number", "null"]}
_COUNT_OR_NULL = {"type": ["integer", "null"]}


def _object(required: dict[str, Any], **optional: Any) -> dict[str, Any]:
    return {"type": "object", "properties": required | optional, "required": list(required)}


_SCORE = _object({"class": _KNOWN_LABEL, "score": {"type": "number"}})
_SOURCE: dict[str, Any] = {
    "features": {"type": "object"},
    "text": {"type": "string"},
    "row": {"type": "object"},
    "vector": {"type": "string"},
}
"""An example as the store has it."""
_CITATION = _object(
    {
        "number": _COUNT,
        "example": _COUNT,
        "time": {"type": "number"},
        "raised": _KNOWN_LABEL,
        "lowered": _KNOWN_LABEL,
        "adds": {"type": "number", "description": "what the correction adds to the lead"},
    },
    **_SOURCE,
)
_CAUSE = _object({}, examples={"type": "array", "items": _COUNT}, mistake=_COUNT_OR_NULL, undone=_COUNT)
_SCHEMAS: dict[str, Any] = {
    "Error": _object({"error": {"type": "string"}}),
    "Prediction": _object(
        {
            "prediction": _KNOWN_LABEL,
            "margin": _NUMBER_OR_NULL,
            "scores": {"type": "array", "items": _SCORE},
            "commit": _COUNT,
        },
        ask={"type": "boolean", "description": "with --ask: whether a label is worth asking for"},
        ask_probability={"type": "number"},
        citations=_object(
            {
                "lead": _NUMBER_OR_NULL,
                "against": _KNOWN_LABEL,
                "corrections": {"type": "array", "items": _CITATION},
                "considered": _COUNT,
                "of": _COUNT,
                "sum": {"type": "number"},
            }
        ),
    ),
    "Learned": _object(
        {"learned": _COUNT, "errors": _COUNT, "mistakes": _COUNT, "examples": _COUNT},
        right={"type": "boolean", "description": "whether the examples with until_right were brought to the right side"},
        broke={"type": "array", "items": _COUNT, "description": "the pinned examples that this request broke"},
    ),
    "Regressions": _object(
        {
            "pinned": {"type": "array", "items": _COUNT},
            "regressions": {
                "type": "array",
                "items": _object(
                    {
                        "example": _COUNT,
                        "label": _KNOWN_LABEL,
                        "prediction": _KNOWN_LABEL,
                        "commit": _COUNT,
                        "since": {"type": "number"},
                        "by": _object(
                            {}, examples={"type": "array", "items": _COUNT}, mistake=_COUNT_OR_NULL, undone=_COUNT
                        ),
                    },
                    **_SOURCE,
                ),
            },
        }
    ),
    "Unpinned": _object({"unpinned": _COUNT}),
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
            "of": _KNOWN_LABEL,
            "against": _KNOWN_LABEL,
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
        **_SOURCE,
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
            "in_runs": {"type": "boolean"},
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
    400: "invalid JSON, or an invalid request",
    401: "a token is missing, or wrong",
    403: "the token permits reading only, or the request is cross-origin",
    404: "not found",
    408: "the body did not arrive in time",
    409: "not possible in the current state",
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
    example = {field: _FIELDS[field]}
    wish = {"type": "boolean", "default": False}
    schemas = _SCHEMAS | {
        "Example": _object(example, cite=wish),
        "LabelledExample": _object(example | {"label": _LABEL}, until_right=wish, pin=wish),
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
        schema = _object({name: {"type": "integer", "minimum": 1, "maximum": 2**53}})
        return {"required": True, "content": {"application/json": {"schema": schema}}}

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
                *(_json("Learned", "learned from and stored on the disk"), _errors(400, 408, 413, 422, 429, 503)),
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
