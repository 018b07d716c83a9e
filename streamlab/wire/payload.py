"""The JSON inside a frame: strict, and honest about what it is.

msgspec is fast and strict, but refuses a lone surrogate (`"\\ud83d"`), which real streams send when
they cut an emoji in two; the standard library reads those. Neither is allowed to take NaN,
Infinity or a number too large to hold: that is not JSON, and an input is never repaired.
"""

from __future__ import annotations

import json
from typing import Any, NoReturn

import msgspec

from .events import ProviderError
from .sse import Frame

__all__ = [
    "NotJSON",
    "as_json",
    "compact",
    "error_in",
    "is_utf8",
    "joined",
    "key_twice",
    "may_be_deep",
    "parse",
    "parse_input",
    "same_json",
]

_decode = msgspec.json.Decoder().decode

#: How deep a value may be nested: no tool's input needs more, and whatever walks a value after
#: this (a comparison, a schema, an encoder) would run out of stack at about a thousand.
MAX_DEPTH = 200

#: Bytes that say nothing of how deep a value is nested.
NO_MARKS = bytes(set(range(256)) - set(b'{}[]"\\'))

#: How often brackets are taken away from within, before the value itself is looked at.
ROUNDS = 4

#: What a value is nested in.
BOXES = frozenset({dict, list})

TOO_DEEP = f"nested more than {MAX_DEPTH} deep"


class NotJSON(ValueError):
    """The text is not one JSON value; the message says where it stops being one."""


def parse(data: bytes | str, halves: bool = True) -> Any:
    """Parse one JSON value strictly. Invalid UTF-8 becomes U+FFFD, as the event stream says.

    Half a character (a lone surrogate) is refused where `halves` is False: what is to be acted on
    must be fit to be written down. Raises `NotJSON`.
    """
    try:
        value = _loads(data, halves)
    except RecursionError:
        raise NotJSON(TOO_DEEP) from None
    if may_be_deep(data) and _too_deep(value):
        raise NotJSON(TOO_DEEP)
    return value


def may_be_deep(data: bytes | str) -> bool:
    """Whether a value in some JSON may be nested too deeply; much faster than to walk the value.

    Brackets alone tell, where no string holds any: then its two quotes are neighbours among them,
    and pairs of brackets can be taken away from within, each round a level or two.
    """
    if len(data) < 2 * MAX_DEPTH:  # each level needs two
        return False
    raw = data if isinstance(data, bytes) else data.encode("utf-8", "surrogatepass")
    marks = raw.translate(None, NO_MARKS).replace(b'""', b"")
    if b'"' in marks or b"\\" in marks:
        return marks.count(b"[") + marks.count(b"{") > MAX_DEPTH
    for gone in range(0, 2 * ROUNDS, 2):
        if len(marks) <= 2 * (MAX_DEPTH - gone):
            return False
        marks = marks.replace(b"{}", b"").replace(b"[]", b"")
    return True


def _loads(data: bytes | str, halves: bool) -> Any:
    try:
        return _decode(data)
    except (msgspec.MsgspecError, UnicodeEncodeError):  # the latter: half a character, in a str
        text = data.decode("utf-8", "replace") if isinstance(data, bytes) else data
    try:
        value = json.loads(text, parse_constant=_refuse, parse_float=_finite)
    except ValueError as why:
        raise NotJSON(str(why)) from None
    if not halves and any("\ud800" <= c <= "\udfff" for c in json.dumps(value, ensure_ascii=False)):
        raise NotJSON("half a character (a lone surrogate) in a string")
    return value


def parse_input(text: str) -> Any:
    """Parse what is to be acted on: fit to be written down, and one value to every reader.

    Raises `NotJSON`, also where a key occurs twice: readers differ in which one they take.
    """
    value = parse(text, halves=False)
    if twice := key_twice(text, value):
        raise NotJSON(twice)
    return value


def key_twice(data: bytes | str, value: Any = None) -> str:
    """Which key occurs twice in one object of some JSON, in words; "" where none does.

    `value` is what was parsed from the data, where that is at hand: a key that another one hides is
    missing where the value is written down again, with its colon. So equal numbers of colons prove
    that none is hidden, without parsing once more, far more slowly. An escape may be a colon.
    """
    raw = data if isinstance(data, bytes) else data.encode("utf-8", "surrogatepass")
    escaped = b"\\" in raw and b"\\u" in raw  # to look for one byte is far faster than for two
    if not escaped and raw.count(b":") == _written(value).count(b":"):
        return ""
    try:
        text = data.decode("utf-8", "replace") if isinstance(data, bytes) else data
        json.loads(text, object_pairs_hook=_once)
    except NotJSON as why:
        return str(why)
    return ""


