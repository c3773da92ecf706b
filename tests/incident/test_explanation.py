"""kagent explain: how much evidence there is, how much is needed, what would add, and why nothing is said."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Any

import orjson
import pytest

from kagent.contract.recommendation import ActionType, Verdict
from kagent.detect.finding import Finding
from kagent.incident.evaluate import Judgement
from kagent.incident.explanation import explain, look_at
from kagent.incident.explanation_text import lines
from kagent.incident.suppression import REASONS, waits_for
from kagent.lag.commits import TopicCommits
from kagent.lag.log_ends import EndHistory
from kagent.policy import Policy
from kagent.simulator import run
from kagent.simulator.scenario_file import parse
from kagent.worker.http.judgement_view import summary_of
from kagent.worker.http.live_view import row_of
from tests.fixtures.findings import FOUR, LATE
from tests.fixtures.timeline import Rate, Timeline, judged

HELD = {"m0": (0, 1), "m1": (2, 3), "m2": (4, 5)}


def story_after(seconds: int, hot: float = 150.0, policy: Policy | None = None) -> dict[str, Any]:
    world = Timeline([hot, hot, 50, 50, 50, 50], HELD, dict.fromkeys(HELD, 220.0))
    found = judged(world, seconds, policy=policy)[-1]
    return explain(found, look_at(found, world.observe(), found.state, policy or Policy()))


def test_before_it_is_ripe_it_tells_what_is_missing_and_what_adds() -> None:
    story = story_after(320, policy=Policy(evidence=4))
    said = "\n".join(lines(story))

    assert (story["verdict"], story["condition"]) == ("balanced", "suspect")
    assert said.startswith("g: not reported (")
    assert "Not reported: there is not enough evidence yet" in said
    assert (
        "s; 240 s are needed. Missing: more commits that show the member late and falling further behind."
        in said
    )
    assert "behind, 2 partitions" in said


def test_a_member_that_is_late_after_a_rebalance_makes_its_group_suspect_and_tells_why_nothing_is_reported() -> (
    None
):
    world = Timeline([150.0, 150, 50, 50, 50, 50], HELD, dict.fromkeys(HELD, 220.0))
    late = judged(world, 320, policy=Policy(evidence=4))[-1]
    world.held = {"m0": (0, 1), "m1": (4, 5), "m2": (2, 3)}
    world.at = dict.fromkeys(world.held, 0)
    found = judged(world, 20, late.state, policy=Policy(evidence=4))[-1]
    story = explain(found, look_at(found, world.observe(), found.state, Policy()))

    assert (story["verdict"], story["condition"]) == ("balanced", "suspect")
    assert story["not_opened"] == REASONS["settling"]


def test_how_late_a_member_was_at_a_commit_some_time_ago_is_not_told_as_of_now() -> None:
    world = Timeline(
        [50.0] * 2,
        {"m0": (0, 1)},
        {"m0": lambda second: 0.0 if 600 < second < 800 else 130.0},
        commit_s=120,
    )
    found = judged(world, 920)[-1]
    reason = explain(found, look_at(found, world.observe(), found.state, Policy()))["reason"]

    assert re.match(r"m0/h was \d+ min behind at its last commit, \d+ s ago", reason)


def test_of_a_member_of_which_the_measurements_tell_nothing_yet_no_verdict_is_named(group: Any) -> None:
    names = ("m0", "m1", "m2", "m3")
    made = group({"t": 8 * [{**LATE, "lag": 20_000}]}, FOUR)
    work = made.at_work(dict.fromkeys(names, 190), names, "under_provisioned")
    few = {name: replace(m, windows=m.windows[-1:]) for name, m in work.items()}
    model, found = made.looked(members=few)
    judgement = Judgement(model.state, suppressed_by="unsure", model=model, findings=found)
    story = explain(judgement)
    told = "\n".join(lines(story))

    assert summary_of(model.seen, judgement, Policy()).not_opened == story["not_opened"] == REASONS["unsure"]
    assert (story["evidence"]["verdict"], story["evidence"]["missing"]) == (None, "unsure")
    assert "Evidence that it stays behind: " in told
    assert " s are needed. Missing: intervals in which" in told
    assert "Evidence for" not in told
    # Nor is there advice, as if kagent knew: what helps depends on what is wrong.
    assert story["recommendation"] is None
    assert not re.search("^  (do|perhaps|plan):", told, re.MULTILINE)
    assert "reported as" not in lines(story | {"verdict": "stalled", "open": "1"})[0]


def after_a_burst(seconds: int) -> tuple[Timeline, Judgement, dict[str, Any]]:
    """A group that gets more than it can process from the tenth minute to the fifteenth, some time later."""
    world = Timeline(
        [lambda second: 200.0 if 600 < second < 900 else 40.0] * 6, HELD, dict.fromkeys(HELD, 150.0)
    )
    found = judged(world, seconds)[-1]
    return world, found, explain(found, look_at(found, world.observe(), found.state, Policy()))


@pytest.mark.slow
def test_of_a_late_member_that_catches_up_by_itself_it_says_when_and_asks_for_no_evidence() -> None:
    world, found, story = after_a_burst(1260)
    told = "\n".join(lines(story))
    said = re.search(
        r"will have caught up in about (\d+) min by the likeliest values: it gets 80 records/s and", told
    )

    assert found.suppressed_by == "draining"
    assert said
    assert "can process 150. That changes if more arrives for it, or if it gets slower." in told
    assert "Evidence" not in told
    assert "Missing" not in told
    began = world.second
    while max(world.backlog(name) for name in HELD) > 5 * 80:
        world.run(1)
    assert abs(world.second - began - 60 * int(said[1])) < 90


@pytest.mark.slow
def test_of_a_member_that_stays_as_late_as_it_is_it_says_that_this_may_be_on_purpose() -> None:
    world = Timeline([40.0] * 6, HELD, dict.fromkeys(HELD, 80.0), order="even")
    world.position = [end - 6_000 for end in world.end]
    found = judged(world, 1500)[-1]
    told = "\n".join(lines(explain(found, look_at(found, world.observe(), found.state, Policy()))))

    assert (
        "is 2 min behind, no more and no less than some minutes ago: it may read its records late on purpose."
        in told
    )
    assert "will have caught up" not in told


@pytest.mark.slow
def test_nor_does_it_ask_for_evidence_of_one_that_catches_up_within_hold() -> None:
    model = after_a_burst(1260)[1].model
    assert model is not None
    late = Finding(Verdict.REBALANCE, (0,), missing="evidence", needed_s=60.0)

    def waits(waiting_s: float) -> str | None:
        work = model.work.copy()
        work[0] = waiting_s * (model.capacity.rate.mid[0] - model.inflow.mid[0])
        return waits_for(replace(model, work=work), late)

    assert model.capacity.measured[0]
    assert (waits(299), waits(301)) == ("draining", "evidence")


def test_of_what_is_open_it_asks_for_no_more_evidence_once_the_advice_no_longer_applies() -> None:
    world = Timeline([150.0, 150, 50, 50, 50, 50], HELD, dict.fromkeys(HELD, 220.0))
    looks = judged(world, 300)
    found = next(one for one in looks if one.findings and one.findings[0].missing == "evidence")
    story = explain(found, look_at(found, world.observe(), found.state, Policy()))
    times = {"opened_at": world.now, "sent_at": world.now, "followed_at": None}
    incident = {"id": "1", "verdict": "rebalance", "member": "m0", **times, "stale": False}

    assert "\nEvidence " in "\n".join(lines({**story, "incident": {**incident, "superseded": False}}))
    assert "\nEvidence " not in "\n".join(lines({**story, "incident": {**incident, "superseded": True}}))


def test_what_came_of_earlier_incidents_is_told_in_words() -> None:
    story = story_after(600, hot=50.0) | {"track": {"right": 1, "opened": 3, "followed": 2, "expired": 1}}

    told = "Incidents so far: 3 opened, 1 not seen to their end, 2 followed; it helped in 1 of those that were followed."
    assert told in lines(story)


@pytest.mark.slow
def test_when_it_is_ripe_it_says_what_to_do() -> None:
    story = story_after(700)

    assert story["verdict"] == "rebalance"
    assert "does not catch up at its present speed" in str(story["reason"])
    assert any(line.startswith("  plan: ") for line in lines(story))


@pytest.mark.slow
def test_a_verdict_that_is_not_published_yet_is_named_beside_the_published_one() -> None:
    story = story_after(700)
    said = lines(story | {"verdict": "slow_member", "open": "1"})[0]

    assert said.startswith("g: reported as slow member, now uneven work (")
    assert lines(story)[0].startswith("g: uneven work (")


def test_of_a_healthy_group_it_says_so() -> None:
    story = story_after(600, hot=50.0)

    assert (story["verdict"], story["reason"], story["not_opened"], story["condition"]) == (
        "balanced",
        "No member is late.",
        None,
        "healthy",
    )


def test_uneven_lags_of_members_that_are_on_time_are_not_called_balanced() -> None:
    story = story_after(600, hot=50.0)

    assert lines(story | {"skew": 3.0})[0].startswith("g: keeps up (")
    assert lines(story | {"skew": 1.2})[0].startswith("g: balanced (")


def test_of_records_older_than_the_first_look_it_does_not_say_that_nobody_is_late() -> None:
    world = Timeline([0.0] * 6, HELD, dict.fromkeys(HELD, 220.0), commit_s=10**6, stands=frozenset(range(6)))
    world.end = [end + 500 for end in world.end]
    world.ends = EndHistory(6)
    found = judged(world, 60)[-1]
    story = explain(found, look_at(found, world.observe(), found.state, Policy()))

    assert str(story["reason"]).startswith(
        "No member is known to be late. Some unread records came in before"
    )


def test_of_a_partition_that_stands_it_says_for_how_long_and_when_that_is_reported() -> None:
    world = Timeline([20.0] * 6, HELD, dict.fromkeys(HELD, 220.0), order="even", stands=frozenset({1}))
    found = judged(world, 200)[-1]
    story = explain(found, look_at(found, world.observe(), found.state, Policy()))

    assert (story["verdict"], story["condition"]) == ("balanced", "suspect")
    assert re.fullmatch(
        r"t-1 has made no progress for 3 min beside a member that had time for it; that is reported once it has lasted 5 min\.",
        str(story["reason"]),
    )


def test_of_a_member_that_is_a_little_behind_it_says_how_far_and_what_counts_as_late() -> None:
    calm = next(
        s for s in (story_after(t) for t in range(60, 300, 10)) if "furthest behind" in str(s["reason"])
    )

    assert str(calm["reason"]).endswith("; late is 60 s or more (`min_behind`).")


@pytest.mark.slow
def test_a_pause_is_over_only_once_the_member_has_made_progress() -> None:
    """Its client goes on committing in the background, the same offsets."""

    def pauses(second: int) -> float:
        return 0.0 if 600 < second <= 800 else 115.0

    def burst(second: int) -> float:
        """Short enough not to be late by it, so that the members' speeds are known."""
        return 150.0 if 100 < second <= 120 else 50.0

    world = Timeline([burst] * 6, HELD, {"m0": pauses, "m1": 115.0, "m2": 115.0})
    judgements = judged(world, 1100)
    said = {10 * at: one.suppressed_by for at, one in enumerate(judgements, 1) if one.findings}

    assert {why for second, why in said.items() if second <= 800} == {"pausing"}
    assert {why for second, why in said.items() if second > 810} == {"after_pause"}


