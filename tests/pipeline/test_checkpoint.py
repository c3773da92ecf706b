"""A checkpoint belongs to one cluster and one topic, and tells what is certainly in the events topic."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from kagent.errors import KafkaError, SettingsError, mendable
from kagent.offsets import OFFSETS_TOPIC
from kagent.pipeline.checkpoint import Checkpoint, CoveredOffsets, parsed_offsets
from tests.fixtures.small_disk import filled, small_disk

pytestmark = [pytest.mark.spark]


def batch(folder: Path, number: int, offsets: dict[str, int], committed: bool = True) -> None:
    for name in ("offsets", "commits"):
        (folder / name).mkdir(parents=True, exist_ok=True)
    (folder / "offsets" / str(number)).write_text("v1\n{}\n" + json.dumps({OFFSETS_TOPIC: offsets}))
    if committed:
        (folder / "commits" / str(number)).write_text('v1\n{"nextBatchWatermarkMs":0}')


def test_a_new_checkpoint_is_marked_and_known_again(spark: Any, tmp_path: Path) -> None:
    place = Checkpoint(spark, str(tmp_path / "new"))

    place.claim("cluster-a", "topic-a")
    place.claim("cluster-a", "topic-a")

    assert json.loads((tmp_path / "new" / "kagent.json").read_text())["cluster_id"] == "cluster-a"


def test_the_checkpoint_of_another_cluster_is_refused(spark: Any, tmp_path: Path) -> None:
    place = Checkpoint(spark, str(tmp_path))
    place.claim("cluster-a", "topic-a")

    with pytest.raises(SettingsError, match="belongs to cluster cluster-a, not to cluster-b"):
        place.claim("cluster-b", "topic-a")


def test_the_checkpoint_of_a_topic_that_was_recreated_is_refused(spark: Any, tmp_path: Path) -> None:
    place = Checkpoint(spark, str(tmp_path))
    place.claim("cluster-a", "topic-a")

    with pytest.raises(SettingsError, match="re-created"):
        place.claim("cluster-a", "topic-b")


def test_the_checkpoint_of_another_stream_is_refused(spark: Any, tmp_path: Path) -> None:
    (tmp_path / "metadata").write_text('{"id":"1"}')

    with pytest.raises(SettingsError, match="is not kagent's"):
        Checkpoint(spark, str(tmp_path)).claim("cluster-a", "topic-a")


def test_a_broken_mark_is_one_sentence(spark: Any, tmp_path: Path) -> None:
    (tmp_path / "kagent.json").write_text("{")

    with pytest.raises(SettingsError, match="is broken: remove the checkpoint"):
        Checkpoint(spark, str(tmp_path)).claim("cluster-a", "topic-a")


def test_a_folder_that_cannot_be_made_is_one_sentence(spark: Any, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")

    with pytest.raises(SettingsError, match="cannot be written"):
        Checkpoint(spark, str(tmp_path / "file" / "below")).claim("cluster-a", "topic-a")


def test_a_full_disk_is_waited_for_and_no_mistake_in_the_settings(spark: Any, tmp_path: Path) -> None:
    with small_disk(tmp_path / "small", "64k") as disk:
        checkpoint = Checkpoint(spark, str(disk / "checkpoint"))
        with filled(disk), pytest.raises(KafkaError, match="The disk is full"):
            checkpoint.claim("cluster-a", "topic-a")
        checkpoint.claim("cluster-a", "topic-a")
        with filled(disk), pytest.raises(KafkaError, match="The disk is full") as raised:
            checkpoint.keep_epochs(dict.fromkeys(range(5000), 7))
        checkpoint.keep_epochs({0: 8})

        assert mendable(raised.value)
        assert checkpoint.epochs() == {0: 8}


def test_only_committed_batches_count_as_reached(spark: Any, tmp_path: Path) -> None:
    batch(tmp_path, 4, {"0": 10, "1": 5})
    batch(tmp_path, 5, {"0": 20, "1": 5})
    batch(tmp_path, 6, {"0": 30, "1": 9}, committed=False)

    assert Checkpoint(spark, str(tmp_path)).reached(OFFSETS_TOPIC) == CoveredOffsets(
        {0: 10, 1: 5}, {0: 20, 1: 5}
    )


def test_the_first_batch_began_at_the_beginning(spark: Any, tmp_path: Path) -> None:
    batch(tmp_path, 0, {"0": 10})

    assert Checkpoint(spark, str(tmp_path)).reached(OFFSETS_TOPIC) == CoveredOffsets({}, {0: 10})


def test_without_a_checkpoint_nothing_is_reached(spark: Any, tmp_path: Path) -> None:
    assert Checkpoint(spark, str(tmp_path / "none")).reached(OFFSETS_TOPIC) == CoveredOffsets()
    assert parsed_offsets(None, OFFSETS_TOPIC) == {}
