"""One short good answer on each of the four wires: the streams that the report card breaks.

The same answer everywhere: a sentence, then one call that pays 100000. Each stream is a tuple of
pieces, and a piece has a role (`start`, `text`, `call`, `part`, `half`, `rest`, `closed`, `stop`,
`end`), so that one fault can be made of any of them. After `half` the call's input reads
`{"invoice": "INV-17", "amount": 1`: a valid beginning of a wrong payment.

Read next: `card_faults.py`, which breaks them.
"""

from __future__ import annotations

import json
from typing import Any, NamedTuple

__all__ = ["GOOD", "HALF", "INPUT", "STOP", "TEXT", "TOOL", "Good", "Piece", "sse"]

TEXT, TOOL = "I will pay it.", "pay_invoice"
INPUT: dict[str, Any] = {"invoice": "INV-17", "amount": 100000}

#: The input's text in three pieces; the cut is inside the number.
PART, HALF, REST = '{"invoice": "INV-17", ', '"amount": 1', "00000}"

#: How each wire says that the answer ended as meant.
STOP = {
    "claude": "tool_use",
    "openai-chat": "tool_calls",
    "openai-responses": "completed",
    "gemini": "STOP",
}


class Piece(NamedTuple):
    """One event of a stream, as bytes, and what it is for."""

    role: str
    data: bytes


class Good(NamedTuple):
    """An intact stream."""

    wire: str
    pieces: tuple[Piece, ...]

    @property
    def data(self) -> bytes:
        """All of its bytes."""
        return self.joined()

    def joined(self, *without: str) -> bytes:
        """Its bytes without the pieces of some roles."""
        return b"".join(piece.data for piece in self.pieces if piece.role not in without)

    def has(self, role: str) -> bool:
        """Whether there is a piece of that role."""
        return any(piece.role == role for piece in self.pieces)

    def through(self, *roles: str) -> bytes:
        """Its bytes up to the last piece of the roles, with it."""
        return b"".join(piece.data for piece in self.pieces[: self._after(roles)])

    def beyond(self, *roles: str) -> bytes:
        """Its bytes after the last piece of the roles."""
        return b"".join(piece.data for piece in self.pieces[self._after(roles) :])

    def _after(self, roles: tuple[str, ...]) -> int:
        return max(n for n, piece in enumerate(self.pieces, 1) if piece.role in roles)

    def only(self, role: str) -> bytes:
        """The bytes of one role's pieces."""
        return b"".join(piece.data for piece in self.pieces if piece.role == role)


def sse(payload: dict[str, Any], name: str = "") -> bytes:
    """One server-sent event."""
    named = f"event: {name}\n" if name else ""
    return f"{named}data: {json.dumps(payload)}\n\n".encode()


def _claude() -> tuple[Piece, ...]:
    def block(index: int, kind: str, **more: Any) -> dict[str, Any]:
        return {"type": f"content_block_{kind}", "index": index, **more}

    usage = {"input_tokens": 9, "output_tokens": 1}
    message: dict[str, Any] = {
        "id": "msg_1",
        "type": "message",
        "role": "assistant",
        "model": "m",
        "content": [],
    }
    message |= {"stop_reason": None, "stop_sequence": None, "usage": usage}
    call = {"type": "tool_use", "id": "toolu_1", "name": TOOL, "input": {}}
    stop = {"stop_reason": STOP["claude"], "stop_sequence": None}
    rows = [
        ("start", {"type": "message_start", "message": message}),
        ("text", block(0, "start", content_block={"type": "text", "text": ""})),
        ("text", block(0, "delta", delta={"type": "text_delta", "text": TEXT})),
        ("text", block(0, "stop")),
        ("call", block(1, "start", content_block=call)),
        *(
            (role, block(1, "delta", delta={"type": "input_json_delta", "partial_json": text}))
            for role, text in (("part", PART), ("half", HALF), ("rest", REST))
        ),
        ("closed", block(1, "stop")),
        ("stop", {"type": "message_delta", "delta": stop, "usage": {"output_tokens": 30}}),
        ("end", {"type": "message_stop"}),
    ]
    return tuple(Piece(role, sse(payload, str(payload["type"]))) for role, payload in rows)


