"""Open a file of any form, and give the streams that it holds.

Read next: `formats.py`, the table of the forms.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import NamedTuple

import msgspec

from streamlab.streams.recording import Recording, RecordingFile, open_recording

__all__ = ["About", "Opened", "streams_in"]


class About(msgspec.Struct, frozen=True):
    """What a file says about a stream in it, beside the stream. Everything here is masked."""

    form: str = ""  #: the name of the file's form: "har", "mitmproxy", ...; "" for a plain stream
    where: str = ""  #: which of the file's entries: "entry 3"; "" where the file is one stream
    at: str = ""  #: when the request was sent, ISO 8601 in UTC; "" where nobody knows
    request: str = ""  #: "POST https://api.example.com/v1/messages"
    status: int | None = None  #: of the HTTP answer
    masked: tuple[tuple[str, int], ...] = ()  #: (kind, how many), such as ("e-mail address", 2)


class Opened(NamedTuple):
    """One stream of a file: a plain one comes piece by piece (once), another is a value."""

    recording: Recording | RecordingFile
    about: About


def streams_in(path: str | os.PathLike[str], *, keep: bool = False) -> Iterator[Opened]:
    """Give every stream in a file, in its order; `-` is standard input.

    With `keep`, nothing is masked. Raises `WireError`, naming the file, where it cannot be read or
    holds no stream. A plain stream's file is open until the next one is asked for.
    """
    with open_recording(path) as file:
        yield Opened(file, About())
