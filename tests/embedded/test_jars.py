"""A jar that is not the one that was tested, or fetched, is not loaded."""

from __future__ import annotations

import io
import threading
import zipfile
from collections.abc import Iterator
from functools import partial
from hashlib import sha1, sha256
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from kagent.embedded.jars import HASHES, checked, resolve
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


POM = """<project xmlns="http://maven.apache.org/POM/4.0.0"><modelVersion>4.0.0</modelVersion>
<groupId>org.example</groupId><artifactId>thing</artifactId><version>1.0</version></project>
"""


def _jar() -> bytes:
    """The smallest jar: an archive with an empty manifest."""
    archive = io.BytesIO()
    with zipfile.ZipFile(archive, "w") as jar:
        jar.writestr("META-INF/MANIFEST.MF", "Manifest-Version: 1.0\n")
    return archive.getvalue()


@pytest.fixture
def mirror(tmp_path: Path) -> Iterator[str]:
    """A Maven repository on this machine with one artifact, org.example:thing:1.0."""
    folder = tmp_path / "mirror" / "org" / "example" / "thing" / "1.0"
    folder.mkdir(parents=True)
    for name, content in (("thing-1.0.pom", POM.encode()), ("thing-1.0.jar", _jar())):
        (folder / name).write_bytes(content)
        (folder / f"{name}.sha1").write_text(sha1(content).hexdigest())
    server = ThreadingHTTPServer(
        ("127.0.0.1", 0), partial(SimpleHTTPRequestHandler, directory=str(tmp_path / "mirror"))
    )
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}/"
    server.shutdown()
    server.server_close()
    thread.join()


def test_jars_come_from_the_mirror_that_is_named(
    mirror: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KAGENT_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("KAGENT_MAVEN", mirror)

    assert [jar.name for jar in resolve("org.example:thing:1.0")] == ["thing-1.0.jar"]


def test_a_mirror_that_is_away_is_one_sentence_with_what_to_set(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KAGENT_CACHE", str(tmp_path / "cache"))
    # Port 9 is for discarding; nothing listens there.
    monkeypatch.setenv("KAGENT_MAVEN", "http://127.0.0.1:9/")

    with pytest.raises(
        SetupError, match=r"no connection to the mirror .* HTTPS_PROXY, for a mirror KAGENT_MAVEN"
    ):
        resolve("org.example:thing:1.0")
