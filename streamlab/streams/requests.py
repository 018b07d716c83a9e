"""A history as each vendor's request holds it: whole answers go back the way they came.

The history is what a `Conversation` keeps: messages of content blocks, in one form for all. Here it
becomes the body of an HTTP request, with its path. What is opaque goes back byte for byte and in
its place: Claude's signed thinking, the encrypted reasoning of Responses, and Gemini's signature in
the very part that carried it, an empty one too. A result is sent under the *call's* id.

Source: the vendors' API references. Chat takes no reasoning back, so none is there; an id that the
Gemini reader made up, because the wire has none, stays here; of the tools that OpenAI runs itself
nothing is repeated; and no vendor is sent a block that only another one knows.

Read next: `upstream.py`, which sends them.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from typing import Any, NamedTuple

from streamlab.consumer.history import Block, Message, blocks_of
from streamlab.errors import UsageError
from streamlab.streams.sdks import SDKS, is_local

__all__ = ["REQUESTS", "Request", "authorised", "request_of"]

#: Name of a tool -> the JSON Schema of its input.
Tools = Mapping[str, Any]

#: What an id of a call begins with where the Gemini reader made it up.
MADE_UP = "made-up-"

Body = dict[str, Any]


class Request(NamedTuple):
    """What is sent, by POST and as JSON."""

    path: str
    body: Body
    headers: Mapping[str, str] = {}


def request_of(
    wire: str, model: str, messages: list[Message], limit: int = 1024, tools: Tools | None = None
) -> Request:
    """The request for a stream in a wire format; `limit` is in tokens of the answer.

    Raises `UsageError` for a format that has no request here.
    """
    if wire not in REQUESTS:
        raise UsageError(f"wire {wire!r} is none of {', '.join(REQUESTS)}")
    return REQUESTS[wire](model, messages, limit, tools or {})


def authorised(wire: str, url: str) -> dict[str, str]:
    """The header with the key of the environment; none where it would travel in the clear."""
    sdk, header, before = KEYS[wire]
    key = SDKS[sdk].key
    safe = url.startswith("https://") or is_local(url)
    return {header: before + key} if key and safe else {}


def _claude(model: str, messages: list[Message], limit: int, tools: Tools) -> Request:
    body: Body = {"model": model, "max_tokens": limit, "stream": True, "messages": messages}
    body |= {"tools": [{"name": n, "input_schema": s} for n, s in tools.items()]} if tools else {}
    return Request("/v1/messages", body, {"anthropic-version": "2023-06-01"})


# --- OpenAI Chat Completions ----------------------------------------------------------------------


def _chat(model: str, messages: list[Message], limit: int, tools: Tools) -> Request:
    said = [turn for message in messages for turn in _chat_messages(message)]
    body: Body = {"model": model, "max_completion_tokens": limit, "messages": said}
    body |= {"stream": True, "stream_options": {"include_usage": True}}
    offered = [{"type": "function", "function": _function(*tool)} for tool in tools.items()]
    return Request("/v1/chat/completions", body | ({"tools": offered} if tools else {}))


def _chat_messages(message: Message) -> Iterator[Body]:
    blocks = blocks_of(message)
    for block in _each(blocks, "tool_result"):
        yield {"role": "tool", "tool_call_id": block["tool_use_id"], "content": _result(block)}
    text = "".join(block["text"] for block in _each(blocks, "text"))
    calls = [_chat_call(block) for block in _each(blocks, "tool_use")]
    if text or calls:
        said = {"role": message["role"], "content": text or None}
        yield said | ({"tool_calls": calls} if calls else {})


def _chat_call(block: Block) -> Body:
    given = block["input"]
    if isinstance(given, str):  # a tool whose input is free text
        custom = {"name": block["name"], "input": given}
        return {"id": block["id"], "type": "custom", "custom": custom}
    function = {"name": block["name"], "arguments": json.dumps(given)}
    return {"id": block["id"], "type": "function", "function": function}


def _function(name: str, schema: Any) -> Body:
    return {"name": name, "parameters": schema}


# --- OpenAI Responses -----------------------------------------------------------------------------


def _responses(model: str, messages: list[Message], limit: int, tools: Tools) -> Request:
    items = [*_items(messages)]
    body: Body = {"model": model, "max_output_tokens": limit, "input": items, "stream": True}
    body |= {"store": False, "include": ["reasoning.encrypted_content"]}
    offered = [{"type": "function", "strict": False, **_function(*tool)} for tool in tools.items()]
    return Request("/v1/responses", body | ({"tools": offered} if tools else {}))


def _items(messages: list[Message]) -> Iterator[Body]:
    free: set[str] = set()  # ids of calls whose input is free text: their results have a type too
    for message in messages:
        for block in blocks_of(message):
            if block["type"] == "text":
                yield _item_text(message["role"], block)
            elif "thinking" in block:
                yield {"type": "reasoning", **_own(block), **_reasoning(block)}
            elif block["type"] == "tool_use":
                free |= {block["id"]} if isinstance(block["input"], str) else set()
                yield _item_call(block)
            elif block["type"] == "tool_result":
                kind = "custom_tool_call" if block["tool_use_id"] in free else "function_call"
                output = {"call_id": block["tool_use_id"], "output": _result(block)}
                yield {"type": f"{kind}_output", **output}


def _own(block: Block) -> Body:
    """What an item of the vendor's has besides its content."""
    return {key: block[key] for key in ("id", "phase") if key in block}


