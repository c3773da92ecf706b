"""slow_member: peers that get as much keep up."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from kagent.detect.detectors import slow_member
from kagent.detect.state import MemberState
from kagent.incident.evaluate import Judgement
from kagent.recommend.render import diagnose
from kagent.simulator import SimulatorScenario, load, run
from tests.fixtures.findings import CALM, FINE, FOUR, HOT, LATE, leading
from tests.fixtures.group_builder import NOW
from tests.fixtures.timeline import Rate, Timeline, judged

Make = Callable[..., Any]
SICK = Path(__file__).parents[3] / "benchmarks/scenarios/sick"


def test_a_member_that_falls_behind_with_what_its_peers_keep_up_with_is_slow(group: Make) -> None:
    made = group({"t": [LATE, LATE, *6 * [FINE]]}, FOUR)
    model, found = made.looked(members=made.at_work({"m0": 120}, ["m0"], "slow_member"))

    assert leading(found) == "slow_member"
    assert found[0].evidence["peers"] == 3
    # The bound that follows, never a measurement of speeds that nobody has seen.
    assert 0.55 <= found[0].evidence["speed"] <= 0.65
    assert "It works at no more than" in slow_member.reason(model, found[0])


def test_all_that_are_slow_are_named_and_restarted(group: Make) -> None:
    members = {f"m{n}": {"t": [2 * n, 2 * n + 1]} for n in range(6)}
    made = group({"t": [*4 * [LATE], *8 * [FINE]]}, members)
    model, found = made.looked(members=made.at_work({"m0": 120, "m1": 110}, ["m0", "m1"], "slow_member"))
    (restart, *_) = diagnose(model, found[0]).actions

    assert leading(found) == "slow_member"
    assert {model.names[at] for at in found[0].members} == {"app-m0/10.0.0.1", "app-m1/10.0.0.1"}
    assert slow_member.reason(model, found[0]).endswith("1 other member is too slow as well.")
    first, second = (model.names[at] for at in found[0].members)
    assert restart.params == {"member": first, "others": [second]}
    assert restart.how == f"Restart or replace {first} and {second}."


def test_a_member_that_gets_more_than_its_peers_is_never_slow(group: Make) -> None:
    made = group({"t": [HOT, HOT, *6 * [CALM]]}, FOUR)
    _, found = made.looked(members=made.at_work({"m0": 120, "m1": 900}, ["m0"], "slow_member"))

    assert leading(found) != "slow_member"


def test_a_peer_without_the_members_other_topic_proves_nothing(group: Make) -> None:
    topics = {"t": [LATE, *3 * [FINE]], "u": [LATE]}
    members = {"m0": {"t": [0], "u": [0]}, "m1": {"t": [1]}, "m2": {"t": [2]}, "m3": {"t": [3]}}
    made = group(topics, members)
    _, found = made.looked(members=made.at_work({"m0": 120}, ["m0"], "slow_member"))

    assert leading(found) != "slow_member"


def test_a_peer_that_gets_less_but_more_than_the_member_does_proves_it(group: Make) -> None:
    """The member has the fullest partitions by chance; its peers keep up with four fifths of that, and it does not do half."""
    made = group({"t": [LATE, LATE, *6 * [{**FINE, "rate": 80}]]}, FOUR)
    _, found = made.looked(members=made.at_work({"m0": 90}, ["m0"], "slow_member"))

    assert leading(found) == "slow_member"


def test_peers_that_cannot_do_what_arrives_prove_nothing(group: Make) -> None:
    """They are not late yet, and will be: too few members, each of one speed."""
    made = group({"t": [LATE, LATE, *6 * [FINE]]}, FOUR)
    _, found = made.looked(
        members=made.at_work({"m0": 120, "m1": 140, "m2": 140, "m3": 140}, ["m0"], "slow_member")
    )

    assert leading(found) != "slow_member"


def test_peers_that_fall_behind_with_what_they_get_prove_nothing(group: Make) -> None:
    """A database has become slow for all; who gets most of it is late first. The others' speed is not known yet, but their lateness rises."""
    falling = {**FINE, "lag": 2_500}
    made = group({"t": [LATE, LATE, *6 * [falling]]}, FOUR)
    remembered = made.at_work({"m0": 120}, ["m0"], "slow_member")
    _, calm = made.looked(members=remembered)
    names = made.roster().names
    soon = {name: MemberState(time=NOW - 10_000, lateness=((NOW - 60_000, 0.0),)) for name in names[1:]}
    _, found = made.looked(members={**remembered, **soon})

    assert leading(calm) == "slow_member"
    assert leading(found) != "slow_member"


