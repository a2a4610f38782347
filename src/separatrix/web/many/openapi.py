"""The OpenAPI document of a server of many models: that of one model under `/models/{name}`, and the models themselves."""

from __future__ import annotations

from typing import Any

from separatrix.web.many.names import MOST_LETTERS
from separatrix.web.many.opening import SETTINGS

_COUNT = {"type": ["integer", "null"], "minimum": 0}
_NAME = {
    "name": "name",
    "in": "path",
    "required": True,
    "schema": {"type": "string", "pattern": f"^[a-z0-9][a-z0-9_-]{{0,{MOST_LETTERS - 1}}}$"},
}
_TYPES = {"learner": "string", "rule": "string", "C": "number", "text": "boolean", "bits": "integer"}
_TYPES |= {"vectors": "boolean", "cosine": "boolean"}
assert _TYPES.keys() == SETTINGS.keys()


def _object(properties: dict[str, Any], required: bool = True) -> dict[str, Any]:
    return {"type": "object", "properties": properties, **({"required": list(properties)} if required else {})}


_SETTINGS = _object({name: {"type": kind} for name, kind in _TYPES.items()}, required=False)
_SUMMARY = _object(
    {
        "name": {"type": "string"},
        "open": {"type": "boolean"},
        **dict.fromkeys(("examples", "errors", "mistakes", "commits", "features", "classes"), _COUNT),
        "waiting": _COUNT,
        "used": {"type": ["number", "null"]},
        "problem": {"type": ["string", "null"]},
    }
)
_SCHEMAS = {
    "ModelSummary": _SUMMARY,
    "Models": _object(
        {
            "models": {"type": "array", "items": {"$ref": "#/components/schemas/ModelSummary"}},
            "next": {"type": ["string", "null"]},
            **dict.fromkeys(("total", "open", "most_open"), _COUNT),
        }
    ),
    "CreatedModel": _object({"name": {"type": "string"}, "created": {"type": "boolean"}, "settings": _SETTINGS}),
    "DeletedModel": _object({"deleted": {"type": "string"}, "examples": _COUNT}),
}


def many_document(one: dict[str, Any]) -> dict[str, Any]:
    """Return the document of the server, given that of one model."""
    errors: dict[str, Any] = {
        status: reply
        for methods in one["paths"].values()
        for operation in methods.values()
        for status, reply in operation["responses"].items()
        if int(status) >= 400
    }

    def operation(name: str, summary: str, schema: str, token: str, *statuses: int, **more: Any) -> dict[str, Any]:
        reply = {"application/json": {"schema": {"$ref": f"#/components/schemas/{schema}"}}}
        responses = {"200": {"description": schema, "content": reply}}
        responses |= {str(status): errors[str(status)] for status in (401, 403, 421, *statuses)}
        return {"operationId": name, "summary": summary, "responses": responses, "security": [{token: []}], **more}

    after = {"name": "after", "in": "query", "schema": {"type": "string"}}
    settings = {"required": False, "content": {"application/json": {"schema": _SETTINGS}}}
    create = operation("create", "Create a model.", "CreatedModel", "learn", 400, 409, 413, 422, 503, requestBody=settings)
    create["responses"]["201"] = create["responses"]["200"]
    paths: dict[str, Any] = {
        "/models": {"get": operation("models", "List the models.", "Models", "read", parameters=[after])},
        "/models/{name}": {
            "parameters": [_NAME],
            "get": operation("summary", "The counts of a model.", "ModelSummary", "read", 404, 422),
            "put": create,
            "delete": operation("delete", "Delete a model.", "DeletedModel", "learn", 404, 409, 422),
        },
    }
    for path, methods in one["paths"].items():
        under = {method: _of_a_model(described, errors) for method, described in methods.items()}
        paths[f"/models/{{name}}{path}"] = {"parameters": [_NAME], **under}
    for path in ("/metrics", "/healthz", "/readyz"):
        paths[path] = {"get": one["paths"][path]["get"] | {"operationId": f"server_{path[1:]}"}}
    components = one["components"] | {"schemas": one["components"]["schemas"] | _SCHEMAS}
    return one | {"paths": paths, "components": components}


def _of_a_model(operation: dict[str, Any], errors: dict[str, Any]) -> dict[str, Any]:
    """Return an operation with the replies of a model that is missing, is being deleted or cannot be opened."""
    more = {str(status): errors[str(status)] for status in (404, 409, 422, 503)}
    return operation | {"responses": more | operation["responses"]}
