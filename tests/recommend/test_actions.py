"""For each kind of group the right action leads, and nothing infeasible is put first."""

from __future__ import annotations

import shlex
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from kagent.contract.recommendation import ActionType, Status
from kagent.contract.words import action_words
from kagent.policy import Policy
from kagent.recommend.render import Diagnosis, compose, diagnose, severity
from tests.fixtures.findings import CALM, FINE, FOUR, HOT, LATE, SILENT, STANDS

Make = Callable[..., Any]
HALVES = {"m0": {"t": [0, 1, 2, 3]}, "m1": {"t": [4, 5, 6, 7]}}
UNEVEN = {"t": [HOT, HOT, CALM, CALM, *4 * [CALM]]}
KINDS: dict[str, tuple[dict[str, Any], set[str]]] = {
    "classic_java": ({}, {"follow_plan"}),
    "classic_librdkafka": ({"library": "librdkafka"}, {"follow_plan"}),
    "classic_python": ({"library": "python"}, set()),
    "consumer": ({"type": "consumer", "protocol": "uniform"}, {"follow_plan"}),
    "connect": ({"name": "connect-sink", "client": "connector-consumer-sink"}, {"follow_plan"}),
    "faust": ({"protocol": "faust", "library": "faust"}, {"switch_assignor", "follow_plan"}),
    "streams": ({"protocol": "stream"}, {"switch_assignor", "follow_plan"}),
}


def told(made: Any, policy: Policy | None = None, **state: Any) -> Diagnosis:
    """What is said of the leading finding; m0 does 500 records/s and gets 700."""
    known = {"members": made.at_work({"m0": 500, "m1": 500}, ["m0"]), **state}
    model, found = made.looked(policy, **known)
    return diagnose(model, found[0])


def said(made: Diagnosis) -> list[tuple[str, str]]:
    return [(str(a.type), a.feasible) for a in made.actions]


@pytest.mark.parametrize("kind", sorted(KINDS))
def test_what_can_be_done_about_the_spread_hangs_on_the_kind(group: Make, kind: str) -> None:
    more, never = KINDS[kind]
    made = told(group(UNEVEN, HALVES, **more))

    assert str(made.model.kind) == kind
    if made.model.by_member:
        assert str(made.verdict) == "rebalance"
    assert said(made)[0][1] != "no"
    assert not never & {name for name, feasible in said(made) if feasible == "yes"}


@pytest.mark.parametrize("kind", sorted(KINDS))
@pytest.mark.parametrize("trouble", ["record", "member", "transaction", "loss"])
def test_whatever_is_the_matter_with_whatever_kind_its_own_remedy_leads(
    group: Make, kind: str, trouble: str
) -> None:
    more, _ = KINDS[kind]
    held = {**STANDS, "committed": 9_909_750, "stable": 9_909_750}
    held.pop("lag")
    parts, leading = {
        "record": ([STANDS, *7 * [FINE]], "skip_or_fix_record"),
        "member": ([*4 * [SILENT], *4 * [FINE]], "restart_member"),
        "transaction": ([held, *7 * [FINE]], "abort_transaction"),
        "loss": ([{**LATE, "start": 9_950_000, "moved": 60}, *7 * [FINE]], "reset_or_accept_loss"),
    }[trouble]
    made = group({"t": parts}, HALVES, **more)
    name = made.roster().names[0]
    state = made.look().state
    silent = {name: state.members[name]} if name in state.members else {}
    if trouble == "member":
        silent = {n: type(m)(silent_s=800.0, silent_seen=m.silent_seen) for n, m in silent.items()}
    stands = made.stood() if trouble == "record" else {}
    model, found = made.looked(members=silent, standing=stands, trail=state.trail)

    diagnosis = diagnose(model, found[0])

    assert found[0].ripe
    assert said(diagnosis)[0] == (leading, "yes")


@pytest.mark.parametrize(
    ("more", "missing"),
    [
        ({"library": "librdkafka"}, {"sticky", "lag", "lag-global", "fair"}),
        ({"library": "python"}, {"cooperative-sticky"}),
        ({"type": "consumer"}, {"range", "sticky", "cooperative-sticky"}),
    ],
)
def test_a_strategy_that_the_library_lacks_is_never_called_feasible(
    group: Make, more: dict[str, Any], missing: set[str]
) -> None:
    message = compose(told(group(UNEVEN, HALVES, **more)), "i", 0, Status.OPEN)

    assert not missing & {a.strategy for a in message.alternatives if a.feasible == "yes"}
    assert not missing & {a.params.get("strategy") for a in message.actions}


def test_what_the_group_uses_already_is_never_advised(group: Make) -> None:
    for protocol in ("range", "roundrobin", "sticky"):
        made = told(group(UNEVEN, HALVES, protocol=protocol))
        assert protocol not in {a.params.get("strategy") for a in made.actions}


