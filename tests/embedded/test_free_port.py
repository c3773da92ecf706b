"""Ports for brokers and workers that are started here."""

from __future__ import annotations

from kagent.embedded.broker import free_port


def test_a_port_that_was_given_and_is_not_opened_yet_is_not_given_again() -> None:
    assert len({free_port() for _ in range(1000)}) == 1000
