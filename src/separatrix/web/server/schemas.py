"""The schemas of the server's requests and replies, as OpenAPI has them."""

from __future__ import annotations

from typing import Any

from separatrix.web.server.reading.request_reader import LARGEST, MOST_LETTERS

LABEL = {"oneOf": [{"type": "string", "minLength": 1, "maxLength": MOST_LETTERS}, {"type": "integer"}]}
_KNOWN_LABEL = {"type": ["string", "integer", "number", "boolean", "null"]}
_VALUE = {
    "oneOf": [
        {"type": "number", "minimum": -LARGEST, "maximum": LARGEST},
        {"type": "boolean"},
        {"type": "string", "maxLength": MOST_LETTERS // 2},
    ]
}
FIELDS: dict[str, dict[str, Any]] = {
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
_NUMBERS = {"type": "array", "items": _COUNT}
_COUNT_OR_NULL = {"type": ["integer", "null"]}


def object_of(required: dict[str, Any], **optional: Any) -> dict[str, Any]:
    """Return the schema of an object with these properties, of which the first are required."""
    return {"type": "object", "properties": required | optional, "required": list(required)}


_SCORE = object_of({"class": _KNOWN_LABEL, "score": {"type": "number"}})
_SOURCE: dict[str, Any] = {
    "features": {"type": "object"},
    "text": {"type": "string"},
    "row": {"type": "object"},
    "vector": {"type": "string"},
}
"""An example as the store has it."""
_CITATION = object_of(
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
_CAUSE = object_of({}, examples={"type": "array", "items": _COUNT}, mistake=_COUNT_OR_NULL, undone=_COUNT)
SCHEMAS: dict[str, Any] = {
    "Error": object_of({"error": {"type": "string"}}),
    "Prediction": object_of(
        {
            "prediction": _KNOWN_LABEL,
            "margin": _NUMBER_OR_NULL,
            "scores": {"type": "array", "items": _SCORE},
            "commit": _COUNT,
        },
        ask={"type": "boolean", "description": "with --ask: whether a label is worth asking for"},
        ask_probability={"type": "number"},
        citations=object_of(
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
    "Learned": object_of(
        {"learned": _COUNT, "errors": _COUNT, "mistakes": _COUNT, "examples": _COUNT},
        right={"type": "boolean", "description": "whether the examples with until_right were brought to the right side"},
        broke={"type": "array", "items": _COUNT, "description": "the pinned examples that this request broke"},
    ),
    "Regressions": object_of(
        {
            "pinned": {"type": "array", "items": _COUNT},
            "regressions": {
                "type": "array",
                "items": object_of(
                    {
                        "example": _COUNT,
                        "label": _KNOWN_LABEL,
                        "prediction": _KNOWN_LABEL,
                        "commit": _COUNT,
                        "since": {"type": "number"},
                        "by": object_of(
                            {}, examples={"type": "array", "items": _COUNT}, mistake=_COUNT_OR_NULL, undone=_COUNT
                        ),
                    },
                    **_SOURCE,
                ),
            },
        }
    ),
    "Unpinned": object_of({"unpinned": _COUNT}),
    "Forgotten": object_of(
        {
            "forgotten": {"type": "array", "items": _COUNT},
            "receipt": {"$ref": "#/components/schemas/Receipt"},
            "key": {"type": ["string", "null"], "description": "of the checksums; only the first answer has it"},
        }
    ),
    "Receipt": object_of(
        {
            "receipt": {"type": "string"},
            "format": _COUNT,
            **{name: {"type": "string"} for name in ("separatrix", "id", "time", "store", "logs", "check")},
            "removed": object_of({"examples": _NUMBERS, "checksums": {"type": "array", "items": {"type": "string"}}}),
            "before": object_of({"examples": _COUNT, "mistakes": _COUNT, "learned": {"type": "string"}}),
            "after": object_of({"examples": _COUNT, "mistakes": _COUNT, "commit": _COUNT, "learned": {"type": "string"}}),
            "replay": object_of({"from_commit": _COUNT, "snapshot": _COUNT, "presented": _COUNT}),
            "undos_dropped": _NUMBERS,
            "unpinned": _NUMBERS,
            "backups": {"type": "array", "items": {"type": "object"}},
            "keys": _COUNT,
        },
        deleted={"type": "array", "items": {"type": "string"}},
    ),
    "Receipts": object_of({"receipts": {"type": "array", "items": {"$ref": "#/components/schemas/Receipt"}}}),
    "Undone": object_of({"undone": _COUNT, "how": {"type": "string", "enum": ["subtracted", "replayed"]}}),
    "Explanation": object_of(
        {
            "prediction": _KNOWN_LABEL,
            "score": {"type": "number"},
            "scores": {"type": "array", "items": _SCORE},
            "terms": {
                "type": "array",
                "items": object_of(
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
                "items": object_of({"column": {"type": "string"}, "value": {}, "product": {"type": "number"}}),
            },
            "total": {"type": "number"},
            "of": _KNOWN_LABEL,
            "against": _KNOWN_LABEL,
            "commit": _COUNT,
        }
    ),
    "Mistake": object_of(
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
    "Ledger": object_of(
        {
            "mistakes": {"type": "array", "items": {"$ref": "#/components/schemas/Mistake"}},
            "total": _COUNT,
            "next": {"type": ["integer", "null"]},
        }
    ),
    "Stats": object_of(
        {
            "examples": _COUNT,
            "forgotten": _COUNT,
            "errors": _COUNT,
            "mistakes": _COUNT,
            "undone": _COUNT,
            "error": _NUMBER_OR_NULL,
            "windows": {
                "type": "array",
                "items": object_of({"from": _COUNT, "to": _COUNT, "errors": _COUNT, "error": {"type": "number"}}),
            },
            "classes": {
                "type": "array",
                "items": object_of({"class": _KNOWN_LABEL, "examples": _COUNT, "errors": _COUNT, "error": _NUMBER_OR_NULL}),
            },
            "drift": object_of(
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
            "input": {"type": "string", "enum": list(FIELDS)},
            "learner": {"type": "string"},
        }
    ),
    "Health": object_of({"status": {"type": "string"}}),
}
