"""How many members would help: counts that divide the partitions, and what the most loaded member would then get."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from kagent.detect.capacity import FULLEST
from kagent.detect.group_model import GroupModel
from kagent.recommend.useful_members import MOST_COUNTS

FITTING = 5


@dataclass(frozen=True, slots=True)
class Count:
    """A number of members, further numbers that fit, and the greatest share of the inflow that one member gets now and then."""

    members: int
    fitting: tuple[int, ...]
    share_now: float
    share_then: float


@dataclass(frozen=True, slots=True)
class Counts:
    """For member counts that divide the partitions, rising: (members, greatest share of the inflow), sorted; partitions dealt out
    in turn, as every shipped strategy does in some order. ``bound``: the share under the worst dealing, by count; ``most``: the share
    that a member can process with room to spare, infinite where no member's speed is known."""

    have: int
    share_now: float
    shares: tuple[tuple[int, float], ...]
    bound: dict[int, float]
    most: float = float("inf")

    def enough(self, needed: int) -> Count | None:
        """The least count of at least ``needed`` members with which none gets too much, or else the least of them."""
        more = [(n, share) for n, share in self.shares if n >= needed and n > self.have]
        return self._first([n for n, share in more if share <= self.most] or [n for n, _ in more])

    def relieving(self, gain: float) -> Count | None:
        """The least count, up to twice the present one, that relieves the most loaded member by ``gain`` and leaves it no more than it
        can do, for every way to assign them."""
        # Against the worst dealing: which member gets which partition is up to the assignor, and must not decide whether it helps.
        limit = min((1 - gain) * self.share_now, self.most)
        return self._first(
            [n for n, _ in self.shares if self.have < n <= 2 * self.have and self.bound[n] <= limit]
        )

    def _first(self, fitting: list[int]) -> Count | None:
        if not fitting:
            return None
        return Count(fitting[0], tuple(fitting[:FITTING]), self.share_now, dict(self.shares)[fitting[0]])


def counts(model: GroupModel) -> Counts:
    """The counts for a group as it stands; without any where nothing flows in."""
    held = model.lags.owner >= 0
    flow = (np.median(model.columns.rates, axis=0) * model.cost)[held]
    total, have, partitions = float(flow.sum()), len(model.names), int(held.sum())
    if total <= 0 or not have:
        return Counts(have, 0.0, (), {})
    now = float(np.bincount(model.lags.owner[held], flow, have).max()) / total
    ordered = np.sort(flow)[::-1]
    # Divisors only: every member then holds the same number of partitions, whichever strategy deals them out.
    fitting = [n for n in range(1, partitions + 1) if partitions % n == 0][-MOST_COUNTS:]
    shares = tuple(
        (n, float(np.bincount(np.arange(partitions) % n, ordered, n).max()) / total) for n in fitting
    )
    # -(-a // b) is the ceiling of a ÷ b in integers. The worst dealing gives one member all of the busiest partitions.
    bound = {n: float(ordered[: -(-partitions // n)].sum()) / total for n in fitting}
    return Counts(have, now, shares, bound, _most(model) / total)


def _most(model: GroupModel) -> float:
    """What a usual member can process with room to spare, work/s; infinite where none was ever busy."""
    return FULLEST * model.capacity.usual if model.capacity.measured.any() else float("inf")
