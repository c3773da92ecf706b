"""When many would open at once, one incident opens and theirs are held."""

from __future__ import annotations

import orjson

from kagent.advice.judge import Candidate
from kagent.advice.storms import Recent, gather
from kagent.contract.recommendation import Status


def candidate(n: int, topics: tuple[str, ...] = (), brokers: tuple[int, ...] = ()) -> Candidate:
    return Candidate("main", f"g{n}", f"id{n}", "rebalance", 0, "", topics, brokers)


def test_few_candidates_stand_alone() -> None:
    found = gather([candidate(n, (f"t{n}",)) for n in range(3)], Recent(), "main", 100, 1000)

    assert (len(found.alone), found.messages) == (3, ())


def test_five_groups_of_one_topic_are_one_incident() -> None:
    found = gather(
        [candidate(n, ("orders",)) for n in range(5)] + [candidate(9, ("x",))], Recent(), "main", 100, 1000
    )

    assert [m.group for m in found.messages] == ["<topic orders>"]
    assert [c.group for c in found.alone] == ["g9"]
    assert len(found.held) == 5


def test_five_groups_led_by_one_broker_are_one_incident() -> None:
    found = gather([candidate(n, (f"t{n}",), (3,)) for n in range(5)], Recent(), "main", 100, 1000)

    assert [m.group for m in found.messages] == ["<broker 3>"]


def test_more_than_a_tenth_of_all_groups_is_the_cluster() -> None:
    found = gather([candidate(n, (f"t{n}",), (n,)) for n in range(12)], Recent(), "main", 100, 1000)

    assert [m.group for m in found.messages] == ["<cluster>"]


def test_candidates_of_two_minutes_add_up_and_the_incident_ends_when_they_do() -> None:
    recent, said = Recent(), []
    for n in range(5):
        found = gather([candidate(n, ("orders",))], recent, "main", 100, 1000 + n * 20_000)
        recent, said = (
            Recent.from_row(orjson.loads(orjson.dumps(found.recent.to_row()))),
            [*said, *found.messages],
        )
    late = gather([], recent, "main", 100, 2_000_000)

    assert [m.status for m in (*said, *late.messages)] == [Status.OPEN, Status.RESOLVED]
    assert said[0].id == late.messages[0].id
