"""mitmproxy's flow files: what `mitmdump -w FILE` and "save flows" write.

A file is one flow after another, each a dictionary in tnetstrings (length, colon, bytes, and one
character for the type), as in `12:4:type;4:http;}`. This is a short reader of our own: mitmproxy's
library is the format's home, but it pins versions of h11 and tornado that Jupyter's server and ours
cannot live with. Read are the flow versions from 0.11 to today's 21, which differ here in the names
of three keys and in texts being bytes.

A flow says when the first and the last byte of an answer came, not when each chunk did. mitmproxy
keeps no body that it passed on piece by piece (`stream_large_bodies`), unless it is told to
(`store_streamed_bodies`, from version 12 on), and none of an answer that broke off.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from streamlab.errors import WireError
from streamlab.streams.importers.exchange import Exchange
from streamlab.streams.importers.loose import at, header_pairs, number, text
from streamlab.streams.last_words import ending_said
from streamlab.streams.recording import Chunk
from streamlab.streams.timed_lines import MAX_SECONDS

__all__ = ["looks", "read"]

_START = re.compile(rb"\d{1,12}:\d{1,3}:[a-z_]{2,30}[;,]")

#: Digits of a length, and how deep values may be nested.
MAX_DIGITS, MAX_DEPTH = 12, 40

#: Values of a flow: a flow has some hundred, and a long list of certificates some hundred more.
MAX_VALUES = 1_000_000

_COLON, _ZERO = ord(":"), ord("0")

NOT_KEPT = (
    "mitmproxy passed the body on and did not keep it; record with --set "
    "store_streamed_bodies=true (mitmproxy 12 or later) or without stream_large_bodies"
)


def looks(head: bytes) -> bool:
    """Whether a file that begins so is a flow file."""
    return _START.match(head) is not None


def read(data: bytes, name: str) -> Iterator[Exchange]:
    """The HTTP flows of a file; flows of other kinds (DNS, raw TCP) are none of ours."""
    reader, number_ = Tnetstrings(data, name), 0
    while not reader.over:
        number_ += 1
        flow = reader.next()
        kind = text(at(flow, "type")) or "http"
        if kind == "http":
            yield _exchange(flow, f"flow {number_}")


def _exchange(flow: Any, where: str) -> Exchange:
    request, response = at(flow, "request"), at(flow, "response")
    sent = _date(at(request, "timestamp_end")) or _date(at(request, "timestamp_start"))
    error = text(at(flow, "error", "msg"))
    over = _date(at(response, "timestamp_end")) or _date(at(flow, "error", "timestamp"))
    body = _either(response, "content", "body")
    status = number(_either(response, "status_code", "code"))
    return Exchange(
        where,
        text(at(request, "method")),
        _url(request),
        sent,
        int(status) if status and 100 <= status < 1000 else None,
        header_pairs(at(response, "headers")),
        _chunks(body),
        ending_said(error) if error else "eof",
        first_byte_s=_between(sent, _date(at(response, "timestamp_start"))),
        end_s=_between(sent, over),
        note=_note(error, response, body),
    )


def _chunks(body: Any) -> tuple[Chunk, ...] | None:
    if isinstance(body, str):
        body = body.encode("utf-8", "surrogatepass")
    if not isinstance(body, bytes):
        return None
    return (Chunk(None, body),) if body else ()


def _note(error: str, response: Any, body: Any) -> str:
    if response is None:
        return f"no answer came: {error[:200]}" if error else "no answer is in the flow"
    if body is None:
        if not error:
            return NOT_KEPT
        return f"{error[:200]}; and mitmproxy keeps no body of an answer that broke off"
    return error[:200]


def _either(value: Any, *keys: str) -> Any:
    """What is under the first of some keys that is there: a name of today, and older ones."""
    found = (at(value, key) for key in keys)
    return next((each for each in found if each is not None), None)


def _url(request: Any) -> str:
    scheme, host = text(at(request, "scheme")), text(at(request, "host"))
    path, port = text(at(request, "path")), number(at(request, "port"))
    usual = {"http": 80, "https": 443}.get(scheme)
    place = f":{int(port)}" if port and port != usual else ""
    return f"{scheme}://{host}{place}{path}" if host else path


def _date(value: Any) -> float | None:
    found = number(value)
    return found if found is not None and 0 < found < MAX_SECONDS else None


def _between(start: float | None, end: float | None) -> float | None:
    return None if start is None or end is None else max(0.0, round(end - start, 6))


class Tnetstrings:
    """Values in tnetstrings, one after another. Texts of either kind, and keys, are decoded.

    Raises `WireError`, naming the file and the byte.
    """

    def __init__(self, data: bytes, name: str) -> None:
        self._data, self._name = data, name
        self._at = self._values = 0

    @property
    def over(self) -> bool:
        """Whether all bytes are read."""
        return self._at >= len(self._data)

    def next(self) -> Any:
        """The next value."""
        self._values = 0
        value, self._at = self._value(self._at, len(self._data), 0)
        return value

    def _fail(self, at: int, why: str) -> WireError:
        return WireError(f"not a mitmproxy flow: {why} (byte {at})", self._name)

    def _value(self, at: int, limit: int, depth: int) -> tuple[Any, int]:
        """The value that begins at a byte, and where the next one begins."""
        self._values += 1
        if depth > MAX_DEPTH or self._values > MAX_VALUES:
            raise self._fail(at, "nested too deep" if depth > MAX_DEPTH else "too many values")
        colon = self._data.find(b":", at, min(limit, at + MAX_DIGITS + 1))
        digits = self._data[at:colon] if colon > 0 else b""
        if not digits.isdigit():
            raise self._fail(at, "no length where a value should begin")
        start = colon + 1
        end = start + int(digits)
        if end >= limit:
            short = "the file stops inside a flow" if limit == len(self._data) else "a length lies"
            raise self._fail(at, short)
        kind = self._data[end : end + 1]
        if kind in (b"]", b"}"):
            return self._list(start, end, depth, kind == b"}"), end + 1
        return self._scalar(kind, self._data[start:end], at), end + 1

    def _list(self, at: int, end: int, depth: int, pairs: bool) -> Any:
        found = []
        while at < end:
            value, at = self._value(at, end, depth + 1)
            found.append(value)
        if not pairs:
            return found
        if len(found) % 2:
            raise self._fail(end, "a key without a value")
        return {text(key): value for key, value in zip(found[::2], found[1::2], strict=True)}

    def _scalar(self, kind: bytes, data: bytes, at: int) -> Any:
        if kind == b",":
            return data
        if kind == b";":
            return data.decode("utf-8", "replace")
        if kind == b"~":
            return None
        if kind == b"!":
            return data == b"true"
        if kind in (b"#", b"^") and len(data) <= 40:
            return number(data.decode("ascii", "replace"))
        raise self._fail(at, f"no type {kind!r} is known")
