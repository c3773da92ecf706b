"""The documents that describe the topic say what the models say, and what is sent is what they describe."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from kagent.client.client import parsed
from kagent.contract.recommendation import State, from_bytes, to_bytes
from kagent.contract.schema import asyncapi, schema

SHIPPED = Path(__file__).parents[2] / "docs" / "schema"


def test_the_shipped_documents_are_made_from_the_models() -> None:
    for name, made in (("recommendations.schema.json", schema()), ("asyncapi.json", asyncapi())):
        assert json.loads((SHIPPED / name).read_text()) == made, "run `make docs`"


def test_what_is_sent_fits_the_schema(rec: Any) -> None:
    state = State(cluster="main", version="1", time=1, status="watching")
    for message in (rec(), rec(status="resolved", resolution="drained"), state):
        jsonschema.validate(json.loads(to_bytes(message)), schema())


@pytest.mark.parametrize("wrong", [{"status": "ajar"}, {"group": 7}, {"basis": None}])
def test_what_does_not_fit_is_told(rec: Any, wrong: dict[str, Any]) -> None:
    sent = json.loads(to_bytes(rec()))

    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate(sent | wrong, schema())


def test_a_newer_schema_is_passed_with_what_is_known_and_said_once(
    rec: Any, caplog: pytest.LogCaptureFixture
) -> None:
    sent = json.dumps(json.loads(to_bytes(rec())) | {"schema": 9, "mood": "blue"}).encode()

    found = [parsed(b"main/orders", sent) for _ in range(3)]

    assert [(m.schema_version, m.cluster) for m in found if m] == [(9, "main")] * 3
    assert [r.message for r in caplog.records if "schema 9" in r.message] == [
        "messages have schema 9, this kagent knows 1: what it knows is passed on"
    ]


def test_a_label_of_the_users_makes_no_state_message_of_a_recommendation(rec: Any) -> None:
    sent = rec(labels={"type": "state"})

    assert from_bytes(to_bytes(sent)) == sent


@pytest.mark.parametrize("value", [b"", b"{}", b"[1", b'{"type":"state"}', b"\xff"])
def test_what_cannot_be_read_is_passed_over(value: bytes) -> None:
    assert parsed(b"main/g", value) is None


def test_every_reference_leads_somewhere() -> None:
    document = asyncapi()

    def references(node: Any) -> list[str]:
        if isinstance(node, list):
            return [r for child in node for r in references(child)]
        if not isinstance(node, dict):
            return []
        own = [node["$ref"]] if isinstance(node.get("$ref"), str) else []
        return own + [r for child in node.values() for r in references(child)]

    found = references(document)
    assert found
    for reference in found:
        node: Any = document
        for step in reference.removeprefix("#/").split("/"):
            node = node[step]


@pytest.mark.parametrize("key", [b"main", b"main/", b"main/other", b"other/orders", b"orders", b"", b"\xff"])
def test_a_message_under_the_key_of_another_is_not_there(rec: Any, key: bytes) -> None:
    assert parsed(key, to_bytes(rec())) is None
    assert parsed(b"main/orders", to_bytes(rec())) is not None
