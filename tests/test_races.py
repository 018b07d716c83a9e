"""Cancel against commit, ten thousand times: one of them wins, and both read the same answer."""

from __future__ import annotations

import multiprocessing
import os
import random
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from multiprocessing.synchronize import Barrier
from pathlib import Path

import msgspec
import pytest

from streamlab.consumer.attempt import Attempt, Input, State
from streamlab.consumer.commit import Proposals, Record, RecordingAdapter
from streamlab.consumer.gates import Proposal
from streamlab.consumer.ledger import Ledger

PROPOSALS = (Proposal("call-1", "change_label", {"item": "W-7", "label": "Ready"}),)

#: Races by threads that share a ledger, by threads with one each, and by processes.
SHARED, SEPARATE, PROCESSES = 4000, 3000, 3000

#: Races for which the file is opened once.
BATCH = 500


def ready(id: str) -> Attempt:
    return Attempt(State.VALIDATED_PROPOSAL, "every gate passed", id)


class Race(msgspec.Struct, frozen=True):
    """What one race has left: each side's answer, and what each reads afterwards."""

    id: str
    cancelled: Attempt
    committed: list[Attempt]
    read: list[Attempt]
    effects: int


def objection(race: Race) -> str:
    """What is wrong with a race; "" where one side has won and everybody knows which."""
    final = race.read[0]
    won = race.cancelled.state is State.ABORTED
    if any(read != final for read in race.read):
        return "they read different answers"
    if (final.state, final.by) not in WINS:
        return f"nobody has won: {final.state}"
    if won != (final.by is Input.CANCEL):
        return f"cancel was told {race.cancelled.state}, and it is {final.state}"
    if race.effects != (0 if won else 1):
        return f"it is {final.state}, and there were {race.effects} effects"
    if won or len(race.committed) == 1:
        late = [told for told in race.committed if told != final]
    else:  # who commits second may come while the first one is still at it
        late = [told for told in race.committed if told.state is State.ABORTED]
        late = late or ([] if final in race.committed else race.committed)
    return f"commit was told {late[0].state}, and it is {final.state}" if late else ""


WINS = {(State.ABORTED, Input.CANCEL), (State.COMMITTED, Input.EFFECT_RECORDED)}


def winners(races: list[Race]) -> Counter[str]:
    """Who has won how often, after every race was found to be in order."""
    wrong = [f"{race.id}: {words}" for race in races if (words := objection(race))]
    assert wrong == []
    return Counter("cancel" if race.effects == 0 else "commit" for race in races)


# --- Threads --------------------------------------------------------------------------------------


@pytest.fixture
def eager() -> Iterator[None]:
    """Let threads interrupt each other a hundred times as often as usual."""
    usual = sys.getswitchinterval()
    sys.setswitchinterval(usual / 100)
    yield
    sys.setswitchinterval(usual)


def threads_race(ids: list[str], cancel: Ledger, commit: Ledger) -> list[Race]:
    """Two threads start each race at the same moment; they wait for each other before the next."""
    effects, start = RecordingAdapter(), threading.Barrier(2)
    told: dict[str, list[Attempt]] = {"cancel": [], "commit": []}

    def run(side: str, act: Callable[[str], Attempt]) -> None:
        chance = random.Random(side)
        try:
            for id in ids:
                start.wait()
                for _ in range(chance.randrange(3)):
                    time.sleep(0)  # let the other one go first
                told[side].append(act(id))
        except BaseException:
            start.abort()
            raise

    other = threading.Thread(target=run, args=("cancel", cancel.cancel))
    other.start()
    run("commit", lambda id: commit.commit(id, effects))
    other.join()
    submitted = Counter(effects.submissions)
    return [
        Race(id, cancelled, [committed], read(id, cancel, commit), submitted[id])
        for id, cancelled, committed in zip(ids, told["cancel"], told["commit"], strict=True)
    ]


