"""What a block of a Claude answer is: its kinds, what its start holds, which deltas it takes.

Tables first; `claude.py` is the grammar that uses them. Source: the types of the vendor's Python
SDK 2.14, the beta ones too. A type that is not here is kept as "other", with all its fields.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal

import msgspec

from .events import (
    Attached,
    Event,
    InputDelta,
    Kind,
    Problem,
    SignatureDelta,
    TextDelta,
    ThinkingDelta,
)

__all__ = [
    "ATTACHING",
    "DELTAS",
    "KIND",
    "OTHER",
    "Block",
    "begin",
    "decode_delta",
    "initial",
]

#: Block type -> (our kind, whether the provider runs it). Any other type is "other".
KIND: dict[str, tuple[Kind, bool]] = {
    "text": ("text", False),
    "thinking": ("thinking", False),
    "tool_use": ("tool_call", False),
    "server_tool_use": ("tool_call", True),
    "mcp_tool_use": ("tool_call", True),
}

#: Fields of a block's start that are its content, with what they become. (A tool's `input` is not
#: here: on this wire it starts as {} and comes in deltas.)
INITIAL: dict[str, dict[str, Callable[[str, str], Event]]] = {
    "text": {"text": TextDelta},
    "thinking": {"thinking": ThinkingDelta, "signature": SignatureDelta},
    "tool_use": {},
}

#: Delta type -> (the field that holds it, what it becomes, the kinds of block that take it).
DELTAS: dict[str, tuple[str, Callable[[str, str], Event], tuple[Kind, ...]]] = {
    "text_delta": ("text", TextDelta, ("text",)),
    "thinking_delta": ("thinking", ThinkingDelta, ("thinking",)),
    "signature_delta": ("signature", SignatureDelta, ("thinking",)),
    "input_json_delta": ("partial_json", InputDelta, ("tool_call",)),
}


class _Text(msgspec.Struct, tag="text_delta", gc=False, forbid_unknown_fields=True):
    text: str


class _Input(
    msgspec.Struct,
    tag="input_json_delta",
    gc=False,
    forbid_unknown_fields=True,
    rename={"text": "partial_json"},
):
    text: str


class _Thinking(
    msgspec.Struct,
    tag="thinking_delta",
    gc=False,
    forbid_unknown_fields=True,
    rename={"text": "thinking"},
):
    text: str


class _Delta(msgspec.Struct, gc=False, forbid_unknown_fields=True):
    """Nine frames in ten are this shape; decoding straight into it is four times as fast as a dict.

    Whatever does not fit (another event, an unknown field, a wrong type) takes the general way.
    """

    type: Literal["content_block_delta"]  # not a tag: where there is only one, it may be missing
    index: int
    delta: _Text | _Input | _Thinking


decode_delta = msgspec.json.Decoder(_Delta).decode

#: Kind of block -> (the only hot delta it takes, what that becomes).
HOT: dict[str, tuple[type, Callable[[str, str], Event]]] = {
    "text": (_Text, TextDelta),
    "thinking": (_Thinking, ThinkingDelta),
    "tool_call": (_Input, InputDelta),
}


class Block(msgspec.Struct):
    """An open block: its segment's id, and what it takes."""

    segment: str
    kind: Kind
    name: str  #: the vendor's word for its type
    hot: type[msgspec.Struct] | None
    make: Callable[[str, str], Event]
    given_input: Any = None  # a tool's input that came whole, in the start (a proxy's habit)
    fragments: list[str] = []  # what streamed beside it; msgspec gives each block its own list


#: Block types that are "other" and known: whole values, for the provider or for the next request.
OTHER = frozenset(
    {
        "redacted_thinking",
        "web_search_tool_result",
        "web_fetch_tool_result",
        "code_execution_tool_result",
        "bash_code_execution_tool_result",
        "text_editor_code_execution_tool_result",
        "tool_search_tool_result",
        "container_upload",
        "mcp_tool_result",
        "mcp_tool_listing",
        "advisor_tool_result",
        "compaction",
        "fallback",
    }
)

#: Deltas that add to a block without being its text: whole values, one after the other.
ATTACHING = ("citations_delta", "compaction_delta")

#: Fields of a block's start that have their own place already: (of a known kind, of an other).
SHOWN_ELSEWHERE = (("type", "id", "name", "input"), ("type",))


def begin(segment: str, content: dict[str, Any], started: bool) -> Block:
    """The block that a start announces; `started`: inside an answer, as it should be."""
    name = content.get("type")
    name = name if isinstance(name, str) else "unknown"
    kind = KIND.get(name, ("other", False))[0]
    hot, make = HOT.get(kind, (None, TextDelta))
    given = content.get("input") if kind == "tool_call" else None
    given = None if given in ({}, "") else given
    plain = started and given is None  # else each delta means more than what it appends
    return Block(segment, kind, name, hot if plain else None, make, given)


def initial(block: Block, content: dict[str, Any], at: int) -> tuple[Event, ...]:
    """What a block already holds when it starts, in frame `at`."""
    becomes = INITIAL.get(block.name, {})
    events: list[Event] = []
    for key, value in content.items():
        make = becomes.get(key)
        if make is not None and isinstance(value, str):
            if value:
                events.append(make(block.segment, value))
        elif make is not None and value is not None:
            what = f"the {key} of a {block.name} is {type(value).__name__}, not text"
            events.append(Problem("malformed", "error", what, at))
        elif key not in SHOWN_ELSEWHERE[block.kind == "other"] and (
            block.kind == "other" or value not in (None, [])
        ):
            events.append(Attached(block.segment, key, value))
    return tuple(events)
