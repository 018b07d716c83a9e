"""What a chunk of a Chat Completions stream holds: its fields, its reasons, its most common shapes.

Tables first; `openai_chat.py` is the grammar that uses them. Sources: the types of the vendor's
Python SDK 3.57, and for what compatible servers add, their own references: Mistral
(`model_length`, content in parts), DeepSeek (`reasoning_content`, `insufficient_system_resource`),
Together (`eos`), OpenRouter (`reasoning`, `reasoning_details`), xAI (reasoning counted apart).
"""

from __future__ import annotations

from typing import Any, Literal

import msgspec

from .dialect import count, word
from .events import Tokens

__all__ = [
    "CHOICE",
    "CHUNK",
    "DELTA",
    "REASONING",
    "RETURNED",
    "STOP_REASON",
    "TEXTS",
    "Said",
    "decode_chunk",
    "is_chunk",
    "mentions_a_call",
    "plain",
    "said",
    "signatures",
    "text_of",
    "tokens",
]

#: finish_reason -> our word for it; any other is "other".
STOP_REASON = {
    "stop": "end_turn",
    "eos": "end_turn",
    "tool_calls": "tool_use",
    "function_call": "tool_use",
    "length": "max_tokens",
    "model_length": "context_window",
    "content_filter": "content_filter",
    "error": "error",
    "insufficient_system_resource": "error",
}

#: Fields of a delta that can hold thinking as text; the first that holds any counts.
REASONING = ("reasoning_content", "reasoning", "thinking")

#: Fields whose thinking the vendor wants back in the next request.
RETURNED = frozenset({"reasoning_details", "content"})

#: Fields of a delta that are known here: read, or no content whatever they hold.
DELTA = frozenset(
    {
        *("content", "refusal", "tool_calls", "function_call", "audio", "annotations", "images"),
        *("reasoning_content", "reasoning", "thinking", "reasoning_details", "executed_tools"),
        *("role", "name", "index", "token_id", "token_ids", "channel", "provider_metadata"),
        *("logprobs", "reasoning_encrypted", "obfuscation"),
    }
)

#: Type of a part, where a content is a list -> what its text is; a part may lack the type.
TEXTS: dict[str | None, str] = {
    **dict.fromkeys((None, "text", "output_text"), "content"),
    "refusal": "refusal",
    **dict.fromkeys(("thinking", "reasoning"), "thinking"),
}

#: Fields of a choice that are known here.
CHOICE = frozenset({"index", "delta", "message", "finish_reason", "logprobs", "usage", "error"})

#: Fields of a chunk that are known here, and those of vendors that hold much and no answer.
CHUNK = frozenset(
    {
        *("id", "object", "created", "model", "choices", "usage", "system_fingerprint"),
        *("service_tier", "obfuscation", "x_groq", "citations", "search_results", "moderation"),
    }
)

#: Names that only a tool call has, and how deep they are looked for under an unknown name.
CALL_NAMES = frozenset({"tool_calls", "function_call", "function", "arguments"})
MAX_LOOK = 5


def mentions_a_call(value: Any, depth: int = 0) -> bool:
    """Whether a value under a name not known here holds what could be a part of a tool call."""
    if depth == MAX_LOOK:
        return False
    if isinstance(value, dict):
        named = any(value[name] for name in CALL_NAMES & value.keys())
        return named or any(mentions_a_call(inner, depth + 1) for inner in value.values())
    return isinstance(value, list) and any(mentions_a_call(i, depth + 1) for i in value)


def is_chunk(payload: dict[str, Any]) -> bool:
    """Whether a payload is a chunk of this format, with or without choices."""
    named = word(payload.get("object")).startswith("chat.completion")
    if named or "choices" not in payload:
        return named
    choices = payload["choices"]
    if not choices:  # a first chunk with the prompt's filter results, a last one with usage
        return any(field in payload for field in ("model", "prompt_filter_results", "usage"))
    first = choices[0] if isinstance(choices, list) else None
    return isinstance(first, dict) and any(
        field in first for field in ("delta", "message", "content_filter_results")
    )


def tokens(usage: dict[str, Any]) -> Tokens:
    """The counts of a vendor's usage in our meaning.

    `completion_tokens` hold the reasoning, by the format's own definition. A server that counts it
    apart all the same (xAI's `total_tokens` shows it) is not corrected here: `usage` has its words.
    """
    given, made = count(usage, "prompt_tokens"), count(usage, "completion_tokens")
    if given is None and made is None:  # the words of the vendor's newer format
        given, made = count(usage, "input_tokens"), count(usage, "output_tokens")
    return Tokens(given, made, count(usage, "completion_tokens_details", "reasoning_tokens"))


