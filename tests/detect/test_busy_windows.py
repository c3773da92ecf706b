"""A window is open while its member is certainly busy with the same partitions."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from kagent.detect.busy_windows import advance
from kagent.detect.observed_columns import columns_of
from kagent.detect.start_position import located
from kagent.detect.state import JudgeState, MemberState
from kagent.policy import Policy
from tests.fixtures.timeline import Timeline

HELD = {"m0": (0, 1), "m1": (2, 3)}


def world() -> Timeline:
    """m0 gets more than it can do, m1 keeps up."""
    return Timeline([150.0, 150, 50, 50], HELD, dict.fromkeys(HELD, 220.0))


def followed(
    made: Timeline, seconds: int, state: JudgeState | None = None, set_aside: bool = False, start: int = 0
) -> JudgeState:
    """After looks at the group every ten seconds; ``set_aside``: whether its partitions say nothing of their members' work; ``start``: of
    all logs."""
    known, policy = state or JudgeState(first_seen=0), Policy()
    for _ in range(seconds // 10):
        made.run(10)
        seen = made.observe()
        lags, known = located(seen, known, policy)
        lags = replace(lags, start=np.full(len(lags), start))
        columns = columns_of(lags, seen, known, policy)
        excluded = np.full(len(columns.lags), set_aside)
        known = advance(columns, known, excluded, seen.ends, policy)
    return known


def only(state: JudgeState) -> MemberState:
    (member,) = state.members.values()
    return member


def test_only_the_member_that_has_something_to_do_is_measured() -> None:
    state = followed(world(), 300)

    assert [name.split("/")[0] for name in state.members] == ["m0"]
    assert only(state).windows


def test_what_a_former_holder_committed_is_in_no_window() -> None:
    made = world()
    before = followed(made, 320)
    made.held, made.at = {"m0": (0, 2), "m1": (1, 3)}, dict.fromkeys(HELD, 0)
    after = followed(made, 10, before)

    was = only(before)
    now = after.members[next(iter(before.members))]
    assert was.mark is not None
    assert now.mark is not None
    assert was.mark.busy_s > 0
    assert (now.mark.busy_s, set(now.mark.committed)) == (0, {"t/0", "t/2"})
    assert now.windows == was.windows


def test_a_partition_that_is_set_aside_shows_nobody_busy() -> None:
    made = world()
    before = followed(made, 320)
    begun, found = only(before), only(followed(made, 300, before, set_aside=True))

    assert begun.mark is not None
    assert found.mark is not None
    assert (begun.mark.busy_s > 0, found.mark.busy_s) == (True, 0)
    assert found.windows == begun.windows


def test_a_window_in_which_retention_deleted_what_was_unread_tells_no_speed() -> None:
    """The next commit leaps to the log start, over records that nobody read."""
    made = world()
    before = followed(made, 320)
    leapt = followed(made, 100, before, start=int(made.end[0]))

    assert only(before).windows
    assert only(leapt).windows == only(before).windows


def test_a_partition_that_stands_shows_nobody_busy() -> None:
    """It waits while its member keeps up with the other one: at no commit was that one served, and it does not tell what the member can do."""
    made = Timeline(
        [40.0] * 4, HELD, dict.fromkeys(HELD, 220.0), commit_s=60, stands=frozenset({0}), stands_from=305
    )
    after = followed(made, 600)

    assert any(m.mark for m in after.members.values())
    assert not any(m.windows for m in after.members.values())


def test_a_member_that_hangs_and_goes_on_committing_has_no_speed_of_nothing() -> None:

    def works(second: int) -> float:
        return 220.0 if second < 590 else 0.0

    made = Timeline([150.0, 150, 50, 50], HELD, {"m0": works, "m1": 220.0}, commit_s=60)
    after = followed(made, 1200)
    hangs = next(m for name, m in after.members.items() if name.startswith("m0"))

    assert hangs.windows
    assert all(w.records for w in hangs.windows)


def test_the_time_of_a_long_block_counts_though_commits_repeat_meanwhile() -> None:
    """Records of a block are committed in its end, and every five seconds what was committed before."""

    def works(second: int) -> float:
        return 220.0 * 8 if second % 40 >= 35 else 0.0

    made = Timeline([150.0, 150, 50, 50], HELD, {"m0": works, "m1": 220.0})
    state = followed(made, 600)
    m0 = next(m for name, m in state.members.items() if name.startswith("m0"))

    assert sum(sum(w.records.values()) for w in m0.windows) / sum(
        w.seconds for w in m0.windows
    ) == pytest.approx(220, rel=0.15)