@pytest.mark.slow
def test_the_story_is_plain_json() -> None:
    assert orjson.loads(orjson.dumps(story_after(700)))["group"] == "g"


@pytest.mark.slow
def test_what_moves_reach_has_its_unit() -> None:
    story = story_after(900)
    told = "\n".join(lines(story))
    of_work = "\n".join(lines(story | {"frontier_unit": "work"}))

    assert story["frontier_unit"] == "drain"
    assert re.search(r"time until all members have caught up, estimated cautiously: .* with 3 moves", told)
    assert re.search(r"longest time of a member to process its lag: .* with 3 moves", of_work)


def test_of_a_member_that_commits_nothing_while_records_wait_it_says_how_old_the_oldest_is() -> None:
    """It was caught up at its latest commit, so it is 0 s behind by that; as the only member it is reported after hours at the earliest."""
    world = Timeline([50.0, 50.0], {"m0": (0, 1)}, {"m0": lambda second: 220.0 if second < 600 else 0.0})
    judged(world, 600)
    world.commit_s = 10**6
    found = judged(world, 120)[-1]
    story = explain(found, look_at(found, world.observe(), found.state, Policy()))

    assert story["reason"] == (
        "m0/h commits nothing while records wait; the oldest that is not committed is 2 min old."
    )
    assert story["seconds_behind"] == story["members"][0]["seconds_behind"] > 100
    assert (
        story["condition"]
        == row_of(summary_of(world.observe(), found, Policy()), None).condition
        == "suspect"
    )
    assert lines(story)[0].startswith("g: not reported (")
    assert (summary_of(world.observe(), found, Policy()).seconds_behind or 0) > 100


