"""A group's past, replayed: what was sick is found, what was well stays silent, and a hole is no finding."""

from __future__ import annotations

from typing import Any

import orjson
import pytest

from kagent.history.calibrate import Tried, grid, propose
from kagent.history.past_evaluation import replay
from kagent.offsets import decode
from kagent.policy import Policies, Policy, make_policy
from kagent.settings import GroupSettings

QUICK = make_policy({"settle": 30, "cooldown": 600})


def rows(past: Any) -> list[dict[str, Any]]:
    """The rows as the history would have them."""
    found: list[dict[str, Any]] = []
    for raw in past.records():
        record = decode(raw["key"], raw["value"])
        base = {"source": raw["partition"], "source_offset": raw["offset"], "time": raw["timestamp"]}
        if record.type == 1:
            assert record.value is not None
            row = {"kind": "lag", "topic": "t", "topic_id": None, "partition": record.key["partition"]}
            found.append({**base, **row, "committed": record.value["offset"]})
        else:
            found.append({**base, "kind": "changes", "message": orjson.dumps(record.to_json()).decode()})
    for end in past.ends():
        more = {"kind": "ends", "log_start": 0, "stable_end": end["log_end"], "topic_id": None}
        found.append({**end, **more})
    return found


def replayed(past: Any, policies: dict[str, Policy], **more: Any) -> dict[str, Any]:
    end = past.begin + past.seconds * 1000
    results = replay("main", past.group, rows(past), policies, past.begin, end, 10_000, **more)
    return {result.policy: result for result in results}


@pytest.mark.slow
def test_a_member_that_falls_behind_is_found_once_and_by_the_policy_that_looks(past: Any) -> None:
    found = replayed(past(), {"quick": QUICK, "deaf": make_policy({"min_behind": 1e6})})

    opened = found["quick"].openings
    assert len(opened) == 1
    assert opened[0].opened_at > past().begin + past().onset * 1000
    assert opened[0].members[0].partitions == 2
    assert found["quick"].flaps == 0
    assert found["quick"].skewed_ms > 0
    assert found["deaf"].openings == []


def test_a_record_that_the_worker_refused_changes_nothing(past: Any) -> None:
    sound = rows(past(slow=1.0))
    begin, end = past().begin, past().begin + 600_000
    bad = [
        b'{"record": 5}',
        b"[]",
        b'{"record": "GroupMetadata", "key_type": 2, "value_version": 3, "key": {}, "value": 7}',
    ]
    base = {"kind": "changes", "source": 0, "time": begin + 60_000}
    poison = [{**base, "source_offset": 10**9 + at, "message": text.decode()} for at, text in enumerate(bad)]

    judged = [
        replay("main", past().group, made, {"quick": QUICK}, begin, end, 10_000)[0].judged
        for made in (sound, sound + poison)
    ]
    assert judged[0] == judged[1] > 0


def test_a_group_that_keeps_up_is_never_spoken_of(past: Any) -> None:
    found = replayed(past(slow=1.0), {"quick": QUICK})

    assert found["quick"].messages == []
    assert found["quick"].judged == 7200 / 10 + 1


def test_where_nothing_was_recorded_nothing_is_found(past: Any) -> None:
    whole = past(slow=1.0)
    kept = [r for r in rows(whole) if not 3_000_000 < r["time"] - whole.begin < 6_000_000]
    end = whole.begin + whole.seconds * 1000

    (found,) = replay("main", "orders", kept, {"quick": QUICK}, whole.begin, end, 10_000)

    assert 200 < 721 - found.judged < 300
    assert found.messages == []


@pytest.mark.slow
def test_what_was_to_be_seen_is_kept_on_request(past: Any) -> None:
    found = replayed(past(), {"quick": QUICK}, keep_every=60_000)["quick"]

    last = found.ticks[-1]
    assert len(found.ticks) == pytest.approx(120, abs=2)
    assert last.lag == pytest.approx(2 * 100 * 5400 * 2 / 3, rel=0.02)
    assert max(last.work, key=lambda name: last.work[name]).startswith("slow")


def row(policy: str, openings: int = 0, flaps: int = 0, by_itself: int = 0) -> dict[str, Any]:
    return {
        "cluster": "main",
        "group": "g",
        "policy": policy,
        "openings": openings,
        "flaps": flaps,
        "by_itself": by_itself,
    }


def test_a_grid_changes_two_settings_of_each_pattern_and_keeps_the_rest() -> None:
    own = Policies(
        {"hold": 60.0}, [GroupSettings.model_validate({"match": "slow-*", "hold": 900.0, "threshold": 3.0})]
    )

    tried = grid(own)["1.25/60.0"]("slow-1")

    assert (tried.hold, tried.threshold, tried.min_behind) == (900.0, 1.25, 60.0)


def test_the_most_watchful_pair_that_would_have_been_kept_is_proposed() -> None:
    tried = [row("1.25/30", 9, 3, 9), row("1.5/30", 2, 0, 1), row("1.5/60", 1), row("2.0/30")]

    (proposal,) = propose(tried, 7 * 86_400_000)

    assert proposal.chosen == Tried(1.5, 60.0, 1, 0, 0)
    assert (
        "threshold 1.5 with 30 s 2 times, 1 of them for lateness that ended by itself" in proposal.sentence()
    )


def test_where_no_pair_is_quiet_none_is_proposed() -> None:
    (proposal,) = propose([row("1.5/60", 5, 2, 5)], 86_400_000)

    assert proposal.chosen is None
    assert "no pair fits" in proposal.sentence()
