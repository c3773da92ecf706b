"""A look of a minute or three at many groups: what merely waits is no bad record, and nothing is advised that would lose one."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any, cast

import pytest

from kagent.check.judge_cluster import Checkup, findings_of, judged_groups
from kagent.commands.check import _tell
from kagent.contract.recommendation import Recommendation
from kagent.kafka.admin import Admin
from kagent.kafka.descriptions import (
    Described,
    GroupAnswers,
    GroupDescription,
    Key,
    MemberDescription,
    Offsets,
    TopicDescription,
)
from kagent.kafka.log_offsets import START, OffsetQuery
from kagent.policy import Policies
from tests.fixtures.timeline import START as BEGAN_MS
from tests.fixtures.timeline import Timeline

HELD = {"m0": (0, 1), "m1": (2, 3), "m2": (4, 5)}


@dataclass
class GroupsOfATopicEach:
    """The cluster that a look asks: groups at work, and groups without members as (committed, log end) of each partition."""

    at_work: Mapping[str, Timeline] = field(default_factory=dict)
    left: Mapping[str, Sequence[tuple[int, int]]] = field(default_factory=dict)
    simple: Collection[str] = ()
    """Of the groups without members, those that never had one."""
    cluster: Any = field(default_factory=lambda: SimpleNamespace(tool_options=lambda: "--bootstrap-server b"))

    def listed(self) -> Any:
        return SimpleNamespace(
            kinds={**dict.fromkeys(self.at_work, "consumer"), **dict.fromkeys(self.left, "")}, failed={}
        )

    def described_each(self, names: Iterable[str]) -> GroupAnswers[Described]:
        return GroupAnswers({name: Described(self._described(name)) for name in names})

    def _described(self, name: str) -> GroupDescription:
        if name in self.left:
            return GroupDescription(name, "empty", "classic", "", name in self.simple)
        members = tuple(
            MemberDescription(f"{m}-id", None, m, "/h", frozenset((name, p) for p in held))
            for m, held in self.at_work[name].held.items()
        )
        return GroupDescription(name, "stable", "classic", "range", False, members)

    def committed_each(self, described: Iterable[str], **_: Any) -> GroupAnswers[dict[Key, int]]:
        return GroupAnswers({name: self._committed(name) for name in described})

    def _committed(self, name: str) -> dict[Key, int]:
        if name in self.left:
            return {(name, p): committed for p, (committed, _) in enumerate(self.left[name])}
        row = self.at_work[name].row
        assert row is not None
        return {(name, p): offset for p, offset in zip(row.partition, row.committed, strict=True)}

    def topics(self, wanted: Iterable[str]) -> dict[str, TopicDescription]:
        found = {}
        for name in wanted:
            count = len(self.left[name] if name in self.left else self.at_work[name].inflow)
            found[name] = TopicDescription(name, f"id of {name}", count, (1,) * count)
        return found

    def topic_configs(self, topics: Iterable[str]) -> dict[str, Any]:
        return {}

    def offsets_each(self, keys: Iterable[Key], queries: Sequence[OffsetQuery]) -> list[Offsets]:
        asked = list(keys)
        return [
            Offsets({key: 0 if query.time == START else self._end(*key) for key in asked})
            for query in queries
        ]

    def _end(self, name: str, partition: int) -> int:
        return self.left[name][partition][1] if name in self.left else int(self.at_work[name].end[partition])


def looked(admin: GroupsOfATopicEach, seconds: float) -> Checkup:
    """A whole look, in no time."""
    now_s = BEGAN_MS / 1000 + 1000
    checkup = Checkup(cast(Admin, admin), "main", Policies(), seconds, clock=lambda: now_s)
    ends = now_s + seconds
    while True:
        checkup.look()
        if now_s >= ends:
            return checkup
        step = int(min(checkup.between, ends - now_s))
        now_s += step
        for world in admin.at_work.values():
            world.run(step)


def printed(checkup: Checkup, capsys: pytest.CaptureFixture[str]) -> str:
    """What the command prints of all findings."""
    for _, message in findings_of(checkup):
        _tell(Recommendation.model_validate(message), as_json=False, mute=None)
    return capsys.readouterr().out


@pytest.mark.slow
def test_of_many_groups_without_members_on_idle_topics_none_is_called_stalled_and_no_record_is_to_be_skipped(
    capsys: pytest.CaptureFixture[str],
) -> None:
    names = [f"idle-{n}" for n in range(67)]
    left = {name: [(100, 140), (50, 50), (10, 20)] for name in names}
    checkup = looked(GroupsOfATopicEach(left=left, simple=names[::2]), 60.0)

    assert len(judged_groups(checkup)) == 67
    assert findings_of(checkup) == []
    assert printed(checkup, capsys) == ""


@pytest.mark.slow
@pytest.mark.parametrize("seconds", [60.0, 180.0])
def test_overloaded_groups_whose_partitions_wait_for_their_turn_are_never_called_stalled(
    seconds: float, capsys: pytest.CaptureFixture[str]
) -> None:
    """Ten with two hot partitions on one member, nine with too few members, whose fetches last for up to a minute."""
    at_work = {}
    for n in range(19):
        skewed = [150.0 + 3 * n, 150.0, 50.0, 50.0, 50.0, 50.0]
        made = Timeline(
            skewed if n < 10 else [80.0 + 3 * n] * 6,
            HELD,
            dict.fromkeys(HELD, 220.0 if n < 10 else 130.0),
            block=(400, 3000, 8000)[n % 3],
            commit_s=5 if n % 2 else 0,
        )
        made.run(900)
        at_work[f"late-{n}"] = made
    checkup = looked(GroupsOfATopicEach(at_work), seconds)
    found = Counter(message["verdict"] for _, message in findings_of(checkup))

    assert set(found) == {"rebalance", "under_provisioned"}
    assert seconds < 180 or found.total() == 19
    assert "--reset-offsets" not in printed(checkup, capsys)
