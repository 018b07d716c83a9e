"""Gemini generateContent: frames in, events out; and the only place that knows this grammar.

    chunk*        each a delta: parts to append to a candidate, counts so far, a reason to finish

No part has an id or a stop of its own, and nothing marks the end: an answer is complete when every
candidate has a reason to finish other than CONTINUATION (or the prompt was blocked) and the stream
ends cleanly. So `end` says what elsewhere a final marker says. The segments are made here: text
runs on until its kind changes; a part that carries more than its text (a signature) stands alone,
since only that very part may carry it back.

Three forms: an event stream, one JSON array (without `alt=sse`), and one chunk a line. Source: the
vendor's API reference and the types of its Python SDK 3.6. Read next: `gemini_parts.py`.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, ClassVar

import msgspec

from .dialect import MAX_SAID, is_index, word
from .events import (
    Ambiguous,
    Attached,
    Event,
    KeepAlive,
    MessageCompleted,
    MessageStarted,
    SegmentStopped,
    StopReported,
    Tokens,
    Unknown,
    UsageReported,
)
from .gemini_parts import APPEND, PartReader
from .gemini_tables import ATTACHED, CHUNK, FINISH, KEPT, NUMBERED, Candidate, decode_chunk
from .payload import NotJSON, error_in, key_twice, may_be_deep, parse
from .runs import Run
from .sse import Blocks, Frame

__all__ = ["GeminiReader"]

#: Candidates of one answer; the vendor gives at most eight.
MAX_CANDIDATES = 64

#: A count stays below it; a larger one is none.
MAX_COUNT = 2**63

#: Counts of a usage that make up our tokens.
COUNTS = ("promptTokenCount", "candidatesTokenCount", "thoughtsTokenCount")


class GeminiReader(PartReader):
    """Read one answer. `read` takes its frames in order, and says what each one states."""

    wire: ClassVar[str] = "gemini"
    marker: ClassVar[str] = "a clean end"

    def __init__(self, named: bool = True) -> None:
        super().__init__(named)
        self._at = 0  # number of the last frame
        self._started = False
        self._model = ""
        self._candidates: dict[int, Candidate] = {}
        self._blocked = ""  # why the prompt was refused
        self._reported = ""  # the last stop reason that was reported
        self._counts: dict[str, int | None] = dict.fromkeys(COUNTS)

    @classmethod
    def recognises(cls, event: str, payload: dict[str, Any]) -> bool:
        """Whether an event name and its payload can only be this wire format's."""
        error = payload.get("error")
        if isinstance(error, dict):  # the error of any API of this vendor
            return isinstance(error.get("code"), int) and word(error.get("status")).isupper()
        payload = _inside(payload)
        return isinstance(payload.get("candidates"), list) or any(
            isinstance(payload.get(name), dict) for name in ("promptFeedback", "usageMetadata")
        )

    def read(self, frame: Frame) -> tuple[Event, ...]:
        """The events that one frame states; most often a piece of text and the counts so far."""
        running = self._running(frame.event)
        chunk = None if running is None else self._usual(running, frame.data)
        if running is None or chunk is None:
            return self._unwrapped(frame)
        said, text = chunk.candidates[0], chunk.candidates[0].content.parts[0].text
        self._at = frame.number
        counted = self._usage(chunk.usageMetadata)
        if said.safetyRatings:
            counted = (Attached(running.open, "safetyRatings", said.safetyRatings), *counted)
        return (APPEND[running.run](running.open, text), *counted) if text else counted

    def runs(self, blocks: Blocks, first: int) -> list[Run]:
        """What pieces in a row append to the text or the thinking that runs on, and the counts."""
        running, data = self._running(blocks.event), blocks.data
        if running is None:
            return []
        texts: list[str] = []
        counts: list[tuple[int, UsageReported]] = []
        for place in range(first, len(data)):
            chunk = self._usual(running, data[place])
            if chunk is None:
                break
            said = chunk.candidates[0]
            text = said.content.parts[0].text
            if not text or said.safetyRatings:
                break
            if usage := chunk.usageMetadata:
                counts.append((len(texts), self._counted(usage)))
            texts.append(text)
        if not texts:
            return []
        self._at = blocks.number + first + len(texts) - 1
        return [Run(APPEND[running.run], running.open, texts, blocks, first, counts)]

    def _running(self, name: str) -> Candidate | None:
        """The first candidate, where text or thinking runs on in it that a frame may be more of."""
        first = self._candidates.get(0)
        goes_on = first is not None and first.run and not first.finish
        return first if goes_on and not (name or self._second) else None

    def _usual(self, running: Candidate, data: bytes) -> Any:
        """A usual chunk, with more of what runs on; None for any other."""
        try:
            chunk = decode_chunk(data)
        except (msgspec.MsgspecError, RecursionError):
            return None
        given, model = chunk.responseId, chunk.modelVersion
        other = (
            chunk.candidates[0].content.parts[0].thought is not (running.run == "thinking")
            or (given != self._id and given)
            or (model != self._model and model)
            or may_be_deep(data)
        )
        return None if other else chunk

    def _unwrapped(self, frame: Frame) -> tuple[Event, ...]:
        """The general way; an error may come inside an array, even in an event stream."""
        if frame.data[:1] == b"[" and not self._second:
            try:
                found = parse(frame.data)
            except NotJSON:
                return super().read(frame)
            errors = [error_in(item, frame) for item in found if isinstance(item, dict)]
            if said := tuple(error for error in errors if error):
                return said
        return super().read(frame)

    # ------------------------------------------------------------------ a chunk

    def payload(self, payload: dict[str, Any], frame: Frame) -> tuple[Event, ...]:
        """The events that a payload states."""
        self._at = frame.number
        payload = _inside(payload)
        if not any(name in payload for name in CHUNK):
            if word(payload.get("type")) in ("ping", "keepalive"):
                return (KeepAlive(),)
            named = ", ".join(payload)
            return (Unknown(f"a chunk of {named}"[:200], frame.number),)
        return tuple(self._chunk(payload, frame))

    def _chunk(self, payload: dict[str, Any], frame: Frame) -> Iterator[Event]:
        if frame.event:
            text = f"an event name, {frame.event[:80]!r} (the official SDK cannot read it)"
            yield from self._habit("event-name", "warning", text, frame)
        if self._is_second(payload):
            self._second = True
            text = "a second answer begins after the first one's reason to finish; it is not read"
            yield self._fault("second-answer", text, frame)
            return
        yield from self._identify(payload, frame)
        if b"functionCall" in frame.data and (twice := key_twice(frame.data, payload)):
            yield self._fault("malformed", f"in a chunk with a call {twice}", frame)
        yield from self._prompt(payload.get("promptFeedback"), frame)
        given = payload.get("candidates")
        if not isinstance(given, list | None):
            yield self._fault("malformed", "the candidates are no list", frame)
            given = None
        for place, item in enumerate(given or ()):
            yield from self._candidate(place, item, frame)
        usage = payload.get("usageMetadata")
        yield from self._usage(usage if isinstance(usage, dict) else {})

    def _identify(self, payload: dict[str, Any], frame: Frame) -> Iterator[Event]:
        given, model = word(payload.get("responseId")), word(payload.get("modelVersion"))
        if given and self._id and given != self._id:
            text = f"the response id changes from {self._id[:80]!r} to {given[:80]!r}"
            yield from self._habit("response-id-changed", "note", text, frame)
        known = (self._id or given, self._model or model)
        if not self._started or known != (self._id, self._model):
            self._started = True
            self._id, self._model = known
            yield MessageStarted(*known)

    def _is_second(self, payload: dict[str, Any]) -> bool:
        """A new id, after ids that never changed and candidates that are all finished."""
        given = word(payload.get("responseId"))
        return bool(
            payload.get("candidates")
            and self._id
            and given not in ("", self._id)
            and "response-id-changed" not in self._said
            and self._candidates
            and all(candidate.finished for candidate in self._candidates.values())
        )

    def _prompt(self, feedback: Any, frame: Frame) -> Iterator[Event]:
        why = feedback.get("blockReason") if isinstance(feedback, dict) else None
        if why:
            self._blocked = str(why)[:MAX_SAID]
            self._reported = "content_filter"
            yield StopReported("content_filter", self._blocked, frame.number, None, feedback)

    def _usage(self, usage: dict[str, Any]) -> tuple[Event, ...]:
        return (self._counted(usage),) if usage else ()

    def _counted(self, usage: dict[str, Any]) -> UsageReported:
        known = self._counts
        for name in COUNTS:
            found = usage.get(name)
            if type(found) is int and 0 <= found < MAX_COUNT:
                known[name] = found
        given, visible, thinking = known.values()
        output = thinking if visible is None else visible + (thinking or 0)
        return UsageReported(usage, Tokens(given, output, thinking))

    # ------------------------------------------------------------------ a candidate

    def _candidate(self, place: int, item: Any, frame: Frame) -> Iterator[Event]:
        index = item.get("index") if isinstance(item, dict) else -1
        index = place if index is None else index
        if not is_index(index):
            text = "a candidate must be an object whose index is 0, 1, 2, …"
            yield self._fault("malformed", text, frame)
            return
        if index not in self._candidates and len(self._candidates) >= MAX_CANDIDATES:
            text = f"candidate {index}, after {MAX_CANDIDATES} others; it is not read"
            yield self._fault("too-many-candidates", text, frame)
            return
        candidate = self._candidates.setdefault(index, Candidate(index))
        calls = candidate.calls
        content = [
            e for part in self._parts(item, frame) for e in self._part(candidate, part, frame)
        ]
        if content and candidate.finish:
            goes_on, candidate.late = not candidate.late, True
            text = f"content after the finish reason {candidate.finish!r}; the last reason counts"
            yield from self._habit("after-finish-reason", "note", text, frame)
            if goes_on and candidate.calls == calls > 0:  # as if it knew what came of its call
                text = "the answer goes on after a call and a reason to stop: who ran the call?"
                yield Ambiguous(text, frame.number)
        yield from content
        yield from self._metadata(candidate, item, frame)
        yield from self._finish(candidate, item, frame)

    def _parts(self, item: dict[str, Any], frame: Frame) -> list[Any]:
        content = item.get("content")
        if content is None:
            return []
        parts = content.get("parts") if isinstance(content, dict) else content
        return [] if parts is None else parts if isinstance(parts, list) else [parts]

    def _metadata(
        self, candidate: Candidate, item: dict[str, Any], frame: Frame
    ) -> Iterator[Event]:
        cited = item.get("citationMetadata")
        cited = cited if isinstance(cited, dict) else {}
        citations = cited.get("citationSources") or cited.get("citations")
        found = [("citation", each) for each in citations] if isinstance(citations, list) else []
        found += [(name, item[name]) for name in KEPT if item.get(name)]
        if found and not candidate.open:  # it would be lost
            yield from self._begin(candidate, "other", found[0][0], frame)
        found += [(name, item[name]) for name in ATTACHED if item.get(name)]
        if candidate.open:
            for name, value in found:
                yield Attached(candidate.open, name, value)

    def _finish(self, candidate: Candidate, item: dict[str, Any], frame: Frame) -> Iterator[Event]:
        given = item.get("finishReason")
        if given is None or given == "":
            return
        reason = given
        if isinstance(given, int) and not isinstance(given, bool):
            reason = NUMBERED[given] if 0 <= given < len(NUMBERED) else str(given)[:20]
            text = f"a finish reason as a number: {given}, for {reason!r}"
            yield from self._habit("numbered-finish-reason", "note", text, frame)
        if not isinstance(reason, str):
            yield self._fault("malformed", "a finish reason that is no text", frame)
            return
        reason = reason[:MAX_SAID]
        before, candidate.finish, candidate.late = candidate.finish, reason, False
        if before == reason:
            text = f"the finish reason {reason!r} came again"
            yield from self._habit("finish-reason-again", "note", text, frame)
        elif before:
            text = f"the finish reason changes from {before!r} to {reason!r}; the last one counts"
            yield from self._habit("finish-reason-changed", "warning", text, frame)
        if candidate.number == 0 and not self._blocked:
            told = ("finishMessage", "continuationToken")
            details = {name: item[name] for name in told if item.get(name)}
            yield self._stop(candidate, str(given)[:MAX_SAID], details or None)

    def _stop(self, candidate: Candidate, raw: str, details: Any = None) -> Event:
        """Why it stopped; this wire has no reason of its own for a call."""
        reason = FINISH.get(candidate.finish, "other")
        self._reported = "tool_use" if reason == "end_turn" and candidate.calls else reason
        return StopReported(self._reported, raw, self._at, None, details)

    # ------------------------------------------------------------------ the end

    def end(self) -> tuple[Event, ...]:
        """What a clean end completes: this wire has no other marker."""
        if self._missing():
            return ()
        events = [event for each in self._candidates.values() for event in self._close(each)]
        self.completed = True
        return (*events, MessageCompleted(self._at))

    def _close(self, candidate: Candidate) -> Iterator[Event]:
        if candidate.open:
            yield SegmentStopped(candidate.open, self._at)
        if candidate.call is not None:
            yield from self._abandon(candidate, candidate.call, "the answer ends", self._at)
        if candidate.late:
            text = f"content came after the finish reason {candidate.finish!r}, and no other reason"
            yield Ambiguous(f"{text}: the end may be lost", self._at)
        if candidate.number == 0 and candidate.calls and self._reported == "end_turn":
            yield self._stop(candidate, candidate.finish)  # the call came after its reason

    def unfinished(self) -> str:
        """What is missing for the answer to be complete, in words; "" when nothing is."""
        return "" if self.completed else ", ".join(self._missing()) or self.marker

    def _missing(self) -> list[str]:
        if self._blocked:
            return []
        if not self._candidates:
            return ["any candidate"]
        return [
            f"a finish reason of candidate {number}"
            + (" other than CONTINUATION" if candidate.finish else "")
            for number, candidate in sorted(self._candidates.items())
            if not candidate.finished
        ][:3]


def _inside(payload: dict[str, Any]) -> dict[str, Any]:
    """The chunk in a payload: it is one, or the vendor's API for code assistants wraps it."""
    wrapped = payload.get("response")
    if not isinstance(wrapped, dict) or any(name in payload for name in CHUNK):
        return payload
    return wrapped if any(name in wrapped for name in CHUNK) else payload
