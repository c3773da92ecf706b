"""Every group is in exactly one state, whatever is true of it at once, and the counts add up to the number of groups."""

from __future__ import annotations

import asyncio
import re
from collections import Counter

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kagent.client.incident_text import counted_groups
from kagent.contract.events import Beat, GroupEvent, TopicOffsets, encode
from kagent.contract.recommendation import State
from kagent.detect.evidence import NEW_MS
from kagent.detect.state import JudgeState
from kagent.settings import Cluster, Settings, Topics
from kagent.testing import FakeClock, RecordingPublisher
from kagent.worker.engine import GroupEngine
from kagent.worker.group_state import EvaluationState, group_state
from kagent.worker.status import state_message
from tests.fixtures.coordinators import no_answers
from tests.worker.test_engine import NOW, tables

truths = st.fixed_dictionaries({name: st.booleans() for name in ("ignored", "blind", "muted", "new")})


@given(truths)
def test_the_first_that_is_true_is_the_state(true: dict[str, bool]) -> None:
    first_seen_ms = NOW - (0 if true["new"] else NEW_MS)
    known = {name: true[name] for name in ("ignored", "blind", "muted")}

    state = group_state(**known, first_seen_ms=first_seen_ms, now_ms=NOW)

    order = ("ignored", "blind", "muted", "learning", "judged")
    holds = {**known, "learning": true["new"], "judged": True}
    assert state == next(name for name in order if holds[name])


@given(st.lists(truths, max_size=12))
@pytest.mark.slow
def test_each_group_of_a_tick_is_counted_once(groups: list[dict[str, bool]]) -> None:
    """Through the worker's tick and the state message, up to the sentence that people read."""
    state = asyncio.run(ticked(groups))

    expected = Counter[str](state_of(true) for true in groups)
    # What stands in brackets is part of the judged ones.
    said = re.sub(r" \(.*?\)", "", counted_groups(state))
    total = sum(int(n) for n in re.findall(r"\b(\d+) (?:groups? )?(?:judged|blind|ignored)", said))
    assert total == len(groups) == state.judged + state.blind + state.ignored
    assert (state.blind, state.ignored) == (
        expected[EvaluationState.BLIND],
        expected[EvaluationState.IGNORED],
    )
    assert (state.learning, state.muted) == (
        expected[EvaluationState.LEARNING],
        expected[EvaluationState.MUTED],
    )
    assert (state.learning_until is not None) == bool(expected[EvaluationState.LEARNING])
    assert (state.muted_until is not None) == bool(expected[EvaluationState.MUTED])


def state_of(true: dict[str, bool]) -> EvaluationState:
    known = {name: true[name] for name in ("ignored", "blind", "muted")}
    return group_state(**known, first_seen_ms=NOW - (0 if true["new"] else NEW_MS), now_ms=NOW)


async def ticked(groups: list[dict[str, bool]]) -> State:
    """The state message after one tick. A group is made blind by a row of its members that cannot be read."""
    settings = Settings(
        clusters={"main": Cluster(bootstrap="127.0.0.1:1")}, ignore=["ignored-*"], topics=Topics(partitions=1)
    )
    engine = GroupEngine.of(settings, tables(), RecordingPublisher([]), no_answers, "w:1", FakeClock())
    engine.load([0], {0: 0})
    for at, true in enumerate(groups):
        name = f"{'ignored-' if true['ignored'] else ''}{at}"
        commit = TopicOffsets("orders", None, [0], [5], [NOW], [at])
        engine.take(0, at, encode(GroupEvent("main", name, 0, NOW, [commit])))
        entry = engine.index.entries(0)[f"main/{name}"]
        entry.judged = JudgeState(first_seen=NOW - (0 if true["new"] else NEW_MS))
        if true["blind"]:
            entry.unreadable.add("members")
        if true["muted"]:
            engine.mutes.take(
                f"main/{name}", orjson.dumps({"until": NOW + 60_000, "why": "deploy", "by": "me"})
            )
    count = len(groups)
    engine.take(0, count, encode(Beat("main", NOW, "r", 1.0, False, [0], [0], [count], [count], [count])))
    return state_message("main", await engine.tick(0, NOW), 1, NOW, 10)
