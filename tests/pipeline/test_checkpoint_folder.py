"""A checkpoint's folder is tried before a cluster is waited for and Spark starts."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from kagent.errors import SettingsError
from kagent.pipeline.checkpoint import writable


@pytest.mark.parametrize("scheme", ["", "file:", "file://"])
def test_a_folder_that_cannot_be_made_is_refused_before_anything_is_waited_for(
    tmp_path: Path, scheme: str
) -> None:
    (tmp_path / "file").write_text("x")
    for place in ("file", "file/below"):
        with pytest.raises(SettingsError, match=r"cannot be written .*: set pipeline\.checkpoint"):
            writable(f"{scheme}{tmp_path / place}", ())

    writable(f"{scheme}{tmp_path / 'made' / 'below'}", ())
    assert (tmp_path / "made" / "below").is_dir()


@pytest.mark.parametrize(
    ("place", "options"), [("s3a://bucket/x", ()), ("/x", ("spark.hadoop.fs.defaultFS",))]
)
def test_a_folder_that_is_elsewhere_is_left_to_spark(
    place: str, options: tuple[str, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "makedirs", lambda *_, **__: pytest.fail("it is not on this machine"))

    writable(place, options)
