"""What the fault server answers: which recording, at what pace, in which framing, how it ends.

Pure: a request as a value (`Asked`) goes in, an answer as a value (`Answer`) comes out (`decide`),
and an answer becomes bytes (`plan` says which chunks go out when, `head` and `framed` write them).
HTTP is written by hand here, because breaking it is the job. Nothing in this file knows a socket.

Read next: `server.py`, which listens, sends these bytes, and keeps a log.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from http import HTTPStatus
from typing import Any

import msgspec

from streamlab.consumer.history import objections
from streamlab.errors import UsageError
from streamlab.streams.error_shapes import PATHS, error_body, error_frame, model_in, wire_of
from streamlab.streams.recording import Chunk, Recording
from streamlab.wire.events import ENDINGS
from streamlab.wire.sse import SSEDecoder

__all__ = [
    "Answer",
    "Asked",
    "Items",
    "chooser",
    "decide",
    "framed",
    "head",
    "history_refused",
    "http_error",
    "names_us",
    "plan",
    "shaped",
    "shown",
    "wanted",
    "would_be_answered",
]

#: How a client is told where the body ends: by a last, empty chunk; by the end of the connection;
#: by a length that was given ahead.
FRAMINGS = ("chunked", "close", "length")

#: The names that a request may call us by. A web page whose own name has been pointed at 127.0.0.1
#: ("DNS rebinding") still sends that name.
NAMES = ("127.0.0.1", "[::1]", "localhost")

#: A Host that is one of these; with any port, since a tunnel may have another one than ours.
_HOST = re.compile(rf"(?:{'|'.join(map(re.escape, NAMES))})(?::\d{{1,5}})?", re.IGNORECASE)

#: Largest body, in bytes, whose history is checked, and longest objection that is quoted.
MAX_HISTORY, MAX_OBJECTION = 4 * 1024 * 1024, 300


class Asked(msgspec.Struct, frozen=True):
    """One request: as much of it as an answer may depend on, and as a log may keep."""

    number: int  #: 1 for the server's first request
    method: str = ""
    path: str = ""  #: without the query, where other vendors put their keys
    headers: tuple[tuple[str, str], ...] = ()
    model: str = ""
    stream: bool = False
    t: float = 0.0  #: when it had arrived: seconds since the server started, by a monotonic clock


class Wants(msgspec.Struct, frozen=True):
    """The two things of a request that matter here; one format has them in its path."""

    model: str = ""
    stream: bool = False


def wanted(body: bytes, path: str = "") -> Wants:
    """Read a request's body; one that is no such JSON wants no stream."""
    if model := model_in(path):
        return Wants(model, stream=True)
    try:
        return msgspec.json.decode(body, type=Wants)
    except (msgspec.MsgspecError, RecursionError):
        return Wants()


class Answer(msgspec.Struct, frozen=True):
    """How to answer one request: which bytes, when, in which framing, and how it ends.

    The `ending` is the recording's own unless another one is named here. `eof` ends cleanly; `cut`
    closes the connection inside the framing; `reset` tears it down (TCP RST); `timeout` keeps it
    open and says nothing more. Where only the end of the connection ends the body (`close`), a cut
    looks exactly like an end: nobody can tell them apart, and that is a lesson. What `cancelled`
    left unread is unknown, so it is served as a cut.
    """

    recording: Recording = Recording()
    ending: str | None = None
    framing: str = "chunked"
    speed: float | None = None  #: 1: chunks at their recorded times; 10: ten times faster
    every: float | None = None  #: seconds from frame to frame, whatever the chunks were
    error: str = ""  #: such as "overloaded_error": an error event after HTTP 200, as the last frame
    status: int = 200
    headers: tuple[tuple[str, str], ...] = ()  #: more of them, or others in place of ours
    refuses: str = ""  #: of an HTTP error: what it says, in whatever shape the client reads

    def __post_init__(self) -> None:
        if self.ending is not None and self.ending not in ENDINGS:
            raise UsageError(f"ending {self.ending!r} is none of {', '.join(ENDINGS)}")
        if self.framing not in FRAMINGS:
            raise UsageError(f"framing {self.framing!r} is none of {', '.join(FRAMINGS)}")
        if self.speed is not None and self.every is not None:
            raise UsageError("speed (recorded times) and every (fixed seconds): give one of them")
        if (self.speed is not None and self.speed <= 0) or (self.every or 0) < 0:
            raise UsageError("speed must be above 0, and every not below it")
        if not 200 <= self.status <= 599:
            raise UsageError(f"status {self.status} is not between 200 and 599")
        if any(
            not text.isascii() or not text.isprintable() for pair in self.headers for text in pair
        ):
            raise UsageError("a header is a pair of printable ASCII texts")


