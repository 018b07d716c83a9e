"""The terminal event of a Responses answer: its snapshot, its status, and what both are worth.

The snapshot is the last authority. It confirms what streamed, and adds what did not; where it
leaves out a call that streamed, nobody can tell which of the two the model meant.
"""

from __future__ import annotations

from typing import Any

from .dialect import MAX_SAID, count, word
from .events import (
    Ambiguous,
    Event,
    MessageCompleted,
    ProviderError,
    StopReported,
    Tokens,
    UsageReported,
)
from .openai_items import Item, pair, streamed
from .openai_output import Output
from .sse import Frame

__all__ = ["REASON", "TERMINAL", "Final"]

#: The events that end an answer.
TERMINAL = ("response.completed", "response.incomplete", "response.failed", "response.cancelled")

#: Why an answer is incomplete -> our stop reason; of another one "other".
REASON = {
    "max_output_tokens": "max_tokens",
    "max_messages": "max_tokens",
    "content_filter": "content_filter",
    "steered": "pause_turn",
}

FAILED = ("failed", "cancelled")


class Final(Output):
    """The items of one answer, and its end."""

    def __init__(self, named: bool = True) -> None:
        super().__init__(named)
        self._ended = False  # a terminal event came, rightly or not
        self._failed = False  # an error was stated

    def _finish(self, name: str, response: dict[str, Any], frame: Frame) -> tuple[Event, ...]:
        """What a terminal event states; `name` is completed, incomplete, failed or cancelled."""
        status, error = word(response.get("status")) or name, response.get("error")
        usage = _usage(response.get("usage"))
        if name in FAILED or status in FAILED or error:
            return (*usage, *self._failure(name if name in FAILED else status, error, frame))
        events: list[Event] = []
        if status != name:
            text = f"response.{name} with the status {status[:80]!r}"
            events += self._habit("status", "warning", text, frame)
        incomplete = "incomplete" in (name, status)
        output = response.get("output")
        listed = [one for one in output if isinstance(one, dict)] if output else []
        if isinstance(output, list) and listed:
            events += self._reconcile(listed, frame)
        for item in self._items:
            events += self._leftover(item, incomplete, frame)
        reason, raw = self._reason(incomplete, response)
        self.completed = True
        stop = StopReported(reason, raw, frame.number, None, response.get("incomplete_details"))
        return (*events, *usage, stop, MessageCompleted(frame.number))

    def _failure(self, status: str, error: Any, frame: Frame) -> tuple[Event, ...]:
        stop = StopReported("error", status[:MAX_SAID], frame.number)
        if self._failed:  # an error event has said why
            return (stop,)
        self._failed = True
        error = error if isinstance(error, dict) else {"message": error}
        kind = word(error.get("code")) or word(error.get("type")) or status
        message = word(error.get("message")) or f"the response's status is {status!r:.80}"
        return (stop, ProviderError(kind[:200], message[:2000], frame.number))

    def _reason(self, incomplete: bool, response: dict[str, Any]) -> tuple[str, str]:
        """Why the model stopped, in our vocabulary and in the vendor's."""
        if incomplete:
            details = response.get("incomplete_details")
            raw = word(details.get("reason")) if isinstance(details, dict) else ""
            return REASON.get(raw, "other"), raw[:MAX_SAID] or "incomplete"
        parts = (part for item in self._items for part in item.parts.values())
        if any(part.type == "refusal" and streamed(part) for part in parts):
            return "refusal", "completed"
        if any(item.client for item in self._items):
            return "tool_use", "completed"
        if any(item.type == "mcp_approval_request" for item in self._items):
            return "pause_turn", "completed"  # a person must answer before it goes on
        return "end_turn", "completed"

    # ------------------------------------------------------------------ the snapshot

    def _reconcile(self, output: list[dict[str, Any]], frame: Frame) -> list[Event]:
        """Hold the items that streamed to the snapshot's."""
        before = tuple(self._items)
        found = pair(before, output)
        events: list[Event] = []
        for place, (item, given) in enumerate(zip(found, output, strict=True)):
            if item is not None:
                events += self._settle(item, given, frame)
            else:
                events += self._unstreamed(place, given, frame)
        kept = {id(item) for item in found}
        for item in before:
            if id(item) not in kept:
                events += self._left_out(item, frame)
        return events

    def _unstreamed(self, place: int, given: dict[str, Any], frame: Frame) -> list[Event]:
        type = word(given.get("type"))
        if not type:
            return [*self._habit("malformed-item", "warning", "an item without a type", frame)]
        index = place if place not in self._by_index else self._next_index()
        said = f"item {index}, a {type[:80]}, did not stream; only the snapshot has it"
        begun = self._begin(index, given, frame)
        item = self._by_index.get(index)
        if item is None:
            return list(begun)
        severe = item.client or item.form.kind == "text"
        rule = ("unstreamed-item", "warning") if severe else ("unstreamed", "note")
        events = [*self._habit(rule[0], rule[1], said, frame), *begun]  # type: ignore[arg-type]
        return [*events, *self._settle(item, given, frame)]

    def _left_out(self, item: Item, frame: Frame) -> tuple[Event, ...]:
        text = f"item {item.index}, a {item.type[:80]}, streamed, but the snapshot leaves it out"
        if item.client:
            return (Ambiguous(text, frame.number),)
        return self._habit("left-out", "warning", text, frame)

    # ------------------------------------------------------------------ what is left open

    def _leftover(self, item: Item, incomplete: bool, frame: Frame) -> tuple[Event, ...]:
        events: tuple[Event, ...] = ()
        if not item.done:
            if not incomplete:
                text = f"item {item.index} is not done where the answer is complete"
                events = self._habit("unfinished-item", "warning", text, frame)
            events = (*events, *self._announced(item, frame), *self._close(item, frame))
        if not item.client:
            return events
        doubt = _doubt(item)
        if doubt and not incomplete:
            events = (*events, Ambiguous(f"the call of item {item.index} {doubt}", frame.number))
        return events

    def _announced(self, item: Item, frame: Frame) -> tuple[Event, ...]:
        """What an item held when it was announced, where nothing else has brought it."""
        parts = (item.own, *item.parts.values())
        if any(part.fragments or part.whole is not None for part in parts):
            return ()
        whole = {} if item.client and item.form.fields else item.given
        events = self._content(item, whole, frame)
        if item.client:
            item.own.whole = None  # it may have been the start of more
        return events


def _doubt(item: Item) -> str:
    """What keeps a call from being acted on; "" where nothing does."""
    if not item.call_id:
        return "has no id: no result could name it"
    if item.own.whole is None or not item.settled:
        return "was never stated whole: a piece may be lost"
    if item.status == "incomplete":
        return "is itself incomplete, though the answer is complete"
    return ""


def _usage(usage: Any) -> tuple[Event, ...]:
    if not isinstance(usage, dict) or not usage:
        return ()
    thinking = count(usage, "output_tokens_details", "reasoning_tokens")
    tokens = Tokens(count(usage, "input_tokens"), count(usage, "output_tokens"), thinking)
    return (UsageReported(usage, tokens),)