def _chat() -> tuple[Piece, ...]:
    def chunk(delta: dict[str, Any], finish: str | None = None) -> bytes:
        choice = {"index": 0, "delta": delta, "finish_reason": finish}
        head = {"id": "c1", "object": "chat.completion.chunk", "created": 1, "model": "m"}
        return sse({**head, "choices": [choice]})

    def call(**more: Any) -> bytes:
        return chunk({"tool_calls": [{"index": 0, **more}]})

    opening = {"name": TOOL, "arguments": ""}
    return (
        Piece("start", chunk({"role": "assistant", "content": ""})),
        Piece("text", chunk({"content": TEXT})),
        Piece("call", call(id="call_1", type="function", function=opening)),
        Piece("part", call(function={"arguments": PART})),
        Piece("half", call(function={"arguments": HALF})),
        Piece("rest", call(function={"arguments": REST})),
        Piece("stop", chunk({}, STOP["openai-chat"])),
        Piece("end", b"data: [DONE]\n\n"),
    )


def _responses() -> tuple[Piece, ...]:
    text = {"type": "output_text", "text": TEXT, "annotations": []}
    message: dict[str, Any] = {
        "type": "message",
        "id": "m1",
        "role": "assistant",
        "status": "completed",
    }
    message |= {"content": [text]}
    call = {"type": "function_call", "id": "f1", "call_id": "call_1", "name": TOOL}
    done = {**call, "arguments": PART + HALF + REST, "status": "completed"}
    answer = {"id": "r1", "object": "response", "created_at": 1, "model": "m", "tools": []}
    answer |= {"tool_choice": "auto", "parallel_tool_calls": True}
    first, second = {"output_index": 0}, {"output_index": 1}
    in_text = {**first, "item_id": "m1", "content_index": 0}
    in_call = {**second, "item_id": "f1"}
    opened = {**message, "status": "in_progress", "content": []}
    called = {**call, "arguments": "", "status": "in_progress"}
    whole = {**answer, "status": "completed", "output": [message, done]}
    rows: list[tuple[str, str, dict[str, Any]]] = [
        ("start", "created", {"response": {**answer, "status": "in_progress", "output": []}}),
        ("text", "output_item.added", {**first, "item": opened}),
        ("text", "content_part.added", {**in_text, "part": {**text, "text": ""}}),
        ("text", "output_text.delta", {**in_text, "delta": TEXT, "logprobs": []}),
        ("text", "output_text.done", {**in_text, "text": TEXT, "logprobs": []}),
        ("text", "content_part.done", {**in_text, "part": text}),
        ("text", "output_item.done", {**first, "item": message}),
        ("call", "output_item.added", {**second, "item": called}),
        ("part", "function_call_arguments.delta", {**in_call, "delta": PART}),
        ("half", "function_call_arguments.delta", {**in_call, "delta": HALF}),
        ("rest", "function_call_arguments.delta", {**in_call, "delta": REST}),
        ("closed", "function_call_arguments.done", {**in_call, "arguments": done["arguments"]}),
        ("closed", "output_item.done", {**second, "item": done}),
        ("end", "completed", {"response": whole}),
    ]
    return tuple(
        Piece(
            role,
            sse({"type": f"response.{type}", "sequence_number": n, **more}, f"response.{type}"),
        )
        for n, (role, type, more) in enumerate(rows)
    )


def _gemini() -> tuple[Piece, ...]:
    def chunk(*parts: dict[str, Any], **more: Any) -> bytes:
        candidate = {"index": 0, "content": {"role": "model", "parts": [*parts]}, **more}
        return sse({"candidates": [candidate], "modelVersion": "m", "responseId": "r1"})

    return (
        Piece("text", chunk({"text": TEXT})),
        Piece("call", chunk({"functionCall": {"name": TOOL, "args": INPUT}})),
        Piece("stop", chunk({"text": ""}, finishReason=STOP["gemini"])),
    )


#: The intact stream of each wire.
GOOD = {
    wire: Good(wire, pieces)
    for wire, pieces in (
        ("claude", _claude()),
        ("openai-chat", _chat()),
        ("openai-responses", _responses()),
        ("gemini", _gemini()),
    )
}
