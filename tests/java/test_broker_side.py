"""On a real broker, groups of the new protocol take kagent's plan and keep it; `kagent apply` makes them take it now."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import orjson
import pytest
from click.testing import CliRunner

from kagent.apply.apply_plan import Applier
from kagent.apply.attempts import Attempts
from kagent.apply.auto import AutoApply
from kagent.apply.nudge import nudge
from kagent.apply.preconditions import CannotApply
from kagent.cli import root
from kagent.follow.rejoin_budget import Asking, May
from kagent.group_key import group_key
from kagent.policy import Policies
from kagent.settings import GroupSettings, Settings, Topics
from tests.fixtures.beside import beside

pytestmark = pytest.mark.kafka
PARTITIONS = 6


def skewed(stage: Any) -> tuple[Any, Any]:
    """What the members hold, and a plan that uniform would never give: one member has nothing."""
    stage.topic(PARTITIONS)
    stage.join(3)
    before = stage.settled(3, PARTITIONS)
    first, second, third = sorted(before)
    return before, {first: before[first] | before[second], second: frozenset(), third: before[third]}


def apply(stage: Any, *options: str) -> Any:
    return CliRunner().invoke(root, ["--bootstrap", stage.bootstrap, "apply", stage.name, *options])


def test_a_group_takes_its_plan_to_the_letter_keeps_it_and_is_not_moved_twice(stage: Any) -> None:
    before, after = skewed(stage)
    stage.advise(before, after)
    with beside(stage.poll):
        done = apply(stage, "--yes", "--json")
        assert done.exit_code == 0, done.output
        report = json.loads(done.output)
        again = apply(stage, "--yes")
    assert report["applied"] is True
    assert all(row["after_s"] < 15 for row in report["members"])
    assert stage.settled(3, PARTITIONS) == after
    assert again.exit_code != 0


def test_the_worker_has_a_group_whose_policy_says_auto_take_its_plan_once(stage: Any) -> None:
    before, after = skewed(stage)
    settings = Settings(clusters={"main": stage.cluster})
    auto = AutoApply(
        settings, Policies({}, [GroupSettings.model_validate({"match": stage.name, "apply": "auto"})])
    )
    (due,) = auto.due([stage.advise(before, after)])
    with beside(stage.poll):
        assert auto.apply(due) == "applied"
    held = stage.settled(3, PARTITIONS)
    assert held == after
    first, second, third = sorted(held)
    other = {first: held[second], second: held[first], third: held[third]}
    with beside(stage.poll):
        again = AutoApply(settings, auto.policies)  # another process: what was done stands on a topic
        assert again.apply(stage.advise(held, other)) == "wait"
    assert stage.settled(3, PARTITIONS) == after


def test_a_group_that_names_uniform_takes_its_plan_where_that_is_kagents(stage: Any, tmp_path: Path) -> None:
    """franz-go's sticky balancers name ``uniform`` and can name no other."""
    stage.topic(PARTITIONS)
    stage.join(2, **{"group.remote.assignor": "uniform"})
    before = stage.settled(2, PARTITIONS)
    first, second = sorted(before)
    after = {first: before[first] | before[second], second: frozenset()}
    stage.advise(before, after)
    assert "--as-uniform" in str(apply(stage, "--yes").exception)
    settings = tmp_path / "kagent.yaml"
    settings.write_text("policy: {uniform_follows: true}")
    with beside(stage.poll):
        done = apply(stage, "--yes", "--config", str(settings))
    assert done.exit_code == 0, done.output
    assert stage.settled(2, PARTITIONS) == after


def test_a_group_that_loses_a_member_on_the_way_to_its_plan_gets_what_uniform_gives(stage: Any) -> None:
    before, after = skewed(stage)
    stage.advise(before, after)
    with nudge(stage.cluster, stage.name, "kagent-apply-nothing") as member:

        def on_its_way() -> bool:
            member.poll(0.2)
            stage.poll()
            return bool(after.items() <= stage.targets().items())

        stage.until(on_its_way)
        stage.consumers.pop().close()
    assert sorted(map(len, stage.settled(2, PARTITIONS).values())) == [3, 3]


