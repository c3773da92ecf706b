"""Shared by all tests: nothing of the caller's environment reaches them."""

from __future__ import annotations

import gc
import logging
import os
import signal
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from confluent_kafka.admin import (
    AclBinding,
    AclBindingFilter,
    AclOperation,
    AclPermissionType,
    AdminClient,
    ResourcePatternType,
    ResourceType,
    ScramCredentialInfo,
    ScramMechanism,
    UserScramCredentialAlteration,
    UserScramCredentialUpsertion,
)
from hypothesis import settings

from kagent.embedded import broker as embedded_broker
from kagent.embedded.broker import Broker, free_port
from kagent.kafka.acls import Rule
from kagent.settings import Cluster
from tests.fixtures.waiting import PATIENCE_S

if TYPE_CHECKING:
    from tests.fixtures.certificates import Certificates

PASSWORD = "pa ss,wo=rd"
USERS = ("pipeline", "worker", "subscriber", "alert", "owner", "recorder")

_numbers = count()

# How long one example takes says more of the machine than of the code. Examples are the same at every run, so that what
# fails is what was changed; `make explore` looks for others.
settings.register_profile("kagent", deadline=None, derandomize=True)
settings.register_profile("explore", deadline=None, max_examples=1000)
settings.load_profile("kagent")

# A shell starts what runs in the background with Ctrl-C ignored, and every process below inherits that: commands that tests interrupt
# would go on. https://pubs.opengroup.org/onlinepubs/9799919799/utilities/V3_chap02.html#tag_19_11
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

# Brokers and Sparks of tests live for a minute or two: what the second compiler makes of them is not worth its processor time. Without it
# the tests of a stream and of quiet groups took 123 s of the processor instead of 232 s (user and system, all processes).
JAVA_OPTIONS = "-XX:TieredStopAtLevel=1"
os.environ["JAVA_TOOL_OPTIONS"] = JAVA_OPTIONS

pytest_plugins = [
    "tests.fixtures.alerts",
    "tests.fixtures.captures",
    "tests.fixtures.cast",
    "tests.fixtures.certificates",
    "tests.fixtures.group_builder",
    "tests.fixtures.kafka_tools",
    "tests.fixtures.spark",
    "tests.fixtures.stage",
    "tests.fixtures.timeline",
]


def pytest_configure() -> None:
    """Test processes that run side by side take ports of their own: else one opens what another has found free and not opened yet."""
    number = int(os.environ.get("PYTEST_XDIST_WORKER", "gw0").removeprefix("gw"))
    share = int(os.environ.get("PYTEST_XDIST_WORKER_COUNT", "1"))
    embedded_broker.PORTS = embedded_broker.PORTS[number::share]


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """What takes longest begins first: a test of minutes that begins last has every other process wait for it."""
    heavy = ("slow", "spark", "kafka")
    items.sort(
        key=lambda item: (-_minutes(item), sum(item.get_closest_marker(mark) is None for mark in heavy))
    )


def _minutes(item: pytest.Item) -> int:
    slow = item.get_closest_marker("slow")
    return slow.kwargs.get("minutes", 0) if slow else 0


def pytest_collection_finish() -> None:
    """Keep what was imported out of the collector's sight: it goes through all of it again and again, 5 % of what the tests cost."""
    gc.collect()
    gc.freeze()


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Why a test failed that was run again: pytest tells of the last try only."""
    for report in terminalreporter.getreports("rerun"):
        terminalreporter.write_sep("_", f"first try of {report.nodeid}")
        terminalreporter.write_line(report.longreprtext)


@pytest.fixture(autouse=True)
def clean_environment(monkeypatch: pytest.MonkeyPatch, tmp_path_factory: pytest.TempPathFactory) -> None:
    """Settings and folders of the person who runs the tests are not seen by them, and each test has a data folder of its own."""
    # Not `tmp_path`, which makes and removes a folder for each of thousands of tests that need none.
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path_factory.getbasetemp() / f"share-{next(_numbers)}"))
    for name in list(os.environ):
        if name.startswith("KAGENT_") and name != "KAGENT_CACHE":
            monkeypatch.delenv(name)


@pytest.fixture(autouse=True)
def own_log_levels() -> Iterator[None]:
    """A command that a test runs in this process sets levels for the whole of it; the next test does not see them."""
    loggers = [logging.getLogger(name) for name in ("aiokafka", "kagent", "py4j")]
    before = [logger.level for logger in loggers]
    yield
    for logger, level in zip(loggers, before, strict=True):
        if logger.level != level:
            logger.setLevel(level)


@pytest.fixture(scope="session")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The bootstrap address of a real broker that the tests share; use topics and groups of your own."""
    with Broker(tmp_path_factory.mktemp("broker")) as running:
        yield running.bootstrap


@pytest.fixture
def own_broker(tmp_path: Path) -> Iterator[Callable[..., Broker]]:
    """Starts brokers for one test, which may kill them; all are stopped after it."""
    started: list[Broker] = []

    def start(**options: Any) -> Broker:
        started.append(Broker(tmp_path / f"broker-{len(started)}", **options).start())
        return started[-1]

    yield start
    for running in started:
        running.stop()


