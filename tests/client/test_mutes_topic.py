"""A mute that its topic has lost holds no more."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from types import SimpleNamespace
from typing import Any

import orjson
import pytest

from kagent.active_mutes import Mutes
from kagent.client import mutes_topic
from kagent.kafka.topic_reader import ReadMark
from kagent.settings import Cluster

UNTIL = 2_000_000_000_000


def record(key: str) -> Any:
    value = orjson.dumps({"until": UNTIL, "why": "deploy", "by": "me"})
    return SimpleNamespace(key=key.encode(), value=value)


async def test_what_is_missing_when_the_topic_was_read_again_is_lifted(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    said = [
        ReadMark.BEGIN,
        record("main/a"),
        record("main/b"),
        ReadMark.CAUGHT_UP,
        record("main/c"),
        ReadMark.BEGIN,
        record("main/b"),
        ReadMark.CAUGHT_UP,
    ]

    async def read(*_: Any, **__: Any) -> AsyncGenerator[Any, None]:
        for one in said:
            yield one

    monkeypatch.setattr(mutes_topic, "read_forever", read)
    mutes = Mutes()

    await mutes_topic.follow_mutes(Cluster(bootstrap="127.0.0.1:1"), "mutes", mutes.take)

    assert set(mutes.records) == {"main/b"}
