"""Real SIGKILL, at every statement and at random: all is settled, nothing done twice or lost."""

from __future__ import annotations

import json
import os
import random
import sqlite3
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from streamlab.consumer.attempt import TERMINAL, Attempt, State
from streamlab.consumer.ledger import Ledger
from streamlab.streams.desk import Desk
from tests.crash_children import PROPOSALS, ready

#: Without fork one kill costs a second, not ten milliseconds. A Linux in CI has it, or fails.
pytestmark = pytest.mark.skipif(
    not hasattr(os, "fork") and not (os.environ.get("CI") == "true" and sys.platform == "linux"),
    reason="this system has no fork",
)

KILLED = -9


class Crash:
    """A ledger's file, a desk, and children that die."""

    def __init__(self, folder: Path, desk: Desk, children: subprocess.Popen[str]) -> None:
        self.path, self.desk, self.children = folder / "ledger.db", desk, children
        self.kills = 0
        self.ids: list[str] = []
        self.settled = 0  #: so many of them are over

    def run(self, *jobs: dict[str, Any]) -> list[list[int]]:
        """Run children side by side. Each is killed, or ends well: nothing else is an ending."""
        common = {"ledger": str(self.path), "desk": self.desk.url, "kill": None, "fine": False}
        assert self.children.stdin is not None and self.children.stdout is not None
        line = json.dumps([common | {"as": "right"} | job for job in jobs])
        self.children.stdin.write(line + "\n")
        self.children.stdin.flush()
        ended = json.loads(self.children.stdout.readline())
        assert {how for how, _ in ended} <= {KILLED, 0}
        self.kills += sum(how == KILLED for how, _ in ended)
        return ended

    def entered(self) -> str:
        """The id of an attempt that is ready to be committed."""
        id = f"attempt-{len(self.ids)}"
        self.ids.append(id)
        with self.ledger() as ledger:
            ledger.enter(ready(id), PROPOSALS)
        return id

    def ledger(self) -> Ledger:
        """The file, opened anew as after a crash; what SIGKILL leaves needs no power cut."""
        return Ledger(self.path, durable=False)

    def recover(self) -> None:
        """What starts after a crash: settle what is unsettled, and commit what never began."""
        with self.ledger() as ledger:
            client = self.desk.client()
            ledger.recover(client)
            assert ledger.unsettled() == []
            assert ledger.recover(client) == {}
            for id in self.ids[self.settled :]:
                if ledger.status(id) == ready(id):
                    ledger.commit(id, client)
        self.settled = len(self.ids)

    def sweep(self, do: str, prepare: Callable[[], str], step: int = 1, **job: Any) -> int:
        """Kill a child at its first point, at its second, and so on, until one comes through."""
        for kill in range(1, 10_000, step):
            id = prepare()
            [(how, _)] = self.run({"do": do, "id": id, "kill": kill, **job})
            if how != KILLED:
                return kill
            self.recover()
        raise AssertionError("it never came through")

    def objections(self) -> list[str]:
        """What is not as it should be, of all attempts so far."""
        with sqlite3.connect(self.desk.path) as db:
            done = {key for (key,) in db.execute("SELECT key FROM effects WHERE proposals NOTNULL")}
            [(times,)] = db.execute("SELECT sum(times) FROM items")
        db.close()
        submitted = Counter(asked.key for asked in self.desk.asked() if asked.what == "submit")
        with self.ledger() as ledger:
            found = [
                *(_objection(id, ledger, id in done) for id in self.ids),
                *(f"{key} was submitted {n} times" for key, n in submitted.items() if n > 1),
            ]
        if times != len(done):
            found.append(f"{times} changes were made for {len(done)} effects")
        if not done <= set(self.ids):
            found.append("something was done that nobody has entered")
        return [words for words in found if words]


def _objection(id: str, ledger: Ledger, done: bool) -> str:
    status = ledger.status(id)
    if status is None or status.state not in TERMINAL:
        return f"{id} is not settled"
    recorded = ledger.record(id) is not None
    if recorded != (status.state is State.COMMITTED):
        return f"{id} is {status.state}, and its record {'is' if recorded else 'is not'} there"
    if done != recorded:
        return f"{id} is {status.state}, and at the desk it was {'done' if done else 'not done'}"
    return ""


@pytest.fixture
def crash(tmp_path: Path) -> Iterator[Crash]:
    command = [sys.executable, "-m", "tests.crash_children"]
    root, pipe = Path(__file__).parents[1], subprocess.PIPE
    with (
        Desk(tmp_path / "desk.db") as desk,
        subprocess.Popen(command, stdin=pipe, stdout=pipe, text=True, cwd=root) as children,
    ):
        yield Crash(tmp_path, desk, children)
        assert children.stdin is not None
        children.stdin.close()


# --- How a child dies -----------------------------------------------------------------------------


def at_every_statement(crash: Crash) -> None:
    """At every statement of the commit and at every step around its request, whatever answers."""
    for fault in ("", "fail_before", "fail_after", "mute_after"):

        def prepare(fault: str = fault) -> str:
            if fault:
                crash.desk.misbehave(fault)
            return crash.entered()

        assert crash.sweep("commit", prepare) > 25
        crash.recover()


def inside_statements(crash: Crash) -> None:
    """Between the instructions of which SQLite's statements are made."""
    assert crash.sweep("commit", crash.entered, step=3, fine=True) > 200
    crash.recover()


