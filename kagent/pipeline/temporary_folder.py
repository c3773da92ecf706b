"""One folder for all that this process and its Java put into the system's temporary folder. What a killed one left is removed
at the next start.

A process holds a lock of the kernel's on its folder, which goes with the process however that ends: a number of a process
may be given to another, a lock may not. The tool of systemd that removes old temporary files keeps off locked folders, too.
"""

from __future__ import annotations

import atexit
import errno
import fcntl
import os
import shutil
import stat
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import cache
from pathlib import Path
from subprocess import TimeoutExpired
from typing import Any

from kagent.errors import SetupError
from kagent.pipeline.restarts import quiet_about_java

JAVA_WITHIN_S = 5.0
"""How long Java is given to end: with what a stream takes to stop (kagent.pipeline.restarts) still less than the 30 s of a service."""


@cache
def own_folder() -> Path:
    """The folder of this process, made at the first call and removed when the process ends. Raises SetupError."""
    try:
        made = _made()
    except OSError as error:
        reason = error.strerror or error
        raise SetupError(
            f"No temporary folder can be made ({reason}): set TMPDIR to a folder that can be written."
        ) from error
    atexit.register(_remove_own, made)
    return made


def _made() -> Path:
    try:
        return _made_beside_others()
    except OSError:
        # Another user's file has the name, or the file system locks no folders (NFS): then one that no later start looks at.
        return Path(tempfile.mkdtemp(prefix="kagent-"))


def _made_beside_others() -> Path:
    """A locked folder among those of this user's processes, once the abandoned ones are removed. Raises OSError."""
    root = _root()
    with _locked(root):
        _remove_abandoned(root)
        made = Path(tempfile.mkdtemp(dir=root, prefix=""))
        _lock(made, fcntl.LOCK_EX)  # until the process ends, which closes it
    return made


@contextmanager
def temporary_files_in(folder: Path) -> Iterator[None]:
    """Within the block Python's temporary files are made there: PySpark makes some while it starts Java, and is given no place for them."""
    before, tempfile.tempdir = tempfile.tempdir, str(folder)
    try:
        yield
    finally:
        tempfile.tempdir = before


def _root() -> Path:
    """The folder that holds the folders of this user's processes. Raises OSError where it is not this user's own."""
    root = Path(tempfile.gettempdir()) / f"kagent-{os.getuid()}"
    with suppress(FileExistsError):
        root.mkdir(mode=0o700)
    found = root.lstat()
    # Anybody may have made something of this name: nothing is put into what another owns, or where a link leads.
    if not stat.S_ISDIR(found.st_mode) or found.st_uid != os.getuid():
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))
    root.chmod(0o700)  # made by hand, it may be open to others
    return root


def _remove_abandoned(root: Path) -> None:
    for folder in list(root.iterdir()):
        with suppress(OSError):  # no folder, held by a living process, or gone meanwhile
            lock = _lock(folder, fcntl.LOCK_EX | fcntl.LOCK_NB)
            shutil.rmtree(folder, ignore_errors=True)
            os.close(lock)


@contextmanager
def _locked(root: Path) -> Iterator[None]:
    """One process at a time removes and makes folders: a folder just made is not locked yet, and looks abandoned."""
    lock = _lock(root, fcntl.LOCK_EX)
    try:
        yield
    finally:
        os.close(lock)


def _lock(folder: Path, how: int) -> int:
    """A descriptor that holds the lock until it is closed. Raises OSError."""
    # The folder itself, not a file in it, which would be gone before the rest while the folder is being removed.
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
    try:
        fcntl.flock(descriptor, how)
    except OSError:
        os.close(descriptor)
        raise
    return descriptor


def _remove_own(folder: Path) -> None:
    if _java_ended():
        shutil.rmtree(folder, ignore_errors=True)


def _java_ended() -> bool:
    """Have this process's Java end, which removes files of its own then. One that does not in time keeps them: the next start
    removes them."""
    process = _java_process()
    if process is None:
        return True
    quiet_about_java()  # objects of its that Python lets go of later find it gone
    try:
        process.stdin.close()  # Java waits for this, and ends
        process.wait(JAVA_WITHIN_S)
    except (OSError, TimeoutExpired):
        return False
    return True


def _java_process() -> Any:
    # Not imported here: as a process ends that never started Spark, it would only take time.
    pyspark = sys.modules.get("pyspark")
    return pyspark and getattr(pyspark.SparkContext._gateway, "proc", None)
