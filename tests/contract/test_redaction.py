"""What is hidden is hidden in every word of a message, and everything else stays as it is."""

from __future__ import annotations

import json
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest

from kagent.contract.recommendation import Recommendation, Status, to_bytes
from kagent.contract.redaction import Redaction
from kagent.detect.state import MemberState
from kagent.recommend.render import compose, diagnose

Make = Callable[..., Any]
NOW = 1_700_000_000_000
LATE = {"end": 10_000_000, "rate": 100, "lag": 100_000}
FINE = {"end": 10_000_000, "rate": 100, "lag": 0}
STANDS = {**FINE, "lag": 50_000, "moved": 900}
GONE = {**FINE, "lag": 0, "age": 900}
FOUR = {"m0": {"t": [0, 1]}, "m1": {"t": [2, 3]}, "m2": {"t": [4, 5]}, "m3": {"t": [6, 7]}}
SALTED = Redaction.of(["host", "client_id"], "pepper")
HOT = {"end": 10_000_000, "rate": 300, "lag": 100_000}
CALM = {"end": 10_000_000, "rate": 50, "lag": 0}
CASES = {
    "rebalance": [HOT, HOT, *6 * [CALM]],
    "hot_partition": [HOT, *7 * [CALM]],
    "stalled": [STANDS, *7 * [FINE]],
    "stuck_member": [GONE, GONE, *6 * [FINE]],
    "idle_members": [*8 * [FINE]],
}
SPEEDS = {"rebalance": {"m0": 500, "m1": 500}, "hot_partition": {"m0": 250}}
"""What members can do, where the verdict rests on it."""


def message(group: Make, verdict: str, redaction: Redaction, client: str = "app") -> Recommendation:
    members = {**FOUR, "m8": {}, "m9": {}} if verdict == "idle_members" else FOUR
    made = group({"t": CASES[verdict]}, members, client=client, redaction=redaction)
    known = made.at_work(SPEEDS.get(verdict, {}), ["m0"], verdict)
    if verdict == "stuck_member":
        known = {
            name: MemberState(silent_s=1200.0, silent_seen=NOW - 5000) for name in made.roster().names[:1]
        }
    model, found = made.looked(
        generation_at=NOW - 30 * 86_400_000,
        members=known,
        standing=made.stood() if verdict == "stalled" else {},
    )
    return compose(diagnose(model, found[0]), "i", 1, Status.OPEN)


@pytest.mark.parametrize("verdict", CASES)
def test_a_hidden_message_differs_from_a_plain_one_in_names_alone(group: Make, verdict: str) -> None:
    plain, hidden = (message(group, verdict, r) for r in (Redaction(), SALTED))

    text = to_bytes(plain).decode()
    for m in ("m0", "m1", "m2", "m3", "m8", "m9"):
        text = text.replace(f"app-{m}/10.0.0.1", f"{SALTED.client_id(f'app-{m}')}/{SALTED.host('/10.0.0.1')}")
        text = text.replace(f'"client_id":"app-{m}"', f'"client_id":"{SALTED.client_id(f"app-{m}")}"')
        text = text.replace(f'"member_id":"id-{m}"', f'"member_id":"{SALTED.member_id(f"id-{m}")}"')
    text = text.replace('"host":"/10.0.0.1"', f'"host":"{SALTED.host("/10.0.0.1")}"')
    assert plain.verdict == verdict
    expected, told = json.loads(text), json.loads(to_bytes(hidden))
    if verdict == "rebalance":  # names break the planner's ties
        assert {m["to"] for m in told["moves"]} | set(told["assignment"]) <= {
            m["member"] for m in told["members"]
        }
        for one in (expected, told):
            del one["moves"], one["assignment"], one["actions"]
            one["members"] = sorted((m["member"], m["lag"], m["work_now"]) for m in one["members"])
    assert expected == told
    assert "10.0.0.1" not in to_bytes(hidden).decode()
    assert "app-" not in to_bytes(hidden).decode()
    assert len({m.member for m in hidden.members}) == len(plain.members)


def test_what_a_library_is_told_by_is_known_though_hidden(group: Make) -> None:
    made = [
        group({"t": CASES["rebalance"]}, FOUR, library=None, client="aiokafka-0.12", redaction=r).look()
        for r in (Redaction(), SALTED)
    ]

    assert [look.kind for look in made] == ["classic_python", "classic_python"]


def test_another_salt_gives_other_names_and_one_field_leaves_the_other() -> None:
    one, other = Redaction.of(["host"], "a"), Redaction.of(["host"], "b")
    member = SimpleNamespace(instance_id=None, client_id="app", host="/10.0.0.1", name="app/10.0.0.1")
    static = SimpleNamespace(instance_id="pod-0", client_id="app", host="/10.0.0.1", name="pod-0")

    assert one.host("/10.0.0.1") == one.host("10.0.0.1") != other.host("/10.0.0.1")
    assert one.name(member) == f"app/{one.host('10.0.0.1')}"
    assert one.name(static) == "pod-0"
    assert Redaction().name(member) == "app/10.0.0.1"


def test_an_incident_from_before_names_were_hidden_is_told_without_them(group: Make) -> None:
    plain = message(group, "rebalance", Redaction())

    told = SALTED.checked(plain)

    assert (told.id, told.status, told.verdict) == (plain.id, plain.status, plain.verdict)
    assert "10.0.0.1" not in to_bytes(told).decode()
    hidden = message(group, "rebalance", SALTED)
    assert SALTED.checked(hidden) is hidden
    assert Redaction().checked(plain) is plain
