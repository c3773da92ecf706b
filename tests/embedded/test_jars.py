"""A jar that is not the one that was tested, or fetched, is not loaded."""

from __future__ import annotations

from hashlib import sha256
from pathlib import Path

import pytest

from kagent.embedded.jars import HASHES, checked
from kagent.errors import SetupError


def test_a_jar_with_another_hash_than_the_one_that_was_tested_is_refused(tmp_path: Path) -> None:
    name = HASHES.read_text().split()[1]
    jar = tmp_path / name
    jar.write_bytes(b"other code")

    with pytest.raises(SetupError, match=rf"{name} is not the one that was published"):
        checked([jar], tmp_path / "no.lock")


def test_a_jar_of_another_connector_must_be_as_it_was_fetched(tmp_path: Path) -> None:
    jar, lock = tmp_path / "own-1.0.jar", tmp_path / "jgo.lock.toml"
    jar.write_bytes(b"as fetched")
    lock.write_text(
        f'[[dependencies]]\nartifactId = "own"\nversion = "1.0"\nsha256 = "{sha256(b"as fetched").hexdigest()}"\n'
    )
    assert checked([jar], lock) == [jar]

    jar.write_bytes(b"changed")

    with pytest.raises(SetupError, match="SHA-256 differs"):
        checked([jar], lock)
