"""Several answers in one recording: where each begins, and each as a recording of its own.

A connection that is used again, a client that reconnects, a file to which a second call was
appended: the bytes run on. A new answer begins only where its format itself says so, never because
of a pause or of words that look alike. The table `SIGNS` has the signs of each format.

Every chunk keeps its time, so the clock stays the recording's: the second answer begins late on it,
by as much as it did. Read next: `masking.py`, which also reads answer by answer.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import msgspec

from streamlab.streams.recording import Chunk, Recording
from streamlab.wire.forms import decoder_of, is_array
from streamlab.wire.reader import DIALECTS, SNIFFED_FRAMES
from streamlab.wire.sse import Frame, SSEDecoder
from streamlab.wire.unrecognised import object_of, recognised

__all__ = ["SIGNS", "Decoded", "answers", "beginnings", "decoded", "wire_of"]

JSON = dict[str, Any]


class Answer:
    """What is known of the answer that is being read, for its successor to be told from it."""

    def __init__(self) -> None:
        self.begun = False  #: whether anything of an answer came
        self.going = False  #: whether anything came after its first event
        self.ended = False  #: whether its end came
        self.id = ""
        self.times = 0  #: how many payloads repeated that id
        self.mixed = False  #: ids change within one answer: on such a server they tell nothing
        self.finished: dict[int, bool] = {}  #: choice or candidate -> whether it has its reason

    @property
    def done(self) -> bool:
        """Whether every choice has its reason."""
        return bool(self.finished) and all(self.finished.values())

    def named(self, id: str) -> None:
        """Take a payload's id."""
        if id and self.id and id != self.id:
            self.mixed = True
        self.times += id == self.id
        self.id = id or self.id


#: Says whether a payload begins another answer, and learns from one that does not.
Sign = Callable[[Answer, JSON, Frame], bool]


def _claude(answer: Answer, payload: JSON, frame: Frame) -> bool:
    """`message_start`, where anything but pings came before."""
    name = payload.get("type", frame.event)
    if name == "message_start" and answer.begun:
        return True
    answer.begun |= name != "ping"
    return False


def _responses(answer: Answer, payload: JSON, frame: Frame) -> bool:
    """`response.created` after the end, with another id, or where the answer was under way."""
    name, response = payload.get("type", frame.event), payload.get("response")
    id = _word(response.get("id")) if isinstance(response, dict) else ""
    if name == "response.created" and answer.begun:
        return answer.ended or answer.going or bool(id and answer.id and id != answer.id)
    if isinstance(name, str) and name.startswith("response."):
        answer.going |= name not in ("response.created", "response.queued")
        answer.ended |= name.removeprefix("response.") in END
    answer.begun |= name not in ("ping", "keepalive")
    answer.id = id or answer.id
    return False


END = ("completed", "incomplete", "failed", "cancelled")


def _chat(answer: Answer, payload: JSON, frame: Frame) -> bool:
    """A choice after `[DONE]`; or a new id and a role, after the finish or a steady id."""
    if frame.data.strip() == b"[DONE]":
        answer.ended = True
        return False
    choices = [one for one in _list(payload.get("choices")) if isinstance(one, dict)]
    if answer.ended and choices:
        return True
    id = _word(payload.get("id"))
    deltas = (one.get("delta") or one.get("message") for one in choices)
    role = any(isinstance(delta, dict) and "role" in delta for delta in deltas)
    other = bool(id and answer.id and id != answer.id) and not answer.mixed
    if other and role and not payload.get("usage") and (answer.done or answer.times):
        return True
    answer.named(id)
    for one in choices:
        _finish(answer, one, bool(one.get("finish_reason")))
    return False


def _gemini(answer: Answer, payload: JSON, frame: Frame) -> bool:
    """Another `responseId`, after every candidate had its `finishReason`.

    The same answer once more, under the same id, has no sign: its format has no first event.
    """
    inner = payload.get("response")
    payload = inner if isinstance(inner, dict) else payload
    candidates = [one for one in _list(payload.get("candidates")) if isinstance(one, dict)]
    id = _word(payload.get("responseId"))
    other = bool(id and answer.id and id != answer.id) and not answer.mixed
    if other and candidates and answer.done:
        return True
    answer.named(id)
    for one in candidates:
        _finish(answer, one, bool(one.get("finishReason")))
    return False


