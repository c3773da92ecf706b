"""Every metric of the worker, in one place: name, labels and meaning; the docs page is made from it. Pure.

Lag has the names that existing rules and dashboards query: kafka_exporter's and kafka-lag-exporter's, with the label
``cluster`` added to the former. Names from Kafka are made safe to show; hosts and client ids come redacted already.
"""

from __future__ import annotations

import hashlib
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import Literal

import msgspec
from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.core import HistogramMetricFamily, Metric
from prometheus_client.registry import Collector
from prometheus_client.utils import floatToGoString

from kagent.text import shown
from kagent.worker.http.models import UsefulMembers
from kagent.worker.latency import STAGES, Histogram, Stage

STATES = ("judged", "learning", "blind", "muted", "ignored")
"""What a state message counts."""
Kind = Literal["gauge", "counter", "histogram"]
OWN = ("cluster", "group")
# kafka_exporter's labels and names: https://github.com/danielqsj/kafka_exporter
KEX = ("cluster", "consumergroup", "topic")
KEX_PARTITION = (*KEX, "partition")
# kafka-lag-exporter's: https://github.com/seglo/kafka-lag-exporter
KLE = ("cluster_name", "group")
KLE_PARTITION = (*KLE, "topic", "partition", "member_host", "consumer_id", "client_id")


@dataclass(frozen=True, slots=True)
class About:
    """One metric."""

    name: str
    kind: Kind
    labels: tuple[str, ...]
    meaning: str