def test_a_group_that_follows_kagent_is_told_to_follow(group: Make) -> None:
    made = told(group(UNEVEN, HALVES, library="python", protocol="kagent-follow"))

    assert said(made)[0] == ("follow_plan", "yes")
    assert made.actions[0].gain["now"] is None
    assert (made.actions[0].gain["likely"] or 0) > 0


@pytest.mark.parametrize("risen", [1, 3])
def test_an_assignor_is_advised_by_which_the_group_catches_up_also_if_more_arrived_in_the_latest_minute(
    group: Make, risen: int
) -> None:
    """Members that were never busy count as usual ones. With three times as much in the latest minute than usual, the plan goes by the usual inflow."""
    hot = {"end": 10_000_000, "rate": 80, "lag": 8_000}
    calm = [{**hot, "rate": rate, "lag": 0} for rate in (10, 60, 60)]
    made = group(
        {"t": [*4 * [hot], *calm]},
        {"m0": {"t": [0, 1, 2, 3]}, "m1": {"t": [4]}, "m2": {"t": [5]}, "m3": {"t": [6]}},
    )
    model, found = made.looked(members=made.at_work({"m0": 250}, ["m0"]))
    rates = model.columns.rates.copy()
    rates[0] *= risen
    advice = diagnose(replace(model, columns=replace(model.columns, rates=rates)), found[0])
    switch = next(a for a in advice.actions if a.params.get("strategy") == "roundrobin")
    other = next(a for a in advice.alternatives if a.strategy == "roundrobin")

    assert 0 < other.greatest < float("inf")
    assert (switch.feasible, switch.gain["now"]) == ("yes", None)
    assert 0 < (switch.gain["likely"] or 0) < (switch.gain["after"] or 0)


def test_what_takes_hours_comes_after_what_catches_up_in_time(group: Make) -> None:
    """roundrobin leaves each of the two members that get a busy partition 1 record/s to catch up with; with six members it is 8."""
    busy = {"end": 10_000_000, "rate": 92, "lag": 8_000}
    made = group(
        {"t": [busy, busy, *4 * [{**busy, "rate": 7, "lag": 0}]]},
        {f"m{at}": {"t": [2 * at, 2 * at + 1]} for at in range(3)},
    )
    found = told(made, members=made.at_work({"m0": 100}, ["m0"]))
    likely = {a.type: a.gain["likely"] or 0.0 for a in found.actions if a.feasible == "yes"}

    assert list(likely) == ["set_member_count", "switch_assignor"]
    assert likely[ActionType.SET_MEMBER_COUNT] < 3600 < likely[ActionType.SWITCH_ASSIGNOR]


def test_where_neither_helps_alone_another_assignor_comes_with_more_members(group: Make) -> None:
    """Under range a fifth member gets nothing, and dealt out together to four of them, two still hold a heavy and a light one."""
    heavy, light = (
        {"end": 10_000_000, "rate": rate, "lag": 60_000 if rate > 300 else 0} for rate in (400, 200)
    )
    held = {f"m{n}": {"light": [n], **({"heavy": [n]} if n < 2 else {})} for n in range(4)}
    made = group({"heavy": 2 * [heavy], "light": 4 * [light]}, held, protocol="range")
    found = told(made, members=made.at_work({f"m{n}": 500 for n in range(4)}, ["m0", "m1"]))
    first = found.actions[0]

    assert said(found)[0] == ("set_member_count", "yes")
    assert first.params == {"members": 6, "fitting": [6], "strategy": "roundrobin"}
    assert "RoundRobinAssignor" in first.how
    assert first.how.endswith("Run 6 members instead of 4.")
    assert action_words(first.type, first.params) == "switch to roundrobin, add members"


def test_groups_that_keep_state_get_no_moves(group: Make) -> None:
    made = told(group(UNEVEN, HALVES, library="python", protocol="kagent-follow"), Policy(stateful=True))

    assert not {("follow_plan", "yes"), ("switch_assignor", "yes")} & set(said(made))


def test_where_nothing_feasible_helps_the_severity_is_info(group: Make) -> None:
    made = group({"t": [HOT, CALM]}, {"m0": {"t": [0]}, "m1": {"t": [1]}})
    hot = told(made, members=made.at_work({"m0": 250}, ["m0"], "hot_partition"))

    assert str(hot.verdict) == "hot_partition"
    assert severity(hot) == "info"
    assert said(hot)[0] == ("add_partitions_or_rekey", "unknown")


