"""The shop of lesson 06: a desk that pays, a ledger, and what may go wrong between the two.

An item that gets the label "Paid" is paid: whenever the label is set, money is sent. So the number
of times that it was set is the number of payments. The desk is a process of its own with a file of
its own; the ledger is a file that several processes open. All of it is in a temporary folder.

`FIXES` are four repairs of a loop that pays twice. `killed` has another process begin a commit and
end in the middle of it, as it would by `kill -9`.

Read next: `orders.py`, for cancel against commit; `../consumer/ledger.py`, for the file.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import msgspec

from streamlab.analysis.judge import judge
from streamlab.consumer.attempt import Attempt, Input
from streamlab.consumer.commit import Effects, Proposals, Record, Refusal
from streamlab.consumer.gates import Proposal
from streamlab.consumer.ledger import Ledger
from streamlab.consumer.workitem import policy_for
from streamlab.errors import UsageError
from streamlab.streams import synth
from streamlab.streams.desk import Desk, DeskClient
from streamlab.streams.parts import Text, ToolCall
from streamlab.streams.recording import Recording
from streamlab.study.search import times

__all__ = [
    "ANSWER",
    "FIXES",
    "MOMENTS",
    "OnItsWay",
    "Races",
    "Shop",
    "killed",
    "main",
    "races",
    "shop",
    "tried",
]

#: What the model answers when Ada writes that W-7 is to be paid.
ANSWER = synth.answer(
    [Text(("I'll mark W-7 as paid.",)), ToolCall("change_label", {"item": "W-7", "label": "Paid"})],
    "tool_use",
)

#: What its gates make of that, written by hand: a process that only commits judges nothing.
PROPOSALS: Proposals = (Proposal("toolu_0007_1", "change_label", {"item": "W-7", "label": "Paid"}),)

#: Seconds that a process may take which is meant to end by itself.
SECONDS = 30.0


class Shop:
    """A desk and a ledger: what a program has that may pay W-7."""

    def __init__(self, folder: Path, desk: Desk) -> None:
        self.folder, self.desk = folder, desk
        self.effects = desk.client()
        self.ledger = self.program()
        self._requests = 0

    def program(self) -> Ledger:
        """Another program's way to the same ledger: a connection of its own."""
        return Ledger(self.folder / "ledger.db", durable=False)

    def enter(self, id: str, recording: Recording = ANSWER) -> Attempt:
        """Judge an answer, and write its attempt down."""
        outcome = judge(recording, policy_for("ada"), attempt=id)
        return self.ledger.enter(outcome.attempt, outcome.proposals)

    def request(self, key: str = "") -> Record | Refusal:
        """Ask the desk to pay W-7; without a key, nothing says which payment is meant."""
        self._requests += 1
        return self.effects.submit(key or f"request {self._requests}", PROPOSALS)

    def lose_next(self) -> None:
        """The next answer gets lost: the desk acts, and its connection ends without a word."""
        self.desk.misbehave("mute_after")

    @property
    def paid(self) -> str:
        """How often W-7 was paid, as the desk says."""
        often = self.desk.items()["W-7"].times
        return f"paid {times(often)}" if often else "not paid"

    @property
    def asked(self) -> list[str]:
        """What the desk was asked, in order."""
        return [each.what for each in self.desk.asked()]


@contextmanager
def shop() -> Iterator[Shop]:
    """A shop for as long as a `with` block; its files are gone afterwards."""
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as name:
        folder = Path(name)
        with Desk(folder / "desk.db") as desk:
            made = Shop(folder, desk)
            try:
                yield made
            finally:
                made.ledger.close()


# --- A request that takes its time ----------------------------------------------------------------


class OnItsWay:
    """Effects at the end of a slow network: nobody hears an answer, and the request comes later."""

    def __init__(self, effects: Effects) -> None:
        self._effects = effects
        self._under_way: list[tuple[str, Proposals]] = []

    def submit(self, key: str, proposals: Proposals) -> Record | Refusal:
        """See `Effects`; it has not come there yet when its caller stops to wait."""
        self._under_way.append((key, proposals))
        raise TimeoutError("no answer came in time")

    def find(self, key: str) -> Record | None:
        """See `Effects`."""
        return self._effects.find(key)

    def close(self, key: str) -> Record | None:
        """See `Effects`."""
        return self._effects.close(key)

    def arrive(self) -> list[str]:
        """What was under way arrives; what the desk makes of each."""
        under_way, self._under_way = self._under_way, []
        answers = [self._effects.submit(*each) for each in under_way]
        return ["refused" if isinstance(each, Refusal) else "done" for each in answers]


# --- Repairs of a loop that pays twice ------------------------------------------------------------


def _longer(made: Shop) -> None:
    made.effects = made.desk.client(timeout=60)
    _again_without_a_key(made)