METRICS: Mapping[str, About] = {
    about.name: about
    for about in (
        About("kafka_consumergroup_lag", "gauge", KEX_PARTITION, "Shown lag: log end − committed, in records."),
        About("kafka_consumergroup_current_offset", "gauge", KEX_PARTITION, "The committed offset."),
        About("kafka_consumergroup_lag_sum", "gauge", KEX, "Shown lag of the group on the topic."),
        About("kafka_consumergroup_members", "gauge", KEX[:2], "Members of the group."),
        About("kafka_consumergroup_group_lag", "gauge", KLE_PARTITION, "Shown lag, with who holds the partition."),
        About("kafka_consumergroup_group_lag_seconds", "gauge", KLE_PARTITION, "How far behind the partition is: the age of its oldest unread record, at least."),
        About("kafka_consumergroup_group_max_lag", "gauge", KLE, "Greatest shown lag of a partition."),
        About("kafka_consumergroup_group_max_lag_seconds", "gauge", KLE, "How far behind the latest partition is: the greatest age of an unread record, at least."),
        About("kafka_consumergroup_group_sum_lag", "gauge", KLE, "Shown lag of the whole group."),
        About("kafka_consumergroup_group_topic_sum_lag", "gauge", (*KLE, "topic"), "Shown lag of the group on the topic."),
        About("kagent_group_skew", "gauge", OWN, "Greatest ÷ mean member work; 1 is even."),
        About("kagent_member_lag", "gauge", (*OWN, "member"), "Judged lag of the member, in records, at least."),
        About("kagent_group_blind", "gauge", OWN, "1: the group cannot be judged now; nothing opens or resolves."),
        About("kagent_group_as_of_seconds", "gauge", OWN, "The time that the lags of a blind group are of, in seconds since 1970. Only while it is blind: then its lags stay as they were when its commits were last known."),
        About("kagent_group_verdict", "gauge", (*OWN, "verdict"), "1 for the verdict of the last judgement."),
        About("kagent_open_incident", "gauge", (*OWN, "verdict", "severity"), "1 while an incident is open."),
        About("kagent_incidents", "gauge", ("cluster", "what"), "Incidents of all known groups since each group was first seen; restarts do not reset it. `what`: opened; followed, drained, group_changed or expired (how they ended); right (followed, and it helped)."),
        About("kagent_group_useful_members", "gauge", OWN, "How many members the group should have: for autoscalers (`docs/autoscaling.md`). Missing until a member was busy, as its speed is not known before."),
        About("kagent_group_scaling_limit", "gauge", (*OWN, "reason"), "1: the group is late, and for this reason more members do not help, or kagent does not know whether they would."),
        About("kagent_planner_gap", "gauge", OWN, "Skew after the open plan minus the proven lower bound of any assignment. 0: no assignment is better. Above 0: a better one may exist, by at most this much. Only while an incident with a plan is open."),
        About("kagent_group_muted_until_seconds", "gauge", OWN, "When the group's mute ends, in seconds since 1970. Only groups that are muted."),
        About("kagent_groups", "gauge", ("cluster",), "Groups that this worker owns."),
        About("kagent_groups_in_state", "gauge", ("cluster", "state"), "Groups at the last tick: judged, blind, ignored; of the judged ones learning and muted."),
        About("kagent_learning_until_seconds", "gauge", ("cluster",), "When the last group that is learning will be known, in seconds since 1970. Only while a group is learning."),
        About("kagent_progress_age_seconds", "gauge", ("cluster",), "Age of the pipeline's oldest progress."),
        About("kagent_last_tick_age_seconds", "gauge", (), "Seconds since groups were last judged."),
        About("kagent_ready", "gauge", (), "1 once the worker has caught up."),
        About("kagent_events_total", "counter", (), "Messages of the events topic taken in."),
        About("kagent_dead_letters_total", "counter", (), "Messages that could not be read."),
        About("kagent_delay_seconds", "histogram", ("stage",), f"Seconds, by stage. {'; '.join(f'{s}: {m}' for s, m in STAGES.items())}."),
        About("kagent_records_refused_total", "counter", ("what", "reason"), "Records that were refused, by reason; `what`: event, tick or mute. Each goes to the dead letters; of the events of one message the first ten do."),
        About("kagent_rows_refused_total", "counter", ("table", "reason"), "Rows of the worker's tables that could not be read and were left out, or that were missing and were restored from the coordinators' answers."),
        About("kagent_group_set_aside", "gauge", OWN, "1: the group's judgement failed; it is tried again when its data changes. Only for such groups."),
        About("kagent_candidates_dropped_total", "counter", ("reason",), "Findings that were not published, by reason."),
        About("kagent_plans_applied_total", "counter", ("result",), "Plans of groups with `apply: auto`; `result`: applied, or why not (`docs/apply.md`)."),
        About("kagent_series_left_out", "gauge", (), "Series of partitions and members not shown: worker.max_series."),
        About("kagent_groups_left_out", "gauge", (), "Groups not shown here: worker.max_metric_groups."),
        About("kagent_log_end_sample_seconds", "gauge", ("cluster",), "How long the last sample of the log ends took. If it is longer than worker.sample, lags are older than they should be."),
        About("kagent_log_end_samples_failed_total", "counter", (), "Samples of the log ends that failed."),
        About("kagent_events_over_limit_total", "counter", (), "Events that were dropped because their group is beyond worker.max_groups."),
    )
}  # fmt: skip


class PartitionSample(msgspec.Struct, frozen=True):
    """One partition of a group; ``member``: place in ``GroupSample.members`` or None. ``lag`` None: no commit."""

    topic: str
    partition: int
    committed: int
    lag: int | None
    seconds: float
    member: int | None = None


class MemberSample(msgspec.Struct, frozen=True):
    """One member, its names as they may be shown."""

    name: str
    member_id: str
    client_id: str
    host: str
    lag: float


@dataclass(frozen=True, slots=True)
class GroupSample:
    """One group as it was last seen."""

    cluster: str
    group: str
    partitions: Sequence[PartitionSample] = ()
    members: Sequence[MemberSample] = ()
    skew: float | None = None
    verdict: str = "balanced"
    blind: bool = False
    incident: tuple[str, str] | None = None
    """Verdict and severity of what is open."""
    gap: float | None = None
    partition: int = 0
    """Of the events topic."""
    set_aside: str | None = None
    """Why its judgement failed."""
    ignored: bool = False
    """Whether the settings say that it is never judged."""
    muted_until_ms: int | None = None
    """When its mute ends; None if it is not muted."""
    useful: UsefulMembers | None = None
    """How many members would help, where that is known."""
    as_of_ms: int | None = None
    """The time that its lags are of, while it is blind."""


