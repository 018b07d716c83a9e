"""Gemini Interactions: frames in, events out. A fifth dialect, to show what one more takes.

    interaction.created (step.start step.delta* step.stop)* interaction.completed [DONE]

with `interaction.status_update` anywhere. Source: the types of the vendor's Python SDK google-genai
3.6. A step is found by its `index`. That the interaction is "completed" is no success yet: the
event carries the last `status`, which may be any, and the status says what the answer is worth.
Earlier revisions said `interaction.start`, `content.start` and so on; they are read as well.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any, ClassVar, NamedTuple

from .dialect import MAX_SAID, Dialect, count, gap_in, is_index, word
from .events import (
    Ambiguous,
    Attached,
    Event,
    InputDelta,
    KeepAlive,
    Kind,
    MessageCompleted,
    MessageStarted,
    ProviderError,
    SegmentStarted,
    SegmentStopped,
    SignatureDelta,
    StopReported,
    TextDelta,
    ThinkingDelta,
    Tokens,
    Unknown,
    UsageReported,
)
from .payload import key_twice, same_json
from .sse import Frame

__all__ = ["InteractionsReader"]

#: The last status -> our stop reason. `failed` is an error, and what is not here is "other".
STOP_REASON = {
    "completed": "end_turn",
    "requires_action": "tool_use",
    "requires_continuation": "pause_turn",
    "incomplete": "max_tokens",
    "budget_exceeded": "max_tokens",
}

#: A status that says that work goes on: the marker must not come with it.
UNDER_WAY = ("in_progress", "queued", "idle")

#: Step type -> our kind. A `*_call` is the provider's own tool; anything else is "other".
KIND: dict[str, Kind] = {
    "model_output": "text",
    "thought": "thinking",
    "function_call": "tool_call",
}

#: Steps that are "other" and known, beside every `*_result`.
OTHER = ("user_input", "function_result")

#: Earlier names of the events.
LEGACY = {
    "interaction.start": "interaction.created",
    "interaction.complete": "interaction.completed",
    "content.start": "step.start",
    "content.delta": "step.delta",
    "content.stop": "step.stop",
}

#: Steps that may be open at once; each costs memory until it stops.
MAX_OPEN = 256


class Step:
    """An open step: its segment, and a tool's input as far as it came."""

    def __init__(self, segment: str, type: str, kind: Kind, given: str) -> None:
        self.segment, self.type, self.kind = segment, type, kind
        self.given = given  # an input that the start held, as JSON text
        self.pieces: list[str] = []  # what streamed beside it


class Taken(NamedTuple):
    """A delta: the field that holds it, what it becomes, the kind of step that takes it."""

    field: str
    make: Callable[[str, str], Event]
    kind: Kind


#: Delta type -> how it is taken, where it is text. Others are whole values, attached to their step.
DELTAS = {
    "text": Taken("text", TextDelta, "text"),
    "thought_summary": Taken("content", ThinkingDelta, "thinking"),
    "thought_signature": Taken("signature", SignatureDelta, "thinking"),
    "arguments_delta": Taken("arguments", InputDelta, "tool_call"),
}