def read(id: str, *ledgers: Ledger) -> list[Attempt]:
    """What each one reads."""
    found = [ledger.status(id) for ledger in ledgers]
    return [attempt for attempt in found if attempt is not None]


def entered(ledger: Ledger, first: int, count: int) -> list[str]:
    ids = [f"attempt-{n}" for n in range(first, first + count)]
    for id in ids:
        ledger.enter(ready(id), PROPOSALS)
    return ids


def by_threads(path: Path, count: int, share: bool) -> list[Race]:
    races: list[Race] = []
    for first in range(0, count, BATCH):
        with Ledger(path, durable=False) as one, Ledger(path, durable=False) as two:
            ids = entered(one, first, BATCH)
            races += threads_race(ids, one, one if share else two)
    return races


# --- Processes ------------------------------------------------------------------------------------


class OnFile:
    """Effects that are lines of a file: each is written at once, whoever else writes."""

    def __init__(self, path: str) -> None:
        self.path = path

    def submit(self, key: str, proposals: Proposals) -> Record:
        file = os.open(self.path, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
        os.write(file, f"{key}\n".encode())
        os.close(file)
        return Record(key, proposals)

    def find(self, key: str) -> Record | None:
        raise AssertionError("nothing is in doubt here")

    close = find


def process(seat: int, path: str, effects: str, ids: list[str], start: Barrier, out: str) -> None:
    """One of three: it cancels every third attempt, and commits the others."""
    told = []
    with Ledger(path, timeout=60, durable=False) as ledger:
        for n, id in enumerate(ids):
            start.wait(60)
            if n % 3 == seat:
                told.append(ledger.cancel(id))
            else:
                told.append(ledger.commit(id, OnFile(effects)))
        start.wait(60)
        seen = [ledger.status(id) for id in ids]
    Path(out).write_bytes(msgspec.json.encode((told, seen)))


def by_processes(folder: Path, count: int) -> list[Race]:
    path, effects = folder / "processes.db", folder / "effects.txt"
    with Ledger(path, durable=False) as ledger:
        ids = entered(ledger, 0, count)
    spawn = multiprocessing.get_context("spawn")
    start = spawn.Barrier(3)
    outs = [folder / f"seat-{seat}.json" for seat in range(3)]
    running = [
        spawn.Process(target=process, args=(seat, str(path), str(effects), ids, start, str(out)))
        for seat, out in enumerate(outs)
    ]
    for one in running:
        one.start()
    for one in running:
        one.join()
        assert one.exitcode == 0
    left = [
        msgspec.json.decode(o.read_bytes(), type=tuple[list[Attempt], list[Attempt]]) for o in outs
    ]
    done = Counter(effects.read_text().split())
    return [
        Race(
            id,
            left[n % 3][0][n],
            [told[n] for seat, (told, _) in enumerate(left) if seat != n % 3],
            [seen[n] for _, seen in left],
            done[id],
        )
        for n, id in enumerate(ids)
    ]


# --- The races ------------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.usefixtures("eager")
def test_cancel_and_commit_race_10000_times_and_one_of_them_wins(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    started = time.monotonic()
    won = {
        "threads, one ledger": winners(by_threads(tmp_path / "shared.db", SHARED, share=True)),
        "threads, one each": winners(by_threads(tmp_path / "each.db", SEPARATE, share=False)),
        "processes": winners(by_processes(tmp_path, PROCESSES)),
    }
    total = sum(won.values(), Counter[str]())
    assert total.total() == 10_000
    for count in won.values():
        assert set(count) == {"cancel", "commit"}  # it was a race: nobody won them all
    with capsys.disabled():
        each = "; ".join(f"{name}: {dict(count)}" for name, count in won.items())
        took = time.monotonic() - started
        print(f"\n{total.total()} races: one winner each ({each}), {took:.0f} s")


def test_a_few_races_of_every_kind(tmp_path: Path) -> None:
    assert winners(by_threads(tmp_path / "shared.db", BATCH, share=True)).total() == BATCH
    assert winners(by_threads(tmp_path / "each.db", BATCH, share=False)).total() == BATCH
    assert winners(by_processes(tmp_path, 30)).total() == 30


def test_many_openers_of_a_new_file_make_one_ledger(tmp_path: Path) -> None:
    opened: list[Attempt] = []
    start = threading.Barrier(8)

    def opens() -> None:
        start.wait()
        with Ledger(tmp_path / "new.db") as ledger:
            opened.append(ledger.enter(ready("a"), PROPOSALS))

    threads = [threading.Thread(target=opens) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert opened == [ready("a")] * 8


# --- Would we notice? -----------------------------------------------------------------------------

CANCELLED = Attempt(State.ABORTED, "we cancelled it", "a", Input.CANCEL)
COMMITTED = Attempt(State.COMMITTED, "it is on record", "a", Input.EFFECT_RECORDED)
COMMITTING = Attempt(State.COMMITTING, "the commit has begun", "a", Input.COMMIT)

GOOD = {
    "cancel wins": Race("a", CANCELLED, [CANCELLED], [CANCELLED] * 2, 0),
    "commit wins": Race("a", COMMITTED, [COMMITTED], [COMMITTED] * 2, 1),
    "cancel comes in between": Race("a", COMMITTING, [COMMITTED], [COMMITTED] * 2, 1),
    "so does another commit": Race("a", COMMITTING, [COMMITTED, COMMITTING], [COMMITTED] * 3, 1),
}

BAD = {
    "both win": Race("a", CANCELLED, [COMMITTED], [COMMITTED] * 2, 1),
    "both win, the other way": Race("a", CANCELLED, [COMMITTED], [CANCELLED] * 2, 0),
    "an effect in spite of cancel": Race("a", CANCELLED, [CANCELLED], [CANCELLED] * 2, 1),
    "two effects": Race("a", COMMITTED, [COMMITTED] * 2, [COMMITTED] * 3, 2),
    "no effect": Race("a", COMMITTED, [COMMITTED], [COMMITTED] * 2, 0),
    "two answers": Race("a", COMMITTED, [COMMITTED], [COMMITTED, CANCELLED], 1),
    "it never ends": Race("a", COMMITTING, [COMMITTING], [COMMITTING] * 2, 1),
    "commit is told too little": Race("a", COMMITTED, [COMMITTING], [COMMITTED] * 2, 1),
    "no commit is told": Race("a", COMMITTED, [COMMITTING] * 2, [COMMITTED] * 3, 1),
    "a commit is told it was cancelled": Race(
        "a", COMMITTED, [COMMITTED, CANCELLED], [COMMITTED] * 3, 1
    ),
}


@pytest.mark.parametrize("name", GOOD)
def test_a_race_in_order_is_passed(name: str) -> None:
    assert objection(GOOD[name]) == ""


@pytest.mark.parametrize("name", BAD)
def test_a_race_that_is_not_is_seen(name: str) -> None:
    assert objection(BAD[name])


class ReadThenWrite(Ledger):
    """A ledger that is wrong on purpose: it reads in one transaction, and writes in another."""

    def advance(self, id: str, given: Input, why: str = "") -> Attempt:
        before = self.status(id)
        assert before is not None
        if before.state is not State.VALIDATED_PROPOSAL:
            return before
        time.sleep(0.0005)
        with self._transaction():
            self._change("UPDATE attempts SET state = 'ABORTED', input = 'cancel' WHERE id = ?", id)
        return self._recorded(id)


@pytest.mark.usefixtures("eager")
def test_a_ledger_that_reads_and_then_writes_is_caught(tmp_path: Path) -> None:
    path = tmp_path / "wrong.db"
    with ReadThenWrite(path, durable=False) as one, Ledger(path, durable=False) as two:
        races = threads_race(entered(two, 0, 200), one, two)
    assert [words for race in races if (words := objection(race))]
