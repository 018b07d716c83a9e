"""The file under a ledger: its schema, its opening, its transactions, its trouble in words.

Nothing is changed in a file before it is known to be a ledger's or empty. From then on it is one
file, opened by one process: neither another one that has taken its place is written, nor is this
one through a connection that came by `fork`. Whatever goes wrong with it is a `UsageError` that
names the file and shows nothing of what it holds.

Read next: `ledger.py`, which says what the rows mean.
"""

from __future__ import annotations

import os
import sqlite3
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import msgspec

from streamlab.consumer.attempt import State
from streamlab.errors import UsageError

__all__ = ["LedgerFile"]

#: The version of the schema below; a file of a newer one is refused, never guessed at.
VERSION = 1

#: Says in the file's header whose it is. Other applications number their versions from 1 too.
APPLICATION = 0x534C4C47  # "SLLG" in ASCII

SCHEMA = f"""
-- One row an attempt, and the only place that says where it is. Changed by compare and set alone.
CREATE TABLE attempts (
  id        TEXT PRIMARY KEY,
  state     TEXT NOT NULL CHECK (state IN ({", ".join(f"'{state}'" for state in State)})),
  input     TEXT,                      -- the input that led there, NULL at the start
  why       TEXT NOT NULL,             -- one sentence for a person
  proposals TEXT NOT NULL              -- what would be done, as JSON: the commit needs it
) STRICT, WITHOUT ROWID;

-- What happened to it, in order: the trace that anybody may read, so without payload.
CREATE TABLE transitions (
  n       INTEGER PRIMARY KEY,
  attempt TEXT NOT NULL REFERENCES attempts (id),
  input   TEXT NOT NULL,
  state   TEXT NOT NULL                -- the state that it led to
) STRICT;

-- Which hand-overs an attempt has handled. A second one of the same name changes nothing.
CREATE TABLE deliveries (
  attempt  TEXT NOT NULL REFERENCES attempts (id),
  delivery TEXT NOT NULL,
  PRIMARY KEY (attempt, delivery)
) STRICT, WITHOUT ROWID;

-- What has happened. COMMITTED stands on a row here, written in the same transaction.
CREATE TABLE effects (
  key       TEXT PRIMARY KEY REFERENCES attempts (id),
  proposals TEXT NOT NULL
) STRICT, WITHOUT ROWID;

PRAGMA application_id = {APPLICATION};
PRAGMA user_version = {VERSION};
"""

TABLES = {"attempts", "transitions", "deliveries", "effects"}

DAMAGED = "the file is damaged"

#: Answers of SQLite that are about the file, and what they mean to a person.
SAYS = {
    sqlite3.SQLITE_FULL: "the disk is full; nothing was written",
    sqlite3.SQLITE_READONLY: "the file cannot be written; nothing was written",
    sqlite3.SQLITE_CANTOPEN: "the file cannot be opened",
    sqlite3.SQLITE_BUSY: "another process has kept it locked for too long; nothing was written",
    **dict.fromkeys(
        (
            sqlite3.SQLITE_CORRUPT,
            sqlite3.SQLITE_FORMAT,
            sqlite3.SQLITE_ERROR,  # our statements are right: the tables are not what they were
            sqlite3.SQLITE_CONSTRAINT,
            sqlite3.SQLITE_MISMATCH,
        ),
        DAMAGED,
    ),
    sqlite3.SQLITE_NOTADB: "the file is no SQLite database",
    sqlite3.SQLITE_IOERR: "the disk failed; nothing was written",
}


