"""Java archives from Maven Central or a mirror of it through jgo, in one cache, without network once they are there.

A failed build leaves a half-filled folder that jgo's next call would take for whole; its lock file tells them apart.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import tomllib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import cache as cache_once
from pathlib import Path

from kagent.errors import SetupError

BROKER = "org.apache.kafka:kafka_2.13:4.3.0"
# Of the minor version of Kafka's slf4j-api: a 1.7 API does not find a binding made for 2.0.
LOGGER = "org.slf4j:slf4j-simple:1.7.36"
CONNECTOR = "org.apache.spark:spark-sql-kafka-0-10_2.13:4.0.0"
DELTA = "io.delta:delta-spark_2.13:4.0.0"
HASHES = Path(__file__).with_name("jars.sha256")
"""SHA-256 of the jars of these four, as ``sha256sum`` writes them."""


def cache() -> Path:
    """The folder of the cache: ``KAGENT_CACHE``, else ``kagent`` under the user's cache folder."""
    named = os.environ.get("KAGENT_CACHE")
    if named:
        return Path(named)
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "kagent"


def repositories() -> dict[str, str] | None:
    """The mirror that ``KAGENT_MAVEN`` names, in place of Maven Central; None for Central itself.

    A proxy needs no setting of ours: the client that fetches takes ``HTTPS_PROXY`` and ``NO_PROXY``.
    """
    mirror = os.environ.get("KAGENT_MAVEN")
    return {"mirror": mirror.rstrip("/")} if mirror else None


def resolve(*coordinates: str) -> list[Path]:
    """The jars of these artifacts with all they need. Raises SetupError with what to do."""
    endpoint = "+".join(coordinates)
    folder = cache()
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with _alone(folder):
            return _build(endpoint, folder)
    except OSError as error:
        if error.errno is None or _is_network(error):
            raise SetupError(
                f"{endpoint} could not be fetched: no connection to {_source()} ({error}). "
                "Behind a proxy set HTTPS_PROXY, for a mirror KAGENT_MAVEN."
            ) from error
        raise SetupError(
            f"The cache folder {folder} cannot be used ({error.strerror}); set KAGENT_CACHE."
        ) from error
    except RuntimeError as error:
        raise SetupError(f"{endpoint} could not be resolved: {error}.") from error


def _source() -> str:
    return "the mirror" if repositories() else "Maven Central"


def _is_network(error: OSError) -> bool:
    import requests

    return isinstance(error, requests.RequestException)


@contextmanager
def _alone(folder: Path) -> Iterator[None]:
    """One process at a time fills the cache; the others wait and find it filled."""
    with (folder / ".lock").open("w") as lock:
        # The kernel drops the lock with the process: one that is killed leaves no lock behind.
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def _build(endpoint: str, folder: Path) -> list[Path]:
    from jgo.env import EnvironmentBuilder, LinkStrategy
    from jgo.maven import MavenContext

    builder = EnvironmentBuilder(
        context=MavenContext(repo_cache=folder / "m2", remote_repos=repositories()),
        cache_dir=folder,
        link_strategy=LinkStrategy.HARD,
    )
    env = builder.from_endpoint(endpoint)
    # jgo writes the lock file last: without it the folder is of a build that failed.
    if not env.lock_path.exists():
        env = builder.from_endpoint(endpoint, update=True)
    return checked([Path(jar) for jar in env.all_jars], Path(env.lock_path))


def checked(jars: Sequence[Path], lock: Path) -> list[Path]:
    """These jars, each with the hash that this version of kagent was tested with; a jar that it does not know (another
    `pipeline.connector`) with the hash of when it was fetched. Raises SetupError for one that was changed."""
    known = _known() | {name: digest for name, digest in _fetched(lock).items() if name not in _known()}
    for jar in jars:
        if known.get(jar.name) not in (None, _digest(jar)):
            raise SetupError(
                f"The file {jar} is not the one that was published (its SHA-256 differs): remove the folder {cache()} and run `kagent jars`."
            )
    return list(jars)


@cache_once
def _known() -> dict[str, str]:
    lines = HASHES.read_text(encoding="ascii").splitlines()
    return {name: digest for digest, name in (line.split() for line in lines)}


def _fetched(lock: Path) -> dict[str, str]:
    """What jgo wrote down when it fetched them: ``artifact-version.jar`` → SHA-256."""
    raw = tomllib.loads(lock.read_text(encoding="utf-8")) if lock.exists() else {}
    return {
        f"{each['artifactId']}-{each['version']}.jar": each["sha256"]
        for each in raw.get("dependencies", [])
        if each.get("sha256")
    }


def _digest(jar: Path) -> str:
    with jar.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def broker_jars(broker: str = BROKER) -> list[Path]:
    """What the embedded broker runs on, and a logger: without one it fails in silence."""
    return resolve(broker, LOGGER)


def spark_jars(connector: str = CONNECTOR) -> list[Path]:
    """The connector's jars that pyspark does not bring itself."""
    return _lacking(resolve(connector))


def delta_jars() -> list[Path]:
    """Delta's jars that pyspark does not bring itself."""
    return _lacking(resolve(DELTA))


def _lacking(jars: Sequence[Path]) -> list[Path]:
    import pyspark

    shipped = {_artifact(path.name) for path in (Path(pyspark.__file__).parent / "jars").glob("*.jar")}
    return [jar for jar in jars if _artifact(jar.name) not in shipped]


def _artifact(jar: str) -> str:
    """The artifact's name without its version: ``lz4-java-1.8.0.jar`` → ``lz4-java``."""
    parts = jar.removesuffix(".jar").split("-")
    end = next((i for i, part in enumerate(parts) if i and part[:1].isdigit()), len(parts))
    return "-".join(parts[:end])
