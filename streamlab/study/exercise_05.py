"""Lesson 05's exercise: twelve sequences in words; where does each leave the attempt?

The lesson's own eight are in none of them: here one knows the table and has to judge what an event
*is* for it. A learner's function is given a letter and returns a state's name. What is expected is
written out by hand; a test leads the consumer's own parts through all twelve.

Read next: `questions.py`, which checks an answer; `../consumer/attempt.py`, the table.
"""

from __future__ import annotations

import textwrap
from collections.abc import Callable

import msgspec

from streamlab.consumer.attempt import State
from streamlab.study.tasks import Case, Exercise, Wrong

__all__ = ["EXERCISES", "SEQUENCES", "Sequence", "tell"]

Answer = Callable[[str], object]

WIDTH = 72  #: of what is printed, in characters: it is read in a narrow window too


class Sequence(msgspec.Struct, frozen=True):
    """Something that happened, in words, and where the attempt is then."""

    name: str
    says: str
    state: State
    why: str


_ALL = (
    Sequence(
        "an early callback",
        "Inside the tool's block a worker calls back: completed. It has not read the whole "
        "sequence. Then the connection drops.",
        State.INVALID,
        "The attempt was already MESSAGE_COMPLETE, so its end asks the gates, and the first one "
        "sees an open block. Only the reader may say `completed`, after a whole sequence.",
    ),
    Sequence(
        "an error after the marker",
        "message_stop has come. Before the connection ends, an error event comes.",
        State.INVALID,
        "After the marker the machine waits for the end. Then the gates are asked, and the first "
        "one looks at what came behind the marker too.",
    ),
    Sequence(
        "the marker twice",
        "message_stop comes, and an equal message_stop after it, both on the wire. The connection "
        "ends. The call is in order, and permitted.",
        State.VALIDATED_PROPOSAL,
        "A second, equal stop contradicts nothing. It is noted, and every gate passes.",
    ),
    Sequence(
        "an unknown delta",
        "Inside the tool's block comes a delta of a kind that is not known here. All the rest is "
        "as it should be, up to the end.",
        State.HELD,
        "It may belong to the input, and it may not: nobody can prove it. That is an ambiguity, "
        "and nothing is guessed. An unknown event outside of the call would only be kept.",
    ),
    Sequence(
        "two calls",
        "A whole answer makes two calls. The first one is in order; the tool of the second is not "
        "on our list.",
        State.HELD,
        "One gate stops all calls of an answer. And another policy might permit this tool, so the "
        "answer is held; nothing in it is wrong.",
    ),
    Sequence(
        "no record",
        "The commit was submitted, and no answer came back. The program asks, and there is no "
        "record.",
        State.ABORTED,
        "The key is closed, so what is still on its way will be refused. From then on it is true "
        "that no change was made.",
    ),
    Sequence(
        "a late stop",
        "The commit has begun. Somebody presses stop. Then the answer comes: the change is on "
        "record.",
        State.COMMITTED,
        "From COMMITTING on, a cancellation comes too late and is refused. What happened to the "
        "effect decides.",
    ),
    Sequence(
        "a second try",
        "The commit was submitted, and no answer came back. The program commits once more. Nobody "
        "has asked for the record.",
        State.RECONCILING,
        "A doubt is no permission to submit again: RECONCILING has no `commit` in its row. It is "
        "left only by asking.",
    ),
    Sequence(
        "only text",
        "A whole answer of text, without a call; its stop reason is end_turn. The connection ends.",
        State.MESSAGE_COMPLETE,
        "It is complete and may be kept. There is nothing in it to act on, so it stays where it "
        "is, and that is no failure.",
    ),
    Sequence(
        "a reset after the marker",
        "The connection is reset right after message_stop. The call is in order, and permitted.",
        State.VALIDATED_PROPOSAL,
        "The marker came, so the answer was whole before the connection broke. How the connection "
        "ended does not matter any more.",
    ),
    Sequence(
        "nothing but pings",
        "The tool's block has stopped. From then on only pings come, until our own limit on "
        "seconds is passed.",
        State.INCOMPLETE,
        "We stopped reading before the marker. Nothing that came was wrong; there is only too "
        "little of it.",
    ),
    Sequence(
        "an eager commit",
        "The tool's block has stopped, and its input is valid. Somebody commits. The stream is "
        "still open.",
        State.PREVIEW,
        "PREVIEW has no `commit` in its row, so it is refused. A refusal is no failure of the "
        "attempt: it goes on where it was.",
    ),
)

