"""Where a history is."""

from __future__ import annotations

from pathlib import Path

import pytest

from kagent.errors import SettingsError
from kagent.history.past_range import place_of
from kagent.settings import Settings


def test_a_relative_folder_is_that_of_the_working_directory_and_a_url_stays(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)

    assert place_of(Settings(), "history").table("lag") == str(tmp_path / "history" / "lag")
    for whole in ("/var/lib/history", "s3a://bucket/history", "file:/var/lib/history"):
        assert place_of(Settings(), whole).table("lag") == f"{whole}/lag"
    with pytest.raises(SettingsError, match="No history is kept"):
        place_of(Settings(), None)
