"""The contract of the recommendations topic as JSON Schema and AsyncAPI, made from the models."""

from __future__ import annotations

from typing import Any

from pydantic.json_schema import models_json_schema

from kagent.contract.recommendation import SCHEMA, Recommendation, State

# The dialect that pydantic writes: https://docs.pydantic.dev/latest/concepts/json_schema/
DIALECT = "https://json-schema.org/draft/2020-12/schema"
MODELS = {"recommendation": Recommendation, "state": State}


def _definitions(template: str) -> dict[str, Any]:
    # As messages are written: in validation mode every field with a default would be optional for a reader, too.
    pairs = [(model, "serialization") for model in MODELS.values()]
    _, found = models_json_schema(pairs, by_alias=True, ref_template=template)  # type: ignore[arg-type]
    definitions: dict[str, Any] = found["$defs"]
    return definitions


def schema() -> dict[str, Any]:
    """JSON Schema (2020-12) of a message: a recommendation or a state."""
    choices = [{"$ref": f"#/$defs/{model.__name__}"} for model in MODELS.values()]
    return {
        "$schema": DIALECT,
        "title": "kagent-recommendations",
        "oneOf": choices,
        "$defs": _definitions("#/$defs/{model}"),
    }


def asyncapi() -> dict[str, Any]:
    """AsyncAPI 3.0 of the topic."""
    messages = {
        name: {
            "contentType": "application/json",
            "summary": " ".join((model.__doc__ or "").split()),
            "payload": {"$ref": f"#/components/schemas/{model.__name__}"},
        }
        for name, model in MODELS.items()
    }
    return {
        "asyncapi": "3.0.0",
        "info": {"title": "kagent recommendations", "version": str(SCHEMA)},
        "defaultContentType": "application/json",
        "channels": {
            "recommendations": {
                "address": "kagent-recommendations",
                "description": "Compacted. A tombstone under a key says that its incident is long resolved.",
                "messages": {name: {"$ref": f"#/components/messages/{name}"} for name in MODELS},
            }
        },
        "operations": {
            # As its reader sees it: in AsyncAPI 3 an operation is what the application itself does.
            # https://www.asyncapi.com/docs/reference/specification/v3.0.0#operationObject
            "receive": {"action": "receive", "channel": {"$ref": "#/channels/recommendations"}},
        },
        "components": {"messages": messages, "schemas": _definitions("#/components/schemas/{model}")},
    }
