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
    "error_in",
    "is_utf8",
    "joined",
    "key_twice",
    "parse",
    "parse_input",
    "same_json",
]

_decode = msgspec.json.Decoder().decode

#: How deep a value may be nested: no tool's input needs more, and whatever walks a value after
#: this (a comparison, a schema, an encoder) would run out of stack at about a thousand.
MAX_DEPTH = 200

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
    brackets = (b"{", b"[") if isinstance(data, bytes) else ("{", "[")
    if sum(map(data.count, brackets)) > MAX_DEPTH and _too_deep(value):  # type: ignore[arg-type]
        raise NotJSON(TOO_DEEP)
    return value


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
    if twice := key_twice(text):
        raise NotJSON(twice)
    return value


def key_twice(data: bytes | str) -> str:
    """Which key occurs twice in one object of some JSON, in words; "" where none does."""
    try:
        json.loads(data, object_pairs_hook=_once)
    except NotJSON as why:
        return str(why)
    return ""


def _once(pairs: list[tuple[str, Any]]) -> None:
    seen: set[str] = set()
    for key, _ in pairs:
        if key in seen:
            raise NotJSON(f"the key {key[:80]!r} occurs twice")
        seen.add(key)


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
    level = [value]
    for _ in range(MAX_DEPTH + 1):
        boxes = [box for box in level if type(box) is dict or type(box) is list]
        if not boxes:
            return False
        level = [item for box in boxes for item in (box.values() if type(box) is dict else box)]
    return True


def joined(pieces: list[str]) -> str:
    """Join fragments of text; two halves of a character that was cut in two become one again."""
    text = "".join(pieces)
    if text.isascii() or not any("\ud800" <= c <= "\udfff" for c in text):
        return text
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "surrogatepass")


def error_in(payload: Any, frame: Frame) -> ProviderError | None:
    """The provider's error in a payload, whatever its shape: named, unnamed, flat or nested."""
    if not isinstance(payload, dict):
        text = frame.text.strip()[:2000] or "no message"
        return ProviderError("error", text, frame.number) if frame.event == "error" else None
    nested, name = payload.get("error"), payload.get("type")
    flat = isinstance(name, str) and (name == "error" or name.endswith("_error"))
    if not (nested or flat or frame.event == "error"):
        return None
    source = nested if isinstance(nested, dict) else payload
    said = (source.get(key) for key in ("type", "code", "status"))
    kind = next((word for word in said if word and word != "error"), "error")
    message = source.get("message")
    if message is None:
        message = nested if isinstance(nested, str) else frame.text
    return ProviderError(str(kind)[:200], str(message)[:2000], frame.number)


def _refuse(word: str) -> NoReturn:
    raise ValueError(f"{word} is not JSON")


def _finite(text: str) -> float:
    value = float(text)
    if value in (float("inf"), float("-inf")):
        raise ValueError(f"the number {text[:40]} is too large")
    return value
