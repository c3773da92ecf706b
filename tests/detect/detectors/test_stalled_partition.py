"""stalled: passed over by a member that had time for it; waiting one's turn, priorities and sleep are no evidence."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from kagent.contract.recommendation import Action, ActionType
from kagent.detect.detectors import stalled_partition
from kagent.detect.finding import Finding
from kagent.detect.group_model import GroupModel
from kagent.detect.state import Habit
from kagent.policy import Policy
from kagent.recommend.actions import actions
from kagent.recommend.advice import Advice
from kagent.recommend.alternatives import alternatives_of
from kagent.recommend.member_counts import counts
from kagent.recommend.reassignment import reassign
from kagent.simulator import load, run, run_many
from kagent.simulator.scenario_file import parse
from tests.fixtures.findings import FINE, FOUR, STANDS, leading
from tests.fixtures.group_builder import NOW
from tests.fixtures.timeline import Timeline, judged

Make = Callable[..., Any]
SICK = Path(__file__).parents[3] / "benchmarks/scenarios/sick"
TOPIC = {"t": [STANDS, *7 * [FINE]]}
CRASHES: dict[str, Any] = {"names": ("m0", "m1", "m2", "m3"), "comings": {"m0": 3 * (NOW,)}}
"""One member comes and goes while the others stay."""


def made_of(model: GroupModel, finding: Finding) -> list[Action]:
    """What is advised."""
    planned = reassign(model)
    return actions(Advice(model, finding, planned, alternatives_of(model, planned), counts(model)))


def test_a_partition_that_is_passed_over_for_longer_than_hold_has_a_bad_record(group: Make) -> None:
    made = group(TOPIC, FOUR)
    model, found = made.looked(standing=made.stood())

    assert leading(found) == "stalled"
    assert found[0].evidence["partitions"] == [["t", 0]]
    assert found[0].evidence["offset"] == int(model.lags.committed[0])
    assert "most likely a record that cannot be processed" in stalled_partition.reason(model, found[0])


def test_of_a_partition_without_a_commit_no_record_is_named(group: Make) -> None:
    made = group(TOPIC, FOUR)
    model, found = made.looked(standing=made.stood())
    commits = {"t": replace(model.seen.commits["t"], committed=[-1, *model.seen.commits["t"].committed[1:]])}
    without = replace(model, seen=replace(model.seen, commits=commits))

    assert "t-0 has been without a commit for" in stalled_partition.reason(without, found[0])
    first = made_of(without, found[0])[0]
    assert first.type is ActionType.SKIP_OR_FIX_RECORD
    assert "offset" not in f"{first.how} {first.params}"


def test_a_member_that_did_nothing_else_is_restarted_before_its_record_is_blamed(group: Make) -> None:
    """A client that commits in the background commits while it hangs, too."""
    alone = {"m0": {"t": [0]}, "m1": {"t": [1, 2, 3]}, "m2": {"t": [4, 5]}, "m3": {"t": [6, 7]}}
    made = group(TOPIC, alone)
    stands = {key: replace(c, idle_s=400.0) for key, c in made.look().state.standing.items()}
    model, found = made.looked(standing=stands)
    first, second, *_ = made_of(model, found[0])

    assert leading(found) == "stalled"
    assert "either the member hangs, or the record" in stalled_partition.reason(model, found[0])
    assert (first.type, second.type) == (ActionType.RESTART_MEMBER, ActionType.SKIP_OR_FIX_RECORD)
    assert "--reset-offsets" not in f"{first.how} {second.how}"


def test_that_the_siblings_moved_once_is_no_evidence(group: Make) -> None:
    assert leading(group(TOPIC, FOUR).looked()[1]) == "balanced"


def test_a_longer_pause_that_ended_by_itself_lifts_the_threshold(group: Make) -> None:
    made = group(TOPIC, FOUR)
    habits = {"passed_over": Habit(800.0, NOW - 3_600_000)}
    _, found = made.looked(standing=made.stood(), habits=habits)
    _, forgotten = made.looked(
        standing=made.stood(), habits={"passed_over": Habit(800.0, NOW - 8 * 86_400_000)}
    )

    assert leading(found) == "balanced"
    assert leading(forgotten) == "stalled"


@pytest.mark.parametrize("kind", ["idle_s", "on_time_s"])
def test_the_only_partition_of_a_topic_beside_others_waits_three_times_as_long(
    group: Make, kind: str
) -> None:
    """Nothing tells a topic that is paused on purpose from a record that cannot be processed."""
    made = group({"t": [STANDS], "u": [FINE, FINE]}, {"m0": {"t": [0], "u": [0]}, "m1": {"u": [1]}})
    stands = {key: replace(c, **{kind: 880.0}) for key, c in made.look().state.standing.items()}
    model, found = made.looked(Policy(hold=250), standing=stands)

    assert leading(made.looked(standing=stands)[1]) == "balanced"
    assert leading(found) == "stalled"
    assert "either its application pauses the topic, or" in stalled_partition.reason(model, found[0])
    assert made_of(model, found[0])[0].type is ActionType.RESTART_MEMBER


@pytest.mark.parametrize("kind", ["idle_s", "on_time_s"])
@pytest.mark.parametrize("others", [1, 2], ids=["sole", "a share"])
def test_a_topic_that_goes_on_elsewhere_is_not_paused_on_purpose(group: Make, kind: str, others: int) -> None:
    """Where the member's siblings stand as well none was passed over, and never is nothing of the others unread."""
    topics = {"t": [*others * [STANDS], FINE, FINE], "u": [FINE, FINE]}
    mine, rest = list(range(others)), [others, others + 1]
    made = group(topics, {"m0": {"t": mine, "u": [0]}, "m1": {"t": rest, "u": [1]}})

    def after(seconds: float) -> str:
        stands = {key: replace(c, **{kind: seconds}) for key, c in made.look().state.standing.items()}
        return leading(made.looked(standing=stands)[1])

    clocks = made.look().state.standing
    waits = made.look(standing={key: replace(c, **{kind: 200.0}) for key, c in clocks.items()})

    assert [after(280), after(320)] == ["balanced", "stalled"]
    assert stalled_partition.next_to_find(waits) == (others - 1, 200.0, 300.0)


