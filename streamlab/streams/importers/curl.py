"""What curl prints: the answer's head (`-i`), what it says of the connection (`-v`), and the body.

    * Connected to ...         said of the connection: how it ended, with `-v`
    > POST /v1/messages ...    the request's head, with `-v`; only its first line and host are read
    < HTTP/1.1 200 OK          the answer's head, with `-v`
    HTTP/1.1 200 OK            the same with `-i`, up to an empty line
    data: {...}                the body, as it is
    curl: (18) transfer ...    an error, where errors go into the same file (`2>&1`)

`--trace-time` puts the time of day in front of the first three; the body has none, so these give
only the moments of the first and the last byte. (`--trace` gives each read its time:
`curl_trace.py`.) Output without any head is a plain stream. HTTPie prints heads and body likewise.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from streamlab.streams.importers.exchange import Exchange
from streamlab.streams.last_words import ending_said, without_last_words
from streamlab.streams.recording import Chunk

__all__ = ["ENDED", "TIME", "Answer", "clock", "looks", "read"]

#: `--trace-time`, and `--trace-ids`: the numbers of the transfer and of the connection. Both come
#: with `-vv`.
_CLOCK = rb"\d\d:\d\d:\d\d\.\d{6}"
TIME = rb"(?:(" + _CLOCK + rb") )?(?:\[[\dx]{1,9}-[\dx]{1,9}\] )?"

#: A line that is curl's own, and what it is: `*`, `>`, `<`, `{` or `}`.
#: After the first three comes a space, or nothing: `<html>` is a web page.
_SAID = re.compile(
    TIME + rb"(?:([*<>])(?: ([^\r\n]*)|(?=[\r\n]|\Z))|([{}]) \[\d+ bytes data\])\r?\n?"
)

#: Answers of a file, and one: too many, and the caller says so.
MAX_ANSWERS = 100_001

_STATUS = re.compile(rb"HTTP/\d(?:\.\d)? (\d{3})(?: [^\r\n]*)?\r?\n")

_REQUEST = re.compile(r"([A-Z]{3,10}) (\S+) HTTP/")

#: The request that HTTPie prints with `-v`, up to the answer's head.
_ASKED = re.compile(rb"[A-Z]{3,10} \S{1,8000} HTTP/\d(?:\.\d)?\r?\n")

#: Two lines of headings, and then a line that is drawn again and again, also amid the body.
_METER_HEAD = re.compile(rb"  % Total    % Received[^\n]{0,99}\n[^\n]{0,99}Speed {0,9}\r?\n")
_METER = re.compile(rb"\r[ \d.kMGTP:-]{72} [ \d.kMGTP]{5}(?:\n(?=curl:|\* |\Z))?")

#: Where curl's words begin in the line of a body that has no line end, and the head of the next
#: answer. No line of JSON has such a line end in it.
_AFTER_BODY = re.compile(
    rb"(?<=[^\n])(?<!"
    + _CLOCK
    + rb" )(?<![\dx]\] )(?="
    + TIME.replace(b"(" + _CLOCK, b"(?:" + _CLOCK)
    + rb"(?:\* (?:Closing connection|Connection #|"
    rb"transfer closed|Recv failure|Send failure|Operation timed|end of response|HTTP/2 stream|"
    rb"OpenSSL SSL_read|GnuTLS recv|shutting down connection|Failure|Excess)[^\n]{0,400}\n"
    rb"|[{}] \[\d{1,9} bytes data\]\n))"
    rb"|(?<=\S)(?=HTTP/\d(?:\.\d)? \d{3}(?: [^\r\n\"]{0,80})?\r\n)"
)

#: What curl says of an end that is none; its other words mean nothing here.
ENDED = re.compile(
    r"transfer closed|Recv failure|Operation timed|end of response with \d+ bytes missing|"
    r"was not closed cleanly|SSL_read|GnuTLS recv error|Failure when receiving|Callback aborted"
)


def looks(head: bytes) -> bool:
    """Whether a file that begins so is curl's output with something of its own."""
    if any(begun.match(head) for begun in (_STATUS, _METER_HEAD, _ASKED)):
        return True
    first = _SAID.match(head)
    return first is not None and bool(first[2]) and _SAID.match(head, first.end()) is not None


def clock(text: bytes | None, before: float | None) -> float | None:
    """The time of day in seconds, and a day later where it would run backwards at midnight."""
    if not text:
        return before
    hours, minutes, seconds = text.split(b":")
    t = int(hours) * 3600 + int(minutes) * 60 + float(seconds)
    while before is not None and t < before - 43_200:
        t += 86_400
    return t


