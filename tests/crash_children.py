"""Processes that die in the middle: the children of `test_crash.py`.

`python -m tests.crash_children` is a small process with one thread, which forks a child for each
job that it reads (one line of JSON), and answers (one line) with how that child ended. A child
counts the points that it passes: every SQL statement (or, `fine`, every instruction of SQLite's
machine), and every step around its HTTP request. At the point that the job names, it kills itself.
"""

from __future__ import annotations

import http.client
import json
import os
import random
import signal
import sqlite3
import sys
import time
import traceback
from collections.abc import Callable
from typing import Any, NoReturn

from streamlab.consumer.attempt import Attempt, State
from streamlab.consumer.commit import Effects, Proposals, Record, Refusal, perform
from streamlab.consumer.gates import Proposal
from streamlab.consumer.ledger import Ledger
from streamlab.streams.desk import DeskClient

PROPOSALS = (Proposal("call-1", "change_label", {"item": "W-7", "label": "Ready"}),)


def ready(id: str) -> Attempt:
    return Attempt(State.VALIDATED_PROPOSAL, "every gate passed", id)


class EffectFirst(Ledger):
    """A ledger that is wrong on purpose: it writes down what it does after it has done it."""

    def commit(self, id: str, effects: Effects, authorise: object = None) -> Attempt:
        done = perform(Attempt(State.COMMITTING, "", id), PROPOSALS, effects)
        with self._transaction():
            self._change("UPDATE attempts SET state = ? WHERE id = ?", done.state, id)
        return done


LEDGERS: dict[str, type[Ledger]] = {"right": Ledger, "effect first": EffectFirst}


class Points:
    """The points that a process passes, and the one at which it dies."""

    def __init__(self, last: int | None) -> None:
        self.last, self.passed = last, 0

    def reach(self, *_: object) -> None:
        self.passed += 1
        if self.passed == self.last:
            os.kill(os.getpid(), signal.SIGKILL)


def watch(points: Points, fine: bool) -> None:
    """Make every statement and every step of a request a point."""
    connect = sqlite3.connect

    def watched(*given: Any, **named: Any) -> sqlite3.Connection:
        db = connect(*given, **named)
        if fine:
            db.set_progress_handler(points.reach, 1)
        else:
            db.set_trace_callback(points.reach)
        return db

    sqlite3.connect = watched  # type: ignore[assignment]
    if not fine:
        _watch_http(points)


def _watch_http(points: Points) -> None:
    one = http.client.HTTPConnection
    for of, name in ((one, "connect"), (one, "getresponse"), (one, "close")):
        setattr(of, name, _around(getattr(of, name), points))
    http.client.HTTPResponse.read = _around(http.client.HTTPResponse.read, points)  # type: ignore
    send = one.send

    def in_two(self: http.client.HTTPConnection, data: bytes) -> None:
        points.reach()
        send(self, data[: len(data) // 2])
        points.reach()
        send(self, data[len(data) // 2 :])
        points.reach()

    one.send = in_two  # type: ignore[assignment]


def _around(call: Callable[..., Any], points: Points) -> Callable[..., Any]:
    def watched(*given: Any) -> Any:
        points.reach()
        answer = call(*given)
        points.reach()
        return answer

    return watched


# --- What a child does ----------------------------------------------------------------------------


class Dies(DeskClient):
    """A client whose process dies just before it submits, or when it has just got its answer."""

    def __init__(self, url: str, before: bool) -> None:
        super().__init__(url)
        self.before = before

    def submit(self, key: str, proposals: Proposals) -> Record | Refusal:
        if not self.before:
            super().submit(key, proposals)
        os.kill(os.getpid(), signal.SIGKILL)
        raise AssertionError("nobody comes here")


def commit(job: dict[str, Any]) -> int:
    """Commit one attempt."""
    points = Points(job["kill"])
    watch(points, job["fine"])
    dies = job.get("dies")
    client = Dies(job["desk"], dies == "before") if dies else DeskClient(job["desk"])
    with LEDGERS[job["as"]](job["ledger"]) as ledger:
        ledger.commit(job["id"], client)
    points.reach()
    return points.passed


def recover(job: dict[str, Any]) -> int:
    """Settle whatever is unsettled."""
    points = Points(job["kill"])
    watch(points, job["fine"])
    with Ledger(job["ledger"]) as ledger:
        ledger.recover(DeskClient(job["desk"]))
    points.reach()
    return points.passed


def load(job: dict[str, Any]) -> int:
    """Enter, commit and sometimes cancel many attempts, the same as others do, in another order."""
    chance = random.Random(job["seed"])
    ids = job["ids"]
    chance.shuffle(ids)
    with Ledger(job["ledger"]) as ledger:
        for id in ids:
            ledger.enter(ready(id), PROPOSALS)
            if chance.random() < 0.1:
                ledger.cancel(id)
            ledger.commit(id, DeskClient(job["desk"]))
            if chance.random() < 0.05:
                ledger.recover(DeskClient(job["desk"]))
    return 0


DO: dict[str, Callable[[dict[str, Any]], int]] = {
    "commit": commit,
    "recover": recover,
    "load": load,
}

# --- The process that forks -----------------------------------------------------------------------


def _child(job: dict[str, Any], told: int) -> NoReturn:
    try:
        os.write(told, str(DO[job["do"]](job)).encode())
    except BaseException:
        traceback.print_exc()
        os._exit(1)
    os._exit(0)


def run(jobs: list[dict[str, Any]]) -> list[list[int]]:
    """Run some jobs side by side; how each ended (its signal, negative), and what it counted."""
    children = []
    for job in jobs:
        reads, writes = os.pipe()
        pid = os.fork()
        if not pid:
            os.close(reads)
            _child(job, writes)
        os.close(writes)
        children.append((job.get("after", 0.0), pid, reads))
    began = time.monotonic()
    for after, pid, _ in sorted(children):
        if after:
            time.sleep(max(0.0, began + after - time.monotonic()))
            os.kill(pid, signal.SIGKILL)  # it is ours, and not waited for yet
    ended = []
    for _, pid, reads in children:
        _, status = os.waitpid(pid, 0)
        ended.append([os.waitstatus_to_exitcode(status), int(os.read(reads, 20) or 0)])
        os.close(reads)
    return ended


if __name__ == "__main__":
    for line in sys.stdin:
        print(json.dumps(run(json.loads(line))), flush=True)