def test_where_all_that_a_member_reads_of_a_topic_stands_no_record_is_blamed(group: Make) -> None:
    """Two bad records at once are no likely cause: the thread that reads the topic hangs, or pauses."""
    topics = {"t": [STANDS, STANDS, FINE, FINE], "u": [FINE, FINE]}
    made = group(topics, {"m0": {"t": [0, 1], "u": [0]}, "m1": {"t": [2, 3], "u": [1]}})
    stands = {key: replace(c, on_time_s=320.0) for key, c in made.look().state.standing.items()}
    model, found = made.looked(standing=stands)
    first, second, *_ = made_of(model, found[0])

    assert "like all that its member reads of the topic" in stalled_partition.reason(model, found[0])
    assert (first.type, second.type) == (ActionType.RESTART_MEMBER, ActionType.SKIP_OR_FIX_RECORD)
    assert (second.feasible, "--reset-offsets" in second.how) == ("unknown", False)
    assert model.excluded.tolist() == [True, True, False, False, False, False]


def test_a_group_whose_cadence_nobody_knows_waits_an_hour(group: Make) -> None:
    made = group(TOPIC, FOUR)
    model = made.look(standing=made.stood())
    unknown = group(TOPIC, FOUR, gaps_ms=(5000, 5000)).look(standing=made.stood())

    assert stalled_partition.limit_s(model, 0) == 300
    assert stalled_partition.limit_s(unknown, 0) == 3600


def test_without_members_three_commits_of_the_partition_itself_must_be_missing(group: Make) -> None:
    model = group(TOPIC, {}, type="simple", protocol=None).look()
    seldom = group(TOPIC, {}, type="simple", protocol=None, gaps_ms=9 * (600_000,)).look()

    assert not model.by_member
    assert stalled_partition.limit_s(model, 0) == 300
    assert stalled_partition.limit_s(seldom, 0) == 1800


WORKED_OFF = {**FINE, "lag": 30_000, "moved": 550}
"""Its oldest unread record came 300 s ago, when its member had it already."""


