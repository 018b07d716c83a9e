"""Lesson 09's exercise: a guard around an SDK, tried on everything that the SDKs handed over.

A learner's `may_act` is given what a program holds (`Got`) and the stop reason that says "ended as
meant" on its wire. `everywhere` puts it to the whole report card, measured here and now. The truth
is known to the card alone: which call was meant. So what is expected is a comparison, and no
opinion about any SDK. A case is one kind of outcome, with all its squares.

Where a client hands over exactly what it hands over when nothing is wrong, no guard is blamed:
that is a limit of what a guard can see.

Read next: `report_card.py`, which measures; `questions.py`, which checks an answer.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

from streamlab.study.card_streams import INPUT, STOP, TEXT, TOOL
from streamlab.study.clients import Call, Got
from streamlab.study.tasks import UNANSWERED, Case, Exercise, Wrong

__all__ = ["EXERCISES", "Outcome", "everywhere", "may_act", "outcomes"]

Guard = Callable[[Got, str], Any]


class Outcome(NamedTuple):
    """One thing that was handed to a program."""

    name: str  #: of the fault and the client
    got: Got
    done: str  #: the stop reason that means "ended as meant" there

    @property
    def meant(self) -> bool:
        """Whether it is the call that was meant, and said to be whole."""
        right = [(call.name, call.input) for call in self.got.calls] == [(TOOL, INPUT)]
        return right and self.got.stop == self.done and not self.got.error


def may_act(got: Got, done: str) -> bool:
    """The solution: it ended as meant, and every call is one that can be run as it stands."""
    if got.error or got.stop != done or not got.calls:
        return False
    return all(_runnable(call) for call in got.calls)


def _runnable(call: Call) -> bool:
    return bool(call.name) and isinstance(call.input, dict) and "\ufffd" not in str(call.input)


def outcomes() -> tuple[Outcome, ...]:
    """Everything that a client handed over on the whole card."""
    from streamlab.study.report_card import measured  # here: a browser has no sockets

    return tuple(
        Outcome(f"{each.fault} by {each.client}", each.got, STOP[each.wire])
        for each in measured().cells
        if each.got is not None
    )


def everywhere(guard: Guard) -> Callable[[tuple[Outcome, ...]], Any]:
    """The guard, put to many outcomes: on how many it would act, in words."""

    def counted(given: tuple[Outcome, ...]) -> Any:
        answers = [guard(each.got, each.done) for each in given]
        if any(answer is UNANSWERED for answer in answers):
            return UNANSWERED
        if all(answer is None for answer in answers) and any(each.meant for each in given):
            return None  # a forgotten return; elsewhere `got.calls[0].name and …` is a plain no
        return _words(given, [bool(answer) for answer in answers])

    return counted


def _words(given: tuple[Outcome, ...], acted: list[bool]) -> str:
    if all(acted):
        return f"acts on all {len(acted)}"
    if not any(acted):
        return f"acts on none of {len(acted)}"
    first, other = given[acted.index(True)].name, given[acted.index(False)].name
    return f"acts on {sum(acted)} of {len(acted)}: on {first}, but not on {other}"


# --- The kinds of outcome -------------------------------------------------------------------------

#: Each kind in turn takes what is left: its name, which outcomes are of it, and what is said to who
#: gets one wrong.
WHOLE, RAISED, NO_STOP, OTHER_STOP = (
    "a whole answer",
    "an exception",
    "no stop reason",
    "another stop reason",
)
NAMELESS, NO_JSON, REPLACED = (
    "a call without a name",
    "an input that is no JSON",
    "a byte that was no UTF-8",
)
_KINDS: tuple[tuple[str, Callable[[Outcome], bool], str], ...] = (
    (
        WHOLE,
        lambda each: each.meant,
        "The call is whole: its input is JSON, and the stop reason says that the answer ended as "
        "meant. A guard that refuses this refuses every payment. Each wire has its own reason.",
    ),
    (
        RAISED,
        lambda each: bool(each.got.error),
        "An exception came out of the SDK, so the program has no answer in its hands.",
    ),
    (
        NO_STOP,
        lambda each: each.got.stop is None,
        "No stop reason came, so nobody has said that the answer is over. More of it may have "
        "been on its way, however whole the call looks.",
    ),
    (
        OTHER_STOP,
        lambda each: each.got.stop != each.done,
        "The answer ended, and not as it was meant to: the tokens ran out. It may have ended "
        "inside the call.",
    ),
    (
        NAMELESS,
        lambda each: not each.got.calls[0].name,
        "It ended as meant, but the call has no name: what is to be run?",
    ),
    (
        NO_JSON,
        lambda each: not isinstance(each.got.calls[0].input, dict),
        "It ended as meant, but the call's input is no JSON: `input` is None.",
    ),
    (
        REPLACED,
        lambda each: "\ufffd" in str(each.got.calls[0].input),
        "It ended as meant, and the input is an object. But a byte of it was no UTF-8, and the SDK "
        "put U+FFFD, the replacement character, in its place. Whose invoice is that?",
    ),
)

#: Two that the card has not: an honest payment of another amount, and an honest answer of text.
OTHER, TALK = "another payment", "an answer without a call"
_MORE = (
    (
        Outcome(
            OTHER, Got(TEXT, (Call(TOOL, {"invoice": "INV-18", "amount": 250}),), "STOP"), "STOP"
        ),
        True,
        "An honest payment, of another amount. Who knows the right amount beforehand needs no "
        "model.",
    ),
    (
        Outcome(TALK, Got("It is paid already.", (), "STOP"), "STOP"),
        False,
        "It ended as meant, and there is nothing in it to act on. On two of the four wires an "
        "answer of text has the same stop reason as a call.",
    ),
)


def kinds(given: Iterable[Outcome]) -> dict[str, tuple[Outcome, ...]]:
    """The outcomes by their kinds. Raises `StopIteration` for one that is of no kind."""
    found: dict[str, list[Outcome]] = {name: [] for name, _, _ in _KINDS}
    for each in given:
        found[next(name for name, fits, _ in _KINDS if fits(each))].append(each)
    return {name: tuple(members) for name, members in found.items()}


def _case(name: str, given: tuple[Outcome, ...], acts: bool, why: str) -> Case:
    return Case(name, (given,), _words(given, [acts] * len(given)), why)


def _cases() -> tuple[Case, ...]:
    found = kinds(outcomes())
    card = [_case(name, found[name], name == WHOLE, why) for name, _, why in _KINDS if found[name]]
    more = [_case(each.name, (each,), acts, why) for each, acts, why in _MORE]
    return (*card, *more)


# --- Known mistakes -------------------------------------------------------------------------------


def _dicts(got: Got) -> bool:
    return all(isinstance(call.input, dict) for call in got.calls)


def _ended(got: Got, done: str) -> bool:
    return not got.error and got.stop == done and bool(got.calls)


def _inputs_full(got: Got) -> bool:
    return bool(got.calls) and all(call.input for call in got.calls)


#: (the mistake, the answer, the case that must catch it)
_MISTAKES: tuple[tuple[str, Guard, str], ...] = (
    ("it returns nothing", lambda got, done: None, WHOLE),
    ("never", lambda got, done: False, WHOLE),
    ("always", lambda got, done: True, RAISED),
    ("no exception, so it is right", lambda got, done: not got.error, NO_STOP),
    ("there is a call", lambda got, done: bool(got.calls), NO_STOP),
    ("the input is JSON", lambda got, done: bool(got.calls) and _dicts(got), NO_STOP),
    ("the input is not empty", lambda got, done: _inputs_full(got), NO_STOP),
    (
        "it has an amount",
        lambda got, done: any("amount" in (call.input or ()) for call in got.calls),
        NO_STOP,
    ),
    (
        "there is a stop reason",
        lambda got, done: bool(got.stop and got.calls) and _dicts(got),
        OTHER_STOP,
    ),
    (
        "the stop reason of one vendor",
        lambda got, done: got.stop == "tool_use" and may_act(got, done),
        WHOLE,
    ),
    ("the stop reason alone", lambda got, done: _ended(got, done), NAMELESS),
    (
        "a name and any input",
        lambda got, done: _ended(got, done) and all(call.name for call in got.calls),
        NO_JSON,
    ),
    ("a call without a name", lambda got, done: _ended(got, done) and _dicts(got), NAMELESS),
    (
        "whatever the SDK decoded",
        lambda got, done: (
            _ended(got, done) and _dicts(got) and all(call.name for call in got.calls)
        ),
        REPLACED,
    ),
    (
        "the amount that was meant",
        lambda got, done: may_act(got, done) and got.calls[0].input == INPUT,
        OTHER,
    ),
    (
        "all of no calls",
        lambda got, done: (
            not got.error and got.stop == done and all(_runnable(call) for call in got.calls)
        ),
        TALK,
    ),
)

EXERCISES = (
    Exercise(
        "09-ex",
        _cases,
        everywhere(may_act),
        tuple(Wrong(says, everywhere(answer), case) for says, answer, case in _MISTAKES),
    ),
)