@pytest.mark.parametrize("protocol", ["range", "stream"])
def test_what_may_not_be_enough_is_a_ticket_and_names_members_where_partitions_cannot_move(
    group: Make, protocol: str
) -> None:
    # 2 · 290 on a member that does 295: one each fits, but leaves next to no room.
    nearly = {"end": 10_000_000, "rate": 290, "lag": 60_000}
    made = group({"t": [nearly, nearly, *6 * [CALM]]}, FOUR, protocol=protocol)
    found = told(made, members=made.at_work({"m0": 295}, ["m0"]))

    assert found.finding.evidence["may_not_be_enough"]
    assert severity(found) == "ticket"
    if protocol == "stream":
        assert said(found)[0] == ("raise_parallelism", "yes")


def test_the_settings_severity_wins_and_a_standstill_pages_only_when_it_is_late(group: Make) -> None:
    assert severity(told(group(UNEVEN, HALVES), Policy(severity={"rebalance": "page"}))) == "page"
    made = group({"t": [STANDS, *7 * [FINE]]}, HALVES)
    state: dict[str, Any] = {"members": {}, "standing": made.stood()}

    assert severity(told(made, **state)) == "page"
    assert severity(told(made, Policy(page_behind=5000), **state)) == "ticket"


def test_the_whole_group_at_rest_names_nobody_to_restart_first(group: Make) -> None:
    made = group({"t": 8 * [SILENT]}, HALVES)
    whole = told(made, members={}, at_rest_s=890.0, going_since=0)

    assert str(whole.verdict) == "stuck_member"
    assert whole.finding.evidence["whole_group"]


def test_commands_in_advice_say_which_cluster_and_can_be_pasted(group: Make) -> None:
    made = group({"t": [STANDS, *7 * [FINE]]}, HALVES)
    model, found = made.looked(standing=made.stood(), trail=made.look().state.trail)
    how = diagnose(model, found[0]).actions[0].how

    words = shlex.split(how[how.index("kafka-consumer-groups.sh") :])
    assert words[1:3] == ["--bootstrap-server", "<host:port>"]  # nobody told this model of its cluster
    assert words[words.index("--topic") + 1] == "t:0"
    assert words[-3:-1] == ["--to-offset", str(int(model.lags.committed[0]) + 1)]
    assert words[-1] == "--execute"


@pytest.mark.parametrize("client", ["sarama", "kgo", "kafkajs", "sarama-7"])
def test_a_client_whose_metadata_looks_like_another_librarys_is_not_taken_for_it(
    group: Make, client: str
) -> None:
    model = group(UNEVEN, HALVES, library="java", client=client).look()

    assert str(model.kind) == "classic"


ROUND = {"m0": {"t": [0, 2, 4, 6]}, "m1": {"t": [1, 3, 5, 7]}}
NO_HELP = {"t": [HOT, CALM, HOT, *5 * [CALM]]}
"""Hot partitions that range and roundrobin, too, give to one member."""


@pytest.mark.parametrize("library", ["java", "librdkafka", "python", "faust", None])
def test_what_would_help_is_never_said_above_that_nothing_can_be_done(
    group: Make, library: str | None
) -> None:
    protocol = {"faust": {"protocol": "faust"}}.get(library or "", {})
    made = told(group(NO_HELP, ROUND, library=library, **protocol))
    spoken = compose(made, "1", 0, Status.OPEN)

    assert "would help" in spoken.reason
    assert "Nothing can be done" not in "".join(action.how for action in spoken.actions)
    if spoken.actions[0].type == "none":
        assert "cannot be moved as the group runs now: " in spoken.actions[0].how


def test_of_an_unknown_client_it_is_said_which_ones_can_take_a_plan(group: Make) -> None:
    made = told(group(NO_HELP, ROUND, library=None))

    follow = next(action for action in made.actions if action.type == "follow_plan")
    assert follow.feasible == "unknown"
    assert "kagent assignor --consumer" in follow.how
    assert "kagent.follow" in follow.how
    assert "Java, aiokafka and kafka-python" in (follow.reason or "")


@pytest.mark.parametrize(
    ("topics", "policy", "declared"),
    [
        (("orders", "payments"), Policy(), False),
        (("orders", "payments"), Policy(co_partitioned=False), True),
        (("orders",), Policy(), True),
    ],
)
def test_who_may_join_topics_by_partition_number_is_told_to_declare_it(
    group: Make, topics: tuple[str, ...], policy: Policy, declared: bool
) -> None:
    """Offsets do not show a join, and moves and most strategies part partitions of one number."""
    made = group(
        {topic: [HOT, HOT, *6 * [CALM]] for topic in topics},
        {f"m{at}": dict.fromkeys(topics, ps) for at, ps in enumerate([[0, 1], [2, 3], [4, 5], [6, 7]])},
        library="python",
        protocol="kagent-follow",
    )
    hows = [a.how for a in told(made, policy).actions if a.type in ("follow_plan", "switch_assignor")]

    assert hows
    assert {"`co_partitioned: true`" not in how for how in hows} == {declared}
