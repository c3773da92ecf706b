"""How a cluster is called of which only the address was given: as the workers call it that report there.

Mutes and incidents are kept by the cluster's name: under another one a mute would have no effect.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import TYPE_CHECKING

from kagent.contract.recommendation import State
from kagent.errors import InputError, KafkaError
from kagent.kafka.names import run
from kagent.text import few, shown

if TYPE_CHECKING:
    from kagent.settings import Settings


def as_reported(settings: Settings, name: str) -> str:
    """The name by which workers report the cluster; the settings' own where no worker does, or no right to read it.

    Raises InputError as :func:`reported_name`.
    """
    if not settings.name_is_guess:
        return name
    from kagent.client.client import current

    try:
        found = run(current(settings.home_cluster(name), settings.topics.recommendations))
    except KafkaError:
        return name
    return reported_name(settings, name, clusters_of(found))


def clusters_of(messages: Mapping[str, object]) -> list[str]:
    """The clusters of which there is a state message; ``messages``: by key."""
    return [message.cluster for message in messages.values() if isinstance(message, State)]


def reported_name(settings: Settings, name: str, reported: Collection[str]) -> str:
    """The one name that workers report, if nothing says how the cluster is called. Raises InputError where they report several."""
    if not settings.name_is_guess or name in reported or not reported:
        return name
    if len(reported) > 1:
        names = few([shown(each) for each in sorted(reported)])
        raise InputError(f"Workers report several clusters here; choose one with --cluster: {names}.")
    (only,) = reported
    return only
