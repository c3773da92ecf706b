"""For each kind of group the right action leads and nothing infeasible is put first."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from kagent.advice.look import Look
from kagent.advice.message import Story, compose, severity, tell
from kagent.advice.policy import Policy
from kagent.advice.rates import Busy
from kagent.advice.recommendation import Status
from kagent.advice.verdicts import findings

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
        ("consumer", {"type": "consumer", "protocol": "uniform"}, None, "follow_plan"),
        (
            "connect",
            {"name": "connect-sink", "client": "connector-consumer-sink"},
            "switch_assignor",
            "follow_plan",
        ),
        ("faust", {"protocol": "faust", "library": "faust"}, None, "switch_assignor"),
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
