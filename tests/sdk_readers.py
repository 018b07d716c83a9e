"""What the vendors' own clients make of a recording: readers that share no code with streamlab.

Each gives a `Said`, in the words of the vendor, from the client's own objects, piece by piece.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from itertools import pairwise
from typing import Any

import httpx2
import msgspec
import openai
from google import genai
from google.genai import types

from streamlab.streams.recording import Recording


class Said(msgspec.Struct):
    """What one client read."""

    text: str = ""
    thinking: str = ""
    refusal: str = ""
    calls: list[tuple[str, str, str]] = []  #: (id, name, input as JSON text)
    reason: str | None = None
    usage: dict[str, Any] | None = None
    signatures: list[str] = []


class Body(httpx2.SyncByteStream):
    """A response body that arrives as the recording's chunks did."""

    def __init__(self, source: Recording) -> None:
        self.source = source

    def __iter__(self) -> Any:
        yield from (chunk.data for chunk in self.source.chunks)


def http(source: Recording) -> httpx2.Client:
    """A client of a server that answers every request with the recording."""

    def respond(request: httpx2.Request) -> httpx2.Response:
        head = {"content-type": "text/event-stream"}
        return httpx2.Response(200, headers=head, stream=Body(source))

    return httpx2.Client(transport=httpx2.MockTransport(respond))


def chat(source: Recording) -> Said:
    """By `openai`, chunk by chunk; calls are told apart by their index."""
    said, calls = Said(), dict[int, list[str]]()
    for chunk in chat_chunks(source):
        said.usage = chunk.usage.model_dump() if chunk.usage else said.usage
        for choice in chunk.choices:
            said.reason = choice.finish_reason or said.reason
            said.text += choice.delta.content or ""
            said.refusal += choice.delta.refusal or ""
            said.thinking += getattr(choice.delta, "reasoning_content", None) or ""
            for call in choice.delta.tool_calls or ():
                found = calls.setdefault(call.index, ["", "", ""])
                found[0] = found[0] or call.id
                found[1] = found[1] or call.function.name
                found[2] += call.function.arguments or ""
    said.calls = [(found[0], found[1], found[2]) for _, found in sorted(calls.items())]
    return said


def chat_chunks(source: Recording) -> list[Any]:
    """The chunks as the client's own objects."""
    asked: Any = {"model": "m", "messages": [], "stream": True}
    with _openai(source) as client:
        return list(client.chat.completions.create(**asked))


def chat_message(source: Recording) -> Any:
    """The choice that the client's own accumulator makes of a whole answer."""
    asked: Any = {"model": "m", "messages": []}
    with _openai(source) as client, client.chat.completions.stream(**asked) as stream:
        return stream.get_final_completion().choices[0]


def responses(source: Recording) -> Said:
    """By `openai`: the snapshot in the last event; that the deltas say the same is checked here."""
    events = response_events(source)
    assert [event.sequence_number for event in events] == list(range(len(events)))
    last = events[-1].response
    said = Said(usage=last.usage.model_dump())
    said.reason = last.incomplete_details.reason if last.incomplete_details else last.status
    for index, item in enumerate(last.output):
        deltas = "".join(
            event.delta
            for event in events
            if event.type.endswith(".delta") and event.output_index == index
        )
        assert deltas == _read_item(item, said)
    return said


def _read_item(item: Any, said: Said) -> str:
    """Add one item to what was said; its content as one text."""
    match item.type:
        case "message":
            (part,) = item.content
            text = str(part.text if part.type == "output_text" else part.refusal)
            said.text += text if part.type == "output_text" else ""
            said.refusal += text if part.type == "refusal" else ""
        case "reasoning":
            text = "".join(part.text for part in item.summary)
            said.thinking += text
            said.signatures += [item.encrypted_content] if item.encrypted_content else []
        case "function_call":
            text = item.arguments
            said.calls.append((item.call_id, item.name, text))
        case _:
            text = item.arguments
    return text


def response_events(source: Recording) -> list[Any]:
    """The events as the client's own objects."""
    asked: Any = {"model": "m", "input": "hi", "stream": True}
    with _openai(source) as client:
        return list(client.responses.create(**asked))


def response(source: Recording) -> Any:
    """The response that the client's own accumulator makes of a whole answer."""
    with _openai(source) as client, client.responses.stream(model="m", input="hi") as stream:
        return stream.get_final_response()


def _openai(source: Recording) -> openai.OpenAI:
    return openai.OpenAI(api_key="none", base_url="http://sdk.invalid", http_client=http(source))


def gemini(source: Recording) -> Said:
    """By `google-genai`; arguments that come by path are put together here, it doesn't."""
    said, inputs = Said(), list[dict[str, Any]]()
    found = list[tuple[str, str]]()
    for chunk in gemini_chunks(source):
        said.usage = (
            chunk.usage_metadata.model_dump(exclude_none=True)
            if (chunk.usage_metadata)
            else said.usage
        )
        (candidate,) = chunk.candidates
        said.reason = candidate.finish_reason.value if candidate.finish_reason else said.reason
        for part in (candidate.content.parts if candidate.content else None) or ():
            if part.thought_signature:
                said.signatures.append(part.thought_signature.decode())
            call = part.function_call
            if call and call.name:
                found.append((call.id or "", call.name))
                inputs.append(call.args or {})
            elif call:
                for argument in call.partial_args or ():
                    _put(inputs[-1], argument)
            elif part.thought:
                said.thinking += part.text
            else:
                said.text += part.text
    said.calls = [(*who, json.dumps(value)) for who, value in zip(found, inputs, strict=True)]
    return said


def gemini_chunks(source: Recording) -> list[Any]:
    """The chunks as the client's own objects; it must not ask for a continuation by itself."""
    options = types.HttpOptions(base_url="http://sdk.invalid", httpx_client=http(source))
    client = genai.Client(api_key="none", http_options=options)
    config = types.GenerateContentConfig(automatic_continuation=False)
    return list(client.models.generate_content_stream(model="m", contents="hi", config=config))


def _put(value: Any, argument: Any) -> None:
    """Put one argument in its place: a string is appended to, anything else is set."""
    steps = [
        int(number) if number else name or json.loads('"' + _quotes(quoted) + '"')
        for number, name, quoted in STEP.findall(argument.json_path)
    ]
    for step, following in pairwise(steps):
        value = _inner(value, step, [] if isinstance(following, int) else {})
    given = argument.model_dump(exclude_none=True)
    if "string_value" in given:
        before = _inner(value, steps[-1], "")
        value[steps[-1]] = before + given["string_value"]
    else:
        leaf = given.get("bool_value", given.get("number_value"))
        _inner(value, steps[-1], leaf)


STEP = re.compile(r"\[(\d+)\]|\.(\w+)|\['((?:[^'\\]|\\.)*)'\]")


def _quotes(text: str) -> str:
    return text.replace("\\'", "'").replace('"', '\\"')


def _inner(value: Any, step: Any, new: Any) -> Any:
    """What is at a step, put there if it is not."""
    if isinstance(value, list) and step == len(value):
        value.append(new)
    elif isinstance(value, dict):
        value.setdefault(step, new)
    return value[step]


READERS: dict[str, Callable[[Recording], Said]] = {
    "openai-chat": chat,
    "openai-responses": responses,
    "gemini": gemini,
}
