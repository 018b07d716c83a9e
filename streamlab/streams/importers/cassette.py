"""VCR cassettes: what vcrpy (Python), VCR (Ruby) and betamax record, in YAML or in JSON.

    version: 1                                    http_interactions:
    interactions:                                 - recorded_at: ...
    - request: {method, uri, ...}                   request: {method, uri, ...}
      response: {status: {code}, headers,           response: {status: {code}, headers,
                 body: {string}}                               body: {string | base64_string}}

A body is a text, bytes (`!!binary`), base64 under `base64_string`, or base64 beside an `encoding`
that says so; it may still be compressed as it came. A cassette knows no times within an answer, and
says how no answer ended: a body that came short is only seen from its Content-Length.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from email.utils import parsedate_to_datetime
from typing import Any

from streamlab.streams.importers.exchange import Exchange
from streamlab.streams.importers.loose import (
    MEMBERS,
    at,
    from_base64,
    header_pairs,
    items,
    json_of,
    moment,
    number,
    several,
    text,
)
from streamlab.streams.importers.yaml_values import values
from streamlab.streams.recording import Chunk

__all__ = ["looks", "read"]

_JSON = re.compile(MEMBERS + rb'"(?:http_)?interactions"\s*:\s*\[')

#: In YAML: a key, maybe after comments; and somewhere the list.
_YAML_FIRST = re.compile(
    rb"(?:\xef\xbb\xbf)?(?:\s|#[^\n]*\n|%YAML[^\n]*\n|---[^\n]*\n)*[\w-]{1,80}:"
)
_YAML = re.compile(
    rb"^(?:http_)?interactions:[ \t]*(?:&\w+)?[ \t]*(?:\[|\r?\n(?:\s|#[^\n]*\n)*-\s)", re.M
)


def looks(head: bytes) -> bool:
    """Whether a file that begins so is a cassette."""
    if _JSON.match(head):
        return not several(head)
    if b"interactions:" not in head or not _YAML_FIRST.match(head):
        return False
    return _YAML.search(head.removeprefix(b"\xef\xbb\xbf")) is not None


def read(data: bytes, name: str) -> Iterator[Exchange]:
    """The interactions of a cassette."""
    data = data.removeprefix(b"\xef\xbb\xbf")
    if data.lstrip()[:1] == b"{":
        documents = iter([json_of(data, "a cassette", name)])
    else:
        documents = values(data, name)
    number_ = 0
    for document in documents:
        for key in ("interactions", "http_interactions"):
            for interaction in items(at(document, key)):
                number_ += 1
                yield _exchange(interaction, f"interaction {number_}")


def _exchange(interaction: Any, where: str) -> Exchange:
    request, response = at(interaction, "request"), at(interaction, "response")
    named = (at(response, "status", "code"), at(response, "status_code"), at(response, "code"))
    status = next((code for code in map(number, named) if code), None)
    body, note = _body(response)
    return Exchange(
        where,
        text(at(request, "method")).upper(),
        text(at(request, "uri")) or text(at(request, "url")) or text(at(response, "url")),
        _date(at(interaction, "recorded_at")),
        int(status) if status and 100 <= status < 1000 else None,
        header_pairs(at(response, "headers")),
        None if body is None else (Chunk(None, body),) if body else (),
        note=note,
    )


def _date(value: Any) -> float | None:
    """VCR of Ruby writes the date as HTTP does; it is when the answer was recorded."""
    found = moment(value)
    if found is None and isinstance(value, str):
        try:
            return parsedate_to_datetime(value).timestamp()
        except (ValueError, TypeError, IndexError, OverflowError):
            return None
    return found


def _body(response: Any) -> tuple[bytes | None, str]:
    """The bytes of a body (None: not kept), and a note."""
    body = at(response, "body")
    if body is None:
        body = at(response, "content")  # vcrpy before 6, of httpx
    if not isinstance(body, dict):
        return _bytes(body), ""
    if (coded := at(body, "base64_string")) is not None:
        found = from_base64(text(coded))
        return found, "" if found is not None else "base64_string is not base64"
    string = at(body, "string")
    if text(at(body, "encoding")).lower() == "base64":
        found = from_base64(text(string))
        if found is not None:
            return found, ""
    return _bytes(string), ""


def _bytes(value: Any) -> bytes | None:
    if value is None:
        return b""
    if isinstance(value, bytes):
        return value
    return value.encode("utf-8", "surrogatepass") if isinstance(value, str) else None
