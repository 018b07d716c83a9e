"""Cancel against commit, in every order: what the one row says, and what each of them is told.

Between two lanes only the order matters. A commit is a few events: it begins, the request is
carried out, the answer arrives; where the outcome is unknown, somebody recovers it later. A
cancellation, and a second delivery of the same commit, may come in any gap between them; and one
thing may go wrong. `play` hands one order to the real `Ledger`, on an SQLite file in memory, and
`every` has them all, for `widgets/race.py`.

Read next: `../consumer/ledger.py`; `payment.py`, where two threads do it at once.
"""

from __future__ import annotations

import textwrap
from functools import cache

import msgspec

from streamlab.consumer.attempt import Attempt, Input, State
from streamlab.consumer.commit import Proposals, Record, RecordingAdapter, Refusal
from streamlab.consumer.gates import Proposal
from streamlab.consumer.ledger import Ledger
from streamlab.errors import UsageError
from streamlab.study.search import times

__all__ = ["AGAIN", "GAPS", "TROUBLES", "Moment", "Order", "every", "play"]

#: Where a cancellation may come, against the events of a commit.
GAPS = (
    "before the commit",
    "before the effect",
    "before the answer",
    "after the answer",
    "after the recovery",
)

#: Where the same commit may be delivered again: the first delivery is what begins it.
AGAIN = ("never", *GAPS[1:])

#: What may go wrong.
TROUBLES = (
    "nothing",
    "our process dies before the effect",
    "our process dies before the answer",
    "the answer gets lost",
)
DIES = {TROUBLES[1]: GAPS[1], TROUBLES[2]: GAPS[2]}

WIDTH = 88  #: of what is printed, in characters

ID = "attempt-1"
PROPOSALS = (Proposal("call-1", "change_label", {"item": "W-7", "label": "Paid"}),)
READY = Attempt(State.VALIDATED_PROPOSAL, "every gate passed", ID, Input.GATES_PASSED)


class Moment(msgspec.Struct, frozen=True):
    """One event, what it was answered, and what is so after it."""

    who: str  #: "cancel", "commit", "again", "desk", "crash" or "recover"
    says: str
    row: State  #: what the row says after it
    effects: int  #: how often the effect has happened by then
    told: State | None = None  #: what whoever acted is answered, where that is now


class Order(msgspec.Struct, frozen=True):
    """What became of one order."""

    cancel: str
    trouble: str
    again: str
    moments: tuple[Moment, ...]
    recorded: Attempt  #: what everybody reads who asks afterwards
    effects: int
    submissions: int

    @property
    def winner(self) -> str:
        """Whose act the row took."""
        return "cancel" if self.recorded.by is Input.CANCEL else "commit"

    def told(self, who: str) -> State | None:
        """What one of them was answered; None where it got no answer, or did not act."""
        told = [each.told for each in self.moments if each.who == who and each.told]
        return told[-1] if told else None

    def verdict(self) -> str:
        """Who won, what came of it, and why, in sentences."""
        came = "not paid" if not self.effects else f"paid {times(self.effects)}"
        if self.winner == "cancel":
            return f"Cancel wins: it came first, and the commit found ABORTED. W-7 is {came}."
        if not self.effects:
            return (
                "The commit began first, so the cancellation came too late; then it failed, and "
                f"W-7 is {came}."
            )
        met = self.told("cancel")
        return f"Commit wins: it began first, and the cancellation found {met}. W-7 is {came}."

    def ending(self) -> str:
        """The verdict, and what is on record."""
        return f"{self.verdict()} Everybody who asks later reads {self.recorded.state}."

    def __repr__(self) -> str:
        wide = max(len(each.says) for each in self.moments)
        rows = (
            f"  {each.says:<{wide}}  {each.row:18}" + (f"  told: {each.told}" if each.told else "")
            for each in self.moments
        )
        end = textwrap.fill(self.ending(), WIDTH)
        return "\n".join([*(row.rstrip() for row in rows), end])


