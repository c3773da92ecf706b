"""Faust's Kafka transport, for changelogs that are written in transactions."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from aiokafka import AIOKafkaConsumer, TopicPartition
from faust.transport.drivers import aiokafka as driver
from faust.types import TP

from kagent.kafka.consumer import consumer

LOOK_BACK_OFFSETS = 64
"""Offsets before a log end that are searched for the last record; sixteen times as many where there is none."""


class ConsumerThread(driver.AIOKafkaConsumerThread):
    """A consumer that does not see what was rolled back; Faust has no setting for it under ``at_least_once``."""

    def _create_worker_consumer(self, transport: Any) -> AIOKafkaConsumer:
        created = super()._create_worker_consumer(transport)
        # https://github.com/faust-streaming/faust/blob/master/faust/transport/drivers/aiokafka.py passes it only under exactly_once.
        created._isolation_level = "read_committed"
        return created

    async def _fetch_records(
        self, consumer: AIOKafkaConsumer, active_partitions: set[TP], *args: Any, **options: Any
    ) -> dict[TopicPartition, list[Any]]:
        """The records that Faust takes; the others are put back, to be fetched when it does.

        Faust drops what comes of partitions that are paused, or of any while the flow is stopped. A fetch that is under way at a
        rebalance ends after recovery has looked for its place in the changelogs: recovery would wait for ever for what it took.
        """
        found = await super()._fetch_records(consumer, active_partitions, *args, **options)
        # Nothing is awaited from here on, so that no seek comes between. Faust changes the set of active partitions in place.
        taken = {
            tp: batch for tp, batch in found.items() if self.consumer.flow_active and tp in active_partitions
        }
        for tp in found.keys() - taken.keys() & consumer.assignment():
            consumer.seek(tp, found[tp][0].offset)
        return taken


class Consumer(driver.Consumer):
    """Recovery of a transactional changelog ends at its last visible record.

    At the log end stands a commit marker, for which Faust would wait for ever; and a consumer's position moves before its
    records reach the recovery, so it does not tell where recovery may end.
    """

    def _new_consumer_thread(self) -> ConsumerThread:
        return ConsumerThread(self, loop=self.loop, beacon=self.beacon)

    async def highwaters(self, *partitions: TP) -> Mapping[TP, int]:
        """The offset after the last visible record of each partition; the log start where there is none."""
        # aiokafka's getmany() asserts its own TopicPartition; Faust's TP is another tuple.
        places = {TopicPartition(tp.topic, tp.partition): tp for tp in partitions}
        app: Any = self.app  # kagent's own, which knows its cluster
        # A consumer of its own: Faust's is in the middle of a rebalance, its partitions paused.
        async with consumer(app.home_, auto_offset_reset="earliest") as reader:
            await reader.start()
            found = await last_records(reader, places)
        return {places[place]: end for place, end in found.items()}


async def last_records(
    reader: AIOKafkaConsumer, places: Iterable[TopicPartition]
) -> dict[TopicPartition, int]:
    """The offset after the last record that this consumer can see in each partition; the log start where there is none."""
    reader.assign(list(places))
    ends = await reader.end_offsets(list(places))
    begins = await reader.beginning_offsets(list(places))
    found: dict[TopicPartition, int] = {}
    back = LOOK_BACK_OFFSETS
    while missing := [tp for tp in ends if tp not in found]:
        for tp in missing:
            reader.seek(tp, max(begins[tp], ends[tp] - back))
        last = await _last_before(reader, {tp: ends[tp] for tp in missing})
        # Searched down to the log start without a record: Faust begins there too, and has nothing to recover. Less than it, as where
        # records were deleted, would look to Faust as if its tables were ahead of the changelog.
        whole = {tp for tp in missing if ends[tp] - back <= begins[tp]}
        found |= {tp: last.get(tp, begins[tp]) for tp in missing if tp in last or tp in whole}
        # Aborted transactions and control records can fill the last offsets: look further back.
        back *= 16
    return found


async def _last_before(reader: AIOKafkaConsumer, ends: Mapping[Any, int]) -> dict[Any, int]:
    last: dict[Any, int] = {}
    left = set(ends)
    # By position, not by records: a batch of markers or aborted records moves it and returns none.
    while left := {tp for tp in left if await reader.position(tp) < ends[tp]}:
        for tp, records in (await reader.getmany(*left, timeout_ms=200)).items():
            for record in records:
                last[tp] = record.offset + 1
    return last


class Transport(driver.Transport):
    """Faust's Kafka transport with this consumer."""

    Consumer = Consumer
