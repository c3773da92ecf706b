"""``kagent apply``: have a KIP-848 group take its open recommendation now, by moving the group's epoch once.

On the brokers the assignor ``kagent`` decides (``java/``); this folder checks first, moves the epoch and
then reads the assignment that came of it.
"""

from __future__ import annotations