@dataclass(frozen=True, slots=True)
class WorkerView:
    """All that the worker's pages show. Ages in seconds; ``progress``: by cluster."""

    groups: Sequence[GroupSample] = ()
    progress: Mapping[str, float] = field(default_factory=dict)
    tick_age: float = 0.0
    ready: bool = False
    events: int = 0
    dead_letters: int = 0
    dropped: Mapping[str, int] = field(default_factory=dict)
    over_limit: int = 0
    delays: Mapping[Stage, Histogram] = field(default_factory=dict)
    track: Mapping[tuple[str, str], int] = field(default_factory=dict)
    """(cluster, what came of an incident) → how often."""
    refused: Mapping[tuple[str, str], int] = field(default_factory=dict)
    """(what, reason) → records."""
    refused_rows: Mapping[tuple[str, str], int] = field(default_factory=dict)
    """(table, reason) → rows."""
    states: Mapping[tuple[str, str], int] = field(default_factory=dict)
    """(cluster, one of ``STATES``) → groups at the last tick."""
    learning_until_ms: Mapping[str, int] = field(default_factory=dict)
    """Cluster → when the last of its groups is known."""
    sampling: Mapping[str, float] = field(default_factory=dict)
    """Cluster → how long the last sample of its log ends took, in seconds."""
    samples_failed: int = 0
    applied: Mapping[str, int] = field(default_factory=dict)
    """Result → plans that were to be applied."""


@dataclass(frozen=True, slots=True)
class SeriesLimits:
    """``series``: most series of partitions and members; groups keep their sums. ``groups``: most groups at all."""

    series: int = 100_000
    groups: int = 20_000


def hashed(value: str) -> str:
    """Tells names apart that look alike once they are cut."""
    return "sha256:" + hashlib.sha256(value.encode(errors="surrogatepass")).hexdigest()[:12]


class _Escaped(dict[str, str]):
    """Label value → as it is written: most stand in many series."""

    def __missing__(self, value: str) -> str:
        found = self[value] = value.replace("\\", "\\\\").replace("\n", "\\n").replace('"', '\\"')
        return found


@cache
def _template(labels: tuple[str, ...]) -> Callable[..., str]:
    """Writes labels given their values in this order: they stand by name."""
    places = ",".join(f'{label}="{{{labels.index(label)}}}"' for label in sorted(labels))
    return (f"{{{{{places}}}}}" if places else "").format


def _number(value: float) -> str:
    # floatToGoString differs from repr for seven digits and more, and not a number; it takes three times as long.
    if 0 <= value < 1_000_000:
        return repr(float(value))
    return str(floatToGoString(value))  # type: ignore[no-untyped-call]


class Lines:
    """The page while it is written, metric by metric.

    Written here and not by prometheus_client's ``generate_latest``, which checks each name and escapes each value anew: for 280,000
    series it takes several times as long. The format: https://prometheus.io/docs/instrumenting/exposition_formats/#text-based-format
    """

    def __init__(self) -> None:
        self.made: defaultdict[str, list[str]] = defaultdict(list)
        self._escaped = _Escaped()

    def add(self, name: str, values: Sequence[str], value: float) -> None:
        """One sample; its label values in the order of the table. Each series is given once."""
        self.put(name, self.labels(METRICS[name].labels, values), value)

    def labels(self, labels: tuple[str, ...], values: Sequence[str]) -> str:
        """Labels as they are written: once for all series that share them, as it costs more than the rest of a line."""
        return _template(labels)(*map(self._escaped.__getitem__, values))

    def put(self, name: str, labels: str, value: float) -> None:
        """One sample, its labels as :meth:`labels` wrote them."""
        self.made[name].append(f"{name}{labels} {_number(value)}\n")

    def __iter__(self) -> Iterator[str]:
        for name, lines in self.made.items():
            yield f"# HELP {name} {METRICS[name].meaning}\n# TYPE {name} {METRICS[name].kind}\n"
            yield from lines


