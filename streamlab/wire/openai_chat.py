"""OpenAI Chat Completions: frames in, events out; also from the many servers that speak it.

    chunk*  [DONE]        chunk = choices[], usage; choice = index, delta, finish_reason

Source: the types of the vendor's Python SDK 3.57; `openai_chat_parts.py` names those of the
compatible servers. The format says neither where a part starts nor where it ends: text runs until
a call or thinking begins, and every part of a choice stops at its finish reason. The answer is
complete when every choice that was seen has a finish reason and then `[DONE]` came; in files of
JSON lines, which can't hold it, the reasons and a clean end.

`openai_chat_delta.py` reads what a delta holds, and `openai_chat_calls.py` decides whose fragment
it is. Only choice 0 is judged: of the others, events tell neither reason nor usage.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from typing import Any

import msgspec

from .dialect import MAX_SAID, gap_in, is_index, word
from .events import (
    Ambiguous,
    Event,
    InputDelta,
    KeepAlive,
    MessageCompleted,
    MessageStarted,
    ProviderError,
    StopReported,
    TextDelta,
    ThinkingDelta,
    Unknown,
    UsageReported,
)
from .openai_chat_calls import LEGACY, Choice
from .openai_chat_delta import DeltaReader
from .openai_chat_parts import CHOICE, CHUNK, STOP_REASON, decode_chunk, is_chunk, tokens
from .payload import NotJSON, error_in, parse
from .runs import Run
from .sse import Blocks, Frame

__all__ = ["MAX_CHOICES", "ChatReader"]

#: Choices of one answer; the vendor allows 128.
MAX_CHOICES = 128

#: What a reason can mean where the answer is whole.
WHOLE = {"end_turn", "tool_use"}


class ChatReader(DeltaReader):
    """Read one answer. `read` takes its frames in order, and says what each one states."""

    wire = "openai-chat"
    marker = "[DONE]"

    def __init__(self, named: bool = True) -> None:
        super().__init__(named)
        self.started = False
        self._id = ""  # of the message, in the latest chunk that has one
        self._since = 0  # the first frame with an id
        self._ids_change = False
        self._choices: dict[int, Choice] = {}
        self._done = False  # [DONE] came, rightly or not
        self._last = Frame(0, "", b"", 0, 0)  # the frame that gave the latest reason

    @classmethod
    def recognises(cls, event: str, payload: dict[str, Any]) -> bool:
        """Whether an event name and its payload can only be this wire format's."""
        return is_chunk(payload)

    @classmethod
    def whole(cls, payload: dict[str, Any]) -> bool:
        """Whether a payload is a completion, as it comes without streaming: messages, no delta."""
        choices = [choice for choice in _choices_of(payload) if isinstance(choice, dict)]
        return bool(choices) and all(
            isinstance(choice.get("message"), dict) and "delta" not in choice for choice in choices
        )

    def read(self, frame: Frame) -> tuple[Event, ...]:
        """The events that one frame states; most often one."""
        if not frame.event and not self._done and not self._second:
            try:
                chunk = decode_chunk(frame.data)
            except (msgspec.MsgspecError, RecursionError):
                return self._general(frame)
            event = self._common(chunk)
            if event is not None:
                return (event,)
        return self._general(frame)

    def runs(self, blocks: Blocks, first: int) -> list[Run]:
        """What common chunks in a row append to open parts."""
        usual = not (blocks.event or self._done or self._second)
        runs: list[Run] = []
        data = blocks.data
        kind, segment, texts = None, "", [""]
        with suppress(msgspec.MsgspecError, RecursionError):
            for place in range(first, len(data) if usual else 0):
                event = self._common(decode_chunk(data[place]))
                if event is None:
                    break
                if type(event) is not kind or event.segment != segment:
                    kind, segment, texts = type(event), event.segment, []
                    runs.append(Run(kind, segment, texts, blocks, place, []))
                texts.append(event.text)
        return runs

    def _common(self, chunk: Any) -> TextDelta | ThinkingDelta | InputDelta | None:
        """The one delta of a common chunk, where all that it can be is appended."""
        if not self.started or (chunk.id != self._id and chunk.id and not self._ids_change):
            return None
        said = chunk.choices[0]
        choice, delta = self._choices.get(said.index), said.delta
        if choice is None or choice.reason is not None or not choice.fed:
            return None
        text, calls = delta.content, delta.tool_calls
        if delta.reasoning_content is not None or delta.reasoning is not None:
            if text or calls or choice.lane != "thinking":
                return None
            first, second = delta.reasoning_content, delta.reasoning
            text = first or second
            return ThinkingDelta(choice.flow, text) if text and not (first and second) else None
        if calls is None:
            if not text or choice.lane != "text":
                return None
            choice.texts.append(text)
            return TextDelta(choice.flow, text)
        call, piece = choice.at.get(calls[0].index), calls[0].function.arguments
        if text or not piece or call is None or not call.hot or calls[0].index < 0:
            return None
        call.pieces.append(piece)
        return InputDelta(call.segment, piece)

    def _general(self, frame: Frame) -> tuple[Event, ...]:
        events = super().read(frame)
        if len(events) == 1 and isinstance(events[0], ProviderError) and not self._done:
            return (*events, *self._beside_error(frame))
        return events

    def _beside_error(self, frame: Frame) -> tuple[Event, ...]:
        """The counts in a chunk that is an error: they were used all the same."""
        try:
            payload = parse(frame.data)
        except NotJSON:
            return ()
        return tuple(self._usage(payload.get("usage"))) if isinstance(payload, dict) else ()

    # ------------------------------------------------------------------ the end

    def done(self, frame: Frame) -> tuple[Event, ...]:
        """What `[DONE]` states: the answer is complete, where each choice has its reason."""
        if self._done:
            return self._habit("done-twice", "warning", "[DONE] came again", frame)
        self._done = True
        if missing := self._missing():
            text = f"[DONE] came without {', '.join(missing)}"
            return self._habit("done-too-early", "warning", text, frame)
        return tuple(self._complete(frame))

    def end(self) -> tuple[Event, ...]:
        """What a clean end completes: a file of JSON lines, which can't hold `[DONE]`."""
        if self.named or self._done or self._missing():
            return ()
        self._done = True
        return tuple(self._complete(self._last))

    def unfinished(self) -> str:
        """What is missing for the answer to be complete, in words; "" when nothing is."""
        if self.completed:
            return ""
        marker = self.marker if self.named else "a clean end"
        return ", ".join([*self._missing(), *([] if self._done else [marker])])

    def _missing(self) -> list[str]:
        missing = [] if 0 in self._choices else ["a choice with the index 0"]
        without = sorted(c.number for c in self._choices.values() if c.reason is None)
        return missing + [f"a finish_reason of choice {number}" for number in without[:3]]

    def _complete(self, frame: Frame) -> Iterator[Event]:
        self.completed = True
        for choice in self._choices.values():
            yield from self._stop_open(choice, frame)
            if choice.late:
                text = "a tool call began after the finish reason, and no reason came again"
                yield self._doubt(choice, text, frame)
            used = choice.at.keys() - {LEGACY}
            if gap := gap_in(used, "tool calls", "one"):
                yield self._doubt(choice, gap, frame)
        yield MessageCompleted(frame.number)

    # ------------------------------------------------------------------ any payload

    def payload(self, payload: dict[str, Any], frame: Frame) -> tuple[Event, ...]:
        """The events that a payload states."""
        return tuple(self._payload(payload, frame))

    def _payload(self, payload: dict[str, Any], frame: Frame) -> Iterator[Event]:
        name = word(payload.get("type")) or frame.event
        if name in ("ping", "keepalive") and "choices" not in payload:
            yield KeepAlive()
        elif not is_chunk(payload) and "usage" not in payload:
            yield Unknown((name or "a payload without choices")[:200], frame.number)
        elif self._done or self._begins_again(payload):
            yield from self._after_end(payload, frame)
        else:
            yield from self._chunk(payload, frame)

    def _begins_again(self, payload: dict[str, Any]) -> bool:
        """Whether a chunk is another answer's: after the finish, a new id and a role."""
        new_id = word(payload.get("id"))
        if not new_id or new_id == self._id or self._ids_change or payload.get("usage"):
            return False
        if self._missing():
            return False
        return any("role" in (_delta_of(choice) or {}) for choice in _choices_of(payload))

    def _after_end(self, payload: dict[str, Any], frame: Frame) -> Iterator[Event]:
        deltas = [delta for delta in map(_delta_of, _choices_of(payload)) if delta]
        ended = "[DONE]" if self._done else "the finish reason"
        if any(delta.get("role") for delta in deltas):
            if not self.named and not self._done:  # its end is here, or nowhere
                self._done = True
                yield from self._complete(self._last)
            self._second = True
            text = f"a second answer begins after {ended}; the first is judged"
            yield self._fault("second-answer", text, frame)
        elif any(_choices_of(payload)):
            text = f"a chunk after {ended} belongs to no answer"
            yield self._fault("after-the-end", text, frame)
        else:
            text = f"a chunk without content after {ended}"
            yield from self._habit("after-done", "warning", text, frame)

    def _chunk(self, payload: dict[str, Any], frame: Frame) -> Iterator[Event]:
        yield from self._message(payload, frame)
        choices = payload.get("choices")
        if not isinstance(choices, list | None):
            yield self._fault("malformed", "choices must be a list", frame)
        for said in _choices_of(payload):
            yield from self._choice(said, payload, frame)
        yield from self._hidden(payload, CHUNK, frame)
        groq = payload.get("x_groq")
        yield from self._usage(groq.get("usage") if isinstance(groq, dict) else None)
        yield from self._usage(payload.get("usage"))

    def _message(self, payload: dict[str, Any], frame: Frame) -> Iterator[Event]:
        message_id, model = word(payload.get("id")), word(payload.get("model"))
        if not self.started and (message_id or model):
            self.started, self._since = True, frame.number
            yield MessageStarted(message_id, model)
        elif message_id and self._id and message_id != self._id:
            text = f"the message id changes from {self._id[:80]!r} to {message_id[:80]!r}"
            begun = any(choice.started for choice in self._choices.values())
            steady = frame.number - self._since > 1 and not self._ids_change
            roles = [(_delta_of(choice) or {}).get("role") for choice in _choices_of(payload)]
            if begun and steady and any(roles):  # some servers give each chunk an id and a role
                yield Ambiguous(f"{text}, and a message begins: whose is the rest?", frame.number)
            self._ids_change = True
            yield from self._habit("id-changed", "note", text, frame)
        self._id = message_id or self._id

    def _usage(self, usage: Any) -> Iterator[Event]:
        if isinstance(usage, dict) and usage:
            yield UsageReported(usage, tokens(usage))

    # ------------------------------------------------------------------ a choice

    def _choice(self, said: Any, payload: dict[str, Any], frame: Frame) -> Iterator[Event]:
        index = said.get("index", 0) if isinstance(said, dict) else None
        index = 0 if index is None and isinstance(said, dict) else index
        if not is_index(index):
            text = "a choice must be an object with an index (0, 1, 2, …)"
            yield self._fault("malformed", text, frame)
            return
        choice = self._choices.get(index)
        if choice is None and len(self._choices) >= MAX_CHOICES:
            text = f"more than {MAX_CHOICES} choices; the next one is not read"
            yield self._fault("too-many-choices", text, frame)
            return
        if choice is None:
            choice = self._choices[index] = Choice(index)
        delta, whole = said.get("delta"), said.get("message")
        if delta is not None and not isinstance(delta, dict):
            yield self._fault("malformed", "a delta must be an object", frame)
        elif delta is not None:
            before = choice.started, len(choice.texts)
            yield from self._delta(choice, delta, frame)
            choice.fed |= before != (choice.started, len(choice.texts))
        elif isinstance(whole, dict):
            yield from self._whole(choice, whole, frame)
        yield from self._hidden(said, CHOICE, frame, choice)
        if error := error_in({"error": said.get("error")}, frame):
            yield error
        elif said.get("finish_reason") is not None:
            yield from self._finish(choice, said["finish_reason"], frame)
        if not index:
            yield from self._usage(said.get("usage"))

    def _finish(self, choice: Choice, raw: Any, frame: Frame) -> Iterator[Event]:
        if not isinstance(raw, str):
            yield self._fault("malformed", "a finish_reason that is no text", frame)
            return
        raw = raw[:MAX_SAID]
        if not raw:
            return
        yield from self._stop_open(choice, frame)
        if choice.reason == raw:
            choice.late = False
            yield from self._habit("finish-again", "note", f"finish_reason {raw!r} again", frame)
            return
        before, choice.reason, choice.late, self._last = choice.reason, raw, False, frame
        if before is not None:
            yield from self._changed(choice, before, frame)
        if choice.number:
            return
        reason = STOP_REASON.get(raw, "other")
        refused = choice.refused and reason == "end_turn"
        yield StopReported("refusal" if refused else reason, raw, frame.number)
        if raw == "error":
            yield ProviderError("error", "finish_reason is error", frame.number)

    def _changed(self, choice: Choice, before: str, frame: Frame) -> Iterator[Event]:
        """Another reason than before: the last one counts, as it does in the vendor's SDK."""
        text = (
            f"the finish reason changes from {before!r} to {choice.reason!r}; the last one counts"
        )
        if (
            choice.reason == "error"
            or {STOP_REASON.get(before), STOP_REASON.get(choice.reason or "")} <= WHOLE
        ):
            yield from self._habit("finish-changed", "warning", text, frame)
        else:  # one of them says that the answer may not be whole
            yield self._doubt(choice, text, frame)


def _choices_of(payload: dict[str, Any]) -> list[Any]:
    choices = payload.get("choices")
    return choices if isinstance(choices, list) else []


def _delta_of(choice: Any) -> dict[str, Any] | None:
    """The delta of a choice, or the message in its place."""
    said = (choice.get("delta"), choice.get("message")) if isinstance(choice, dict) else ()
    return next(filter(lambda value: isinstance(value, dict), said), None)
