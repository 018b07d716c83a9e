"""Recordings of nobody's data: written from intended content, by a seed, without a network.

`answer([Text("Hi"), ToolCall("pay", {"amount": 5})])` is the stream that Claude would have sent for
that content, chunk by chunk with times. The same seed gives the same bytes and times on every
platform: nothing is drawn but `random`, `randrange` and `choice`, and times are whole milliseconds.

First the writer, then the recordings that the lessons use. Read next: `faults.py`, which breaks
them.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterable
from itertools import accumulate, pairwise
from random import Random
from typing import Any

import msgspec

from streamlab.errors import UsageError
from streamlab.streams import claude_writer
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
from streamlab.streams.recording import Chunk, Recording

__all__ = [
    "CHUNKING",
    "CITATION",
    "HARD_TEXT",
    "OtherBlock",
    "Pace",
    "Part",
    "RedactedThinking",
    "ServerToolCall",
    "ServerToolResult",
    "Style",
    "Text",
    "Thinking",
    "ToolCall",
    "answer",
    "change_label",
    "greeting",
    "long_text",
    "parallel_tools",
    "pay_invoice",
    "random_answer",
    "six_events",
    "thinking_then_tool",
    "tool_json",
]

MODEL = "claude-synthetic"


class Pace(msgspec.Struct, frozen=True):
    """Seconds until the first frame, and from one delta to the next, give or take half."""

    first: float = 0.4
    gap: float = 0.03


STYLE, PACE = Style(), Pace()


# --- The writer -----------------------------------------------------------------------------------


def answer(
    parts: Iterable[Part],
    stop_reason: str | None = None,
    *,
    seed: int = 7,
    stop_sequence: str | None = None,
    stop_details: dict[str, Any] | None = None,
    usage: dict[str, Any] | None = None,
    model: str = MODEL,
    note: str = "",
    style: Style = STYLE,
    pace: Pace = PACE,
) -> Recording:
    """Write the stream of one whole answer.

    Without a stop reason it is "tool_use" where the client is asked to run a tool, else "end_turn".
    """
    rng = Random(seed)
    script = claude_writer.identified(parts, seed)
    calls = any(isinstance(part, ToolCall) for part in script)
    delta = {
        "stop_reason": stop_reason or ("tool_use" if calls else "end_turn"),
        "stop_sequence": stop_sequence,
        **({"stop_details": stop_details} if stop_details else {}),
    }
    start = {"id": f"msg_{seed:04}", "model": model}
    payloads = claude_writer.payloads(script, delta, usage, start, style, rng)
    frames = [claude_writer.frame(payload, style.newline, style.ascii) for payload in payloads]
    times = _times([str(payload["type"]) for payload in payloads], pace, rng)
    chunks = _chunks(frames, times, style.chunking, rng)
    return Recording(chunks, "eof", "claude", times[-1], "synthetic", model, note)


def _times(types: list[str], pace: Pace, rng: Random) -> list[float]:
    """When each frame comes, in seconds: generating takes time, framing hardly any."""
    t = pace.first * (0.75 + rng.random() / 2)
    times = []
    for type in types:
        t += (pace.gap if type == "content_block_delta" else 0.001) * (0.5 + rng.random())
        times.append(round(t, 3))
    return times


# --- Network reads --------------------------------------------------------------------------------


def _several_frames(ends: list[int], rng: Random) -> list[int]:
    """One whole frame or more."""
    return [end for end in ends[:-1] if rng.random() < 0.4] + ends[-1:]


def _anywhere(ends: list[int], rng: Random) -> list[int]:
    """Also inside a frame, a line end, or a UTF-8 character."""
    cuts, at = [], rng.randrange(1, 120)
    while at < ends[-1]:
        cuts.append(at)
        at += rng.randrange(1, 120)
    return [*cuts, ends[-1]]


#: Where the bytes are cut into reads, from the offsets at which the frames end.
CHUNKING: dict[str, Callable[[list[int], Random], list[int]]] = {
    "frame": lambda ends, rng: ends,
    "several": _several_frames,
    "anywhere": _anywhere,
    "byte": lambda ends, rng: list(range(1, ends[-1] + 1)),
    "whole": lambda ends, rng: ends[-1:],
}


def _chunks(
    frames: list[bytes], times: list[float], chunking: str, rng: Random
) -> tuple[Chunk, ...]:
    """The reads that bring the frames; each comes when the frame of its last byte is written."""
    if chunking not in CHUNKING:
        raise UsageError(f"chunking {chunking!r} is none of {', '.join(CHUNKING)}")
    data, ends = b"".join(frames), list(accumulate(map(len, frames)))
    cuts = pairwise([0, *CHUNKING[chunking](ends, rng)])
    return tuple(Chunk(times[bisect_left(ends, end)], data[start:end]) for start, end in cuts)


# --- The recordings of the lessons ----------------------------------------------------------------


def six_events(**options: Any) -> Recording:
    """The smallest whole answer: six frames, one of each kind."""
    options = {"style": Style(pings=0), "note": "the six events", **options}
    return answer([Text(("Hello!",))], **options)


def greeting(**options: Any) -> Recording:
    """A text answer in five fragments."""
    pieces = ("Hello", "! What", " would you", " like to", " know?")
    return answer([Text(pieces)], **{"note": "a greeting", **options})


def change_label(**options: Any) -> Recording:
    """The running example, 20 frames: a sentence, then a proposal for work item W-7."""
    text = Text(("I'll mark", " W-7 as", " ready", " for review."))
    fragments = ('{"item"', ': "W', '-7"', ', "label": ', '"Ready', " for rev", 'iew"}')
    call = ToolCall("change_label", fragments)
    return answer([text, call], **{"note": "change_label for W-7", **options})


def pay_invoice(**options: Any) -> Recording:
    """A payment of 100000, whose frame 11 ends with `"amount": 1`."""
    text = Text(("I'll pay", " INV-17."))
    fragments = ('{"invoice": ', '"INV-17"', ', "amount": 1', "00000", ', "currency": "EUR"}')
    call = ToolCall("pay_invoice", fragments)
    return answer([text, call], **{"note": "pay_invoice INV-17", **options})


def parallel_tools(**options: Any) -> Recording:
    """Two calls in one answer."""
    parts: list[Part] = [
        Text(("I'll label", " both.")),
        ToolCall("change_label", {"item": "W-7", "label": "Ready for review"}),
        ToolCall("change_label", {"item": "W-8", "label": "Blocked"}),
    ]
    return answer(parts, **{"note": "two calls of change_label", **options})


def thinking_then_tool(**options: Any) -> Recording:
    """Signed thinking, then a call: what must go back to the API byte for byte."""
    thoughts = ("W-7 has passed", " its checks,", " so it can", " be reviewed.")
    parts: list[Part] = [
        Thinking(thoughts, "c3ludGhldGljLXNpZ25hdHVyZQ=="),
        ToolCall("change_label", {"item": "W-7", "label": "Ready for review"}),
    ]
    return answer(parts, **{"note": "thinking, then change_label", **options})


def long_text(n: int, **options: Any) -> Recording:
    """A text answer of `n` characters."""
    words = Random(n)
    text = "A long answer:"
    pieces = [text]
    size = len(text)
    while size < n:
        pieces.append(" " + words.choice(_WORDS))
        size += len(pieces[-1])
    return answer([Text("".join(pieces)[:n])], **{"note": f"{n} characters of text", **options})


def tool_json(size: int, fragment: int = 8, **options: Any) -> Recording:
    """A call whose input is `size` bytes of JSON rows, in fragments of `fragment` bytes."""
    row = '{"item": "W-%06d", "label": "Ready for review"}, '
    head, tail = '{"rows": [', '{"pad": "%s"}]}'
    rows = max(0, size - len(head) - len(tail) + 2) // len(row % 0)
    text = head + "".join(row % number for number in range(rows))
    text += tail % ("." * max(0, size - len(text) - len(tail) + 2))
    style = Style(fragment=(fragment, fragment), pings=0)
    options = {"style": style, "pace": Pace(gap=0.001), "note": f"{size} bytes of input", **options}
    return answer([ToolCall("import_rows", text)], **options)


_WORDS = ("an", "answer", "comes", "in", "parts", "and", "each", "part", "is", "whole", "last")


# --- Any answer at all, for the tests of laws -----------------------------------------------------

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


def random_answer(seed: int) -> tuple[tuple[Part, ...], Recording]:
    """A legal answer of any kind in any style, with the parts that it was written from."""
    rng = Random(seed)
    parts = [_random_part(rng) for _ in range(rng.randrange(5))]
    stop_reason, options = _random_stop(parts, rng)
    script = claude_writer.identified(parts, seed)
    recording = answer(
        script, stop_reason, seed=seed, style=_random_style(rng), note=f"seed {seed}", **options
    )
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


def _random_stop(parts: list[Part], rng: Random) -> tuple[str | None, dict[str, Any]]:
    """A stop reason that fits the parts; the token limit may cut the last one's JSON short."""
    calls = any(isinstance(part, ToolCall) for part in parts)
    early = ("max_tokens", "model_context_window_exceeded", "refusal", "pause_turn")
    reasons = (None,) * 8 + early
    reason = rng.choice(reasons if calls else (*reasons, "stop_sequence"))
    if reason == "max_tokens" and parts and isinstance(last := parts[-1], ToolCall):
        parts[-1] = msgspec.structs.replace(last, input='{"item": "W-7", "lab')
    if reason == "refusal":
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
