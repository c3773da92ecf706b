"""What a follower does between its consumer, the cache and the clock; no assignment touches a file or a network."""

from __future__ import annotations

import contextlib
import sys
import threading
from collections.abc import Callable, Iterator, Mapping
from typing import Any, ClassVar

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from kafka.coordinator.assignors.abstract import RebalanceProtocol

from kagent.contract.recommendation import Recommendation
from kagent.errors import InputError
from kagent.follow import Asking, Reason, aiokafka_follower, kafka_python_follower
from kagent.follow import plan_userdata as said
from kagent.follow.decision_types import Followed, Snapshot
from kagent.follow.follower import SWITCH, Follower
from kagent.follow.rejoin_budget import DAY
from kagent.groups.client_library import library_of, user_data_of
from kagent.strategies.plugins.join import Joined

NOW = 1_000_000.0
COUNTS = {"t": 4}
BEFORE = {"a/h": [("t", 0), ("t", 1)], "b/h": [("t", 2), ("t", 3)]}
AFTER = {"a/h": [("t", 0)], "b/h": [("t", 1), ("t", 2), ("t", 3)]}
Advise = Callable[..., Recommendation]
TOUCHES = ("open", "socket.", "subprocess.", "os.system", "os.listdir", "os.scandir", "sqlite3.")
touched: list[str] | None = None
ours = threading.get_ident()


def _audit(event: str, arguments: Any) -> None:
    if touched is not None and threading.get_ident() == ours and event.startswith(TOUCHES):
        touched.append(event)


sys.addaudithook(_audit)


@contextlib.contextmanager
def nothing_touched() -> Iterator[None]:
    global touched
    touched = []
    yield
    seen, touched = touched, None
    assert seen == []


@pytest.fixture
def untouched() -> Iterator[None]:
    """No file, socket or process is touched meanwhile."""
    with nothing_touched():
        yield


class Alone:
    """A client that counts how often it was asked to rejoin."""

    def __init__(self, client_id: str = "a", host: str | None = "h") -> None:
        self.client_id, self.host, self.rejoined = client_id, host, 0

    def name(self) -> tuple[str | None, str, str | None]:
        return None, self.client_id, self.host

    def generation(self) -> int | None:
        return None

    def rejoin(self) -> None:
        self.rejoined += 1


class Clock:
    def __init__(self) -> None:
        self.now = NOW

    def __call__(self) -> float:
        return self.now


def follower(clock: Callable[[], float] = Clock(), **options: Any) -> Follower:  # noqa: B008
    made = Follower("nowhere:1", "billing", clock=clock, **{"apply": True} | options)
    made.client = Alone()
    return made


def joined(held: dict[str, list[tuple[str, int]]], generation: int = 7, **more: Any) -> list[Joined]:
    return [
        Joined(
            f"id-{name}",
            ("t",),
            said.joining(name, pairs, generation, more.get("followed"), more.get("asked", ())),
        )
        for name, pairs in held.items()
    ]


def read(one: Follower, rec: Recommendation | None, at: float = NOW) -> None:
    one.learned(Snapshot(at, rec))


def leads(one: Follower, **said: Any) -> None:
    """The follower leads a rebalance that leaves everybody with what the plan starts from."""
    one.user_data()
    snapshot, one.snapshot = one.snapshot, None
    placed, data = one.place(COUNTS, joined(BEFORE, **said))
    one.snapshot = snapshot
    one.assigned(placed["id-a/h"], 7, data["id-a/h"])


def after_it() -> dict[str, list[tuple[str, int]]]:
    return {f"id-{name}": held for name, held in AFTER.items()}


def test_the_plan_is_given_out_with_its_id_and_nothing_is_touched(advise: Advise, untouched: None) -> None:
    one = follower()
    read(one, advise(BEFORE, AFTER, NOW))
    placed, data = one.place(COUNTS, joined(BEFORE))
    assert placed == after_it()
    heard = said.read_given(data["id-a/h"])
    assert heard is not None
    assert heard.followed is not None
    assert one.counts == {Reason.FOLLOWED: 1}


