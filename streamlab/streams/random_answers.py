"""Any legal answer at all, drawn by a seed: for the tests of laws.

The same seed gives the same answer on every platform. What is drawn for a wire is what it can say
so that it reads back as it was meant: `gaps.py` lists what that leaves out. Read next: `faults.py`.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from random import Random
from typing import Any

import msgspec

from streamlab.streams.answering import answer, identified
from streamlab.streams.parts import (
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
from streamlab.streams.recording import Recording

__all__ = ["CITATION", "HARD_TEXT", "random_answer"]

#: Text that has broken somebody's reader: empty, escapes, emoji, joiners, accents that combine,
#: line ends that are none to an event stream, right to left, and what looks like a frame.
HARD_TEXT = (
    "",
    "plain words",
    'quotes " and \\ and /',
    "tab\t newline\n return\r null\0 bell\a",
    "\N{GRINNING FACE}\N{ROCKET}\N{WOMAN}\N{ZERO WIDTH JOINER}\N{PERSONAL COMPUTER}",
    "e\N{COMBINING ACUTE ACCENT}a\N{COMBINING DIAERESIS} \N{LATIN SMALL LETTER SHARP S}",
    "one\N{LINE SEPARATOR}two\N{PARAGRAPH SEPARATOR}three\N{NEXT LINE}four",
    "\N{ZERO WIDTH NO-BREAK SPACE}a byte order mark that is none",
    "\N{HEBREW LETTER SHIN}\N{HEBREW LETTER LAMED} \N{RIGHT-TO-LEFT OVERRIDE}abc",
    "\N{CJK UNIFIED IDEOGRAPH-4F60}\N{CJK UNIFIED IDEOGRAPH-597D}",
    "event: message_stop\ndata: {}\n\n",
    "data: [DONE]\n\n",
)

CITATION = {
    "type": "char_location",
    "cited_text": "label",
    "document_index": 0,
    "document_title": "Rules",
    "start_char_index": 3,
    "end_char_index": 8,
    "file_id": None,
}


def random_answer(seed: int, wire: str = "claude") -> tuple[tuple[Part, ...], Recording]:
    """A legal answer of any kind in any style, with the parts that it was written from."""
    rng = Random(seed)
    parts = [_random_part(rng) for _ in range(rng.randrange(5))]
    if wire in SAYABLE:
        parts = SAYABLE[wire](parts)
    stop_reason, options = _random_stop(parts, wire, rng)
    style = _random_style(rng)
    if wire != "claude":
        style = _more_style(style, parts, rng)
    script = identified(parts, wire, seed)
    note = f"seed {seed}"
    recording = answer(script, stop_reason, wire=wire, seed=seed, style=style, note=note, **options)
    return script, recording


def _random_part(rng: Random) -> Part:
    text = "".join(rng.choice(HARD_TEXT) for _ in range(rng.randrange(4)))
    value = {f"key {n}": _random_value(rng, 2) for n in range(rng.randrange(4))}
    found = [{"type": "web_search_result", "title": text, "url": "https://example.com/a"}]
    return rng.choice(
        (
            Text(text),
            Text(text, (CITATION,) * rng.randrange(3)),
            Thinking(text, "c2lnbmVk"),
            RedactedThinking("b3BhcXVl"),
            ToolCall("change_label", {"item": "W-7", "label": text}),
            ToolCall("any_tool", value),
            ServerToolCall("web_search", {"query": text}),
            ServerToolResult("web_search_tool_result", found),
            OtherBlock({"type": "hologram", "light": text}, ({"type": "beam", "text": text},)),
        )
    )


def _random_value(rng: Random, depth: int) -> Any:
    kind = rng.randrange(7 if depth else 5)
    if kind == 5:
        return [_random_value(rng, depth - 1) for _ in range(rng.randrange(3))]
    if kind == 6:
        return {rng.choice(HARD_TEXT): _random_value(rng, depth - 1)}
    scalars = (None, rng.random() < 0.5, rng.randrange(-9, 10**9), 0.5, rng.choice(HARD_TEXT))
    return scalars[kind]


#: Wire format -> why an answer may end early; Claude's own words, and ours.
EARLY = {
    "claude": ("max_tokens", "model_context_window_exceeded", "refusal", "pause_turn"),
    "openai-chat": ("max_tokens", "context_window", "content_filter"),
    "openai-responses": ("max_tokens", "content_filter", "pause_turn"),
    "gemini": ("max_tokens", "content_filter", "refusal"),  # a pause there is no end
}


def _random_stop(parts: list[Part], wire: str, rng: Random) -> tuple[str | None, dict[str, Any]]:
    """A stop reason that fits the parts; the token limit may cut the last one's JSON short."""
    calls = any(isinstance(part, ToolCall) for part in parts)
    reasons = (None,) * 8 + EARLY[wire]
    reason = rng.choice(reasons if calls else (*reasons, "stop_sequence"))
    cuts = reason == "max_tokens" and wire != "gemini"  # there a call comes whole or not at all
    if cuts and parts and isinstance(last := parts[-1], ToolCall):
        parts[-1] = msgspec.structs.replace(last, input='{"item": "W-7", "lab')
    if wire == "claude" and reason == "refusal":
        details = {"type": "refusal", "category": "general_harms", "explanation": None}
        return reason, {"stop_details": details}
    return reason, {"stop_sequence": "END"} if reason == "stop_sequence" else {}


