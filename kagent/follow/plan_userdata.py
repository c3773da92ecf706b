"""What members and leader exchange in the assignor's user data: a marked, versioned blob of JSON with limits.

A member says who it is, what it was given last and which plan it follows; the leader sends back which plan that is.
Bytes of others, of another version, or beyond the limits say nothing: the built-in assignor then decides.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Annotated, Any, TypeVar

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from kagent.follow.decision_types import Followed, Held, once
from kagent.follow.rejoin_budget import REMEMBERED

MARK = b"kagent-follow\x01"
"""The last byte is the version."""
LARGEST = 256 * 1024
"""A quarter of what a record of ``__consumer_offsets`` may be by default (``message.max.bytes``): the coordinator of a classic group writes
all members' blobs into one."""
Name = Annotated[str, Field(max_length=4096)]
Digest = Annotated[str, Field(pattern=r"^[0-9a-f]{16}$")]
Number = Annotated[int, Field(ge=0, lt=2**31)]
Asked = Annotated[list[Annotated[int, Field(ge=0, lt=2**53)]], Field(max_length=REMEMBERED)]


class _Blob(BaseModel):
    # Fields may come without a new version: members of one group are updated one after another.
    model_config = ConfigDict(frozen=True, strict=True, extra="ignore")

    generation: Number | None = None
    plan: Digest | None = None
    roster: Digest | None = None
    asked: Asked = []
    held: dict[Name, list[Number]] | None = None

    @property
    def pairs(self) -> Held | None:
        """``held`` as pairs."""
        return None if self.held is None else once((t, p) for t, ps in self.held.items() for p in ps)

    @property
    def followed(self) -> Followed | None:
        """The plan that stands, if any."""
        return Followed(self.plan, self.roster) if self.plan and self.roster else None


Kind = TypeVar("Kind", bound=_Blob)


class Joining(_Blob):
    """What a member sends when it joins. ``held``: what it was given last or, under the cooperative protocol, what the plan gives
    it, topic → partitions; None where there are too many to tell."""

    name: Name | None = None


class Given(_Blob):
    """What the leader sends with an assignment. ``generation``: a count of kagent's own, for clients whose assignor does not receive
    the real one; ``held``: what the plan gives the member (cooperative: some of it may still be another's)."""


def joining(
    name: str | None,
    held: Iterable[tuple[str, int]] | None,
    generation: int | None,
    followed: Followed | None,
    asked: Iterable[int],
) -> bytes:
    """A member's blob; without what it holds if that is too long, and empty if even that cannot be encoded."""
    known: dict[str, Any] = _common(generation, followed, asked) | {"name": name}
    whole = _written(Joining, known | {"held": _by_topic(held)})
    return whole or _written(Joining, known | {"held": None})


def given(
    generation: int | None,
    followed: Followed | None,
    asked: Iterable[int],
    target: Iterable[tuple[str, int]] | None = None,
) -> bytes:
    """The leader's blob for a member. ``target``: what the plan gives it, where it cannot have all of it at once."""
    return _written(Given, _common(generation, followed, asked) | {"held": _by_topic(target)})


def _by_topic(pairs: Iterable[tuple[str, int]] | None) -> dict[str, list[int]] | None:
    if pairs is None:
        return None
    topics: dict[str, list[int]] = {}
    for topic, number in pairs:
        topics.setdefault(topic, []).append(number)
    return topics


def read_joining(data: bytes | None) -> Joining | None:
    """What a member reported; None for anything that is not a member's blob."""
    return _read(Joining, data)


def read_given(data: bytes | None) -> Given | None:
    """What the leader sent; None for anything that is not a leader's blob."""
    return _read(Given, data)


def _common(generation: int | None, followed: Followed | None, asked: Iterable[int]) -> dict[str, Any]:
    plan, roster = (followed.plan, followed.roster) if followed else (None, None)
    return {"generation": generation, "plan": plan, "roster": roster, "asked": list(asked)}


def _written(kind: type[_Blob], fields: dict[str, Any]) -> bytes:
    try:
        data = MARK + kind.model_validate(fields).model_dump_json(exclude_none=True).encode()
    except ValueError:  # too long, or a name that is no text
        return b""
    return data if len(data) <= LARGEST else b""


def _read(kind: type[Kind], data: bytes | None) -> Kind | None:
    if not data or len(data) > LARGEST or not data.startswith(MARK):
        return None
    try:
        return kind.model_validate_json(data[len(MARK) :])
    except ValidationError:
        return None
