"""`kagent topics` says what it waits for: a cluster that does not answer is given up only after ten seconds."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

import pytest
from click.testing import CliRunner

from kagent.cli import root


def test_the_cluster_that_is_waited_for_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    named = []

    @contextlib.contextmanager
    def waiting_for(bootstrap: str) -> Iterator[None]:
        named.append(bootstrap)
        yield

    monkeypatch.setattr("kagent.commands.output.waiting_for", waiting_for)
    monkeypatch.setattr("kagent.kafka.reach.refuse_absent", lambda bootstrap: None)
    monkeypatch.setattr("kagent.kafka.topics.ensure", lambda *_: [])
    answer = CliRunner().invoke(root, ["-b", "kafka:9092", "topics"])

    assert (answer.exit_code, named) == (0, ["kafka:9092"])
