"""The desk's own process: its file, what it does with it, and its HTTP server on loopback.

What it is asked to do under a key it does once: the items' new labels and the key's record are
written in one transaction. What it has refused, or what its caller has given up, is closed and
never done. And it can be told to misbehave (`FAULTS`). No payload is logged, only what was asked
under which key.

Read next: `desk.py`, which starts this process and talks to it.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import re
import signal
import sqlite3
import sys
import threading
import time
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Annotated, Any
from urllib.parse import unquote

import msgspec

from streamlab.consumer.commit import Proposals, Record
from streamlab.consumer.workitem import ITEMS

__all__ = ["FAULTS", "MAX_BODY", "NAMES", "REFUSALS", "Asked", "Fault", "Item", "Told", "main"]

SCHEMA = """
-- The work items as they are now.
CREATE TABLE IF NOT EXISTS items (
  id    TEXT PRIMARY KEY,
  label TEXT NOT NULL,
  owner TEXT NOT NULL,
  times INTEGER NOT NULL DEFAULT 0   -- how often its label was changed: a double effect is seen
) STRICT;

-- What was done under which key; a closed key has no proposals, and none is done under it.
CREATE TABLE IF NOT EXISTS effects (
  key       TEXT PRIMARY KEY,
  proposals TEXT
) STRICT;

-- What was asked, in order, before anything came of it.
CREATE TABLE IF NOT EXISTS asked (
  n    INTEGER PRIMARY KEY,
  what TEXT NOT NULL,
  key  TEXT NOT NULL
) STRICT;
"""

#: Bounds: bytes of a body, characters of a key, seconds for a client to send its request.
MAX_BODY, MAX_KEY, REQUEST_SECONDS = 1_000_000, 200, 10.0

#: The names under which it answers; a page that a browser shows has another one.
NAMES = ("127.0.0.1", "localhost")


class Item(msgspec.Struct, frozen=True):
    """A work item, and how often its label was changed."""

    id: str
    label: str
    owner: str
    times: int


class Asked(msgspec.Struct, frozen=True):
    """Something that the desk was asked: "submit", "find" or "close", and under which key."""

    what: str
    key: str


class _Change(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The input of `change_label`; the desk trusts no caller to have checked it."""

    item: str
    label: Annotated[str, msgspec.Meta(min_length=1, max_length=40)]


class Told(msgspec.Struct, frozen=True):
    """The desk's answer about a key: its record, or none; or why it refuses."""

    record: Record | None = None
    refused: str = ""


class Fault(msgspec.Struct, frozen=True):
    """What is to go wrong with the next submission."""

    name: str = ""
    seconds: float = 0.0


# --- The application ------------------------------------------------------------------------------

#: An HTTP status and what is told; None: hang up without an answer.
_Answer = tuple[int, Any] | None

FAILED: _Answer = (500, "the desk has failed")
REFUSALS = (409, 410, 422)  #: another effect's key; a closed key; nothing that can be done


def _die(_: float) -> _Answer:
    os._exit(1)


def _sleep(seconds: float) -> None:
    time.sleep(seconds)


BEFORE: dict[str, Callable[[float], _Answer]] = {
    "slow": _sleep,  # and then as usual
    "fail_before": lambda _: FAILED,
    "die_before": _die,
}
AFTER: dict[str, Callable[[float], _Answer]] = {
    "fail_after": lambda _: FAILED,
    "mute_after": lambda _: None,
    "die_after": _die,
}

#: What can go wrong: slow, or it fails (HTTP 500), or its process ends, before or after it has
#: acted; or it hangs up without an answer after it has acted.
FAULTS = (*BEFORE, *AFTER)