class LedgerFile:
    """One open file; see `Ledger`, which is what to use."""

    def __init__(self, path: str | Path, timeout: float = 10.0, durable: bool = True) -> None:
        self.path = Path(path)
        self._place = None if str(path) == ":memory:" else self.path.absolute()
        self._opened: tuple[int, int] | None = None  # which file it is that the path leads to
        self._process = os.getpid()
        self._lock = threading.RLock()  # a connection carries one transaction at a time
        self._within = False
        with self._explained():
            self._db = sqlite3.connect(
                self.path, timeout=timeout, isolation_level=None, check_same_thread=False
            )
            try:
                self._prepare(durable)
            except BaseException:
                self._db.close()
                raise

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: type[BaseException] | BaseException | TracebackType | None) -> None:
        self.close()

    def close(self) -> None:
        """Close the file, when no other thread is in the middle of a transaction."""
        self._at_home()
        with self._lock:
            self._outside()
            self._db.close()

    # --- Opening ----------------------------------------------------------------------------------

    def _prepare(self, durable: bool) -> None:
        self._change("PRAGMA foreign_keys = ON")
        with self._transaction("BEGIN"):  # before anything is changed: it may be somebody else's
            made = self._is_made()
        self._opened = self._identity()
        self._change("PRAGMA journal_mode = WAL")
        # FULL: committed means on the disk.
        self._change(f"PRAGMA synchronous = {'FULL' if durable else 'NORMAL'}")
        if made:  # nothing to write, so nobody to wait for
            return
        with self._transaction():
            if not self._is_made():
                for statement in SCHEMA.split(";\n"):
                    self._change(statement)

    def _is_made(self) -> bool:
        """Whether there is a ledger in the file, or nothing yet; raises for anything else."""
        [(application,)] = self._all("PRAGMA application_id")
        [(version,)] = self._all("PRAGMA user_version")
        names = {name for (name,) in self._all("SELECT name FROM sqlite_master")}
        if not (application or version or names):
            return False
        if application != APPLICATION:
            raise UsageError(f"{self.path}: it is no ledger")
        if version != VERSION:
            what = f"its schema has version {version}; this streamlab knows version {VERSION}"
            raise UsageError(f"{self.path}: {what}")
        if not names >= TABLES:
            raise UsageError(f"{self.path}: {DAMAGED}")
        return True

    def _identity(self) -> tuple[int, int] | None:
        """Which file the path leads to now; None where there is none."""
        if self._place is None:
            return None
        try:
            found = os.stat(self._place)
        except OSError:
            return None
        return found.st_dev, found.st_ino

    # --- Statements -------------------------------------------------------------------------------

    def _one(self, sql: str, *values: str) -> tuple[Any, ...] | None:
        return next(iter(self._all(sql, *values)), None)

    def _all(self, sql: str, *values: str) -> list[tuple[Any, ...]]:
        """Read; never between two statements of another thread's transaction."""
        self._at_home()
        with self._lock, self._explained():
            return self._db.execute(sql, values).fetchall()

    def _change(self, sql: str, *values: str | None) -> int:
        """One statement of a transaction, and how many rows it has changed."""
        with self._explained():
            return self._db.execute(sql, values).rowcount

    @contextmanager
    def _transaction(self, begin: str = "BEGIN IMMEDIATE") -> Iterator[None]:
        """All of it or nothing; whoever else wants to write waits.

        Errors of whoever is asked within it (`authorise`) are theirs, and go to the caller.
        """
        self._at_home()
        with self._lock:
            self._outside()
            if self._opened is not None and self._identity() != self._opened:
                raise UsageError(f"{self.path}: the file was replaced while it was open")
            try:  # a Ctrl-C that came while we waited is raised when the lock is ours
                self._within = True
                self._change(begin)
                yield
                self._change("COMMIT")
            finally:
                self._within = False
                with self._explained():
                    if self._db.in_transaction:
                        self._db.execute("ROLLBACK")

    def _outside(self) -> None:
        """Not in the middle of our own transaction: whom it asks has our thread, and its lock."""
        if self._within:
            raise UsageError(f"{self.path}: nothing may be changed while a commit is authorised")

    def _at_home(self) -> None:
        """In the process that opened the file. Asked before the lock, which a fork leaves held."""
        if os.getpid() != self._process:
            what = "was opened by another process, and this is its fork: open it here"
            raise UsageError(f"{self.path}: the ledger {what}")

    @contextmanager
    def _explained(self) -> Iterator[None]:
        """What is wrong with the file, as a sentence that names it and shows nothing of it."""
        try:
            yield
        except sqlite3.ProgrammingError as why:  # the file is closed, or an id is no text
            raise UsageError(f"{self.path}: {why}") from None
        except sqlite3.Error as why:
            code = getattr(why, "sqlite_errorcode", sqlite3.SQLITE_CORRUPT)  # none: it is no text
            other = f"SQLite says {getattr(why, 'sqlite_errorname', '')}"
            raise UsageError(f"{self.path}: {SAYS.get(code & 0xFF, other)}") from None
        except RecursionError:
            raise UsageError(f"{self.path}: what it holds is nested too deep to be read") from None
        except UnicodeEncodeError:
            raise UsageError(f"{self.path}: half a character can't be written down") from None
        except (ValueError, msgspec.MsgspecError):  # no state, no JSON, no text
            raise UsageError(f"{self.path}: {DAMAGED}") from None
