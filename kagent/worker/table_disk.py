"""The disk under `worker.data`, where tables are kept on it (`worker.store: rocksdb://`): what is full is waited for, as a right is.

Nothing is lost by it: rows are in their changelogs before a table takes them, and are read back from where the disk has them.
"""

from __future__ import annotations

import tempfile
from pathlib import Path

from kagent.settings import Settings

ROOM_BYTES = 16 << 20
"""Opening a table writes its log into a file anew: less room than a few thousand rows take would only fail at the next write."""
FULL = ("No space left on device", "Disk quota exceeded")
"""What RocksDB passes on of the system's errors: https://github.com/rocksdict/RocksDict raises plain exceptions with words."""


def lacking_room(settings: Settings) -> str | None:
    """A sentence where the folder of the tables takes no more; None where there is room, or no table on a disk."""
    worker = settings.worker
    if worker.store.startswith("memory"):
        return None
    try:
        Path(worker.data).mkdir(parents=True, exist_ok=True)
        # Written, not only asked for: a quota does not show in what is free.
        with tempfile.TemporaryFile(dir=worker.data) as room:
            room.write(bytes(ROOM_BYTES))
    except OSError as error:
        return (
            f"The tables in {worker.data} (worker.data) cannot be written ({error.strerror}): "
            f"make {ROOM_BYTES >> 20} MB of room there, or set worker.store to memory:// . Nothing is lost meanwhile."
        )
    return None


def about_disk(error: BaseException | None) -> bool:
    """Whether this error, or what caused it, is a disk that takes no more."""
    while error is not None:
        if any(sign in str(error) for sign in FULL):
            return True
        error = error.__cause__ or error.__context__
    return False
