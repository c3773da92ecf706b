"""The attributes of aiokafka that kagent uses without a public interface exist in the release that is installed."""

from __future__ import annotations

import inspect
from importlib.metadata import version

from aiokafka import AIOKafkaConsumer
from aiokafka.client import AIOKafkaClient
from aiokafka.conn import AIOKafkaConnection
from aiokafka.consumer.fetcher import Fetcher
from aiokafka.consumer.group_coordinator import GroupCoordinator

from kagent.kafka import aiokafka_internals


def test_the_installed_release_was_checked() -> None:
    assert version("aiokafka") in aiokafka_internals.CHECKED_VERSIONS


def test_methods_that_are_not_public_are_still_coroutines_without_further_arguments() -> None:
    assert list(inspect.signature(AIOKafkaClient._wait_on_metadata).parameters) == ["self", "topic"]
    for method in (
        AIOKafkaClient.fetch_all_metadata,
        AIOKafkaClient.close,
        GroupCoordinator._stop_heartbeat_task,
        GroupCoordinator._stop_commit_offsets_refresh_task,
        Fetcher.close,
    ):
        assert inspect.iscoroutinefunction(method)
        assert list(inspect.signature(method).parameters) == ["self"]
    assert list(inspect.signature(AIOKafkaClient.force_metadata_update).parameters) == ["self"]


def test_a_rejoin_is_requested_without_waiting_for_it() -> None:
    assert not inspect.iscoroutinefunction(GroupCoordinator.request_rejoin)
    assert list(inspect.signature(GroupCoordinator.request_rejoin).parameters) == ["self"]


def test_a_fetcher_keeps_the_tasks_that_are_ended_for_it() -> None:
    made = inspect.getsource(Fetcher.__init__)
    assert "self._fetch_task = " in made
    assert "self._pending_tasks = set()" in made


def test_a_connection_keeps_its_writer_for_the_local_address() -> None:
    assert "_writer" in inspect.getsource(AIOKafkaConnection.__init__)


async def test_a_consumer_that_has_not_started_has_the_attributes() -> None:
    consumer = AIOKafkaConsumer(
        "orders", group_id="payments", client_id="payments-1", group_instance_id="pod-1"
    )

    try:
        assert aiokafka_internals.group_of(consumer) == "payments"
        assert aiokafka_internals.member_identity(consumer) == ("pod-1", "payments-1")
        assert consumer._client._conns == {}
        assert aiokafka_internals.local_address(consumer) is None
        assert aiokafka_internals.generation(consumer) is None
        assert {"_coordinator", "_fetcher"} <= vars(consumer).keys()
    finally:
        await consumer.stop()
