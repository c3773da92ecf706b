"""What many groups have in common is one message above their own, where chance does not explain it."""

from __future__ import annotations

from typing import Any

import orjson
import pytest

from kagent.contract.recommendation import GroupKind, Recommendation, Status
from kagent.incident.correlation import CorrelationState, Population, correlate
from kagent.incident.evaluate import Candidate

NOW = 1_700_000_000_000


def candidate(
    n: int,
    topic: str,
    broker: int = 1,
    since: int = NOW,
    brokers: int = 3,
    verdict: str = "rebalance",
    **more: Any,
) -> Candidate:
    return Candidate(
        "main",
        f"g{n}",
        f"id{n}",
        verdict,
        since,
        "",
        topics=(topic,),
        brokers=(broker,),
        broker_count=brokers,
        **more,
    )


def said(candidates: list[Candidate], population: Population) -> list[str]:
    return [m.group for m in correlate(candidates, CorrelationState(), "main", population, NOW).messages]


HUNDRED = Population(100, {"orders": 6, **{f"t{n}": 1 for n in range(94)}}, {1: 40, 2: 30, 3: 30})


def test_a_few_groups_are_no_crowd() -> None:
    assert said([candidate(n, "orders") for n in range(4)], HUNDRED) == []


def test_most_readers_of_a_topic_that_fall_behind_together_have_it_in_common() -> None:
    assert said([candidate(n, "orders", n % 3) for n in range(5)], HUNDRED) == ["<topic orders>"]


def test_a_share_of_a_topics_readers_that_chance_explains_is_nothing() -> None:
    """All groups of the cluster read it, and half of all are late."""
    everybody = Population(10, {"orders": 10}, {1: 10})

    assert said([candidate(n, "orders", 1, brokers=1) for n in range(5)], everybody) == []


def test_groups_led_by_one_broker_of_several_are_told() -> None:
    population = Population(100, {f"t{n}": 1 for n in range(100)}, {1: 6, 2: 50, 3: 50})

    assert said([candidate(n, f"t{n}", 1) for n in range(6)], population) == ["<broker 1>"]


def test_on_a_cluster_of_one_broker_that_broker_explains_nothing() -> None:
    population = Population(100, {f"t{n}": 1 for n in range(100)}, {1: 100})

    assert said([candidate(n, f"t{n}", 1, brokers=1) for n in range(60)], population) == []


def test_half_of_a_cluster_at_once_is_the_cluster() -> None:
    population = Population(20, {f"t{n}": 1 for n in range(20)}, dict.fromkeys(range(3), 20))

    assert said([candidate(n, f"t{n}", n % 3) for n in range(12)], population) == ["<cluster>"]


def test_onsets_hours_apart_have_nothing_in_common() -> None:
    """Seventeen sick groups that ripen in the same minute, as when kagent is installed, fell behind one by one."""
    apart = [candidate(n, "orders", since=NOW - n * 200_000) for n in range(6)]

    assert said(apart, HUNDRED) == []


def test_groups_that_were_late_when_they_were_first_seen_have_no_onset() -> None:
    assert said([candidate(n, "orders", first_sight=True) for n in range(6)], HUNDRED) == []


def test_candidates_of_two_minutes_add_up_under_one_id_and_the_incident_ends() -> None:
    recent, messages = CorrelationState(), list[Recommendation]()
    for n in range(6):
        now = NOW + n * 20_000
        found = correlate([candidate(n, "orders", since=now)], recent, "main", HUNDRED, now)
        recent = CorrelationState.from_row(orjson.loads(orjson.dumps(found.recent.to_row())))
        messages += found.messages
    late = correlate([], recent, "main", HUNDRED, NOW + 2_000_000)

    assert [m.status for m in messages] == [Status.OPEN, Status.UPDATED]
    assert [m.status for m in late.messages] == [Status.RESOLVED]
    assert len({m.id for m in (*messages, *late.messages)}) == 1
    assert late.recent.open == ()


def test_a_common_incident_ends_as_what_it_began_as() -> None:
    stalled = [candidate(n, "orders", verdict="stalled", kind=GroupKind.STREAMS) for n in range(5)]
    opened = correlate(stalled, CorrelationState(), "main", HUNDRED, NOW)
    ended = correlate([], opened.recent, "main", HUNDRED, NOW + 2_000_000)

    assert [(m.status, m.verdict, m.group_kind) for m in (*opened.messages, *ended.messages)] == [
        (Status.OPEN, "stalled", "streams"),
        (Status.RESOLVED, "stalled", "streams"),
    ]


def test_a_row_of_a_version_that_did_not_keep_the_verdict_is_read() -> None:
    row = {"onsets": {}, "open": [["id", "topic", "orders", NOW, NOW, ["g1", "g2"]]]}

    assert CorrelationState.from_row(row).open[0].groups == ("g1", "g2")


@pytest.mark.parametrize("repeat", [1, 3])
def test_groups_that_stay_candidates_renew_nothing(repeat: int) -> None:
    recent, messages = CorrelationState(), list[Recommendation]()
    same = [candidate(n, "orders") for n in range(5)]
    for turn in range(repeat):
        found = correlate(same, recent, "main", HUNDRED, NOW + turn * 10_000)
        recent, messages = found.recent, [*messages, *found.messages]

    assert [m.status for m in messages] == [Status.OPEN]
