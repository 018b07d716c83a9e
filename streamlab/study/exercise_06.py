"""Lesson 06's exercise: pay once, with one row and one desk, whatever else happens.

The learner's function is given a row, which changes by compare and set, and a desk, which is slow,
mute or in order. `watched` makes a *story* of what it did: each change of the row, each submission,
and what it returned. That is what a case expects, so a check sees the order of things, and not only
the end. The real one is `Ledger.commit`; a test leads it through the same cases.

Read next: `questions.py`, which checks an answer; `../consumer/ledger.py`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec

from streamlab.consumer.attempt import State
from streamlab.study.tasks import UNANSWERED, Case, Exercise, Wrong

__all__ = ["EXERCISES", "SITUATIONS", "Desk", "Row", "Situation", "Story", "watched"]

#: A function that goes round in a circle is stopped when it has done one thing so often.
MOST = {"looked at the row": 50, "set the row": 50, "submitted": 9}

#: So many events are told of a function that was stopped: it repeats itself.
FIRST = 3


class Story:
    """What a function has done so far; and the end of it, where it would go on for ever."""

    def __init__(self) -> None:
        self.events: list[str] = []
        self.end = ""  #: where it did not return by itself
        self._done = dict.fromkeys(MOST, 0)

    def over(self, what: str) -> bool:
        """It does this once more, or is stopped: an `except Exception` must not swallow that.

        A bare `except` does swallow it. Then the story is over, and it gets what lets it return.
        """
        self._done[what] += 1
        if not self.end and self._done[what] > MOST[what]:
            self.end = f"stopped: it {what} {MOST[what]} times, and went on"
            raise SystemExit(self.end)
        return bool(self.end)

    def told(self, returned: Any) -> str:
        """The story in one line."""
        if not self.end:
            return f"{', '.join(self.events) or 'nothing'}; returned {returned}"
        more = ["..."] if len(self.events) > FIRST else []
        return f"{', '.join(self.events[:FIRST] + more) or 'nothing'}; {self.end}"


class Row:
    """The one row of an attempt."""

    def __init__(self, id: str, state: str, meanwhile: str, story: Story) -> None:
        self.id = id
        self._state, self._meanwhile, self._story = str(state), meanwhile, story

    @property
    def state(self) -> str:
        """What it says now."""
        self._story.over("looked at the row")
        return self._state

    def set(self, before: str, after: str) -> bool:
        """Change it, if it still says what you have read; whether it did."""
        if self._story.over("set the row"):
            return True
        self.happen("set")
        for each in (before, after):
            if each not in State.__members__:  # misspelt, most often
                self._story.events.append(f"`set` refused {each!r:.40}: no such state")
                return False
        if self._state != before:
            return False
        self._state = str(after)
        self._story.events.append(self._state)
        return True

    def happen(self, when: str) -> None:
        """What somebody else does just then; "set ABORTED" is before the first compare and set."""
        moment, _, state = self._meanwhile.partition(" ")
        if moment == when:
            self._meanwhile, self._state = "", state


class Desk:
    """Whoever pays: it answers `"done"` or `"refused"`, or nobody hears an answer (`OSError`)."""

    def __init__(self, answer: str | type[OSError], row: Row, story: Story) -> None:
        self._answer, self._row, self._story = answer, row, story

    def submit(self, key: str) -> str:
        """Pay, under a key."""
        if self._story.over("submitted"):
            return "done"
        self._story.events.append(f"submit {key}")
        self._row.happen("submit")
        if isinstance(self._answer, str):
            return self._answer
        raise self._answer("no answer came")


Answer = Callable[[Row, Desk], Any]


class Situation(msgspec.Struct, frozen=True):
    """One case: how things stand, and the story that is right."""

    name: str
    state: State
    story: str
    why: str
    answer: str | type[OSError] = "done"
    meanwhile: str = ""  #: what somebody else does: "set STATE" or "submit STATE"
    id: str = "attempt-1"


READY = State.VALIDATED_PROPOSAL

_ALL = (
    Situation(
        "ready, and the desk pays",
        READY,
        "COMMITTING, submit attempt-1, COMMITTED; returned COMMITTED",
        "COMMITTING stands in the row before anything is submitted, the outcome after it. The key "
        "is the attempt's id.",
    ),
    Situation(
        "ready, and the desk refuses",
        READY,
        "COMMITTING, submit attempt-1, ABORTED; returned ABORTED",
        "A refusal is an answer: it was not paid, and that is known.",
        answer="refused",
    ),
    Situation(
        "ready, and the connection breaks",
        READY,
        "COMMITTING, submit attempt-1, RECONCILING; returned RECONCILING",
        "No answer says neither yes nor no. The row says that it is unknown; nothing is submitted "
        "a second time.",
        answer=ConnectionResetError,
    ),
    Situation(
        "ready, and no answer comes in time",
        READY,
        "COMMITTING, submit attempt-1, RECONCILING; returned RECONCILING",
        "A timeout is an OSError too, and as little of an answer as a broken connection.",
        answer=TimeoutError,
    ),
    Situation(
        "cancelled long ago",
        State.ABORTED,
        "nothing; returned ABORTED",
        "ABORTED is final. Whoever commits now gets the recorded state, and does nothing.",
    ),
    Situation(
        "cancelled at this very moment",
        READY,
        "nothing; returned ABORTED",
        "The row said VALIDATED_PROPOSAL when you looked, and not any more when you set it. Only "
        "what `set` returns says whether the commit is yours.",
        meanwhile="set ABORTED",
    ),
    Situation(
        "another program is committing",
        State.COMMITTING,
        "nothing; returned COMMITTING",
        "Somebody else has begun, and has perhaps submitted. Only who set COMMITTING submits.",
    ),
    Situation(
        "paid already; the commit is delivered again",
        State.COMMITTED,
        "nothing; returned COMMITTED",
        "It is done and on record: the record is the answer to a second delivery.",
    ),
    Situation(
        "its outcome is unknown",
        State.RECONCILING,
        "nothing; returned RECONCILING",
        "An unknown outcome is no permission to submit again. Whoever recovers asks for it.",
    ),
    Situation(
        "half an answer",
        State.PREVIEW,
        "nothing; returned PREVIEW",
        "Nothing is done with a fragment. Only from VALIDATED_PROPOSAL may a commit begin.",
    ),
    Situation(
        "somebody recovers while you wait",
        READY,
        "COMMITTING, submit attempt-1; returned COMMITTED",
        "While you waited, another program asked the desk and wrote down COMMITTED. That is final: "
        "your doubt is out of date, and the row is what you return.",
        answer=TimeoutError,
        meanwhile="submit COMMITTED",
    ),
    Situation(
        "another attempt",
        READY,
        "COMMITTING, submit attempt-7, COMMITTED; returned COMMITTED",
        "Each attempt is a payment of its own, under its own id.",
        id="attempt-7",
    ),
)

#: The cases by their names.
SITUATIONS: dict[str, Situation] = {each.name: each for each in _ALL}


def watched(answer: Answer) -> Callable[[str], Any]:
    """Make a function tell the story of what it does in a case, for `check`."""

    def story(name: str) -> Any:
        case, story = SITUATIONS[name], Story()
        row = Row(case.id, case.state, case.meanwhile, story)
        returned = None
        try:
            returned = answer(row, Desk(case.answer, row, story))
        except SystemExit:  # it would end the learner's kernel
            story.end = story.end or "stopped: it raised SystemExit"
        if not story.end and (returned is UNANSWERED or returned is None):
            return returned
        return story.told(returned)

    return story


def _cases() -> tuple[Case, ...]:
    return tuple(Case(name, (name,), each.story, each.why) for name, each in SITUATIONS.items())


# --- The answer, and known mistakes ---------------------------------------------------------------

OUTCOMES = {"done": "COMMITTED", "refused": "ABORTED", "unknown": "RECONCILING"}


def _said(desk: Desk, key: str, missed: type[Exception] = OSError) -> str:
    try:
        return desk.submit(key)
    except missed:
        return "unknown"


def pay_once(row: Row, desk: Desk) -> str:
    """Begin, submit, write the outcome down; whoever did not begin does nothing."""
    if row.set("VALIDATED_PROPOSAL", "COMMITTING"):
        row.set("COMMITTING", OUTCOMES[_said(desk, row.id)])
    return row.state


def _but(**otherwise: str) -> Answer:
    """Some outcome of the desk is taken for another state."""

    def answer(row: Row, desk: Desk) -> str:
        if row.set("VALIDATED_PROPOSAL", "COMMITTING"):
            row.set("COMMITTING", {**OUTCOMES, **otherwise}[_said(desk, row.id)])
        return row.state

    return answer


def _nothing(row: Row, desk: Desk) -> None:
    pay_once(row, desk)


def _submits_first(row: Row, desk: Desk) -> str:
    if row.state == "VALIDATED_PROPOSAL":
        row.set("VALIDATED_PROPOSAL", OUTCOMES[_said(desk, row.id)])
    return row.state


def _fresh_key(row: Row, desk: Desk) -> str:
    if row.set("VALIDATED_PROPOSAL", "COMMITTING"):
        row.set("COMMITTING", OUTCOMES[_said(desk, f"{row.id} try-1")])
    return row.state


def _fixed_key(row: Row, desk: Desk) -> str:
    if row.set("VALIDATED_PROPOSAL", "COMMITTING"):
        row.set("COMMITTING", OUTCOMES[_said(desk, "attempt-1")])
    return row.state


def _again(row: Row, desk: Desk) -> str:
    if row.set("VALIDATED_PROPOSAL", "COMMITTING"):
        while (said := _said(desk, row.id)) == "unknown":
            pass
        row.set("COMMITTING", OUTCOMES[said])
    return row.state


def _only_connections(row: Row, desk: Desk) -> str:
    if row.set("VALIDATED_PROPOSAL", "COMMITTING"):
        row.set("COMMITTING", OUTCOMES[_said(desk, row.id, ConnectionError)])
    return row.state


def _looks_first(row: Row, desk: Desk) -> str:
    """It looks, and then acts on what it has seen."""
    if row.state == "VALIDATED_PROPOSAL":
        row.set("VALIDATED_PROPOSAL", "COMMITTING")
        row.set("COMMITTING", OUTCOMES[_said(desk, row.id)])
    return row.state


def _never_looks(row: Row, desk: Desk) -> str:
    row.set("VALIDATED_PROPOSAL", "COMMITTING")
    row.set("COMMITTING", OUTCOMES[_said(desk, row.id)])
    return row.state


def _takes_over(*states: str) -> Answer:
    """It goes on with what is in one of these states as if the commit were its own."""

    def answer(row: Row, desk: Desk) -> str:
        if row.set("VALIDATED_PROPOSAL", "COMMITTING") or row.state in states:
            row.set(row.state, OUTCOMES[_said(desk, row.id)])
        return row.state

    return answer


def _from_a_preview(row: Row, desk: Desk) -> str:
    row.set("PREVIEW", "VALIDATED_PROPOSAL")
    return pay_once(row, desk)


def _writes_over(row: Row, desk: Desk) -> str:
    if row.set("VALIDATED_PROPOSAL", "COMMITTING"):
        said = _said(desk, row.id)
        row.set(row.state, OUTCOMES[said])
    return row.state


def _own_opinion(row: Row, desk: Desk) -> str:
    if not row.set("VALIDATED_PROPOSAL", "COMMITTING"):
        return row.state
    outcome = OUTCOMES[_said(desk, row.id)]
    row.set("COMMITTING", outcome)
    return outcome


#: (the mistake, the answer, the case that must catch it)
_MISTAKES: tuple[tuple[str, Answer, str], ...] = (
    ("it returns nothing", _nothing, "ready, and the desk pays"),
    ("it submits, then writes", _submits_first, "ready, and the desk pays"),
    ("a new key for each try", _fresh_key, "ready, and the desk pays"),
    ("a refusal is a doubt", _but(refused="RECONCILING"), "ready, and the desk refuses"),
    ("no answer, so it failed", _but(unknown="ABORTED"), "ready, and the connection breaks"),
    ("no answer, so all is well", _but(unknown="COMMITTED"), "ready, and the connection breaks"),
    ("no answer, so once more", _again, "ready, and the connection breaks"),
    (
        "a doubt stays in COMMITTING",
        _but(unknown="COMMITTING?"),
        "ready, and the connection breaks",
    ),
    ("a timeout is forgotten", _only_connections, "ready, and no answer comes in time"),
    ("it never looks", _never_looks, "cancelled long ago"),
    ("it looks, then acts", _looks_first, "cancelled at this very moment"),
    ("it takes over", _takes_over("COMMITTING"), "another program is committing"),
    ("a key makes everything safe", _takes_over("RECONCILING"), "its outcome is unknown"),
    ("what parses may be done", _from_a_preview, "half an answer"),
    ("it writes over the record", _writes_over, "somebody recovers while you wait"),
    ("it returns its own opinion", _own_opinion, "somebody recovers while you wait"),
    ("one key for everything", _fixed_key, "another attempt"),
)

EXERCISES = (
    Exercise(
        "06-ex",
        _cases,
        watched(pay_once),
        tuple(Wrong(says, watched(answer), case) for says, answer, case in _MISTAKES),
    ),
)
