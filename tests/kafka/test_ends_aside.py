"""Who drops a client last does not wait for its end."""

from __future__ import annotations

import threading
from contextlib import suppress
from queue import Queue

from kagent.kafka.ends_aside import EndsAside
from tests.fixtures.waiting import PATIENCE_S


class SlowEnd:
    """Its end waits until it may go on; which thread that was is put into the queue."""

    def __init__(self, may_end: threading.Event, ended_in: Queue[threading.Thread]) -> None:
        self.may_end, self.ended_in = may_end, ended_in

    def __enter__(self) -> None: ...

    def __exit__(self, *_: object) -> None:
        self.ended_in.put(threading.current_thread())

    def __del__(self) -> None:
        assert self.may_end.wait(PATIENCE_S)
        self.ended_in.put(threading.current_thread())


def test_a_client_ends_in_a_thread_of_its_own() -> None:
    may_end, ended_in = threading.Event(), Queue[threading.Thread]()
    held = EndsAside(SlowEnd(may_end, ended_in))

    del held
    may_end.set()  # not reached if the end were waited for here

    assert ended_in.get(timeout=PATIENCE_S) is not threading.current_thread()


def test_frames_that_an_error_holds_end_it_there_too() -> None:
    may_end, ended_in = threading.Event(), Queue[threading.Thread]()
    may_end.set()

    def fails() -> None:
        _held = EndsAside(SlowEnd(may_end, ended_in))
        raise ValueError

    with suppress(ValueError):
        fails()

    assert ended_in.get(timeout=PATIENCE_S) is not threading.current_thread()


def test_a_client_that_is_ended_is_closed_though_a_frame_holds_it_still() -> None:
    may_end, ended_in = threading.Event(), Queue[threading.Thread]()
    client = SlowEnd(may_end, ended_in)
    held = EndsAside(client)

    held.end()
    held.end()  # a second time there is nothing left to end
    assert ended_in.get(timeout=PATIENCE_S) is not threading.current_thread()

    may_end.set()
    del held, client
    assert ended_in.get(timeout=PATIENCE_S) is threading.current_thread()
    assert ended_in.empty()