class InteractionsReader(Dialect):
    """Read one answer."""

    wire = "gemini-interactions"
    marker = "interaction.completed"

    def __init__(self, named: bool = True) -> None:
        super().__init__(named)
        self.started = False
        self._ended = False  # the marker came, rightly or not
        self._status = ""
        self._open: dict[int, Step] = {}
        self._used: set[int] = set()

    @classmethod
    def recognises(cls, event: str, payload: dict[str, Any]) -> bool:
        """Whether an event name and its payload can only be this wire format's."""
        name = word(payload.get("event_type")) or event
        return LEGACY.get(name, name) in cls.EVENTS and name != "error"

    def unfinished(self) -> str:
        """What is missing for the answer to be complete, in words; "" when its marker came."""
        return "" if self._ended else ", ".join([*self._missing(), self.marker])

    def _missing(self) -> list[str]:
        missing = [] if self.started else ["interaction.created"]
        return missing + [f"step.stop of step {index}" for index in sorted(self._open)[:3]]

    def payload(self, payload: dict[str, Any], frame: Frame) -> tuple[Event, ...]:
        """The events that a payload states."""
        said = word(payload.get("event_type")) or frame.event
        name = LEGACY.get(said, said)
        read = self.EVENTS.get(name)
        if read is None:
            ping = "ping" in (said, payload.get("type"))
            return (KeepAlive(),) if ping else (Unknown(said[:200] or "no type", frame.number),)
        return self._after_end(name, frame) if self._ended else read(self, payload, frame)

    def done(self, frame: Frame) -> tuple[Event, ...]:
        """`[DONE]` follows the marker, and is none."""
        if self._ended:
            return ()
        text = "[DONE] came before interaction.completed, and completes nothing"
        return self._habit("done-marker", "warning", text, frame)

    def _after_end(self, name: str, frame: Frame) -> tuple[Event, ...]:
        if name == "interaction.created":
            self._second = True
            text = "a second interaction begins after the first; the first is judged"
            return (self._fault("second-answer", text, frame),)
        if name == self.marker:
            return self._habit("end-twice", "warning", f"{name} came again", frame)
        text = f"{name} after interaction.completed belongs to no answer"
        return (self._fault("after-the-end", text, frame),)

    # ------------------------------------------------------------------ the six events

    def _created(self, payload: dict[str, Any], frame: Frame) -> tuple[Event, ...]:
        if self.started:
            text = "a second interaction.created inside the answer"
            return (self._fault("second-start", text, frame),)
        about = _object(payload.get("interaction"))
        self.started = True
        self._take_status(about)
        model = word(about.get("model")) or word(about.get("agent"))
        return (MessageStarted(word(about.get("id")), model), *_usage(about.get("usage")))

    def _status_update(self, payload: dict[str, Any], frame: Frame) -> tuple[Event, ...]:
        self._take_status(payload)
        return _usage(payload.get("usage"))

    def _completed(self, payload: dict[str, Any], frame: Frame) -> tuple[Event, ...]:
        about = _object(payload.get("interaction"))
        self._take_status(about)
        usage, self._ended = _usage(about.get("usage")), True
        if missing := self._missing():
            text = f"interaction.completed came without {', '.join(missing)}"
            return (*usage, self._fault("stop-too-early", text, frame))
        if self._status in ("", *UNDER_WAY):
            text = f"interaction.completed with the status {self._status!r}, which is no end"
            return (*usage, self._fault("status", text, frame))
        if self._status == "failed":
            said = _object(about.get("error"))
            message = word(said.get("message")) or "the interaction failed"
            return (
                *usage,
                ProviderError(word(said.get("code")) or "failed", message, frame.number),
            )
        raw = self._status[:MAX_SAID]
        self.completed = True
        stop = StopReported(STOP_REASON.get(raw, "other"), raw, frame.number)
        gap = gap_in(self._used, "steps", "a step")
        lost = (Ambiguous(gap, frame.number),) if gap else ()
        return (stop, *usage, *lost, MessageCompleted(frame.number))

    def _step_start(self, payload: dict[str, Any], frame: Frame) -> tuple[Event, ...]:
        index, step = payload.get("index"), payload.get("step", payload.get("content"))
        if not is_index(index) or not isinstance(step, dict):
            text = "step.start needs an index (0, 1, 2, …) and a step"
            return (self._fault("malformed", text, frame),)
        if not self.started:
            return (self._fault("before-start", f"step {index} before the interaction", frame),)
        if index in self._used or len(self._open) >= MAX_OPEN:
            what = "its number has been used" if index in self._used else "too many are open"
            return (self._fault("index-reused", f"step {index} starts, but {what}", frame),)
        self._used.add(index)
        type = word(step.get("type")) or "unknown"
        kind = KIND.get(type, "tool_call" if type.endswith("_call") else "other")
        given = step.get("arguments") if kind == "tool_call" else None
        text = given if isinstance(given, str) else json.dumps(given) if given else ""
        self._open[index] = opened = Step(str(index), type, kind, text)
        name, call_id = word(step.get("name")), word(step.get("id"))
        server = kind == "tool_call" and type != "function_call"
        start = SegmentStarted(
            opened.segment,
            kind,
            frame.number,
            type,
            name or (type if server else ""),
            call_id,
            server,
        )
        return (*self._call(opened, call_id, server, frame), start, *_initial(opened, step))

    def _call(self, step: Step, call_id: str, server: bool, frame: Frame) -> tuple[Event, ...]:
        """What makes a step's start unfit to be acted on, or unknown."""
        if step.kind == "other" and not (step.type in OTHER or step.type.endswith("_result")):
            return (Unknown(f"step type {step.type[:100]}", frame.number),)
        if step.kind != "tool_call" or server:
            return ()
        if step.given and (twice := key_twice(frame.data)):
            return (self._fault("malformed", f"in a tool call's start {twice}", frame),)
        return self._named_once(call_id, frame)

    def _step_delta(self, payload: dict[str, Any], frame: Frame) -> tuple[Event, ...]:
        index, delta = payload.get("index"), payload.get("delta")
        step = self._open.get(index) if is_index(index) else None
        if step is None or not isinstance(delta, dict):
            return (
                self._fault("delta-without-start", f"a delta for no open step: {index!r}", frame),
            )
        type = word(delta.get("type"))
        taken = DELTAS.get(type)
        if taken is None or step.kind != taken.kind:
            return self._attach(step, type, delta, frame)
        value = delta.get(taken.field)
        text = value.get("text") if isinstance(value, dict) else value
        if not isinstance(text, str):
            return (self._fault("malformed", f"{type} without its {taken.field}", frame),)
        if step.kind == "tool_call" and step.given:
            step.pieces.append(text)
            return ()
        return (taken.make(step.segment, text),)

    def _attach(
        self, step: Step, type: str, delta: dict[str, Any], frame: Frame
    ) -> tuple[Event, ...]:
        """A whole value: kept, and for a call that the client would run never understood."""
        kept = Attached(
            step.segment, type or "delta", {k: v for k, v in delta.items() if k != "type"}
        )
        if step.type == "function_call" or type == "arguments_delta":
            text = f"a {type!r:.80} for step {step.segment} ({step.type[:80]}), not understood"
            return (kept, Ambiguous(text, frame.number))
        return (kept,)

    def _step_stop(self, payload: dict[str, Any], frame: Frame) -> tuple[Event, ...]:
        index = payload.get("index")
        step = self._open.pop(index, None) if is_index(index) else None
        if step is None:
            text = f"a stop for step {index!r}, which is not open"
            return (self._fault("stop-without-start", text, frame),)
        stopped = SegmentStopped(step.segment, frame.number)
        given = (InputDelta(step.segment, step.given),) if step.given else ()
        if step.pieces and not same_json("".join(step.pieces), step.given):
            text = f"step {index} started with one input and streamed another"
            return (*given, Ambiguous(text, frame.number), stopped)
        return (*given, stopped)

    def _take_status(self, holder: dict[str, Any]) -> None:
        self._status = word(holder.get("status")) or self._status

    #: Event type -> how it is read. `error` is not here: an error counts in any shape.
    EVENTS: ClassVar[dict[str, Callable[..., tuple[Event, ...]]]] = {
        "interaction.created": _created,
        "interaction.status_update": _status_update,
        "interaction.completed": _completed,
        "step.start": _step_start,
        "step.delta": _step_delta,
        "step.stop": _step_stop,
    }


def _object(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def _initial(step: Step, start: dict[str, Any]) -> tuple[Event, ...]:
    """What a step already holds when it starts."""
    if step.kind == "text":
        parts = [_object(part) for part in start.get("content") or ()]
        return tuple(TextDelta(step.segment, p["text"]) for p in parts if word(p.get("text")))
    if step.kind == "thinking":
        parts = [_object(part) for part in start.get("summary") or ()]
        texts = [ThinkingDelta(step.segment, p["text"]) for p in parts if word(p.get("text"))]
        signature = word(start.get("signature"))
        return (*texts, *((SignatureDelta(step.segment, signature),) if signature else ()))
    shown = {k: v for k, v in start.items() if k not in ("type", "id", "name", "arguments")}
    return tuple(Attached(step.segment, *item) for item in shown.items())


def _usage(usage: Any) -> tuple[Event, ...]:
    """The counts are totals so far; thinking is counted apart from the output."""
    if not isinstance(usage, dict) or not usage:
        return ()
    output, thought = count(usage, "total_output_tokens"), count(usage, "total_thought_tokens")
    whole = None if output is None else output + (thought or 0)
    return (UsageReported(usage, Tokens(count(usage, "total_input_tokens"), whole, thought)),)