def test_of_a_member_between_two_of_its_commits_it_says_nothing_of_that() -> None:
    world = Timeline([50.0, 50.0], {"m0": (0, 1)}, {"m0": 220.0}, commit_s=50)
    found = judged(world, 640)[-1]
    story = explain(found, look_at(found, world.observe(), found.state, Policy()))

    assert (story["reason"], story["seconds_behind"]) == ("No member is late.", 0)


def test_of_partitions_that_were_never_committed_it_does_not_say_that_no_member_is_late() -> None:
    world = Timeline([50.0, 50.0], {"m0": (0, 1)}, {"m0": 0.0}, commit_s=10**6)
    world.row = TopicCommits("t")
    found = judged(world, 120)[-1]
    story = explain(found, look_at(found, world.observe(), found.state, Policy()))

    assert story["reason"] == (
        "No member is known to be late. 2 partitions with records without a commit: how far its members are behind there is not known."
    )
    assert (story["seconds_behind"], summary_of(world.observe(), found, Policy()).seconds_behind) == (
        None,
        None,
    )


def test_it_names_one_lag_which_adds_up_and_says_which() -> None:
    """Caught up at its commits, 5 s apart, each member has a lag of what came since: of a lag at the commit there is none."""
    world = Timeline([90.0, 90, 50, 50, 50, 50], HELD, dict.fromkeys(HELD, 220.0))
    found = judged(world, 606)[-1]
    story = explain(found, look_at(found, world.observe(), found.state, Policy()))
    told = "\n".join(lines(story))
    named = [int(number.replace(",", "")) for number in re.findall(r"lag ([\d,]+)", told)]

    assert sum(named[:3]) == named[3] > 0
    assert len(named) == 4
    assert "Lag: log ends of the last sample less the committed offsets" in told


