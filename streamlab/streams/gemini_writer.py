"""Gemini's side of the wire: parts in, chunks out, as the reference of generateContent says.

    chunk of content -> … -> chunk of content with a finish reason, and the end of the body

A call comes whole, in one part; there are no events for starts and stops, and no marker at the end.
Styles: the JSON array that comes without `alt=sse`, and arguments by path, as Vertex can send them.
The signature of thinking is on the part that follows it: the next call, or an empty text at the
end. Read next: `answering.py`, which adds the times and the network.
"""

from __future__ import annotations

import json
import re
from base64 import b64encode
from collections.abc import Iterable, Iterator
from itertools import accumulate
from random import Random
from typing import Any

from streamlab.errors import UsageError
from streamlab.streams.parts import Part, Style, Text, Thinking, ToolCall
from streamlab.streams.writing import (
    FINISH,
    INPUT_TOKENS,
    USAGE,
    Order,
    Payload,
    Written,
    cannot_write,
    choice_of,
    fragments,
    frame,
    reason_for,
    tokens,
    whole,
)

__all__ = ["STOPS", "WIRE", "identified", "write"]

WIRE = "gemini"

#: Our word for why the model stopped -> the vendor's. It has none for a call.
STOPS = {
    "end_turn": "STOP",
    "stop_sequence": "STOP",
    "tool_use": "STOP",
    "max_tokens": "MAX_TOKENS",
    "context_window": "MAX_TOKENS",
    "model_context_window_exceeded": "MAX_TOKENS",
    "refusal": "SAFETY",
    "content_filter": "PROHIBITED_CONTENT",
    "pause_turn": "CONTINUATION",
    "error": "MALFORMED_FUNCTION_CALL",
}

#: Finish reasons that a last, empty part can come with; with others there is no content.
SAYS_MORE = ("STOP", "MAX_TOKENS")

FORMS, ARGUMENTS = ("sse", "array"), ("whole", "path")


def identified(parts: Iterable[Part], seed: int) -> tuple[Part, ...]:
    """The parts as they are: calls have no ids here, unless a part brings its own."""
    return tuple(parts)


def write(parts: tuple[Part, ...], order: Order, style: Style, rng: Random) -> list[Written]:
    """The frames of one whole answer."""
    calls = any(isinstance(part, ToolCall) for part in parts)
    reason = reason_for(order, STOPS, calls, WIRE)
    found = [piece for part in _signed(parts) for piece in _pieces(*part, style, rng)]
    chunks = [[piece] for piece in found]
    if choice_of("finish", style.finish, FINISH, "last") == "own" or not chunks:
        chunks.append([{"text": ""}] if reason in SAYS_MORE else [])
    usage = choice_of("usage", style.usage, USAGE, "each")
    payloads = [
        {
            "candidates": [_candidate(chunk, reason if last else "", order)],
            **({"usageMetadata": counted} if usage == "each" or (last and usage == "last") else {}),
            "modelVersion": order.model,
            "responseId": f"response-{order.seed:04}",
        }
        for chunk, counted, last in zip(
            chunks, _counts(chunks, order), _lasts(len(chunks)), strict=True
        )
    ]
    newline = style.newline or "\r\n"
    if choice_of("form", style.form, FORMS) == "array":
        return list(_array(payloads, newline, style.ascii))
    return [Written(frame(payload, newline, style.ascii), True) for payload in payloads]


def _lasts(count: int) -> list[bool]:
    return [False] * (count - 1) + [True]


def _candidate(chunk: list[Payload], reason: str, order: Order) -> Payload:
    """What one chunk adds to the answer."""
    content = {"content": {"parts": chunk, "role": "model"}} if chunk else {}
    finish: Payload = {"finishReason": reason} if reason else {}
    if reason == "CONTINUATION":
        token = b64encode(f"continue-{order.seed:04}".encode("ascii"))
        finish["continuationToken"] = token.decode("ascii")
    return {**content, **finish, "index": 0}


def _array(payloads: list[Payload], newline: str, ascii: bool) -> Iterator[Written]:
    """The same chunks as the elements of one JSON array, as the service lays it out."""
    for number, payload in enumerate(payloads):
        text = json.dumps(payload, ensure_ascii=ascii, indent=2)
        try:
            data = text.encode()
        except UnicodeEncodeError:  # half a character, which only an escape can say
            data = json.dumps(payload, indent=2).encode()
        before = f",{newline}".encode() if number else b"["
        yield Written(before + data + b"\n", True)
    yield Written(b"]" + newline.encode("ascii"))


# --- Parts ----------------------------------------------------------------------------------------


def _signed(parts: tuple[Part, ...]) -> Iterator[tuple[Part, str]]:
    """Each part with the signature that it carries: that of the thinking before it."""
    waiting = ""
    for part in parts:
        signature = ""
        if isinstance(part, Thinking) and part.signature:
            if waiting:
                yield Text(("",)), waiting
            waiting = part.signature
        elif isinstance(part, ToolCall):
            signature, waiting = waiting, ""
        yield part, signature
    if waiting:
        yield Text(("",)), waiting


