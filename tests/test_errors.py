"""The one rule of errors at the start: what a service waits for, and what ends it."""

from __future__ import annotations

import pytest

from kagent.errors import (
    InputError,
    KafkaError,
    KagentError,
    Misconfigured,
    SettingsError,
    SetupError,
    mendable,
)
from kagent.kafka.reach import LoginRefused


def test_a_cluster_that_is_away_or_lacks_a_right_or_topic_is_waited_for() -> None:
    assert mendable(KafkaError("The cluster cannot be reached."))


@pytest.mark.parametrize(
    "kind", [KagentError, SettingsError, InputError, SetupError, Misconfigured, LoginRefused]
)
def test_what_only_a_change_here_mends_is_not_waited_for(kind: type[KagentError]) -> None:
    assert not mendable(kind("Change it."))


def test_an_error_in_the_code_is_not_waited_for() -> None:
    assert not mendable(ValueError("a fault"))
