"""The Responses API's side of the wire: parts in, events out, as OpenAI's reference says.

    created, in_progress -> each item: added, its parts, deltas, done -> completed, with all again

Everything is said three times: in deltas, in the `.done` of each part and item, and in the last
event's snapshot. Every event has a number. A call has two ids: `fc_…` names the item, `call_…` is
what its result must name. Read next: `gemini_writer.py`.
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import chain
from random import Random

import msgspec

from streamlab.streams.parts import (
    Part,
    RedactedThinking,
    ServerToolCall,
    Style,
    Text,
    Thinking,
    ToolCall,
)
from streamlab.streams.writing import (
    CREATED,
    INPUT_TOKENS,
    Order,
    Payload,
    Written,
    cannot_write,
    fragments,
    frame,
    interleaved,
    pieces_of_input,
    reason_for,
    tokens,
    with_comments,
)

__all__ = ["STOPS", "WIRE", "identified", "write"]

WIRE = "openai-responses"

#: Our word for why the model stopped -> the response's status, or why it is incomplete.
STOPS = {
    "end_turn": "completed",
    "stop_sequence": "completed",
    "tool_use": "completed",
    "max_tokens": "max_output_tokens",
    "context_window": "max_output_tokens",
    "model_context_window_exceeded": "max_output_tokens",
    "refusal": "content_filter",
    "content_filter": "content_filter",
    "pause_turn": "steered",
}

#: Events whose content took time to generate.
CONTENT = ".delta"


def identified(parts: Iterable[Part], seed: int) -> tuple[Part, ...]:
    """The parts, with an id for every call that has none."""
    prefixes = {ToolCall: "call", ServerToolCall: "mcp"}
    return tuple(
        msgspec.structs.replace(part, id=f"{prefixes[type(part)]}_{seed:04}_{index}")
        if isinstance(part, ToolCall | ServerToolCall) and not part.id
        else part
        for index, part in enumerate(parts)
    )


def write(parts: tuple[Part, ...], order: Order, style: Style, rng: Random) -> list[Written]:
    """The frames of one whole response."""
    calls = any(isinstance(part, ToolCall) for part in parts)
    reason = reason_for(order, STOPS, calls, WIRE)
    blocks = [
        _item(part, index, _status(reason, index == len(parts) - 1), order.seed, style, rng)
        for index, part in enumerate(parts)
    ]
    items = [block[-1]["item"] for block in blocks]
    events = [
        _lifecycle("created", _response(order, "in_progress")),
        _lifecycle("in_progress", _response(order, "in_progress")),
        *(interleaved(blocks, rng) if style.interleave else chain(*blocks)),
        _end(reason, items, order.usage or _usage(blocks), order),
    ]
    newline = style.newline or "\n"
    frames = [
        Written(_frame(event, number, newline, style.ascii), event["type"].endswith(CONTENT))
        for number, event in enumerate(events)
    ]
    return with_comments(frames, style, newline, rng)


def _frame(event: Payload, number: int, newline: str, ascii: bool) -> bytes:
    payload = {"type": event["type"], "sequence_number": number, **event}
    return frame(payload, newline, ascii, event["type"])


def _lifecycle(stage: str, response: Payload) -> Payload:
    return {"type": f"response.{stage}", "response": response}


def _response(order: Order, status: str) -> Payload:
    """The response as a whole, as every lifecycle event repeats it."""
    return {
        "id": f"resp_{order.seed:04}",
        "object": "response",
        "created_at": CREATED,
        "status": status,
        "error": None,
        "incomplete_details": None,
        "instructions": None,
        "metadata": {},
        "model": order.model,
        "output": [],
        "parallel_tool_calls": True,
        "temperature": 1.0,
        "tool_choice": "auto",
        "tools": [],
        "top_p": 1.0,
        "usage": None,
    }


def _end(reason: str, items: list[Payload], usage: Payload, order: Order) -> Payload:
    """The last event: the whole response again, complete or not."""
    stage = "completed" if reason == "completed" else "incomplete"
    details = None if stage == "completed" else {"reason": reason}
    said = {"incomplete_details": details, "output": items, "usage": usage}
    return _lifecycle(stage, _response(order, stage) | said)


def _status(reason: str, last: bool) -> str:
    """How an item ended: only the last one can have been cut short."""
    return "incomplete" if last and reason != "completed" else "completed"


# --- Items ----------------------------------------------------------------------------------------


def _item(
    part: Part, index: int, status: str, seed: int, style: Style, rng: Random
) -> list[Payload]:
    """The events of one item, added to done."""
    match part:
        case Text():
            return _message(part, index, status, f"msg_{seed:04}_{index}", style, rng)
        case Thinking():
            pieces = fragments(part.thinking, style, rng)
            return _reasoning(pieces, part.signature, index, f"rs_{seed:04}_{index}")
        case RedactedThinking():
            return _reasoning((), part.data, index, f"rs_{seed:04}_{index}")
        case ToolCall():
            item_id = f"fc_{seed:04}_{index}"
            kept = {"id": item_id, "type": "function_call", "call_id": part.id, "name": part.name}
            return _call("function_call", kept, part, index, status, style, rng)
        case ServerToolCall():
            kept = {"id": part.id, "type": "mcp_call", "server_label": "tools", "name": part.name}
            return _call("mcp_call", kept, part, index, status, style, rng)
    raise cannot_write(part, WIRE, "a result of the provider's tool is part of its call there")


def _around(index: int, first: Payload, events: Iterable[Payload], last: Payload) -> list[Payload]:
    """The events of an item: what it is when it starts, and what it has become."""
    place = {"output_index": index}
    return [
        {"type": "response.output_item.added", **place, "item": first},
        *events,
        {"type": "response.output_item.done", **place, "item": last},
    ]


def _message(
    part: Text, index: int, status: str, item_id: str, style: Style, rng: Random
) -> list[Payload]:
    """A text, as a message of one part."""
    item = {"id": item_id, "type": "message", "role": "assistant"}
    place = {"item_id": item_id, "output_index": index, "content_index": 0}
    kind, field = ("refusal", "refusal") if part.refusal else ("output_text", "text")
    more: Payload = {} if part.refusal else {"logprobs": []}
    text = "".join(pieces := fragments(part.text, style, rng))
    empty, full = _content(part, ""), _content(part, text)
    events = [
        {"type": "response.content_part.added", **place, "part": empty},
        *({"type": f"response.{kind}.delta", **place, "delta": p, **more} for p in pieces),
        *_annotations(part, place),
        {"type": f"response.{kind}.done", **place, field: text, **more},
        {"type": "response.content_part.done", **place, "part": full},
    ]
    first = {**item, "status": "in_progress", "content": []}
    return _around(index, first, events, {**item, "status": status, "content": [full]})


def _content(part: Text, text: str) -> Payload:
    if part.refusal:
        return {"type": "refusal", "refusal": text}
    cited = list(part.citations) if text else []
    return {"type": "output_text", "annotations": cited, "logprobs": [], "text": text}


def _annotations(part: Text, place: Payload) -> list[Payload]:
    """What a text cites, each in an event of its own."""
    kind = "response.output_text.annotation.added"
    return [
        {"type": kind, **place, "annotation_index": number, "annotation": citation}
        for number, citation in enumerate(part.citations)
    ]


def _reasoning(pieces: tuple[str, ...], encrypted: str, index: int, item_id: str) -> list[Payload]:
    """Thinking: a summary in words, and what only the API can read, whole in the item's end."""
    item = {"id": item_id, "type": "reasoning"}
    secret = {"encrypted_content": encrypted} if encrypted else {}
    place = {"item_id": item_id, "output_index": index, "summary_index": 0}
    text = "".join(pieces)
    full = {"type": "summary_text", "text": text}
    about, words = "response.reasoning_summary_part", "response.reasoning_summary_text"
    events = [
        {"type": f"{about}.added", **place, "part": {"type": "summary_text", "text": ""}},
        *({"type": f"{words}.delta", **place, "delta": piece} for piece in pieces),
        {"type": f"{words}.done", **place, "text": text},
        {"type": f"{about}.done", **place, "part": full},
    ]
    return _around(
        index,
        {**item, "summary": []},
        events if text else [],
        {**item, "summary": [full] if text else [], **secret},
    )