def _pieces(part: Part, signature: str, style: Style, rng: Random) -> Iterator[Payload]:
    """What is sent of one part, piece by piece."""
    signed = {"thoughtSignature": signature} if signature else {}
    match part:
        case Text(refusal=False):
            yield from ({"text": piece, **signed} for piece in fragments(part.text, style, rng))
        case Thinking():
            pieces = fragments(part.thinking, style, rng)
            yield from ({"text": piece, "thought": True} for piece in pieces)
        case ToolCall():
            way = choice_of("arguments", style.arguments, ARGUMENTS)
            calls = [_whole(part)] if way == "whole" else _by_path(part, style, rng)
            for number, call in enumerate(calls):
                yield {"functionCall": call, **({} if number else signed)}
        case _:
            raise cannot_write(part, WIRE, "it knows text, thinking, and calls for the client")


def _identity(part: ToolCall) -> Payload:
    return {**({"id": part.id} if part.id else {}), "name": part.name}


def _whole(part: ToolCall) -> Payload:
    return {**_identity(part), "args": _value(part)}


def _value(part: ToolCall) -> dict[str, Any]:
    """The input of a call as a value; there is no other way to send it."""
    if isinstance(part.input, dict):
        return part.input
    try:
        value = json.loads(whole(part.input) or "{}")
    except ValueError:
        value = None
    if not isinstance(value, dict):
        raise cannot_write(part, WIRE, "its input is sent as a whole JSON object, and this is none")
    return value


# --- Arguments by path ----------------------------------------------------------------------------


def _by_path(part: ToolCall, style: Style, rng: Random) -> Iterator[Payload]:
    """A call that opens with its name, goes on leaf by leaf, and closes with nothing."""
    yield {**_identity(part), "willContinue": True}
    for path, leaf in _leaves(_value(part), "$", part):
        for argument in _argument(path, leaf, style, rng):
            yield {"partialArgs": [argument], "willContinue": True}
    yield {}


def _leaves(value: Any, path: str, part: ToolCall) -> Iterator[tuple[str, Any]]:
    """The values that hold no others, each with its path."""
    if not isinstance(value, dict | list):
        yield path, value
        return
    if not value and path != "$":
        raise cannot_write(part, WIRE, f"no path says the empty {type(value).__name__} at {path}")
    items = value.items() if isinstance(value, dict) else enumerate(value)
    for key, inner in items:
        yield from _leaves(inner, path + _step(key), part)


def _step(key: str | int) -> str:
    """One step of a JSON path (RFC 9535, section 2.7 for the names that need quotes)."""
    if isinstance(key, int):
        return f"[{key}]"
    if re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]*", key):
        return f".{key}"
    quoted = json.dumps(key, ensure_ascii=False)[1:-1].replace('\\"', '"').replace("'", "\\'")
    return f"['{quoted}']"


def _argument(path: str, leaf: Any, style: Style, rng: Random) -> Iterator[Payload]:
    """What is sent of one value; only a string comes in pieces.

    An empty one has a beginning and an end: an end alone could be what is left of a longer one.
    """
    if isinstance(leaf, str):
        pieces = fragments(leaf, style, rng) or ("", "")
        for piece, last in zip(pieces, _lasts(len(pieces)), strict=True):
            more = {} if last else {"willContinue": True}
            yield {"jsonPath": path, "stringValue": piece, **more}
    elif leaf is None:
        yield {"jsonPath": path, "nullValue": "NULL_VALUE"}
    elif isinstance(leaf, bool):
        yield {"jsonPath": path, "boolValue": leaf}
    elif isinstance(leaf, int | float):
        yield {"jsonPath": path, "numberValue": leaf}
    else:
        raise UsageError(f"{path}: JSON has no value of type {type(leaf).__name__}")


# --- Usage ----------------------------------------------------------------------------------------


def _counts(chunks: list[list[Payload]], order: Order) -> list[Payload]:
    """The counts so far, at each chunk; thinking is counted apart from the answer."""
    shown = accumulate(sum(_size(p) for p in chunk if "thought" not in p) for chunk in chunks)
    thought = accumulate(sum(_size(p) for p in chunk if "thought" in p) for chunk in chunks)
    totals = [_total(*sizes) for sizes in zip(shown, thought, strict=True)]
    return [*totals[:-1], order.usage or totals[-1]]


def _size(piece: Payload) -> int:
    """Characters that a part brings."""
    if "functionCall" not in piece:
        return len(piece["text"])
    call = piece["functionCall"]
    return len(json.dumps(call.get("args", call.get("partialArgs", {}))))


def _total(shown: int, thought: int) -> Payload:
    """The counts, from numbers of characters."""
    answered, thoughts = tokens(shown), thought // 4
    return {
        "promptTokenCount": INPUT_TOKENS,
        "candidatesTokenCount": answered,
        **({"thoughtsTokenCount": thoughts} if thoughts else {}),
        "totalTokenCount": INPUT_TOKENS + answered + thoughts,
    }
