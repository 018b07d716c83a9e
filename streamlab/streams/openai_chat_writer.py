"""The Chat Completions API's side of the wire: parts in, chunks out, as OpenAI's reference says.

    role chunk -> deltas of text and of calls -> finish reason, empty delta -> usage chunk -> [DONE]

A message here is one text and a list of calls: several texts become one when they are read. What
the parts say besides (a signature, a citation) has no place.

Read next: `openai_responses_writer.py`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import accumulate, chain, groupby
from random import Random

import msgspec

from streamlab.streams.parts import Part, Style, Text, Thinking, ToolCall
from streamlab.streams.writing import (
    CREATED,
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
    interleaved,
    pieces_of_input,
    reason_for,
    tokens,
    with_comments,
)

__all__ = ["STOPS", "WIRE", "identified", "write"]

WIRE = "openai-chat"

#: Our word for why the model stopped -> the vendor's.
STOPS = {
    "end_turn": "stop",
    "stop_sequence": "stop",
    "tool_use": "tool_calls",
    "max_tokens": "length",
    "context_window": "length",
    "model_context_window_exceeded": "length",
    "refusal": "content_filter",
    "content_filter": "content_filter",
}


def identified(parts: Iterable[Part], seed: int) -> tuple[Part, ...]:
    """The parts, with an id for every call that has none."""
    return tuple(
        msgspec.structs.replace(part, id=f"call_{seed:04}_{index}")
        if isinstance(part, ToolCall) and not part.id
        else part
        for index, part in enumerate(parts)
    )


def write(parts: tuple[Part, ...], order: Order, style: Style, rng: Random) -> list[Written]:
    """The frames of one whole answer."""
    calls = any(isinstance(part, ToolCall) for part in parts)
    reason = reason_for(order, STOPS, calls, WIRE)
    usage = choice_of("usage", style.usage, USAGE, "last")
    deltas = _deltas(parts, style, rng)
    chunks = [_chunk(delta) for delta in (_role(parts), *deltas)]
    if choice_of("finish", style.finish, FINISH, "own") == "own":
        chunks.append(_chunk({}))
    chunks[-1]["choices"][0]["finish_reason"] = reason
    if usage == "last":
        chunks.append({"choices": []})
    newline, head = style.newline or "\n", _head(order)
    bodies = [
        Written(frame(head | chunk | counted, newline, style.ascii), 0 < number <= len(deltas))
        for number, (chunk, counted) in enumerate(
            zip(chunks, _counts(chunks, order, usage), strict=True)
        )
    ]
    done = Written(f"data: [DONE]{newline}{newline}".encode("ascii"))
    return with_comments([*bodies, done], style, newline, rng)


def _head(order: Order) -> Payload:
    """What every chunk says."""
    return {
        "id": f"chatcmpl-{order.seed:04}",
        "object": "chat.completion.chunk",
        "created": CREATED,
        "model": order.model,
        "system_fingerprint": f"fp_{order.seed:04}",
    }


def _chunk(delta: Payload) -> Payload:
    choice = {"index": 0, "delta": delta, "logprobs": None, "finish_reason": None}
    return {"choices": [choice]}


def _role(parts: tuple[Part, ...]) -> Payload:
    """The first delta: an empty text to append to, or none where there will only be calls."""
    says = not parts or any(isinstance(part, Text) and not part.refusal for part in parts)
    return {"role": "assistant", "content": "" if says else None, "refusal": None}


# --- Deltas ---------------------------------------------------------------------------------------


def _deltas(parts: tuple[Part, ...], style: Style, rng: Random) -> list[Payload]:
    """All deltas; calls are numbered by themselves, and those that follow each other may mix."""
    numbers = iter(range(len(parts)))
    found: list[Payload] = []
    for calls, run in groupby(parts, lambda part: isinstance(part, ToolCall)):
        blocks = [_part(part, numbers, style, rng) for part in run]
        found += interleaved(blocks, rng) if calls and style.interleave else chain(*blocks)
    return found


def _part(part: Part, numbers: Iterator[int], style: Style, rng: Random) -> list[Payload]:
    match part:
        case Text():
            field = "refusal" if part.refusal else "content"
            return [{field: piece} for piece in fragments(part.text, style, rng)]
        case Thinking():
            return [{style.reasoning: piece} for piece in fragments(part.thinking, style, rng)]
        case ToolCall():
            return _call(part, next(numbers), style, rng)
    raise cannot_write(part, WIRE, "it knows text, thinking, and calls for the client to run")


def _call(part: ToolCall, number: int, style: Style, rng: Random) -> list[Payload]:
    """The deltas of one call: who it is, then its arguments."""
    pieces = list(pieces_of_input(part, style, rng, empty="{}"))
    first = "" if style.first_empty or not pieces else pieces.pop(0)
    identity = {"id": part.id, "type": "function"}
    opening = {**identity, "function": {"name": part.name, "arguments": first}}
    again = identity if style.repeat_ids else {}
    name = {"name": part.name} if style.repeat_ids else {}
    more = [{**again, "function": {**name, "arguments": piece}} for piece in pieces]
    return [{"tool_calls": [{"index": number, **call}]} for call in (opening, *more)]


# --- Usage ----------------------------------------------------------------------------------------


def _counts(chunks: list[Payload], order: Order, usage: str) -> list[Payload]:
    """What each chunk says of the tokens: so far, or nothing until the last."""
    if usage == "none":
        return [{} for _ in chunks]
    deltas = [choice["delta"] for chunk in chunks for choice in chunk["choices"]]
    said = list(accumulate((_size(delta, all=True) for delta in deltas), initial=0))[1:]
    thought = list(accumulate((_size(delta, all=False) for delta in deltas), initial=0))[1:]
    totals = [_total(*sizes) for sizes in zip(said, thought, strict=True)]
    last = {"usage": order.usage or totals[-1]}
    if usage == "each":
        return [*({"usage": total} for total in totals[:-1]), last]
    return [*({"usage": None} for _ in totals), last]


def _size(delta: Payload, all: bool) -> int:
    """Characters that a delta brings; `all`, or those that are thinking."""
    known = ("role", "content", "refusal", "tool_calls")
    thought = sum(len(text) for key, text in delta.items() if key not in known)
    if not all:
        return thought
    calls = (call["function"]["arguments"] for call in delta.get("tool_calls", ()))
    shown = (delta.get(key) or "" for key in ("content", "refusal"))
    return thought + sum(map(len, (*shown, *calls)))


def _total(said: int, thought: int) -> Payload:
    """The counts, from numbers of characters."""
    output = tokens(said)
    return {
        "prompt_tokens": INPUT_TOKENS,
        "completion_tokens": output,
        "total_tokens": INPUT_TOKENS + output,
        "prompt_tokens_details": {"cached_tokens": 0},
        "completion_tokens_details": {"reasoning_tokens": min(output, thought // 4)},
    }
