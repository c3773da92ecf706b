"""Assign partitions one by one to the member with the fewest, without one step per partition."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

Ints = npt.NDArray[np.int64]


def fill(held: Ints, users: Ints, count: int) -> Ints:
    """Who takes the next ``count`` partitions, each going to the user that holds the fewest, ties by place in ``users``.

    ``held`` (partitions per member) is brought up to date. The takers are the ``count`` smallest pairs (level, place)
    where a user that holds h offers the levels h, h+1, …
    """
    base = held[users]
    level = _level(base, count)
    room = np.maximum(level - base, 0)
    full = int(room.sum())
    takers = np.repeat(users, room)
    if full:
        at = np.arange(full) - np.repeat(np.cumsum(room) - room, room) + np.repeat(base, room)
        # By level, and within a level by place: as if each partition had been given to the member with the fewest.
        takers = takers[np.argsort(at, kind="stable")]
    rest = users[base <= level][: count - full]
    held[users] += room
    held[rest] += 1
    return np.concatenate((takers, rest))


def _level(base: Ints, count: int) -> int:
    """The greatest level up to which all users can be filled with no more than ``count``."""
    ordered = np.sort(base)
    # How many it takes to raise the i + 1 least loaded users to the level of the last of them: (i + 1) · level − their sum.
    below = ordered * np.arange(1, len(ordered) + 1) - np.cumsum(ordered)
    reached = int(np.searchsorted(below, count, side="right"))
    return int((count + int(ordered[:reached].sum())) // reached)