def _call(
    kind: str,
    kept: Payload,
    part: ToolCall | ServerToolCall,
    index: int,
    status: str,
    style: Style,
    rng: Random,
) -> list[Payload]:
    """A call: its arguments in deltas, in one piece, and in the item."""
    place = {"item_id": kept["id"], "output_index": index}
    pieces = pieces_of_input(part, style, rng, empty="{}")
    text = "".join(pieces)
    ended = "completed" if status == "completed" else "failed"
    stages = ("in_progress", ended) if kind == "mcp_call" else ()  # what the provider itself does
    progress = [{"type": f"response.{kind}.{stage}", **place} for stage in stages]
    events = [
        *progress[:1],
        *({"type": f"response.{kind}_arguments.delta", **place, "delta": p} for p in pieces),
        {"type": f"response.{kind}_arguments.done", **place, "arguments": text},
        *progress[1:],
    ]
    first = {**kept, "arguments": "", "status": "in_progress"}
    return _around(index, first, events, {**kept, "arguments": text, "status": status})


# --- Usage ----------------------------------------------------------------------------------------


def _usage(blocks: list[list[Payload]]) -> Payload:
    """What the deltas of all items cost."""
    sizes = [
        (len(event["delta"]), "reasoning" in event["type"])
        for block in blocks
        for event in block
        if event["type"].endswith(CONTENT)
    ]
    output = tokens(sum(size for size, _ in sizes))
    thought = sum(size for size, thinking in sizes if thinking) // 4
    return {
        "input_tokens": INPUT_TOKENS,
        "input_tokens_details": {"cached_tokens": 0},
        "output_tokens": output,
        "output_tokens_details": {"reasoning_tokens": thought},
        "total_tokens": INPUT_TOKENS + output,
    }