@pytest.mark.parametrize(("behind_for_s", "slow"), [(90, False), (300, True)])
def test_what_a_peer_may_have_left_undone_since_then_proves_nothing(
    group: Make, behind_for_s: int, slow: bool
) -> None:
    """Peers 17 s late, of which no lateness is kept: for all that is known it has come since the member fell behind."""
    made = group({"t": [LATE, LATE, *6 * [{**FINE, "lag": 1_990}]]}, FOUR)
    remembered = made.at_work({"m0": 150}, ["m0"], "slow_member")
    began = NOW - behind_for_s * 1000
    for name, known in remembered.items():
        clocks = {"spell": replace(known.spell, began=began), "backlog": replace(known.backlog, began=began)}
        remembered[name] = replace(known, **clocks)
    _, found = made.looked(members=remembered)

    assert (leading(found) == "slow_member") is slow


def test_one_fast_machine_is_no_measure(group: Make) -> None:
    made = group({"t": [LATE, LATE, FINE, FINE, *4 * [CALM]]}, FOUR)
    _, found = made.looked(members=made.at_work({"m0": 150}, ["m0"], "slow_member"))

    assert leading(found) != "slow_member"


def test_who_works_off_the_costly_topic_first_is_not_slow(group: Make) -> None:
    """It does ten of 100 records of u, as its peers do all of them; but of t, which they get less of, it does most."""
    topics = {"t": [LATE, *3 * [{**FINE, "rate": 20}]], "u": [LATE, *3 * [FINE]]}
    members = {f"m{n}": {"t": [n], "u": [n]} for n in range(4)}
    made = group(topics, members)
    work = made.at_work({"m0": 80}, ["m0"], "slow_member", beside={"u": 10})
    _, found = made.looked(members=work)

    assert leading(found) != "slow_member"


def test_a_topic_with_which_all_keep_up_does_not_hide_a_slow_machine(group: Make) -> None:
    topics = {"t": [LATE, *3 * [FINE]], "u": 4 * [{**FINE, "rate": 10}]}
    members = {f"m{n}": {"t": [n], "u": [n]} for n in range(4)}
    made = group(topics, members)
    work = made.at_work({"m0": 40}, ["m0"], "slow_member", beside={"u": 10})
    _, found = made.looked(members=work)

    assert leading(found) == "slow_member"


@pytest.mark.slow
def test_a_member_that_is_slow_by_less_is_reported_when_it_has_got_later_for_half_an_hour() -> None:
    held = {"m0": (0, 1), "m1": (2, 3), "m2": (4, 5)}
    found = judged(Timeline([50.0] * 6, held, {"m0": 93.0, "m1": 200.0, "m2": 200.0}), 4200)
    told = [at * 10 for at, one in enumerate(found) if one.candidate]

    assert {str(one.verdict) for one in found if one.candidate} == {"slow_member"}
    assert 2500 <= told[0] <= 3300


def test_a_speed_within_ten_per_cent_is_not_told_from_noise(group: Make) -> None:
    made = group({"t": [LATE, LATE, *6 * [FINE]]}, FOUR)
    _, found = made.looked(members=made.at_work({"m0": 190}, ["m0"], "slow_member"))

    assert leading(found) != "slow_member"


def test_two_peers_that_keep_up_prove_it_whatever_less_the_others_get(group: Make) -> None:
    """The members that hold two partitions get as much as the one that falls behind, six others half of it."""
    held = {f"m{n}": {"t": [2 * n, 2 * n + 1]} for n in range(3)} | {
        f"m{n}": {"t": [n + 3]} for n in range(3, 9)
    }
    made = group({"t": [LATE, LATE, *10 * [FINE]]}, held)
    _, found = made.looked(members=made.at_work({"m0": 120}, ["m0"], "slow_member"))

    assert leading(found) == "slow_member"
    assert found[0].evidence["peers"] == 2


HELD = {"a": (0, 1), "b": (2, 3), "c": (4,), "d": (5,)}


def verdicts(inflow: Rate, speed: Mapping[str, Rate]) -> set[str]:
    looks = judged(Timeline([inflow] * 6, HELD, speed, order="even"), 2700)
    return {str(one.findings[0].verdict) for one in looks if one.candidate}


