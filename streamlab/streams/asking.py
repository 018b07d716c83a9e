"""One question, as each vendor's request words it: a prompt, a limit, and the tools on offer.

Four functions from the same four values to the arguments of an SDK's call, and one table, `ASKING`,
of the calls that give back a raw stream. A tool is its name and the JSON Schema of its input.

Read next: `live.py`, which records what comes back.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

__all__ = ["ASKING", "Asking", "chat", "claude", "gemini", "responses"]

#: Name of a tool -> the JSON Schema of its input.
Tools = Mapping[str, Any]

#: Model, prompt, most tokens of the answer, tools -> the arguments of an SDK's call.
Arguments = Callable[[str, str, int, Tools], dict[str, Any]]


def claude(model: str, prompt: str, limit: int, tools: Tools) -> dict[str, Any]:
    """For `messages.create` and `messages.stream`."""
    offered = [{"name": name, "input_schema": schema} for name, schema in tools.items()]
    asked = {"model": model, "max_tokens": limit, "messages": [_said(prompt)]}
    return asked | ({"tools": offered} if offered else {})


def chat(model: str, prompt: str, limit: int, tools: Tools) -> dict[str, Any]:
    """For `chat.completions.create` and `chat.completions.stream`."""
    offered = [
        {"type": "function", "function": {"name": name, "parameters": schema}}
        for name, schema in tools.items()
    ]
    asked = {"model": model, "max_completion_tokens": limit, "messages": [_said(prompt)]}
    return asked | ({"tools": offered} if offered else {})


def responses(model: str, prompt: str, limit: int, tools: Tools) -> dict[str, Any]:
    """For `responses.create` and `responses.stream`."""
    offered = [
        {"type": "function", "name": name, "parameters": schema, "strict": False}
        for name, schema in tools.items()
    ]
    asked = {"model": model, "max_output_tokens": limit, "input": prompt}
    return asked | ({"tools": offered} if offered else {})


def gemini(model: str, prompt: str, limit: int, tools: Tools) -> dict[str, Any]:
    """For `models.generate_content_stream`."""
    declared = [{"name": name, "parameters_json_schema": schema} for name, schema in tools.items()]
    config: dict[str, Any] = {"max_output_tokens": limit}
    config |= {"tools": [{"function_declarations": declared}]} if declared else {}
    return {"model": model, "contents": prompt, "config": config}


def _said(prompt: str) -> dict[str, str]:
    return {"role": "user", "content": prompt}


class Asking(NamedTuple):
    """One call that gives back a raw stream."""

    sdk: str  #: a name of `SDKS`
    arguments: Arguments
    start: Callable[[Any, dict[str, Any]], Any]  #: a client and the arguments -> the stream


#: What a recording can be taken through.
ASKING = {
    "anthropic": Asking(
        "anthropic", claude, lambda client, ask: client.messages.create(stream=True, **ask)
    ),
    "openai-chat": Asking(
        "openai", chat, lambda client, ask: client.chat.completions.create(stream=True, **ask)
    ),
    "openai-responses": Asking(
        "openai", responses, lambda client, ask: client.responses.create(stream=True, **ask)
    ),
    "google-genai": Asking(
        "google-genai", gemini, lambda client, ask: client.models.generate_content_stream(**ask)
    ),
}