def _again_without_a_key(made: Shop) -> None:
    made.lose_next()
    for _ in range(2):
        try:
            made.request()
            return
        except OSError:
            continue


def _once(made: Shop) -> None:
    """The program tries once and says that it failed; then a person tries."""
    _again_without_a_key(made)


def _ask_first(made: Shop) -> None:
    slow = OnItsWay(made.effects)
    try:
        slow.submit("request 0", PROPOSALS)
    except OSError:
        if not made.desk.items()["W-7"].times:  # true at this moment
            made.request()
    slow.arrive()


def _one_key(made: Shop) -> None:
    made.lose_next()
    for _ in range(2):
        try:
            made.request("attempt-1")
            return
        except OSError:
            continue


#: What people do about it; each in a shop of its own.
FIXES: dict[str, Callable[[Shop], None]] = {
    "wait a minute for the answer": _longer,
    "try once; a person tries again": _once,
    "ask first whether it is paid": _ask_first,
    "send the same key each time": _one_key,
}


def tried(fix: str) -> str:
    """How often W-7 is paid with a repair."""
    with shop() as made:
        FIXES[fix](made)
        return made.paid


# --- A process that dies --------------------------------------------------------------------------

#: Where our process may end in its commit.
MOMENTS = ("before the request", "after the payment")


class _Dies:
    """Effects for a process that is to end: at once, and nothing is tidied up."""

    def __init__(self, effects: Effects, moment: str) -> None:
        self._effects, self._moment = effects, moment
        self.find, self.close = effects.find, effects.close

    def submit(self, key: str, proposals: Proposals) -> Record | Refusal:
        if self._moment == MOMENTS[1]:
            self._effects.submit(key, proposals)
        os._exit(1)


def killed(made: Shop, id: str, moment: str) -> None:
    """Let another process commit an attempt, and end at this moment of it."""
    if moment not in MOMENTS:
        raise UsageError(f"no moment {moment!r}: {', '.join(MOMENTS)}")
    command = [sys.executable, "-m", __name__, str(made.ledger.path), made.desk.url, id, moment]
    home = str(Path(__file__).parents[2])
    paths = os.pathsep.join(filter(None, [home, os.environ.get("PYTHONPATH")]))
    env = os.environ | {"PYTHONPATH": paths}
    done = subprocess.run(command, env=env, timeout=SECONDS, capture_output=True, text=True)
    if done.returncode != 1 or done.stderr:
        raise UsageError(f"the other process did not end where it should: {done.stderr[-300:]}")


def main(path: str, url: str, id: str, moment: str) -> None:
    """The other process."""
    Ledger(path).commit(id, _Dies(DeskClient(url), moment))


# --- Two at once ----------------------------------------------------------------------------------


class Races(msgspec.Struct, frozen=True):
    """What became of some races. Who won how often is chance, so it is not printed."""

    run: int
    one_winner: int  #: of the cancellation and the commit exactly one was accepted
    read_the_same: int  #: both, afterwards: what the winner was told
    committed: int
    payments: int

    def __repr__(self) -> str:
        once = "once for each commit that won" if self.payments == self.committed else "otherwise"
        return (
            f"{self.run} races: one winner in {self.one_winner}; "
            f"afterwards both read the same in {self.read_the_same};\n"
            f"  W-7 was paid {once}"
        )


def races(made: Shop, run: int) -> Races:
    """Let two programs, each with a connection of its own, cancel and commit at the same moment."""
    before = made.desk.items()["W-7"].times
    found: list[tuple[bool, bool]] = []
    committed = 0
    with made.program() as first, made.program() as second:
        for number in range(run):
            id = made.enter(f"race-{number}").id
            cancel, commit = _at_once(
                lambda id=id: first.cancel(id),  # type: ignore[misc]
                lambda id=id: second.commit(id, made.effects),  # type: ignore[misc]
            )
            cancelled, won = cancel.by is Input.CANCEL, commit.by is Input.EFFECT_RECORDED
            later = first.status(id), second.status(id)
            winner = cancel if cancelled else commit
            found.append((cancelled != won, later == (winner, winner)))
            committed += won
    payments = made.desk.items()["W-7"].times - before
    return Races(run, sum(a for a, _ in found), sum(b for _, b in found), committed, payments)


def _at_once(*acts: Callable[[], Attempt]) -> list[Attempt]:
    """Several acts, each in a thread of its own, as close together as threads can be."""
    start, answers = threading.Barrier(len(acts)), dict.fromkeys(range(len(acts)), Attempt())

    def act(place: int) -> None:
        start.wait(SECONDS)
        answers[place] = acts[place]()

    threads = [threading.Thread(target=act, args=(place,)) for place in answers]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return list(answers.values())


if __name__ == "__main__":
    main(*sys.argv[1:])