def play(cancel: str = GAPS[0], trouble: str = TROUBLES[0], again: str = AGAIN[0]) -> Order:
    """Play one order on a real ledger."""
    for value, known in ((cancel, GAPS), (trouble, TROUBLES), (again, AGAIN)):
        if value not in known:
            raise UsageError(f"no {value!r}; there are: {'; '.join(known)}")
    with Ledger(":memory:") as ledger:
        ledger.enter(READY, PROPOSALS)
        return _Play(ledger, cancel, trouble, again).run()


@cache
def every() -> tuple[Order, ...]:
    """Every order of the events, each played once."""
    return tuple(
        play(cancel, trouble, again) for cancel in GAPS for trouble in TROUBLES for again in AGAIN
    )


class _Play:
    """The lanes, and a note of everything. It is the commit's `Effects`."""

    def __init__(self, ledger: Ledger, cancel: str, trouble: str, again: str) -> None:
        self.ledger, self.desk = ledger, RecordingAdapter()
        self.cancel, self.trouble, self.again = cancel, trouble, again
        self.gaps = list(GAPS)  # the ones that are still to come
        self.moments: list[Moment] = []

    def run(self) -> Order:
        """Play it to the end."""
        self.until(GAPS[0])
        self.commits()
        self.until(GAPS[3])
        for attempt in self.ledger.recover(self).values():
            self.note("recover", "the desk is asked for its record", attempt.state)
        self.until(GAPS[4])
        recorded = self.ledger.status(ID) or READY
        effects, submissions = len(self.desk.records), len(self.desk.submissions)
        given = (self.cancel, self.trouble, self.again)
        return Order(*given, tuple(self.moments), recorded, effects, submissions)

    def commits(self) -> None:
        """The first delivery of the commit, with all that comes between its events."""
        try:
            answer = self.ledger.commit(ID, self)
        except SystemExit:  # its process is gone
            return
        if not self.desk.submissions:
            self.note("commit", "a commit is asked for: too late", answer.state)
        elif answer.state is State.RECONCILING:
            self.note("commit", "no answer comes", answer.state)
        else:
            self.note("commit", "the answer comes", answer.state)

    def until(self, place: str) -> None:
        """Whoever comes up to the end of this gap."""
        while place in self.gaps:
            self.gap(self.gaps.pop(0))

    def gap(self, place: str) -> None:
        """Whoever comes in this gap. Within one, the order makes no difference to anybody."""
        if self.cancel == place:
            self.note("cancel", "a person cancels", self.ledger.cancel(ID).state)
        if self.again == place:
            repeated = self.ledger.commit(ID, self.desk)  # by another program
            self.note("again", "the commit is delivered again", repeated.state)
        if DIES.get(self.trouble) == place:
            self.note("crash", "our process dies")
            if self.begun:
                raise SystemExit  # no line of our code runs after this, and no handler

    @property
    def begun(self) -> bool:
        """Whether the first delivery is under way, so that it can be interrupted."""
        return any(each.who == "commit" for each in self.moments) and not self.answered

    @property
    def answered(self) -> bool:
        return any(each.who == "commit" and each.told for each in self.moments)

    def submit(self, key: str, proposals: Proposals) -> Record | Refusal:
        """See `Effects`: the effect, in a gap on either side."""
        self.note("commit", "a commit begins")
        self.until(GAPS[1])
        answer = self.desk.submit(key, proposals)
        self.note("desk", "the desk pays")
        self.until(GAPS[2])
        if self.trouble == TROUBLES[3]:
            raise ConnectionResetError("the connection was lost before the answer came")
        return answer

    def find(self, key: str) -> Record | None:
        """See `Effects`."""
        return self.desk.find(key)

    def close(self, key: str) -> Record | None:
        """See `Effects`."""
        return self.desk.close(key)

    def note(self, who: str, says: str, told: State | None = None) -> None:
        """Write an event down, with what is so after it."""
        row = self.ledger.status(ID) or READY
        self.moments.append(Moment(who, says, row.state, len(self.desk.records), told))