class Answer:
    """One answer while its lines are read, and how it becomes an exchange."""

    def __init__(self) -> None:
        self.method = self.url = self.said = ""
        self.status: int | None = None
        self.headers: list[tuple[str, str]] = []
        self.body = bytearray()
        self.ending = "eof"
        self.sent: float | None = None
        self.first: float | None = None
        self.end: float | None = None

    def request_line(self, line: str, scheme: str) -> None:
        """Take a line of the request's head."""
        name, _, value = line.partition(":")
        if found := _REQUEST.match(line):
            self.method, self.url = found[1], found[2]
        elif name.lower() == "host" and self.url.startswith("/"):
            self.url = f"{scheme}://{value.strip()}{self.url}"

    def head_line(self, line: str) -> None:
        """Take a line of the answer's head."""
        if line.startswith("HTTP/"):
            word = line.split(" ")[1:2]
            self.status = int(word[0]) if word and word[0].isdecimal() else None
            self.headers = []
        elif ":" in line:
            name, _, value = line.partition(":")
            self.headers.append((name.strip().lower(), value.strip()))

    def tell(self, text: str) -> None:
        """Take what curl says of the connection."""
        if ENDED.search(text) and self.ending == "eof":
            self.ending, self.said = ending_said(text), text

    def after(self, t: float | None) -> float | None:
        """A moment as seconds since the request was sent."""
        return None if t is None or self.sent is None else max(0.0, round(t - self.sent, 6))

    def exchange(self, where: str) -> Exchange:
        """What was read, as a value."""
        body = bytes(self.body)
        return Exchange(
            where,
            self.method,
            self.url,
            None,
            self.status,
            tuple(self.headers),
            (Chunk(None, body),) if body else (),
            self.ending,
            first_byte_s=self.after(self.first),
            end_s=self.after(self.end) if self.first is not None else None,
            note=f"curl said {self.said[:120]}" if self.said else "",
        )


def read(data: bytes, name: str) -> Iterator[Exchange]:
    """The answers in an output of curl; one after another where it was redirected."""
    data, ending = without_last_words(data)
    data = _METER.sub(b"", _METER_HEAD.sub(b"", data)) if b"\r" in data else data
    answers = _answers(data)
    if answers and answers[-1].ending == "eof":
        answers[-1].ending = ending
    for number, answer in enumerate(answers, 1):
        if answer.status is not None or answer.body:
            yield answer.exchange(f"answer {number}")


def _answers(data: bytes) -> list[Answer]:
    found = [Answer()]
    now: float | None = None
    in_head, scheme = False, "http"
    asking = _ASKED.match(data) is not None
    for line in _lines(data):
        if len(found) > MAX_ANSWERS:
            break
        answer = found[-1]
        said = _SAID.fullmatch(line) if line[:1] in b"*<>{}[0123456789" else None
        if said is not None:
            now, text = clock(said[1], now), (said[3] or b"").decode("utf-8", "replace")
            mark = said[2] or said[4]
            if mark == b">" and _REQUEST.match(text) and answer.status is not None:
                found.append(answer := Answer())
            if mark == b"*" and " port 443" in text:
                scheme = "https"
            _take(answer, mark, text, now if said[1] else None, scheme)
        elif _STATUS.fullmatch(line):
            if answer.body or 300 <= (answer.status or 0) < 400:
                found.append(answer := Answer())
            in_head, asking = True, False
            answer.head_line(line.decode("utf-8", "replace").strip())
        elif in_head:
            text = line.decode("utf-8", "replace").strip()
            in_head = bool(text)
            answer.head_line(text)
        elif asking:
            answer.request_line(line.decode("utf-8", "replace").strip(), "https")
        else:
            answer.body += line
    return found


def _take(answer: Answer, mark: bytes, text: str, t: float | None, scheme: str) -> None:
    if mark == b">":
        answer.request_line(text, scheme)
        answer.sent = t
    elif mark == b"<":
        answer.head_line(text)
    elif mark == b"{":
        answer.first = answer.first if answer.first is not None else t
        answer.end = t
    elif mark == b"*":
        answer.tell(text)
        answer.end = t if t is not None else answer.end


def _lines(data: bytes) -> Iterator[bytes]:
    """Lines with their ends; only a line feed ends one, and curl's words where there was none."""
    for part in _AFTER_BODY.split(data):
        at = 0
        while at < len(part):
            end = part.find(b"\n", at) + 1 or len(part)
            yield part[at:end]
            at = end
