"""Numbers that bound what is stored, listed or computed, marked as such: ``ROWS: Bound = 200``.

A bound judges nothing: a group that stays below it is judged the same whatever the number is, and of one that exceeds it only so much is
kept, listed or tried. ``benchmarks/constants.py`` counts bounds apart and makes all of them ten times as large to see that no call changes.
"""

from __future__ import annotations

from typing import TypeAlias

Bound: TypeAlias = int
