"""Run one long job of several child processes, alone, and show a person how far it is.

Standard library only, for `checkout.py`, and it must parse on Python 3.8 like that.
The one idea: *a child keeps the lock open*. If this process is killed, the lock stays held until
its child has ended too, so nobody starts again over something that still writes.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from contextlib import contextmanager, suppress
from typing import IO, TYPE_CHECKING, TextIO

from streamlab.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence
    from pathlib import Path

    Tell = Callable[[list[str]], tuple[str, int, int]]

__all__ = ["Job"]

WIDTH, BAR = 78, 24  # of the line on a terminal, and of the bar in it
PLAIN_EVERY = 10.0  # seconds between lines about one stage where there is no terminal
FAR_BEHIND_THE_END = 1 << 40

WHY = (  # what a child said -> what a person should hear; the first hit counts
    ("No space left on device", "the disk is full"),
    ("DO NOT MATCH THE HASHES", "a downloaded file is not the one that the lock pins"),
    ("Retrying (", "the package index can't be reached; is there a network?"),
)


class Job:
    """A bar on a terminal, plain lines elsewhere, always on stderr; the whole output in `log`."""

    def __init__(self, log: Path, environment: Mapping[str, str], out: TextIO | None = None):
        self.log = log
        self.environment = environment
        self.out = out or sys.stderr
        self.began = time.monotonic()
        self.lock: tuple[int, ...] = ()
        self.drawn = False
        self.said = ("", 0.0)

    @contextmanager
    def alone(self, path: Path) -> Iterator[None]:
        """Hold the lock on a file that only one job at a time may hold; wait for it.

        Only a byte far behind the file's end is locked: no lock file to leave behind, and
        Windows, where a locked byte can't be read, still lets everybody read the file.
        """
        with path.open("r+b") as file:
            file.seek(FAR_BEHIND_THE_END)
            while not try_lock(file.fileno()):
                self.show("waiting for another start's set-up")
                time.sleep(0.2)
            self.lock = (file.fileno(),)
            yield
            self.lock = ()

    def run(self, command: Sequence[str], tell: Tell) -> None:
        """Run a child; `tell` makes (what, done, total) of its lines so far; explain a failure."""
        lines: list[str] = []
        with self.log.open("a", encoding="utf-8") as log, self.start(command) as child:
            reader = threading.Thread(target=keep, args=(child.stdout, log, lines), daemon=True)
            try:
                reader.start()
                while reader.is_alive():
                    self.show(*tell(lines))
                    reader.join(0.2)
            except BaseException:
                stop(child)
                if reader.ident:
                    reader.join(5)
                raise
        if child.returncode:
            raise UsageError(f"set-up failed: {explain(lines)} (all of it: {self.log})")

    def start(self, command: Sequence[str]) -> subprocess.Popen[str]:
        """Start a child that says everything on one pipe and holds the lock with us."""
        return subprocess.Popen(
            command,
            env=self.environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            encoding="utf-8",
            errors="replace",
            pass_fds=self.lock if os.name == "posix" else (),
            start_new_session=True,  # a group of its own, so that `stop` reaches all of it
        )

    @property
    def elapsed(self) -> float:
        """Seconds since the job was made."""
        return time.monotonic() - self.began

    def show(self, what: str, done: int = 0, total: int = 0) -> None:
        """Show one stage; call it as often as you like."""
        done = min(done, total)
        line = f"{what} {done} of {total} packages" if total else what
        line = f"{line}, {self.elapsed:.0f} s"
        if self.out.isatty():
            full = BAR * done // total if total else 0
            self.out.write(f"\r[{'#' * full}{'.' * (BAR - full)}] {line}".ljust(WIDTH)[:WIDTH])
            self.out.flush()
            self.drawn = True
        elif what != self.said[0] or self.elapsed - self.said[1] >= PLAIN_EVERY:
            self.said = (what, self.elapsed)
            self.say(line)

    def say(self, line: str) -> None:
        """Print a line that stays."""
        self.wipe()
        print(f"streamlab: {line}", file=self.out, flush=True)

    def wipe(self) -> None:
        """Leave the terminal's line empty."""
        if self.drawn:
            self.out.write("\r" + " " * WIDTH + "\r")
            self.out.flush()
            self.drawn = False


def try_lock(descriptor: int) -> bool:
    """Take the lock if nobody holds it; it is free again when every copy of it is closed."""
    try:
        if sys.platform == "win32":
            import msvcrt

            msvcrt.locking(descriptor, msvcrt.LK_NBLCK, 1)
        else:
            import fcntl

            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except (BlockingIOError, PermissionError):
        return False
    return True


def stop(child: subprocess.Popen[str]) -> None:
    """End a child and what it started: an installer leaves the work to others."""
    if sys.platform == "win32":
        child.terminate()
    else:
        with suppress(ProcessLookupError):
            os.killpg(child.pid, signal.SIGTERM)
    child.wait()


def keep(stream: IO[str], log: IO[str], lines: list[str]) -> None:
    """Copy a child's output to the log and to a list, as it comes."""
    for line in stream:
        lines.append(line)
        with suppress(OSError, ValueError):  # a full disk must not make the child wait for a reader
            log.write(line)


def explain(lines: Sequence[str]) -> str:
    """Say in one line why a child failed."""
    text = "".join(lines)
    for needle, meaning in WHY:
        if needle in text:
            return meaning
    said = [line.strip() for line in lines if line.strip()] or ["no reason given"]
    errors = [line for line in said if line.lower().startswith("error")]
    return (errors or said)[-1]