def test_a_dry_run_is_the_default_and_assigns_with_the_built_in_assignor(
    advise: Advise, untouched: None, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO", "kagent.follow")
    one = Follower("nowhere:1", "billing", clock=lambda: NOW)
    read(one, advise(BEFORE, AFTER, NOW))
    placed, data = one.place(COUNTS, joined(BEFORE))
    assert sorted(map(len, placed.values())) == [2, 2]
    heard = said.read_given(data["id-a/h"])
    assert heard is not None
    assert heard.followed is None
    assert caplog.messages == [
        "group billing: assigned by sticky; but for the dry run, the open recommendation is followed: 1 partition moves."
    ]


@pytest.mark.parametrize(
    ("value", "follows"),
    [
        ("", True),
        ("on", True),
        ("ON", True),
        ("dry", False),
        ("off", False),
        ("OFF", False),
        ("0", False),
        ("stop!", False),
    ],
)
def test_the_variable_is_heeded_at_once(
    advise: Advise, monkeypatch: pytest.MonkeyPatch, value: str, follows: bool
) -> None:
    one = follower()
    read(one, advise(BEFORE, AFTER, NOW))
    monkeypatch.setenv(SWITCH, value)
    assert (one.place(COUNTS, joined(BEFORE))[0] == after_it()) is follows
    one.apply = False
    assert one.place(COUNTS, joined(BEFORE))[0] != after_it()


def test_the_group_is_asked_once_per_cooldown_and_three_times_a_day_then_it_latches_off(
    advise: Advise, caplog: pytest.LogCaptureFixture
) -> None:
    clock = Clock()
    one = follower(clock, asking=Asking(cooldown=600, per_day=3))
    client = one.client
    assert isinstance(client, Alone)

    def open_one() -> None:
        read(one, advise(BEFORE, AFTER, clock.now), clock.now)
        one.tick()

    leads(one)
    for times in range(3):
        open_one()
        open_one()
        assert client.rejoined == times + 1
        clock.now += 599
        open_one()
        assert client.rejoined == times + 1
        clock.now += 1
    before = one.latched
    open_one()
    assert (before, one.latched) == (False, True)
    assert client.rejoined == 3
    assert "off (latched)" in caplog.text
    clock.now += 2 * DAY
    open_one()
    assert client.rejoined == 3
    read(one, advise(BEFORE, AFTER, clock.now), clock.now)
    one.place(COUNTS, joined(BEFORE))
    assert one.counts[Reason.LATCHED] == 1
    leads(one)
    one.reset()
    open_one()
    assert client.rejoined == 4


def test_requests_of_former_leaders_count(advise: Advise) -> None:
    one = follower()
    leads(one, asked=[int((NOW - s) * 1000) for s in (1000, 2000, 3000)])
    read(one, advise(BEFORE, AFTER, NOW))
    one.tick()
    assert one.latched


def test_a_member_that_does_not_lead_asks_nobody(advise: Advise) -> None:
    one = follower()
    read(one, advise(BEFORE, AFTER, NOW))
    one.user_data()
    one.assigned(BEFORE["a/h"], 7, said.given(7, None, []))
    one.tick()
    assert isinstance(one.client, Alone)
    assert one.client.rejoined == 0


def test_what_was_followed_travels_with_the_members_and_is_kept(advise: Advise, untouched: None) -> None:
    first, second = follower(), follower()
    second.client = Alone("b")
    read(first, advise(BEFORE, AFTER, NOW))
    placed, data = first.place(COUNTS, joined(BEFORE))
    first.assigned(placed["id-a/h"], 8, data["id-a/h"])
    second.assigned(placed["id-b/h"], 8, data["id-b/h"])
    read(second, None)
    again = [Joined("id-a/h", ("t",), first.user_data()), Joined("id-b/h", ("t",), second.user_data())]
    assert second.place(COUNTS, again)[0] == after_it()
    assert second.counts == {Reason.KEPT: 1}
    alone = second.place(COUNTS, again[:1])[0]
    assert alone == {"id-a/h": [("t", 0), ("t", 1), ("t", 2), ("t", 3)]}


def test_the_built_in_assignor_lets_members_keep_what_they_hold(untouched: None) -> None:
    one = follower()
    held = {"a/h": [("t", 1), ("t", 2)], "b/h": [("t", 0), ("t", 3)]}
    assert one.place(COUNTS, joined(held))[0] == {f"id-{name}": pairs for name, pairs in held.items()}


@pytest.mark.parametrize("data", [None, b"junk", said.MARK + b"junk", said.MARK + b"{}"])
def test_a_member_without_a_follower_gets_its_part_of_the_built_in_assignment(
    advise: Advise, untouched: None, data: bytes | None
) -> None:
    one = follower()
    read(one, advise(BEFORE, AFTER, NOW))
    members = [*joined({"a/h": BEFORE["a/h"]}), Joined("id-b/h", ("t",), data)]
    placed, _ = one.place(COUNTS, members)
    assert sorted(map(len, placed.values())) == [2, 2]
    assert one.counts == {Reason.FOREIGN_MEMBER: 1}


def test_hostile_holdings_do_not_upset_the_built_in_assignor(untouched: None) -> None:
    one = follower()
    members = joined({"a/h": [("t", 2**31 - 1), ("nowhere", 0)], "b/h": [("t", 0)]}, generation=2**31 - 1)
    placed, data = one.place(COUNTS, members)
    assert sorted(pair for held in placed.values() for pair in held) == [("t", at) for at in range(4)]
    assert all(said.read_given(blob) is not None for blob in data.values())


def test_the_brokers_word_for_an_instance_id_counts(advise: Advise) -> None:
    one = follower()
    read(one, advise(BEFORE, AFTER, NOW))
    a, b = joined(BEFORE)
    liar = Joined(b.member_id, b.topics, b.user_data, "somebody-else")
    one.place(COUNTS, [a, liar])
    assert one.counts == {Reason.OTHER_MEMBERS: 1}


def test_a_failure_of_the_decision_is_no_failure_of_the_group(
    advise: Advise, monkeypatch: pytest.MonkeyPatch
) -> None:
    one = follower()
    monkeypatch.setattr("kagent.follow.follower.decide", lambda *_: 1 / 0)
    placed, _ = one.place(COUNTS, joined(BEFORE))
    assert sorted(map(len, placed.values())) == [2, 2]
    assert one.counts == {Reason.FAILED: 1}


@pytest.mark.parametrize(
    ("instance", "host", "name"), [(None, "10.0.0.1", "a/10.0.0.1"), (None, None, None), ("s", None, "s")]
)
def test_a_member_says_its_name_as_the_worker_has_it(
    instance: str | None, host: str | None, name: str | None
) -> None:
    one = follower()
    client = Alone("a", host)
    client.name = lambda: (instance, "a", host)  # type: ignore[method-assign]
    one.client = client
    heard = said.read_joining(one.user_data())
    assert heard is not None
    assert heard.name == name
    one.host = "broker-sees-this"
    heard = said.read_joining(one.user_data())
    assert heard is not None
    assert heard.name == (instance or "a/broker-sees-this")


def test_kagent_knows_a_followers_client_whatever_its_client_id() -> None:
    one = follower(strategy="range")
    subscription = {"version": 0, "userData": one.user_data().hex()}
    assert library_of(one.protocol, subscription, {}) == "python"
    assert user_data_of(one.protocol, subscription) is None


@pytest.mark.parametrize("make", [aiokafka_follower, kafka_python_follower])
def test_kagent_knows_a_following_group_by_its_protocol(make: Callable[..., Any]) -> None:
    assert make("nowhere:1", "billing").assignor.name == "kagent-follow"
    assert make("nowhere:1", "billing", strategy="range").assignor.name == "kagent-follow-range"
    with pytest.raises(InputError, match="LagCache"):
        make("nowhere:1", "billing", strategy="lag")


def test_the_cooperative_protocol_takes_kafka_python() -> None:
    cooperative = kafka_python_follower("nowhere:1", "billing", strategy="cooperative-sticky").assignor
    assert cooperative.name == "kagent-follow-cooperative-sticky"
    assert cooperative.supported_protocols() == [RebalanceProtocol.COOPERATIVE]
    with pytest.raises(InputError, match="aiokafka does not speak: take sticky"):
        aiokafka_follower("nowhere:1", "billing", strategy="cooperative-sticky")


def cooperative_round(
    leader: Follower, members: Mapping[str, Follower], counts: Mapping[str, int], generation: int
) -> dict[str, set[tuple[str, int]]]:
    """All join and are given their part; what each has to give up."""
    group = []
    for member_id, member in members.items():
        blob, (owned, since) = member.user_data(), member.owned(("t",))
        group.append(Joined(member_id, ("t",), blob, None, None, owned, since))
    placed, data = leader.place(counts, group)
    revoked = {one.member_id: set(one.owned or ()) - set(placed[one.member_id]) for one in group}
    for member_id, member in members.items():
        member.assigned(placed[member_id], generation, data[member_id])
    return revoked


def cooperative_pair() -> tuple[Follower, Follower]:
    """Two members that hold what the plan starts from."""
    first, second = (follower(strategy="cooperative-sticky") for _ in range(2))
    second.client = Alone("b")
    for member, held in ((first, BEFORE["a/h"]), (second, BEFORE["b/h"])):
        member.assigned(held, 7, said.given(7, None, []))
    return first, second


def test_a_cooperative_group_gives_up_only_what_moves_and_has_the_plan_after_two_rounds(
    advise: Advise,
) -> None:
    first, second = cooperative_pair()
    members = {"id-a/h": first, "id-b/h": second}
    read(first, advise(BEFORE, AFTER, NOW))
    moved = {f"id-{name}": set(BEFORE[name]) - set(AFTER[name]) for name in BEFORE}
    assert cooperative_round(first, members, COUNTS, 8) == moved
    held = {pair for member in members.values() for pair in member.owned(("t",))[0]}
    assert held.isdisjoint(set().union(*moved.values()))  # nobody has it before it was given up
    # Another member leads, and reads nothing: the members tell it where they were on their way to.
    assert not any(cooperative_round(second, members, COUNTS, 9).values())
    assert {name: list(member.owned(("t",))[0]) for name, member in members.items()} == after_it()
    assert not any(cooperative_round(second, members, COUNTS, 10).values())
    assert second.counts == {Reason.KEPT: 2}


def test_two_who_claim_one_partition_do_not_both_get_it() -> None:
    first, second = cooperative_pair()
    second.assigned([*BEFORE["b/h"], BEFORE["a/h"][0]], 5, None)  # from before it was lost
    members = {"id-a/h": first, "id-b/h": second}
    for generation in (8, 9, 10):
        cooperative_round(first, members, COUNTS, generation)
        held = [pair for member in members.values() for pair in member.owned(("t",))[0]]
        assert len(held) == len(set(held))
    assert sorted(held) == [("t", at) for at in range(4)]


def test_a_consumer_of_another_group_is_refused() -> None:
    one = kafka_python_follower("nowhere:1", "billing")

    class Consumer:
        config: ClassVar[dict[str, str]] = {"group_id": "shipping"}

    with (
        pytest.raises(InputError, match="in the group shipping, its follower in billing"),
        one.of(Consumer()),
    ):
        pass


WARM = {
    name: Follower("nowhere:1", "billing", strategy=name)
    for name in ("sticky", "range", "roundrobin", "fair", "cooperative-sticky")
}
BLOBS = st.builds(
    said.joining,
    st.sampled_from(["a", "b", "c", None]),
    st.lists(st.tuples(st.sampled_from(["t", "u", "v"]), st.integers(0, 5) | st.just(2**31 - 1)), max_size=8),
    st.none() | st.integers(0, 3) | st.just(2**31 - 1),
    st.sampled_from([None, Followed("0" * 16, "1" * 16)]),
    st.lists(st.integers(0, 2**52), max_size=8),
)
MEMBERS = st.lists(
    st.tuples(st.sampled_from([("t",), ("u",), ("t", "u"), ("t", "t"), ()]), st.binary(max_size=20) | BLOBS),
    min_size=1,
    max_size=4,
)


@pytest.mark.slow
@settings(max_examples=100)
@given(
    members=MEMBERS,
    counts=st.fixed_dictionaries({"t": st.integers(0, 4), "u": st.integers(0, 2)}),
    strategy=st.sampled_from(["sticky", "range", "roundrobin", "fair"]),
)
def test_whatever_the_members_say_every_partition_is_given_once(
    members: Any, counts: dict[str, int], strategy: str
) -> None:
    one = WARM[strategy]
    group = [Joined(f"m{at}", topics, data) for at, (topics, data) in enumerate(members)]
    with nothing_touched():
        placed, _ = one.place(counts, group)
    wanted = {topic for topics, _ in members for topic in topics}
    assert set(placed) == {member.member_id for member in group}
    assert sorted(pair for held in placed.values() for pair in held) == sorted(
        (topic, number) for topic in wanted for number in range(counts[topic])
    )
    topics = {member.member_id: member.topics for member in group}
    assert all(topic in topics[member] for member, held in placed.items() for topic, _ in held)


OWNED = st.lists(st.tuples(st.sampled_from(["t", "u"]), st.integers(0, 5)), max_size=8, unique=True)


@pytest.mark.slow
@settings(max_examples=100)
@given(
    members=st.lists(st.tuples(BLOBS, OWNED, st.none() | st.integers(0, 3)), min_size=1, max_size=4),
    counts=st.fixed_dictionaries({"t": st.integers(0, 4), "u": st.integers(0, 2)}),
)
def test_whatever_cooperative_members_say_no_partition_is_taken_from_under_one_and_all_are_given_in_the_end(
    members: Any, counts: dict[str, int]
) -> None:
    one = WARM["cooperative-sticky"]
    blobs = {f"m{at}": blob for at, (blob, _, _) in enumerate(members)}
    owned = {f"m{at}": (tuple(pairs), since) for at, (_, pairs, since) in enumerate(members)}
    for generation in range(4, 8):
        group = [Joined(name, ("t", "u"), blobs[name], None, None, *owned[name]) for name in owned]
        newest: dict[tuple[str, int], set[str]] = {}
        for name, (pairs, since) in owned.items():
            for pair in pairs:
                claims = newest.setdefault(pair, {name})
                known = max(-1 if owned[m][1] is None else owned[m][1] for m in claims)
                own = -1 if since is None else since
                newest[pair] = claims | {name} if own == known else {name} if own > known else claims
        placed, data = one.place(counts, group)
        given = [pair for held in placed.values() for pair in held]
        assert len(given) == len(set(given))
        assert all(name in newest.get(pair, {name}) for name, held in placed.items() for pair in held)
        blobs = {
            name: said.joining(None, held.pairs, generation, held.followed, ())
            for name, blob in data.items()
            if (held := said.read_given(blob))
        }
        owned = {name: (tuple(held), generation) for name, held in placed.items()}
    assert sorted(given) == sorted((topic, number) for topic in counts for number in range(counts[topic]))
