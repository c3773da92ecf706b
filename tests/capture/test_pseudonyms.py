"""Redacted captures hold no name, and tell of the groups what they told before."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from kagent.capture.folder import CaptureFolder, read_folder
from kagent.capture.pseudonyms import Pseudonyms
from kagent.incident.session import EvaluationSession
from kagent.offsets import DecodeError, decode
from kagent.policy import Policies
from kagent.replay.captured_events import recording
from kagent.replay.driver import Replayed, replay
from tests.fixtures.captures import DATA

WEEK_MS = 7 * 86_400_000
VECTORS = Path(__file__).parents[1] / "offsets" / "data"


def redacted(folder: CaptureFolder, names: Pseudonyms) -> CaptureFolder:
    records = []
    for record in folder.records:
        key, value = names.record(record.key or b"", record.value)
        records.append(replace(record, key=key, value=value))
    samples = [
        replace(
            sample,
            starts={names.name("topic", t): column for t, column in sample.starts.items()},
            ends={names.name("topic", t): column for t, column in sample.ends.items()},
        )
        for sample in folder.samples
    ]
    return replace(folder, records=records, samples=samples)


def run(folder: CaptureFolder) -> Replayed:
    return replay(recording(folder), EvaluationSession(Policies()), known_for_ms=WEEK_MS)


@pytest.mark.parametrize("scenario", ["skew", "steady", "hang"])
@pytest.mark.slow
def test_a_redacted_capture_gives_the_same_verdicts_at_the_same_times(scenario: str) -> None:
    names, folder = Pseudonyms(), read_folder(DATA / scenario)
    clear, hidden = run(folder), run(redacted(folder, names))
    expected = {
        (m.as_of, names.name("group", m.group), str(m.verdict), m.status, m.group_kind)
        for m in clear.messages
        if not m.group.startswith("<")
    }
    published = {
        (m.as_of, m.group, str(m.verdict), m.status, m.group_kind)
        for m in hidden.messages
        if not m.group.startswith("<")
    }
    assert published == expected
    assert hidden.suppressed_by == {names.name("group", g): why for g, why in clear.suppressed_by.items()}


@pytest.mark.parametrize("scenario", ["skew", "steady", "hang"])
@pytest.mark.slow
def test_no_name_is_left_in_keys_and_values(scenario: str) -> None:
    folder = redacted(read_folder(DATA / scenario), Pseudonyms())
    content = b"".join((record.key or b"") + (record.value or b"") for record in folder.records)
    for name in (scenario, "-in", "127.0.0.1", "StreamThread", "localhost"):
        assert name.encode() not in content


def test_every_known_kind_of_record_is_redacted_to_one_that_decodes_alike() -> None:
    """Kafka's own vectors: all record types and versions, sticky user data among them."""
    names, seen = Pseudonyms(), set()
    for line in (VECTORS / "capture.jsonl").read_text().splitlines():
        case = json.loads(line)
        key, value = bytes.fromhex(case["key_hex"]), case["value_hex"]
        try:
            record = decode(key, value and bytes.fromhex(value))
        except DecodeError:
            continue
        hidden = decode(*names.record(key, value and bytes.fromhex(value)))
        assert (hidden.name, hidden.version) == (record.name, record.version)
        assert hidden.group == names.name("group", record.group)
        assert (hidden.value is None) == (record.value is None)
        seen.add(record.name)
    assert {"GroupMetadata", "OffsetCommit", "ConsumerGroupMemberMetadata"} <= seen


def test_the_same_name_has_one_pseudonym_in_a_capture_and_another_in_the_next() -> None:
    first, second = Pseudonyms(), Pseudonyms()
    assert first.name("topic", "orders") == first.name("topic", "orders") != second.name("topic", "orders")
    assert first.name("topic", "orders") != first.name("group", "orders").replace("group", "topic")
    assert "salt" not in repr(first)


def test_what_tells_the_kind_of_a_client_is_kept() -> None:
    names = Pseudonyms()
    assert names.name("client", "connector-consumer-jdbc-0").startswith("connector-consumer-client-")
    assert names.name("group", "connect-jdbc").startswith("connect-group-")
    assert names.name("host", "/10.1.2.3").startswith("/host-")
    assert names.name("rack", "") == ""


def test_a_record_that_cannot_be_decoded_is_refused() -> None:
    with pytest.raises(ValueError, match="not known"):
        Pseudonyms().record(b"\x00\x63\x00\x06orders", b"\x00\x00")