class _Application:
    """The file, and the fault that the next submission meets."""

    def __init__(self, path: Path) -> None:
        self._lock = threading.Lock()  # a connection carries one transaction at a time
        self._fault = Fault()
        self._db = sqlite3.connect(path, timeout=10, isolation_level=None, check_same_thread=False)
        self._db.execute("PRAGMA journal_mode = WAL")
        with self._transaction() as db:
            for statement in SCHEMA.split(";\n"):
                db.execute(statement)
            db.executemany(
                "INSERT OR IGNORE INTO items (id, label, owner) VALUES (?, ?, ?)",
                [(item.id, item.label, item.owner) for item in ITEMS.values()],
            )

    def items(self) -> _Answer:
        with self._transaction() as db:
            rows = db.execute("SELECT id, label, owner, times FROM items ORDER BY id").fetchall()
        return 200, [Item(*row) for row in rows]

    def asked(self) -> _Answer:
        with self._transaction() as db:
            rows = db.execute("SELECT what, key FROM asked ORDER BY n").fetchall()
        return 200, [Asked(*row) for row in rows]

    def misbehave(self, body: bytes) -> _Answer:
        with self._lock:
            self._fault = msgspec.json.decode(body, type=Fault)
        return 200, None

    def submit(self, key: str, body: bytes) -> _Answer:
        """Do what is proposed, unless the next fault was meant for this one."""
        proposals = msgspec.json.decode(body, type=Proposals)
        self._note("submit", key)
        with self._lock:
            fault, self._fault = self._fault, Fault()
        if (before := BEFORE.get(fault.name)) and (answer := before(fault.seconds)):
            return answer
        answer = self._do(key, proposals)
        after = AFTER.get(fault.name)
        return after(fault.seconds) if after else answer

    def find(self, key: str) -> _Answer:
        self._note("find", key)
        with self._transaction() as db:
            return 200, Told(_recorded(db, key)[1])

    def close(self, key: str) -> _Answer:
        """Where nothing was done, nothing ever will be."""
        self._note("close", key)
        with self._transaction() as db:
            db.execute("INSERT OR IGNORE INTO effects VALUES (?, NULL)", (key,))
            return 200, Told(_recorded(db, key)[1])

    def _do(self, key: str, proposals: Proposals) -> _Answer:
        """Change the labels, once for each key: all that is proposed, or nothing, for ever."""
        text = msgspec.json.encode(proposals, order="deterministic").decode()
        with self._transaction() as db:
            known, record = _recorded(db, key)
            if record is not None:
                same = msgspec.json.encode(record.proposals, order="deterministic").decode() == text
                used = Told(refused=f"{key} was used for another effect")
                return (200, Told(record)) if same else (409, used)
            if known:
                return 410, Told(refused=f"{key} is closed")
            objection = _objection(db, proposals)
            db.execute("INSERT INTO effects VALUES (?, ?)", (key, None if objection else text))
            if objection:
                return 422, Told(refused=objection)
            db.executemany(
                "UPDATE items SET label = ?, times = times + 1 WHERE id = ?",
                [(proposal.input["label"], proposal.input["item"]) for proposal in proposals],
            )
            return 201, Told(Record(key, proposals))

    def _note(self, what: str, key: str) -> None:
        with self._transaction() as db:
            db.execute("INSERT INTO asked (what, key) VALUES (?, ?)", (what, key))

    @contextlib.contextmanager
    def _transaction(self) -> Iterator[sqlite3.Connection]:
        with self._lock:
            self._db.execute("BEGIN IMMEDIATE")
            try:
                yield self._db
                self._db.execute("COMMIT")
            finally:
                if self._db.in_transaction:
                    self._db.execute("ROLLBACK")


def _recorded(db: sqlite3.Connection, key: str) -> tuple[bool, Record | None]:
    """Whether a key is known, and what was done under it."""
    row = db.execute("SELECT proposals FROM effects WHERE key = ?", (key,)).fetchone()
    if row is None or row[0] is None:
        return row is not None, None
    return True, Record(key, msgspec.json.decode(row[0], type=Proposals))


def _objection(db: sqlite3.Connection, proposals: Proposals) -> str:
    """Why some proposals can't be done; "" where they can."""
    for proposal in proposals:
        if proposal.tool != "change_label":
            return "the desk can only change labels"
        try:
            change = msgspec.convert(proposal.input, _Change)
        except msgspec.ValidationError as why:
            return f"that is no change of a label: {why}"
        if not db.execute("SELECT 1 FROM items WHERE id = ?", (change.item,)).fetchone():
            return "there is no such work item"
    return "" if proposals else "nothing is proposed"