def plain(value: Any) -> str | None:
    """The text of a value that is text, or a list of parts with text; None where it is neither."""
    if isinstance(value, str):
        return value
    if not isinstance(value, list):
        return None
    texts = [part.get("text") if isinstance(part, dict) else part for part in value]
    return "".join(map(word, texts)) if all(isinstance(text, str) for text in texts) else None


def text_of(part: dict[str, Any]) -> str | None:
    """The text of one part of a content, under whichever name; None where there is none."""
    held = (part.get(name) for name in (part.get("type") or "text", "text", "summary"))
    return next((text for value in held if (text := plain(value)) is not None), None)


def signatures(part: dict[str, Any]) -> list[str]:
    """The proofs of a part's thinking, beside it or inside its pieces."""
    inside = part.get("summary")
    held = [part, *(inside if isinstance(inside, list) else [])]
    found = [word(each.get("signature")) for each in held if isinstance(each, dict)]
    return [signature for signature in found if signature]


# --- One entry of `tool_calls` ----------------------------------------------------------------


#: Fields of an entry, and of the layer inside it, that have their place in `Said`.
KNOWN = frozenset({"index", "id", "type", "function", "custom", "name", "arguments"})


class Said(msgspec.Struct, frozen=True):
    """What one entry says of a call; "" and None where it says nothing."""

    index: int | None
    id: str
    name: str
    given: Any  #: a fragment of the input as text, or the whole input as an object
    type: str
    form: Literal["json", "text"]
    more: dict[str, Any] = {}  #: what a vendor adds to the call: a signature of its thinking
    lost: tuple[str, ...] = ()  #: fields that could be a part of the input, not understood


def said(entry: dict[str, Any]) -> Said | str:
    """What an entry says, or what is wrong with it; it may lack the layer `function`."""
    custom = entry.get("type") == "custom" or isinstance(entry.get("custom"), dict)
    layer, field = ("custom", "input") if custom else ("function", "arguments")
    body = entry.get(layer)
    body = entry if body is None else body
    if not isinstance(body, dict):
        return f"the {layer} of a tool call is {type(body).__name__}, not an object"
    call_id, name, given = entry.get("id"), body.get("name"), body.get(field)
    if not isinstance(call_id, str | None) or not isinstance(name, str | None):
        return "a tool call's name and id must be text"
    if not isinstance(given, str | dict | None) or (custom and isinstance(given, dict)):
        return f"a tool call's input is {type(given).__name__}, not text"
    form: Literal["json", "text"] = "text" if custom else "json"
    kind = word(entry.get("type")) or layer
    more = {key: value for key, value in entry.items() if key not in KNOWN and value}
    lost = [key for key, value in body.items() if key not in (*KNOWN, field) and value]
    if body is entry and given is None:
        lost, more = list(more), {}
    return Said(
        *(entry.get("index"), call_id or "", name or "", given, kind, form),
        {} if body is entry else more,
        tuple(lost),
    )


# --- The most common chunks, decoded straight -------------------------------------------------


class _Common(msgspec.Struct, gc=False, forbid_unknown_fields=True):
    """Fields stand in the order in which the vendor sends them: they are found faster so."""


class _Function(_Common, kw_only=True):
    name: Literal[""] | None = None
    arguments: str


class _Fragment(_Common, kw_only=True):
    index: int
    id: Literal[""] | None = None
    type: Literal["function"] | None = None
    function: _Function


class _Delta(_Common, kw_only=True):
    role: str | None = None
    content: str | None = None
    reasoning_content: str | None = None
    reasoning: str | None = None
    tool_calls: tuple[_Fragment] | None = None
    refusal: None = None
    function_call: None = None


class _Choice(_Common, kw_only=True):
    index: int
    delta: _Delta
    logprobs: None = None
    finish_reason: Literal[""] | None = None
    native_finish_reason: None = None
    matched_stop: None = None
    stop_reason: None = None
    token_ids: None = None


class _Chunk(_Common, kw_only=True):
    """Nine frames in ten are this shape; decoding straight into it is far faster than a dict.

    Whatever does not fit (usage, an error, an unknown field, a wrong type) takes the general way.
    """

    id: str = ""
    provider: str | None = None
    object: str | None = None
    created: int | None = None
    model: str | None = None
    service_tier: str | None = None
    system_fingerprint: str | None = None
    choices: tuple[_Choice]
    usage: None = None
    obfuscation: str | None = None
    p: str | None = None
    x_groq: None = None


decode_chunk = msgspec.json.Decoder(_Chunk).decode