def _item_text(role: str, block: Block) -> Body:
    message = {"type": "message", "role": role}
    if role == "user":
        return {**message, "content": [{"type": "input_text", "text": block["text"]}]}
    if "id" not in block:  # the vendor did not write it, or its server gives no ids
        return {**message, "content": block["text"], **_own(block)}
    said = {"type": "output_text", "text": block["text"], "annotations": []}
    return {**message, "status": "completed", "content": [said], **_own(block)}


def _reasoning(block: Block) -> Body:
    text = block["thinking"]
    summary = [{"type": "summary_text", "text": text}] if text else []
    return {"summary": summary, "encrypted_content": block.get("signature") or None}


def _item_call(block: Block) -> Body:
    named = {"call_id": block["id"], "name": block["name"]}
    if isinstance(block["input"], str):
        return {"type": "custom_tool_call", **named, "input": block["input"]}
    return {"type": "function_call", **named, "arguments": json.dumps(block["input"])}


# --- Gemini ---------------------------------------------------------------------------------------


def _gemini(model: str, messages: list[Message], limit: int, tools: Tools) -> Request:
    calls = [block for message in messages for block in _each(blocks_of(message), "tool_use")]
    names = {block["id"]: block["name"] for block in calls}
    said = [(ROLE[m["role"]], [*_parts(blocks_of(m), names)]) for m in messages]
    contents = [{"role": role, "parts": parts} for role, parts in said if parts]
    body: Body = {"contents": contents, "generationConfig": {"maxOutputTokens": limit}}
    offered = [{"name": n, "parametersJsonSchema": schema} for n, schema in tools.items()]
    body |= {"tools": [{"functionDeclarations": offered}]} if tools else {}
    return Request(f"/v1beta/models/{model}:streamGenerateContent?alt=sse", body)


ROLE = {"user": "user", "assistant": "model"}

#: What may stand beside the content of a part. (Anything else came with the answer as a whole.)
BESIDE = ("partMetadata", "mediaResolution")


def _parts(blocks: list[Block], names: Mapping[str, str]) -> Iterator[Body]:
    for block in blocks:
        signed = {"thoughtSignature": block["signature"]} if block.get("signature") else {}
        if part := _part(block, names):
            yield {**part, **{name: block[name] for name in BESIDE if name in block}, **signed}


def _part(block: Block, names: Mapping[str, str]) -> Body:
    """A block without its signature; nothing, where it is none of this vendor's."""
    if block["type"] == "tool_use":
        given = block["input"]
        args = given if isinstance(given, dict) else {"input": given}  # it knows no free text
        return {"functionCall": {"name": block["name"], "args": args, **_id(block["id"])}}
    if block["type"] == "tool_result":
        id, outcome = block["tool_use_id"], "error" if block.get("is_error") else "output"
        answer = {"name": names.get(id, ""), "response": {outcome: _result(block)}, **_id(id)}
        return {"functionResponse": answer}
    if "thinking" in block:
        return {"text": block["thinking"], "thought": True}
    if block["type"] == "executableCode":
        return {"executableCode": block["input"]}
    if block["type"] == "toolCall":
        call = {"toolType": block["name"], "args": block["input"], **_id(block["id"])}
        return {"toolCall": call}
    if block["type"] == "text":
        return {"text": block["text"]}
    kind = block["type"]  # where it is this vendor's: the name of the field that holds it
    return {kind: block[kind]} if kind in block else {}


def _id(id: str) -> Body:
    return {} if id.startswith(MADE_UP) else {"id": id}


# --- All ------------------------------------------------------------------------------------------


def _each(blocks: list[Block], type: str) -> list[Block]:
    return [block for block in blocks if block["type"] == type]


def _result(block: Block) -> str:
    """What a tool gave, as text: its texts joined, or the JSON of what is more than text."""
    given = block.get("content", "")
    if isinstance(given, str):
        return given
    if all(part.get("type") == "text" for part in given):
        return "\n".join(part["text"] for part in given)
    return json.dumps(given)


#: Wire format -> (the SDK whose key it is, the header, what comes before the key).
KEYS = {
    "claude": ("anthropic", "x-api-key", ""),
    "openai-chat": ("openai", "authorization", "Bearer "),
    "openai-responses": ("openai", "authorization", "Bearer "),
    "gemini": ("google-genai", "x-goog-api-key", ""),
}

#: Wire format -> model, messages, limit, tools -> its request.
REQUESTS: dict[str, Callable[[str, list[Message], int, Tools], Request]] = {
    "claude": _claude,
    "openai-chat": _chat,
    "openai-responses": _responses,
    "gemini": _gemini,
}
