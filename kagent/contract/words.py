"""The names of verdicts and actions, and their words in a table, for readers who have never seen those names."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any


class Verdict(StrEnum):
    """What is wrong with a group."""

    # Names are public: they stand on the topic, in settings, filters and labels. In the order of the page docs/verdicts.md.
    BALANCED = "balanced"
    REBALANCE = "rebalance"
    HOT_PARTITION = "hot_partition"
    SLOW_MEMBER = "slow_member"
    STUCK_MEMBER = "stuck_member"
    STALLED = "stalled"
    BLOCKED_BY_TRANSACTION = "blocked_by_transaction"
    UNDER_PROVISIONED = "under_provisioned"
    UNSTABLE = "unstable"
    LOST_DATA = "lost_data"
    IDLE_MEMBERS = "idle_members"
    NO_MEMBERS = "no_members"


class ActionType(StrEnum):
    """What can be done."""

    FOLLOW_PLAN = "follow_plan"
    SWITCH_ASSIGNOR = "switch_assignor"
    SET_MEMBER_COUNT = "set_member_count"
    RESTART_MEMBER = "restart_member"
    SKIP_OR_FIX_RECORD = "skip_or_fix_record"
    ADD_PARTITIONS_OR_REKEY = "add_partitions_or_rekey"
    RAISE_PARALLELISM = "raise_parallelism"
    ABORT_TRANSACTION = "abort_transaction"
    RESET_OR_ACCEPT_LOSS = "reset_or_accept_loss"
    WAIT = "wait"
    NONE = "none"


@dataclass(frozen=True, slots=True)
class VerdictWords:
    """``short``: for a table. ``meaning``: a sentence. ``first``: what a person does first."""

    short: str
    meaning: str
    first: str


V = Verdict
VERDICTS: Mapping[Verdict, VerdictWords] = {
    V.BALANCED: VerdictWords(
        "balanced",
        "Nothing is wrong. `kagent explain` and the page say so of a group; no incident has this verdict.",
        "Nothing.",
    ),
    V.REBALANCE: VerdictWords(
        "uneven work",
        "One member has more work than it can do, and another assignment of the partitions catches up.",
        "Carry out the plan: follow it, switch the assignor, or run another number of members.",
    ),
    V.HOT_PARTITION: VerdictWords(
        "hot partition",
        "One partition alone gets more than a member can process, so moving partitions does not help.",
        "See which keys make it hot (`kagent keys TOPIC`), and spread them or add partitions.",
    ),
    V.SLOW_MEMBER: VerdictWords(
        "slow member",
        "One member processes less than others do with the same topics: its machine or its program is slow.",
        "Look at that member's machine; restart or replace the member. If the next member that gets its partitions is slow too, the records of one of them cost more.",
    ),
    V.STUCK_MEMBER: VerdictWords(
        "stuck member",
        "One member is in the group and makes no progress on any partition, while others do.",
        "Restart that member; take a thread dump before.",
    ),
    V.STALLED: VerdictWords(
        "stuck partition",
        "One partition makes no progress, whichever member holds it: most often a record that its consumer cannot handle.",
        "Look at the record at the offset that the message names; fix the consumer or skip the record. Where the member did nothing else meanwhile, it may hang as well: then restart it first.",
    ),
    V.BLOCKED_BY_TRANSACTION: VerdictWords(
        "open transaction",
        "A producer's transaction stays open, and nothing behind it may be read.",
        "See whether that producer is gone, and abort its transaction with the command of the message.",
    ),
    V.UNDER_PROVISIONED: VerdictWords(
        "too few members",
        "More records arrive than all members can process, whichever of them holds which partition.",
        "Run more members; with as many members as partitions, add partitions first.",
    ),
    V.UNSTABLE: VerdictWords(
        "many rebalances",
        "Members leave and come back, and every time the whole group stops for a rebalance.",
        "Look at the members that the message names: poll timeouts, crashes, restarts, an autoscaler.",
    ),
    V.LOST_DATA: VerdictWords(
        "lost records",
        "Retention deleted records before the group had read them.",
        "Raise the topic's retention until the group has caught up.",
    ),
    V.IDLE_MEMBERS: VerdictWords(
        "idle members",
        "Some members have had no partition for a long time (`idle_after`): there are more members than partitions.",
        "Run fewer members, or keep them as stand-by.",
    ),
    V.NO_MEMBERS: VerdictWords(
        "no members",
        "Nothing reads the group's topics, or some partitions of those it subscribes to, although records arrive.",
        "Start the consumers, or delete the group if it is of no use any more.",
    ),
}
ACTIONS: Mapping[ActionType, str] = {
    ActionType.FOLLOW_PLAN: "follow the plan",
    ActionType.SWITCH_ASSIGNOR: "switch assignor",
    ActionType.SET_MEMBER_COUNT: "start consumers",
    ActionType.RESTART_MEMBER: "restart a member",
    ActionType.SKIP_OR_FIX_RECORD: "fix or skip a record",
    ActionType.ADD_PARTITIONS_OR_REKEY: "add partitions or re-key",
    ActionType.RAISE_PARALLELISM: "raise parallelism",
    ActionType.ABORT_TRANSACTION: "abort transaction",
    ActionType.RESET_OR_ACCEPT_LOSS: "raise retention",
    ActionType.WAIT: "wait",
    ActionType.NONE: "nothing",
}
"""What to do, without the numbers."""
WITH_NUMBERS = (
    (ActionType.SWITCH_ASSIGNOR, "strategy", "switch to {}"),
    (ActionType.SET_MEMBER_COUNT, "strategy", "switch to {}, add members"),
    (ActionType.SET_MEMBER_COUNT, "members", "run {} members"),
    (ActionType.RAISE_PARALLELISM, "members", "parallelism {}"),
    (ActionType.RESTART_MEMBER, "others", "restart several members"),
)
"""Action, the parameter that it may have, and its words then."""


def verdict_words(name: str) -> str:
    """The words of a verdict that came as a name; one of a newer kagent keeps its name.

    >>> verdict_words("stalled"), verdict_words("some_day")
    ('stuck partition', 'some day')
    """
    # By value: a name from a topic or a file may be that of a verdict which this release does not have.
    known = {verdict.value: words.short for verdict, words in VERDICTS.items()}
    return known.get(name) or in_words(name)


def in_words(name: str) -> str:
    """A name without words of its own, such as a resolution or a kind of group: ``group changed``, ``classic java``."""
    return name.replace("_", " ")


def action_words(action: ActionType, params: Mapping[str, Any]) -> str:
    """The action with its parameters in two to four words, such as ``run 4 members``."""
    for kind, name, words in WITH_NUMBERS:
        if action is kind and name in params:
            return words.format(params[name])
    return ACTIONS[action]
