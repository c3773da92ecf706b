"""All that the actions about a finding are made from, and what their makers share."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from kagent.assignor import NAME, follows_plans
from kagent.contract.recommendation import Action, ActionType, GroupKind
from kagent.detect.finding import ROWS, Finding
from kagent.detect.group_model import GroupModel
from kagent.planner.comparison import Alternative
from kagent.recommend.member_counts import Counts
from kagent.recommend.reassignment import Reassignment, expected_s, promised
from kagent.text import partition_name, shown, span

Feasible = Literal["yes", "no", "unknown"]
K = GroupKind


@dataclass(frozen=True)
class Advice:
    """All that the actions are made from."""

    model: GroupModel
    finding: Finding
    reassignment: Reassignment | None
    alternatives: tuple[Alternative, ...]
    counts: Counts

    @property
    def kind(self) -> GroupKind:
        return self.model.kind

    @property
    def members(self) -> list[str]:
        """The names of the members concerned, as data."""
        return [self.model.names[at] for at in self.finding.members[:ROWS]]

    @property
    def place(self) -> tuple[str, int] | None:
        """Topic and partition concerned."""
        return self.model.lags.name(self.finding.rows[0]) if self.finding.rows else None

    @property
    def topic(self) -> str:
        return shown(self.place[0]) if self.place else "<topic>"

    @property
    def tools(self) -> str:
        """The options with which Kafka's own tools reach the cluster."""
        return self.model.seen.tool_options

    @property
    def partition(self) -> str:
        """The partition concerned, as it is shown."""
        return partition_name(*self.place) if self.place else "its partition"


def action(kind: ActionType, how: str, feasible: Feasible, reason: str | None = None, **more: Any) -> Action:
    return Action(type=kind, how=how, feasible=feasible, reason=reason, **more)


def follows(model: GroupModel) -> bool:
    """Whether the group's own protocol is an assignor that reads kagent's plans."""
    protocol = model.roster.protocol if model.roster else None
    if model.kind is K.CONSUMER:
        # The brokers run the assignor (KIP-848), and the group only names it.
        return follows_plans(protocol, model.policy.uniform_follows)
    return NAME in (protocol or "")  # kagent.follow's own names begin with it


def stateful(model: GroupModel) -> bool:
    """Whether moving a partition means moving state."""
    # A Streams task that moves restores its state stores from changelog topics first, for minutes to hours.
    return model.policy.stateful or model.kind is K.STREAMS


def how_to_declare(model: GroupModel) -> str:
    """What someone whose topics are joined by partition number has to declare first, where an assignment may part them: offsets do not show it."""
    if model.columns.paired or model.policy.co_partitioned is not None or len(model.lags.topics) < 2:
        return ""
    return " If its topics are joined by partition number, set `co_partitioned: true` for the group first."


def gains(made: Reassignment, model: GroupModel) -> bool:
    """Whether the plan gains what the policy asks of one."""
    return made.helps and made.gain >= model.policy.min_gain


def gain_of(advice: Advice, option: Alternative | None = None) -> dict[str, float | None]:
    """Time to catch up now and with the plan or another strategy, s: ``likely``, and ``after`` in 19 of 20 cases; None: never, or
    unknown."""
    made = advice.reassignment
    if made is None or not made.seconds:
        return {}
    assigned = option.assigned if option else made.plan.assigned
    promise = promised(advice.model, assigned, made.rows) if option else made.promise
    return {
        "now": _seconds(made.drain[0]),
        "likely": _seconds(expected_s(advice.model, assigned, made.rows)),
        "after": _seconds(promise[1] if promise else None),
    }


def caught_up(gain: Mapping[str, float | None], unsure: str) -> str:
    """When the group has caught up with an action of this gain, or why that is not known. ``unsure``: why no bound can be promised."""
    if not gain:
        return "when the group has caught up then is not known, as no member's speed was measured yet"
    likely, after = gain["likely"], gain["after"]
    if likely is None:
        return "whether the group catches up then is not known, as one member may still get more than it can process"
    if after is None:
        return f"the group has likely caught up after {span(likely)}, which cannot be promised, as {unsure}"
    return f"the group has likely caught up after {span(likely)}, in 19 of 20 cases within {span(after)}"


def disruption_of(made: Reassignment | None, partitions: int) -> dict[str, float | None]:
    """What a rebalance costs: for how long it stops who must stop, s, and how many partitions move."""
    return {"pause_s": made.cost.pause_s if made else None, "partitions": float(partitions)}


def _seconds(drain: float | None) -> float | None:
    return round(drain, 1) if drain is not None and np.isfinite(drain) else None
