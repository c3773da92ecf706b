"""Who drops a client last does not wait for its end."""

from __future__ import annotations

import threading
from contextlib import suppress

from kagent.kafka.ends_aside import EndsAside
from tests.fixtures.waiting import PATIENCE_S


class SlowEnd:
    def __init__(self) -> None:
        self.may_end, self.ended_in = threading.Event(), list[threading.Thread]()

    def __del__(self) -> None:
        assert self.may_end.wait(PATIENCE_S)
        self.ended_in.append(threading.current_thread())
        self.ended.set()

    ended = threading.Event()


def test_a_client_ends_in_a_thread_of_its_own() -> None:
    held = EndsAside(SlowEnd())
    may_end, ended_in = held.client.may_end, held.client.ended_in

    del held
    may_end.set()  # not reached if the end were waited for here

    assert SlowEnd.ended.wait(PATIENCE_S)
    assert ended_in[0] is not threading.current_thread()


def test_frames_that_an_error_holds_end_it_there_too() -> None:
    ended_in: list[threading.Thread] = []

    def fails() -> None:
        held = EndsAside(SlowEnd())
        held.client.may_end.set()
        nonlocal ended_in
        ended_in = held.client.ended_in
        raise ValueError

    SlowEnd.ended.clear()
    with suppress(ValueError):
        fails()

    assert SlowEnd.ended.wait(PATIENCE_S)
    assert ended_in[0] is not threading.current_thread()
