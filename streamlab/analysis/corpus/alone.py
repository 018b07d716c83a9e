"""One scan at a time on one table: a lock on the folder of its parts, which the kernel ends.

A process that is killed holds no lock any longer, so there is nothing to be cleaned up by hand.
Where a system or a file system has no such locks, there is none, as before.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from streamlab.errors import UsageError

try:
    import fcntl
except ModuleNotFoundError:  # Windows
    fcntl = None  # type: ignore[assignment]

__all__ = ["alone_in"]

#: Times that the folder may go away, at the end of another scan, while it is being taken.
TRIES = 100


@contextmanager
def alone_in(folder: Path) -> Iterator[None]:
    """Make the folder and have it for this process alone; it goes at the end, if it is empty.

    Raises `UsageError` where it cannot be made, or another process has it.
    """
    lock = folder / "lock"
    try:
        file = _taken(folder, lock)
    except OSError as why:
        raise UsageError(f"{folder}: {why.strerror or why}") from None
    try:
        yield
    finally:
        with suppress(OSError):
            lock.unlink()
            folder.rmdir()
        os.close(file)


def _taken(folder: Path, lock: Path) -> int:
    """The lock's open file, once it is held, and is the one in the folder."""
    for _ in range(TRIES):
        folder.mkdir(exist_ok=True)
        try:
            file = os.open(lock, os.O_RDWR | os.O_CREAT, 0o666)
        except FileNotFoundError:  # the folder went
            continue
        try:
            if fcntl is not None:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(file)
            raise UsageError(f"{folder}: another scan is writing there") from None
        except OSError:
            return file  # no locks on this file system
        with suppress(FileNotFoundError):
            if os.path.samestat(os.fstat(file), lock.stat()):
                return file
        os.close(file)  # it was another one's, who is through
    raise UsageError(f"{folder}: other scans come and go there")
