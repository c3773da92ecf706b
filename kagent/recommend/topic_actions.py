"""Actions about what stands in a topic: a record, its partitions, a transaction, its retention."""

from __future__ import annotations

from collections.abc import Iterator
from shlex import quote
from typing import Any

from kagent.contract.recommendation import Action, ActionType
from kagent.detect.detectors import stalled_partition
from kagent.recommend.advice import Advice, action
from kagent.text import counted, few, partition_name, shown


def fix_record(advice: Advice) -> Iterator[Action]:
    """The record at which the partition stands, and how to skip it."""
    if advice.place is None or not stalled_partition.is_proven(advice.finding):
        return
    topic, partition = advice.place
    offset = advice.model.next_record(advice.finding.rows[0])
    if offset is None:
        how = (
            f"Look in the log of the consumer of {advice.partition} for the record at which it fails, and fix the consumer; "
            "the partition has no commit, so kagent cannot name the record."
        )
        params: dict[str, Any] = {"topic": topic, "partition": partition}
    else:
        group = quote(shown(advice.model.seen.group))
        how = (
            f"Look at the record at {advice.partition} offset {offset}; fix the consumer, or stop the group and skip "
            f"it: kafka-consumer-groups.sh {advice.tools} --group {group} --topic {quote(f'{shown(topic)}:{partition}')} "
            f"--reset-offsets --to-offset {offset + 1} --execute"
        )
        params = {"topic": topic, "partition": partition, "offset": offset}
    yield action(ActionType.SKIP_OR_FIX_RECORD, how, "yes", params=params)


def suspect_record(advice: Advice) -> Iterator[Action]:
    """The records one of which may hang its consumer, where a restart does not help."""
    if stalled_partition.is_proven(advice.finding) or advice.finding.evidence.get("whole_topic"):
        return
    # Which of its member's partitions the consumer was busy with, its commits do not tell.
    places = [
        f"{partition_name(*advice.model.lags.name(row))} from offset {offset} on"
        for row in advice.finding.rows
        if (offset := advice.model.next_record(row)) is not None
    ]
    if places:
        # Clients commit once a poll: the record that hangs may be hundreds beyond the commit.
        how = f"If a restart does not help, look at the records of {few(places)}: one of them may hang its consumer."
        reason = "only the consumer's own log shows whether a record hangs it, and which"
        yield action(ActionType.SKIP_OR_FIX_RECORD, how, "unknown", reason)


def spread_keys(advice: Advice) -> Iterator[Action]:
    """The keys of a partition that is too much for any member."""
    how = (
        f"{advice.partition} alone receives more than one member can process: spread its keys (a finer key, or salt the hottest), or add "
        f"partitions to {advice.topic}; more members do not help."
    )
    yield _repartition(advice, how)


def more_partitions(advice: Advice) -> Iterator[Action]:
    """More partitions for the topic."""
    how = (
        f"Add partitions to {advice.topic}, for example twice as many; keys move to other partitions: "
        f"kafka-topics.sh {advice.tools} --alter --topic {quote(advice.topic)} --partitions {_twice(advice)}"
    )
    yield _repartition(advice, how)


def more_partitions_too(advice: Advice) -> Iterator[Action]:
    """More partitions, where moves may not be enough."""
    # Where moving helps for certain, keys need not change.
    if advice.finding.evidence.get("may_not_be_enough"):
        yield from more_partitions(advice)


def _repartition(advice: Advice, how: str) -> Action:
    params = {"topic": advice.place[0]} if advice.place else {}
    reason = "only the owner of the topic knows whether the order by key allows it"
    return action(ActionType.ADD_PARTITIONS_OR_REKEY, how, "unknown", reason, params=params, durable=True)


def _twice(advice: Advice) -> str:
    """Twice the topic's partitions; a placeholder where the topic is not known."""
    about = advice.model.seen.topics.get(advice.place[0]) if advice.place else None
    return str(2 * about.partitions) if about else "<n>"


def abort_transaction(advice: Advice) -> Iterator[Action]:
    """The transaction that holds a partition back."""
    if advice.place is None:
        return
    topic, partition = advice.place
    where = f"--topic {quote(advice.topic)} --partition {partition}"
    how = (
        f"An open transaction holds {advice.partition} back. See whether its producer is gone: kafka-transactions.sh {advice.tools} "
        f"find-hanging {where} ; if it is: kafka-transactions.sh {advice.tools} abort {where} "
        f"--start-offset {advice.finding.evidence['last_stable_offset']}"
    )
    yield action(ActionType.ABORT_TRANSACTION, how, "yes", params={"topic": topic})


def keep_longer(advice: Advice) -> Iterator[Action]:
    """The records that are lost, and those that need not be."""
    lost = advice.finding.evidence["lost"]
    how = (
        f"Accept the loss of {counted(lost, 'record')}, or read them from another source; raise retention.ms of {advice.topic} "
        "until the group has caught up, so that no more are lost."
    )
    yield action(ActionType.RESET_OR_ACCEPT_LOSS, how, "yes", params={"lost": lost})