def test_while_log_ends_are_known_for_less_long_it_says_how_far_a_member_is_behind_at_least() -> None:
    world = Timeline([40.0] * 6, HELD, dict.fromkeys(HELD, 80.0), order="even")
    world.position = [end - 6_000 for end in world.end]
    found = judged(world, 40)[-1]
    told = "\n".join(lines(explain(found, look_at(found, world.observe(), found.state, Policy()))))

    assert re.search(
        r"No member is known to be late: \S+ is behind by \d+ s at least; late is 60 s or more", told
    )


HELD_BY_TWO = {"m0": (0, 1, 2), "m1": (3, 4, 5)}
NONE_CATCHES_UP = "no assignment"
ONLY_EVENS_OUT = "it would only even out the lag of now"


def full_of_old_records(second: int) -> float:
    """Two minutes of much; then the partition has most of the lag, and not of the inflow."""
    return 900.0 if 300 < second <= 420 else 40.0


@pytest.mark.slow
@pytest.mark.parametrize(
    ("inflow", "speed", "none"),
    [
        ([full_of_old_records, 120.0, 120.0, 20.0, 20.0, 20.0], 250.0, False),
        ([150.0, 150.0, 20.0, 20.0, 20.0, 20.0], 250.0, False),
        ([260.0, 20.0, 20.0, 20.0, 20.0, 20.0], 200.0, True),
        ([100.0] * 6, 200.0, True),
    ],
    ids=["old records on one partition", "two busy partitions", "a hot partition", "too few members"],
)
def test_a_group_of_which_a_strategy_makes_the_work_even_is_not_told_that_no_assignment_catches_up(
    inflow: list[Rate], speed: float, none: bool
) -> None:
    world = Timeline(inflow, HELD_BY_TWO, dict.fromkeys(HELD_BY_TWO, speed))
    world.run(300)
    state, said, shown = None, set(), set()
    for _ in range(15):
        found = judged(world, 60, state)[-1]
        state = found.state
        story = explain(found, look_at(found, world.observe(), state, Policy()))
        rows = re.findall(r"^  with \S+: skew ([\d.]+)", "\n".join(lines(story)), re.MULTILINE)
        helps = any(float(skew) <= story["threshold"] for skew in rows)
        assert not (helps and NONE_CATCHES_UP in story["reason"]), story["reason"]
        said.add(NONE_CATCHES_UP in story["reason"])
        shown.add(helps)

    assert (True in said, True in shown) == (none, not none)


@pytest.mark.slow
def test_where_no_assignment_catches_up_neither_the_plan_nor_another_strategy_promises_that() -> None:
    """A hot partition beside two others that a plan would spare the wait."""
    topic = {"partitions": 9, "inflow": 45, "cost": 0.03}
    events = [
        {"at": 300, "do": "inflow", "topic": "t", "partition": 0, "factor": 9},
        {"at": 300, "do": "inflow", "topic": "t", "partition": [1, 2], "factor": 1.5},
    ]
    clients = {"family": "java", "record_bytes": 200}
    made = parse({"topics": {"t": topic}, "members": 3, "clients": clients, "events": events, "hours": 0.4})
    (first, *_) = run(made, seed=1).messages
    moving = [a for a in first.actions if a.type in (ActionType.FOLLOW_PLAN, ActionType.SWITCH_ASSIGNOR)]

    assert NONE_CATCHES_UP in first.reason
    assert moving
    assert all((a.feasible, a.gain["likely"], a.gain["after"]) == ("no", None, None) for a in moving)
    story = story_after(900) | {"recommendation": first.model_dump(mode="json", by_alias=True)}
    assert ONLY_EVENS_OUT in "\n".join(lines(story))
    assert ONLY_EVENS_OUT not in "\n".join(lines(story_after(900)))
