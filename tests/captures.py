"""One and the same answer as each tool would have written it down: small captures, made by hand.

Each function takes an `Answer` and gives the bytes of a file. Nothing of the importers has a part
in them; `test_importers_real.py` has the tools themselves write theirs.
"""

from __future__ import annotations

import base64
import gzip
import json
import zlib
from collections.abc import Callable
from typing import Any

import msgspec
import zstandard

from streamlab.streams.recording import Chunk, Recording

JSON = dict[str, Any]

#: When the request was sent: 2026-11-30 12:00:00 UTC.
SENT = 1_796_040_000.0

URL = "https://api.example.com/v1/messages"


class Answer(msgspec.Struct, frozen=True):
    """What came for a request, and how."""

    chunks: tuple[Chunk, ...]
    status: int = 200
    kind: str = "text/event-stream"
    url: str = URL
    headers: tuple[tuple[str, str], ...] = ()
    failure: str = ""  #: in the tool's words
    encode: Callable[[bytes], bytes] = bytes  #: what the server compressed it with

    @property
    def data(self) -> bytes:
        return b"".join(chunk.data for chunk in self.chunks)

    @property
    def body(self) -> bytes:
        return self.encode(self.data)

    @property
    def all_headers(self) -> list[tuple[str, str]]:
        return [("content-type", self.kind), *self.headers]


def answered(recording: Recording | bytes, **fields: Any) -> Answer:
    """An answer of a recording, or of bytes that came half a second after the request."""
    if isinstance(recording, bytes):
        return Answer((Chunk(0.5, recording),) if recording else (), **fields)
    chunks = (Chunk(t if t is not None else 0.5, data) for t, data in recording.chunks)
    return Answer(tuple(chunks), **fields)


# --- HAR


def har_entry(answer: Answer, content: JSON | None = None, **more: Any) -> JSON:
    """One entry; the body is text unless `content` says otherwise."""
    said = content or {"size": len(answer.data), "text": answer.data.decode("utf-8", "replace")}
    failure = {"_error": answer.failure} if answer.failure else {}
    return {
        "startedDateTime": "2026-11-30T11:59:59.900Z",
        "time": 1600.0,
        "request": {
            "method": "POST",
            "url": answer.url,
            "headers": [{"name": "x-api-key", "value": "sk-ant-planted"}],
        },
        "response": {
            "status": answer.status,
            "headers": [{"name": name, "value": value} for name, value in answer.all_headers],
            "content": {"mimeType": answer.kind, **said},
            **failure,
        },
        "timings": {"blocked": 60.0, "dns": -1, "connect": 39.0, "send": 1.0}
        | {"wait": 500.0, "receive": 1000.0},
        **more,
    }


def har_of(*entries: JSON) -> bytes:
    return json.dumps({"log": {"version": "1.2", "creator": {}, "entries": entries}}).encode()


def har(answer: Answer) -> bytes:
    return har_of(har_entry(answer))


def har_base64(answer: Answer) -> bytes:
    text = base64.b64encode(answer.body).decode()
    return har_of(har_entry(answer, {"encoding": "base64", "text": text}))


# --- mitmproxy


def tnetstring(value: Any) -> bytes:
    """A value as mitmproxy writes it."""
    if isinstance(value, dict):
        pairs = (tnetstring(key) + tnetstring(each) for key, each in value.items())
        data, kind = b"".join(pairs), b"}"
    elif isinstance(value, list):
        data, kind = b"".join(map(tnetstring, value)), b"]"
    elif value is None:
        data, kind = b"", b"~"
    elif isinstance(value, bool):
        data, kind = b"true" if value else b"false", b"!"
    elif isinstance(value, int):
        data, kind = b"%d" % value, b"#"
    elif isinstance(value, float):
        data, kind = repr(value).encode(), b"^"
    elif isinstance(value, str):
        data, kind = value.encode(), b";"
    else:
        data, kind = value, b","
    return b"%d:%b%b" % (len(data), data, kind)


def flow(answer: Answer, **response: Any) -> JSON:
    """One flow of today's version."""
    scheme, _, rest = answer.url.partition("://")
    host, _, path = rest.partition("/")
    headers = [[name.encode(), value.encode()] for name, value in answer.all_headers]
    return {
        "version": 21,
        "type": "http",
        "error": {"msg": answer.failure, "timestamp": SENT + 1.5} if answer.failure else None,
        "request": {
            "method": b"POST",
            "scheme": scheme.encode(),
            "host": host,
            "port": 443,
            "path": b"/" + path.encode(),
            "headers": [[b"authorization", b"Bearer planted"]],
            "content": b"{}",
            "timestamp_start": SENT - 0.1,
            "timestamp_end": SENT,
        },
        "response": {
            "status_code": answer.status,
            "headers": headers,
            "content": answer.body,
            "timestamp_start": SENT + 0.5,
            "timestamp_end": SENT + 1.5,
            **response,
        },
    }