def _once(pairs: list[tuple[str, Any]]) -> None:
    seen: set[str] = set()
    for key, _ in pairs:
        if key in seen:
            raise NotJSON(f"the key {key[:80]!r} occurs twice")
        seen.add(key)


def as_json(given: Any) -> str:
    """An input that came whole, as the JSON text that a stream would have brought."""
    return given if isinstance(given, str) else compact(given)


def compact(value: Any) -> str:
    """A value as JSON text without a space; half a character stays one."""
    return _written(value).decode("utf-8", "surrogatepass")


def _written(value: Any) -> bytes:
    try:
        return msgspec.json.encode(value)
    except (UnicodeEncodeError, RecursionError):
        text = json.dumps(value, ensure_ascii=False, separators=(",", ":"))
        return text.encode("utf-8", "surrogatepass")


def same_json(a: str, b: str) -> bool:
    """Whether two texts are the same JSON value; true is not 1, and 1.0 is not 1."""
    try:
        first, second = (json.dumps(parse(text), sort_keys=True) for text in (a, b))
    except NotJSON:
        return False
    return first == second


def is_utf8(data: bytes) -> bool:
    """Whether some bytes are text at all."""
    try:
        data.decode("utf-8")
    except UnicodeDecodeError:
        return False
    return True


def _too_deep(value: Any) -> bool:
    level = [value] if type(value) in BOXES else []
    for _ in range(MAX_DEPTH + 1):
        if not level:
            return False
        level = [
            item
            for box in level
            for item in (box.values() if type(box) is dict else box)
            if type(item) in BOXES
        ]
    return True


def joined(pieces: list[str]) -> str:
    """Join fragments of text; two halves of a character that was cut in two become one again."""
    text = "".join(pieces)
    if text.isascii() or not any("\ud800" <= c <= "\udfff" for c in text):
        return text
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "surrogatepass")


#: What vendors call the message of an error, and its code.
MESSAGES = ("message", "detail", "msg", "error_msg", "error_message", "errmsg", "status_msg")
CODES = ("type", "code", "status", "error_code", "errcode", "status_code", "statusCode", "__type")

#: Words for a status that is an error; any other may be one of work that goes on.
NO = ("error", "failed", "failure", "fail", "ERROR", "FAILED")

#: Codes that say that nothing is wrong.
FINE = (None, "", 0, 200, "0", "200", "ok", "OK", "success", "Success")

#: Fields of an answer's own payloads: beside one of these, a message and a code are no error.
ANSWER = frozenset(
    {
        *("type", "choices", "candidates", "delta", "usage", "usageMetadata", "output"),
        *("response", "content", "event_type", "object"),
    }
)


def error_in(payload: Any, frame: Frame) -> ProviderError | None:
    """The provider's error in a payload, whatever its shape: named, unnamed, flat or nested."""
    if not isinstance(payload, dict):
        text = frame.text.strip()[:2000] or "no message"
        return ProviderError("error", text, frame.number) if frame.event == "error" else None
    nested, name = payload.get("error"), payload.get("type")
    flat = isinstance(name, str) and (name == "error" or name.endswith("_error"))
    nested = nested or _beside(payload)
    if not (nested or flat or frame.event == "error" or _is_bare(payload)):
        return None
    source = nested if isinstance(nested, dict) else payload
    kind = next((source[key] for key in CODES if source.get(key) not in (*FINE, "error")), "error")
    message = next((source[key] for key in MESSAGES if source.get(key) is not None), None)
    if message is None:
        message = nested if isinstance(nested, str) else frame.text
    return ProviderError(str(kind)[:200], str(message)[:2000], frame.number)


def _beside(payload: dict[str, Any]) -> Any:
    """An error that has its own place under another name: a list, or a status that says no."""
    listed, status = payload.get("errors"), payload.get("base_resp")
    if isinstance(status, dict) and status.get("status_code") not in FINE:
        return status
    return listed[0] if isinstance(listed, list) and listed else None


def _is_bare(payload: dict[str, Any]) -> bool:
    """Whether a payload is nothing but an error, though no name in it says so."""
    if payload.get("object") == "error":
        return True
    if not ANSWER.isdisjoint(payload):
        return False
    if payload.keys() == {"detail"}:
        return bool(payload["detail"])
    told = any(payload.get(name) and isinstance(payload[name], str) for name in MESSAGES)
    return told and any(_says_no(name, payload.get(name)) for name in CODES)


def _says_no(name: str, code: Any) -> bool:
    """Whether a code is one of an error; a status may also be one of work that goes on."""
    if name != "status":
        return code not in FINE
    return code >= 400 if isinstance(code, int) else code in NO


def _refuse(word: str) -> NoReturn:
    raise ValueError(f"{word} is not JSON")


def _finite(text: str) -> float:
    value = float(text)
    if value in (float("inf"), float("-inf")):
        raise ValueError(f"the number {text[:40]} is too large")
    return value