def test_expired_and_forged_recommendations_move_nothing(stage: Any) -> None:
    before, after = skewed(stage)
    first, second = sorted(before)[:2]
    twice = {**after, second: before[first]}
    applier = Applier(stage.cluster, stage.cluster, "main", stage.name, Topics())
    forged: list[tuple[str, Any]] = [
        ("expired", lambda: stage.advise(before, after, valid_until=1)),
        ("other_group", lambda: stage.advise(before, after, group="somebody-elses")),
        ("doubled_partition", lambda: stage.advise(before, twice)),
        ("unreadable", lambda: stage.write("kagent-recommendations", b'{"id": "x", "assignment": 7}')),
    ]
    for reason, write in forged:
        write()
        with pytest.raises(CannotApply) as refused:
            applier.check()
        assert refused.value.reason == reason
        with nudge(stage.cluster, stage.name, "kagent-apply-nothing") as member:
            stage.until(lambda member=member: member.poll(0.2) or stage.poll() or len(stage.targets()) == 4)
            assert {m: held for m, held in stage.targets().items() if m in before} == before, reason
    assert stage.settled(3, PARTITIONS) == before


def test_a_muted_group_and_one_with_other_counts_are_refused_with_the_reason(stage: Any) -> None:
    before, after = skewed(stage)
    applier = Applier(stage.cluster, stage.cluster, "main", stage.name, Topics())
    with pytest.raises(CannotApply) as nothing:
        applier.check()
    assert nothing.value.reason == "nothing_open"
    stage.advise(before, after)
    assert applier.check().wanted == after
    stage.write("kagent-mutes", orjson.dumps({"until": 2**53}))
    with pytest.raises(CannotApply) as muted:
        applier.check()
    assert muted.value.reason == "muted"
    stage.write("kagent-mutes", None)
    stage.advise(before, after, topic_ids={stage.name: "AAAAAAAAAAAAAAAAAAAAAQ"})
    with pytest.raises(CannotApply) as other:
        applier.check()
    assert other.value.reason == "other_topic"


def test_a_group_without_the_assignor_is_told_how_to_get_it(stage: Any) -> None:
    stage.topic(PARTITIONS)
    stage.join(1, **{"group.remote.assignor": "uniform"})
    stage.settled(1, PARTITIONS)
    done = apply(stage, "--yes")
    assert "kagent assignor" in str(done.exception or done.output)


def killed_on_the_way(stage: Any, before: Any, after: Any) -> Any:
    """The plan on whose way ``kagent apply`` was killed: its member was in the group, and could not leave."""
    command = [sys.executable, "-m", "kagent", "--bootstrap", stage.bootstrap, "apply", stage.name, "--yes"]
    while True:
        stage.advise(before, after)
        with subprocess.Popen(command, stdout=subprocess.DEVNULL) as process:
            stage.until(lambda run=process: len(stage.targets()) == 4 or run.poll() is not None)
            process.kill()
        if len(stage.targets()) == 4:
            return after
        # It was done before it was seen: once more, the other way round.
        Attempts(stage.cluster, Topics(), group_key("main", stage.name), "somebody").reset()
        before, after = after, before


def test_a_group_is_left_well_by_an_apply_that_was_killed_and_the_next_one_says_so(stage: Any) -> None:
    before, after = skewed(stage)
    with beside(stage.poll):
        plan = killed_on_the_way(stage, before, after)
        with pytest.raises(CannotApply) as at_work:
            Applier(stage.cluster, stage.cluster, "main", stage.name, Topics()).check()
    assert at_work.value.reason == "not_stable"
    assert "session timeout" in str(at_work.value)
    assert stage.settled(3, PARTITIONS) == plan
    assert "holds what the plan gives already" in str(apply(stage, "--yes").exception)
    attempts = Attempts(stage.cluster, Topics(), group_key("main", stage.name), "somebody")
    assert attempts.claim(Asking()) is May.WAIT


def test_the_limit_holds_across_processes_and_latches_until_it_is_reset(stage: Any) -> None:
    key, now = group_key("main", stage.name), [1_000_000.0]

    def attempts() -> Attempts:
        return Attempts(stage.cluster, Topics(), key, "somebody", clock=lambda: now[0])

    asking = Asking()
    taken = []
    for _ in range(3):
        taken.append((attempts().claim(asking), attempts().claim(asking)))
        now[0] += asking.cooldown + 1
    assert taken == [(May.ASK, May.WAIT)] * 3
    assert attempts().claim(asking) is May.LATCH
    now[0] += 3 * 24 * 3600
    assert attempts().claim(asking) is May.LATCH
    attempts().reset()
    assert attempts().claim(asking) is May.ASK
