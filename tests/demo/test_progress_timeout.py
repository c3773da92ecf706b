"""Progress, not the clock, times out."""

from __future__ import annotations

from kagent.demo.progress_timeout import Patience
from kagent.embedded.machine import slowness


def test_progress_begins_the_waiting_anew_and_repetition_does_not() -> None:
    now = [0.0]
    patience = Patience(60, 600, lambda: now[0], lambda: 1.0)
    patience.saw(1)

    now[0] = 50
    patience.saw(1)
    assert patience.left_s == 10
    patience.saw(2)
    assert patience.left_s == 60
    now[0] = 200
    assert patience.left_s == 0


def test_a_busy_machine_is_given_as_much_longer_as_it_is_busy() -> None:
    now, load = [0.0], [1.0]
    patience = Patience(60, 600, lambda: now[0], lambda: load[0])
    patience.saw(1)

    now[0] = 100
    assert patience.left_s == 0
    load[0] = 20.0
    assert patience.left_s == 1100


def test_the_machine_is_never_taken_for_faster_than_a_quiet_one() -> None:
    assert slowness() >= 1


def test_there_is_an_end_even_if_something_moves_for_ever() -> None:
    now = [0.0]
    patience = Patience(60, 600, lambda: now[0], lambda: 1.0)

    for second in range(0, 600, 30):
        now[0] = second
        patience.saw(second)
        assert patience.left_s > 0
    now[0] = 600
    patience.saw("more")

    assert patience.left_s == 0