#: The twelve by their letters.
SEQUENCES: dict[str, Sequence] = dict(zip("abcdefghijkl", _ALL, strict=True))


def solution(case: str) -> str:
    """The state that each sequence leads to."""
    return str(SEQUENCES[case].state)


def tell(answer: Answer) -> None:
    """Print the twelve, and the reason under each that is answered rightly."""
    for letter, each in SEQUENCES.items():
        print(_filled(f"{letter}  {each.says}"))
        if _given(answer, letter) == each.state:
            print(_filled(f"   {each.state}. {each.why}"))


def _filled(text: str) -> str:
    return textwrap.fill(text, WIDTH, subsequent_indent="   ")


def _given(answer: Answer, letter: str) -> object:
    try:
        return answer(letter)
    except Exception:  # `check` tells what a learner's function raised
        return None


def _title(letter: str) -> str:
    return f"{letter}: {SEQUENCES[letter].name}"


def _cases() -> tuple[Case, ...]:
    return tuple(
        Case(_title(letter), (letter,), str(each.state), each.why)
        for letter, each in SEQUENCES.items()
    )


# --- Known mistakes -------------------------------------------------------------------------------


def _but(**wrong: State) -> Callable[[str], str]:
    """An answer that takes some of the sequences otherwise."""
    return lambda case: str(wrong.get(case, SEQUENCES[case].state))


HELD, INVALID = State.HELD, State.INVALID
INCOMPLETE, VALIDATED = State.INCOMPLETE, State.VALIDATED_PROPOSAL

#: (the mistake, the answer, the letter of the case that must catch it)
_MISTAKES: tuple[tuple[str, Answer, str], ...] = (
    ("it returns nothing", lambda case: None, "a"),
    ("always a preview", lambda case: "PREVIEW", "a"),
    ("everything is held", lambda case: "HELD", "a"),
    ("whoever says so completes it", _but(a=VALIDATED), "a"),
    ("what comes after the marker does not count", _but(b=VALIDATED), "b"),
    ("an error ends it as if the connection had ended", _but(b=INCOMPLETE), "b"),
    ("whatever is unexpected is invalid", _but(c=INVALID, d=INVALID, e=INVALID), "c"),
    ("what is not known is ignored", _but(d=VALIDATED), "d"),
    ("the calls that pass are carried out", _but(e=VALIDATED), "e"),
    ("a gate that does not pass makes it invalid", _but(e=INVALID), "e"),
    ("without a record the doubt goes on", _but(f=State.RECONCILING), "f"),
    ("a cancellation always wins", _but(g=State.ABORTED), "g"),
    ("no answer, so try again", _but(h=State.COMMITTING), "h"),
    ("no answer means that it failed", _but(h=State.ABORTED), "h"),
    ("an answer without a call is not acceptable", _but(i=HELD), "i"),
    ("a connection that breaks leaves it incomplete", _but(j=INCOMPLETE), "j"),
    ("a limit is a broken rule", _but(k=INVALID), "k"),
    ("a valid input may be committed", _but(l=State.COMMITTED), "l"),
)

EXERCISES = (
    Exercise(
        "05-ex",
        _cases,
        solution,
        tuple(Wrong(says, answer, _title(letter)) for says, answer, letter in _MISTAKES),
    ),
)