@pytest.mark.slow
def test_a_machine_that_did_more_before_and_a_peer_that_does_prove_it_together() -> None:
    def slowed(second: int) -> float:
        return 100.0 if second < 1500 else 50.0

    assert verdicts(36.0, {"a": slowed, "b": 100.0, "c": 100.0, "d": 100.0}) == {"slow_member"}


def after_slowing(peer: float) -> list[Judgement]:
    """A member that did 72 records/s does 60 from minute 25 on; ``peer``: records/s that each of b's two partitions gets."""
    inflow = [36.0, 36.0, peer, peer, 20.0, 20.0]
    speeds: dict[str, Rate] = dict.fromkeys(HELD, 100.0)
    slowed: Rate = lambda second: 100.0 if second < 1500 else 60.0  # noqa: E731
    looks = judged(Timeline(inflow, HELD, {**speeds, "a": slowed}, order="even"), 3600)
    return [one for one in looks if one.candidate]


@pytest.mark.slow
def test_a_machine_that_did_more_before_is_slow_where_peers_of_another_mix_do_clearly_more_than_it_does_now(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """No peer gets as much of both topics, so without its own past nothing proves it."""
    scenario = load(SICK / "slow-of-another-mix.yaml", True)

    assert first_verdict(scenario) == "slow_member"
    monkeypatch.setattr(slow_member, "_done_before", lambda member, least: 0.0)
    assert first_verdict(scenario) != "slow_member"


def first_verdict(scenario: SimulatorScenario) -> str | None:
    opening = next(iter(run(scenario, 1).openings), None)
    return opening.verdicts[0] if opening else None


def test_what_it_did_before_is_named_as_the_proof(group: Make) -> None:
    made = group({"t": [LATE, LATE, *6 * [FINE]]}, FOUR)
    model, found = made.looked(members=made.at_work({"m0": 120}, ["m0"], "slow_member"))
    proof = {"peers": 0, "did_before_per_s": 68.4, "speed": 0.9}

    said = slow_member.reason(model, replace(found[0], evidence={**found[0].evidence, **proof}))
    assert said.endswith(
        "and processed at least 68.4 before it fell behind. It works at no more than 90% of that speed."
    )


@pytest.mark.slow
@pytest.mark.parametrize("peer", [20.0, 31.5])
def test_where_no_peer_does_clearly_more_all_may_have_become_slow(peer: float) -> None:
    assert "slow_member" not in {str(one.findings[0].verdict) for one in after_slowing(peer)}


@pytest.mark.slow
def test_peers_that_work_off_a_backlog_prove_what_a_member_does_not_do() -> None:
    """All are late after ten minutes of too much, and one of them becomes slow while they catch up."""

    def burst(second: int) -> float:
        return 90.0 if 600 <= second < 1200 else 20.0

    held = {name: (at,) for at, name in enumerate("abcd")}
    speeds: dict[str, Rate] = dict.fromkeys(held, 33.0)
    world = Timeline([burst] * 4, held, {**speeds, "d": lambda second: 33.0 if second < 1300 else 10.0})
    told = [f for one in judged(world, 2400) for f in one.findings if f.ripe and one.candidate]

    assert {str(f.verdict) for f in told[-30:]} == {"slow_member"}
    assert told[-1].evidence["peers"] == 3
    assert told[-1].evidence["peers_do_per_s"] == pytest.approx(33, rel=0.05)


@pytest.mark.slow
def test_one_fast_machine_among_equal_ones_proves_nothing() -> None:
    def rising(second: int) -> float:
        return 10.0 if second < 1500 else 36.0

    found = verdicts(rising, {"a": 50.0, "b": 100.0, "c": 50.0, "d": 50.0})

    assert found
    assert "slow_member" not in found


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "hours"), [("slow-at-70-percent", 0.6), ("slow-commits-every-5-min", 1.4), ("slow-leak", 1.7)]
)
def test_a_machine_that_became_slow_is_never_called_badly_spread(name: str, hours: float) -> None:
    """Whether to 0.7 of its speed, or to 0.3 with a commit every five minutes, or by a leak, bit by bit."""
    messages = run(replace(load(SICK / f"{name}.yaml"), hours=hours), seed=23).messages

    assert {str(message.verdict) for message in messages} == {"slow_member"}
    assert [action.type for action in messages[0].actions if action.feasible == "yes"] == ["restart_member"]
