"""Recordings of nobody's data, written from intended content: those that the lessons use.

Each is a function of the options of `answer` (`answering.py`): `change_label(wire="gemini")`,
`greeting(style=Style(newline="\\r\\n"))`. `story` is the one answer to compare the wire formats by;
`NOT_MAPPED` says what each of them can't say. Read next: `faults.py`, which breaks recordings.
"""

from __future__ import annotations

from random import Random
from typing import Any

from streamlab.streams.answering import CHUNKING, MODELS, WRITERS, Pace, answer, identified
from streamlab.streams.gaps import NOT_MAPPED, Gap
from streamlab.streams.parts import (
    OtherBlock,
    Part,
    RedactedThinking,
    ServerToolCall,
    ServerToolResult,
    Style,
    Text,
    Thinking,
    ToolCall,
)
from streamlab.streams.random_answers import CITATION, HARD_TEXT, random_answer
from streamlab.streams.recording import Recording

__all__ = [
    "CHUNKING",
    "CITATION",
    "HARD_TEXT",
    "MODELS",
    "NOT_MAPPED",
    "WRITERS",
    "Gap",
    "OtherBlock",
    "Pace",
    "Part",
    "RedactedThinking",
    "ServerToolCall",
    "ServerToolResult",
    "Style",
    "Text",
    "Thinking",
    "ToolCall",
    "answer",
    "change_label",
    "greeting",
    "identified",
    "long_text",
    "parallel_tools",
    "pay_invoice",
    "random_answer",
    "six_events",
    "story",
    "thinking_then_tool",
    "tool_json",
]


def six_events(**options: Any) -> Recording:
    """The smallest whole answer; of Claude six frames, one of each kind."""
    options = {"style": Style(pings=0), "note": "the six events", **options}
    return answer([Text(("Hello!",))], **options)


def greeting(**options: Any) -> Recording:
    """A text answer in five fragments."""
    pieces = ("Hello", "! What", " would you", " like to", " know?")
    return answer([Text(pieces)], **{"note": "a greeting", **options})


#: What both the running example and the story say.
_SAID = Text(("I'll mark", " W-7 as", " ready", " for review."))
_LABEL = ToolCall(
    "change_label", ('{"item"', ': "W', '-7"', ', "label": ', '"Ready', " for rev", 'iew"}')
)
_THOUGHT = Thinking(
    ("W-7 has passed", " its checks,", " so it can", " be reviewed."),
    "c3ludGhldGljLXNpZ25hdHVyZQ==",
)


def change_label(**options: Any) -> Recording:
    """The running example, of Claude 20 frames: a sentence, then a proposal for work item W-7."""
    return answer([_SAID, _LABEL], **{"note": "change_label for W-7", **options})


def story(wire: str = "claude", **options: Any) -> Recording:
    """One answer for all wire formats: thinking, a sentence, then a proposal for W-7."""
    options = {"note": "thinking, text, change_label", **options}
    return answer([_THOUGHT, _SAID, _LABEL], wire=wire, **options)


def pay_invoice(**options: Any) -> Recording:
    """A payment of 100000, whose frame 11 ends with `"amount": 1`."""
    text = Text(("I'll pay", " INV-17."))
    fragments = ('{"invoice": ', '"INV-17"', ', "amount": 1', "00000", ', "currency": "EUR"}')
    call = ToolCall("pay_invoice", fragments)
    return answer([text, call], **{"note": "pay_invoice INV-17", **options})


def parallel_tools(**options: Any) -> Recording:
    """Two calls in one answer."""
    parts: list[Part] = [
        Text(("I'll label", " both.")),
        ToolCall("change_label", {"item": "W-7", "label": "Ready for review"}),
        ToolCall("change_label", {"item": "W-8", "label": "Blocked"}),
    ]
    return answer(parts, **{"note": "two calls of change_label", **options})


def thinking_then_tool(**options: Any) -> Recording:
    """Signed thinking, then a call: what must go back to the API byte for byte."""
    parts: list[Part] = [
        _THOUGHT,
        ToolCall("change_label", {"item": "W-7", "label": "Ready for review"}),
    ]
    return answer(parts, **{"note": "thinking, then change_label", **options})


def long_text(n: int, **options: Any) -> Recording:
    """A text answer of `n` characters."""
    words = Random(n)
    text = "A long answer:"
    pieces = [text]
    size = len(text)
    while size < n:
        pieces.append(" " + words.choice(_WORDS))
        size += len(pieces[-1])
    return answer([Text("".join(pieces)[:n])], **{"note": f"{n} characters of text", **options})


def tool_json(size: int, fragment: int = 8, **options: Any) -> Recording:
    """A call whose input is `size` bytes of JSON rows, in fragments of `fragment` bytes."""
    row = '{"item": "W-%06d", "label": "Ready for review"}, '
    head, tail = '{"rows": [', '{"pad": "%s"}]}'
    rows = max(0, size - len(head) - len(tail) + 2) // len(row % 0)
    text = head + "".join(row % number for number in range(rows))
    text += tail % ("." * max(0, size - len(text) - len(tail) + 2))
    style = Style(fragment=(fragment, fragment), pings=0)
    options = {"style": style, "pace": Pace(gap=0.001), "note": f"{size} bytes of input", **options}
    return answer([ToolCall("import_rows", text)], **options)


_WORDS = ("an", "answer", "comes", "in", "parts", "and", "each", "part", "is", "whole", "last")
