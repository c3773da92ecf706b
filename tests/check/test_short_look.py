"""How long a look must be to judge a late group: laws of the policy, without a cluster."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from kagent.check.judge_cluster import PARTS
from kagent.check.short_look import least_look_s
from kagent.detect.capacity import USABLE
from kagent.detect.evidence import LatenessLimits
from kagent.policy import Policy

DEFAULT_LOOK_S = 180.0


def cut(policy: Policy, look_s: float) -> Policy:
    return replace(policy, hold=min(policy.hold, look_s / PARTS))


@pytest.mark.parametrize(
    "changed",
    [{}, {"min_behind": 2.0}, {"hold": 5.0}, {"hold": 900.0}, {"evidence": 3.0}, {"evidence": 10.0}],
)
def test_the_least_look_has_room_for_its_own_evidence_and_a_shorter_one_has_not(
    changed: dict[str, float],
) -> None:
    fields: Any = changed
    policy = replace(Policy(), **fields)

    def has_room(look_s: float) -> bool:
        limits = LatenessLimits.of(cut(policy, look_s))
        need_s = policy.min_behind + policy.evidence * limits.draining_need
        return need_s <= USABLE * look_s

    least_s = least_look_s(policy)
    assert has_room(least_s * 1.001)
    assert not has_room(least_s * 0.999)


def test_the_default_look_judges_the_default_policy() -> None:
    assert least_look_s(Policy()) <= DEFAULT_LOOK_S


def test_without_limits_any_look_is_long_enough() -> None:
    assert least_look_s(replace(Policy(), min_behind=0.0, hold=0.0)) == 0