#: What a caller may give for an answer: a bare number is an HTTP error.
Item = Recording | Answer | int
Items = Item | Sequence[Item] | Mapping[str, Item] | Callable[[Asked], Item]
Chooser = Callable[[Asked], Answer]


# ---- which answer


def http_error(status: int, message: str = "") -> Answer:
    """Answer with an HTTP error before any stream, in an API's shape (see `shaped`)."""
    if status < 400:
        raise UsageError(f"{status} is no HTTP error; those are 400 to 599")
    said = message or "answered so because the server was told to"
    answer = _document(error_body("", status, said), "application/json", status)
    return msgspec.structs.replace(answer, refuses=said)


def shaped(asked: Asked, answer: Answer) -> Answer:
    """Give an HTTP error of ours the shape that the request's client knows."""
    if not answer.refuses:
        return answer
    body = error_body(wire_of(asked.path), answer.status, answer.refuses)
    return msgspec.structs.replace(answer, recording=Recording.from_bytes(body))


def _document(body: bytes, content_type: str, status: int = 200) -> Answer:
    headers = (("content-type", content_type),)
    return Answer(Recording.from_bytes(body), framing="length", status=status, headers=headers)


def chooser(items: Items, how: Answer) -> Chooser:
    """Make a function from request to answer; what is no `Answer` yet is served as `how` says."""

    def answer(item: Item) -> Answer:
        if isinstance(item, Recording):
            return msgspec.structs.replace(how, recording=item)
        if isinstance(item, int):
            error = http_error(item)
            return msgspec.structs.replace(error, headers=error.headers + how.headers)
        if isinstance(item, Answer):
            return item
        raise UsageError(f"{type(item).__name__} is no Recording, Answer or HTTP status")

    if isinstance(items, Mapping):
        named = {name: answer(item) for name, item in items.items()}
        unknown = http_error(404, f"no such model here; there is {', '.join(named)}")
        return lambda asked: named.get(asked.model.removeprefix("streamlab/"), unknown)
    if callable(items):
        return lambda asked: answer(items(asked))
    given = [items] if isinstance(items, (Recording, Answer, int)) else list(items)
    if not given:
        raise UsageError("nothing to answer with: give at least one recording")
    turns = itertools.cycle([answer(item) for item in given])
    return lambda asked: next(turns)


class History(msgspec.Struct, frozen=True):
    """The messages in a request's body: read, looked at, and not kept."""

    messages: list[dict[str, Any]]


def history_refused(body: bytes) -> Answer | None:
    """Refuse a history that the API would refuse; None where nothing is wrong with it."""
    if len(body) > MAX_HISTORY:
        return http_error(413, f"histories are checked up to {MAX_HISTORY:,} bytes of body")
    try:
        messages = msgspec.json.decode(body, type=History).messages
    except (msgspec.MsgspecError, RecursionError):
        return http_error(400, "messages: this must be a list of objects")
    if not messages:
        return http_error(400, "messages: there is none")
    found = objections(messages)
    return http_error(400, str(found[0])[:MAX_OBJECTION]) if found else None


def names_us(host: str) -> bool:
    """Whether the value of a Host header is a name of this machine."""
    return _HOST.fullmatch(host) is not None


