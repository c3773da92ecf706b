"""Shared by all tests: nothing of the caller's environment reaches them."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka.admin import (
    AclBinding,
    AclBindingFilter,
    AclOperation,
    AclPermissionType,
    AdminClient,
    ResourcePatternType,
    ResourceType,
)
from hypothesis import settings

from kagent.embedded.broker import Broker, free_port
from kagent.kafka.acls import Rule
from kagent.settings import Cluster

PASSWORD = "pa ss,wo=rd"
USERS = ("pipeline", "worker", "subscriber", "alert", "owner", "recorder")

# How long one example takes says more of the machine than of the code. Examples are the same at every run, so that what
# fails is what was changed; `make explore` looks for others.
settings.register_profile("kagent", deadline=None, derandomize=True)
settings.register_profile("explore", deadline=None, max_examples=1000)
settings.load_profile("kagent")


pytest_plugins = [
    "tests.fixtures.alerts",
    "tests.fixtures.captures",
    "tests.fixtures.cast",
    "tests.fixtures.group_builder",
    "tests.fixtures.kafka_tools",
    "tests.fixtures.spark",
    "tests.fixtures.stage",
    "tests.fixtures.timeline",
]


@pytest.fixture(autouse=True)
def clean_environment(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Settings and folders of the person who runs the tests are not seen by them, and each test has a data folder of its own."""
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "share"))
    for name in list(os.environ):
        if name.startswith("KAGENT_") and name != "KAGENT_CACHE":
            monkeypatch.delenv(name)


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

    @property
    def root(self) -> str:
        return self.broker.bootstrap

    def cluster(self, user: str, password: str = PASSWORD) -> Cluster:
        security = {"protocol": "SASL_PLAINTEXT", "username": user, "password": password}
        return Cluster.model_validate({"bootstrap": self.bootstrap, "security": security})

    def allow(self, user: str, rules: list[Rule]) -> None:
        client = AdminClient({"bootstrap.servers": self.root, "log_level": 0})
        for future in client.create_acls([_binding(user, rule) for rule in rules]).values():
            future.result(15)

    def forbid(self, user: str, rule: Rule) -> None:
        """Take a right away."""
        binding = _binding(user, rule)
        one = AclBindingFilter(
            binding.restype, binding.name, binding.resource_pattern_type, binding.principal, "*",
            binding.operation, binding.permission_type,
        )  # fmt: skip
        client = AdminClient({"bootstrap.servers": self.root, "log_level": 0})
        for future in client.delete_acls([one]).values():
            assert len(future.result(15)) == 1


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
    """A started one."""
    port = free_port()
    users = " ".join(f'user_{name}="{PASSWORD}"' for name in USERS)
    login = "org.apache.kafka.common.security.plain.PlainLoginModule"
    extra = {
        "listener.security.protocol.map": "CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT,LOGIN:SASL_PLAINTEXT",
        "sasl.enabled.mechanisms": "PLAIN",
        "listener.name.login.plain.sasl.jaas.config": f"{login} required {users};",
        "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
        "super.users": "User:ANONYMOUS",
    }
    running = Broker(folder, extra=extra, listeners={"LOGIN": port}).start()
    return Guarded(running, f"127.0.0.1:{port}")


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