def test_a_record_at_which_a_second_member_fails_is_to_blame_whatever_the_siblings_do(group: Make) -> None:
    made = group({"t": [STANDS, WORKED_OFF, *6 * [FINE]]}, FOUR)
    clocks = made.look().state.standing
    moved = {"t/0": replace(clocks["t/0"], handed_over=NOW - 700_000)}

    assert leading(made.looked(standing=moved)[1]) == "stalled"
    assert leading(made.looked(standing=clocks)[1]) == "balanced"


def test_where_records_of_two_partitions_waited_nobody_knows_at_which_the_next_holder_fails(
    group: Make,
) -> None:
    made = group({"t": [STANDS, {**WORKED_OFF, "lag": 80_000}, *6 * [FINE]]}, FOUR)
    clocks = made.look().state.standing
    moved = {"t/0": replace(clocks["t/0"], handed_over=NOW - 700_000)}

    assert leading(made.looked(standing=moved)[1]) == "balanced"


def test_a_record_that_stands_through_three_generations_crashes_its_consumers(group: Make) -> None:
    made = group(TOPIC, FOUR)
    clocks = made.look().state.standing

    def after(count: int) -> Any:
        turns = tuple((NOW - 100_000 * n, 9 - n) for n in range(count, 0, -1))
        return made.looked(standing=clocks, generations=turns, **CRASHES)

    assert [leading(after(count)[1]) for count in (2, 3)] == ["balanced", "stalled"]
    model, found = after(3)
    assert "through restarts of its member" in stalled_partition.reason(model, found[0])


def test_who_leaves_without_holding_the_partition_did_not_fail_at_its_record(group: Make) -> None:
    made = group(TOPIC, FOUR)
    clocks = {key: replace(c, others_left=1) for key, c in made.look().state.standing.items()}

    def after(count: int) -> str:
        turns = tuple((NOW - 100_000 * n, 9 - n) for n in range(count, 0, -1))
        return leading(made.looked(standing=clocks, generations=turns, **CRASHES)[1])

    assert [after(5), after(6)] == ["balanced", "stalled"]


def test_deployments_are_no_crashes_though_a_partition_waits_through_them(group: Make) -> None:
    """At each restart a client fetches anew, and the partition may wait for its turn again."""
    made = group(TOPIC, FOUR)
    turns = tuple((NOW - 100_000 * n, 9 - n) for n in range(6, 0, -1))
    once = {"standing": made.look().state.standing, "generations": turns, "names": CRASHES["names"]}
    in_turn = {**once, "comings": dict.fromkeys(CRASHES["names"], 2 * (NOW,))}
    anew = {**once, "comings": dict.fromkeys([*CRASHES["names"], "old-0", "old-1", "old-2"], ())}

    assert leading(made.looked(**in_turn, restless_since=NOW - 600_000)[1]) == "balanced"
    assert leading(made.looked(**anew, restless_since=NOW - 3_600_000)[1]) != "stalled"


def test_a_new_holder_may_have_fetched_all_that_waits(group: Make) -> None:
    """A client without a bound on its poll commits nothing until the whole fetch is done."""
    made = group({"t": [{**STANDS, "lag": 4_000_000}, WORKED_OFF, *6 * [FINE]]}, FOUR)
    clocks = made.look().state.standing
    moved = {"t/0": replace(clocks["t/0"], handed_over=NOW - 400_000)}

    assert leading(made.looked(standing=moved)[1]) == "balanced"


def test_whoever_crashes_at_a_record_may_leave_the_partition_beside_it_unserved(group: Make) -> None:
    """A process that is killed each minute has time for one partition's backlog, too: only another member that crashes tells."""
    made = group({"t": [STANDS, {**STANDS, "moved": 890}, *6 * [FINE]]}, FOUR)
    clocks = made.look().state.standing
    handed = {key: replace(clock, handed_over=NOW - 20_000) for key, clock in clocks.items()}
    turns = tuple((NOW - 100_000 * n, 9 - n) for n in range(3, 0, -1))
    model, found = made.looked(standing=handed, generations=turns, **CRASHES)

    assert leading(found) == "stalled"
    assert "whichever member holds it" in stalled_partition.reason(model, found[0])
    assert leading(made.looked(standing=clocks, generations=turns, **CRASHES)[1]) == "balanced"


