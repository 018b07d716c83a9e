"""What the writers of all wire formats share: fragments, frames as bytes, and the order to write.

    parts + order + style --a writer--> Written, frame by frame --answering--> chunks with times

A writer is one module with two functions: `identified` gives the ids that its format has, `write`
gives the frames. Nothing here or in a writer knows a reader (`wire/`): each side knows the vendor's
page alone, so that reading back what was written proves something about both.

What accompanies a part and has no place in a format is left out, and `gaps.py` says so. A part that
has no place, or a reason to stop that has none, is a `UsageError`.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from random import Random
from typing import Any, NamedTuple, TypeVar

import msgspec

from streamlab.errors import UsageError
from streamlab.streams.parts import Content, Part, ServerToolCall, Style, ToolCall

__all__ = [
    "CREATED",
    "FINISH",
    "INPUT_TOKENS",
    "USAGE",
    "Order",
    "Payload",
    "Written",
    "cannot_write",
    "choice_of",
    "compact",
    "fragments",
    "frame",
    "input_text",
    "interleaved",
    "named",
    "pieces_of_input",
    "reason_for",
    "tokens",
    "whole",
    "with_comments",
]

Payload = dict[str, Any]
T = TypeVar("T")

#: What every synthetic request is said to have cost.
INPUT_TOKENS = 25

#: When the streams say that they were made, in seconds since 1970: always the same second.
CREATED = 1_798_761_600

#: Where Chat and Gemini say how many tokens there were.
USAGE = ("each", "last", "none")

#: Where they say why the model stopped.
FINISH = ("own", "last")


class Order(msgspec.Struct, frozen=True):
    """What is said of the answer as a whole."""

    seed: int
    model: str
    stop_reason: str | None = None  #: None: as the parts suggest
    stop_sequence: str | None = None
    stop_details: Payload | None = None
    usage: Payload | None = None  #: in the vendor's words; None: counted


class Written(NamedTuple):
    """The bytes of one frame, and whether generating its content took time."""

    data: bytes
    content: bool = False


# --- Content --------------------------------------------------------------------------------------


def fragments(content: Content, style: Style, rng: Random) -> tuple[str, ...]:
    """Content as its deltas: cut by the generator, or as it was given."""
    if not isinstance(content, str):
        return content
    least, most = style.fragment
    pieces: list[str] = []
    at = 0
    while at < len(content):
        size = rng.randrange(least, most + 1)
        pieces.append(content[at : at + size])
        at += size
    return tuple(pieces)


def whole(content: Content) -> str:
    """Content as one text."""
    return "".join(content)


def input_text(value: Payload | Content, style: Style, empty: str) -> Content:
    """A tool's input as JSON text; `empty` for an empty object."""
    if not isinstance(value, dict):
        return value
    return json.dumps(value, ensure_ascii=style.ascii) if value else empty


def pieces_of_input(
    part: ToolCall | ServerToolCall, style: Style, rng: Random, empty: str
) -> tuple[str, ...]:
    """A tool's input as JSON text in fragments."""
    return fragments(input_text(part.input, style, empty), style, rng)


def tokens(characters: int) -> int:
    """About four characters to a token: nobody can say more from outside."""
    return 1 + characters // 4


def interleaved(blocks: list[list[T]], rng: Random) -> Iterator[T]:
    """Merge the blocks' frames: each block in its own order, and starting in theirs."""
    unstarted, started = [block[::-1] for block in blocks], list[list[T]]()
    while unstarted or started:
        pick = rng.randrange(len(started) + bool(unstarted))
        if pick == len(started):
            started.append(unstarted.pop(0))
        yield started[pick].pop()
        if not started[pick]:
            del started[pick]


# --- Bytes ----------------------------------------------------------------------------------------


def compact(payload: Any, ascii: bool = False) -> str:
    """A payload as JSON without spaces."""
    return json.dumps(payload, ensure_ascii=ascii, separators=(",", ":"))


def frame(
    payload: Payload, newline: str = "\n", ascii: bool = False, event: str | None = None
) -> bytes:
    """One frame of an event stream, its blank line included; `event` is its name, if it has one."""
    head = "data: " if event is None else f"event: {event}{newline}data: "
    try:
        return f"{head}{compact(payload, ascii)}{newline}{newline}".encode()
    except UnicodeEncodeError:  # half a character, which only an escape can say
        return f"{head}{compact(payload, ascii=True)}{newline}{newline}".encode()


def with_comments(frames: list[Written], style: Style, newline: str, rng: Random) -> list[Written]:
    """The frames with a proxy's keep-alives between them."""
    comment = Written(f": keep-alive{newline}{newline}".encode("ascii"))
    for _ in range(style.comments):
        frames.insert(rng.randrange(len(frames) + 1), comment)
    return frames


# --- What a format has no place for ---------------------------------------------------------------


def named(part: Part) -> str:
    """The kind of a part, as its class is called."""
    return type(part).__name__


def cannot_write(part: Part, wire: str, why: str) -> UsageError:
    """The error for a part that a wire format has no place for."""
    return UsageError(f"{named(part)} can't be written on the wire {wire!r}: {why}")


def reason_for(order: Order, reasons: Mapping[str, str], calls: bool, wire: str) -> str:
    """The vendor's word for why the model stopped, by a table from our words to the vendor's.

    A word of the vendor's own is taken as it is.
    """
    reason = order.stop_reason or ("tool_use" if calls else "end_turn")
    if reason in reasons:
        return reasons[reason]
    if reason in reasons.values():
        return reason
    known = ", ".join(dict.fromkeys([*reasons, *reasons.values()]))
    raise UsageError(f"stop reason {reason!r} has no word on the wire {wire!r}; it has {known}")


def choice_of(name: str, value: str, allowed: Iterable[str], usual: str = "") -> str:
    """The value of a style's field, or the vendor's usual one where it is ""."""
    value = value or usual
    if value not in allowed:
        raise UsageError(f"{name}={value!r} is none of {', '.join(allowed)}")
    return value
