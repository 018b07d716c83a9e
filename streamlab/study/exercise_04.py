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
from streamlab.streams.parts import Text, ToolCall
from streamlab.streams.recording import Recording
from streamlab.study.histories import advice, shown
from streamlab.study.tasks import Case, Exercise, Wrong

__all__ = ["EXERCISE", "next_history"]

replace = msgspec.structs.replace

Block = dict[str, Any]
History = list[dict[str, Any]]


def _cut_call() -> Recording:
    return faults.disconnect(synth.change_label(), after=14)


def _blank_then_call() -> Recording:
    call = ToolCall("change_label", {"item": "W-7", "label": "Ready for review"})
    return synth.answer([Text("\n\n"), call], note="blank text, then change_label")


#: (name, the stream, the places of the blocks that are kept, why)
_CASES: tuple[tuple[str, Callable[[], Recording], tuple[int, ...], str], ...] = (
    (
        "a whole text",
        advice,
        (0,),
        "A whole answer is one more message in the history, and its role is `assistant`.",
    ),
    (
        "interrupted after a sentence",
        lambda: faults.disconnect(advice(), after=5),
        (),
        "It looks whole, but it is not: the history must be as it was before the attempt.",
    ),
    (
        "interrupted before anything came",
        lambda: faults.disconnect(advice(), after=1),
        (),
        "No block came, and no message may be added: one without content is refused.",
    ),
    (
        "interrupted inside a tool call",
        _cut_call,
        (),
        "The text before the call is whole, the answer is not. A turn is kept whole or not at all: "
        "here nothing of it, not even the sentence.",
    ),
    (
        "interrupted after the last block stopped",
        lambda: faults.disconnect(synth.change_label(), after=18),
        (),
        "Every block is whole, and still the answer is not: nobody knows why the model stopped.",
    ),
    (
        "a whole tool call",
        synth.change_label,
        (0, 1),
        "All blocks of a whole answer are kept, in order: the result of a call needs its call.",
    ),
    (
        "signed thinking, then a call",
        synth.thinking_then_tool,
        (0, 1),
        "Thinking is a block like the others, and goes back as it came, with its signature.",
    ),
    (
        "blank text beside a call",
        _blank_then_call,
        (1,),
        "An answer may hold blank text, and a request may not: leave that one block out.",
    ),
    (
        "whole, and nothing in it",
        lambda: synth.answer([]),
        (),
        "This answer is whole and empty. A message without content is refused, so add none.",
    ),
)


CHANGED = (
    "Your function changed the list that it was given. Make a new one: where the next attempt "
    "fails, its retry has to start from the old one."
)


def _asked() -> History:
    return [{"role": "user", "content": "May W-7 be deleted?"}]


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
    return Case(name, (history, shown(outcome.turn), outcome.complete), expected, if_wrong)


def _cases() -> tuple[Case, ...]:
    """The table, and last its first case again, which also looks at the list that was given."""
    cases = [_case(name, stream(), kept, why) for name, stream, kept, why in _CASES]
    again = _case("the list that was given stays as it was", advice(), (0,), CHANGED)
    right = _NewList(again.expected, again.given[0])
    return (*cases, replace(again, expected=right))


def _text(block: Block) -> bool:
    return bool(block["type"] == "text")


def _not_blank(blocks: list[Block]) -> list[Block]:
    return [block for block in blocks if not _text(block) or block["text"].strip()]


def _with(history: History, blocks: list[Block]) -> History:
    return [*history, {"role": "assistant", "content": blocks}]


def next_history(history: History, blocks: list[Block], complete: bool) -> History:
    """The solution: a whole turn and what may be sent of it, or the history as it was."""
    kept = _not_blank(blocks)
    return _with(history, kept) if complete and kept else history


def _in_place(history: History, blocks: list[Block], complete: bool) -> History:
    if complete and _not_blank(blocks):
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


def _whole_blocks(history: History, blocks: list[Block], complete: bool) -> History:
    kept = [block for block in blocks if _looks_whole(block)]
    return _with(history, kept) if kept else history


EXERCISE = Exercise(
    "04-ex",
    _cases,
    next_history,
    (
        Wrong(
            "what is shown is kept",
            lambda history, blocks, complete: _with(history, blocks),
            "interrupted after a sentence",
        ),
        Wrong("nothing is kept", lambda history, blocks, complete: history, "a whole text"),
        Wrong(
            "whatever looks whole is kept",
            _whole_blocks,
            "interrupted after a sentence",
        ),
        Wrong(
            "of an interrupted answer, all but its last block",
            lambda history, blocks, complete: next_history(
                history, blocks if complete else blocks[:-1], True
            ),
            "interrupted inside a tool call",
        ),
        Wrong(
            "of an interrupted answer, its text",
            lambda history, blocks, complete: next_history(
                history, blocks if complete else [b for b in blocks if _text(b)], True
            ),
            "interrupted after a sentence",
        ),
        Wrong(
            "text is all that is kept",
            lambda history, blocks, complete: next_history(
                history, [block for block in blocks if _text(block)], complete
            ),
            "a whole tool call",
        ),
        Wrong(
            "thinking is dropped",
            lambda history, blocks, complete: next_history(
                history, [b for b in blocks if b["type"] != "thinking"], complete
            ),
            "signed thinking, then a call",
        ),
        Wrong(
            "the question goes with the answer",
            lambda history, blocks, complete: (
                next_history(history, blocks, True) if complete else history[:-1]
            ),
            "interrupted after a sentence",
        ),
        Wrong(
            "a note stands where the answer was to be",
            lambda history, blocks, complete: next_history(
                history, blocks if complete else [{"type": "text", "text": "(cut)"}], True
            ),
            "interrupted after a sentence",
        ),
        Wrong(
            "where nothing came, nothing was interrupted",
            lambda history, blocks, complete: (
                history if blocks and not complete else _with(history, _not_blank(blocks))
            ),
            "interrupted before anything came",
        ),
        Wrong(
            "a call counts as soon as its own input is whole",
            lambda history, blocks, complete: next_history(
                history, blocks, complete or _has_whole_call(blocks)
            ),
            "interrupted after the last block stopped",
        ),
        Wrong(
            "blank text is kept too",
            lambda history, blocks, complete: (
                _with(history, blocks) if complete and blocks else history
            ),
            "blank text beside a call",
        ),
        Wrong(
            "a message without content",
            lambda history, blocks, complete: (
                _with(history, _not_blank(blocks)) if complete else history
            ),
            "whole, and nothing in it",
        ),
        Wrong(
            "the list that was given is changed",
            _in_place,
            "the list that was given stays as it was",
        ),
        Wrong(
            "it returns nothing where nothing is kept",
            lambda history, blocks, complete: (
                next_history(history, blocks, True) if complete else None
            ),
            "interrupted after a sentence",
        ),
    ),
)
