"""Which bytes of a recording hold the pieces of one text, so that it can be read as a whole.

A model's words come in fragments: "alice@exam" in one frame, "ple.com" in the next. The wire's
readers say what each frame appends to which segment; here its string is found again in the frame's
bytes. What is no fragment (snapshots, ids, comments, what is not JSON) stays where it is and is the
rest. What is sealed (signatures, encrypted parts, media) is neither: nothing in it is read.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import msgspec

from streamlab.streams.masking_text import Range, unescaped
from streamlab.streams.splitting import beginnings, decoded, wire_of
from streamlab.wire.dialect import Dialect
from streamlab.wire.events import InputDelta, TextDelta, ThinkingDelta
from streamlab.wire.payload import compact
from streamlab.wire.reader import DIALECTS, SNIFFED_FRAMES
from streamlab.wire.sse import Frame

__all__ = ["Piece", "Pieces", "pieces_of"]

#: Names of the fields that hold a fragment, or a whole text.
TEXTS = frozenset(
    {
        *(b"text", b"thinking", b"partial_json", b"delta", b"content", b"arguments", b"input"),
        *(b"refusal", b"reasoning", b"reasoning_content", b"summary", b"code", b"diff"),
    }
)

#: Names of the fields that must survive byte for byte, where they hold base64 and nothing else.
SEALED = frozenset(
    {
        *(b"signature", b"thoughtSignature", b"thought_signature", b"encrypted_content", b"data"),
        *(b"b64_json", b"partial_image_b64", b"encrypted_index", b"encrypted_stdout", b"result"),
        *(b"obfuscation", b"reasoning_encrypted"),
    }
)
_BASE64 = re.compile(rb"[A-Za-z0-9+/_-]++={0,2}")

#: How a key begins that is itself nothing but such letters.
_KEY = re.compile(rb"sk-|[sr]k_|AKIA|ASIA|AIza|gh[pousr]_|github_|hf_|xox|xapp-|gsk_|xai-|whsec_")

#: A string of JSON, and whether it is the name of a field.
_STRING = re.compile(rb'"([^"\\]*+(?:\\.[^"\\]*+)*+)"(\s*+:)?+', re.DOTALL)

#: Strings that are one fragment together, at most.
MOST_TOGETHER = 64

#: Fragments that no event tells of when they come: field -> what names the text that they are of.
UNTOLD: dict[str, dict[bytes, bytes]] = {
    "openai-chat": {b"transcript": b""},
    "openai-responses": {b"delta": b"item_id"},
    "gemini": {b"stringValue": b"jsonPath"},
    "gemini-interactions": {b"arguments": b""},
}


#: A text that a frame appends -> the segments that it belongs to: (answer, segment).
Told = dict[str, list[tuple[int, str]]]


class Literal(NamedTuple):
    """A string in a frame: the field it is the value of, and the range of what is in its quotes."""

    field: bytes
    start: int
    end: int
    text: bytes


#: The same fragment, in each place where a frame has it.
Piece = tuple[Range, ...]


class Pieces(NamedTuple):
    """The fragments of every segment, in order, and all ranges that are no rest."""

    segments: dict[Any, list[Piece]]
    taken: list[Range]


def pieces_of(data: bytes, wire: str | None = None) -> Pieces:
    """Find the fragments in a body of any form."""
    frames, left, named = decoded(data)
    begin = {*beginnings(frames, wire)}
    walk = _Walk(data, named)
    for n, frame in enumerate(frames):
        if n in begin:
            walk.answer(wire or wire_of(frames[n : n + SNIFFED_FRAMES]))
        walk.read(frame, frame.data)
    if left is not None:
        if not frames:
            walk.answer(wire)
        walk.read(left, _closed(left.data))
    walk.pieces.taken.sort()
    return walk.pieces


class _Walk:
    """What is known on the way through the frames.

    One reader takes them all, as whoever judges the recording does. It may say nothing of a second
    answer, and then another one does, which takes only that.
    """

    def __init__(self, data: bytes, named: bool) -> None:
        self.pieces = Pieces({}, [])
        self._data, self._named = data, named
        self._readers: list[Dialect] = []
        self._wire = ""
        self._answer = self._calls = 0

    def answer(self, wire: str | None) -> None:
        """Another answer begins; where nothing tells its format, it has that of the one before."""
        self._wire = wire or self._wire
        self._answer += 1
        if self._wire:
            self._readers[1:] = [DIALECTS[self._wire](self._named)]

    def read(self, frame: Frame, data: bytes) -> None:
        """Take one frame; its data may be longer than it is, where it was cut short."""
        found = [each for each in _literals(data) if each.end <= len(frame.data)]
        lines = _lines(self._data, frame) if self._named else _line(self._data, frame)
        told = self._told(msgspec.structs.replace(frame, data=data))
        kept = list[Literal]()
        for segment, literals in (*_matched(told, found), *self._untold(told, found)):
            piece = tuple(_place(literal, lines) for literal in literals)
            self.pieces.segments.setdefault(segment, []).append(piece)
            kept += literals
        sealed = (each for each in found if _is_sealed(each))
        self.pieces.taken.extend({_place(literal, lines) for literal in (*kept, *sealed)})

    def _told(self, frame: Frame) -> Told:
        """The texts that a frame appends, each with its segments."""
        said = (Told(), Told())
        for answer, reader in enumerate(self._readers):
            for event in reader.read(frame):
                if isinstance(event, TextDelta | ThinkingDelta | InputDelta) and event.text:
                    segment = (self._answer * answer, event.segment)
                    said[answer].setdefault(event.text, []).append(segment)
        return said[0] or said[1]

    def _untold(self, told: Told, found: Sequence[Literal]) -> Iterator[Matched]:
        """Fragments of which no event tells, where none tells of anything else in the frame."""
        names = UNTOLD.get(self._wire, {})
        if told or not names:
            return
        self._calls += any(each.field == b"name" for each in found)
        name = b""
        for each in found:
            if each.field in names.values():
                name = each.text
            elif each.field in names and not _is_sealed(each):
                yield (self._answer, self._calls, each.field, name), (each,)


#: A segment, and the strings that hold the same fragment of it.
Matched = tuple[Any, tuple[Literal, ...]]


def _matched(told: Told, found: Sequence[Literal]) -> Iterator[Matched]:
    """Find each text that is told among the strings of its frame."""
    texts = [each for each in found if each.field in TEXTS and each.text] if told else []
    known = defaultdict[str, list[Literal]](list)
    for each in texts:
        known[_text(each.text)].append(each)
    for text, segments in told.items():
        same = known.get(text, [])
        if not same:  # several that are one, or one inside the JSON around it
            parts = _together(texts, text) or (_within(texts, text) if len(told) == 1 else ())
            yield from ((segments[0], (each,)) for each in parts)
        elif len(same) == len(segments):
            yield from ((segment, (each,)) for segment, each in zip(segments, same, strict=True))
        else:
            yield segments[0], tuple(same)
            yield from ((segment, tuple(same)) for segment in segments[1:MOST_TOGETHER])


def _text(raw: bytes) -> str:
    """A string as a reader has it: what is no UTF-8 is replaced, half a character is not."""
    try:
        return raw.decode("utf-8", "surrogatepass")
    except UnicodeDecodeError:
        return raw.decode("utf-8", "replace")


def _together(texts: Sequence[Literal], text: str) -> Sequence[Literal]:
    """The strings, one after another, that make a text: the details of some thinking."""
    whole = _bytes(text)
    for first in range(min(len(texts), MOST_TOGETHER)):
        at, last = 0, first
        while last < min(len(texts), first + MOST_TOGETHER) and whole.startswith(
            texts[last].text, at
        ):
            at, last = at + len(texts[last].text), last + 1
        if at == len(whole):
            return texts[first:last]
    return ()


def _within(texts: Sequence[Literal], text: str) -> Sequence[Literal]:
    """The string that a text holds as JSON: a program or a patch that streams inside its input."""
    drafts = (each for each in texts if each.field == b"delta")
    return [each for each in drafts if compact(each.text.decode("utf-8", "replace"))[1:-1] in text]


def _literals(data: bytes) -> Iterator[Literal]:
    """The strings of some JSON that are values."""
    field = b""
    for found in _STRING.finditer(data):
        inside, names = found.groups()
        if names:
            field = inside
        else:
            text = unescaped(inside).text if b"\\" in inside else inside
            yield Literal(field, *found.span(1), text)


def _is_sealed(literal: Literal) -> bool:
    text = literal.text
    return (
        literal.field in SEALED and _BASE64.fullmatch(text) is not None and _KEY.match(text) is None
    )


def _bytes(text: str) -> bytes:
    return text.encode("utf-8", "surrogatepass")


def _closed(data: bytes) -> bytes:
    """JSON that was cut short, closed at once, so that what came of it can be read."""
    stack, open_string = bytearray(), False
    for found in _TOKEN.finditer(data):
        token, open_string = found.group(), False
        if token in b"{[":
            stack += b"}" if token == b"{" else b"]"
        elif token in b"}]":
            del stack[-1:]
        else:
            open_string = found.group(1) is None
    if not open_string:
        return data + bytes(reversed(stack))
    cut = _HALF.search(data)
    whole = data[: cut.start()] if cut is not None else data
    return whole + b'"' + bytes(reversed(stack))


#: A string, whole (then its end is a group) or cut short; a bracket.
_TOKEN = re.compile(rb'"[^"\\]*+(?:\\.[^"\\]*+)*+(?:(")|\\?\Z)|[\[\]{}]', re.DOTALL)

#: An escape that was cut short.
_HALF = re.compile(rb"(?<!\\)(?:\\\\)*+(\\(?:u[0-9a-fA-F]{0,3}+)?+)\Z")


def _line(data: bytes, frame: Frame) -> list[Range]:
    """Where the data of a frame without fields is: (offset in the frame's data, in the body)."""
    return [(0, data.find(frame.data, frame.start))]


def _lines(data: bytes, frame: Frame) -> list[Range]:
    """The same of an event, for each of its `data` lines."""
    out, at, size = list[Range](), frame.start, 0
    block = data[at : max(frame.end, at)]
    for line in block.splitlines(keepends=True):
        body = line.rstrip(b"\r\n")
        if body == b"data" or body.startswith(b"data:"):
            skip = min(len(body), 6 if body.startswith(b"data: ") else 5)
            out.append((size, at + skip))
            size += len(body) - skip + 1
        at += len(line)
    return out


def _place(literal: Literal, lines: Sequence[Range]) -> Range:
    """Where a string of a frame is in the body."""
    size, at = lines[bisect_right(lines, literal.start, key=lambda line: line[0]) - 1]
    return at + literal.start - size, at + literal.end - size
