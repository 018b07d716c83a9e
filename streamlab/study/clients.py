"""Seven ways to read a stream through a real SDK, and what each hands to the program.

A `Way` is one row: how the program asks, and how it reads what it is given. A raw way loops over
the events and joins the pieces, as every SDK's introduction shows; a helper way asks the SDK for
the final message. Neither checks anything: what a program sees that trusts its SDK is the finding.

Read next: `card_faults.py`, the faults that are put to them; `report_card.py`, the run.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from typing import Any

import msgspec

from streamlab.streams import asking
from streamlab.study.card_streams import TOOL

__all__ = ["WAYS", "Call", "Got", "Way", "ask", "ask_async", "ask_bare", "full_name"]

#: The question; the tool's schema says nothing, since no answer here depends on it.
PROMPT, LIMIT, TOOLS = "Pay INV-17.", 500, {TOOL: {"type": "object"}}


class Call(msgspec.Struct, frozen=True):
    """A tool call as the program has it. Raw ways hand over text; the program parses it."""

    name: str | None
    input: Any  #: a value; None where the text is no JSON
    text: str = ""  #: as it was handed over, where it was text


class Got(msgspec.Struct, frozen=True):
    """What a program holds when its loop, or the helper, is over."""

    text: str = ""
    calls: tuple[Call, ...] = ()
    stop: str | None = None  #: why the answer ended, in the vendor's word, as far as it was told
    error: str = ""  #: the full name of the exception
    message: str = ""  #: what the exception says


class Way(msgspec.Struct, frozen=True):
    """One way to read a stream through one SDK."""

    id: str
    sdk: str
    wire: str
    how: str  #: what the program writes
    start: Callable[[Any, str, float], Any]  #: SDK client, model, seconds -> a stream
    read: Callable[[Any], Got]  #: the events of a raw way, or the final message of a helper
    final: str = ""  #: the helper's method that returns the final message


def ask(way: Way, client: Any, model: str, seconds: float) -> Got:
    """Ask once, and say what the program got."""
    try:
        return ask_bare(way, client, model, seconds)
    except Exception as why:  # whatever the SDK raises is the finding
        return _raised(why)


def ask_bare(way: Way, client: Any, model: str, seconds: float) -> Got:
    """The same without a net, as most programs do it: it raises whatever the SDK raises."""
    stream = way.start(client, model, seconds)
    if way.final:
        with stream as opened:
            return way.read(getattr(opened, way.final)())
    return way.read(list(stream))


async def ask_async(way: Way, client: Any, model: str, seconds: float) -> Got:
    """The same through the SDK's async client."""
    events: list[Any] = []
    try:
        stream = way.start(client, model, seconds)
        if way.final:
            async with stream as opened:
                return way.read(await getattr(opened, way.final)())
        async for event in await stream:
            events.append(event)
    except Exception as why:
        return _raised(why)
    return way.read(events)


def _raised(why: Exception) -> Got:
    return Got(error=full_name(type(why)), message=str(why)[:300])


def full_name(kind: type[BaseException]) -> str:
    """An exception's class, with the package that a program would import it from."""
    package = kind.__module__.removesuffix(".decoder").removesuffix("._exceptions")
    return kind.__qualname__ if package == "builtins" else f"{package}.{kind.__qualname__}"


def _ask(arguments: asking.Arguments, model: str, seconds: float) -> dict[str, Any]:
    return arguments(model, PROMPT, LIMIT, TOOLS) | {"timeout": seconds}


def _ask_google(model: str, seconds: float) -> dict[str, Any]:
    asked = asking.gemini(model, PROMPT, LIMIT, TOOLS)
    asked["config"]["http_options"] = {"timeout": int(1000 * seconds)}
    return asked


# --- Claude ---------------------------------------------------------------------------------------


def _claude_events(events: Iterable[Any]) -> Got:
    parts = _Parts()
    for event in events:
        if event.type == "content_block_start" and event.content_block.type == "tool_use":
            parts.named(event.index, event.content_block.name)
        elif event.type == "content_block_delta" and event.delta.type == "text_delta":
            parts.text += event.delta.text
        elif event.type == "content_block_delta" and event.delta.type == "input_json_delta":
            parts.more(event.index, event.delta.partial_json)
        elif event.type == "message_delta":
            parts.stop = event.delta.stop_reason
    return parts.got()


def _claude_message(message: Any) -> Got:
    text = "".join(block.text for block in message.content if block.type == "text")
    calls = [block for block in message.content if block.type == "tool_use"]
    return Got(text, tuple(Call(call.name, call.input) for call in calls), message.stop_reason)


# --- OpenAI Chat Completions ----------------------------------------------------------------------