def while_recovering(crash: Crash) -> None:
    """At every statement and step of `recover`, after a commit that was killed or got no answer."""
    for dies, fault in (("before", ""), ("after", ""), ("", "fail_before"), ("", "mute_after")):

        def prepare(dies: str = dies, fault: str = fault) -> str:
            id = crash.entered()
            if fault:
                crash.desk.misbehave(fault)
            crash.run({"do": "commit", "id": id, "dies": dies})
            return id

        assert crash.sweep("recover", prepare) > 25
        crash.recover()


def under_load(crash: Crash) -> None:
    """At random times, while three children commit and cancel the same attempts.

    On a quick machine many are done before their time comes, so it goes on until enough died.
    """
    chance = random.Random(11)
    for n in range(450):
        if n >= 45 and crash.kills >= 500:
            break
        first = len(crash.ids)
        ids = [f"attempt-{first + k}" for k in range(25)]
        jobs = [
            {"do": "load", "ids": ids, "seed": chance.random(), "after": chance.uniform(0.01, 0.12)}
            for _ in range(3)
        ]
        restart = threading.Timer(chance.uniform(0, 0.1), crash.desk.restart)
        if n % 5 == 0:
            restart.start()  # the desk is killed too
        crash.run(*jobs)
        if n % 5 == 0:
            restart.join()
        with crash.ledger() as ledger:
            crash.ids += [id for id in ids if ledger.status(id)]
        crash.recover()


@pytest.mark.slow
def test_after_any_of_500_kills_all_is_settled_and_nothing_is_done_twice_or_lost(
    crash: Crash, capsys: pytest.CaptureFixture[str]
) -> None:
    started, counts = time.monotonic(), {}
    for kind in (at_every_statement, inside_statements, while_recovering, under_load):
        before = crash.kills
        kind(crash)
        assert crash.objections() == []
        counts[kind.__name__.replace("_", " ")] = crash.kills - before
    with crash.ledger() as ledger:
        states = Counter(str(status.state) for id in crash.ids if (status := ledger.status(id)))
    assert crash.kills >= 500
    assert min(counts.values()) >= 50
    assert min(states[State.COMMITTED], states[State.ABORTED]) >= 50  # both endings were met
    with capsys.disabled():
        each = ", ".join(f"{n} {kind}" for kind, n in counts.items())
        print(f"\n{crash.kills} kills: all settled, 0 double effects, 0 lost ({each})")
        print(f"{len(crash.ids)} attempts: {dict(states)}, {time.monotonic() - started:.0f} s")


# --- Would we notice? -----------------------------------------------------------------------------


def test_a_ledger_that_writes_after_it_has_acted_is_caught(crash: Crash) -> None:
    """Every kill is the same; the order of two steps is not."""
    crash.sweep("commit", crash.entered, **{"as": "effect first"})
    assert [words for words in crash.objections() if "was submitted 2 times" in words]


def test_an_effect_that_is_not_on_record_is_seen(crash: Crash) -> None:
    id = crash.entered()
    crash.desk.client().submit(id, PROPOSALS)
    with crash.ledger() as ledger:
        ledger.cancel(id)
    assert crash.objections() == [f"{id} is ABORTED, and at the desk it was done"]


def test_a_record_without_an_effect_is_seen(crash: Crash) -> None:
    id = crash.entered()
    with crash.ledger() as ledger, ledger._transaction():
        ledger._change("UPDATE attempts SET state = 'COMMITTED'")
        ledger._change("INSERT INTO effects SELECT id, proposals FROM attempts")
    assert crash.objections() == [f"{id} is COMMITTED, and at the desk it was not done"]


def test_what_is_left_unsettled_is_seen(crash: Crash) -> None:
    id = crash.entered()
    assert crash.objections() == [f"{id} is not settled"]


# --- Others die -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("fault", "state"), [("die_before", State.ABORTED), ("die_after", State.COMMITTED)]
)
def test_a_desk_that_dies_is_asked_when_it_is_back(crash: Crash, fault: str, state: State) -> None:
    id = crash.entered()
    crash.desk.misbehave(fault)
    with crash.ledger() as ledger:
        client = crash.desk.client()
        assert ledger.commit(id, client).state is State.RECONCILING
        assert ledger.recover(client)[id].state is State.RECONCILING  # still nobody there
        crash.desk.restart()
        settled = ledger.recover(client)[id]
        assert settled == ledger.status(id)
        assert settled.state is state
        assert ledger.recover(client) == {}
    assert crash.objections() == []


def test_a_ledger_whose_maker_was_killed_is_made_by_the_next_one(crash: Crash) -> None:
    """At any statement of its making there is a whole ledger or none, never a part of one."""
    kill, how = 0, KILLED
    while how == KILLED:
        kill += 1
        for path in crash.path.parent.glob("ledger.db*"):
            path.unlink()
        [(how, _)] = crash.run({"do": "recover", "id": "", "kill": kill})
        with crash.ledger() as ledger:
            assert ledger.enter(ready("a"), PROPOSALS) == ready("a")
    assert kill > 10


def test_a_commit_that_was_killed_is_what_a_client_that_comes_back_is_told(crash: Crash) -> None:
    """Before `recover`, the truth is that the outcome is not known; it isn't called an error."""
    seen: set[tuple[str, str]] = set()
    for kill in range(1, 60, 2):
        id = crash.entered()
        crash.run({"do": "commit", "id": id, "kill": kill})
        with crash.ledger() as ledger:
            told = ledger.status(id)
            assert isinstance(told, Attempt)
            seen.add((told.state, told.said))
    assert seen == {
        ("VALIDATED_PROPOSAL", "Proposal ready for review"),
        ("COMMITTING", "The change is being made"),
        ("COMMITTED", "The change is made and on record"),
    }