def mitmproxy(answer: Answer) -> bytes:
    return tnetstring(flow(answer))


def mitmproxy_of_old(answer: Answer) -> bytes:
    """Version 0.13: all keys and texts are bytes, and three have other names."""

    def old(value: Any) -> Any:
        if isinstance(value, dict):
            return {old(key): old(each) for key, each in value.items()}
        return value.encode() if isinstance(value, str) else value

    item = flow(answer)
    response = item["response"]
    response["code"], response["body"] = response.pop("status_code"), response.pop("content")
    return tnetstring(old({**item, "version": [0, 13]}))


# --- Cassettes


def interaction(answer: Answer, body: JSON) -> JSON:
    headers = {name: [value] for name, value in answer.all_headers}
    return {
        "request": {"method": "POST", "uri": answer.url, "body": "{}", "headers": {}},
        "response": {
            "status": {"code": answer.status, "message": "OK"},
            "headers": headers,
            "body": body,
        },
    }


def vcr_json(answer: Answer) -> bytes:
    whole = [interaction(answer, {"string": answer.data.decode()})]
    return json.dumps({"version": 1, "interactions": whole}).encode()


def vcr_yaml(answer: Answer) -> bytes:
    import yaml

    body = answer.body
    try:
        string: Any = body.decode()
    except UnicodeDecodeError:
        string = body
    whole = {"interactions": [interaction(answer, {"string": string})], "version": 1}
    return yaml.dump(whole).encode()


def ruby_yaml(answer: Answer) -> bytes:
    import yaml

    item = {
        **interaction(answer, {"encoding": "UTF-8", "string": answer.data.decode()}),
        "recorded_at": "Mon, 30 Nov 2026 12:00:00 GMT",
    }
    return b"---\n" + yaml.dump({"http_interactions": [item], "recorded_with": "VCR"}).encode()


def betamax(answer: Answer) -> bytes:
    text = base64.b64encode(answer.body).decode()
    item = interaction(answer, {"encoding": "utf-8", "base64_string": text})
    item["recorded_at"] = "2026-11-30T12:00:00"
    return json.dumps({"http_interactions": [item], "recorded_with": "betamax/0.9"}).encode()


# --- curl


def head_lines(answer: Answer) -> list[str]:
    return [
        f"HTTP/1.1 {answer.status} OK",
        *(f"{name}: {value}" for name, value in answer.all_headers),
        "",
    ]


def curl_i(answer: Answer) -> bytes:
    said = f"curl: {answer.failure}\n" if answer.failure else ""
    head = "".join(f"{line}\r\n" for line in head_lines(answer))
    return head.encode() + answer.body + said.encode()


METER = (
    b"  % Total    % Received % Xferd  Average Speed   Time    Time     Time  Current\n"
    b"                                 Dload  Upload   Total   Spent    Left  Speed\n"
)
PROGRESS = (
    b"\r  0     0    0     0    0     0      0      0 --:--:-- --:--:-- --:--:--     0",
    b"\r100   905    0   905    0     0   832k      0 --:--:--  0:00:01 --:--:--  993k",
)


def curl_meter(answer: Answer) -> bytes:
    """Without -s, with 2>&1: the meter is drawn before, amid and after the body."""
    middle = len(answer.data) // 2
    first, last = answer.data[:middle], answer.data[middle:]
    said = f"curl: {answer.failure}\n" if answer.failure else ""
    end = PROGRESS[1] + b"\n" + said.encode()
    return METER + PROGRESS[0] + first + PROGRESS[1] + last + end


def clock(t: float) -> str:
    """Noon and some seconds, as --trace-time has it."""
    return f"12:00:{t:09.6f}"


def curl_v(answer: Answer, timed: bool = True) -> bytes:
    path = answer.url.partition("//")[2].partition("/")[2]
    host = answer.url.partition("//")[2].partition("/")[0]
    lines = [
        (0.0, "* Connected to host (127.0.0.1) port 443 (#0)"),
        *((0.0, f"> {line}") for line in (f"POST /{path} HTTP/1.1", f"Host: {host}", "")),
        *((0.5, f"< {line}") for line in head_lines(answer)),
        (0.5, "{ [261 bytes data]"),
    ]
    end = [(1.5, f"* {answer.failure}")] if answer.failure else []
    end += [(1.5, "* Closing connection 0")]

    def said(items: list[tuple[float, str]]) -> bytes:
        return "".join(f"{clock(t)} {s}\r\n" if timed else f"{s}\r\n" for t, s in items).encode()

    return said(lines).replace(b"\r\n", b"\n") + answer.body + said(end).replace(b"\r\n", b"\n")


def chunked(answer: Answer) -> list[Chunk]:
    """Each chunk with its framing; the end marker comes with the last one."""
    framed = [Chunk(t, b"%x\r\n%b\r\n" % (len(data), data)) for t, data in answer.chunks]
    if framed and not answer.failure:
        framed[-1] = Chunk(framed[-1].t, framed[-1].data + b"0\r\n\r\n")
    return framed