def _chat_events(chunks: Iterable[Any]) -> Got:
    parts = _Parts()
    for choice in (choice for chunk in chunks for choice in chunk.choices or ()):
        parts.text += choice.delta.content or ""
        for call in choice.delta.tool_calls or ():
            parts.named(call.index, call.function.name)
            parts.more(call.index, call.function.arguments or "")
        parts.stop = choice.finish_reason or parts.stop
    return parts.got()


def _chat_completion(completion: Any) -> Got:
    choice = completion.choices[0]
    calls = choice.message.tool_calls or ()
    read = tuple(_parsed(call.function.name, call.function.arguments) for call in calls)
    return Got(choice.message.content or "", read, choice.finish_reason)


# --- OpenAI Responses -----------------------------------------------------------------------------


def _responses_events(events: Iterable[Any]) -> Got:
    parts = _Parts()
    for event in events:
        if event.type == "response.output_text.delta":
            parts.text += event.delta
        elif event.type == "response.output_item.added" and event.item.type == "function_call":
            parts.named(event.output_index, event.item.name)
        elif event.type == "response.function_call_arguments.delta":
            parts.more(event.output_index, event.delta)
        elif event.type in ("response.completed", "response.incomplete", "response.failed"):
            parts.stop = event.response.status
    return parts.got()


def _responses_final(response: Any) -> Got:
    calls = [item for item in response.output if item.type == "function_call"]
    read = tuple(_parsed(call.name, call.arguments) for call in calls)
    return Got(response.output_text, read, response.status)


# --- Gemini ---------------------------------------------------------------------------------------


def _gemini_chunks(chunks: Iterable[Any]) -> Got:
    parts = _Parts()
    for candidate in (each for chunk in chunks for each in chunk.candidates or ()):
        for part in (candidate.content and candidate.content.parts) or ():
            parts.text += part.text or ""
            if part.function_call:
                call = Call(part.function_call.name, part.function_call.args)
                parts.whole.append(call)
        if candidate.finish_reason:
            parts.stop = str(candidate.finish_reason.value)
    return parts.got()


# --- What a program's loop holds ------------------------------------------------------------------


class _Parts:
    """The pieces that a loop joins. It checks nothing, as the loops of most programs."""

    def __init__(self) -> None:
        self.text = ""
        self.stop: str | None = None
        self.whole: list[Call] = []
        self._names: dict[Any, str | None] = {}
        self._texts: dict[Any, str] = {}

    def named(self, index: Any, name: str | None) -> None:
        """A call begins, or its name comes again."""
        self._texts.setdefault(index, "")
        if name:
            self._names[index] = name

    def more(self, index: Any, text: str) -> None:
        """A piece of a call's input."""
        self._texts[index] = self._texts.get(index, "") + text

    def got(self) -> Got:
        """What there is in the end."""
        calls = [_parsed(self._names.get(index), text) for index, text in self._texts.items()]
        return Got(self.text, (*self.whole, *calls), self.stop)


def _parsed(name: str | None, text: str) -> Call:
    try:
        return Call(name, json.loads(text), text)
    except ValueError:
        return Call(name, None, text)


WAYS = {
    way.id: way
    for way in (
        Way(
            "anthropic raw",
            "anthropic",
            "claude",
            "messages.create(stream=True)",
            lambda c, m, s: c.messages.create(stream=True, **_ask(asking.claude, m, s)),
            _claude_events,
        ),
        Way(
            "anthropic helper",
            "anthropic",
            "claude",
            "messages.stream() and get_final_message()",
            lambda c, m, s: c.messages.stream(**_ask(asking.claude, m, s)),
            _claude_message,
            "get_final_message",
        ),
        Way(
            "chat raw",
            "openai",
            "openai-chat",
            "chat.completions.create(stream=True)",
            lambda c, m, s: c.chat.completions.create(stream=True, **_ask(asking.chat, m, s)),
            _chat_events,
        ),
        Way(
            "chat helper",
            "openai",
            "openai-chat",
            "chat.completions.stream() and get_final_completion()",
            lambda c, m, s: c.chat.completions.stream(**_ask(asking.chat, m, s)),
            _chat_completion,
            "get_final_completion",
        ),
        Way(
            "responses raw",
            "openai",
            "openai-responses",
            "responses.create(stream=True)",
            lambda c, m, s: c.responses.create(stream=True, **_ask(asking.responses, m, s)),
            _responses_events,
        ),
        Way(
            "responses helper",
            "openai",
            "openai-responses",
            "responses.stream() and get_final_response()",
            lambda c, m, s: c.responses.stream(**_ask(asking.responses, m, s)),
            _responses_final,
            "get_final_response",
        ),
        Way(
            "gemini raw",
            "google-genai",
            "gemini",
            "models.generate_content_stream()",
            lambda c, m, s: c.models.generate_content_stream(**_ask_google(m, s)),
            _gemini_chunks,
        ),
    )
}
