"""The key of everything kagent keeps: ``<cluster>/<group>``. A cluster's name has no slash, a group's may."""

from __future__ import annotations

from itertools import count


def group_key(cluster: str, group: str) -> str:
    """The key of a group: ``main/orders``."""
    return f"{cluster}/{group}"


def split_key(key: str) -> tuple[str, str]:
    """Cluster and group of a key; the group is empty for the key of the cluster itself."""
    cluster, _, group = key.partition("/")
    return cluster, group


def source_partition(group: str, partitions: int) -> int:
    """The partition of ``__consumer_offsets`` that holds a group, as Kafka's ``GroupMetadataManager.partitionFor``.

    Java's ``String.hashCode`` over UTF-16 units, ``Math.abs`` with 0 for the least int, modulo ``partitions``.
    """
    data = group.encode("utf-16-be", "surrogatepass")
    h = 0
    for high, low in zip(data[::2], data[1::2], strict=True):
        h = (31 * h + (high << 8 | low)) & 0xFFFFFFFF
    signed = h - (1 << 32) if h >= 1 << 31 else h
    return (0 if signed == -(1 << 31) else abs(signed)) % partitions


def one_name_each(partitions: int) -> dict[int, str]:
    """For each partition of ``__consumer_offsets`` a group's name that belongs there: to ask its coordinator something."""
    found: dict[int, str] = {}
    names = (f"kagent-asks-{number}" for number in count())
    while len(found) < partitions:
        name = next(names)
        found.setdefault(source_partition(name, partitions), name)
    return found
