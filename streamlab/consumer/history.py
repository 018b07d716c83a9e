"""A history as a request holds it: a turn as content blocks, and the check that it would be taken.

Messages are in the form of the Messages API: a role, and a list of content blocks. A request whose
history breaks its rules is refused as a whole, and so is every later one: the mistake stays in it.
So the check names the turn, the message and the block.

Read next: `conversation.py`, which lets no such history come about.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from copy import deepcopy
from typing import Any

import msgspec

from streamlab.consumer.turn import Segment, Turn

__all__ = ["Block", "Message", "Objection", "blocks_of", "content", "objections", "wrong_blocks"]

Message = dict[str, Any]
Block = dict[str, Any]


def content(turn: Turn) -> list[Block]:
    """A whole turn as content blocks, in order; thinking and its signature byte for byte.

    Blank text is left out (an answer may hold some, a request may not), unless it is signed; so is
    what the vendor does not want back, and any choice but the first. Nothing in the result is
    shared with the turn.
    """
    return deepcopy([_block(segment) for segment in turn.segments if _goes_back(segment)])


def _goes_back(segment: Segment) -> bool:
    blank = segment.kind == "text" and not segment.text.strip() and not segment.signature
    return segment.start.returned and not segment.start.choice and not blank


def _block(segment: Segment) -> Block:
    """One segment; what was attached comes first, so it can replace nothing."""
    signed = {"signature": segment.signature} if segment.signature else {}
    return {**segment.attached, **signed, **SHAPES[segment.kind](segment)}


#: Segment kind -> its content block. A call that the client runs has one type, whatever the
#: vendor's: the check looks for its result.
SHAPES: dict[str, Callable[[Segment], Block]] = {
    "text": lambda s: {"type": "text", "text": s.text},
    "thinking": lambda s: {
        "type": s.start.type or "thinking",
        "thinking": s.text,
        "signature": s.signature,
    },
    "tool_call": lambda s: {
        "type": s.start.type if s.start.server else "tool_use",
        "id": s.start.call_id,
        "name": s.start.name,
        "input": s.input,
    },
    "other": lambda s: {"type": s.start.type},
}


# --- The check ------------------------------------------------------------------------------------


class Objection(msgspec.Struct, frozen=True):
    """One reason for which a history would be refused; `str()` names the place."""

    message: int  #: 1 for the first
    role: str
    turn: int  #: 1 for the first: a turn begins with what the user says
    rule: str
    says: str

    def __str__(self) -> str:
        return f"turn {self.turn}, message {self.message} ({self.role}): {self.says}"


#: (rule, what is wrong)
Wrong = tuple[str, str]


def objections(messages: Sequence[Message]) -> tuple[Objection, ...]:
    """Everything for which these messages would be refused, in order; empty where all is well.

    It takes messages from anywhere, also hand-made ones whose `content` is only a text. These are
    the Messages API's rules as its documentation and its error messages have them; not all of them.
    """
    found: list[Objection] = []
    turn, role, asked, known = 0, "", list[str](), set[str]()
    for number, message in enumerate(messages, 1):
        role = str(message.get("role"))[:20] if isinstance(message, dict) else "none"
        blocks = blocks_of(message)
        after = blocks_of(messages[number]) if number < len(messages) else []
        turn += role == "user" and not _ids(blocks, "tool_result")
        wrong = (
            *_wrong_message(role, message, number == 1),
            *wrong_blocks(role, blocks),
            *_wrong_calls(blocks, after, known),
            *_wrong_results(blocks, asked),
        )
        found += [Objection(number, role, max(turn, 1), *each) for each in wrong]
        asked = _ids(blocks, "tool_use")
    if role == "assistant":
        says = "the model's own words come last, and newer models refuse to go on from them"
        found.append(Objection(len(messages), role, max(turn, 1), "last", says))
    return tuple(found)


def blocks_of(message: Any) -> list[Block]:
    """The content of a message as blocks; a text is one block of text."""
    held = message.get("content") if isinstance(message, dict) else None
    if isinstance(held, str):
        return [{"type": "text", "text": held}]
    return held if isinstance(held, list) else []


def _type(block: Any) -> str:
    name = block.get("type") if isinstance(block, dict) else None
    return name if isinstance(name, str) else ""


def _ids(blocks: list[Block], type: str) -> list[str]:
    """The ids of the calls in a message, or those that its results name."""
    name = "id" if type == "tool_use" else "tool_use_id"
    return [str(block.get(name))[:100] for block in blocks if _type(block) == type]


def _wrong_message(role: str, message: Any, first: bool) -> Iterator[Wrong]:
    if role not in ("user", "assistant", "system"):
        yield "role", "its role is none of user, assistant, system"
    elif role == "assistant" and first:
        yield "first", "a conversation begins with the user"
    try:
        msgspec.json.encode(message)
    except UnicodeEncodeError:
        yield "half a character", "it holds half a character, which cannot be sent"
    except (TypeError, ValueError, OverflowError, RecursionError):
        yield "no JSON", "it cannot be written as JSON"


def wrong_blocks(role: str, blocks: list[Block]) -> Iterator[Wrong]:
    """What is wrong with the blocks of one message, whatever stands around it."""
    if not blocks:
        yield "empty", "it has no content"
    for number, block in enumerate(blocks, 1):
        whole, rule, says = CHECKS.get(_type(block), ANY)
        if not whole(block):
            yield rule, f"block {number}: {says}"
        if ONLY_IN.get(_type(block), role) != role:
            yield "misplaced", f"block {number}: a {_type(block)} belongs to the other role"
    if role == "assistant" and blocks and _type(blocks[-1]) in ("thinking", "redacted_thinking"):
        yield "ends in thinking", "it ends in thinking: the answer itself is missing"


def _wrong_calls(blocks: list[Block], after: list[Block], known: set[str]) -> Iterator[Wrong]:
    """Each call has an id of its own, and its result in the very next message."""
    answered = set(_ids(after, "tool_result"))
    for id in _ids(blocks, "tool_use"):
        if id in known:
            yield "id repeated", f"the id {id} was used by an earlier call"
        known.add(id)
        if id not in answered:
            yield "unanswered", f"the tool call {id} has no result in the next message"


def _wrong_results(blocks: list[Block], asked: list[str]) -> Iterator[Wrong]:
    """Each result has its call in the message before, is the only one, and comes first."""
    known, open_calls, results = set(asked), set(asked), _ids(blocks, "tool_result")
    for id in results:
        if id not in open_calls:
            twice = id in known
            rule = "answered twice" if twice else "unasked"
            yield (
                rule,
                (
                    f"there are two results for {id}"
                    if twice
                    else f"there is a result for {id}, but no such call in the message before"
                ),
            )
        open_calls.discard(id)
    if results and any(_type(block) != "tool_result" for block in blocks[: len(results)]):
        yield "not first", "the results of tools come before anything else in their message"


def _text(value: Any) -> bool:
    return isinstance(value, str) and bool(value.strip())


def _whole_call(block: Block) -> bool:
    return isinstance(block.get("input"), dict)


def _named_call(block: Block) -> bool:
    return _whole_call(block) and _text(block.get("id")) and _text(block.get("name"))


HALF = ("half a call", "half a tool call: it has no id, no name, or an input that is no object")

#: Block type -> (what must hold of such a block, the rule's name, what is said where it does not).
CHECKS: dict[str, tuple[Callable[[Any], bool], str, str]] = {
    "text": (
        lambda b: _text(b.get("text")) or _text(b.get("signature")),
        "blank",
        "the text is blank",
    ),
    "thinking": (
        lambda b: _text(b.get("signature")) and isinstance(b.get("thinking"), str),
        "unsigned",
        "thinking without a signature: it was cut off, or changed",
    ),
    "redacted_thinking": (lambda b: _text(b.get("data")), "unsigned", "its data is missing"),
    "tool_use": (_named_call, *HALF),
    "server_tool_use": (_named_call, *HALF),
    "mcp_tool_use": (_named_call, *HALF),
    "tool_result": (
        lambda b: _text(b.get("tool_use_id")),
        "unasked",
        "a result that names no call",
    ),
}

#: Of any other type nothing is known, but that it has one.
ANY: tuple[Callable[[Any], bool], str, str] = (
    lambda b: bool(_type(b)),
    "no block",
    "it is no object with a type",
)

#: Block type -> the only role that may say it.
ONLY_IN = {
    "tool_use": "assistant",
    "server_tool_use": "assistant",
    "thinking": "assistant",
    "redacted_thinking": "assistant",
    "tool_result": "user",
}
