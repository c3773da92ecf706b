"""The names of the tables, without their rows: those bring numpy, which takes longer to import than all else that a command needs."""

from __future__ import annotations

NAMES = ("members", "lag", "verdicts", "coverage", "ends")
"""Each is the middle of its changelog's name, on which a worker needs rights."""
