"""``kagent apply``: have a KIP-848 group take its open recommendation now, by moving the group's epoch once.

On the brokers the assignor ``kagent`` decides (``java/``); what is here checks first, moves the epoch and looks what came.
"""

from __future__ import annotations
