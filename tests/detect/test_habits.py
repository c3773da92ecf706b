"""A habit is the longest that ended by itself, for a week."""

from __future__ import annotations

from kagent.detect.habits import habit, learned, learned_again, with_ended_pauses
from kagent.detect.state import Habit, Incident, JudgeState, Standing

NOW = 1_700_000_000_000


def test_a_pause_is_learned_when_it_is_the_longest_and_forgotten_after_a_week() -> None:
    habits = learned({}, "silent", 90.0, NOW)

    assert habit(habits, "silent", NOW) == 90
    assert learned(habits, "silent", 80.0, NOW) is habits
    assert learned({}, "silent", 59.0, NOW) == {}
    assert habit(habits, "silent", NOW + 8 * 86_400_000) == 0
    assert habit({"silent": Habit(90.0, NOW)}, "idle", NOW) == 0


def test_what_was_reported_is_a_habit_once_it_ends_by_itself_again_for_as_long_as_both_lasted() -> None:
    once = learned_again({}, "spell", 2000.0, NOW)
    twice = learned_again(once, "spell", 500.0, NOW + 3_600_000)
    thrice = learned_again(twice, "spell", 1500.0, NOW + 7_200_000)
    late = learned_again(once, "spell", 2000.0, NOW + 8 * 86_400_000)

    assert [habit(h, "spell", NOW + 7_200_000) for h in (once, twice, thrice)] == [0, 500, 1500]
    assert habit(late, "spell", NOW + 8 * 86_400_000) == 0


def test_a_rest_of_the_whole_group_is_a_habit_once_two_that_were_reported_have_ended() -> None:
    """A job that works now and then while its members stay: the first rest that ends may have been mended."""
    reported = Incident("i", 0, "stuck_member", "", {}, "", 0)
    known: list[float] = []
    state = JudgeState(0)
    for at, rest_s in enumerate((13_500.0, 12_000.0)):
        at_rest = JudgeState(0, habits=state.habits, incident=reported, at_rest_s=rest_s)
        state = with_ended_pauses(at_rest, JudgeState(0, habits=state.habits), NOW + at * 3_600_000, NOW)
        known.append(habit(state.habits, "rest", NOW))

    assert known == [0.0, 12_000.0]


def test_a_rest_of_a_topic_is_a_habit_once_one_of_its_partitions_moves() -> None:
    resting = JudgeState(0, standing={"t/0": Standing(5, topic_rest_s=1100.0)})
    moved = JudgeState(0, standing={"t/0": Standing(5, topic_rest_s=0.0)})

    assert habit(with_ended_pauses(resting, resting, NOW, NOW).habits, "topic_rest", NOW) == 0
    assert habit(with_ended_pauses(resting, moved, NOW, NOW).habits, "topic_rest", NOW) == 1100
