"""``kagent plan --group`` on a running group."""

from __future__ import annotations

import json
from typing import Any

import pytest

from kagent.cli import main

pytestmark = pytest.mark.kafka


def test_a_running_group_with_a_heavy_member_is_told_what_to_move(
    cast: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    cast.topic("plan-live", 4)
    cast.produce("plan-live", {0: 300, 1: 280, 2: 10, 3: 10})
    one = cast.join("plan-live-group", ["plan-live"], **{"client.id": "one"})
    two = cast.join("plan-live-group", ["plan-live"], **{"client.id": "two"})
    cast.settle("plan-live-group", one, two)
    for consumer in (one, two):
        held = consumer.assignment()
        for part in held:
            part.offset = 0
        consumer.commit(offsets=held, asynchronous=False)

    main(["--bootstrap", cast.bootstrap, "plan", "--group", "plan-live-group", "--json"])
    told = json.loads(capsys.readouterr().out)

    assert told["verdict"] == "rebalance"
    assert told["greatest"]["now"] == 580
    assert told["greatest"]["best"] == 300
    assert told["greatest"]["after"] == 300
    assert [move["lag"] for move in told["moves"]] == [280]


def test_a_group_that_is_not_there_is_a_sentence(cast: Any, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["--bootstrap", cast.bootstrap, "plan", "--group", "nobody-at-all"])

    assert "nobody-at-all" in capsys.readouterr().err
