"""Claude Messages: frames in, events out; and the only place that knows this format's grammar.

    message_start (content_block_start content_block_delta* content_block_stop)*
    message_delta+ message_stop          with ping, and events not known here, anywhere

Source: the vendor's "Streaming Messages" page and the types of its Python SDK 2.14. Blocks are
kept by `index`, never by arrival, so interleaved blocks are read as well. The answer is complete
when `message_start` came, every started block stopped, a `message_delta` gave a stop reason, and
then `message_stop` came; a marker out of that order completes nothing.

What breaks the grammar is reported as a `Problem` of severity error, and reading goes on: what a
person sees may be partial, and the attempt (`consumer/attempt.py`) decides what it is worth.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from typing import Any, ClassVar

import msgspec

from .claude_blocks import (
    ATTACHING,
    DELTAS,
    KIND,
    OTHER,
    Block,
    begin,
    decode_delta,
    initial,
)
from .dialect import MAX_SAID, Dialect, count, gap_in, is_index, word
from .events import (
    Ambiguous,
    Attached,
    Event,
    InputDelta,
    KeepAlive,
    MessageCompleted,
    MessageStarted,
    Problem,
    SegmentStarted,
    SegmentStopped,
    StopReported,
    Tokens,
    Unknown,
    UsageReported,
)
from .payload import as_json, key_twice, same_json
from .runs import Run
from .sse import Blocks, Frame

__all__ = ["ClaudeReader"]

STOP_REASON = {
    "end_turn": "end_turn",
    "stop_sequence": "stop_sequence",
    "tool_use": "tool_use",
    "max_tokens": "max_tokens",
    "model_context_window_exceeded": "context_window",
    "refusal": "refusal",
    "pause_turn": "pause_turn",
    "compaction": "pause_turn",
}


#: Blocks that may be open at once. The vendor opens one at a time; each costs every event a look.
MAX_OPEN = 256


class ClaudeReader(Dialect):
    """Read one answer. `read` takes its frames in order, and says what each one states."""

    wire = "claude"
    marker = "message_stop"
    unnamed = ("warning", "frames without an event name (the official SDK drops them)")

    def __init__(self, named: bool = True) -> None:
        super().__init__(named)
        self.started = False
        self._open: dict[int, Block] = {}
        self._used: set[int] = set()
        self._blocks = 0  # how many have started
        self._stop_reason: str | None = None
        self._early: dict[str, Any] = {}  # what message_start says about why it stopped
        self._stopped = False  # message_stop came, rightly or not

    @classmethod
    def recognises(cls, event: str, payload: dict[str, Any]) -> bool:
        """Whether an event name and its payload can only be this wire format's."""
        name = payload.get("type", event)
        if name == "error":
            nested = event == "error" and isinstance(payload.get("error"), dict)
            return nested and "sequence_number" not in payload  # which another wire has
        return isinstance(name, str) and name != "ping" and name in cls.EVENTS

    @classmethod
    def whole(cls, payload: dict[str, Any]) -> bool:
        """Whether a payload is a message, as it comes without streaming."""
        return payload.get("type") == "message" and isinstance(payload.get("content"), list)

    def read(self, frame: Frame) -> tuple[Event, ...]:
        """The events that one frame states; most often one."""
        if self._may_append(frame.event):
            try:
                said = decode_delta(frame.data)
            except (msgspec.MsgspecError, RecursionError):
                return super().read(frame)
            block = self._hot(said)
            if block is not None:
                return (block.make(block.segment, said.delta.text),)
        return super().read(frame)

    def runs(self, blocks: Blocks, first: int) -> list[Run]:
        """What deltas in a row append to open blocks."""
        runs: list[Run] = []
        data = blocks.data
        index, hot, texts = -1, None, [""]
        with suppress(msgspec.MsgspecError, RecursionError):
            for place in range(first, len(data) if self._may_append(blocks.event) else 0):
                said = decode_delta(data[place])
                delta = said.delta
                if said.index != index or type(delta) is not hot:
                    block = self._hot(said)
                    if block is None:
                        break
                    index, hot, texts = said.index, block.hot, []
                    runs.append(Run(block.make, block.segment, texts, blocks, place, []))
                texts.append(delta.text)
        return runs

    def _may_append(self, name: str) -> bool:
        """Whether a frame of this name can be a delta, before the model gave its reason to stop."""
        named = name == "content_block_delta" or not (name or self.named)
        return named and self._stop_reason is None

    def _hot(self, said: Any) -> Block | None:
        """The open block to which a delta can only be appended."""
        block = self._open.get(said.index)
        return block if block is not None and type(said.delta) is block.hot else None

    def unfinished(self) -> str:
        """What is missing for the answer to be complete, in words; "" when its marker came."""
        return "" if self._stopped else ", ".join([*self._missing(), "message_stop"])

    def _missing(self) -> list[str]:
        missing = [] if self.started else ["message_start"]
        missing += [f"content_block_stop of block {index}" for index in sorted(self._open)[:3]]
        if self._stop_reason is None:
            missing.append("a stop reason")
        return missing

    # ------------------------------------------------------------------ any payload

    def payload(self, payload: dict[str, Any], frame: Frame) -> tuple[Event, ...]:
        """The events that a payload states."""
        name = payload.get("type", frame.event)
        read = self.EVENTS.get(name) if isinstance(name, str) else None
        habits = self._name_habits(frame, payload)
        if read is None:
            return (*habits, Unknown(str(name or "no type")[:200], frame.number))
        events = self._after_end(frame, name) if self.completed else read(self, payload, frame)
        return (*habits, *events)

    def _after_end(self, frame: Frame, name: Any) -> tuple[Event, ...]:
        if name == "ping":
            return (KeepAlive(),)
        if name == "message_stop":
            return self._habit("end-twice", "warning", "message_stop came again", frame)
        if name == "message_start":
            self._second = True
            text = "a second answer begins after message_stop; the first is judged"
            return (self._fault("second-answer", text, frame),)
        text = f"{name} after message_stop belongs to no answer"
        return (self._fault("after-the-end", text, frame),)

    # ------------------------------------------------------------------ the eight events

    def _message_start(self, payload: dict[str, Any], frame: Frame) -> tuple[Event, ...]:
        if self.started:
            return (self._fault("second-start", "a second message_start inside the answer", frame),)
        message = payload.get("message")
        if not isinstance(message, dict):
            return (self._fault("malformed", "message_start without its message", frame),)
        self.started = True
        if word(message.get("stop_reason")):
            self._early = message
        started = MessageStarted(str(message.get("id") or ""), str(message.get("model") or ""))
        given = message.get("content")
        blocks = self._given(given, frame) if isinstance(given, list) and given else ()
        return (started, *blocks, *self._usage(message.get("usage")))

    def _given(self, blocks: list[Any], frame: Frame) -> tuple[Event, ...]:
        """Blocks that the message starts with: whole, and without a number or events of their own.

        So an answer goes on that was paused while the provider's own tools ran.
        """
        text = f"message_start has {len(blocks)} blocks already; no other event is about them"
        events: tuple[Event, ...] = self._habit("content-in-start", "warning", text, frame)
        for number, content in enumerate(blocks):
            if not isinstance(content, dict):
                text = "a block in message_start that is no object"
                events = (*events, self._fault("malformed", text, frame))
                continue
            block = begin(f"start.{number}", content, True)
            events = (*events, *self._announce(block, content, frame), *self._end(block, frame))
        return events

    def _block_start(self, payload: dict[str, Any], frame: Frame) -> tuple[Event, ...]:
        index, content = payload.get("index"), payload.get("content_block")
        if not is_index(index) or not isinstance(content, dict):
            text = "content_block_start needs an index (0, 1, 2, …) and a content_block"
            return (self._fault("malformed", text, frame),)
        if index in self._open:
            text = f"block {index} starts again while it is open"
            return (self._fault("index-reused", text, frame),)
        if len(self._open) >= MAX_OPEN:
            text = f"block {index} starts while {MAX_OPEN} others are open; it is not read"
            return (self._fault("too-many-open", text, frame),)
        problems: tuple[Event, ...] = self._order(f"block {index} starts", frame)
        problems = (*problems, *self._number(index, frame))
        if self._stop_reason is not None:
            text = f"block {index} starts after the model gave its reason to stop"
            problems = (*problems, Ambiguous(text, frame.number))
        self._blocks += 1
        again = f".{self._blocks}" if index in self._used else ""
        self._used.add(index)
        block = begin(f"{index}{again}", content, self.started)
        self._open[index] = block
        return (*problems, *self._announce(block, content, frame))

    def _announce(self, block: Block, content: dict[str, Any], frame: Frame) -> tuple[Event, ...]:
        """The start of a block's segment, what it holds already, and what is wrong with that."""
        problems: tuple[Event, ...] = ()
        server = KIND.get(block.name, ("other", False))[1]
        name, call_id = "", ""
        if block.kind == "tool_call":
            name, call_id = word(content.get("name")), word(content.get("id"))
            problems = self._call(content, frame)
        elif block.kind == "other" and block.name not in OTHER:
            problems = (Unknown(f"block type {block.name[:100]}", frame.number),)
        started = SegmentStarted(
            block.segment, block.kind, frame.number, block.name, name, call_id, server
        )
        return (*problems, started, *initial(block, content, frame.number))

    def _call(self, content: dict[str, Any], frame: Frame) -> tuple[Event, ...]:
        """What makes a call's start unfit to be acted on."""
        name, call_id, given = content.get("name"), content.get("id"), content.get("input")
        if not isinstance(name, str) or not isinstance(call_id, str | None):
            return (self._fault("malformed", "a tool call's name and id must be text", frame),)
        if not isinstance(given, dict | str | None):
            what = f"a tool call's input is {type(given).__name__}, not an object"
            return (self._fault("malformed", what, frame),)
        if given and (twice := key_twice(frame.data)):
            return (self._fault("malformed", f"in a tool call's start {twice}", frame),)
        return self._named_once(call_id, frame)

    def _block_delta(self, payload: dict[str, Any], frame: Frame) -> tuple[Event, ...]:
        index, delta = payload.get("index"), payload.get("delta")
        if not is_index(index) or not isinstance(delta, dict):
            text = "content_block_delta needs an index (0, 1, 2, …) and a delta"
            return (self._fault("malformed", text, frame),)
        block = self._open.get(index)
        if block is None:
            rule, when = self._closed_or_never(index)
            return (self._fault(f"delta-{rule}", f"a delta for block {index}, {when}", frame),)
        problems = self._order(f"block {index} goes on", frame)
        return (*problems, *self._delta(block, delta, frame))

    def _delta(self, block: Block, delta: dict[str, Any], frame: Frame) -> tuple[Event, ...]:
        name = delta.get("type")
        known = DELTAS.get(name) if isinstance(name, str) else None
        if known is None or block.kind == "other":
            values = {key: value for key, value in delta.items() if key != "type"}
            attached = tuple(Attached(block.segment, *item) for item in values.items())
            lost = block.kind == "tool_call" or name == "input_json_delta"
            if lost:  # a part of an input, perhaps: without it the rest may mean something else
                what = (
                    f"a {name!r:.80} for block {block.segment} ({block.name[:80]}), not understood"
                )
                return (*attached, Ambiguous(what, frame.number))
            if name in ATTACHING or block.kind == "other":
                return attached
            return (Unknown(str(name or "delta without a type")[:200], frame.number), *attached)
        field, make, kinds = known
        text = delta.get(field)
        if text is None and not delta.keys() - {"type", field}:  # writers that leave out ""
            return self._habit("empty-delta", "note", f"{name} without its {field}: empty", frame)
        if not isinstance(text, str):
            return (self._fault("malformed", f"{name} without its {field}", frame),)
        if block.kind not in kinds:
            text = f"{name} for a block of type {block.name!r}"
            return (self._fault("delta-kind", text, frame),)
        if block.given_input is not None and text:
            block.fragments.append(text)
        more = {k: v for k, v in delta.items() if k not in ("type", field)}
        return (
            make(block.segment, text),
            *(Attached(block.segment, *i) for i in more.items()),
        )

    def _block_stop(self, payload: dict[str, Any], frame: Frame) -> tuple[Event, ...]:
        index = payload.get("index")
        block = self._open.pop(index, None) if is_index(index) else None
        if block is None:
            rule, when = self._closed_or_never(index)
            text = f"a stop for block {index!r}, {when}"
            if rule == "after-stop":  # said twice; nothing is lost
                return self._habit("stop-after-stop", "warning", text, frame)
            return (self._fault(f"stop-{rule}", text, frame),)
        return (*self._order(f"block {index} stops", frame), *self._end(block, frame))

    def _end(self, block: Block, frame: Frame) -> tuple[Event, ...]:
        """The stop of a block's segment, after the input that came whole with its start."""
        stopped = SegmentStopped(block.segment, frame.number)
        if block.given_input is None:
            return (stopped,)
        given = as_json(block.given_input)
        if not block.fragments:
            return (InputDelta(block.segment, given), stopped)
        if same_json("".join(block.fragments), given):
            return (stopped,)
        text = f"block {block.segment} started with one input and streamed another"
        return (self._fault("two-inputs", text, frame), stopped)

    def _message_delta(self, payload: dict[str, Any], frame: Frame) -> tuple[Event, ...]:
        if not self.started:
            return self._order("message_delta", frame)
        delta = payload.get("delta")
        if not isinstance(delta, dict):
            return (self._fault("malformed", "message_delta without its delta", frame),)
        usage = self._usage(payload.get("usage"))
        raw = delta.get("stop_reason")
        if raw is not None and not isinstance(raw, str):
            return (self._fault("malformed", "a stop reason that is no text", frame), *usage)
        if not raw:
            return usage
        raw = raw[:MAX_SAID]
        if self._stop_reason not in (None, raw):
            text = f"two stop reasons: {self._stop_reason!r}, then {raw!r}"
            return (self._fault("stop-reason-changed", text, frame), *usage)
        return (self._stop(raw, delta, frame), *usage)

    def _stop(self, raw: str, said: dict[str, Any], frame: Frame) -> Event:
        self._stop_reason, sequence = raw, said.get("stop_sequence")
        return StopReported(
            STOP_REASON.get(raw, "other"),
            raw,
            frame.number,
            sequence if isinstance(sequence, str) else None,
            said.get("stop_details"),
        )

    def _message_stop(self, payload: dict[str, Any], frame: Frame) -> tuple[Event, ...]:
        self._stopped = True
        early: tuple[Event, ...] = ()
        if self._early and self._stop_reason is None:
            text = "the stop reason stands in message_start, and no message_delta came"
            early = self._habit("reason-in-start", "warning", text, frame)
            early = (*early, self._stop(self._early["stop_reason"][:MAX_SAID], self._early, frame))
        if missing := self._missing():
            text = f"message_stop came without {', '.join(missing)}"
            return (*early, self._fault("stop-too-early", text, frame))
        self.completed = True
        gap = gap_in(self._used, "blocks", "a block")
        lost = (Ambiguous(gap, frame.number),) if gap else ()
        return (*early, *lost, MessageCompleted(frame.number))

    def _ping(self, payload: dict[str, Any], frame: Frame) -> tuple[Event, ...]:
        return (KeepAlive(),)

    #: Event type -> how it is read. `error` is not here: an error counts in any shape.
    EVENTS: ClassVar[dict[str, Callable[..., tuple[Event, ...]]]] = {
        "message_start": _message_start,
        "content_block_start": _block_start,
        "content_block_delta": _block_delta,
        "content_block_stop": _block_stop,
        "message_delta": _message_delta,
        "message_stop": _message_stop,
        "ping": _ping,
    }

    # ------------------------------------------------------------------ what can be wrong

    def _order(self, what: str, frame: Frame) -> tuple[Event, ...]:
        if not self.started:
            return (self._fault("before-start", f"{what} before message_start", frame),)
        if self._stop_reason is not None:  # its index still tells whose it is
            text = f"{what} after the stop reason {self._stop_reason!r}"
            return self._habit("after-stop-reason", "warning", text, frame)
        return ()

    def _number(self, index: int, frame: Frame) -> tuple[Problem, ...]:
        if index in self._used:
            text = f"block {index} starts, but that number has been used"
            return (self._fault("index-reused", text, frame),)
        if index != self._blocks:
            text = f"block {index} starts where block {self._blocks} was due"
            return self._habit("index-order", "warning", text, frame)
        return ()

    def _closed_or_never(self, index: Any) -> tuple[str, str]:
        if is_index(index) and index in self._used:
            return "after-stop", "which has stopped"
        return "without-start", "which never started"

    def _usage(self, usage: Any) -> tuple[Event, ...]:
        if not isinstance(usage, dict) or not usage:
            return ()
        thinking = count(usage, "output_tokens_details", "thinking_tokens")
        tokens = Tokens(count(usage, "input_tokens"), count(usage, "output_tokens"), thinking)
        return (UsageReported(usage, tokens),)
