"""``apply: auto``: the worker has groups whose policy says so take their open plans, by the rules of ``kagent apply``."""

from __future__ import annotations

import logging
import time
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

from kagent.apply.apply_plan import Applied, Applier
from kagent.apply.attempts import Attempts
from kagent.apply.preconditions import CannotApply
from kagent.contract.recommendation import ActionType, GroupKind, Recommendation, Status
from kagent.detect.detectors import MOVES_CURE
from kagent.errors import KagentError
from kagent.follow.rejoin_budget import Asking
from kagent.group_key import group_key
from kagent.policy import AUTO, Policies
from kagent.settings import Settings
from kagent.text import shown

log = logging.getLogger("kagent.apply")

APPLIED, NOT_TAKEN_UP, FAILED = "applied", "not_taken_up", "failed"
"""What came of a plan, beside the reasons of CannotApply."""
AGAIN_AFTER_S = 60.0
"""A plan that was refused is tried again after this time: most refusals pass (the group rebalances, a topic is read late)."""
TAKEN_UP_WITHIN_S = 60.0
MOVED_AT_ONCE_S = 180.0
"""Longer than everything that one attempt waits for."""


def waits(rec: Recommendation, now_ms: int) -> bool:
    """Whether a recommendation is a plan that a KIP-848 group can take now. Only where nothing but the spread is the matter:
    a slow member is to be restarted, not worked around without a person."""
    follow = next((a for a in rec.actions if a.type is ActionType.FOLLOW_PLAN), None)
    standing = rec.status in (Status.OPEN, Status.UPDATED) and not rec.stale and now_ms < rec.valid_until
    fits = rec.group_kind is GroupKind.CONSUMER and rec.verdict in MOVES_CURE and bool(rec.moves)
    return standing and fits and follow is not None and follow.feasible != "no"


@dataclass(slots=True)
class AutoApply:
    """What one worker tried. ``counts``: plans by what came of them; times in s of ``clock``, since the epoch."""

    settings: Settings
    policies: Policies
    asking: Asking = field(default_factory=Asking)
    clock: Callable[[], float] = time.time
    counts: Counter[str] = field(default_factory=Counter)
    _tried: dict[tuple[str, str, int], float] = field(default_factory=dict)
    """(key, id, as_of) of a recommendation → when it was last tried."""
    _logged: set[tuple[str, str, str]] = field(default_factory=set)

    @property
    def enabled(self) -> bool:
        """Whether any group may be moved at all."""
        return bool(self.policies.applied)

    def due(self, published: Iterable[Recommendation]) -> list[Recommendation]:
        """The open plans of groups whose policy says auto, that were not tried a moment ago."""
        now = self.clock()
        self._tried = {one: at for one, at in self._tried.items() if now - at < AGAIN_AFTER_S}
        plans = [rec for rec in published if waits(rec, int(now * 1000))]
        return [
            rec
            for rec in plans
            if (policy := self.policies(rec.group)).apply == AUTO
            and not policy.ignore
            and _mark(rec) not in self._tried
        ]

    def apply(self, rec: Recommendation) -> str:
        """Have the group take its plan; what came of it. Blocks, and raises nothing that is kagent's."""
        self._tried[_mark(rec)] = self.clock()
        try:
            applied = self._apply(rec)
        except CannotApply as refused:
            return self._told(rec, refused.reason, str(refused))
        except KagentError as error:
            return self._told(rec, FAILED, str(error))
        slowest = max((s for s in applied.taken_up_s.values() if s is not None), default=0.0)
        if applied.whole:
            return self._told(rec, APPLIED, f"{len(rec.moves)} moves, taken up after {slowest:.1f} s")
        return self._told(
            rec, NOT_TAKEN_UP, f"not all members have taken up their part in {TAKEN_UP_WITHIN_S:.0f} s"
        )

    def _apply(self, rec: Recommendation) -> Applied:
        _, watched = self.settings.cluster(rec.cluster)
        home = self.settings.home_cluster(rec.cluster)
        follows = self.policies(rec.group).uniform_follows
        applier = Applier(watched, home, rec.cluster, rec.group, self.settings.topics, self.asking, follows)
        plan = applier.check()
        if plan.recommendation.id != rec.id:
            raise CannotApply("superseded", "Nothing is applied: another recommendation is open by now.")
        attempts = Attempts(home, self.settings.topics, group_key(rec.cluster, rec.group), "kagent worker")
        return applier.apply(plan, attempts, TAKEN_UP_WITHIN_S)

    def _told(self, rec: Recommendation, result: str, sentence: str) -> str:
        """Count the result, and log it once for each incident."""
        self.counts[result] += 1
        key = group_key(rec.cluster, rec.group)
        if (key, rec.id, result) not in self._logged:
            self._logged.add((key, rec.id, result))
            level = logging.INFO if result == APPLIED else logging.WARNING
            log.log(level, "plan of %s: %s: %s", shown(key), result, sentence)
        return result


def _mark(rec: Recommendation) -> tuple[str, str, int]:
    return group_key(rec.cluster, rec.group), rec.id, rec.as_of
