"""The worker without Faust: rows, mutes, common incidents and what a restart takes back."""

from __future__ import annotations

import asyncio
import threading
from types import SimpleNamespace
from typing import Any

import orjson
import pytest

from kagent.contract.admission import Refused
from kagent.contract.events import Beat, GroupEvent, TopicOffsets, TopicTombstones, encode
from kagent.contract.recommendation import (
    Basis,
    GroupKind,
    Recommendation,
    Resolution,
    Severity,
    Skew,
    Status,
    Verdict,
    from_bytes,
)
from kagent.detect.state import JudgeState
from kagent.errors import KafkaError
from kagent.incident.correlation import CorrelationState
from kagent.incident.evaluate import Candidate, judge
from kagent.settings import Cluster, Settings
from kagent.tables.members import MembersRow
from kagent.testing import FakeClock, RecordingPublisher, memory_tables
from kagent.worker.engine import GroupEngine, in_thread
from kagent.worker.groups import Entry, Index
from tests.fixtures.coordinators import no_answers

NOW = 1_700_000_000_000


def tables() -> Any:
    return memory_tables()


def desk(rows: Any = None, sent: list[tuple[str, bytes | None]] | None = None) -> GroupEngine:
    publish = RecordingPublisher([] if sent is None else sent)

    settings = Settings(clusters={"main": Cluster(bootstrap="127.0.0.1:1")})
    made = GroupEngine.of(
        settings, rows if rows is not None else tables(), publish, no_answers, "w:1", FakeClock()
    )
    made.load([0], {0: 0})
    return made


def event(group: str, offsets: list[TopicOffsets], tombstones: list[TopicTombstones] | None = None) -> bytes:
    return encode(GroupEvent("main", group, 3, NOW, offsets, tombstones or []))


def commit(partition: int, offset: int, at: int) -> TopicOffsets:
    return TopicOffsets("orders", None, [partition], [offset], [NOW], [at])


def test_rows_are_what_a_restarted_desk_begins_with() -> None:
    rows = tables()
    first = desk(rows)
    first.take(0, 0, event("g", [commit(1, 42, 7)]))

    second = desk(rows)

    commits = second.index.entries(0)["main/g"].commits["orders"]
    assert (list(commits.partition), list(commits.committed), list(commits.source_offset)) == ([1], [42], [7])
    assert second.index.entries(0)["main/g"].source == 3


@pytest.mark.parametrize("row", ["no state", "no row"])
def test_a_group_whose_row_of_members_cannot_be_read_is_blind_for_a_reason_that_can_be_understood(
    row: str,
) -> None:
    rows = tables()
    first = desk(rows)
    first.take(0, 0, event("g", [commit(1, 42, 7)]))
    if row == "no state":
        rows.members["main/g"] = MembersRow("main", "g", 0, 3, {"slots": 1})
    else:
        del rows.members["main/g"]

    second = desk(rows)

    entry = second.index.entries(0)["main/g"]
    blind = second.evaluator.observe(0, entry, NOW).blind or ""
    assert ("__consumer_offsets-3" in blind) == (row == "no state")
    assert "--1" not in blind
    assert "its coordinator is asked" in blind or row == "no state"


def test_an_older_commit_that_comes_again_changes_no_row() -> None:
    rows = tables()
    worker = desk(rows)
    worker.take(0, 0, event("g", [commit(1, 42, 7)]))
    before = dict(rows.lag)

    worker.take(0, 1, event("g", [commit(1, 30, 5)]))

    assert rows.lag == before


def test_rows_of_a_partition_that_was_given_away_are_not_looked_after() -> None:
    rows = tables()
    desk(rows).take(0, 0, event("g", [commit(1, 42, 7)]))
    other = desk(rows)

    other.load([1], {})

    assert other.group_count == 0


def test_events_that_never_came_blind_until_a_replay() -> None:
    worker = desk()
    worker.take(0, 5, encode(Beat("main", NOW, "r", 1.0, False, [3], [0], [10], [10], [10])))

    assert "--replay" in (worker.coverage[0].why_blind("main", 3, NOW) or "")
    again = desk(worker.tables)
    assert again.coverage[0].lost