def _interactions(answer: Answer, payload: JSON, frame: Frame) -> bool:
    """`interaction.created`, where anything of an interaction came before."""
    name = _word(payload.get("event_type")) or frame.event
    if name in ("interaction.created", "interaction.start") and answer.begun:
        return True
    answer.begun |= name.partition(".")[0] in ("interaction", "step", "content")
    return False


#: Wire format -> the sign of a new answer.
SIGNS: dict[str, Sign] = {
    "claude": _claude,
    "openai-chat": _chat,
    "openai-responses": _responses,
    "gemini": _gemini,
    "gemini-interactions": _interactions,
}


def answers(recording: Recording, wire: str | None = None) -> tuple[Recording, ...]:
    """Each answer of a recording as one of its own; one answer gives the recording itself.

    Chunks and their times are kept; a chunk that holds the end of one answer and the beginning of
    the next is cut in two. The last answer ends as the recording does, every other one cleanly.
    """
    data = recording.data
    frames = decoded(data).frames
    begin = beginnings(frames, wire or recording.wire)
    if len(begin) < 2:
        return (recording,)
    array = is_array(data)
    ends = [frames[n - 1].end if array else frames[n].start for n in begin[1:]]
    starts = [0, *(frames[n].start for n in begin[1:])]
    ranges = zip(starts, [*ends, len(data)], strict=True)
    parts = [_part(recording, start, end) for start, end in ranges]
    if array:
        parts = [_closed(part, n > 0, n + 1 < len(parts)) for n, part in enumerate(parts)]
    return tuple(_about(part, recording, n, len(parts)) for n, part in enumerate(parts))


class Decoded(NamedTuple):
    """A whole body in frames; nothing in it is too large."""

    frames: list[Frame]
    left: Frame | None  #: what is unfinished at its end
    named: bool  #: whether it is an event stream, whose frames can have names


def decoded(data: bytes) -> Decoded:
    """The frames of a whole body of any form."""
    decoder = decoder_of(data)(len(data) + 1)
    frames = decoder.feed(data)
    if isinstance(decoder, SSEDecoder):
        return Decoded(frames, decoder.end(), True)
    frames += decoder.end()
    return Decoded(frames, decoder.left, False)


def beginnings(frames: Sequence[Frame], wire: str | None = None) -> list[int]:
    """Which frames begin an answer, counted from 0; what comes before the first is the first's."""
    wire = wire or wire_of(frames)
    sign = SIGNS.get(wire or "")
    found, answer = [0] if frames else [], Answer()
    for n, frame in enumerate(frames if sign else ()):
        payload = object_of(frame)
        if sign is not None and payload is not None and sign(answer, payload, frame):
            answer = Answer()
            sign(answer, payload, frame)
            found.append(n)
    return found


def wire_of(frames: Sequence[Frame]) -> str | None:
    """The wire format that one of the first frames can only be of."""
    return next(filter(None, (recognised(DIALECTS, f) for f in frames[:SNIFFED_FRAMES])), None)


def _part(recording: Recording, start: int, end: int) -> list[Chunk]:
    """The bytes of a range, in the chunks that brought them."""
    out, at = list[Chunk](), 0
    for t, data in recording.chunks:
        piece = data[max(0, start - at) : max(0, end - at)]
        at += len(data)
        if piece:
            out.append(Chunk(t, piece))
        if at >= end:
            break
    return out


def _closed(chunks: list[Chunk], opens: bool, closes: bool) -> list[Chunk]:
    """Elements of a JSON array as an array again: its brackets come with their neighbours."""
    if opens:
        chunks[0] = Chunk(chunks[0].t, b"[" + chunks[0].data)
    if closes:
        chunks[-1] = Chunk(chunks[-1].t, chunks[-1].data + b"]")
    return chunks


def _about(chunks: list[Chunk], whole: Recording, n: int, of: int) -> Recording:
    last = n + 1 == of
    return msgspec.structs.replace(
        whole,
        chunks=tuple(chunks),
        ending=whole.ending if last else "eof",
        end_t=whole.end_t if last or not whole.timed else chunks[-1].t,
        note="; ".join(filter(None, (whole.note, f"answer {n + 1} of {of}"))),
    )


def _finish(answer: Answer, one: JSON, now: bool) -> None:
    index = one.get("index") or 0
    if isinstance(index, int):
        answer.finished[index] = answer.finished.get(index, False) or now


def _word(value: Any) -> str:
    return value if isinstance(value, str) else ""


def _list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []
