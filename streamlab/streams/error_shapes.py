"""How each provider words a failure: as an HTTP error, and as an event after HTTP 200.

Four wire formats, two tables. The words are ours; the shapes are the providers' own, so a client
finds what it looks for. Which path belongs to which format is here too (`wire_of`).

Read next: `answer.py`, which answers in these shapes.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from http import HTTPStatus
from typing import Any

import msgspec

__all__ = ["PATHS", "error_body", "error_frame", "model_in", "wire_of"]

#: The wire format of each path that takes a request for a stream; `M` stands for a model's name.
PATHS = {
    "/v1/messages": "claude",
    "/v1/chat/completions": "openai-chat",
    "/v1/responses": "openai-responses",
    "/v1/models/M:streamGenerateContent": "gemini",
    "/v1beta/models/M:streamGenerateContent": "gemini",
}

#: Where the model's name stands in a path.
_MODEL = re.compile(r"(/v1(?:beta)?/models/)(.+)(:streamGenerateContent)")

#: HTTP status -> the error's type, as Claude and OpenAI name it; and the status word of Google.
CLAUDE_TYPES = {
    400: "invalid_request_error",
    401: "authentication_error",
    402: "billing_error",
    403: "permission_error",
    404: "not_found_error",
    409: "conflict_error",
    413: "request_too_large",
    429: "rate_limit_error",
    504: "timeout_error",
    529: "overloaded_error",
}
OPENAI_TYPES = {401: "authentication_error", 403: "permission_error", 429: "rate_limit_exceeded"}
GOOGLE_WORDS = {
    400: "INVALID_ARGUMENT",
    401: "UNAUTHENTICATED",
    403: "PERMISSION_DENIED",
    404: "NOT_FOUND",
    409: "ABORTED",
    429: "RESOURCE_EXHAUSTED",
    500: "INTERNAL",
    503: "UNAVAILABLE",
    504: "DEADLINE_EXCEEDED",
}


def model_in(path: str) -> str:
    """The model that a path names, where it does; else ""."""
    found = _MODEL.fullmatch(path)
    return found[2] if found else ""


def wire_of(path: str) -> str:
    """The wire format that a path is answered in; "" where there is none."""
    return PATHS.get(_MODEL.sub(r"\1M\3", path), "")


def _claude(status: int, message: str, kind: str) -> dict[str, Any]:
    fallback = "api_error" if status >= 500 else "invalid_request_error"
    type_ = kind or CLAUDE_TYPES.get(status, fallback)
    return {"type": "error", "error": {"type": type_, "message": message}}


def _openai(status: int, message: str, kind: str) -> dict[str, Any]:
    fallback = "server_error" if status >= 500 else "invalid_request_error"
    type_ = kind or OPENAI_TYPES.get(status, fallback)
    return {"error": {"message": message, "type": type_, "param": None, "code": None}}


def _google(status: int, message: str, kind: str) -> dict[str, Any]:
    fallback = "UNAVAILABLE" if status >= 500 else "INVALID_ARGUMENT"
    word = GOOGLE_WORDS.get(status, fallback)
    return {"error": {"code": status, "message": message, "status": word}}


_BODIES: dict[str, Callable[[int, str, str], dict[str, Any]]] = {
    "claude": _claude,
    "openai-chat": _openai,
    "openai-responses": _openai,
    "gemini": _google,
}


def error_body(wire: str, status: int, message: str) -> bytes:
    """The JSON body of an HTTP error; Claude's, where the wire format is not known."""
    return msgspec.json.encode(_BODIES.get(wire, _claude)(status, message, ""))


def error_frame(wire: str, kind: str) -> bytes:
    """An error event after HTTP 200. `kind` is a type such as "overloaded_error"."""
    message = kind.removesuffix("_error").replace("_", " ").capitalize()
    status = next((code for code, known in CLAUDE_TYPES.items() if known == kind), 500)
    if status == 529 and wire == "gemini":
        status = HTTPStatus.SERVICE_UNAVAILABLE.value  # Google has no 529
    payload = _BODIES.get(wire, _claude)(status, message, kind)
    if wire == "openai-responses":
        payload = {"type": "error", "sequence_number": 0, **payload}
    named = b"" if wire in ("openai-chat", "gemini") else b"event: error\n"
    return named + b"data: " + msgspec.json.encode(payload) + b"\n\n"
