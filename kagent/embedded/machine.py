"""How busy this machine is: what a wait that is meant for a quiet one has to be multiplied by. No clock of its own."""

from __future__ import annotations

import os


def slowness() -> float:
    """How many times longer than on a quiet machine work takes now: processes that want a core, per core; at least 1."""
    return max(1.0, os.getloadavg()[0] / (os.cpu_count() or 1))
