"""A recording as the bytes of a file in one of three forms, and what the form has no place for.

`stream.jsonl` keeps everything. `sse` keeps the events, `jsonl` the data of each. No form is given
what was not there: a stream that was cut short stays so (its last, unfinished event too), and an
event gets the name that its own data has. One mark exists in one form only: `[DONE]` of Chat
Completions. As JSON lines such an answer ends where its file does, so `[DONE]` is left out on the
way there, and is put in on the way back, where the answer is known to be whole.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import NamedTuple

from streamlab.errors import UsageError
from streamlab.streams.recording import Recording
from streamlab.streams.splitting import decoded
from streamlab.streams.timed_lines import chunk_line, end_line, header_line
from streamlab.wire.payload import NotJSON, parse
from streamlab.wire.sse import BOM, Frame
from streamlab.wire.unrecognised import clip, is_keep_alive, object_of

__all__ = ["FORMS", "Converted", "converted"]

#: Wire format -> the field of its data that names the event too.
NAMES = {"claude": "type", "openai-responses": "type", "gemini-interactions": "event_type"}

DONE = b"[DONE]"


class Converted(NamedTuple):
    """The content of a file, and what it has no place for, in words."""

    data: bytes
    lost: tuple[str, ...] = ()
    added: tuple[str, ...] = ()


def converted(recording: Recording, form: str, wire: str | None, complete: bool) -> Converted:
    """A recording in one of the `FORMS`.

    `wire` is its wire format, where that is known; `complete`, whether its answer is whole. Raises
    `UsageError` where it holds what the form cannot say at all.
    """
    return FORMS[form](recording, wire, complete)


def _timed(recording: Recording, wire: str | None, complete: bool) -> Converted:
    """Chunks, times and the ending, with the wire format that was recognised."""
    head = (recording.wire or wire, recording.source, recording.model, recording.note)
    end = end_line(recording.end_t, recording.ending)
    return Converted(b"".join([header_line(*head), *map(chunk_line, recording.chunks), end]))


def _events(recording: Recording, wire: str | None, complete: bool) -> Converted:
    """An event stream: as it came, or made of JSON."""
    frames, left, named = decoded(recording.data)
    lost, added = _untimed(recording), list[str]()
    if named:
        return Converted(recording.data, lost)
    out = [_block(frame, wire) for frame in frames]
    if wire == "openai-chat" and complete:
        out.append(b"data: [DONE]\n\n")
        added.append("[DONE], since the answer is whole")
    if left is not None and left.data:
        out.append(_block(left, None).rstrip(b"\n"))  # nothing ends it: it stays unfinished
    return Converted(b"".join(out), lost, tuple(added))


def _lines(recording: Recording, wire: str | None, complete: bool) -> Converted:
    """The data of each event, one a line."""
    frames, left, named = decoded(recording.data)
    lost, kept = list(_untimed(recording)), list[bytes]()
    if named and not frames:
        raise UsageError("no event in it, so nothing to write as JSON lines")
    for frame in frames:
        if _is_json(frame.data):
            kept.append(_one_line(frame.data) + b"\n")
        elif frame.data.strip() == DONE:
            lost.append("[DONE]")
        elif is_keep_alive(frame):
            lost.append("keep-alives")
        else:
            said = f"frame {frame.number} is not JSON: {clip(frame.data)}"
            raise UsageError(f"{said}; it has no place in JSON lines, use --to sse")
    if left is not None and left.data:
        if _is_json(left.data):  # a line that ends, though its event did not
            lost.append("the last event, which is unfinished")
        else:
            kept.append(_one_line(left.data))
    return Converted(b"".join(kept), tuple(dict.fromkeys(lost)))


#: Name of a form, which is also the end of its files' names -> how it is written.
FORMS: dict[str, Callable[[Recording, str | None, bool], Converted]] = {
    "stream.jsonl": _timed,
    "sse": _events,
    "jsonl": _lines,
}


def _untimed(recording: Recording) -> tuple[str, ...]:
    """What only a timed recording has."""
    lost = ["times and reads"] if recording.timed else []
    if recording.ending != "eof":
        lost.append(f"the ending ({recording.ending})")
    return tuple(lost)


def _block(frame: Frame, wire: str | None) -> bytes:
    """A frame of JSON as an event, named as its data says."""
    payload = object_of(frame) or {}
    name = payload.get(NAMES.get(wire or "", ""))
    if name is None and "error" in payload and wire in NAMES:
        name = "error"
    is_word = isinstance(name, str) and name.isprintable()
    head = f"event: {name}\n".encode() if is_word else b""
    return head + b"".join(b"data: %s\n" % line for line in _split(frame.data)) + b"\n"


def _split(data: bytes) -> Iterator[bytes]:
    """The lines of some data: within JSON, a line end is only white space."""
    yield from data.removeprefix(BOM).splitlines()


def _one_line(data: bytes) -> bytes:
    return b" ".join(_split(data))


def _is_json(data: bytes) -> bool:
    try:
        parse(data)
    except NotJSON:
        return False
    return True