def _dump(answer: Answer, show: Callable[[bytes], str]) -> bytes:
    request = b"POST /v1/messages HTTP/1.1\r\nHost: api.example.com\r\n\r\n"
    blocks = [(0.0, "=> Send header", request)]
    blocks += [(0.4, "<= Recv header", f"{line}\r\n".encode()) for line in head_lines(answer)]
    blocks += [(chunk.t or 0.0, "<= Recv data", chunk.data) for chunk in chunked(answer)]
    text = f"{clock(0.0)} == Info: Connected to host\n"
    for t, kind, data in blocks:
        text += f"{clock(t)} {kind}, {len(data)} bytes (0x{len(data):x})\n{show(data)}"
    end = blocks[-1][0]
    if answer.failure:
        text += f"{clock(end)} == Info: {answer.failure}\n"
    return (text + f"{clock(end)} == Info: Closing connection 0\n").encode()


def curl_trace(answer: Answer) -> bytes:
    def show(data: bytes) -> str:
        lines = ""
        for at in range(0, len(data), 16):
            row = data[at : at + 16]
            shown = "".join(chr(byte) if 32 <= byte < 127 else "." for byte in row)
            lines += f"{at:04x}: {''.join(f'{byte:02x} ' for byte in row):48}{shown}\n"
        return lines

    return _dump(answer, show)


def curl_trace_ascii(answer: Answer) -> bytes:
    """64 bytes a line; CR LF ends one and is not shown, all that is not ASCII is a dot."""

    def show(data: bytes) -> str:
        lines, at = "", 0
        while at < len(data):
            end = data.find(b"\r\n", at, at + 66)
            row = data[at : end if 0 <= end <= at + 64 else at + 64]
            shown = "".join(chr(byte) if 32 <= byte < 128 else "." for byte in row)
            lines += f"{at:04x}: {shown}\n"
            at += len(row) + 2 * (0 <= end <= at + 64)
        return lines

    return _dump(answer, show)


# --- Logs


def _sse_lines(answer: Answer) -> list[tuple[float, str]]:
    """The lines that an SDK would give to a log, each with its time."""
    return [
        (chunk.t or 0.0, line)
        for chunk in answer.chunks
        for line in chunk.data.decode().split("\n")
        if line.startswith(("data:", "event:"))
    ]


def text_log(answer: Answer) -> bytes:
    lines = ["2026-11-30 12:00:00,000 DEBUG Sending HTTP Request: POST https://api.example.com/"]
    lines += [
        f"2026-11-30 12:00:{t:06.3f}".replace(".", ",") + f" DEBUG [app.llm] {line}"
        for t, line in _sse_lines(answer)
    ]
    return "\n".join([*lines, "2026-11-30 12:00:59,000 INFO done", ""]).encode()


def json_log(answer: Answer) -> bytes:
    first = {"timestamp": SENT, "level": "debug", "message": "Sending HTTP Request: POST"}
    lines = [
        {"timestamp": round(SENT + t, 6), "level": "debug", "message": line}
        for t, line in _sse_lines(answer)
    ]
    return "\n".join(json.dumps(line) for line in [first, *lines]).encode() + b"\n"


def event_log(answer: Answer) -> bytes:
    """One event a line, in a wrapper with its time; the request's is 0."""
    lines = [
        {"t": t, "event": "chunk", "data": json.loads(line[6:]) if line[6] == "{" else line[6:]}
        for t, line in _sse_lines(answer)
        if line.startswith("data: ")
    ]
    return "\n".join(json.dumps(line) for line in lines).encode() + b"\n"


# --- What else a file or a body may be compressed with


def zstd(data: bytes) -> bytes:
    return zstandard.ZstdCompressor().compress(data)


def bare_deflate(data: bytes) -> bytes:
    packer = zlib.compressobj(wbits=-zlib.MAX_WBITS)
    return packer.compress(data) + packer.flush()


ENCODINGS: dict[str, Callable[[bytes], bytes]] = {
    "gzip": lambda data: gzip.compress(data, mtime=0),
    "deflate": zlib.compress,
    "deflate, bare": bare_deflate,
    "zstd": zstd,
}

#: Form -> what makes it.
MAKERS: dict[str, Callable[[Answer], bytes]] = {
    "har": har,
    "har, base64": har_base64,
    "mitmproxy": mitmproxy,
    "mitmproxy of old": mitmproxy_of_old,
    "vcr, YAML": vcr_yaml,
    "vcr, JSON": vcr_json,
    "vcr of Ruby": ruby_yaml,
    "betamax": betamax,
    "curl -i": curl_i,
    "curl -v": curl_v,
    "curl -v without times": lambda answer: curl_v(answer, timed=False),
    "curl with its meter": curl_meter,
    "curl --trace": curl_trace,
    "curl --trace-ascii": curl_trace_ascii,
    "text log": text_log,
    "JSON log": json_log,
    "event log": event_log,
}
