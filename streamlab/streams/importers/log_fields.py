"""What a text in a log holds of a stream: a line of it, a whole frame, or what a program quoted.

    data: {"type": ...}                        the line itself, maybe with words behind it
    msg="data: {\\"type\\": ...}" request=1      quoted, as logfmt and Python's `repr` write it
    b'event: ping\\ndata: {}\\n\\n'               bytes of Python, one read with all its lines

Read next: `logs.py`, where the texts are in a log.
"""

from __future__ import annotations

import ast
import json
import re

import msgspec

__all__ = ["RAW", "SENT", "Said", "bytes_of", "framed", "said_in"]

#: A line that is a stream's own, with nothing in front: what holds one is a stream and no log.
RAW = re.compile(rb"(?:data|event|id|retry): ?|:|\[\s*[{\"]|<")

#: A line that says that a request was sent, in the words of the SDKs and of their HTTP clients.
SENT = re.compile(rb"Sending HTTP Request|send_request_body\.complete")

#: A line of an event stream after other words: its data, or its name and no more than context.
_FIELD = re.compile(
    rb"(?:^|(?<=[\s:|\]>=(-]))(?P<quote>[bru]?[\"'])?"
    rb"(?:(?P<data>data: ?[{\[])"
    rb"|(?P<name>event: ?[\w.]{1,80})"
    rb"(?=[ \t]*\r?(?:\n|$|[\"'])|[ \t]{2,}\S|[ \t]+\[|[ \t]+\w+=|\\))"
)

#: A quoted text, in one line.
_DOUBLE = re.compile(r'"(?:[^"\\\n]|\\.)*"')
_SINGLE = re.compile(r"'(?:[^'\\\n]|\\.)*'")

_DONE = re.compile(rb"data: ?\[DONE\]")

_json = json.JSONDecoder().raw_decode


class Said(msgspec.Struct, frozen=True):
    """What one line of a log holds of a stream, or that a request was sent (`sent`)."""

    data: bytes = b""  #: lines of an event stream, or a JSON object
    is_sse: bool = False
    name: str = ""  #: of the event, where its object does not say it
    t: float | None = None  #: by the clock of the log
    stream: str = ""  #: which stream it says it is of
    sent: bool = False
    key: str = ""  #: of the wrapper in JSON, where this stood
    raw: bool = False  #: the data is a text of JSON as it was: whole lines, or one read
    rest: bool = False  #: it begins as no line of a stream does: nothing, or the rest of one
    in_json: bool = False  #: whether its time was a value of JSON, which may count from anywhere

    def in_form(self, sse: bool) -> bytes:
        """The bytes of the stream: JSON as an event, or as a line."""
        if self.is_sse:
            return framed(self.data) if self.raw else self.data
        named = f"event: {self.name}\n".encode() if self.name else b""
        return named + b"data: " + self.data + b"\n\n" if sse else self.data + b"\n"


def said_in(text: bytes) -> tuple[Said, int] | None:
    """The first that a text holds of a stream, and where in the text; None where it holds none."""
    found = _FIELD.search(text)
    if found is None:
        return None
    start = found.start("data") if found["data"] else found.start("name")
    quote = found["quote"]
    inner = _unquoted(text[found.start("quote") :]) if quote else None
    if inner is not None and RAW.match(inner):
        return Said(framed(inner), True), found.start()
    if found["name"]:
        return Said(found["name"] + b"\n", True), found.start()
    line = text[start:].partition(b"\n")[0].rstrip(b"\r")
    return Said(_cut(line) + b"\n\n", True), found.start()


def framed(text: bytes) -> bytes:
    """Lines of a stream, with their ends: a line of data alone ends its event."""
    if b"\n" in text.rstrip(b"\r\n"):
        return text if text.endswith((b"\n", b"\r")) else text + b"\n\n"
    line = text.rstrip(b"\r\n")
    return line + (b"\n\n" if line.startswith(b"data:") else b"\n")


def _unquoted(text: bytes) -> bytes | None:
    """What was quoted, as JSON or as Python writes it; None where the quote does not end."""
    word = text.decode("utf-8", "surrogateescape")
    mark = word.lstrip("bru")[:1]
    found = (_DOUBLE if mark == '"' else _SINGLE).match(word, word.index(mark))
    if found is None:
        return None
    for read in (json.loads, lambda quoted: ast.literal_eval(word[: found.start()] + quoted)):
        try:
            value = read(found[0])
        except (ValueError, SyntaxError, MemoryError, RecursionError):
            continue
        return value if isinstance(value, bytes) else bytes_of(str(value))
    return None


def bytes_of(text: str) -> bytes:
    """A text as bytes; half characters are bytes that were no UTF-8, or stay what they are."""
    try:
        return text.encode("utf-8", "surrogateescape")
    except UnicodeEncodeError:
        return text.encode("utf-8", "surrogatepass")


def _cut(line: bytes) -> bytes:
    """A line of data without the words that a log put behind its JSON."""
    if done := _DONE.match(line):
        return done[0]
    start = line.index(b":") + 1
    text = line[start:].decode("utf-8", "surrogateescape")
    space = len(text) - len(text.lstrip())
    try:
        _, end = _json(text, space)
    except (ValueError, RecursionError):
        return line
    if not text[end : end + 1].isspace():
        return line
    return line[:start] + bytes_of(text[:end])
