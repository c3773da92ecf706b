"""Whatever the bytes: a typed value or a reason, never another exception, never more than linear time."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import datetime, timedelta, timezone
from typing import Any

import orjson
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from kagent.contract import admission
from kagent.contract.admission import INT64, MAX_AHEAD_MS, Refused, not_ahead
from kagent.contract.events import Beat, GroupEvent, TopicOffsets, encode
from kagent.contract.mute import MAX_TIME_MS
from kagent.contract.recommendation import State, to_bytes
from kagent.contract.topic_name import is_topic_name
from tests.fixtures.poison import forty_kinds, odd_but_whole
from tests.worker.test_engine import recommendation

COMMIT: dict[str, Any] = {
    "topic": "orders",
    "topic_id": None,
    "partition": [0, 1],
    "committed": [5, 6],
    "time": [1, 2],
    "source_offset": [7, 8],
}
EVENT: dict[str, Any] = {
    "schema": 1,
    "type": "group",
    "cluster": "main",
    "group": "g",
    "source": 3,
    "time": 1,
    "offsets": [COMMIT],
    "tombstones": [],
    "records": [],
    "part": 1,
    "parts": 1,
}
PROGRESS: dict[str, Any] = {
    "schema": 1,
    "type": "progress",
    "cluster": "main",
    "time": 1,
    "run_id": "r",
    "trigger": 1.0,
    "replay": False,
    "source": [3],
    "start": [0],
    "offset": [10],
    "log_end": [10],
    "stable_end": [10],
}
WITHOUT = object()


def event(**changes: Any) -> bytes:
    return orjson.dumps({k: v for k, v in {**EVENT, **changes}.items() if v is not WITHOUT})


def commit(**changes: Any) -> bytes:
    return event(offsets=[{k: v for k, v in {**COMMIT, **changes}.items() if v is not WITHOUT}])


def progress(**changes: Any) -> bytes:
    return orjson.dumps({k: v for k, v in {**PROGRESS, **changes}.items() if v is not WITHOUT})


def huge(data: bytes, digits: bytes) -> bytes:
    """A number that orjson does not write."""
    return data.replace(b"4242", digits)


POISON: dict[str, tuple[bytes, str]] = {
    "nothing": (b"", "not_json"),
    "bytes": (b"\x00\xff\xfe", "not_json"),
    "text": (b"hello", "not_json"),
    "half": (event()[:40], "not_json"),
    "two values": (event() + event(), "not_json"),
    "a byte order mark": (b"\xef\xbb\xbf" + event(), "not_json"),
    "not a number": (event(time=4242).replace(b"4242", b"NaN"), "not_json"),
    "broken utf-8": (event(group="4242").replace(b"4242", b"\xff\xfe"), "not_json"),
    "a lone surrogate": (event(group="4242").replace(b"4242", b"\\ud800"), "not_json"),
    "a list": (b"[]", "wrong_shape"),
    "a number": (b"7", "wrong_shape"),
    "null": (b"null", "wrong_shape"),
    "an empty object": (b"{}", "missing_field"),
    "deep lists": (event(records=[{"source_offset": 1, "time": 1, "record": {"a": 4242}}]).replace(b"4242", b"[" * 100_000), "nested_too_deep"),
    "no cluster": (event(cluster=WITHOUT), "missing_field"),
    "an empty cluster": (event(cluster=""), "out_of_bounds"),
    "no group": (event(group=WITHOUT), "missing_field"),
    "a group that is an object": (event(group={"a": 1}), "wrong_shape"),
    "a group that is a list": (event(group=["g"]), "wrong_shape"),
    "a group that is a number": (event(group=7), "wrong_shape"),
    "a group longer than Kafka's strings": (event(group="g" * 32_768), "out_of_bounds"),
    "a time that is text": (event(time="now"), "wrong_shape"),
    "a time that is a fraction": (event(time=1.5), "wrong_shape"),
    "a time before the epoch": (event(time=-1), "out_of_bounds"),
    "a negative source": (event(source=-1), "out_of_bounds"),
    "offsets that are null": (event(offsets=None), "wrong_shape"),
    "offsets that are an object": (event(offsets={}), "wrong_shape"),
    "a record that is text": (event(records=["x"]), "wrong_shape"),
    "a record without its offset": (event(records=[{"time": 1, "record": {}}]), "missing_field"),
    "a longer column": (commit(partition=[0, 1, 2]), "unequal_columns"),
    "a shorter column": (commit(committed=[]), "unequal_columns"),
    "unequal tombstones": (event(tombstones=[{"topic": "t", "partition": [1], "source_offset": []}]), "unequal_columns"),
    "an offset beyond int64": (huge(commit(committed=[1, 4242]), b"9223372036854775808"), "out_of_bounds"),
    "an offset of 80 digits": (huge(commit(committed=[1, 4242]), b"9" * 80), "out_of_bounds"),
    "an offset that is a fraction": (commit(committed=[1, 2.5]), "wrong_shape"),
    "an offset that is true": (commit(committed=[1, True]), "wrong_shape"),
    "an offset that is null": (commit(committed=[1, None]), "wrong_shape"),
    "a negative offset": (commit(committed=[1, -2]), "out_of_bounds"),
    "a negative partition": (commit(partition=[0, -1]), "out_of_bounds"),
    "a partition beyond int32": (commit(partition=[0, 2**31]), "out_of_bounds"),
    "a topic with a space": (commit(topic="a b"), "out_of_bounds"),
    "a topic with a NUL": (commit(topic="a\0b"), "out_of_bounds"),
    "an empty topic": (commit(topic=""), "out_of_bounds"),
    "the topic ..": (commit(topic=".."), "out_of_bounds"),
    "a topic of 250 letters": (commit(topic="t" * 250), "out_of_bounds"),
    "progress with unequal columns": (progress(offset=[]), "unequal_columns"),
    "progress that ends before it starts": (progress(start=[11]), "wrong_shape"),
    "progress with a trigger of 0": (progress(trigger=0), "out_of_bounds"),
    "progress without a run": (progress(run_id=WITHOUT), "missing_field"),
    "progress that replays perhaps": (progress(replay="yes"), "wrong_shape"),
    "progress of 8 MiB": (progress(run_id="r" * 9_000_000), "too_large"),
}  # fmt: skip


@pytest.mark.parametrize("kind", POISON)
def test_poison_is_refused_with_its_reason(kind: str) -> None:
    data, reason = POISON[kind]

    with pytest.raises(Refused) as refused:
        admission.decode(data)

    assert refused.value.reason == reason, str(refused.value)


def test_the_samples_that_poison_is_made_of_are_let_in() -> None:
    assert isinstance(admission.decode(event()), GroupEvent)
    assert isinstance(admission.decode(progress()), Beat)
    assert admission.decode(event(mood="blue", schema=9)) == admission.decode(event())


@pytest.mark.parametrize(
    ("data", "reason", "sentence"),
    [
        (b"\xff{", "not_json", "Invalid JSON: expected value at line 1 column 1"),
        (b'{"id": 1}', "wrong_shape", "id: Input should be a valid string (and 13 more)"),
        (b"{}", "missing_field", "id: Field required (and 13 more)"),
    ],
)
def test_what_is_wrong_with_a_published_message_is_one_line(data: bytes, reason: str, sentence: str) -> None:
    with pytest.raises(Refused) as refused:
        admission.published(data)

    assert (refused.value.reason, str(refused.value)) == (reason, sentence)


@pytest.mark.parametrize("read", [admission.decode, admission.tick, admission.mute])
def test_forty_kinds_of_bytes_are_refused_and_odd_json_is_not(read: Callable[[bytes], Any]) -> None:
    sound = {**EVENT, "until": 2} if read is not admission.tick else {"type": "tick", "time": 5}
    # msgspec passes over what it does not know without looking whether it is UTF-8.
    passed_over = {"latin-1", "an overlong NUL"}

    for kind, data in forty_kinds(sound).items():
        if kind not in passed_over:
            with pytest.raises(Refused):
                read(data)
    for data in odd_but_whole(sound).values():
        assert read(data) == read(json.dumps(sound).encode())


def test_what_only_a_newer_kagent_sends_is_passed_over() -> None:
    assert admission.decode(b'{"type": "weather", "sun": true}') is None
    assert admission.tick(b'{"type": "eclipse"}') is None


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner, max_size=4),
    max_leaves=12,
)


def dumped(value: Any) -> bytes:
    return json.dumps(
        value
    ).encode()  # writes what orjson refuses: NaN, numbers beyond int64, lone surrogates


@st.composite
def nearly(draw: st.DrawFn) -> bytes:
    """A message of which one place was replaced by any JSON."""
    base = draw(st.sampled_from((EVENT, PROGRESS, COMMIT)))
    changed = {**base, draw(st.sampled_from(sorted(base))): draw(json_values)}
    return dumped(changed if base is not COMMIT else {**EVENT, "offsets": [changed]})


REASONS = {
    None, "not_json", "wrong_shape", "missing_field", "out_of_bounds", "unequal_columns", "nested_too_deep"
}  # fmt: skip
readers = st.sampled_from((admission.decode, admission.tick, admission.mute, admission.published))


@pytest.mark.slow
@given(readers, st.binary(max_size=400) | nearly() | json_values.map(dumped))
@example(admission.decode, b'{"type":"group","type":{}}')
@example(admission.published, b'{"type":"state"')
def test_no_bytes_raise_anything_but_refused(read: Any, data: bytes) -> None:
    reason: str | None
    try:
        found = read(data)
    except Refused as refused:
        reason = refused.reason
    else:
        reason = None
        if isinstance(found, GroupEvent):
            assert all(-1 <= offset <= INT64 for o in found.offsets for offset in o.committed)
    assert reason in REASONS


@given(st.text(max_size=300))
@example("a b")
@example(".")
@example("a\n")
@example("orders.v1_x-2")
def test_topic_names_are_those_that_kafka_allows(name: str) -> None:
    letters = set("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-")

    assert is_topic_name(name) == (0 < len(name) <= 249 and set(name) <= letters and name not in (".", ".."))


def test_a_time_ahead_of_the_brokers_clock_becomes_the_brokers() -> None:
    now = 1_700_000_000_000

    assert not_ahead([now, now + MAX_AHEAD_MS, now + MAX_AHEAD_MS + 1], now) == [now, now + MAX_AHEAD_MS, now]


@pytest.mark.parametrize("value", [b"{}", b'{"until": "soon"}', b'{"until": 9223372036854775808}', b"null"])
def test_a_mute_without_a_time_is_refused(value: bytes) -> None:
    with pytest.raises(Refused):
        admission.mute(value)


def test_what_encode_writes_is_let_in() -> None:
    made = GroupEvent("main", "g", 3, 1, [TopicOffsets("t", None, [1], [INT64], [2], [3])])

    assert encode(admission.decode(encode(made))) == encode(made)  # type: ignore[arg-type]


def test_of_many_events_in_a_message_a_bad_one_costs_itself() -> None:
    good = [encode(GroupEvent("main", f"g{n}", 0, 1)) for n in range(3)]

    found = list(admission.decode_all(b"[" + b",".join([good[0], b'{"type":"group"}', *good[1:]]) + b"]"))

    assert [event.group for event in found if isinstance(event, GroupEvent)] == ["g0", "g1", "g2"]
    assert list(admission.decode_all(b"[nonsense")) == []


@given(st.integers(0, 2**64 - 1))
def test_a_moment_that_is_let_in_can_be_shown_in_every_time_zone(until: int) -> None:
    state = orjson.loads(to_bytes(State(cluster="main", version="1", time=1, status="watching")))
    mute = bounded(lambda: admission.mute(orjson.dumps({"until": until})).until)
    message = bounded(lambda: admission.published(orjson.dumps({**state, "muted_until": until})).muted_until)  # type: ignore[union-attr]

    # A mute beyond the calendar is one for ever; no worker writes such a message.
    assert mute == (None if until > INT64 else min(until, MAX_TIME_MS))
    assert message == (None if until > MAX_TIME_MS else until)
    for moment in (one for one in (mute, message) if one is not None):
        for hours in (-12, 14):
            assert datetime.fromtimestamp(moment / 1000, timezone(timedelta(hours=hours)))


def bounded(read: Callable[[], int | None]) -> int | None:
    try:
        return read()
    except Refused:
        return None


@pytest.mark.parametrize("field", ["revision", "opened_at", "as_of", "valid_until"])
def test_a_message_whose_numbers_cannot_be_counted_on_from_is_not_read_back(field: str) -> None:
    message = {**orjson.loads(to_bytes(recommendation("g"))), field: 4242}

    assert admission.published(orjson.dumps(message))
    with pytest.raises(Refused, match=field) as refused:
        admission.published(huge(orjson.dumps(message), b"9223372036854775808"))
    assert refused.value.reason == "out_of_bounds"
