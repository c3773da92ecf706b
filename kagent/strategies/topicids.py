"""Topic ids (KIP-516) as Java sees them: two signed halves, in a hash order and in a sort order."""

from __future__ import annotations

import base64
import hashlib
from itertools import compress

import numpy as np
import numpy.typing as npt

from kagent.strategies.javahash import Hashes
from kagent.strategies.scenario import Scenario
from kagent.text import counted

Ints = npt.NDArray[np.int64]

# https://cwiki.apache.org/confluence/display/KAFKA/KIP-516%3A+Topic+Identifiers
MADE_UP = "the coordinator may break ties in another way: kagent does not know the ids of {}"


def halves(scenario: Scenario, topics: Ints) -> list[tuple[int, int]]:
    """(most, least) significant half of each topic's id, signed; made from the name where the id is not known."""
    return [(most, least) for most, least in _ids(scenario, topics).view(">i8").tolist()]


def hashes(scenario: Scenario, topics: Ints) -> Hashes:
    """``Uuid.hashCode`` of each topic's id."""
    words = _ids(scenario, topics).view(">u4").astype(np.uint32)
    mixed: Hashes = np.bitwise_xor.reduce(words, axis=1, dtype=np.uint32)
    return mixed


def notes(scenario: Scenario) -> tuple[str, ...]:
    """A note when ids had to be made up."""
    layout = scenario.layout
    unknown = len({*compress(layout.topics, layout.considered)} - scenario.topic_ids.keys())
    return (MADE_UP.format(counted(unknown, "topic")),) if unknown else ()


def _ids(scenario: Scenario, topics: Ints) -> npt.NDArray[np.uint8]:
    """The bytes of each topic's id. Shape (n, 16)."""
    names, known = scenario.layout.topics, scenario.topic_ids
    texts = [known.get(names[code]) or _made_up(names[code]) for code in topics.tolist()]
    # 22 characters are 132 bits: two more of them make whole bytes of each, of which 16 count.
    raw = np.frombuffer(base64.urlsafe_b64decode("AA".join([*texts, ""])), np.uint8)
    return np.ascontiguousarray(raw.reshape(-1, 18)[:, :16])


def _made_up(name: str) -> str:
    # Any fixed id will do: the same scenario must give the same answer each time.
    raw = hashlib.sha256(name.encode("utf-8", "surrogatepass")).digest()[:16]
    return base64.urlsafe_b64encode(raw).decode()[:22]
