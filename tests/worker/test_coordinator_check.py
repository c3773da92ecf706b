"""What the coordinator's answer does to a finding of the worker."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import replace

import pytest

from kagent.worker.coordinator_check import CoordinatorAnswer
from kagent.worker.groups import Entry
from tests.fixtures.coordinators import each
from tests.worker.test_valid_judgements import Pair, agreed, pair


async def lose_records(still: Pair) -> None:
    """Retention overtakes the first partition of each group, which goes on committing."""
    await still.run(10, commit=True)
    for group in still.groups:
        group.stands = True
    await still.run(2, commit=True)
    for topic in still.topics:
        topic.start = topic.end - 5
    await still.run(8, commit=True)


async def others_hold_it(entry: Entry) -> CoordinatorAnswer:
    """A coordinator that has reassigned the group since the records were written."""
    answer = await agreed(entry)
    return replace(answer, holders=dict.fromkeys(answer.holders, "another-member"))


async def rebalancing(entry: Entry) -> CoordinatorAnswer:
    return replace(await agreed(entry), state="preparingrebalance")


@pytest.mark.slow
@pytest.mark.parametrize(("answers", "published"), [(others_hold_it, True), (rebalancing, False)])
async def test_lost_records_are_told_whoever_holds_the_partition_by_now(
    answers: Callable[[Entry], Awaitable[CoordinatorAnswer]], published: bool
) -> None:
    still = pair(rate=20, every_s=10)
    for engine, _ in still.engines:
        engine.ticks.confirmations.ask = each(answers)
    await lose_records(still)

    found = {str(message.verdict) for message in still.engines[0][1].recommendations}
    assert ("lost_data" in found) == published
