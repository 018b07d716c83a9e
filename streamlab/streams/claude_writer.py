"""The Claude API's side of the wire: parts in, frames out, as its "Streaming Messages" page says.

What the page leaves open is in `parts.Style`, and drawn from the generator that the caller seeded.

Read next: `openai_chat_writer.py`, which says the same with less.
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import chain
from random import Random

import msgspec

from streamlab.errors import UsageError
from streamlab.streams import writing
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
from streamlab.streams.writing import (
    INPUT_TOKENS,
    Order,
    Payload,
    Written,
    cannot_write,
    fragments,
    input_text,
    interleaved,
    tokens,
)

__all__ = ["MESSAGE", "frame", "identified", "payloads", "write"]


def write(parts: tuple[Part, ...], order: Order, style: Style, rng: Random) -> list[Written]:
    """The frames of one whole message."""
    calls = any(isinstance(part, ToolCall) for part in parts)
    delta = {
        "stop_reason": order.stop_reason or ("tool_use" if calls else "end_turn"),
        "stop_sequence": order.stop_sequence,
        **({"stop_details": order.stop_details} if order.stop_details else {}),
    }
    start = {"id": f"msg_{order.seed:04}", "model": order.model}
    newline = style.newline or "\n"
    return [
        Written(frame(payload, newline, style.ascii), payload["type"] == "content_block_delta")
        for payload in payloads(parts, delta, order.usage, start, style, rng)
    ]


def payloads(
    parts: tuple[Part, ...],
    delta: Payload,
    usage: Payload | None,
    start: Payload,
    style: Style,
    rng: Random,
) -> list[Payload]:
    """The data of each frame of one whole message.

    `delta` says why the message ends; `start` is what `message_start` says besides the usual.
    """
    blocks = [_block(index, part, style, rng) for index, part in enumerate(parts)]
    usage = usage or _usage(blocks)
    found = [
        {"type": "message_start", "message": MESSAGE | start},
        *(interleaved(blocks, rng) if style.interleave else chain(*blocks)),
        {"type": "message_delta", "delta": delta, "usage": usage},
        {"type": "message_stop"},
    ]
    for number in range(style.pings):  # the first is where real streams have it
        place = rng.randrange(len(found) + 1) if number else 2
        found.insert(place, {"type": "ping"})
    return found


def frame(payload: Payload, newline: str = "\n", ascii: bool = False) -> bytes:
    """One frame, its blank line included, named by its type."""
    return writing.frame(payload, newline, ascii, _name(payload))


def _name(payload: Payload) -> str:
    """The type as the name of an event, which has one line, and no escapes."""
    name = str(payload["type"])
    if any(c in "\r\n" or "\ud800" <= c <= "\udfff" for c in name):
        raise UsageError(f"type={name[:80]!r}: an event's name is one line of whole characters")
    return name


def identified(parts: Iterable[Part], seed: int) -> tuple[Part, ...]:
    """The parts, with an id for every tool call and result that has none."""
    out: list[Part] = []
    last_call = ""
    for index, part in enumerate(parts):
        match part:
            case ToolCall(id=""):
                part = msgspec.structs.replace(part, id=f"toolu_{seed:04}_{index}")
            case ServerToolCall():
                last_call = part.id or f"srvtoolu_{seed:04}_{index}"
                part = msgspec.structs.replace(part, id=last_call)
            case ServerToolResult(tool_use_id=""):
                part = msgspec.structs.replace(part, tool_use_id=last_call)
        out.append(part)
    return tuple(out)


#: What `message_start` always says.
MESSAGE: Payload = {
    "id": "msg_0",
    "type": "message",
    "role": "assistant",
    "model": "",
    "content": [],
    "stop_reason": None,
    "stop_sequence": None,
    "usage": {"input_tokens": INPUT_TOKENS, "output_tokens": 1},
}


def _block(index: int, part: Part, style: Style, rng: Random) -> list[Payload]:
    """The frames of one block, start to stop."""
    start, deltas = _content(part, style, rng)
    return [
        {"type": "content_block_start", "index": index, "content_block": start},
        *({"type": "content_block_delta", "index": index, "delta": delta} for delta in deltas),
        {"type": "content_block_stop", "index": index},
    ]


def _content(part: Part, style: Style, rng: Random) -> tuple[Payload, list[Payload]]:
    """What a block is when it starts, and what is then added to it."""
    match part:
        case Text():
            if part.refusal:
                raise cannot_write(part, "claude", "a refusal there is a stop reason, not a text")
            deltas = _deltas("text_delta", "text", fragments(part.text, style, rng))
            deltas += [{"type": "citations_delta", "citation": it} for it in part.citations]
            start: Payload = {"type": "text", "text": ""}
            return start | ({"citations": []} if part.citations else {}), deltas
        case Thinking():
            pieces = fragments(part.thinking, style, rng)
            deltas = _deltas("thinking_delta", "thinking", pieces)
            signature = (part.signature,) if part.signature else ()
            deltas += _deltas("signature_delta", "signature", signature)
            return {"type": "thinking", "thinking": "", "signature": ""}, deltas
        case RedactedThinking():
            return {"type": "redacted_thinking", "data": part.data}, []
        case ToolCall() | ServerToolCall():
            kind = "tool_use" if isinstance(part, ToolCall) else "server_tool_use"
            pieces = fragments(input_text(part.input, style, empty=""), style, rng)
            first = ("",) if style.first_empty else ()
            deltas = _deltas("input_json_delta", "partial_json", (*first, *pieces))
            return {"type": kind, "id": part.id, "name": part.name, "input": {}}, deltas
        case ServerToolResult():
            start = {"type": part.type, "tool_use_id": part.tool_use_id, "content": part.content}
            return start, []
        case OtherBlock():
            return part.block, list(part.deltas)


def _deltas(kind: str, field: str, pieces: Iterable[str]) -> list[Payload]:
    return [{"type": kind, field: piece} for piece in pieces]


def _usage(blocks: list[list[Payload]]) -> Payload:
    """What the deltas of all blocks cost."""
    deltas = (payload.get("delta", {}) for block in blocks for payload in block)
    generated = ("text", "thinking", "partial_json")
    size = sum(len(value) for d in deltas for key, value in d.items() if key in generated)
    return {"output_tokens": tokens(size)}
