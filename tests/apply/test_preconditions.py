"""Why a group cannot be moved from outside, and what its own client needs for that."""

from __future__ import annotations

import pytest

from kagent.apply.preconditions import CannotApply, checked
from kagent.contract.recommendation import GroupKind
from kagent.follow.decision_types import Rules, Snapshot
from kagent.kafka.descriptions import Described, GroupDescription
from tests.apply.test_auto import plan

K = GroupKind


def refusal(client: GroupKind, kind: str = "classic") -> str:
    """What is said of a group of this protocol, with an open recommendation that names its client."""
    found = Described(GroupDescription("billing", "stable", kind, "range", False))
    with pytest.raises(CannotApply) as error:
        checked(found, Snapshot(0.0, plan(group_kind=client)), {}, 0.0, Rules("main", "billing"))
    return str(error.value)


@pytest.mark.parametrize(
    ("client", "named", "others"),
    [
        (K.CLASSIC_LIBRDKAFKA, "group.protocol=consumer", ("kagent.follow", "--consumer")),
        (K.CLASSIC_JAVA, "kagent assignor --consumer", ("kagent.follow", "group.protocol")),
        (K.CLASSIC_PYTHON, "kagent.follow", ("--consumer", "group.protocol")),
    ],
)
def test_a_classic_group_is_told_what_its_own_client_can_have(
    client: GroupKind, named: str, others: tuple[str, ...]
) -> None:
    said = refusal(client)

    assert named in said
    assert not [other for other in others if other in said]


@pytest.mark.parametrize(("client", "kind"), [(K.CONNECT, "classic"), (K.SHARE, "share")])
def test_a_group_that_can_take_no_plan_is_told_of_nothing_that_it_needs(client: GroupKind, kind: str) -> None:
    assert refusal(client, kind).endswith("can be moved from outside.")
