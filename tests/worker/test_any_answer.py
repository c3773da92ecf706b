"""Whatever a broker answers about log ends and commits, only the topic and the group that it is about are judged otherwise."""

from __future__ import annotations

import asyncio
from typing import Any

import numpy as np
import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kagent.contract.events import Beat, TopicOffsets, encode
from kagent.lag.log_ends import UNKNOWN
from kagent.worker.engine import GroupEngine
from kagent.worker.http import server
from kagent.worker.log_end_sampler import LogEndSample
from tests.worker.test_engine import NOW, commit, desk, event, log_end, recommendation

pytestmark = pytest.mark.slow

INT64 = st.integers(-(2**63), 2**63 - 1)
columns = st.lists(INT64 | st.sampled_from([UNKNOWN, 0, 2**63 - 1]), max_size=5)
times = INT64 | st.integers(NOW - 100_000, NOW + 100_000)


@st.composite
def samples(draw: st.DrawFn) -> LogEndSample:
    """Log starts, ends and last stable offsets of one topic, of any size and at any time."""
    start, end, stable = (np.array(draw(columns), np.int64) for _ in range(3))
    return LogEndSample(
        "hurt", draw(st.sampled_from(["a", "b", ""])), draw(times), draw(times), start, end, stable
    )


def engine() -> GroupEngine:
    """A group that reads ``orders``, and one that reads ``hurt`` and has an open incident."""
    made = desk()
    made.take(0, 0, event("sound", [commit(0, 5, 1)]))
    made.take(0, 1, event("hurt", [TopicOffsets("hurt", None, [0], [5], [NOW], [2])]))
    made.adopt(0, {"main/hurt": recommendation("hurt")})
    return made


def judged(made: GroupEngine, offset: int) -> Any:
    made.take(0, offset, encode(Beat("main", made.now, "r", 1.0, False, [3], [0], [9], [9], [9])))
    log_end(made, 40)
    (found,) = asyncio.run(made.tick(0, made.now))
    return found


@given(st.lists(samples(), min_size=1, max_size=6))
def test_log_ends_of_any_shape_cost_their_topic_at_most(answers: list[LogEndSample]) -> None:
    made = engine()
    for second, answer in enumerate(answers):
        clock: Any = made.context.clock
        clock.advance(1)
        made.logs.sampled("main", [answer], {}, {})
        found = judged(made, 2 + second)

        assert made.looks["main/sound"].suppressed_by != "blind"
        assert (found.status, found.judged + found.blind) == ("watching", 2)
    for group in asyncio.run(server.view(made, True)).groups:
        orjson.dumps(server.group_json(group, whole=True))


@given(st.dictionaries(st.tuples(st.text(max_size=4), st.integers(-1, 2**31 - 1)), INT64, max_size=5))
def test_commits_of_any_shape_cost_their_group_at_most(committed: dict[tuple[str, int], int]) -> None:
    made = engine()
    made.ingest.rebuild(0, made.index.entries(0)["main/hurt"], committed)

    assert judged(made, 2).status == "watching"
    assert made.looks["main/sound"].suppressed_by != "blind"
