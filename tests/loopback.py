"""What the tests of real connections share: small Claude streams, and a client made of a socket.

The streams are written out by hand: nothing of the package that they test has a part in them.
"""

from __future__ import annotations

import json
import socket

from streamlab.streams.recording import Chunk, Recording

MODEL = "claude-test"


def sse(*events: dict) -> bytes:
    """Claude events as they are on the wire."""
    return b"".join(
        b"event: %b\ndata: %b\n\n" % (event["type"].encode(), json.dumps(event).encode())
        for event in events
    )


START = sse(
    {
        "type": "message_start",
        "message": {
            "id": "msg_1",
            "type": "message",
            "role": "assistant",
            "model": MODEL,
            "content": [],
            "stop_reason": None,
            "stop_sequence": None,
            "usage": {"input_tokens": 9, "output_tokens": 1},
        },
    }
)
STOP = sse({"type": "message_stop"})


def text(index: int, *pieces: str) -> bytes:
    """A whole text block."""
    opened = {"type": "text", "text": ""}
    return (
        sse({"type": "content_block_start", "index": index, "content_block": opened})
        + b"".join(
            sse({"type": "content_block_delta", "index": index, "delta": delta})
            for delta in ({"type": "text_delta", "text": piece} for piece in pieces)
        )
        + sse({"type": "content_block_stop", "index": index})
    )


def tool(index: int, name: str, *pieces: str, closed: bool = True) -> bytes:
    """A tool call; its input comes in pieces of JSON text."""
    opened = {"type": "tool_use", "id": f"toolu_{index}", "name": name, "input": {}}
    return (
        sse({"type": "content_block_start", "index": index, "content_block": opened})
        + b"".join(
            sse({"type": "content_block_delta", "index": index, "delta": delta})
            for delta in ({"type": "input_json_delta", "partial_json": piece} for piece in pieces)
        )
        + (sse({"type": "content_block_stop", "index": index}) if closed else b"")
    )


def stopped(reason: str) -> bytes:
    """The event that says why the model stopped."""
    delta = {"stop_reason": reason, "stop_sequence": None}
    return sse({"type": "message_delta", "delta": delta, "usage": {"output_tokens": 7}})


HELLO = START + text(0, "Hel", "lo") + stopped("end_turn") + STOP


def recording(*chunks: bytes, ending: str = "eof") -> Recording:
    """A recording without times, a chunk for each argument."""
    return Recording(tuple(Chunk(None, data) for data in chunks), ending)


def pausing(*chunks: bytes, ending: str = "eof") -> Recording:
    """A recording whose last chunk comes an hour after the others, which are there at once."""
    times = [0.0] * (len(chunks) - 1) + [3600.0]
    return Recording(tuple(Chunk(t, data) for t, data in zip(times, chunks, strict=True)), ending)


def frames(data: bytes) -> list[bytes]:
    """The blocks of a stream, each with its blank line."""
    return [block + b"\n\n" for block in data.split(b"\n\n") if block]


BODY = json.dumps({"model": MODEL, "stream": True}).encode()


def request(
    body: bytes = BODY,
    line: bytes = b"POST /v1/messages HTTP/1.1",
    host: bytes = b"localhost",
    more: bytes = b"",
) -> bytes:
    """A request as bytes."""
    head = b"%b\r\nHost: %b\r\nContent-Length: %d\r\n%b\r\n" % (line, host, len(body), more)
    return head + body


class Client:
    """A client made of one socket: what it gets is exactly what the wire carried."""

    def __init__(self, url: str, sent: bytes = b"") -> None:
        host, _, port = url.removeprefix("http://").rpartition(":")
        self.socket = socket.create_connection((host.strip("[]"), int(port)), timeout=10)
        self.got = b""
        try:
            self.socket.sendall(sent)
        except OSError:
            self.socket.close()
            raise

    def __enter__(self) -> Client:
        return self

    def __exit__(self, *_: object) -> None:
        self.socket.close()

    def read_until(self, mark: bytes) -> bytes:
        """Read until the mark has come."""
        while mark not in self.got:
            piece = self.socket.recv(65536)
            assert piece, f"the connection ended before {mark!r}: {self.got!r}"
            self.got += piece
        return self.got

    def read_all(self) -> tuple[bytes, str]:
        """Read to the end; say also how the connection stopped."""
        try:
            while piece := self.socket.recv(65536):
                self.got += piece
        except ConnectionResetError:
            return self.got, "reset"
        return self.got, "eof"


def ask(url: str, sent: bytes) -> tuple[bytes, bytes, str]:
    """One request, whole: head and body of the answer, and how the connection stopped."""
    with Client(url, sent) as client:
        got, ended = client.read_all()
    head, _, body = got.partition(b"\r\n\r\n")
    return head, body, ended


def unchunked(body: bytes) -> tuple[bytes, bool]:
    """The data of a chunked body, and whether its end marker came."""
    data = b""
    while body:
        size, _, body = body.partition(b"\r\n")
        length = int(size, 16)
        if length == 0:
            return data, body == b"\r\n"
        data, body = data + body[:length], body[length + 2 :]
    return data, False
