"""The timings of one stream, with the field's own definitions; `FORMULAS` says each in one line.

A chunk is not a token: what has an arrival time is a read, and all that it completes arrived then.
*Content* is non-empty text, thinking or tool input, the name of a tool, or a part of another kind;
a role, a signature, token counts and pings are none. So a ping ends an idle time, never a wait for
progress. What cannot be known is None, never zero: there is no first token without a token.

This file holds what the numbers mean. Read next: `meter.py`, which takes them as a stream arrives.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Protocol

import msgspec

from streamlab.errors import UsageError

__all__ = [
    "BUFFERED_ADVICE",
    "FORMULAS",
    "MANY_FORMULAS",
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
#: And it comes faster than a model writes, so many events a second: a connection that brings a
#: healthy stream in larger pieces (a phone's radio that sleeps) brings no more than was written.
FASTEST = 1000.0

BUFFERED_ADVICE = (
    "something on the way collects the events; in a proxy try X-Accel-Buffering: no, compression "
    "off, chunked transfer; where only tool input comes so, the provider may hold it to check it"
)

#: A proxy does not know one kind of content from another.
HELD_ADVICE = (
    "{held} came at once, but {flowed} as it was written: so nothing on the way collects; the "
    "provider holds that kind back, as some do with tool input to check it"
)

#: The phases, in the order in which an answer has them; and what a person calls them.
PHASES = {"thinking": "thinking", "text": "text", "tool": "tool input"}

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
    f"{TOGETHER_S * 1000:g} ms apart) after a wait of {HELD_S:g} s or more: within "
    f"{HELD_PART:.0%} of that wait, and at {FASTEST:g} events a second or more",
    "together": "content events that came with another one / content events",
    "held": "content events that came together after a wait, as in `buffered` / content events",
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
    "output_tokens_per_s": "tokens of this kind / e2e_s, where the usage counts them apart",
    "settlement_lag_s": "last content of this kind → the end of its part",
    "stalls": "as above, between content of this kind",
    "buffered": "as above, of the content of this kind",
    "together": "content of this kind that came with any other content / content of this kind",
    "held": "as above, of the content of this kind",
}

MANY_FORMULAS = {"goodput": "streams that were complete and met every objective / seconds"}


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
    output_tokens_per_s: float | None
    settlement_lag_s: float | None
    stalls: Stalls
    buffered: bool
    together: float
    held: float

    @property
    def flowed(self) -> bool:
        """Whether most of it came one by one, and there was enough to see that."""
        return self.content_events >= TOGETHER_MIN and self.together < 0.5


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
    held: float | None
    longest_idle_s: float
    longest_wait_s: float
    content_events: int
    phases: dict[str, Phase]

    @property
    def advice(self) -> str:
        """What to do where content was held back: by a proxy, or by the provider; "" elsewhere."""
        held = [PHASES[name] for name, phase in self.phases.items() if phase.buffered]
        flowed = [PHASES[name] for name, phase in self.phases.items() if phase.flowed]
        if held and flowed:
            return HELD_ADVICE.format(held=" and ".join(held), flowed=" and ".join(flowed))
        return BUFFERED_ADVICE if self.buffered else ""


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
    least. A dot leads inside: `**{"icl_s.p99": 0.5, "phases.text.ttfc_s": 2.0}`. A metric that is
    not known meets none. Raises `UsageError` for a name that is none.
    """
    return sum(_meets(outcome, objectives) for outcome in outcomes) / seconds


def _meets(outcome: Judged, objectives: Mapping[str, float]) -> bool:
    if not outcome.complete or (objectives and outcome.metrics is None):
        return False
    return all(_within(outcome.metrics, name, bound) for name, bound in objectives.items())


def _within(metrics: Metrics | None, name: str, bound: float) -> bool:
    value: Any = metrics
    for part in name.split("."):
        if value is None:
            return False
        known = PHASES if isinstance(value, dict) else getattr(value, "__struct_fields__", ())
        if part not in known:
            raise UsageError(f"objective {name!r}: {part!r} is none of {', '.join(known)}")
        value = value.get(part) if isinstance(value, dict) else getattr(value, part)
    if value is None:
        return False
    return bool(value >= bound if name.endswith("output_tokens_per_s") else value <= bound)
