"""Real groups of 17 client set-ups, each with something known wrong or nothing at all: what is said of them is what is true.

A folder is a scenario: two or three groups of a larger capture, with their log ends and what should be said. What happens in them, and
what the codes in the groups' names mean:

    burst     50 % load, and three bursts that drain in about a minute     jr jc j8 ja js   Java: classic, cooperative, KIP-848, assign(), Streams
    deep      12,000 records wait on each of two partitions of one member  rc rk r8         librdkafka: classic, cooperative, KIP-848
    hang      a record hangs the whole member                              ai ab            aiokafka: auto-commit, a commit a batch
    hot       one partition gets 1.4 times what a member can do            kp kb            kafka-python: the same two
    nearfull  88 % load                                                    fz fb            franz-go: PollFetches, PollRecords
    poison    one record is tried again for ever                           sa sg kj         sarama, kafka-go, kafkajs
    remedied  as skew, and 150 s later its owner parts the two
    rolling   each member is closed, away for 8 s, and joins again
    skew      two hot partitions on one member
    slow      one of three members at 0.4 of its speed
    steady    60 % load
    toofew    130 % of what all members can do
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from kagent.contract.recommendation import ActionType, Recommendation, Status
from kagent.incident.session import EvaluationSession
from kagent.policy import Policies
from kagent.replay.captured_events import Recording
from kagent.replay.driver import replay
from tests.fixtures.captures import DATA, WEEK_MS

CLIENTS = DATA / "clients"
FOLDERS = sorted(folder.name for folder in CLIENTS.iterdir())
CODES = {"jr", "jc", "j8", "ja", "js", "rc", "rk", "r8", "ai", "ab", "kp", "kb", "fz", "fb", "sa", "sg", "kj"}
SAID_AS = {
    "stalled": "stalled",
    "stuck member": "stuck_member",
    "slow member": "slow_member",
    "hot partition": "hot_partition",
    "too few members": "under_provisioned",
    "unstable": "unstable",
    "rebalance": "rebalance",
    "badly spread": "rebalance",
}
"""The truth's words, and the verdicts."""
DRAINS = " until "
"""What is wrong only for some minutes need not be told."""


def accepted(truth: dict[str, Any]) -> set[str]:
    """The verdicts that are true; none of a healthy group."""
    phrase = truth["verdict"].split(DRAINS)[0]
    return {verdict for words, verdict in SAID_AS.items() if words in phrase}


def false_words(truth: dict[str, Any], told: list[Recommendation]) -> list[str]:
    """What was said and must not be, and how good records were to be skipped."""
    words = {phrase.split(" (")[0] for phrase in truth["must_not_be_said"]}
    verdicts = {SAID_AS[word] for word in words & SAID_AS.keys()}
    skips = [a for m in told for a in m.actions if a.type is ActionType.SKIP_OR_FIX_RECORD]
    at_good = [
        a for a in skips if "offset" in a.params and a.params["partition"] != truth.get("poison_partition")
    ]
    never = skips if "skip a record" in words else []
    return [*sorted(verdicts & {str(m.verdict) for m in told}), *(a.how for a in (*at_good, *never))]


def test_every_client_and_every_scenario_of_the_captures_is_here(
    truth: Callable[[str], list[dict[str, Any]]],
) -> None:
    groups = [group for folder in FOLDERS for group in truth(f"clients/{folder}")]

    assert len(FOLDERS) == 12
    assert {group["group"].split("-")[1] for group in groups} == CODES


@pytest.mark.slow
@pytest.mark.parametrize("folder", FOLDERS)
def test_what_is_said_of_real_groups_is_what_is_true_of_them(
    folder: str,
    captured: Callable[[str], Recording],
    truth: Callable[[str], list[dict[str, Any]]],
) -> None:
    truths = truth(f"clients/{folder}")
    messages = replay(
        captured(f"clients/{folder}"), EvaluationSession(Policies()), known_for_ms=WEEK_MS
    ).messages

    assert {m.group for m in messages} <= {group["group"] for group in truths}
    for group in truths:
        told = [
            m for m in messages if m.group == group["group"] and m.status in (Status.OPEN, Status.UPDATED)
        ]
        verdicts = [str(m.verdict) for m in told]
        assert false_words(group, told) == []
        if not accepted(group):
            assert verdicts == [], group["group"]
        elif verdicts or DRAINS not in group["verdict"]:
            assert verdicts, group["group"]
            assert {verdicts[0], verdicts[-1]} <= accepted(group), group["group"]