# --- The server -----------------------------------------------------------------------------------


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    block_on_close = False

    def __init__(self, application: _Application, port: int) -> None:
        self.application = application
        super().__init__(("127.0.0.1", port), _Handler)

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A client that went away; what else goes wrong is answered with HTTP 500."""


class _Handler(BaseHTTPRequestHandler):
    """One request on one connection."""

    server: _Server
    timeout = REQUEST_SECONDS

    def log_message(self, *_: object) -> None:
        """Log nothing: `asked` is the log."""

    def do(self) -> None:
        try:
            answer = self._refused() or self._routed()
        except (msgspec.MsgspecError, UnicodeError, RecursionError):
            answer = 400, "that is not what a request looks like"
        except sqlite3.Error:
            answer = FAILED
        if answer is None:
            return  # the connection is closed, and nothing was said
        data = msgspec.json.encode(answer[1])
        self.send_response(answer[0])
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    do_GET = do_PUT = do_DELETE = do

    def _refused(self) -> _Answer:
        """Nobody but a program on this machine, and nothing without a bound."""
        hosts = {f"{name}:{self.server.server_address[1]}" for name in NAMES}
        length, *more = self.headers.get_all("Content-Length") or ["0"]
        if self.headers.get("Host") not in hosts or "Origin" in self.headers:
            return 403, "this desk answers to programs on this machine only"
        if "Transfer-Encoding" in self.headers or more or not re.fullmatch("[0-9]+", length):
            return 411, "how long is the body?"
        return (413, "the body is too long") if len(length) > 9 or int(length) > MAX_BODY else None

    def _routed(self) -> _Answer:
        body = self.rfile.read(length := int(self.headers.get("Content-Length", "0")))
        if len(body) != length:
            return None  # it went away in the middle: what it meant is unknown
        kind, _, name = self.path.removeprefix("/").partition("/")
        application = self.server.application
        plain: dict[tuple[str, str], Callable[[], _Answer]] = {
            ("GET", "items"): application.items,
            ("GET", "asked"): application.asked,
            ("PUT", "fault"): lambda: application.misbehave(body),
        }
        keyed: dict[tuple[str, str], Callable[[str], _Answer]] = {
            ("PUT", "effects"): lambda key: application.submit(key, body),
            ("GET", "effects"): application.find,
            ("DELETE", "effects"): application.close,
        }
        route = (self.command, kind)
        if not name and route in plain:
            return plain[route]()
        if not name or "/" in name or route not in keyed:
            return 404, "there is nothing here"
        key = unquote(name, errors="strict")
        return keyed[route](key) if 0 < len(key) <= MAX_KEY else (400, "a key is 1 to 200 long")


def main(arguments: list[str] | None = None) -> int:
    """Run a desk: print its address, and answer until the process is ended."""
    parser = argparse.ArgumentParser(prog="python -m streamlab.streams.desk")
    parser.add_argument("file", type=Path, help="its SQLite file, made where there is none")
    parser.add_argument("--port", type=int, default=0, help="0: any that is free")
    parser.add_argument("--owned", action="store_true", help="end when the standard input ends")
    given = parser.parse_args(arguments)
    try:
        server = _Server(_Application(given.file), given.port)
    except (sqlite3.Error, OSError) as why:
        print(f"{given.file}: {why}", file=sys.stderr)
        return 2
    if given.owned:
        signal.signal(signal.SIGINT, signal.SIG_IGN)  # that is for our owner, who then ends us
        threading.Thread(target=_end_with_owner, daemon=True).start()
    print(f"http://127.0.0.1:{server.server_address[1]}", flush=True)
    with contextlib.suppress(KeyboardInterrupt):
        server.serve_forever()
    return 0


def _end_with_owner() -> None:
    sys.stdin.buffer.read()
    os._exit(0)


if __name__ == "__main__":
    sys.exit(main())
