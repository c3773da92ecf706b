"""Real groups of processes with `assign()`, recorded for twelve minutes while some of them were too slow.

`one-aio` (aiokafka, getmany(200), a commit after each) and `one-rd` (librdkafka, auto-commit): one process reads all six partitions, one
fetch after another, and does 33 records/s of 48. `two-aio`: two processes of three partitions, two hot ones at the first. `ok-aio`: one
process that gets 24 records/s.
"""

from __future__ import annotations

from collections.abc import Callable

import pytest

from kagent.contract.recommendation import Recommendation
from kagent.incident.session import EvaluationSession
from kagent.policy import Policies
from kagent.replay.captured_events import Recording
from kagent.replay.driver import replay
from tests.fixtures.captures import WEEK_MS


@pytest.fixture(scope="module")
def published(captured: Callable[[str], Recording]) -> dict[str, Recommendation]:
    """The first message about each group."""
    found = replay(captured("assigned"), EvaluationSession(Policies()), known_for_ms=WEEK_MS)
    return {message.group: message for message in reversed(found.messages)}


@pytest.mark.slow
@pytest.mark.parametrize("group", ["one-aio", "one-rd"])
def test_a_process_that_reads_all_partitions_is_one_reader_and_needs_a_second(
    group: str, published: dict[str, Recommendation]
) -> None:
    message = published[group]

    assert message.verdict == "under_provisioned"
    assert (message.evidence["members"], message.evidence["needed"]) == (1, 2)
    assert message.actions[0].type == "raise_parallelism"


@pytest.mark.slow
def test_two_hot_partitions_of_one_process_are_badly_spread(published: dict[str, Recommendation]) -> None:
    assert published["two-aio"].verdict == "rebalance"


@pytest.mark.slow
def test_a_process_that_keeps_up_is_not_reported(published: dict[str, Recommendation]) -> None:
    assert "ok-aio" not in published
