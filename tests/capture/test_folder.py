"""The capture folder: what is written is read again, and what is broken is named."""

from __future__ import annotations

import gzip
from pathlib import Path

import orjson
import pytest

from kagent.capture.folder import ENDS, RECORDS, TRUTH, EndsSample, RawRecord, read_folder
from kagent.capture.folder_writer import FolderWriter
from kagent.errors import InputError
from kagent.kafka.reach import LoginRefused
from kagent.lag.log_ends import UNKNOWN

RECORD = RawRecord(3, 17, 1000, 1200, b"\x00\x02\x00\x01g", None)
SAMPLE = EndsSample(1100, 1150, {"t": [0, UNKNOWN, 5]}, {"t": [9, UNKNOWN, 7]}, {"t": [8, UNKNOWN, 7]})


def written(folder: Path, records: list[bytes], samples: list[bytes]) -> Path:
    for name, lines in ((RECORDS, records), (ENDS, samples)):
        with gzip.open(folder / name, "wb") as file:
            file.writelines(line + b"\n" for line in lines)
    return folder


def test_a_written_folder_reads_as_it_was(tmp_path: Path) -> None:
    folder = read_folder(written(tmp_path, [RECORD.line()], [SAMPLE.line()]))
    assert folder.records == [RECORD]
    assert folder.samples == [SAMPLE]
    assert (folder.start_ms, folder.end_ms) == (1100, 1200)


def test_samples_without_a_last_stable_offset_are_read(tmp_path: Path) -> None:
    line = orjson.dumps({"at": 1, "done": 2, "ends": {"t": {"0": [0, 4], "1": [2, 6]}}})
    sample = read_folder(written(tmp_path, [RECORD.line()], [line])).samples[0]
    assert sample == EndsSample(1, 2, {"t": [0, 2]}, {"t": [4, 6]}, {"t": None})


def test_a_partition_that_did_not_answer_is_a_gap_also_where_it_is_the_last(tmp_path: Path) -> None:
    ends: tuple[dict[str, list[int]], ...] = (
        {"0": [0, 4, 4], "1": [2, 6, 6]},
        {"0": [0, 5, 5]},
        {},
        {"0": [0, 6, 6], "1": [2, 7, 7], "2": [0, 1, 1]},
    )
    lines = [orjson.dumps({"at": n, "done": n, "ends": {"t": logs}}) for n, logs in enumerate(ends)]
    samples = read_folder(written(tmp_path, [RECORD.line()], lines)).samples

    assert [s.ends["t"] for s in samples] == [[4, 6], [5, UNKNOWN], [UNKNOWN, UNKNOWN], [6, 7, 1]]
    assert samples[1] == EndsSample(1, 1, {"t": [0, UNKNOWN]}, {"t": [5, UNKNOWN]}, {"t": [5, UNKNOWN]})


def test_an_experiment_ends_where_its_truth_says(tmp_path: Path) -> None:
    written(tmp_path, [RECORD.line()], [SAMPLE.line()])
    (tmp_path / TRUTH).write_text('{"ended_ms": 1180}')
    assert read_folder(tmp_path).end_ms == 1180


def test_a_capture_that_was_killed_is_read_up_to_there(tmp_path: Path) -> None:
    records = [RawRecord(0, n, n, n, bytes([n % 251]) * 300, None) for n in range(2000)]
    written(tmp_path, [record.line() for record in records], [SAMPLE.line()])
    whole = (tmp_path / RECORDS).read_bytes()
    (tmp_path / RECORDS).write_bytes(whole[: len(whole) // 2])
    read = read_folder(tmp_path).records
    assert 0 < len(read) < 2000
    assert read == records[: len(read)]


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        (b"{", "JSONDecodeError"),
        (b'{"p": 1}', "KeyError"),
        (b'{"p":0,"o":0,"ts":0,"at":0,"k":"xy","v":null}', "ValueError"),
        (b"[]", "TypeError"),
    ],
)
def test_a_line_that_is_none_is_named_by_its_number(tmp_path: Path, line: bytes, reason: str) -> None:
    written(tmp_path, [RECORD.line(), line], [SAMPLE.line()])
    with pytest.raises(InputError, match=rf"Line 2 of .*{RECORDS} is not .*{reason}"):
        read_folder(tmp_path)


def test_what_is_no_folder_of_a_capture_is_said_in_a_sentence(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="No such file"):
        read_folder(tmp_path)
    (tmp_path / RECORDS).write_text("not gzip")
    with pytest.raises(InputError, match="not a gzip file"):
        read_folder(tmp_path)
    with pytest.raises(InputError, match="holds no records"):
        read_folder(written(tmp_path, [], [SAMPLE.line()]))


def test_a_capture_that_failed_before_its_first_record_leaves_the_folder_for_the_next_try(
    tmp_path: Path,
) -> None:
    with pytest.raises(LoginRefused), FolderWriter(tmp_path / "capture"):
        raise LoginRefused("The login is refused.")

    with FolderWriter(tmp_path / "capture") as writer:
        writer.record(RECORD)

    assert writer.records == 1
