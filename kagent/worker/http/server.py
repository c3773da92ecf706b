"""What the worker's pages show: the engine's groups as a plain view, and that view as JSON."""

from __future__ import annotations

import asyncio
import logging
from collections import Counter
from collections.abc import Iterable
from dataclasses import asdict, replace
from typing import Any

import numpy as np

from kagent.client.client import Message, is_open
from kagent.contract.recommendation import Recommendation
from kagent.detect.group_model import GroupModel
from kagent.detect.state import JudgeState
from kagent.group_key import group_key
from kagent.incident.evaluate import Judgement
from kagent.incident.explanation import explain, look_at
from kagent.lag.observation import Observation
from kagent.tables.declaration import ROWS
from kagent.text import LONGEST, shown, shown_all
from kagent.worker.engine import GroupEngine
from kagent.worker.groups import Entry
from kagent.worker.http.cluster_view import WorkerReply
from kagent.worker.http.judgement_view import judged_skew, useful_members
from kagent.worker.http.metrics import (
    STATES,
    GroupSample,
    MemberSample,
    SeriesLimits,
    WorkerView,
)
from kagent.worker.http.shown_partitions import shown_partitions

log = logging.getLogger("kagent.worker")


async def view(desk: GroupEngine, ready: bool, only: str | None = None) -> WorkerView:
    """The engine as it stands, or only the groups of this name (as it is or as it is shown). Lets others run between groups: a big cluster takes a
    while to add up."""
    now, found = desk.now, []
    # Copies: at the sleep below, an event may add a group and a rebalance replace the index.
    for partition, entries in list(desk.index.partitions.items()):
        for entry in filter(desk.evaluator.is_there, list(entries.values())):
            ignored = desk.policies(entry.group).ignore
            if (ignored and only is None) or only not in (None, entry.group, shown(entry.group)):
                continue
            found.append(_sample(desk, partition, entry, now, ignored))
            # Heartbeats and fetches run in the same loop.
            if len(found) % 20 == 0:
                await asyncio.sleep(0)
    track: Counter[tuple[str, str]] = Counter()
    for entry in (e for entries in list(desk.index.partitions.values()) for e in entries.values()):
        track.update(
            {(entry.cluster, what): n for what, n in entry.judged.track.items()} if entry.judged else {}
        )
    oldest: dict[str, int] = {}
    for coverage in desk.coverage.values():
        for cluster in desk.settings.clusters:
            at = coverage.oldest(cluster)
            if at is not None:
                oldest[cluster] = min(at, oldest.get(cluster, at))
    return WorkerView(
        groups=found,
        progress={cluster: max(0.0, (now - at) / 1000) for cluster, at in oldest.items()},
        tick_age=desk.clock() - desk.last_tick if desk.last_tick else 0.0,
        ready=ready,
        events=desk.counts["events"],
        dead_letters=desk.counts["dead_letters"],
        dropped=dict(desk.dropped),
        refused=dict(desk.refused),
        refused_rows=refused_rows(desk),
        over_limit=desk.counts["groups_over_limit"],
        sampling=dict(desk.sampling_s),
        samples_failed=desk.counts["samples_failed"],
        delays=desk.delays.stages,
        track=track,
        states=_states(desk),
        learning_until_ms=_learning_until(desk),
        applied=dict(desk.applied),
    )


def _states(desk: GroupEngine) -> Counter[tuple[str, str]]:
    """(cluster, state) → groups, as the last ticks of this worker's partitions counted them."""
    found: Counter[tuple[str, str]] = Counter()
    for summary in desk.live.summaries.values():
        for state in STATES:
            found[summary.cluster, state] += getattr(summary, state)
    return found


def _learning_until(desk: GroupEngine) -> dict[str, int]:
    found: dict[str, int] = {}
    for summary in desk.live.summaries.values():
        if summary.learning_until:
            found[summary.cluster] = max(summary.learning_until, found.get(summary.cluster, 0))
    return found


def _sample(desk: GroupEngine, partition: int, entry: Entry, now: int, ignored: bool) -> GroupSample:
    """The group, or where it cannot be shown, that it is set aside and why: one group costs no page."""
    try:
        return _group(desk, partition, entry, now, ignored)
    except Exception as error:
        desk.evaluator.put_aside(entry, error)
        why = desk.set_aside[entry.key]
        return GroupSample(
            entry.cluster, entry.group, blind=True, partition=partition, set_aside=why, ignored=ignored
        )


def _group(desk: GroupEngine, partition: int, entry: Entry, now: int, ignored: bool) -> GroupSample:
    seen, judged = desk.observe(partition, entry, now), desk.looks.get(entry.key)
    partitions = shown_partitions(entry, seen, desk.policies(entry.group))
    late = any(p.lag for p in partitions)
    message = desk.published.get(entry.key)
    standing = message if is_open(message) else None
    skew = standing.skew if standing else None
    members = _members(desk, seen, judged.model if judged and late else None)
    return GroupSample(
        cluster=entry.cluster,
        group=entry.group,
        partitions=partitions,
        members=members,
        skew=judged_skew(judged.model, judged, len(members)) if judged else None,
        verdict=judged.verdict if judged else "balanced",
        blind=seen.blind is not None or seen.unwatched,
        as_of_ms=seen.measured_at if seen.blind is not None or seen.unwatched else None,
        incident=(standing.verdict.value, standing.severity.value) if standing else None,
        partition=partition,
        set_aside=desk.set_aside.get(entry.key),
        ignored=ignored,
        muted_until_ms=seen.mute.until if seen.muted and seen.mute is not None else None,
        useful=useful_members(entry.judged, len(members)) if entry.judged else None,
        gap=skew.after - skew.lower_bound if skew and skew.after is not None and skew.lower_bound is not None else None,
    )  # fmt: skip


