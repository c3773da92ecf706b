"""The group as it stands, derived from the records that are remembered of it.

A classic group is one record; the types of KIP-848, KIP-932 and KIP-1071 are put together in :mod:`kagent.groups.modern`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from kagent.groups.client_library import library_of, user_data_of
from kagent.groups.group import GroupView, MemberView
from kagent.groups.known_records import KnownRecords, Slot
from kagent.groups.modern import Live, joined, modern

FAMILIES = ("Consumer", "Share", "Streams")


def view(state: KnownRecords | None, topic_names: Mapping[str, str], group: str = "") -> GroupView:
    """The group as it stands. ``topic_names``: topic id (printed form) → name.

    A group without a record of membership is ``simple``: it only commits.
    """
    if state is None or not state.live:
        return _simple(state, group)
    live: Live = {}
    for (kind, name), slot in state.slots.items():
        if slot.value is not None:
            live.setdefault(kind, {})[name] = slot
    family = _family(live)
    if family is None:
        return _classic(state, live["classic"][""])
    return modern(state, live, family, topic_names)


def _simple(state: KnownRecords | None, group: str) -> GroupView:
    last = max((s.time for s in state.slots.values()), default=0) if state else 0
    return GroupView(
        group=state.group if state else group,
        type="simple",
        state="Empty",
        protocol_type=None,
        protocol=None,
        generation=None,
        target_epoch=None,
        members=(),
        last_change=last,
        stale=bool(state and state.stale),
    )


def _family(live: Live) -> str | None:
    """``consumer``, ``share`` or ``streams`` by the newest record; None where a classic group's is newer than all."""
    # An upgraded or downgraded group leaves tombstones of its old type; the newest live record says what it is.
    newest = max((slot for slots in live.values() for slot in slots.values()), key=lambda slot: slot.offset)
    return next((family.lower() for family in FAMILIES if newest.record.startswith(family)), None)


def _classic(state: KnownRecords, slot: Slot) -> GroupView:
    value = slot.value or {}
    members = tuple(_member(member, value) for member in value["members"])
    # A GroupMetadata record without a protocol type is of a group that only commits.
    simple = not members and not value["protocolType"]
    return GroupView(
        group=state.group,
        type="simple" if simple else "classic",
        state="Stable" if members else "Empty",
        protocol_type=value["protocolType"] or None,
        protocol=value["protocol"],
        generation=value["generation"],
        target_epoch=None,
        members=members,
        last_change=slot.time,
        stale=state.stale,
    )


def _member(member: Mapping[str, Any], group: Mapping[str, Any]) -> MemberView:
    subscribed = member.get("subscription_decoded") or {}
    given = member.get("assignment_decoded") or {}
    timeout = member.get("rebalanceTimeout", -1)
    return MemberView(
        member_id=member["memberId"],
        instance_id=member.get("groupInstanceId"),
        client_id=member["clientId"],
        host=member["clientHost"],
        rack=subscribed.get("rackId") or None,
        subscriptions=tuple(subscribed.get("topics", ())),
        assigned=joined(_pairs(given.get("assignedPartitions", ()))),
        epoch=group["generation"],
        # Version 0 of the record has no rebalance timeout: clients used the session timeout then (KIP-62).
        rebalance_timeout_ms=timeout if timeout >= 0 else member["sessionTimeout"],
        library=library_of(group["protocol"], subscribed, given),
        user_data=user_data_of(group["protocol"], subscribed),
    )


def _pairs(listed: Iterable[Mapping[str, Any]]) -> Iterable[tuple[str, list[int]]]:
    return ((tp["topic"], tp["partitions"]) for tp in listed)
