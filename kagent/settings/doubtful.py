"""Notes about settings that are right and likely not what was meant: for those who ask, as each may be on purpose."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from kagent.contract.recommendation import GroupKind, Verdict
from kagent.duration_words import UNITS_S
from kagent.durations import to_text
from kagent.errors import SettingsError
from kagent.policy import Policy, PolicySettings, make_policy
from kagent.settings.alert_destinations import is_local
from kagent.settings.all_settings import Settings
from kagent.settings.cluster import Cluster
from kagent.settings.given_settings import GivenSettings, folded
from kagent.settings.meant import far_unit_meant, unit_meant
from kagent.settings.misplaced import in_each_others_place, texts, values
from kagent.settings.mistakes import dotted, schema_of
from kagent.settings.pattern_notes import patterns
from kagent.settings.pipeline_settings import PipelineSettings
from kagent.settings.schema_ways import length_unit, schema_at
from kagent.settings.settings_file import Where
from kagent.settings.variable_notes import doubtful_variables
from kagent.settings.without_effect import without_what_it_needs
from kagent.settings.worker_settings import WorkerSettings
from kagent.text import ended

OTHER_PORTS = {
    "2181": "ZooKeeper",
    "8081": "the Schema Registry",
    "8082": "the REST Proxy",
    "8083": "Kafka Connect",
}
"""Default ports of the servers around Kafka."""
ANY_HOST = ("0.0.0.0", "::")


def doubtful(settings: Settings, given: GivenSettings) -> Iterator[str]:
    """A sentence for each."""
    for where, why in (*_doubts(settings), *_written(given)):
        place = given.place(where)
        yield f"{f'{place}: ' if place else ''}{dotted(where)}: {ended(why)}"
    yield from doubtful_variables(given, schema_of(Settings))


def doubt_of_address(addresses: str) -> str | None:
    """A clause about addresses that are right and likely not meant; None if there is nothing to say."""
    return without_port(addresses) or of_another_server(addresses)


def without_port(addresses: str) -> str | None:
    """A clause about the first of these addresses that names no port; None if all do.

    >>> without_port("a:9092,b"), without_port("kafka9092"), without_port("[::1]:9092")
    ('names no port, so b:9092 is used', 'names no port, so kafka9092:9092 is used; did you mean kafka:9092?', None)
    """
    for address in map(str.strip, addresses.split(",")):
        if not re.search(r":\d+$", address.rpartition("]")[2] or address):
            # Host names end in a digit or two; a port has four or five.
            near = re.fullmatch(r"(.*[A-Za-z_-])(\d{4,5})", address)
            hint = f"; did you mean {near[1].rstrip('-_')}:{near[2]}?" if near else ""
            return f"names no port, so {address}:9092 is used{hint}"
    return None


def of_another_server(addresses: str) -> str | None:
    """A clause about the first of these addresses whose port is by default that of a server that is no broker; None if there is none."""
    for address in map(str.strip, addresses.split(",")):
        if server := OTHER_PORTS.get(address.rpartition(":")[2]):
            return f"{address} has the usual port of {server}; kagent needs a broker's address, usually with port 9092"
    return None


def _written(given: GivenSettings) -> Iterator[tuple[Where, str]]:
    """Doubts about values as they are written."""
    schema = schema_of(Settings)
    yield from in_each_others_place(given, schema)
    for where, text in texts(given):
        if where[0] == "clusters" and where[2:] == ("bootstrap",) and (why := doubt_of_address(text)):
            yield where, why
    for where, value in values(given):
        about = schema_at(schema, where, given.file.values)
        if (why := _in_another_unit(value, about) or _in_eights(value, about)) is not None:
            yield where, why
    for where, pattern in patterns(given):
        if name := re.fullmatch(r"([\w-]+)\.\*", pattern):
            why = f"{pattern} matches what begins with {name[1]} and a dot; for all that begins with {name[1]} write {name[1]}*. If not, write {name[1]}[.]*"
            yield where, why


def _in_eights(value: object, about: Mapping[str, Any]) -> str | None:
    """Of a number with a zero before it, which other programs read as octal, or not at all."""
    kinds = {each.get("type") for each in (about, *about.get("anyOf", ()))}
    if not isinstance(value, str) or not re.fullmatch(r"0\d+", value) or not kinds & {"integer", "number"}:
        return None
    return f"{value} is read as {int(value)}; write it without the zero"


def _in_another_unit(value: object, about: Mapping[str, Any]) -> str | None:
    unit, number = length_unit(about), _number(value)
    if not unit or number is None:
        return None
    near = unit_meant(number, about) or far_unit_meant(number, about)
    if near is None:
        return None
    # In the greatest unit: 8.3h is easier to judge than 500m.
    length_s, written = number * UNITS_S[unit], f"{number:.12g}"
    large = next((each for each in ("d", "h", "m") if length_s > UNITS_S[each]), "s")
    length = f"{length_s / UNITS_S[large]:,.1f}".removesuffix(".0") + large
    return f"{written} without a unit is {length}; did you mean {near}? If not, write {written}{unit}"


def _number(value: object) -> float | None:
    """The number that is written, if it has no unit."""
    try:
        return None if isinstance(value, bool) else float(str(value))
    except ValueError:
        return None


def _doubts(settings: Settings) -> Iterator[tuple[Where, str]]:
    yield from _ports(settings.worker, settings.pipeline)
    yield from _alike(settings.clusters)
    yield from _of_no_incident(settings)
    if not settings.topics.prefix:
        yield (
            ("topics", "prefix"),
            f"is empty, so kagent owns topics named {settings.topics.mutes}; the default is kagent-",
        )
    # How late a member is comes from the log ends.
    base = make_policy(settings.policy)
    yield from _never_so_rarely(settings, base)
    yield from without_what_it_needs(settings)
    for way, entry, policy in _policies(settings, base):
        if (
            "apply" in entry.model_fields_set
            and policy.apply == "auto"
            and (why := _not_applied(policy, settings))
        ):
            yield (*way, "apply"), f"auto can apply nothing here: {why}"
    sample, min_behind = settings.worker.sample, base.min_behind
    if sample > min_behind > 0:
        old, late = to_text(sample), to_text(min_behind)
        why = f"log ends that are up to {old} old do not show who is {late} late, as policy.min_behind has it; the default is 5s"
        yield ("worker", "sample"), why


def _alike(clusters: Mapping[str, Cluster]) -> Iterator[tuple[Where, str]]:
    """Clusters that are likely one, and names that a variable cannot tell apart."""
    addresses, names = dict[str, str](), dict[Where, str]()
    for name, cluster in clusters.items():
        address = ",".join(sorted(cluster.bootstrap.lower().split(",")))
        if (same := addresses.setdefault(address, name)) != name:
            yield (
                ("clusters", name, "bootstrap"),
                f"is the address of {same} too, so one cluster is watched twice",
            )
        if (same := names.setdefault(folded((name,)), name)) != name:
            yield (
                ("clusters", name),
                f"a variable cannot tell this name from {same}: they differ by capitals, dots, dashes or underscores only",
            )


def _of_no_incident(settings: Settings) -> Iterator[tuple[Where, str]]:
    """Where a verdict is chosen that no incident has."""
    why = f"no incident has the verdict {Verdict.BALANCED}, so this has no effect"
    ways: list[Where] = [("policy",), *(("groups", at) for at in range(len(settings.groups)))]
    for way, policy in zip(ways, (settings.policy, *settings.groups), strict=True):
        if Verdict.BALANCED in policy.model_dump(include={"severity"}).get("severity", {}):
            yield (*way, "severity", str(Verdict.BALANCED)), why
    for name, destination in settings.alert.destinations.items():
        if Verdict.BALANCED in (chosen := destination.only.verdicts):
            alone = "nothing is sent here" if len(chosen) == 1 else "it has no effect"
            where = ("alert", "destinations", name, "only", "verdicts", chosen.index(Verdict.BALANCED))
            yield where, f"no incident has the verdict {Verdict.BALANCED}, so {alone}"


def _never_so_rarely(settings: Settings, base: Policy) -> Iterator[tuple[Where, str]]:
    """Of messages about an open incident that are due when the last one is not valid any more."""
    for way, _, policy in _policies(settings, base):
        if policy.update_every > policy.valid and (
            way == ("policy",) or policy.update_every != base.update_every
        ):
            every, valid = to_text(policy.update_every), to_text(policy.valid)
            yield (
                (*way, "update_every"),
                f"{every} is more than valid ({valid}), before whose end an incident is published again anyway",
            )


def _policies(settings: Settings, base: Policy) -> Iterator[tuple[Where, PolicySettings, Policy]]:
    """The policy of all and of each entry of ``groups``, with the way to it and as it is given."""
    yield ("policy",), settings.policy, base
    for at, entry in enumerate(settings.groups):
        own = {k: v for k, v in entry.model_dump(exclude_unset=True).items() if k != "match"}
        try:
            made = make_policy(own, base)
        except SettingsError:
            # A mistake, named as one: the notes stand beside it.
            continue
        yield ("groups", at), entry, made


def _not_applied(policy: Policy, settings: Settings) -> str | None:
    """Why no plan of such a group is ever applied; None where one may be."""
    if settings.redact:
        return "with redact, member ids are hashes"
    if policy.ignore:
        return "with ignore: true no plan is made"
    if policy.stateful:
        return "with stateful: true no moves are advised"
    if policy.kind not in (None, GroupKind.CONSUMER):
        return f"only groups of kind {GroupKind.CONSUMER} take plans so, not {policy.kind}"
    return None


def _ports(worker: WorkerSettings, pipeline: PipelineSettings) -> Iterator[tuple[Where, str]]:
    host, port = worker.web_host, worker.web_port
    if worker.http.login == "none" and not is_local(host):
        why = f"{host} lets in all who reach port {port}, as worker.http.login is none; set login: token or login: proxy"
        yield ("worker", "web_host"), why
    if worker.advertised_host and is_local(worker.advertised_host):
        yield (
            ("worker", "advertised_host"),
            "is this machine alone, and others would ask themselves; it may be left out",
        )
    # A note: where each has a machine or container of its own, both may have the same port.
    if pipeline.metrics_port == port and _overlap(pipeline.metrics_host, host):
        why = f"{port} is worker.web_port too; on one machine only one of them can have it"
        yield ("pipeline", "metrics_port"), why


def _overlap(one: str, other: str) -> bool:
    """Whether both addresses take connections to the same one."""
    return one == other or one in ANY_HOST or other in ANY_HOST
