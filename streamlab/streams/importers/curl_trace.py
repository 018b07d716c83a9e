"""curl's dumps: `--trace FILE` (in hex) and `--trace-ascii FILE`, with `--trace-time` or without.

    12:00:00.123456 <= Recv data, 261 bytes (0x105)
    0000: 66 66 0d 0a 65 76 65 6e 74 3a 20 6d 65 73 73 61 ff..event: messa

Each received block is one read of the connection at its own time, so this is the one output of curl
that says when the chunks came. In HTTP/1.1 they are still framed as chunks.

The ASCII dump writes every byte that is no printable ASCII as a dot. A line end shows as a new line
of the dump only where it was CR LF. The line ends of an event stream can be put back, since they
stand before a field's name or after the JSON; letters beyond ASCII stay dots, and a note says so.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

import msgspec

from streamlab.errors import WireError
from streamlab.streams.importers.curl import TIME, Answer, clock
from streamlab.streams.importers.exchange import Exchange, decoded
from streamlab.streams.importers.loose import lines_of
from streamlab.streams.recording import Chunk

__all__ = ["looks", "read"]

_BLOCK = re.compile(
    TIME + rb"(==|=>|<=) "
    rb"(Info|Send header|Send data|Send SSL data|Recv header|Recv data|Recv SSL data)"
    rb"(?:, (\d+) bytes \(0x[0-9a-f]+\)|: ([^\n]*))\r?\n?"
)
_HEX = re.compile(rb"([0-9a-f]{4,}): ((?:[0-9a-f]{2} ){1,16})")
_TEXT = re.compile(rb"([0-9a-f]{4,}): ([^\n]*)")

#: A dot that was a line end: after the JSON of an event, and after the event's name.
_EVENT_END = re.compile(rb"(?<=[}\]])\.\.(?=event: |data: |id: |: |$)")
_NAME_END = re.compile(rb"((?:^|\n)event: [\w.]{1,80})\.(?=data: )")


class Block(NamedTuple):
    """One block of a dump."""

    t: float | None  #: the time of day, in seconds
    kind: str
    data: bytes


def looks(head: bytes) -> bool:
    """Whether a file that begins so is a dump of curl."""
    return _BLOCK.match(head) is not None


def read(data: bytes, name: str) -> Iterator[Exchange]:
    """The answers in a dump."""
    first = re.search(rb"^0000: [^\n]*", data, re.M)
    in_hex = first is None or re.match(rb"0000: (?:[0-9a-f]{2} ){16}|0000: ..( |$)", first[0])
    answers: list[tuple[Answer, list[Chunk]]] = [(Answer(), [])]
    for block in _blocks(data, bool(in_hex), name):
        answer, chunks = answers[-1]
        text = block.data.decode("utf-8", "replace")
        if block.kind == "Send header":
            if answer.status is not None:
                answers.append((answer := Answer(), []))
            answer.sent = block.t
            for line in text.splitlines():
                answer.request_line(line, "http")
        elif block.kind == "Send data":
            answer.sent = block.t
        elif block.kind == "Recv header":
            if text.startswith("HTTP/") and chunks:
                answers.append((answer := Answer(), []))
            answer.head_line(text.strip())
        elif block.kind == "Recv data":
            chunks.append(Chunk(answer.after(block.t), block.data))
        elif block.kind == "Info":
            answer.tell(text)
        answer.end = block.t if block.t is not None else answer.end
    for number, (answer, chunks) in enumerate(answers, 1):
        if answer.status is not None:
            yield _exchange(answer, chunks, f"answer {number}", bool(in_hex))


def _exchange(answer: Answer, chunks: list[Chunk], where: str, in_hex: bool) -> Exchange:
    exchange = msgspec.structs.replace(
        answer.exchange(where),
        chunks=tuple(chunks),
        end_t=answer.after(answer.end),
        first_byte_s=None,
        end_s=None,
    )
    if in_hex:
        return exchange
    exchange = decoded(exchange)
    note = "from --trace-ascii: letters beyond ASCII are dots"
    note = "; ".join(filter(None, (exchange.note, note)))
    return msgspec.structs.replace(
        exchange, chunks=_with_line_ends(exchange.chunks or ()), note=note
    )


def _with_line_ends(chunks: tuple[Chunk, ...]) -> tuple[Chunk, ...]:
    """Dots that were line ends are line ends again; every byte keeps its place."""
    data = b"".join(chunk.data for chunk in chunks)
    data = _NAME_END.sub(rb"\1\n", _EVENT_END.sub(b"\n\n", data))
    found, at = [], 0
    for chunk in chunks:
        found.append(Chunk(chunk.t, data[at : at + len(chunk.data)]))
        at += len(chunk.data)
    return tuple(found)


def _blocks(data: bytes, in_hex: bool, name: str) -> Iterator[Block]:
    """The blocks of a dump, each with the bytes that its lines show."""
    t: float | None = None
    header, start, number = None, 0, 0
    lines: list[bytes] = []
    for number, line in lines_of(data):
        found = _BLOCK.fullmatch(line)
        if found is None:
            if line.rstrip(b"\r"):
                lines.append(line.rstrip(b"\r"))
            continue
        if header is not None:
            yield _block(header, lines, t, in_hex, f"{name}:{start}")
        t, header, start, lines = clock(found[1], t), found, number, []
    if header is not None:
        yield _block(header, lines, t, in_hex, "")  # a dump that stops short is what came by then


def _block(
    header: re.Match[bytes], lines: list[bytes], t: float | None, in_hex: bool, where: str
) -> Block:
    kind = "TLS" if b"SSL" in header[3] else header[3].decode()
    t = t if header[1] else None
    if header[3] == b"Info":
        return Block(t, "Info", header[5] or b"")
    size = int(header[4][:12])
    data = _from_hex(lines) if in_hex else _from_text(lines, size)
    if where and len(data) != size and kind != "TLS":
        raise WireError(f"a block of {size} bytes shows {len(data)} of them", where)
    return Block(t, kind, data)


def _from_hex(lines: list[bytes]) -> bytes:
    found = (_HEX.match(line) for line in lines)
    return b"".join(bytes.fromhex(each[2].decode()) for each in found if each is not None)


def _from_text(lines: list[bytes], size: int) -> bytes:
    """The bytes of an ASCII dump; a line that begins two bytes late had CR LF before it."""
    pieces, at = [], 0
    for line in lines:
        found = _TEXT.match(line)
        if found is None:
            continue
        piece = (b"\r\n" if int(found[1][:12], 16) - at == 2 else b"") + found[2]
        pieces.append(piece)
        at += len(piece)
        if at > size:
            break
    return b"".join(pieces) + (b"\r\n" if size - at == 2 else b"")
