"""The exercise of lesson 04: the history for the next request, its cases, and what people write.

The blocks of each case are a real recording's, as they stand on the screen; what is to be kept of
them is said here by hand, and a test holds it to `Conversation.keep`.

Read next: `lesson_04.py`, the questions before it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec

from streamlab.analysis.judge import judge
from streamlab.streams import faults, synth
from streamlab.streams.parts import Part, Style, Text, Thinking, ToolCall
from streamlab.streams.recording import Recording
from streamlab.study.histories import shown
from streamlab.study.tasks import Case, Exercise, Wrong

__all__ = ["EXERCISE", "next_history"]

replace = msgspec.structs.replace

Block = dict[str, Any]
History = list[dict[str, Any]]


#: The stop reasons at which an answer is kept; at every other one it is held.
FINE = ("end_turn", "stop_sequence", "tool_use")

HELLO, CALL = Text(("Yes.", " Or no.")), ToolCall("pay", ('{"n"', ": 1}"), "t1")


def _answer(*parts: Part, reason: str | None = None) -> Recording:
    """A small answer: where a check fails, all of it is printed."""
    return synth.answer(parts, reason, style=Style(pings=0))


#: (name, the stream, the places of the blocks that are kept, why)
_CASES: tuple[tuple[str, Callable[[], Recording], tuple[int, ...], str], ...] = (
    (
        "a whole text",
        lambda: _answer(HELLO),
        (0,),
        "A whole answer is one more message in the history, and its role is `assistant`.",
    ),
    (
        "a whole text, ended by a stop sequence",
        lambda: _answer(HELLO, reason="stop_sequence"),
        (0,),
        "You asked the model to stop at this sequence, and it did: the answer is as you wanted it.",
    ),
    (
        "interrupted after a sentence",
        lambda: faults.disconnect(_answer(HELLO), after=3),
        (),
        "It looks whole, but it is not: the history must be as it was before the attempt.",
    ),
    (
        "interrupted before anything came",
        lambda: faults.disconnect(_answer(HELLO), after=1),
        (),
        "No block came, and no message may be added: one without content is refused.",
    ),
    (
        "interrupted inside a tool call",
        lambda: faults.disconnect(_answer(Text(("OK",)), CALL), after=7),
        (),
        "The text before the call is whole, the answer is not. A turn is kept whole or not at all: "
        "here nothing of it, not even the sentence.",
    ),
    (
        "interrupted just before `message_stop`",
        lambda: faults.disconnect(_answer(CALL), after=7),
        (),
        "Every block is whole, and there is a reason. But the message never said that it was over.",
    ),
    (
        "cut short by `max_tokens`",
        lambda: faults.token_limit(_answer(HELLO), after=3),
        (),
        "The message is whole, the answer is not: the reason says that it ran into the limit.",
    ),
    (
        "refused halfway",
        lambda: faults.refuse(_answer(HELLO), after=3),
        (),
        "The message is whole, and the answer was broken off. Keep what ended with a reason from "
        "the list, and nothing else: there are more reasons than one remembers.",
    ),
    (
        "paused",
        lambda: faults.pause(_answer(HELLO), after=3),
        (),
        "The provider paused a long turn: it is not over. To have it continued is an operation of "
        "its own.",
    ),
    (
        "a whole tool call",
        lambda: _answer(Text(("OK",)), CALL),
        (0, 1),
        "All blocks of a whole answer are kept, in order: the result of a call needs its call.",
    ),
    (
        "signed thinking, then a call",
        lambda: _answer(Thinking(("Hm",), "s1"), CALL),
        (0, 1),
        "Thinking is a block like the others, and goes back as it came, with its signature.",
    ),
    (
        "blank text beside a call",
        lambda: _answer(Text(("\n",)), CALL),
        (1,),
        "An answer may hold blank text, and a request may not: leave that one block out.",
    ),
    (
        "whole, and nothing in it",
        lambda: _answer(),
        (),
        "This answer is whole and empty. A message without content is refused, so add none.",
    ),
)


CHANGED = (
    "Your function changed the list that it was given. Make a new one: where the next attempt "
    "fails, its retry has to start from the old one."
)


def _asked() -> History:
    return [{"role": "user", "content": "Hi"}]


class _NewList(list[dict[str, Any]]):
    """A history that is right only while the one it was made from is as it was."""

    def __init__(self, history: History, old: History) -> None:
        super().__init__(history)
        self._old, self._was = old, [*old]

    def __eq__(self, other: object) -> bool:
        return self._old == self._was and list.__eq__(self, other)

    __hash__ = None  # as of every list


def _case(name: str, stream: Recording, kept: tuple[int, ...], if_wrong: str) -> Case:
    outcome, history = judge(stream), _asked()
    blocks = shown(outcome.turn)
    message = {"role": "assistant", "content": [blocks[place] for place in kept]}
    expected = [*_asked(), *([message] if kept else [])]
    given = (history, blocks, outcome.complete, outcome.turn.facts.stop_reason)
    return Case(name, given, expected, if_wrong)


def _cases() -> tuple[Case, ...]:
    """The table, and last its first case again, which also looks at the list that was given."""
    cases = [_case(name, stream(), kept, why) for name, stream, kept, why in _CASES]
    again = _case("the list that was given stays as it was", _answer(HELLO), (0,), CHANGED)
    right = _NewList(again.expected, again.given[0])
    return (*cases, replace(again, expected=right))


def _text(block: Block) -> bool:
    return bool(block["type"] == "text")


def _not_blank(blocks: list[Block]) -> list[Block]:
    return [block for block in blocks if not _text(block) or block["text"].strip()]


def _with(history: History, blocks: list[Block]) -> History:
    return [*history, {"role": "assistant", "content": blocks}]


def next_history(
    history: History, blocks: list[Block], complete: bool, reason: str | None
) -> History:
    """The solution: a whole turn and what may be sent of it, or the history as it was."""
    kept = _not_blank(blocks)
    return _with(history, kept) if complete and reason in FINE and kept else history


def _keep(history: History, blocks: list[Block]) -> History:
    return next_history(history, blocks, True, "end_turn")


def _in_place(history: History, blocks: list[Block], complete: bool, reason: str | None) -> History:
    if complete and reason in FINE and _not_blank(blocks):
        history.append({"role": "assistant", "content": _not_blank(blocks)})
    return history


def _looks_whole(block: Block) -> bool:
    """What one can tell by looking at a block."""
    fine = {
        "text": lambda: bool(block["text"].strip()),
        "thinking": lambda: bool(block["signature"]),
        "tool_use": lambda: isinstance(block["input"], dict),
    }
    return fine[block["type"]]()


def _has_whole_call(blocks: list[Block]) -> bool:
    return any(block["type"] == "tool_use" and _looks_whole(block) for block in blocks)


EXERCISE = Exercise(
    "04-ex",
    _cases,
    next_history,
    (
        Wrong(
            "what is shown is kept",
            lambda h, b, whole, why: _with(h, b),
            "interrupted after a sentence",
        ),
        Wrong(
            "nothing is kept",
            lambda h, b, whole, why: h,
            "a whole text",
        ),
        Wrong(
            "a stop sequence is no end",
            lambda h, b, whole, why: next_history(
                h, b, whole and why in ("end_turn", "tool_use"), why
            ),
            "a whole text, ended by a stop sequence",
        ),
        Wrong(
            "whatever looks whole is kept",
            lambda h, b, whole, why: _keep(h, [each for each in b if _looks_whole(each)]),
            "interrupted after a sentence",
        ),
        Wrong(
            "of an interrupted answer, all but its last block",
            lambda h, b, whole, why: next_history(h, b, whole, why) if whole else _keep(h, b[:-1]),
            "interrupted inside a tool call",
        ),
        Wrong(
            "of an interrupted answer, its text",
            lambda h, b, whole, why: (
                next_history(h, b, whole, why)
                if whole
                else _keep(h, [each for each in b if _text(each)])
            ),
            "interrupted after a sentence",
        ),
        Wrong(
            "the reason alone decides",
            lambda h, b, whole, why: next_history(h, b, True, why),
            "interrupted just before `message_stop`",
        ),
        Wrong(
            "the marker alone decides",
            lambda h, b, whole, why: _keep(h, b) if whole else h,
            "cut short by `max_tokens`",
        ),
        Wrong(
            "of all reasons, `max_tokens` alone is looked for",
            lambda h, b, whole, why: _keep(h, b) if whole and why != "max_tokens" else h,
            "refused halfway",
        ),
        Wrong(
            "a pause is an end",
            lambda h, b, whole, why: _keep(h, b) if whole and why in (*FINE, "pause_turn") else h,
            "paused",
        ),
        Wrong(
            "text is all that is kept",
            lambda h, b, whole, why: next_history(
                h, [each for each in b if _text(each)], whole, why
            ),
            "a whole tool call",
        ),
        Wrong(
            "thinking is dropped",
            lambda h, b, whole, why: next_history(
                h, [each for each in b if each["type"] != "thinking"], whole, why
            ),
            "signed thinking, then a call",
        ),
        Wrong(
            "the question goes with the answer",
            lambda h, b, whole, why: next_history(h, b, True, why) if whole else h[:-1],
            "interrupted after a sentence",
        ),
        Wrong(
            "a note stands where the answer was to be",
            lambda h, b, whole, why: (
                next_history(h, b, True, why)
                if whole
                else _with(h, [{"type": "text", "text": "(cut)"}])
            ),
            "interrupted after a sentence",
        ),
        Wrong(
            "where nothing came, nothing was interrupted",
            lambda h, b, whole, why: next_history(h, b, whole, why) if b else _with(h, b),
            "interrupted before anything came",
        ),
        Wrong(
            "a call counts as soon as its own input is whole",
            lambda h, b, whole, why: next_history(h, b, whole or _has_whole_call(b), why),
            "interrupted just before `message_stop`",
        ),
        Wrong(
            "blank text is kept too",
            lambda h, b, whole, why: _with(h, b) if whole and why in FINE and b else h,
            "blank text beside a call",
        ),
        Wrong(
            "a message without content",
            lambda h, b, whole, why: _with(h, _not_blank(b)) if whole and why in FINE else h,
            "whole, and nothing in it",
        ),
        Wrong(
            "the list that was given is changed",
            _in_place,
            "the list that was given stays as it was",
        ),
        Wrong(
            "it returns nothing where nothing is kept",
            lambda h, b, whole, why: next_history(h, b, True, why) if whole else None,
            "interrupted after a sentence",
        ),
    ),
)
