"""The assignor that the demo's badly spread groups bring along: it deals by a fixed list, whatever the load.

``kagent.follow`` stands above it, as above any assignor: it takes the open plan, and asks this one where there is none.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from kagent.demo.topology import Held
from kagent.strategies.plugins.join import Engine, Joined, Pairs


class FixedList(Engine):
    """``start``: what each place begins with. Member 1 of a group has place 0: clients' ids begin with ``<group>-1``.

    What the list does not name goes to the member with the least; of two members at one place, one is on its way out.
    """

    def __init__(self, group: str, start: tuple[Held, ...]) -> None:
        super().__init__("sticky")
        self.group, self.start = group, start

    def place(self, counts: Mapping[str, int], joined: Sequence[Joined]) -> dict[str, Pairs]:
        """Everybody's partitions, every member present."""
        topics = {topic for member in joined for topic in member.topics}
        left = {(topic, p) for topic in topics for p in range(counts.get(topic, 0))}
        placed: dict[str, Pairs] = {member.member_id: [] for member in joined}
        at_place = {place: one.member_id for one in joined if (place := self._place(one)) is not None}
        for place, member in sorted(at_place.items()):
            placed[member] = [pair for pair in self.start[place] if pair in left]
            left -= set(placed[member])
        for pair in sorted(left):
            placed[min(at_place.values() or placed, key=lambda m: (len(placed[m]), m))].append(pair)
        return placed

    def _place(self, one: Joined) -> int | None:
        """The broker makes a member id of the client id and a UUID."""
        places = range(len(self.start))
        # With the second hyphen: `orders-a-1` is also how `orders-a-10` begins.
        return next((p for p in places if one.member_id.startswith(f"{self.group}-{p + 1}-")), None)
