"""The desk: an application with work items in it, whose effects are real.

It is a process of its own with an SQLite file of its own, reached over HTTP on loopback, as an
application is that somebody else runs; and it can be told to misbehave (`FAULTS`). `Desk` starts
the process, `DeskClient` is what `consumer/commit.py` calls `Effects`.

A client that hears nothing can't tell "not done" from "done, and the answer was lost". It can only
ask later, under its key.

Read next: `desk_process.py`, what the application does; `../consumer/ledger.py`, our side of it.
"""

from __future__ import annotations

import http.client
import io
import os
import socket
import subprocess
import sys
import threading
import time
from pathlib import Path
from types import TracebackType
from typing import Any, Self, TypeVar
from urllib.parse import quote, urlsplit

import msgspec

from streamlab.consumer.commit import Proposals, Record, Refusal
from streamlab.errors import UsageError
from streamlab.streams.desk_process import (
    FAULTS,
    MAX_BODY,
    NAMES,
    REFUSALS,
    Asked,
    Fault,
    Item,
    Told,
    main,
)

__all__ = ["FAULTS", "Asked", "Desk", "DeskClient", "Item"]

#: Seconds that a desk has for starting.
START_SECONDS = 20.0


_T = TypeVar("_T")


class _Until(io.RawIOBase):
    """What a socket still gives until a point in time.

    With a time limit for each read, an answer that drips would be waited for without end.
    """

    def __init__(self, connection: socket.socket, until: float) -> None:
        self._connection, self._until = connection, until

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        left = self._until - time.monotonic()
        if left <= 0:
            raise TimeoutError("timed out")
        self._connection.settimeout(left)
        return self._connection.recv_into(buffer)

    def makefile(self, mode: str) -> io.BufferedReader:
        """What an `HTTPResponse` asks of a socket."""
        return io.BufferedReader(self)


def _ask(url: str, method: str, path: str, body: bytes, timeout: float) -> tuple[int, bytes]:
    """One request on a connection of its own. Raises `OSError` where no whole answer comes."""
    until = time.monotonic() + timeout
    connection = http.client.HTTPConnection(url.removeprefix("http://"), timeout=timeout)
    try:
        connection.request(method, path, body, {"Content-Type": "application/json"})
        source: Any = _Until(connection.sock, until)
        with http.client.HTTPResponse(source, method=method) as answer:
            answer.begin()
            return answer.status, answer.read(2 * MAX_BODY)
    except http.client.HTTPException as why:
        raise ConnectionError(f"no whole answer came: {type(why).__name__}") from why
    finally:
        connection.close()


def _read(status: int, body: bytes, expected: type[_T], accepted: tuple[int, ...]) -> _T:
    """An answer of the desk's own; anything else is none, and raises `OSError`."""
    if status not in accepted:
        raise ConnectionError(f"the desk answered with HTTP {status}")
    try:
        return msgspec.json.decode(body, type=expected)
    except msgspec.MsgspecError as why:
        raise ConnectionError("that is no answer of a desk") from why


class DeskClient:
    """A desk's `Effects`, over HTTP. `timeout` is how many seconds to wait for an answer,
    all of it.

    A refusal is an answer. Everything else that is no record (a timeout, a lost connection, HTTP
    500) is an `OSError`: it may have happened.
    """

    def __init__(self, url: str, timeout: float = 5.0) -> None:
        parts = urlsplit(url)
        if parts.scheme != "http" or parts.hostname not in NAMES or parts.path not in ("", "/"):
            raise UsageError(f"{url!r} is no address of a desk: http://127.0.0.1:PORT")
        self.url, self.timeout = f"http://{parts.netloc}", timeout

    def submit(self, key: str, proposals: Proposals) -> Record | Refusal:
        """See `Effects`."""
        told = self._told("PUT", key, msgspec.json.encode(proposals), (200, 201, *REFUSALS))
        if told.record is None and not told.refused:
            raise ConnectionError("the desk's answer says neither yes nor no")
        return told.record or Refusal(told.refused)

    def find(self, key: str) -> Record | None:
        """See `Effects`."""
        return self._told("GET", key).record

    def close(self, key: str) -> Record | None:
        """See `Effects`."""
        return self._told("DELETE", key).record

    def _told(
        self, method: str, key: str, body: bytes = b"", accepted: tuple[int, ...] = (200,)
    ) -> Told:
        path = f"/effects/{quote(key, safe='')}"
        return _read(*_ask(self.url, method, path, body, self.timeout), Told, accepted)


