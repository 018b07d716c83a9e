"""The forms of files that other tools write, in one table: how one looks, and what reads it.

A form is told by the first bytes alone. What looks like none is a plain stream (an event stream,
one JSON event a line, a JSON array, a timed recording), which `recording.py` reads.

Each reader takes the bytes of the file and its name, gives `Exchange`s, and raises `WireError`,
naming the file and the line, entry or byte.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import NamedTuple

from streamlab.streams.importers import cassette, curl, curl_trace, har, logs, mitmproxy
from streamlab.streams.importers.exchange import Exchange

__all__ = ["FORMS", "Form", "form_of"]


class Form(NamedTuple):
    """One form of file."""

    name: str
    called: str  #: in a message
    looks: Callable[[bytes], bool]  #: whether a file that begins so is one
    read: Callable[[bytes, str], Iterable[Exchange]]
    loose: bool = False  #: whether other text may look so too: one that holds nothing is plain


#: In the order in which they are tried; no file looks like two of them.
FORMS = (
    Form("har", "a HAR", har.looks, har.read),
    Form("cassette", "a cassette", cassette.looks, cassette.read),
    Form("mitmproxy", "a mitmproxy flow file", mitmproxy.looks, mitmproxy.read),
    Form("curl", "a trace of curl", curl_trace.looks, curl_trace.read),
    Form("curl", "an output of curl", curl.looks, curl.read, loose=True),
    Form("log", "a log", logs.looks, logs.read, loose=True),
)


def form_of(head: bytes) -> Form | None:
    """The form of a file that begins so; None for a plain stream."""
    return next((form for form in FORMS if form.looks(head)), None)
