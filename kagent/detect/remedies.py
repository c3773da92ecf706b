"""What may help against what a detector finds. A detector names its remedies, the best first; ``kagent.recommend.actions`` makes an
action of each where it fits the finding and the kind of group."""

from __future__ import annotations

from enum import Enum

from kagent.contract.words import ActionType


class Remedy(Enum):
    """What to do, and the type of the action that says so: one type may say several things."""

    WAIT = "it catches up by itself", ActionType.WAIT
    FOLLOW_PLAN = "move partitions as planned", ActionType.FOLLOW_PLAN
    SWITCH_ASSIGNOR = "let another strategy assign", ActionType.SWITCH_ASSIGNOR
    MORE_MEMBERS = "run as many members as relieve the group", ActionType.SET_MEMBER_COUNT
    FEWER_MEMBERS = "run no members without work", ActionType.SET_MEMBER_COUNT
    START_MEMBERS = "start the consumers", ActionType.SET_MEMBER_COUNT
    MORE_PARALLELISM = "run more threads, or a wider job", ActionType.RAISE_PARALLELISM
    OTHER_PROCESS = (
        "run more threads, or let another process of the job read the partition",
        ActionType.RAISE_PARALLELISM,
    )
    RESTART_MEMBER = "restart the member concerned", ActionType.RESTART_MEMBER
    RESTART_SILENT = (
        "restart a member that makes no progress while its records are deleted",
        ActionType.RESTART_MEMBER,
    )
    STEADY_NUMBER = "keep an autoscaler from changing their number over and over", ActionType.SET_MEMBER_COUNT
    STEADY_MEMBERS = "restart those that come and go, with what keeps them", ActionType.RESTART_MEMBER
    ASSIGN_ANEW = "restart one member, so that partitions find an owner", ActionType.RESTART_MEMBER
    FIX_RECORD = "fix or skip the record at which it fails", ActionType.SKIP_OR_FIX_RECORD
    SUSPECT_RECORD = "look at the record that may hang it", ActionType.SKIP_OR_FIX_RECORD
    SPREAD_KEYS = "spread the keys of the partition", ActionType.ADD_PARTITIONS_OR_REKEY
    MORE_PARTITIONS = "add partitions", ActionType.ADD_PARTITIONS_OR_REKEY
    MORE_PARTITIONS_TOO = "add partitions, where moves may not be enough", ActionType.ADD_PARTITIONS_OR_REKEY
    ABORT_TRANSACTION = "abort the open transaction", ActionType.ABORT_TRANSACTION
    KEEP_LONGER = "accept the loss, and raise retention", ActionType.RESET_OR_ACCEPT_LOSS

    def __init__(self, about: str, action: ActionType) -> None:
        self.about, self.action = about, action