def _started(path: Path, port: int) -> subprocess.Popen[str]:
    """The process of a desk; it ends when ours does, because its standard input then ends."""
    module = "streamlab.streams.desk_process"
    command = [sys.executable, "-m", module, str(path), "--port", str(port), "--owned"]
    home = str(Path(__file__).parents[2])
    paths = os.pathsep.join(filter(None, [home, os.environ.get("PYTHONPATH")]))
    env = os.environ | {"PYTHONPATH": paths}
    pipe = subprocess.PIPE
    return subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=pipe, text=True, env=env)


class Desk:
    """A desk in a process of its own, for as long as its `with` block.

    Its address stays the same over a `restart`, so its clients find it again.
    """

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path)
        self._url = ""
        self._process: subprocess.Popen[str] | None = None

    def __repr__(self) -> str:
        return f"<Desk {self.path.name}: {'running' if self.running else 'not running'}>"

    @property
    def url(self) -> str:
        """Its address: what a `DeskClient` is given."""
        if not self._url:
            raise UsageError("the desk has no address before it is started: `with Desk(path): …`")
        return self._url

    @property
    def running(self) -> bool:
        """Whether its process is alive."""
        return self._process is not None and self._process.poll() is None

    def start(self) -> Desk:
        """Start the process; raises `UsageError` where it can't."""
        if self.running:
            raise UsageError(f"the desk is running already, at {self.url}")
        self._process = process = _started(self.path, urlsplit(self._url).port or 0)
        watch = threading.Timer(START_SECONDS, process.kill)
        watch.start()
        try:
            assert process.stdout is not None
            line = process.stdout.readline().strip()
        except BaseException:
            self.stop()
            raise
        finally:
            watch.cancel()
        if not line:
            self._process = None
            said = process.communicate()[1].strip().rpartition("\n")[2]
            raise UsageError(f"the desk did not start: {said or 'it ended without a word'}")
        self._url = line
        return self

    def stop(self) -> None:
        """End the process at once: whatever is asked of its file, it must stand that."""
        if self._process is not None:
            self._process.kill()
            self._process.communicate()  # closes its pipes too
            self._process = None

    def restart(self) -> None:
        """Start it again, at the same address, whether it has died or not."""
        self.stop()
        self.start()

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *_: type[BaseException] | BaseException | TracebackType | None) -> None:
        self.stop()

    def client(self, timeout: float = 5.0) -> DeskClient:
        """A client of this desk."""
        return DeskClient(self.url, timeout)

    def items(self) -> dict[str, Item]:
        """The work items as they are now, by their ids."""
        found = _read(*_ask(self.url, "GET", "/items", b"", 10), list[Item], (200,))
        return {item.id: item for item in found}

    def asked(self) -> list[Asked]:
        """Everything that was asked of it, in order, without payload."""
        return _read(*_ask(self.url, "GET", "/asked", b"", 10), list[Asked], (200,))

    def misbehave(self, fault: str, seconds: float = 1.0) -> None:
        """What goes wrong with the next submission, one of `FAULTS`; `seconds` is for "slow"."""
        if fault not in FAULTS:
            raise UsageError(f"a desk has no fault {fault!r}: {', '.join(FAULTS)}")
        body = msgspec.json.encode(Fault(fault, seconds))
        status, _ = _ask(self.url, "PUT", "/fault", body, 10)
        if status != 200:
            raise ConnectionError(f"the desk answered with HTTP {status}")


if __name__ == "__main__":
    sys.exit(main())
