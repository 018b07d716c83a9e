"""The Claude API's side of the wire: parts in, frames out, as its "Streaming Messages" page says.

It shares no code with the reader of the same format (`wire/claude.py`): each knows the page alone,
so that reading back what this wrote proves something about both. What the page leaves open is in
`parts.Style`, and drawn from the generator that the caller seeded.

Read next: `synth.py`, which adds the times and the network.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from itertools import chain
from random import Random
from typing import Any

import msgspec

from streamlab.errors import UsageError
from streamlab.streams.parts import (
    Content,
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

__all__ = ["MESSAGE", "frame", "identified", "payloads"]

Payload = dict[str, Any]


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
        *(_interleaved(blocks, rng) if style.interleave else chain(*blocks)),
        {"type": "message_delta", "delta": delta, "usage": usage},
        {"type": "message_stop"},
    ]
    for number in range(style.pings):  # the first is where real streams have it
        place = rng.randrange(len(found) + 1) if number else 2
        found.insert(place, {"type": "ping"})
    return found


def frame(payload: Payload, newline: str = "\n", ascii: bool = False) -> bytes:
    """One frame, its blank line included, named by its type."""
    head = f"event: {_name(payload)}{newline}data: "
    data = json.dumps(payload, ensure_ascii=ascii, separators=(",", ":"))
    try:
        return f"{head}{data}{newline}{newline}".encode()
    except UnicodeEncodeError:  # half a character, which only an escape can say
        return frame(payload, newline, ascii=True)


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
    "usage": {"input_tokens": 25, "output_tokens": 1},
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
            deltas = _deltas("text_delta", "text", _fragments(part.text, style, rng))
            deltas += [{"type": "citations_delta", "citation": it} for it in part.citations]
            start: Payload = {"type": "text", "text": ""}
            return start | ({"citations": []} if part.citations else {}), deltas
        case Thinking():
            pieces = _fragments(part.thinking, style, rng)
            deltas = _deltas("thinking_delta", "thinking", pieces)
            signature = (part.signature,) if part.signature else ()
            deltas += _deltas("signature_delta", "signature", signature)
            return {"type": "thinking", "thinking": "", "signature": ""}, deltas
        case RedactedThinking():
            return {"type": "redacted_thinking", "data": part.data}, []
        case ToolCall() | ServerToolCall():
            kind = "tool_use" if isinstance(part, ToolCall) else "server_tool_use"
            pieces = _fragments(_input_text(part.input, style), style, rng)
            first = ("",) if style.first_empty else ()
            deltas = _deltas("input_json_delta", "partial_json", (*first, *pieces))
            return {"type": kind, "id": part.id, "name": part.name, "input": {}}, deltas
        case ServerToolResult():
            start = {"type": part.type, "tool_use_id": part.tool_use_id, "content": part.content}
            return start, []
        case OtherBlock():
            return part.block, list(part.deltas)


def _input_text(value: Payload | Content, style: Style) -> Content:
    """A tool's input as JSON text; nothing at all for an empty one, as on the wire."""
    if not isinstance(value, dict):
        return value
    return json.dumps(value, ensure_ascii=style.ascii) if value else ""


def _fragments(content: Content, style: Style, rng: Random) -> tuple[str, ...]:
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


def _deltas(kind: str, field: str, pieces: Iterable[str]) -> list[Payload]:
    return [{"type": kind, field: piece} for piece in pieces]


def _interleaved(blocks: list[list[Payload]], rng: Random) -> Iterator[Payload]:
    """Merge the blocks' frames: each block in its own order, and starting in theirs."""
    unstarted, started = [block[::-1] for block in blocks], list[list[Payload]]()
    while unstarted or started:
        pick = rng.randrange(len(started) + bool(unstarted))
        if pick == len(started):
            started.append(unstarted.pop(0))
        yield started[pick].pop()
        if not started[pick]:
            del started[pick]


def _usage(blocks: list[list[Payload]]) -> Payload:
    """About four characters to a token: nobody can say more from outside."""
    deltas = (payload.get("delta", {}) for block in blocks for payload in block)
    generated = ("text", "thinking", "partial_json")
    size = sum(len(value) for d in deltas for key, value in d.items() if key in generated)
    return {"output_tokens": 1 + size // 4}
