"""Which mutes hold."""

from __future__ import annotations

import orjson

from kagent.worker.mute_state import MuteState

NOW_MS = 1_700_000_000_000


def record(why: str) -> bytes:
    return orjson.dumps({"until": NOW_MS + 1000, "why": why, "by": "me"})


def test_a_mute_that_a_full_read_of_the_topic_no_longer_holds_has_ended() -> None:
    mutes = MuteState()
    for key in ("main/orders", "main/pay*", "main/kept"):
        mutes.take(key, record("deploy"))

    mutes.take("main/over", orjson.dumps({"until": NOW_MS - 1, "why": "deploy", "by": "me"}))

    lost = mutes.retain({"main/kept"}, NOW_MS)

    assert sorted(lost) == ["main/orders", "main/pay*"]

    assert mutes.of("main/orders", "main", "orders", NOW_MS) is None
    assert mutes.of("main/payments", "main", "payments", NOW_MS) is None
    assert mutes.of("main/kept", "main", "kept", NOW_MS) is not None


def test_a_groups_own_mute_precedes_a_patterns_while_it_holds() -> None:
    mutes = MuteState()
    mutes.take("main/pay*", record("pattern"))
    mutes.take("main/payments", orjson.dumps({"until": NOW_MS + 10, "why": "own", "by": "me"}))

    own = mutes.of("main/payments", "main", "payments", NOW_MS)
    later = mutes.of("main/payments", "main", "payments", NOW_MS + 11)

    assert own is not None
    assert later is not None
    assert (own.why, later.why) == ("own", "pattern")
