"""Write an answer down: parts in, a recording out, on any wire, by a seed and without a network.

`answer([Text("Hi"), ToolCall("pay", {"amount": 5})])` is the stream that Claude would have sent for
that content, chunk by chunk with times; `wire="gemini"` is what Gemini would have. The same seed
gives the same bytes and times on every platform: nothing is drawn but `random`, `randrange` and
`choice`, and times are whole milliseconds.

Read next: `synth.py`, for the recordings of the lessons.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterable
from itertools import accumulate, pairwise
from random import Random
from typing import Any, Protocol

import msgspec

from streamlab.errors import UsageError
from streamlab.streams import (
    claude_writer,
    gemini_writer,
    openai_chat_writer,
    openai_responses_writer,
)
from streamlab.streams.parts import Part, Style
from streamlab.streams.recording import Chunk, Recording
from streamlab.streams.writing import Order, Written

__all__ = ["CHUNKING", "MODELS", "WRITERS", "Pace", "answer", "identified"]


class Writer(Protocol):
    """One side of a wire format: a module with these two functions."""

    def identified(self, parts: Iterable[Part], seed: int) -> tuple[Part, ...]:
        """The parts with the ids that the format has."""

    def write(
        self, parts: tuple[Part, ...], order: Order, style: Style, rng: Random
    ) -> list[Written]:
        """The frames of one whole answer."""


#: Wire format -> who writes it.
WRITERS: dict[str, Writer] = {
    "claude": claude_writer,
    "openai-chat": openai_chat_writer,
    "openai-responses": openai_responses_writer,
    "gemini": gemini_writer,
}

#: Wire format -> the model that a synthetic answer is said to come from.
MODELS = {
    "claude": "claude-synthetic",
    "openai-chat": "gpt-synthetic",
    "openai-responses": "gpt-synthetic",
    "gemini": "gemini-synthetic",
}


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
    wire: str = "claude",
    seed: int = 7,
    stop_sequence: str | None = None,
    stop_details: dict[str, Any] | None = None,
    usage: dict[str, Any] | None = None,
    model: str = "",
    note: str = "",
    style: Style = STYLE,
    pace: Pace = PACE,
) -> Recording:
    """Write the stream of one whole answer, as the vendor of a wire format sends it.

    Without a stop reason it is "tool_use" where the client is asked to run a tool, else "end_turn".
    A reason is one of our words (`STOPS` of each writer) or the vendor's own; Claude's are not
    checked. `usage` is in the vendor's words. Raises `UsageError` for a part or a reason that the
    format has no place for.
    """
    writer, rng = _writer(wire), Random(seed)
    model = model or MODELS[wire]
    order = Order(seed, model, stop_reason, stop_sequence, stop_details, usage)
    written = writer.write(writer.identified(parts, seed), order, style, rng)
    times = _times([frame.content for frame in written], pace, rng)
    chunks = _chunks([frame.data for frame in written], times, style.chunking, rng)
    return Recording(chunks, "eof", wire, times[-1], "synthetic", model, note)


def identified(parts: Iterable[Part], wire: str = "claude", seed: int = 7) -> tuple[Part, ...]:
    """The parts with the ids that `answer` gives them on a wire."""
    return _writer(wire).identified(parts, seed)


def _writer(wire: str) -> Writer:
    if wire not in WRITERS:
        raise UsageError(f"wire {wire!r} is none of {', '.join(WRITERS)}")
    return WRITERS[wire]


def _times(content: list[bool], pace: Pace, rng: Random) -> list[float]:
    """When each frame comes, in seconds: generating takes time, framing hardly any."""
    t = pace.first * (0.75 + rng.random() / 2)
    times = []
    for generated in content:
        t += (pace.gap if generated else 0.001) * (0.5 + rng.random())
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
