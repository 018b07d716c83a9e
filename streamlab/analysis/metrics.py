"""The timings of one stream, with the field's own definitions; `FORMULAS` says each in one line.

A chunk is not a token: what has an arrival time is a read, and all that it completes arrived then.
*Content* is non-empty text, thinking or tool input, the name of a tool, or a part of another kind;
a role, a signature, token counts and pings are none. So a ping ends an idle time, never a wait for
progress. What cannot be known is None, never zero: there is no first token without a token.

This file holds what the numbers mean. Read next: `meter.py`, which takes them as a stream arrives.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Protocol

import msgspec

__all__ = [
    "BUFFERED_ADVICE",
    "FORMULAS",
    "PHASE_FORMULAS",
    "Metrics",
    "Phase",
    "Spread",
    "Stalls",
    "goodput",
]

#: A stall is a gap of more than this many seconds (a reader's thought breaks after one, and one
#: lost packet can cost one; two are neither) ...
STALL_S = 2.0
#: ... and of more than this many times the median of the other gaps: slow but steady is no stall.
STALL_K = 10.0

#: Content events at most this many seconds apart came together.
TOGETHER_S = 0.002
#: A healthy network brings two or three frames in one read; from this many on, something held them.
TOGETHER_MIN = 4
#: A wait of this many seconds before they came is one that a person could have been reading in.
HELD_S = 0.25
#: What a wait held back comes within this part of it; a large answer takes its time on the network.
HELD_PART = 0.1

BUFFERED_ADVICE = (
    "something on the way collects the events; in a proxy try X-Accel-Buffering: no, compression "
    "off, chunked transfer; where only tool input comes so, the provider may hold it to check it"
)

FORMULAS = {
    "ttfc_s": "request sent → first content of any kind",
    "ttft_s": "request sent → first visible text",
    "time_to_first_thinking_s": "request sent → first thinking",
    "time_to_first_tool_s": "request sent → first tool name or input",
    "icl_s": "gaps between successive content events: median, p90, p99, max",
    "tpot_s": "(last content - first content) / (output tokens - 1)",
    "e2e_s": "request sent → last content",
    "settlement_lag_s": "last content → completion marker",
    "output_tokens_per_s": "output tokens / e2e_s",
    "stalls": f"gaps between content events, or to an end that is not completion, over "
    f"max({STALL_S:g} s, {STALL_K:g} x median of the other gaps)",
    "buffered": f"more than half of the content came together ({TOGETHER_MIN} events or more, "
    f"{TOGETHER_S * 1000:g} ms apart) after a wait of {HELD_S:g} s or more, within "
    f"{HELD_PART:.0%} of that wait",
    "together": "content events that came with another one / content events",
    "longest_idle_s": "longest time without any byte; a ping ends it",
    "longest_wait_s": "longest time without content, from the request to completion or the end",
    "content_events": "events that carried content",
    "phases": "the same for thinking, text and tool input alone",
}

PHASE_FORMULAS = {
    "content_events": "events that carried content of this kind",
    "ttfc_s": "request sent → first content of this kind",
    "e2e_s": "request sent → last content of this kind",
    "icl_s": "gaps between successive content events, where both are of this kind",
    "tpot_s": "(last - first) / (tokens of this kind - 1), where the usage counts them apart",
    "stalls": "as above, between content of this kind",
}


class Spread(msgspec.Struct, frozen=True):
    """How some gaps are spread, in seconds; percentiles are interpolated between neighbours."""

    median: float
    p90: float
    p99: float
    max: float


class Stalls(msgspec.Struct, frozen=True):
    """Silences too long for this stream, in seconds."""

    count: int = 0
    total_s: float = 0.0
    longest_s: float = 0.0
    at: tuple[float, ...] = ()  #: when each began, since the request was sent
    lasted_s: tuple[float, ...] = ()


class Phase(msgspec.Struct, frozen=True):
    """The timings of thinking, text or tool input alone; see `PHASE_FORMULAS`."""

    content_events: int
    ttfc_s: float
    e2e_s: float
    icl_s: Spread | None
    tpot_s: float | None
    stalls: Stalls


class Metrics(msgspec.Struct, frozen=True):
    """The timings of one stream, in seconds; see `FORMULAS`."""

    ttfc_s: float | None
    ttft_s: float | None
    time_to_first_thinking_s: float | None
    time_to_first_tool_s: float | None
    icl_s: Spread | None
    tpot_s: float | None
    e2e_s: float | None
    settlement_lag_s: float | None
    output_tokens_per_s: float | None
    stalls: Stalls
    buffered: bool
    together: float | None
    longest_idle_s: float
    longest_wait_s: float
    content_events: int
    phases: dict[str, Phase]


class Judged(Protocol):
    """What `goodput` looks at; an `Outcome` is one."""

    @property
    def complete(self) -> bool:
        """Whether the answer is whole."""

    @property
    def metrics(self) -> Metrics | None:
        """Its timings."""


def goodput(outcomes: Iterable[Judged], seconds: float, **objectives: float) -> float:
    """Streams a second that were complete and met every objective.

    An objective is the most that a metric may be, by its name; of `output_tokens_per_s` it is the
    least. A metric that is not known meets none.
    """
    return sum(_meets(outcome, objectives) for outcome in outcomes) / seconds


def _meets(outcome: Judged, objectives: Mapping[str, float]) -> bool:
    if not outcome.complete or (objectives and outcome.metrics is None):
        return False
    for name, bound in objectives.items():
        value = getattr(outcome.metrics, name)
        least = name == "output_tokens_per_s"
        if value is None or (value < bound if least else value > bound):
            return False
    return True