@dataclass(frozen=True)
class Guarded:
    """A broker that asks for a login and holds everybody to their rights; ``root`` may all, without a login."""

    broker: Broker
    bootstrap: str
    security: dict[str, str]
    """How to log in, but for who."""
    password: str = PASSWORD

    @property
    def root(self) -> str:
        return self.broker.bootstrap

    def cluster(self, user: str, password: str | None = None) -> Cluster:
        security = {**self.security, "username": user, "password": password or self.password}
        return Cluster.model_validate({"bootstrap": self.bootstrap, "security": security})

    def allow(self, user: str, rules: list[Rule]) -> None:
        client = AdminClient({"bootstrap.servers": self.root, "log_level": 0})
        for future in client.create_acls([_binding(user, rule) for rule in rules]).values():
            future.result(PATIENCE_S)

    def forbid(self, user: str, rule: Rule) -> None:
        """Take a right away."""
        binding = _binding(user, rule)
        one = AclBindingFilter(
            binding.restype, binding.name, binding.resource_pattern_type, binding.principal, "*",
            binding.operation, binding.permission_type,
        )  # fmt: skip
        client = AdminClient({"bootstrap.servers": self.root, "log_level": 0})
        for future in client.delete_acls([one]).values():
            assert len(future.result(PATIENCE_S)) == 1


def _binding(user: str, rule: Rule) -> AclBinding:
    kind = {
        "topic": ResourceType.TOPIC,
        "group": ResourceType.GROUP,
        "cluster": ResourceType.BROKER,
        "transactional_id": ResourceType.TRANSACTIONAL_ID,
    }
    return AclBinding(
        kind[rule.resource],
        rule.name,
        ResourcePatternType[rule.pattern.upper()],
        f"User:{user}",
        "*",
        AclOperation[rule.operation.upper()],
        AclPermissionType.ALLOW,
    )


def guarded_broker(folder: Path) -> Guarded:
    """A started one: SASL_PLAINTEXT, PLAIN."""
    users = " ".join(f'user_{name}="{PASSWORD}"' for name in USERS)
    login = "org.apache.kafka.common.security.plain.PlainLoginModule"
    extra = {
        "sasl.enabled.mechanisms": "PLAIN",
        "listener.name.login.plain.sasl.jaas.config": f"{login} required {users};",
    }
    return _guarded(folder, extra, {"protocol": "SASL_PLAINTEXT"})


def encrypted_broker(
    folder: Path,
    certificates: Certificates,
    password: str,
    more: Mapping[str, str] | None = None,
    plugins: Sequence[Path] = (),
    port: int = 0,
) -> Guarded:
    """A started one: SASL_SSL, SCRAM-SHA-512, everybody with this password.

    ``more``: further server properties; ``port``: of the listener with the login.
    """
    extra = {
        "sasl.enabled.mechanisms": "SCRAM-SHA-512",
        "listener.name.login.scram-sha-512.sasl.jaas.config": "org.apache.kafka.common.security.scram.ScramLoginModule required;",
        "ssl.keystore.type": "PEM",
        "ssl.keystore.location": str(certificates.made("IP:127.0.0.1")),
        **(more or {}),
    }
    security = {"protocol": "SASL_SSL", "mechanism": "SCRAM-SHA-512", "ca_file": str(certificates.authority)}
    made = replace(_guarded(folder, extra, security, plugins, port), password=password)
    about = ScramCredentialInfo(ScramMechanism.SCRAM_SHA_512, 4096)
    wanted: list[UserScramCredentialAlteration] = [
        UserScramCredentialUpsertion(name, about, password.encode()) for name in USERS
    ]
    client = AdminClient({"bootstrap.servers": made.root})
    for future in client.alter_user_scram_credentials(wanted).values():
        future.result(PATIENCE_S)
    return made


def _guarded(
    folder: Path,
    extra: dict[str, str],
    security: dict[str, str],
    plugins: Sequence[Path] = (),
    port: int = 0,
) -> Guarded:
    port, protocol = port or free_port(), security["protocol"]
    more = {
        "listener.security.protocol.map": f"CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT,LOGIN:{protocol}",
        "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
        "super.users": "User:ANONYMOUS",
    }
    running = Broker(folder, extra={**more, **extra}, listeners={"LOGIN": port}, plugins=plugins).start()
    return Guarded(running, f"127.0.0.1:{port}", security)


@pytest.fixture(scope="session")
def guarded(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Guarded]:
    """One that tests share."""
    made = guarded_broker(tmp_path_factory.mktemp("guarded"))
    yield made
    made.broker.stop()


@pytest.fixture
def own_guarded(tmp_path: Path) -> Iterator[Guarded]:
    """One for a test that fills it with a kagent of its own."""
    made = guarded_broker(tmp_path / "guarded")
    yield made
    made.broker.stop()
