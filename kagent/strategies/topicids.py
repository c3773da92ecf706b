"""Topic ids (KIP-516) as Java sees them: two signed halves, in a hash order and in a sort order."""

from __future__ import annotations

import base64
import hashlib

import numpy as np
import numpy.typing as npt

from kagent.strategies.javahash import Hashes, uuid_hash
from kagent.strategies.scenario import Scenario

Ints = npt.NDArray[np.int64]

MADE_UP = "the ids of {} topics are not known and were made from their names: ties may fall out otherwise"


def halves(scenario: Scenario, topics: Ints) -> list[tuple[int, int]]:
    """(most, least) significant half of each topic's id, signed; made from the name where the id is not known."""
    names = [scenario.layout.topics[code] for code in topics.tolist()]
    return [_halves(scenario.topic_ids.get(name), name) for name in names]


def hashes(scenario: Scenario, topics: Ints) -> Hashes:
    """``Uuid.hashCode`` of each topic's id."""
    return np.array([uuid_hash(most, least) for most, least in halves(scenario, topics)], np.uint32)


def notes(scenario: Scenario) -> tuple[str, ...]:
    """A note when ids had to be made up."""
    layout = scenario.layout
    unknown = sum(layout.topics[t] not in scenario.topic_ids for t in layout.considered_topics.tolist())
    return (MADE_UP.format(unknown),) if unknown else ()


def _halves(topic_id: str | None, name: str) -> tuple[int, int]:
    if topic_id is None:
        raw = hashlib.sha256(name.encode("utf-8", "surrogatepass")).digest()[:16]
    else:
        raw = base64.urlsafe_b64decode(topic_id + "==")
    return int.from_bytes(raw[:8], "big", signed=True), int.from_bytes(raw[8:], "big", signed=True)