def written(view: WorkerView, limits: SeriesLimits) -> Lines:
    """All series of the view but the histogram's."""
    lines = Lines()
    ranked = sorted(view.groups, key=_matters)
    left = _groups(lines, ranked[: limits.groups], limits.series)
    lines.add("kagent_series_left_out", [], left)
    lines.add("kagent_groups_left_out", [], max(0, len(ranked) - limits.groups))
    _worker(lines, view)
    return lines


def _groups(lines: Lines, ranked: Sequence[GroupSample], room: int) -> int:
    """The series of these groups, the fine ones while there is ``room``; returns how many are left out."""
    left, seen = 0, set[tuple[str, str]]()
    for group in ranked:
        names = shown(group.cluster), shown(group.group)
        if names in seen:  # two names that look alike once cut or escaped: a number tells them apart
            names = names[0], f"{names[1]} {hashed(group.group)}"
        seen.add(names)
        # Series of a partition: offset, lag under two names, age; of a member: its lag.
        fine = 4 * len(group.partitions) + len(group.members)
        _sums(lines, group, *names)
        # Not the end: a smaller group further down may still fit.
        if fine > room:
            left += fine
            continue
        room -= fine
        _parts(lines, group, *names)
    return left


def _worker(lines: Lines, view: WorkerView) -> None:
    """The series of the worker itself."""
    for cluster, count in sorted(Counter(g.cluster for g in view.groups).items()):
        lines.add("kagent_groups", [shown(cluster)], count)
    for (cluster, state), count in sorted(view.states.items()):
        lines.add("kagent_groups_in_state", [shown(cluster), state], count)
    for cluster, until_ms in view.learning_until_ms.items():
        lines.add("kagent_learning_until_seconds", [shown(cluster)], until_ms / 1000)
    for cluster, age in view.progress.items():
        lines.add("kagent_progress_age_seconds", [shown(cluster)], age)
    lines.add("kagent_last_tick_age_seconds", [], view.tick_age)
    lines.add("kagent_ready", [], float(view.ready))
    lines.add("kagent_events_total", [], view.events)
    lines.add("kagent_dead_letters_total", [], view.dead_letters)
    lines.add("kagent_events_over_limit_total", [], view.over_limit)
    lines.add("kagent_log_end_samples_failed_total", [], view.samples_failed)
    for cluster, took_s in sorted(view.sampling.items()):
        lines.add("kagent_log_end_sample_seconds", [shown(cluster)], took_s)
    for (cluster, what), count in sorted(view.track.items()):
        lines.add("kagent_incidents", [shown(cluster), what], count)
    for name, counted in (("records", view.refused), ("rows", view.refused_rows)):
        for labels, count in sorted(counted.items()):
            lines.add(f"kagent_{name}_refused_total", labels, count)
    for result, count in sorted(view.applied.items()):
        lines.add("kagent_plans_applied_total", [result], count)
    for reason, count in view.dropped.items():
        lines.add("kagent_candidates_dropped_total", [reason], count)


def _delays(delays: Mapping[Stage, Histogram]) -> Metric:
    about = METRICS["kagent_delay_seconds"]
    family = HistogramMetricFamily(about.name, about.meaning, labels=about.labels)
    for stage, histogram in delays.items():
        family.add_metric([stage], histogram.buckets(), histogram.sum)
    return family


def _matters(group: GroupSample) -> tuple[bool, int]:
    """What is shown first where not all can be: open incidents, then lag."""
    return group.incident is None, -sum(p.lag or 0 for p in group.partitions)


