"""What an onlooker who sees all says of an action."""

from __future__ import annotations

from kagent.simulator.truth import CALM_S, Truth


def seen(late: dict[float, bool]) -> float | None:
    """How long an action of second 100 took, by whether a member was late at each of these seconds."""
    truth = Truth.begin(1)
    for now, is_late in late.items():
        if now >= 100:
            truth.acted[0] = 100
        truth.note_calm(now, [is_late])
    return truth.took(0)


def test_an_action_took_until_nobody_was_late_for_a_while() -> None:
    assert seen({100: True, 200: True, 300: False, 300 + CALM_S: False}) == 200


def test_a_lull_shorter_than_that_is_no_end() -> None:
    assert seen({100: True, 200: False, 200 + CALM_S / 2: True, 600: False, 600 + CALM_S: False}) == 500


def test_a_burst_after_the_drain_is_none_of_the_action() -> None:
    assert seen({100: True, 200: False, 200 + CALM_S: False, 3600: True}) == 100


def test_what_was_calm_before_the_action_says_nothing() -> None:
    assert seen({0: False, 50: False, 100: True, 500: True}) is None


def test_an_incident_that_ends_while_a_member_is_late_is_taken_back() -> None:
    truth = Truth.begin(1)
    truth.late_at[0] = [1000.0, 1010.0]

    assert [truth.was_late(0, time, 10.0) for time in (990.0, 1010.0, 1015.0, 1030.0)] == [
        True,
        True,
        True,
        False,
    ]
