"""Open a file of any form, and give the streams that it holds.

Read next: `formats.py`, the table of the forms; `exchange.py`, what becomes of what they find.
"""

from __future__ import annotations

import io
import os
from collections.abc import Iterable, Iterator
from typing import IO, NamedTuple

import msgspec

from streamlab.errors import WireError
from streamlab.streams.importers.exchange import (
    MAX_BODY,
    Exchange,
    decoded,
    is_stream,
    recording_of,
)
from streamlab.streams.importers.formats import Form, form_of
from streamlab.streams.importers.loose import iso
from streamlab.streams.importers.source import Source
from streamlab.streams.recording import Recording, RecordingFile, open_bytes

__all__ = ["About", "Opened", "streams_from", "streams_in"]

#: Bytes of a capture, which is read whole.
MAX_CAPTURE = 256 * 1024 * 1024

#: Exchanges of a capture.
MAX_EXCHANGES = 100_000

#: Reasons that are told one by one, where a file's streams have no body.
MOST_TOLD = 3


class About(msgspec.Struct, frozen=True):
    """What a file says about a stream in it, beside the stream. Everything here is masked."""

    form: str = ""  #: the name of the file's form: "har", "mitmproxy", ...; "" for a plain stream
    where: str = ""  #: which of the file's entries: "entry 3"; "" where the file is one stream
    at: str = ""  #: when the request was sent, ISO 8601 in UTC; "" where nobody knows
    request: str = ""  #: "POST https://api.example.com/v1/messages"
    status: int | None = None  #: of the HTTP answer
    masked: tuple[tuple[str, int], ...] = ()  #: (kind, how many), such as ("e-mail address", 2)
    first_byte_s: float | None = None  #: seconds since the request was sent, where only this and
    end_s: float | None = None  #: the end are known; a recording with times has its own
    missing: tuple[str, ...] = ()  #: streams in the file of which it kept no body, and why


class Opened(NamedTuple):
    """One stream of a file: a plain one comes piece by piece (once), another is a value."""

    recording: Recording | RecordingFile
    about: About


def streams_in(path: str | os.PathLike[str], *, keep: bool = False) -> Iterator[Opened]:
    """Give every stream in a file, in its order; `-` is standard input.

    What a capture holds is masked, unless `keep`; a plain stream is given as it is. Raises
    `WireError`, naming the file, where it cannot be read or holds no stream. A plain stream's file
    is open until the next one is asked for.
    """
    name = os.fspath(path)
    yield from streams_from(open_bytes(name), name, keep=keep)


def streams_from(file: IO[bytes], name: str, *, keep: bool = False) -> Iterator[Opened]:
    """The same of an opened file, such as a member of an archive; it is closed, but not for `-`."""
    source = Source(file, name)
    with source.stream:
        form = form_of(source.head)
        if form is None:
            with RecordingFile(source.stream, name, source.short) as plain:
                yield Opened(plain, About())
            return
        data = source.whole(MAX_CAPTURE)
    try:
        found = _bounded(form.read(data, name), name)
    except WireError as why:
        if not source.short():
            raise
        raise WireError(f"{source.short()[len(name) + 2 :]}, so {why}", name) from None
    if found or not form.loose:
        del data
        yield from _streams(found, form, name, keep)
    else:  # it only looked like one, as a list of "* lines" looks like curl's
        with RecordingFile(io.BytesIO(data), name, source.short) as plain:
            yield Opened(plain, About())


def _bounded(exchanges: Iterable[Exchange], name: str) -> list[Exchange]:
    """All exchanges, decoded; they may be so many, and so large all together."""
    found, left = [], MAX_BODY
    for exchange in exchanges:
        exchange = decoded(exchange, left)
        left -= sum(len(chunk.data) for chunk in exchange.chunks or ())
        found.append(exchange)
        if len(found) > MAX_EXCHANGES:
            raise WireError(f"more than {MAX_EXCHANGES:,} exchanges", name)
    return found


def _streams(found: list[Exchange], form: Form, name: str, keep: bool) -> Iterator[Opened]:
    """The streams among some exchanges; those that the file kept no body of are told of."""
    streams = [exchange for exchange in found if is_stream(exchange)]
    said = (
        f"{exchange.where}: {exchange.note or 'its body was not kept'}"
        for exchange in streams
        if exchange.chunks is None
    )
    missing = tuple(each if keep else _masked_text(each)[0] for each in said)
    if len(missing) == len(streams):
        raise WireError(_nothing(found, form, missing), name)
    for exchange in streams:
        if exchange.chunks is not None:
            yield _opened(exchange, form, missing, keep)


def _nothing(found: list[Exchange], form: Form, missing: tuple[str, ...]) -> str:
    """Why a capture has no stream."""
    what = f"{form.called} with {len(found)} exchange{'s' * (len(found) != 1)}"
    if not missing:
        return f"{what}, and none of them is a stream of events"
    more = f"; and {len(missing) - MOST_TOLD} more" if len(missing) > MOST_TOLD else ""
    return f"{what}, and no body of a stream: {'; '.join(missing[:MOST_TOLD])}{more}"


def _opened(exchange: Exchange, form: Form, missing: tuple[str, ...], keep: bool) -> Opened:
    recording = recording_of(exchange)
    request = f"{exchange.method} {exchange.url}".strip()
    counts: dict[str, int] = {}
    if not keep:
        from streamlab.streams.masking import masked  # its patterns take a moment to compile

        recording, in_stream = masked(recording)
        request, in_request = _masked_text(request)
        for kind, count in (*in_stream, *in_request):
            counts[kind] = counts.get(kind, 0) + count
    about = About(
        form.name,
        exchange.where,
        iso(exchange.at),
        request,
        exchange.status,
        tuple(counts.items()),
        exchange.first_byte_s,
        exchange.end_s,
        missing,
    )
    return Opened(recording, about)


def _masked_text(text: str) -> tuple[str, tuple[tuple[str, int], ...]]:
    from streamlab.streams.masking import masked_text

    return masked_text(text)
