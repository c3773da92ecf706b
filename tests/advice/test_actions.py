"""For each kind of group the right action leads and nothing infeasible is put first."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from kagent.advice.look import Look
from kagent.advice.message import Story, compose, severity, tell
from kagent.advice.rates import Busy
from kagent.advice.verdicts import findings
from kagent.contract.recommendation import Status
from kagent.policy import Policy

Make = Callable[..., Any]
LATE = {"end": 10_000_000, "rate": 100, "lag": 100_000}
FINE = {"end": 10_000_000, "rate": 100, "lag": 0}
SKEWED = {"t": [LATE, LATE, LATE, LATE, FINE, FINE, FINE, FINE]}
HALVES = {"m0": {"t": [0, 1, 2, 3]}, "m1": {"t": [4, 5, 6, 7]}}


def story(look: Look) -> Story:
    return tell(look, findings(look)[0])


def said(made: Story) -> list[tuple[str, str]]:
    return [(str(a.type), a.feasible) for a in made.actions]


@pytest.mark.parametrize(
    ("kind", "more", "leading", "never"),
    [
        ("classic_java", {}, "switch_assignor", "follow_plan"),
        ("classic_librdkafka", {"library": "librdkafka"}, "switch_assignor", "follow_plan"),
        ("classic_python", {"library": "python"}, "switch_assignor", None),
        ("consumer", {"type": "consumer", "protocol": "uniform"}, "set_member_count", "follow_plan"),
        (
            "connect",
            {"name": "connect-sink", "client": "connector-consumer-sink"},
            "switch_assignor",
            "follow_plan",
        ),
        ("faust", {"protocol": "faust", "library": "faust"}, "set_member_count", "switch_assignor"),
    ],
)
def test_what_can_be_done_hangs_on_the_kind(
    group: Make, kind: str, more: dict[str, Any], leading: str | None, never: str | None
) -> None:
    made = story(group(SKEWED, HALVES, **more).look())

    assert str(made.look.kind) == kind
    assert str(made.verdict) == "rebalance"
    actions = said(made)
    assert actions[0][1] != "no"
    if leading:
        assert actions[0] == (leading, "yes")
    assert never not in [kind_ for kind_, feasible in actions if feasible != "no"]


def test_a_uniform_group_is_told_to_use_range_where_that_helps_and_never_what_it_uses(group: Make) -> None:
    in_turn = {"t": [LATE, FINE] * 4}
    odd = {"m0": {"t": [0, 2, 4, 6]}, "m1": {"t": [1, 3, 5, 7]}}
    uneven = {"m0": {"t": [0, 1, 2, 3, 4, 5]}, "m1": {"t": [6, 7]}}
    mostly = {"t": [LATE] * 6 + [FINE] * 2}

    def advised(protocol: str, topics: Any, members: Any) -> list[tuple[str, Any]]:
        made = story(group(topics, members, type="consumer", protocol=protocol).look())
        return [(str(a.type), a.params.get("strategy")) for a in made.actions if a.feasible == "yes"]

    assert advised("uniform", in_turn, odd)[0] == ("switch_assignor", "kip848-range")
    assert ("switch_assignor", "kip848-range") not in advised("uniform", SKEWED, HALVES)
    for protocol in ("uniform", "range"):
        found = advised(protocol, mostly, uneven)
        assert found[0][0] == "switch_assignor"
        assert f"kip848-{protocol}" not in [strategy for _, strategy in found]


KINDS: dict[str, tuple[dict[str, Any], set[str]]] = {
    "classic_java": ({}, {"follow_plan"}),
    "classic_librdkafka": ({"library": "librdkafka"}, {"follow_plan"}),
    "classic_python": ({"library": "python"}, set()),
    "consumer": ({"type": "consumer", "protocol": "uniform"}, {"follow_plan"}),
    "connect": ({"name": "connect-sink", "client": "connector-consumer-sink"}, {"follow_plan"}),
    "faust": ({"protocol": "faust", "library": "faust"}, {"switch_assignor", "follow_plan"}),
    "streams": ({"protocol": "stream"}, {"switch_assignor", "follow_plan"}),
    "simple": ({"type": "simple"}, {"switch_assignor", "follow_plan"}),
}
STANDS = {**LATE, "age": 1, "moved": 3000, "lag": 300_000}
PASSED = {**LATE, "age": 3000, "moved": 3000, "lag": 300_000}
TROUBLES: dict[str, tuple[list[Any], str]] = {
    "skew": ([LATE] * 4 + [FINE] * 4, "rebalance"),
    "a record": ([STANDS] + [FINE] * 7, "skip_or_fix_record"),
    "a member": ([PASSED] * 4 + [FINE] * 4, "restart_member"),
    "a transaction": (
        [{**LATE, "committed": 9_700_000, "stable": 9_700_000, "age": 1, "moved": 3000}] + [FINE] * 7,
        "abort_transaction",
    ),
    "a loss": ([{**LATE, "start": 9_950_000}] + [FINE] * 7, "reset_or_accept_loss"),
}


@pytest.mark.parametrize("kind", sorted(KINDS))
@pytest.mark.parametrize("trouble", sorted(TROUBLES))
def test_whatever_is_the_matter_with_whatever_kind_nothing_infeasible_leads(
    group: Make, kind: str, trouble: str
) -> None:
    more, never = KINDS[kind]
    parts, leading = TROUBLES[trouble]
    look = group({"t": parts}, {} if kind == "simple" else HALVES, **more).look()
    found = findings(look)
    if trouble in ("skew", "a member") and kind in ("simple", "streams"):
        # their members' partitions are not told by the records
        assert not {str(f.verdict) for f in found} & {
            "rebalance",
            "stuck_member",
            "slow_member",
            "hot_partition",
        }
        return

    made = tell(look, found[0])

    assert str(look.kind) == kind
    assert said(made)[0][1] != "no"
    assert not never & {type_ for type_, feasible in said(made) if feasible != "no"}
    if trouble != "skew":
        assert said(made)[0] == (leading, "yes")


@pytest.mark.parametrize(
    ("more", "missing"),
    [
        ({"library": "librdkafka"}, ("sticky", "lag", "lag-global", "fair")),
        ({"library": "python"}, ("cooperative-sticky",)),
        ({"type": "consumer"}, ("range", "sticky", "cooperative-sticky")),
    ],
)
def test_a_strategy_that_the_library_lacks_is_never_called_feasible(
    group: Make, more: dict[str, Any], missing: tuple[str, ...]
) -> None:
    message = compose(story(group(SKEWED, HALVES, **more).look()), "i", 0, Status.OPEN)

    feasible = {a.strategy for a in message.alternatives if a.feasible == "yes"}
    assert not feasible & set(missing)
    advised = {a.params.get("strategy") for a in message.actions if str(a.type) == "switch_assignor"}
    assert not advised & set(missing)


def test_a_group_that_follows_kagent_is_told_to_follow(group: Make) -> None:
    made = story(group(SKEWED, HALVES, library="python", protocol="kagent-follow").look())

    assert said(made)[0] == ("follow_plan", "yes")


def test_a_kip_848_group_on_kagents_assignor_is_told_to_apply_and_one_on_the_default_how_to_find_out(
    group: Make,
) -> None:
    ours = story(group(SKEWED, HALVES, type="consumer", protocol="kagent").look())
    default = story(group(SKEWED, HALVES, type="consumer", protocol=None).look())

    assert said(ours)[0] == ("follow_plan", "yes")
    assert "kagent apply" in ours.actions[0].how
    unknown = next(a for a in default.actions if str(a.type) == "follow_plan")
    assert unknown.feasible == "unknown"
    assert "kagent assignor" in unknown.how
    assert "--describe --state" in (unknown.reason or "")


def test_a_java_group_on_kagents_assignor_is_told_to_follow(group: Make) -> None:
    made = story(group(SKEWED, HALVES, protocol="kagent").look())

    assert said(made)[0] == ("follow_plan", "yes")


def test_only_recommendations_about_kip_848_groups_have_topic_ids(group: Make) -> None:
    """A broker's assignor knows topics by their ids alone; other groups' messages stay as short as they were."""
    ids = {"t": ("srXqDBVKTVGu5o8K6EONgg", "srXqDBVKTVGu5o8K6EONgg")}
    modern = group(SKEWED, HALVES, type="consumer", protocol="kagent", ids=ids).look()
    assert compose(story(modern), "i", 0, Status.OPEN).topic_ids == {"t": "srXqDBVKTVGu5o8K6EONgg"}
    assert compose(story(group(SKEWED, HALVES, ids=ids).look()), "i", 0, Status.OPEN).topic_ids == {}


def test_stateful_groups_get_no_moves(group: Make) -> None:
    made = story(
        group(SKEWED, HALVES, library="python", protocol="kagent-follow").look(Policy(stateful=True))
    )

    assert ("follow_plan", "yes") not in said(made)
    assert ("switch_assignor", "yes") not in said(made)


def test_strategies_that_break_pairs_are_unsafe_and_not_advised(group: Make) -> None:
    topics = {"a": SKEWED["t"], "b": 8 * [FINE]}
    members = {m: {"a": ps["t"], "b": ps["t"]} for m, ps in HALVES.items()}
    costs = {
        f"app-{m}/10.0.0.1": Busy(100, 10, {"a": 1000.0, "b": n}) for m, n in (("m0", 10.0), ("m1", 900.0))
    }
    message = compose(story(group(topics, members).look(busy=costs)), "i", 0, Status.OPEN)

    unsafe = {a.strategy for a in message.alternatives if a.unsafe}
    assert "roundrobin" in unsafe
    assert "range" not in unsafe
    assert not [a for a in message.actions if a.type == "switch_assignor" and a.feasible == "yes"]


def test_where_nothing_feasible_helps_the_severity_is_info(group: Make) -> None:
    hot = {"t": [{**LATE, "lag": 1_000_000}, FINE]}
    made = story(group(hot, {"m0": {"t": [0]}, "m1": {"t": [1]}}).look())

    assert str(made.verdict) == "hot_partition"
    assert severity(made) == "info"
    assert said(made)[0] == ("add_partitions_or_rekey", "unknown")


def test_the_settings_severity_wins(group: Make) -> None:
    made = story(group(SKEWED, HALVES).look(Policy(severity={"rebalance": "page"})))

    assert severity(made) == "page"


def test_topics_whose_costs_are_unknown_lower_the_confidence(group: Make) -> None:
    topics = {"a": SKEWED["t"], "b": SKEWED["t"]}
    members = {m: {"a": ps["t"], "b": ps["t"]} for m, ps in HALVES.items()}
    message = compose(story(group(topics, members, protocol="roundrobin").look()), "i", 0, Status.OPEN)

    assert (message.confidence, message.severity) == ("low", "info")
