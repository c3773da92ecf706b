"""A disk that takes no more of the tables is waited for, in words, and is no crash."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any, NoReturn

import pytest

from kagent.settings import Settings
from kagent.worker import rights
from kagent.worker.faust_app import faust_app
from kagent.worker.table_disk import about_disk, lacking_room
from tests.fixtures.small_disk import filled, small_disk

FULL = Exception("IO error: No space left on device: While appending to file: /x/lag-0.db/000004.log")
"""As RocksDB words it."""


def made(folder: Path, store: str = "rocksdb://") -> Settings:
    worker = {"data": str(folder), "store": store}
    return Settings.model_validate({"clusters": {"main": {"bootstrap": "nowhere:1"}}, "worker": worker})


def test_a_full_disk_is_named_with_what_to_do_until_there_is_room(tmp_path: Path) -> None:
    with small_disk(tmp_path / "disk", "20m") as disk:
        settings = made(disk / "data")
        assert lacking_room(settings) is None
        with filled(disk):
            said = lacking_room(settings)
        assert said is not None
        assert said.startswith(
            f"The tables in {disk}/data (worker.data) cannot be written (No space left on device): "
        )
        assert lacking_room(settings) is None


def test_tables_in_memory_need_no_disk(tmp_path: Path) -> None:
    below_a_file = tmp_path / "file" / "data"
    (tmp_path / "file").touch()

    assert lacking_room(made(below_a_file, "memory://")) is None
    assert "Not a directory" in str(lacking_room(made(below_a_file)))


def test_the_reason_is_found_below_others() -> None:
    error = KeyError(1)
    error.__context__ = FULL

    assert about_disk(error)
    assert not about_disk(KeyError(1))


def test_a_full_disk_begins_the_worker_anew_and_no_traceback_is_logged(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    class Anew(Exception):
        """In place of another process."""

    def begin_anew(reason: object) -> NoReturn:
        raise Anew(reason)

    async def scenario() -> None:
        settings = made(tmp_path, "memory://")
        app: Any = faust_app(settings, settings.home_cluster("main"))
        with pytest.raises(Anew, match="No space left on device"):
            await app.crash(FULL)

    monkeypatch.setattr(rights, "begin_anew", begin_anew)
    asyncio.run(scenario())

    assert "Crashed" not in caplog.text
