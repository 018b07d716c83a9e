"""What the forwarder is asked, and its short answers: the page, its style and script, refusals.

Pure: a request as it was heard goes in; a `Reply` comes out, or the question of a new turn. Who may
ask is decided here. A server on loopback can be reached by every page that its owner's browser has
open, so a turn is started only by a POST of JSON from our own page:

- the Host names this machine, or some page's own name was pointed at it (DNS rebinding);
- the Origin is ours, and no header of ours lets others in (no CORS);
- JSON cannot be sent by a foreign form, nor by an image, a link or a prefetch.

Read next: `forward.py`, which runs the turn.
"""

from __future__ import annotations

import html
from collections.abc import Callable
from http import HTTPStatus
from pathlib import Path
from typing import Annotated

import msgspec

from streamlab.consumer.conversation import Conversation
from streamlab.errors import UsageError
from streamlab.streams.answer import NAMES, names_us
from streamlab.streams.connection import Heard

__all__ = ["PAGE_HEADERS", "POLICY", "Question", "Reply", "asked_for", "head", "refused"]

HERE = Path(__file__).parent / "browser"

#: Characters of a question.
MOST_QUESTION = 4_000

#: What the page may do: run its own script, and talk to the server that it came from. The last two
#: forbid to be framed, and every way from a text to markup or to code.
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src data:; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'; "
    "require-trusted-types-for 'script'; trusted-types 'none'"
)

#: Headers of everything that is no stream.
PAGE_HEADERS = (
    ("Content-Security-Policy", POLICY),
    ("X-Content-Type-Options", "nosniff"),
    ("Referrer-Policy", "no-referrer"),
    ("Cross-Origin-Opener-Policy", "same-origin"),
    ("Cross-Origin-Resource-Policy", "same-origin"),
    ("Cache-Control", "no-store"),
    ("Connection", "close"),
)


class Reply(msgspec.Struct, frozen=True):
    """A short answer that is known at once."""

    status: int
    body: bytes = b""
    type: str = "text/plain; charset=utf-8"
    more: tuple[tuple[str, str], ...] = ()

    @property
    def wire(self) -> bytes:
        """The whole answer as bytes."""
        length = () if self.status == HTTPStatus.NO_CONTENT else self._of_body()
        return head(self.status, (*length, *self.more, *PAGE_HEADERS)) + self.body

    def _of_body(self) -> tuple[tuple[str, str], ...]:
        return (("Content-Type", self.type), ("Content-Length", str(len(self.body))))


class Question(msgspec.Struct, frozen=True):
    """The body of a request for a turn."""

    question: Annotated[str, msgspec.Meta(min_length=1, max_length=MOST_QUESTION)]


def head(status: int, headers: tuple[tuple[str, str], ...]) -> bytes:
    """The status line and the headers."""
    lines = [f"HTTP/1.1 {status} {HTTPStatus(status).phrase}"]
    lines += [f"{name}: {value}" for name, value in headers]
    return "\r\n".join([*lines, "", ""]).encode("ascii")


def refused(status: int, why: str, *more: tuple[str, str]) -> Reply:
    """Say no, in one line."""
    return Reply(status, f"{why}\n".encode("utf-8", "replace"), more=more)


def asked_for(heard: Heard, suggestion: str = "") -> Reply | Conversation:
    """Answer a request; a `Conversation` is what a turn is to be run with."""
    if heard.head is None or heard.refusal is not None:
        status = heard.refusal.status if heard.refusal else 400
        return refused(status, "no request that this server can read, or it is too large or late")
    headers = {name.decode("ascii"): value.decode("latin-1") for name, value in heard.head.headers}
    if not names_us(headers.get("host", "")):
        return refused(403, f"this server answers only to {', '.join(NAMES)}")
    method = heard.head.method.decode("ascii")
    path = heard.head.target.decode("ascii").partition("?")[0]
    route = ROUTES.get(path)
    if route is None:
        return refused(404, "there is no such page here")
    allowed, answer = route
    if method != allowed:
        return refused(405, f"only {allowed}", ("Allow", allowed))
    return answer(headers, heard.body, suggestion)


def _page(headers: dict[str, str], body: bytes, suggestion: str) -> Reply:
    page = (HERE / "page.html").read_text("utf-8")
    filled = page.replace("{question}", html.escape(suggestion))
    return Reply(200, filled.encode("utf-8", "replace"), "text/html; charset=utf-8")


def _file(name: str, type: str) -> Callable[[dict[str, str], bytes, str], Reply]:
    def answer(headers: dict[str, str], body: bytes, suggestion: str) -> Reply:
        return Reply(200, (HERE / name).read_bytes(), f"{type}; charset=utf-8")

    return answer


def _turn(headers: dict[str, str], body: bytes, suggestion: str) -> Reply | Conversation:
    """Whether a turn may begin, and with what."""
    origin, site = headers.get("origin"), headers.get("sec-fetch-site", "same-origin")
    if site != "same-origin" or origin not in (None, f"http://{headers['host']}"):
        return refused(403, "only this server's own page may start a turn")
    if headers.get("content-type", "").partition(";")[0].strip().lower() != "application/json":
        return refused(415, "the body must be JSON")
    if "last-event-id" in headers:  # a client that lost its line, and reconnects by itself
        return Reply(204)  # "stop asking": a second turn would be asked, and paid, again
    try:
        question = msgspec.json.decode(body, type=Question).question
        return Conversation().ask(question)
    except (msgspec.MsgspecError, RecursionError, UnicodeError, UsageError):
        most = f"1 to {MOST_QUESTION:,} characters"
        return refused(400, f'the body must be {{"question": "…"}}, of {most}')


#: Path -> the method that it takes, and what answers.
ROUTES: dict[str, tuple[str, Callable[[dict[str, str], bytes, str], Reply | Conversation]]] = {
    "/": ("GET", _page),
    "/page.css": ("GET", _file("page.css", "text/css")),
    "/page.js": ("GET", _file("page.js", "text/javascript")),
    "/turn": ("POST", _turn),
}
