"""A real nginx in front of the fault server, and what its settings do to the arrival times.

`through("on")` sends a short answer (`sent()`) through a proxy that collects it, and gives what a
plain HTTP client got, read by read, as a `Recording`; `config("on")` is the proxy's whole
configuration (`nginx.py` runs it). Where there is no nginx, `through` gives the recording that it
made elsewhere (`kept`): the verdicts on the two are the same, which a test holds them to. `rhythm`
draws when the frames came.

Read next: `analysis/meter.py`, which tells the settings apart by the times alone.
"""

from __future__ import annotations

import http.client
import socket
import time
import zlib
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path
from typing import NamedTuple

import msgspec

from streamlab.analysis.judge import judge
from streamlab.errors import UsageError
from streamlab.streams import synth
from streamlab.streams.recording import Chunk, Recording, read
from streamlab.streams.server import FaultServer
from streamlab.study.nginx import Nginx, written
from streamlab.wire.reader import Read

__all__ = ["SETTINGS", "Setting", "config", "kept", "measured", "rhythm", "sent", "through"]

#: The recordings that `through` made with a real nginx.
FOLDER = Path(__file__).parents[2] / "fixtures" / "proxies"

#: Seconds for the client to get its next bytes.
PATIENCE = 10.0

READ_SIZE = 64 * 1024

#: How nginx asks the server behind it. The first was its default before 1.29.7 (March 2026).
OLD, NEW = "proxy_http_version 1.0;", "proxy_http_version 1.1;"

COMPRESS = ("gzip on;", "gzip_types text/event-stream;", "gzip_min_length 1;")


class Setting(NamedTuple):
    """One way to set the proxy up; buffering is nginx's default, so that no line asks for it."""

    says: str
    lines: tuple[str, ...] = ()  #: in the proxy's `location`
    headers: tuple[tuple[str, str], ...] = ()  #: more of the answer's headers, from the server
    proxied: bool = True


SETTINGS = {
    "none": Setting("no proxy: the client asks the server itself", proxied=False),
    "on": Setting("as nginx came before 1.29.7: it collects the answer", (OLD,)),
    "off": Setting("the proxy is told not to collect", (OLD, "proxy_buffering off;")),
    "header": Setting(
        "the proxy collects, but this answer asks it not to",
        (OLD,),
        (("X-Accel-Buffering", "no"),),
    ),
    "chunked": Setting("the proxy asks for chunks, and passes on each one", (NEW,)),
    "gzip": Setting("the same, but it compresses, and so collects again", (NEW, *COMPRESS)),
}

TEXT = (
    "A proxy stands between the model and the person who reads. It may pass on every piece as it "
    "comes, or wait until it holds a few thousand bytes. Nobody loses a word either way, and the "
    "status is 200. But the person looks at an empty page, and then at all of it at once."
)


def sent() -> Recording:
    """The answer that is sent: a text, word by word, one about every 30 ms."""
    words = tuple(f"{word} " for word in TEXT.split())
    style, pace = synth.Style(pings=0), synth.Pace(first=0.1, gap=0.03)
    return synth.answer([synth.Text(words)], style=style, pace=pace, note="a text, word by word")


def config(setting: str, home: str = "/tmp/nginx-1", url: str = "http://127.0.0.1:8765") -> str:
    """The whole configuration of the proxy, for a folder and a server. It is what nginx reads."""
    return written(_setting(setting).lines, home, url)


def _setting(name: str) -> Setting:
    if name not in SETTINGS:
        raise UsageError(f"setting {name!r} is none of {', '.join(SETTINGS)}")
    return SETTINGS[name]


# --- The client -----------------------------------------------------------------------------------


class _OverSocket(http.client.HTTPConnection):
    """HTTP over a Unix socket."""

    def __init__(self, path: str) -> None:
        super().__init__("localhost", timeout=PATIENCE)
        self._path = path

    def connect(self) -> None:
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.settimeout(self.timeout)
        self.sock.connect(self._path)


def _client(url: str) -> http.client.HTTPConnection:
    host, _, port = url.removeprefix("http://").rpartition(":")
    return http.client.HTTPConnection(host, int(port), timeout=PATIENCE)


def fetched(client: http.client.HTTPConnection) -> Recording:
    """Ask for the answer, and note when each read came, without framing and compression."""
    body = b'{"model": "any", "stream": true}'
    began = time.perf_counter()

    def now() -> float:
        return round(time.perf_counter() - began, 6)

    client.request("POST", "/v1/messages", body, {"Accept-Encoding": "gzip", "Connection": "close"})
    response = client.getresponse()
    plain = _plain(response.getheader("Content-Encoding", ""))
    chunks, ending = [], "eof"
    try:
        while data := response.read1(READ_SIZE):
            t = now()
            if text := plain(data):
                chunks.append(Chunk(t, text))
    except (OSError, http.client.HTTPException):
        ending = "cut"
    return Recording(tuple(chunks), ending, "claude", now())


def _plain(coding: str) -> Callable[[bytes], bytes]:
    return zlib.decompressobj(zlib.MAX_WBITS | 16).decompress if coding == "gzip" else bytes


# --- What is measured, and what was ---------------------------------------------------------------


def through(setting: str) -> Recording:
    """What a client gets of `sent()` under a setting: measured now, which takes two seconds.

    Where there is no nginx to measure with, what was measured elsewhere; `note` says which.
    """
    how = _setting(setting)
    try:
        return _measured(how)
    except UsageError as why:
        if not how.proxied:
            raise
        old = kept(setting)
        return msgspec.structs.replace(old, note=f"{old.note}; kept, since {why}")


def measured(*settings: str) -> dict[str, Recording]:
    """The same of several settings (all, if none is named), side by side: two seconds for all."""
    names = settings or tuple(SETTINGS)
    with ThreadPoolExecutor(len(names)) as pool:
        return dict(zip(names, pool.map(through, names), strict=True))


def _measured(how: Setting) -> Recording:
    version = Nginx.version()
    with ExitStack() as open_ones:
        server = FaultServer(sent(), speed=1.0, headers=how.headers)
        url = open_ones.enter_context(server).url
        if how.proxied:
            client: http.client.HTTPConnection = _OverSocket(
                open_ones.enter_context(Nginx(url, how.lines)).socket
            )
        else:
            client = _client(url)
        open_ones.callback(client.close)
        got = fetched(client)
    by = f"through {version}: {how.says}" if how.proxied else how.says
    return msgspec.structs.replace(got, model=synth.MODELS["claude"], note=by)


def kept(setting: str) -> Recording:
    """What `through` gave once, with a real nginx: the same on every machine, and at once."""
    _setting(setting)
    return read(FOLDER / f"proxy_{setting}.stream.jsonl")


def rhythm(recording: Recording, step: float = 0.1) -> str:
    """When the frames came: a mark for each `step` seconds, "." for none, "#" for ten or more.

    >>> twelve, one = b"data: {}\\n\\n" * 12, b"data: {}\\n\\n"
    >>> rhythm(Recording((Chunk(0.15, twelve), Chunk(0.31, one)), wire="claude"))
    '.#.1'
    """
    counts: dict[int, int] = {}

    def count(chunk: Chunk, reads: list[Read]) -> None:
        frames = sum(frame is not None for frame, _ in reads)
        if chunk.t is not None and frames:
            place = int(round(chunk.t / step, 6))
            counts[place] = counts.get(place, 0) + frames

    judge(recording, watch=count)
    marks = (counts.get(place, 0) for place in range(max(counts, default=-1) + 1))
    return "".join("." if not n else str(n) if n < 10 else "#" for n in marks)