def test_what_is_no_event_is_refused_and_the_next_one_is_taken() -> None:
    worker = desk()
    (refused,) = worker.take(0, 0, b"\x00not json")

    assert worker.take(0, 1, event("g", [commit(1, 1, 1)])) == []

    assert "JSON" in str(refused.error)
    assert worker.group_count == 1


def test_of_an_array_each_event_that_is_not_taken_is_told_and_costs_no_other(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    worker, applied = desk(), Index.take

    def failing(index: Index, partition: int, event: GroupEvent) -> Entry:
        if event.group == "defect":
            raise ZeroDivisionError
        return applied(index, partition, event)

    monkeypatch.setattr(Index, "take", failing)
    bad = [b'{"type":"group"}', event("defect", [commit(1, 1, 1)]), b"17"]
    good = [event(f"g{n}", [commit(1, 1, 1)]) for n in range(4)]

    told = worker.take(
        0, 0, b"[" + b",".join(v for pair in zip(good, [*bad, good[3]], strict=True) for v in pair) + b"]"
    )

    assert [(found.value, type(found.error)) for found in told] == [
        (bad[0], Refused),
        (bad[1], ZeroDivisionError),
        (bad[2], Refused),
    ]
    assert sorted(worker.index.entries(0)) == [f"main/g{n}" for n in range(4)]


def test_a_mute_holds_until_it_is_taken_back() -> None:
    worker = desk()
    worker.mutes.take("main/g", orjson.dumps({"until": NOW + 1000, "why": "deploy", "by": "me"}))
    assert worker.mutes.by_key["main/g"].why == "deploy"
    with pytest.raises(Refused, match="not JSON"):
        worker.mutes.take("main/g", b"nonsense")
    assert "main/g" in worker.mutes.by_key

    worker.mutes.take("main/g", None)

    assert worker.mutes.by_key == {}


def six_of_one_topic(worker: GroupEngine) -> list[tuple[Any, Candidate]]:
    """Six of twenty groups read one topic, and each would open an incident."""
    other = TopicOffsets("payments", None, [1], [1], [NOW], [1])
    for n in range(20):
        worker.take(0, n, event(f"g{n}", [commit(1, 1, n) if n < 6 else other]))
    entries = worker.index.entries(0)
    return [
        (
            entries[f"main/g{n}"],
            Candidate("main", f"g{n}", f"id{n}", "rebalance", NOW, "digest", topics=("orders",)),
        )
        for n in range(6)
    ]


async def test_what_many_groups_of_one_topic_have_in_common_is_published_once_and_outlives_the_process() -> (
    None
):
    sent: list[tuple[str, bytes | None]] = []
    rows = tables()
    worker = desk(rows, sent)
    found = six_of_one_topic(worker)

    worker.ticks.correlate(0, found, NOW)

    assert [key for key, _ in sent] == ["main/<topic orders>"]
    assert desk(rows).recent["main"].open == worker.recent["main"].open


async def test_a_common_incident_that_could_not_be_published_is_published_at_the_next_tick() -> None:
    sent: list[tuple[str, bytes | None]] = []
    worker = desk(None, sent)
    found = six_of_one_topic(worker)
    publish = worker.publisher.send

    def broken(*_: Any) -> None:
        raise KafkaError("the broker is away")

    worker.publisher.send = broken
    with pytest.raises(KafkaError):
        worker.ticks.correlate(0, found, NOW)
    assert worker.recent.get("main", CorrelationState()) == CorrelationState()

    worker.publisher.send = publish
    worker.ticks.correlate(0, found, NOW)
    assert [key for key, _ in sent] == ["main/<topic orders>"]


def test_revisions_increase_under_a_key_and_go_on_after_a_restart() -> None:
    sent: list[tuple[str, bytes | None]] = []
    worker = desk(None, sent)
    worker.take(0, 0, event("g", [commit(1, 5, 1)]))
    worker.adopt(0, {"main/g": recommendation("g", revision=7)})
    entry = worker.index.entries(0)["main/g"]

    worker.publisher.publish(0, entry.key, [recommendation("g"), recommendation("g")])

    assert [from_bytes(value or b"").revision for _, value in sent] == [8, 9]  # type: ignore[union-attr]


def test_what_was_put_and_not_committed_counts_as_not_published() -> None:
    worker = desk()
    worker.take(0, 0, event("g", [commit(1, 5, 1)]))
    worker.publisher.publish(0, "main/g", [recommendation("g")])
    assert set(worker.published) == {"main/g"}

    worker.load([0], {0: 1})  # a rebalance: what waited is dropped, the tables hold what was committed

    assert worker.published == {}


def test_an_open_incident_that_is_gone_from_its_topic_is_published_again() -> None:
    sent: list[tuple[str, bytes | None]] = []
    worker = desk(sent=sent)
    for name in ("gone", "there"):
        worker.take(0, 0, event(name, [commit(1, 5, 1)]))
    worker.adopt(0, {f"main/{name}": recommendation(name, revision=7) for name in ("gone", "there")})
    worker.context.clock.advance(60)  # type: ignore[attr-defined]

    assert worker.restate(0, {"main/there"}, worker.now)

    (key, value), *more = sent
    again = from_bytes(value or b"")
    assert isinstance(again, Recommendation)
    assert (key, again.id, again.status, again.revision, more) == ("main/gone", "i1", Status.OPEN, 8, [])
    assert worker.refused["recommendation", "gone"] == 1


def test_an_incident_of_the_last_moments_is_not_taken_for_gone() -> None:
    sent: list[tuple[str, bytes | None]] = []
    worker = desk(sent=sent)
    worker.take(0, 0, event("g", [commit(1, 5, 1)]))
    worker.adopt(0, {"main/g": recommendation("g")})

    assert not worker.restate(0, set(), NOW)
    assert sent == []


def test_after_a_start_an_incident_that_only_the_row_knows_gets_a_revision_beyond_those_before() -> None:
    rows, sent = tables(), list[tuple[str, bytes | None]]()
    first = desk(rows)
    first.take(0, 0, event("g", [commit(1, 5, 1)]))
    first.adopt(0, {"main/g": recommendation("g", revision=7)})
    second = desk(rows, sent)
    second.context.clock.advance(60)  # type: ignore[attr-defined]

    second.restate(0, set(), second.now)

    again = from_bytes(sent[0][1] or b"")
    assert isinstance(again, Recommendation)
    assert again.revision > 1_000_000_000


def progress(start: int, offset: int) -> bytes:
    end = [offset]
    return encode(Beat("main", NOW, "r", 1.0, False, [3], [start], end, end, end))


def test_what_another_worker_heard_of_a_partition_in_between_never_looks_lost() -> None:
    rows = tables()
    first, second = desk(rows), desk(rows)
    first.take(0, 0, progress(0, 10))
    second.load([0], {0: 1})
    for offset in range(1, 5):  # of these the first hears nothing: the partition is the second's
        second.take(0, offset, progress(10 * offset, 10 * offset + 10))

    first.load([0], {0: 5})
    first.take(0, 5, progress(50, 60))

    assert first.coverage[0].status("main", NOW) == ("watching", None)


def test_a_gap_that_was_found_and_not_committed_outlives_a_rebalance() -> None:
    worker = desk()
    worker.take(0, 0, progress(0, 10))
    worker.take(0, 1, progress(20, 30))
    worker.tables.coverage.clear()  # as the outbox drops what was put after the revocation

    worker.load([0], {0: 1})
    worker.take(0, 1, progress(20, 30))

    assert worker.coverage[0].status("main", NOW)[0] == "blind"


def test_a_state_is_in_no_row_before_its_message_is_published() -> None:
    worker = desk()
    worker.take(0, 0, event("g", [commit(0, 1, 1)]))
    entry, states = worker.index.entries(0)["main/g"], worker.states
    with pytest.raises(KeyError):
        states["main/g"]

    states["main/g"] = JudgeState(first_seen=NOW)
    assert states["main/g"] == JudgeState(first_seen=NOW)
    assert (entry.judged, worker.tables.verdicts) == (None, {})

    states.drop("main/g")
    assert "main/g" not in states

    states["main/g"] = JudgeState(first_seen=NOW)
    states.write("main/g")
    assert entry.judged == JudgeState(first_seen=NOW)
    assert set(worker.tables.verdicts) == set(states) == {"main/g"}


async def test_groups_over_the_limit_are_counted_not_kept() -> None:
    worker = desk()
    worker.context.settings = worker.settings.model_copy(
        update={"worker": worker.settings.worker.model_copy(update={"max_groups": 1})}
    )
    worker.take(0, 0, event("a", [commit(0, 1, 1)]))
    worker.take(0, 1, event("b", [commit(0, 1, 2)]))

    assert (worker.group_count, worker.counts["groups_over_limit"]) == (1, 1)


async def test_sampling_that_takes_longer_than_its_interval_is_said_once_and_in_the_state(
    caplog: pytest.LogCaptureFixture,
) -> None:
    worker = desk()
    beat(worker, 0)
    for took_s in (1.0, 12.0, 13.0):
        worker.logs.sampling_took("main", took_s)
    (slow,) = await worker.tick(0, NOW)
    worker.logs.sampling_took("main", 4.0)
    (quick,) = await worker.tick(0, NOW)

    said = [r.getMessage() for r in caplog.records if r.levelname == "WARNING"]
    assert [text for text in said if "takes 12 s, worker.sample is 5 s" in text] == said
    assert slow.reason is not None
    assert "takes 13 s" in slow.reason
    assert (slow.status, quick.reason) == (quick.status, None)


@pytest.mark.parametrize("name", ["<script>alert(1)</script>", "bad\x1b[2J", "x" * 32_000, "a/b", ""])
async def test_any_name_is_data(name: str) -> None:
    worker = desk()
    worker.take(0, 0, event(name, [commit(0, 1, 1)]))

    summaries = await worker.tick(0, NOW)

    assert [s.judged + s.blind for s in summaries] == [1]


async def test_a_group_that_cannot_be_judged_silences_no_other(monkeypatch: pytest.MonkeyPatch) -> None:
    worker = desk()
    worker.take(0, 0, encode(Beat("main", NOW, "r", 1.0, False, [3], [0], [10], [10], [10])))
    for n, name in enumerate(("broken", "sound"), 1):
        worker.take(0, n, event(name, [commit(0, 1, n)]))
    sound = worker.index.entries(0)["main/sound"]

    def surprising(seen: Any, state: Any, policy: Any) -> Any:
        if seen.group == "broken":
            raise ZeroDivisionError
        return judge(seen, state, policy)

    monkeypatch.setattr("kagent.incident.session.judge", surprising)

    summaries = await worker.tick(0, NOW)

    assert [(s.judged, s.blind, s.set_aside) for s in summaries] == [(1, 1, 1)]
    assert sound.judged is not None
    assert "broken: its judgement failed (ZeroDivisionError" in (summaries[0].set_aside_reason or "")


async def test_a_group_that_was_set_aside_is_judged_again_when_its_data_changes(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    worker = desk()
    worker.take(0, 0, event("g", [commit(0, 1, 1)]))
    asked: list[int] = []

    def surprising(seen: Any, state: Any, policy: Any) -> Any:
        asked.append(seen.now)
        raise ZeroDivisionError

    monkeypatch.setattr("kagent.incident.session.judge", surprising)
    await worker.tick(0, NOW)
    await worker.tick(0, NOW + 1)
    assert asked == [NOW]
    monkeypatch.setattr("kagent.incident.session.judge", judge)

    worker.take(0, 1, event("g", [commit(0, 2, 2)]))
    summaries = await worker.tick(0, NOW + 2)

    assert summaries[0].set_aside == 0
    assert worker.set_aside == {}


async def test_a_memory_that_makes_the_judgement_raise_is_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    worker = desk()
    worker.take(0, 0, event("g", [commit(0, 1, 1)]))
    worker.index.entries(0)["main/g"].judged = JudgeState(first_seen=7)

    def of_another_release(seen: Any, state: Any, policy: Any) -> Any:
        if state is not None and state.first_seen == 7:
            raise ValueError("'melancholy' is not a valid Verdict")
        return judge(seen, state, policy)

    monkeypatch.setattr("kagent.incident.session.judge", of_another_release)

    summaries = await worker.tick(0, NOW)

    assert summaries[0].set_aside == 0
    assert worker.refused["memory", "not_judged"] == 1


async def test_the_incident_of_a_deleted_group_is_closed() -> None:
    sent: list[tuple[str, bytes | None]] = []
    worker = desk(sent=sent)
    worker.take(0, 0, event("g", [commit(1, 5, 1)]))
    entry = worker.index.entries(0)["main/g"]
    said = recommendation("g")
    worker.adopt(0, {"main/g": said})
    assert entry.judged is not None
    assert entry.judged.incident is not None

    worker.take(0, 1, event("g", [], [TopicTombstones("orders", [1], [9])]))
    await worker.tick(0, NOW)

    last = from_bytes(sent[-1][1] or b"")
    assert isinstance(last, Recommendation)
    assert (last.id, last.status, last.resolution) == (said.id, Status.RESOLVED, Resolution.EXPIRED)
    assert entry.judged.incident is None


def test_a_resolved_message_closes_the_row_that_did_not_hear_of_it() -> None:
    worker = desk()
    worker.take(0, 0, event("g", [commit(1, 5, 1)]))
    worker.adopt(0, {"main/g": recommendation("g")})

    worker.adopt(0, {"main/g": recommendation("g").model_copy(update={"status": Status.RESOLVED})})

    state = worker.judged_state("main/g")
    assert state is not None
    assert state.incident is None


def recommendation(group: str, revision: int = 0) -> Recommendation:
    return Recommendation(
        id="i1",
        cluster="main",
        group=group,
        status=Status.OPEN,
        verdict=Verdict.REBALANCE,
        severity=Severity.TICKET,
        confidence="high",
        reason="r",
        group_kind=GroupKind.CLASSIC,
        opened_at=NOW,
        as_of=NOW,
        valid_until=NOW,
        skew=Skew(now=2.0),
        basis=Basis(generation=1, digest="d"),
        revision=revision,
    )


async def test_a_group_that_is_gone_is_forgotten_once_its_last_message_is_off_the_topic() -> None:
    sent: list[tuple[str, bytes | None]] = []
    worker = desk(sent=sent)
    clock: Any = worker.context.clock
    worker.take(0, 0, event("g", [commit(1, 5, 1)]))
    worker.take(0, 1, event("thrown-away", [commit(1, 5, 1)]))
    worker.adopt(0, {"main/g": recommendation("g")})
    for name in ("g", "thrown-away"):
        worker.take(0, 2, event(name, [], [TopicTombstones("orders", [1], [9])]))
    await worker.tick(0, NOW)

    clock.advance(2 * 86_400)
    await worker.tick(0, worker.now)
    assert set(worker.index.entries(0)) == set(worker.looks) == {"main/g"}

    clock.advance(7 * 86_400)
    await worker.tick(0, worker.now)
    assert sent[-1] == ("main/g", None)
    assert (worker.group_count, worker.looks, worker.published) == (0, {}, {})


async def test_a_deleted_group_is_neither_shown_nor_counted_and_one_that_comes_back_is() -> None:
    worker = desk()
    worker.take(0, 0, event("g", [commit(1, 5, 1)]))
    worker.take(0, 1, event("stays", [commit(1, 5, 1)]))
    await worker.tick(0, NOW)
    assert set(worker.context.live.rows[0]) == {"main/g", "main/stays"}

    worker.take(0, 2, event("g", [], [TopicTombstones("orders", [1], [9])]))
    (summary,) = await worker.tick(0, NOW)

    assert set(worker.context.live.rows[0]) == {"main/stays"}
    assert summary.judged + summary.blind == 1
    # What is known of it stays: an older event that a replay reads again must not bring it back.
    worker.take(0, 3, event("g", [commit(1, 5, 1)]))
    await worker.tick(0, NOW)
    assert set(worker.context.live.rows[0]) == {"main/stays"}

    worker.take(0, 4, event("g", [commit(1, 7, 20)]))
    await worker.tick(0, NOW)
    assert set(worker.context.live.rows[0]) == {"main/g", "main/stays"}


def test_what_is_known_of_groups_that_went_to_another_worker_is_dropped() -> None:
    worker = desk()
    worker.load([0, 1], {})
    worker.take(1, 0, event("g", [commit(1, 5, 1)]))
    worker.adopt(1, {"main/g": recommendation("g")})

    worker.load([0], {})

    assert (worker.group_count, worker.published) == (0, {})


async def test_the_time_from_a_commit_to_its_judgement_is_measured() -> None:
    worker = desk()
    clock: Any = worker.context.clock
    clock.advance(2)
    worker.take(0, 0, event("g", [commit(1, 5, 1)]))  # committed at NOW
    clock.advance(7)
    await worker.tick(0, worker.now)
    await worker.tick(0, worker.now + 1)

    took: Any = {stage: (sum(h.counts), h.sum) for stage, h in worker.delays.stages.items()}
    assert took["event"] == (1, pytest.approx(2.0))
    assert took["verdict"] == (1, pytest.approx(7.0))
    assert took["publish"] == took["whole"] == (0, 0.0)


def beat(worker: GroupEngine, offset: int) -> None:
    worker.take(0, offset, encode(Beat("main", worker.now, "r", 1.0, False, [3], [0], [10], [10], [10])))


def log_end(worker: GroupEngine, end: int) -> None:
    made = {"topic": "orders", "topic_id": "t", "asked": worker.now - 1, "seen": worker.now, "stable": None}
    worker.logs.sampled("main", [SimpleNamespace(**made, start=[0, 0], end=[end, end])], {}, {})


def moved(worker: GroupEngine, offset: int, source: int) -> bytes:
    part = TopicOffsets("orders", None, [1], [offset], [worker.now], [source])
    return encode(GroupEvent("main", "g", 3, worker.now, [part], []))


async def test_after_a_standstill_nothing_is_over_before_log_ends_were_read_again() -> None:
    sent: list[tuple[str, bytes | None]] = []
    rows = tables()
    first = desk(rows, sent)
    beat(first, 0)
    log_end(first, 1000)
    first.take(0, 1, event("g", [commit(1, 5, 1)]))
    first.adopt(0, {"main/g": recommendation("g")})
    await first.tick(0, NOW)

    again = desk(rows, sent)
    clock: Any = again.clock
    clock.advance(50)

    async def judged() -> tuple[str | None, int, int]:
        (summary,) = await again.tick(0, again.now)
        return again.looks["main/g"].suppressed_by, summary.judged, summary.blind

    for n in range(5):  # commits pass the log end that is remembered; where it is now nobody knows
        clock.advance(1)
        beat(again, 2 * n)
        again.take(0, 2 * n + 1, moved(again, 1000 + n, 10 + n))
        assert await judged() == ("unwatched", 0, 1)
    clock.advance(1)
    log_end(again, 9000)
    assert await judged() == ("unwatched", 0, 1)  # where it was when the group committed is not known still
    assert len(sent) == 0

    clock.advance(1)
    again.take(0, 10, moved(again, 1005, 15))
    assert await judged() == (None, 1, 0)


async def test_log_ends_that_can_not_be_read_make_blind_and_say_so() -> None:
    sent: list[tuple[str, bytes | None]] = []
    worker = desk(sent=sent)
    clock: Any = worker.context.clock
    beat(worker, 0)
    log_end(worker, 1000)
    worker.take(0, 1, event("g", [commit(1, 5, 1)]))
    worker.adopt(0, {"main/g": recommendation("g")})
    (before,) = await worker.tick(0, NOW)

    clock.advance(61)
    beat(worker, 2)
    (summary,) = await worker.tick(0, worker.now)

    assert (before.status, summary.status) == ("watching", "blind")
    assert summary.reason == "the log ends of the cluster were last read 61 s ago"
    assert sent == []

    clock.advance(60)
    beat(worker, 3)
    await worker.tick(0, worker.now)
    last = from_bytes(sent[-1][1] or b"")
    assert isinstance(last, Recommendation)
    assert (last.status, last.stale) == (Status.UPDATED, True)

    log_end(worker, 1000)
    assert (await worker.tick(0, worker.now + 1))[0].status == "watching"


def test_a_call_that_takes_too_long_is_given_up_in_words() -> None:
    goes_on = threading.Event()

    async def asked() -> None:
        try:
            await in_thread(goes_on.wait, limit=0.01)
        finally:
            goes_on.set()

    with pytest.raises(TimeoutError, match=r"^no answer within 0\.01 s$"):
        asyncio.run(asked())