def _sums(lines: Lines, group: GroupSample, cluster: str, name: str) -> None:
    known = [p for p in group.partitions if p.lag is not None]
    topics: dict[str, int] = {}
    for p in known:
        topics[p.topic] = topics.get(p.topic, 0) + (p.lag or 0)
    for topic, lag in topics.items():
        lines.add("kafka_consumergroup_lag_sum", [cluster, name, topic], lag)
        lines.add("kafka_consumergroup_group_topic_sum_lag", [cluster, name, topic], lag)
    lines.add("kafka_consumergroup_members", [cluster, name], len(group.members))
    kle, own = lines.labels(KLE, [cluster, name]), lines.labels(OWN, [cluster, name])
    lines.put("kafka_consumergroup_group_sum_lag", kle, sum(topics.values()))
    lines.put("kafka_consumergroup_group_max_lag", kle, max([p.lag or 0 for p in known], default=0))
    seconds = max([p.seconds for p in known], default=0.0)
    lines.put("kafka_consumergroup_group_max_lag_seconds", kle, seconds)
    lines.put("kagent_group_blind", own, float(group.blind))
    if group.as_of_ms is not None:
        lines.put("kagent_group_as_of_seconds", own, group.as_of_ms / 1000)
    lines.add("kagent_group_verdict", [cluster, name, group.verdict], 1)
    if group.muted_until_ms is not None:
        lines.put("kagent_group_muted_until_seconds", own, group.muted_until_ms / 1000)
    if group.set_aside is not None:
        lines.put("kagent_group_set_aside", own, 1)
    if group.skew is not None:
        lines.put("kagent_group_skew", own, group.skew)
    if group.incident is not None:
        lines.add("kagent_open_incident", [cluster, name, *group.incident], 1)
    if group.useful is not None:
        lines.put("kagent_group_useful_members", own, group.useful.useful)
        if group.useful.why_not_more:
            lines.add("kagent_group_scaling_limit", [cluster, name, group.useful.why_not_more], 1)
    if group.gap is not None:
        lines.put("kagent_planner_gap", own, group.gap)


def _parts(lines: Lines, group: GroupSample, cluster: str, name: str) -> None:
    labels = [_labels(member) for member in group.members]
    for p in group.partitions:
        number = str(p.partition)
        kex = lines.labels(KEX_PARTITION, [cluster, name, p.topic, number])
        if p.committed >= 0:
            lines.put("kafka_consumergroup_current_offset", kex, p.committed)
        if p.lag is None:
            continue
        held = labels[p.member][1:] if p.member is not None else ["", "", ""]
        kle = lines.labels(KLE_PARTITION, [cluster, name, p.topic, number, *held])
        lines.put("kafka_consumergroup_lag", kex, p.lag)
        lines.put("kafka_consumergroup_group_lag", kle, p.lag)
        lines.put("kafka_consumergroup_group_lag_seconds", kle, p.seconds)
    used: set[str] = set()
    for at, member in enumerate(group.members):
        # Two members can have the same client id and host: numbered, neither series is lost.
        label = labels[at][0] if labels[at][0] not in used else f"{labels[at][0]} #{at}"
        used.add(label)
        lines.add("kagent_member_lag", [cluster, name, label], member.lag)


def _labels(member: MemberSample) -> list[str]:
    """member, member_host, consumer_id, client_id."""
    return [shown(value) for value in (member.name, member.host, member.member_id, member.client_id)]


def exposition(view: WorkerView, limits: SeriesLimits | None = None) -> bytes:
    """The body of ``/metrics``."""

    # prometheus_client's default registry would keep the collector of every scrape.
    class Once(Collector):
        def collect(self) -> Iterator[Metric]:
            yield _delays(view.delays)

    registry = CollectorRegistry(auto_describe=False)
    registry.register(Once())
    return "".join(written(view, limits or SeriesLimits())).encode() + generate_latest(registry)