def _random_style(rng: Random) -> Style:
    least = rng.randrange(1, 6)
    return Style(
        fragment=(least, least + rng.randrange(20)),
        first_empty=rng.random() < 0.8,
        pings=rng.randrange(4),
        interleave=rng.random() < 0.3,
        ascii=rng.random() < 0.3,
        newline=rng.choice(("\n", "\n", "\r\n", "\r")),
        chunking=rng.choice(("frame", "several", "anywhere", "byte", "whole")),
    )


def _more_style(style: Style, parts: list[Part], rng: Random) -> Style:
    """What only the other wire formats have choices for."""
    inputs = [part.input for part in parts if isinstance(part, ToolCall)]
    by_path = all(_has_paths(value) for value in inputs) and rng.random() < 0.3
    return msgspec.structs.replace(
        style,
        comments=rng.choice((0, 0, 3)),
        usage=rng.choice(("", "each", "last", "none")),
        finish=rng.choice(("", "own", "last")),
        repeat_ids=rng.random() < 0.3,
        form=rng.choice(("sse", "sse", "array")),
        arguments="path" if by_path else "whole",
    )


def _has_paths(value: Any) -> bool:
    """Whether every value in an input has a path of its own: an empty object or list has none."""
    text = json.dumps(value)
    return isinstance(value, dict) and "{}" not in text and "[]" not in text


# --- What a wire can say so that it reads back ----------------------------------------------------


def _chat(parts: list[Part]) -> list[Part]:
    """One thinking, one text, then calls: a message there has no order besides."""
    kinds: tuple[type[Part], ...] = (Thinking, Text)
    firsts = [next((p for p in parts if isinstance(p, kind) and _says(p)), None) for kind in kinds]
    calls = [part for part in parts if isinstance(part, ToolCall)]
    return [*(part for part in firsts if part), *calls]


def _responses(parts: list[Part]) -> list[Part]:
    """All that has an item of its own."""
    return [part for part in parts if not isinstance(part, ServerToolResult | OtherBlock)]


def _gemini(parts: list[Part]) -> list[Part]:
    """No two texts in a row, which would be one; thinking is signed where a call can carry it."""
    out: list[Part] = []
    for part in parts:
        follows = out and type(out[-1]) is type(part) and not isinstance(part, ToolCall)
        if isinstance(part, Text | Thinking | ToolCall) and _says(part) and not follows:
            out.append(part)
    carried = False
    for at in reversed(range(len(out))):
        part = out[at]
        if isinstance(part, ToolCall):
            carried = True
        elif isinstance(part, Thinking):
            out[at] = part if carried else msgspec.structs.replace(part, signature="")
            carried = False
    return _told_apart(out)


def _told_apart(parts: list[Part]) -> list[Part]:
    """The parts, with ids for the calls where two are equal: they could be one, said twice."""
    calls = [part for part in parts if isinstance(part, ToolCall)]
    if all(call not in calls[:at] for at, call in enumerate(calls)):
        return parts
    return [
        msgspec.structs.replace(part, id=f"call-{at}") if isinstance(part, ToolCall) else part
        for at, part in enumerate(parts)
    ]


def _says(part: Part) -> bool:
    """Whether a part has content that can be seen where only content is sent."""
    content = getattr(part, "text", None) or getattr(part, "thinking", None)
    return isinstance(part, ToolCall) or bool(content)


SAYABLE: dict[str, Callable[[list[Part]], list[Part]]] = {
    "openai-chat": _chat,
    "openai-responses": _responses,
    "gemini": _gemini,
}
