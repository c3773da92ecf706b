"""Creating topics, or asking whether they could be.

The controller alone creates topics. Since KIP-590 any broker hands the request on to it; where ZooKeeper elects the controller, every other
broker refuses. A broker whose controller is frozen answers nothing, though it is well itself: so the brokers are asked first which of them
answer, and a person reads the name of the one that does not.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any

from aiokafka.errors import KafkaError as ClientError
from aiokafka.errors import NotControllerError, RequestTimedOutError, for_code
from aiokafka.protocol.admin import CreateTopicsRequest
from aiokafka.protocol.metadata import MetadataRequest

from kagent.kafka.brokers import Brokers, NoAnswer, together
from kagent.kafka.descriptions import NewTopic


async def silent(brokers: Brokers) -> dict[int, str]:
    """The brokers of the metadata that do not answer, and the sentence for each. Raises NoAnswer if none does."""
    nodes = list(brokers.nodes)
    # What every broker answers out of its own memory.
    answers = await together(brokers.ask(MetadataRequest([]), node) for node in nodes)
    found = {
        node: answer for node, answer in zip(nodes, answers, strict=True) if isinstance(answer, NoAnswer)
    }
    if len(found) == len(nodes):
        raise next(iter(found.values()))
    return {node: str(answer) for node, answer in found.items()}


async def created(
    brokers: Brokers,
    topics: Sequence[NewTopic],
    validate_only: bool,
    timeout_ms: int,
    without: Mapping[int, str],
) -> dict[str, ClientError]:
    """Those of these topics that were refused, and the cluster's error for each. ``without``: the brokers that are :func:`silent`.

    Raises NoAnswer if the controller does not answer.
    """
    question = CreateTopicsRequest([_asked(topic) for topic in topics], timeout_ms, validate_only)
    for node in brokers.nodes.keys() - without.keys():
        try:
            refused = _refused(await brokers.ask(question, node))
        except NoAnswer as error:
            raise _in_vain(str(error), without.values()) from error
        kinds = set(map(type, refused.values()))
        if RequestTimedOutError in kinds:
            host, port = brokers.nodes[node].address
            raise _in_vain(f"no answer in time of broker {node} at {host}:{port}", without.values())
        if NotControllerError not in kinds:
            return refused
    raise NoAnswer("; ".join(without.values()) or "no broker is the controller now", silent=bool(without))


def _asked(topic: NewTopic) -> Any:
    return (topic.name, topic.partitions, topic.replication, [], list(topic.config.items()))


def _refused(answer: Any) -> dict[str, ClientError]:
    raws = answer.to_object()["topic_errors"]
    return {
        raw["topic"]: for_code(raw["error_code"])(raw.get("error_message") or "")
        for raw in raws
        if raw["error_code"]
    }


def _in_vain(sentence: str, without: Collection[str]) -> NoAnswer:
    # It had answered a moment before: what it waits for is the controller.
    others = f": {'; '.join(without)}" if without else ""
    return NoAnswer(f"{sentence}, which waits for the controller{others}", silent=True)
