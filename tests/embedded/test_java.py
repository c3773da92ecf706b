"""Java: missing, too old, or right."""

from __future__ import annotations

from pathlib import Path

import pytest

from kagent.embedded.java import java, version
from kagent.errors import SetupError


def fake(folder: Path, answer: str) -> Path:
    path = folder / "bin" / "java"
    path.parent.mkdir()
    path.write_text(f"#!/bin/sh\necho '{answer}' >&2\n")
    path.chmod(0o755)
    return path


def test_missing_java_is_one_sentence(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv("JAVA_HOME", raising=False)

    with pytest.raises(SetupError, match=r"Java was not found: install OpenJDK 17 or 21"):
        java()


def test_an_old_java_is_refused(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    fake(tmp_path, 'openjdk version "1.8.0_402"')
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))

    with pytest.raises(SetupError, match="is Java 8, which is too old"):
        java()


def test_a_fitting_java_is_taken(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    path = fake(tmp_path, 'openjdk version "21.0.2" 2024-01-16')
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))

    assert (java(), version(str(path))) == (str(path), 21)