def _members(desk: GroupEngine, seen: Observation, model: GroupModel | None) -> list[MemberSample]:
    if seen.roster is None:
        return []
    waits = backlog_by_member(model) if model is not None and model.by_member else {}
    hide = desk.redaction
    return [
        MemberSample(name, hide.member_id(m.member_id), hide.client_id(m.client_id), hide.host(m.host), waits.get(name, 0.0))
        for m, name in zip(seen.roster.members, seen.roster.names, strict=True)
    ]  # fmt: skip


def refused_rows(desk: GroupEngine) -> Counter[tuple[str, str]]:
    """(table, reason) → rows that could not be read, by their bytes or by what they say."""
    found = Counter(desk.index.refused)
    for name in ROWS:
        table = getattr(desk.tables, name)
        for reason, count in getattr(table, "refused", {}).items():
            found[name, reason] += count
    return found


def backlog_by_member(model: GroupModel) -> dict[str, float]:
    """Records that wait for each member, as judged at its latest commit."""
    held = model.owner >= 0
    # bincount with weights: the backlog summed by owner.
    waits = np.bincount(model.owner[held], model.columns.backlog[held], len(model.names))
    return dict(zip(model.names, waits.tolist(), strict=True))


def limits(desk: GroupEngine) -> SeriesLimits:
    """By the settings."""
    worker = desk.settings.worker
    return SeriesLimits(worker.max_series, worker.max_metric_groups)


async def own(desk: GroupEngine, loaded: Iterable[int], only: str | None) -> WorkerReply:
    """The groups of the partitions that this worker has loaded; with ``only``, the group of this name in full."""
    by_partition: dict[int, list[dict[str, Any]]] = {partition: [] for partition in loaded}
    for group in (await view(desk, True, only)).groups:
        if group.partition in by_partition:
            made = group_json(group, only is not None)
            if only is not None and group.set_aside is None:
                try:
                    made["story"] = story(desk, group)
                except Exception as error:  # one group's surprise costs its story, and not the answer
                    log.exception("the explanation of %r cannot be made", group.group)
                    made["set_aside"] = shown(
                        f"its explanation cannot be made ({type(error).__name__}: {error})", LONGEST
                    )
            by_partition[group.partition].append(made)
    return WorkerReply(desk.worker, by_partition)


def story(desk: GroupEngine, group: GroupSample) -> dict[str, Any]:
    """What ``kagent explain`` prints of a group: since when, by what evidence, why (not), and what came of it before."""
    entry = desk.index.entries(group.partition)[group_key(group.cluster, group.group)]
    state = entry.judged or JudgeState(first_seen=desk.now)
    judged = replace(desk.looks.get(entry.key, Judgement(state)), state=state)
    seen = desk.observe(group.partition, entry, desk.now)
    looked = look_at(judged, seen, state, desk.policies(entry.group))
    last = desk.published.get(entry.key)
    # Not its reason and plan: the story has those of now.
    keep = {"id", "status", "verdict", "resolution", "opened_at", "as_of", "outcome"}
    answer = explain(judged, looked)
    answer["last"] = last and last.model_dump(mode="json", include=keep)
    # Last: reasons and commands quote names, too.
    return {name: shown_all(value) for name, value in answer.items()}


def group_json(group: GroupSample, whole: bool) -> dict[str, Any]:
    """One group of ``/api/groups``; ``whole`` with its partitions and members."""
    found: dict[str, Any] = {
        "cluster": group.cluster,
        "group": shown(group.group),
        "verdict": group.verdict,
        "blind": group.blind,
        "ignored": group.ignored,
        "set_aside": group.set_aside and shown(group.set_aside, LONGEST),
        "skew": group.skew,
        "lag": sum(p.lag or 0 for p in group.partitions),
        "members": len(group.members),
        "incident": group.incident and {"verdict": group.incident[0], "severity": group.incident[1]},
        "useful_members": group.useful and asdict(group.useful),
    }
    if whole:
        names = [shown(m.name) for m in group.members]
        found["members"] = [
            {"member": name, "lag": m.lag} for name, m in zip(names, group.members, strict=True)
        ]
        found["partitions"] = [
            {
                "topic": p.topic,
                "partition": p.partition,
                "committed": p.committed if p.committed >= 0 else None,
                "lag": p.lag,
                "seconds": round(p.seconds, 1),
                "member": None if p.member is None else names[p.member],
            }
            for p in group.partitions
        ]
    return found


def open_json(messages: dict[str, Message]) -> list[dict[str, Any]]:
    """The body of ``/api/recommendations``: what is open, over all workers."""
    found = [m for m in messages.values() if isinstance(m, Recommendation) and is_open(m)]
    return [m.model_dump(mode="json", by_alias=True) for m in sorted(found, key=lambda m: -m.opened_at)]
