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

__all__ = ["NotJSON", "error_in", "joined", "parse"]

_decode = msgspec.json.Decoder().decode


class NotJSON(ValueError):
    """The text is not one JSON value; the message says where it stops being one."""


def parse(data: bytes | str) -> Any:
    """Parse one JSON value strictly. Invalid UTF-8 becomes U+FFFD, as the event stream says.

    Raises `NotJSON`.
    """
    try:
        return _decode(data)
    except RecursionError:
        raise NotJSON("nested too deeply") from None
    except msgspec.MsgspecError:
        text = data.decode("utf-8", "replace") if isinstance(data, bytes) else data
    try:
        return json.loads(text, parse_constant=_refuse, parse_float=_finite)
    except RecursionError:
        raise NotJSON("nested too deeply") from None
    except ValueError as why:
        raise NotJSON(str(why)) from None


def joined(pieces: list[str]) -> str:
    """Join fragments of text; two halves of a character that was cut in two become one again."""
    text = "".join(pieces)
    if text.isascii() or not any("\ud800" <= c <= "\udfff" for c in text):
        return text
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "surrogatepass")


def error_in(payload: dict[str, Any], frame: Frame) -> ProviderError | None:
    """The provider's error in a payload, whatever its shape: named, unnamed, flat or nested."""
    nested, name = payload.get("error"), payload.get("type")
    flat = isinstance(name, str) and (name == "error" or name.endswith("_error"))
    if not (nested or flat or frame.event == "error"):
        return None
    source = nested if isinstance(nested, dict) else payload
    kind = source.get("type") or source.get("code") or source.get("status") or "error"
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
