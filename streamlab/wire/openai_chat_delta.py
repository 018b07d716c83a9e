"""What a delta of a Chat Completions stream holds, but for its tool calls.

    thinking, then content and refusal, then the rest: the order of an answer, whatever the order
    of the fields

Text and thinking run on until something else begins. Whole values (an image, an encrypted part of
the thinking) are segments of their own, kept with all their fields. Thinking comes under several
names, also twice under two; the first of `REASONING` that holds text is read.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, ClassVar

from .dialect import is_index, word
from .events import (
    Attached,
    Event,
    InputDelta,
    Kind,
    Restated,
    SegmentStarted,
    SegmentStopped,
    SignatureDelta,
    TextDelta,
    ThinkingDelta,
    Unknown,
)
from .openai_chat_calls import CallsReader, Choice
from .openai_chat_parts import (
    DELTA,
    REASONING,
    RETURNED,
    TEXTS,
    mentions_a_call,
    plain,
    signatures,
    text_of,
)
from .sse import Frame

__all__ = ["DeltaReader"]

#: Names of delta fields not known here that are told; a stranger's stream could have any number.
MAX_UNKNOWN = 20

#: Tools of a choice that the provider ran.
MAX_HOSTED = 256


class DeltaReader(CallsReader):
    """The part of the reader that says what a delta states."""

    def _delta(self, choice: Choice, delta: dict[str, Any], frame: Frame) -> Iterator[Event]:
        yield from self._thinking(choice, delta, frame)
        for field in ("content", "refusal"):
            if delta.get(field):
                yield from self._content(choice, field, delta[field], frame)
        for field, read in self.FIELDS.items():
            if delta.get(field):
                yield from read(self, choice, delta[field], frame)
        for field, value in delta.items():
            if value and field not in DELTA:
                yield from self._unknown(f"delta field {field}", frame)
        yield from self._hidden(delta, DELTA, frame, choice)

    def _whole(self, choice: Choice, message: dict[str, Any], frame: Frame) -> Iterator[Event]:
        """A message in the place of a delta: all of it where deltas came, else more of it."""
        if not choice.fed or not choice.started:
            yield from self._delta(choice, message, frame)
            return
        content, text = message.get("content"), "".join(choice.texts)
        choice.texts = [text] if text else []  # joined once, however often it is restated
        said_again = ["tool_calls", "function_call", *([] if text else ["content"])]
        yield from self._delta(choice, {key: message.get(key) for key in said_again}, frame)
        if not text or not isinstance(content, str) or content in ("", text):
            return
        said = "the whole message at the end has another text than its deltas"
        yield from self._habit("text-restated", "warning", said, frame)
        if choice.lane == "text" and choice.started == 1:
            choice.texts = [content]
            yield Restated(choice.flow, content)

    def _flow(
        self, choice: Choice, lane: str, kind: Kind, type: str, returned: bool, frame: Frame
    ) -> Iterator[Event]:
        """Let text or thinking run on, or start it; what ran before stops."""
        if choice.lane == lane:
            return
        yield from self._leave(choice, frame)
        if choice.reason is not None:
            text = f"{kind} after the finish reason {choice.reason!r}"
            yield from self._habit("after-finish", "warning", text, frame)
        choice.lane, choice.flow = lane, choice.next_segment()
        choice.open[choice.flow] = None
        yield SegmentStarted(
            choice.flow, kind, frame.number, type, choice=choice.number, returned=returned
        )

    def _thinking(self, choice: Choice, delta: dict[str, Any], frame: Frame) -> Iterator[Event]:
        found = {field: plain(delta[field]) for field in REASONING if delta.get(field)}
        texts = {field: text for field, text in found.items() if text}
        details = delta.get("reasoning_details")
        details = details if isinstance(details, list) else []
        details = [detail for detail in details if isinstance(detail, dict)]
        field, text = next(iter(texts.items()), ("reasoning_details", ""))
        if any(other != text for other in texts.values()):
            said = f"{' and '.join(texts)} differ; {field} is read"
            yield from self._habit("two-reasonings", "warning", said, frame)
        for lost in (name for name, value in found.items() if value is None):
            yield from self._unknown(f"delta field {lost}", frame)
        if not texts:
            text = "".join(word(d.get("text")) or word(d.get("summary")) for d in details)
        returned = bool(details) or field in RETURNED
        if text:
            yield from self._think(choice, text, field, returned, frame)
        for detail in details:
            yield from self._detail(choice, detail, frame)

    def _think(
        self, choice: Choice, text: str, field: str, returned: bool, frame: Frame
    ) -> Iterator[Event]:
        yield from self._flow(choice, "thinking", "thinking", field, returned, frame)
        yield ThinkingDelta(choice.flow, text)

    def _detail(self, choice: Choice, detail: dict[str, Any], frame: Frame) -> Iterator[Event]:
        """The proof in a detail of the thinking: a signature, or a part that is encrypted whole."""
        if signature := word(detail.get("signature")):
            yield from self._flow(choice, "thinking", "thinking", "reasoning_details", True, frame)
            yield SignatureDelta(choice.flow, signature)
        if detail.get("data"):
            yield from self._other(choice, word(detail.get("type")) or "reasoning", detail, frame)

    def _content(self, choice: Choice, field: str, value: Any, frame: Frame) -> Iterator[Event]:
        if isinstance(value, str):
            lane = "text" if field == "content" else "refusal"
            choice.refused |= lane == "refusal"
            yield from self._flow(choice, lane, "text", lane, True, frame)
            if lane == "text":
                choice.texts.append(value)
            yield TextDelta(choice.flow, value)
        elif isinstance(value, list | dict) and field == "content":
            for part in value if isinstance(value, list) else [value]:
                yield from self._part(choice, part, frame)
        else:
            yield self._fault("malformed", f"{field} is {type(value).__name__}", frame)

    def _part(self, choice: Choice, part: Any, frame: Frame) -> Iterator[Event]:
        """One part of a content that is a list (Mistral, Databricks)."""
        if isinstance(part, str):
            yield from self._content(choice, "content", part, frame)
            return
        name = part.get("type") if isinstance(part, dict) else None
        text = text_of(part) if isinstance(part, dict) and isinstance(name, str | None) else None
        lane = TEXTS.get(name) if text is not None else None
        if lane == "thinking":
            if text:
                yield from self._think(choice, text, "content", True, frame)
            for signature in signatures(part):
                yield from self._flow(choice, "thinking", "thinking", "content", True, frame)
                yield SignatureDelta(choice.flow, signature)
        elif lane is not None:
            if text:
                yield from self._content(choice, lane, text, frame)
        elif not isinstance(name, str):
            yield self._fault("malformed", "a part of a content needs a type", frame)
        elif name == "reference" and choice.lane == "text":
            yield Attached(choice.flow, "citation", part)
        else:
            yield from self._other(choice, name, part, frame)

    def _other(
        self, choice: Choice, name: str, fields: dict[str, Any], frame: Frame
    ) -> Iterator[Event]:
        """A whole value that is neither text, thinking nor a call: kept, with all its fields."""
        yield from self._leave(choice, frame)
        segment = choice.next_segment()
        yield SegmentStarted(segment, "other", frame.number, name[:200], choice=choice.number)
        for field, value in fields.items():
            if field != "type":
                yield Attached(segment, field, value)
        yield SegmentStopped(segment, frame.number)

    # ------------------------------------------------------------------ what else a delta holds

    def _audio(self, choice: Choice, audio: Any, frame: Frame) -> Iterator[Event]:
        """Sound, in base64, with its transcript; both come in pieces and are attached whole."""
        if not isinstance(audio, dict):
            yield self._fault("malformed", "audio must be an object", frame)
            return
        pieces = choice.open.get(choice.audio)
        if not isinstance(pieces, dict):
            if choice.audio and set(audio) <= {"id", "expires_at"}:
                return  # it has stopped; only how long it is kept comes after the finish
            yield from self._leave(choice, frame)
            choice.audio = choice.next_segment()
            pieces = choice.open[choice.audio] = {}
            yield SegmentStarted(choice.audio, "other", frame.number, "audio", choice=choice.number)
        for field, value in audio.items():
            if field in ("data", "transcript") and isinstance(value, str):
                pieces.setdefault(field, []).append(value)
            elif value is not None:
                yield Attached(choice.audio, field, value)

    def _annotations(self, choice: Choice, notes: Any, frame: Frame) -> Iterator[Event]:
        for note in notes if isinstance(notes, list) else [notes]:
            if choice.lane == "text":
                yield Attached(choice.flow, "citation", note)
            else:
                yield from self._other(choice, "annotation", {"annotation": note}, frame)

    def _images(self, choice: Choice, images: Any, frame: Frame) -> Iterator[Event]:
        for image in images if isinstance(images, list) else [images]:
            yield from self._other(choice, "image", {"image": image}, frame)

    def _executed(self, choice: Choice, tools: Any, frame: Frame) -> Iterator[Event]:
        """Tools that the provider ran (Groq): a call first, then the same one with its result."""
        for tool in tools if isinstance(tools, list) else ():
            if not isinstance(tool, dict) or not is_index(index := tool.get("index", 0)):
                yield self._fault("malformed", "an executed tool must be an object", frame)
                continue
            name, given = word(tool.get("type")), word(tool.get("arguments"))
            if choice.hosted.get(index) != given and len(choice.hosted) < MAX_HOSTED:
                choice.hosted[index] = given
                yield from self._leave(choice, frame)
                segment = choice.next_segment()
                yield SegmentStarted(
                    *(segment, "tool_call", frame.number, "executed_tool", name, "", True),
                    choice=choice.number,
                )
                yield InputDelta(segment, given)
                yield SegmentStopped(segment, frame.number)
            if tool.get("output"):
                yield from self._other(choice, "executed_tool_result", tool, frame)

    def _hidden(
        self, fields: dict[str, Any], known: frozenset[str], frame: Frame, of: Choice | None = None
    ) -> Iterator[Event]:
        """What looks like a call under a name that is not known here: a piece may be lost."""
        for name, value in fields.items():
            if name not in known and mentions_a_call(value):
                text = f"{name[:80]!r} is not known here and looks like a tool call's part"
                yield self._doubt(of or Choice(0), text, frame)

    def _unknown(self, what: str, frame: Frame) -> Iterator[Event]:
        if what not in self._said and len(self._said) < MAX_UNKNOWN:
            self._said.add(what)
            yield Unknown(what[:200], frame.number)

    #: Field of a delta -> how it is read, after its text and thinking.
    FIELDS: ClassVar[dict[str, Callable[..., Iterator[Event]]]] = {
        "tool_calls": CallsReader._tool_calls,
        "function_call": CallsReader._function_call,
        "annotations": _annotations,
        "images": _images,
        "audio": _audio,
        "executed_tools": _executed,
    }