@pytest.mark.parametrize(("beside", "verdict"), [({**STANDS, "moved": 400}, "balanced"), (FINE, "stalled")])
def test_where_what_is_beside_it_has_not_moved_either_its_turn_may_not_have_come(
    group: Make, beside: dict[str, Any], verdict: str
) -> None:
    """It moved after the first began to stand, and not in the three lives of their member since."""
    made = group({"t": [STANDS, beside, *6 * [FINE]]}, FOUR)
    turns = tuple((NOW - 100_000 * n, 9 - n) for n in range(3, 0, -1))
    _, found = made.looked(standing=made.look().state.standing, generations=turns, **CRASHES)

    assert leading(found) == verdict


def test_a_partition_that_is_never_served_while_the_others_are_is_told_in_minutes() -> None:
    held = {"m0": (0, 1, 2), "m1": (3, 4, 5)}
    world = Timeline([30.0] * 6, held, dict.fromkeys(held, 200.0), stands=frozenset({1}), stands_from=600)
    found = judged(world, 1200)
    first = next(at for at, one in enumerate(found) if one.candidate)

    assert {one.verdict for one in found if one.candidate} == {"stalled"}
    assert 600 + 300 <= first * 10 <= 600 + 420


@pytest.mark.parametrize("block", [3000, 15_000])
@pytest.mark.slow
def test_a_partition_that_waits_its_turn_behind_a_great_fetch_is_never_blamed(block: int) -> None:
    """Its member is busy elsewhere: 15,000 records of another partition take 75 s, and it is behind besides."""
    held = {"m0": (0, 1, 2), "m1": (3, 4, 5)}
    world = Timeline([80.0, 80, 80, 30, 30, 30], held, dict.fromkeys(held, 200.0), block=block)
    found = judged(world, 3600)

    assert "stalled" not in {str(f.verdict) for one in found for f in one.findings}


@pytest.mark.slow
def test_after_half_an_hour_of_sleep_whoever_is_served_last_is_not_blamed() -> None:
    """The siblings are up to date before its turn comes; that alone would have blamed it."""

    def works(second: int) -> float:
        return 0.0 if second % 3600 < 1800 else 400.0

    held = {"m0": (0, 1, 2), "m1": (3, 4, 5)}
    world = Timeline([40.0] * 6, held, dict.fromkeys(held, works), block=100_000)
    found = judged(world, 3 * 3600, tick=30)

    assert {str(f.verdict) for one in found for f in one.findings if f.ripe} <= {"balanced"}


@pytest.mark.slow
@pytest.mark.parametrize("family", ["java", "librdkafka", "franz-go", "kafkajs"])
def test_a_partition_that_waits_in_a_deep_backlog_is_not_blamed_because_somebody_deploys(family: str) -> None:
    world = {
        "topics": {"t": {"partitions": 6, "inflow": 24, "cost": 0.03}},
        "members": 3,
        "clients": {"family": family, "record_bytes": 130},
        "onset": 900,
        "hours": 0.75,
        "events": [
            {"at": 900, "do": "backlog", "topic": "t", "partition": [0, 1], "records": 12000},
            {"at": 930, "do": "deploy", "every": 30, "down": 8, "keep": True},
            {"at": 1300, "do": "deploy", "every": 60, "down": 8},
        ],
    }
    reports = run_many(parse(world, "deployed"), (1, 2))

    assert not {"stalled", "unstable"} & {
        v for r in reports for opened in r.openings for v in opened.verdicts
    }


@pytest.mark.slow
@pytest.mark.parametrize("name", ["starved-by-priority", "starved-by-another-topic"])
def test_a_topic_for_which_another_of_the_same_members_leaves_no_time_has_no_bad_record(name: str) -> None:
    messages = run(replace(load(SICK / f"{name}.yaml"), hours=0.9), seed=24).messages

    assert {str(message.verdict) for message in messages} == {"under_provisioned"}
    assert ActionType.SKIP_OR_FIX_RECORD not in {a.type for m in messages for a in m.actions}