def would_be_answered(asked: Asked) -> bool:
    """Whether a request is refused for nothing that can be seen without its history.

    Only one format's histories have rules here; those of the others are never looked at.
    """
    probe = Answer()
    return wire_of(asked.path) == "claude" and decide(asked, lambda asked: probe) is probe


def decide(asked: Asked, choose: Chooser) -> Answer:
    """Refuse a request, or find its answer."""
    host = dict(asked.headers).get("host", "")
    if not names_us(host):
        return http_error(403, f"this server answers only to {', '.join(NAMES)}, not to {host!r}")
    if (asked.method, asked.path) == ("GET", "/"):
        return _about()
    if asked.method != "POST" or not wire_of(asked.path):
        return http_error(404, f"there is no {asked.method} {asked.path}; GET / says what there is")
    return _stream(asked, choose)


def _about() -> Answer:
    lines = ["streamlab's local fault server: its answers break on purpose.", "GET /"]
    lines += [f"POST {path}" for path in PATHS]
    return _document("\n".join([*lines, ""]).encode("ascii"), "text/plain; charset=utf-8")


def _stream(asked: Asked, choose: Chooser) -> Answer:
    if not asked.stream:
        return http_error(400, 'only streams here: the body must be JSON with "stream": true')
    try:
        return choose(asked)
    # The learner's own function: the client is where it gets noticed. Not even its `sys.exit()` may
    # end the server, and this is never the main thread, so no Ctrl-C gets lost here.
    except BaseException as why:
        return http_error(500, f"choosing the answer failed: {shown(why)}")


def shown(why: BaseException) -> str:
    """Show an exception in ASCII, also one whose own `repr` fails."""
    try:
        return ascii(why)
    except BaseException:
        return type(why).__name__


# ---- an answer as bytes


def plan(answer: Answer) -> Recording:
    """Say what will be sent, when (seconds since the request came) and how it will end."""
    recording, speed, every = answer.recording, answer.speed, answer.every
    parts = recording.chunks if every is None else tuple(_frames(recording.data))
    if answer.error:
        parts += (Chunk(recording.end_t, error_frame(recording.wire or "", answer.error)),)
    chunks: list[Chunk] = []
    t = 0.0
    for part in parts:
        if not part.data:  # an empty HTTP chunk would be the end marker
            continue
        if every is not None:
            t = len(chunks) * every
        elif speed is not None:
            t = max(t, (part.t or 0.0) / speed)
        chunks.append(Chunk(t, part.data))
    end_t = t if speed is None else max(t, (recording.end_t or 0.0) / speed)
    ending = answer.ending or recording.ending
    return Recording(tuple(chunks), "cut" if ending == "cancelled" else ending, end_t=end_t)


def _frames(data: bytes) -> Iterator[Chunk]:
    start = 0
    for frame in SSEDecoder().feed(data):
        yield Chunk(None, data[start : frame.end])
        start = frame.end
    yield Chunk(None, data[start:])


def head(answer: Answer, sent: Recording, number: int) -> bytes:
    """Write the status line and the headers."""
    fields = {
        "content-type": "text/event-stream; charset=utf-8",
        "cache-control": "no-cache",
        "request-id": f"req_streamlab_{number:04}",
        "connection": "close",
    }
    if answer.framing == "chunked":
        fields["transfer-encoding"] = "chunked"
    elif answer.framing == "length":
        # A promise that is kept ends the body: what is to break must have promised more.
        fields["content-length"] = str(len(sent.data) + (sent.ending != "eof"))
    fields |= {name.lower(): value for name, value in answer.headers}
    phrase = {status.value: status.phrase for status in HTTPStatus}.get(answer.status, "")
    lines = [f"HTTP/1.1 {answer.status} {phrase}"]
    lines += [f"{name}: {value}" for name, value in fields.items()]
    return "\r\n".join([*lines, "", ""]).encode("ascii")


def framed(framing: str, data: bytes) -> bytes:
    """Wrap the bytes of one chunk for the wire; no bytes are the end marker."""
    return b"%x\r\n%b\r\n" % (len(data), data) if framing == "chunked" else data
