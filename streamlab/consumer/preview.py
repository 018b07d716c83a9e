"""The preview of a tool's input: what a card may *show* while the JSON is still coming.

    {"invoice": "INV-17", "amount": 1        ->   invoice: "INV-17"    amount: 1…

A prefix of JSON can be broken, can lack fields, or can mean something else: a 1 that becomes a
100000. So what comes out of here is text, exactly as it was written, and never a value: nothing is
decoded or completed, and a field that may still grow ends in an ellipsis, on which `int` and
`json.loads` fail. The one place that makes a value of an input is its block's stop, in `turn.py`.

It looks, it does not parse: `whole` says that a value's end was seen, not that the value is right.
What is no JSON ends the preview, and raises nothing. It is strangers' text: a page escapes it.

Read next: `turn.py`, where the same text is parsed, once.
"""

from __future__ import annotations

import re

import msgspec

__all__ = ["ELLIPSIS", "MAX_FIELDS", "MAX_NAME", "MAX_SHOWN", "MAX_TEXT", "Field", "preview"]

ELLIPSIS = "…"

#: A card is looked at. More fields, longer names and longer values than these are not shown, and
#: what stands behind so much text is not even looked for.
MAX_FIELDS, MAX_NAME, MAX_SHOWN, MAX_TEXT = 50, 80, 200, 100_000

SPACE = re.compile(r"[ \t\r\n]*+")
#: A string up to its end, or as far as it goes. The group is its last quote, "" while it is open.
STRING = re.compile(r'"(?:[^"\\]++|\\.)*+("?)', re.DOTALL)
#: A number, or one of three words; `PLAIN` is what they are made of, finished or not.
PLAIN = re.compile(r"[-+.0-9A-Za-z]*+")
WHOLE_PLAIN = re.compile(r"-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][-+]?[0-9]+)?|true|false|null")
NEXT_INSIDE = re.compile(r'["{}\[\]]')
CLOSING = {"{": "}", "[": "]"}


class Field(msgspec.Struct, frozen=True):
    """One field of an input that is still coming, as text for display."""

    name: str  #: as it was written, between its quotes
    shown: str  #: its JSON text; an ellipsis at its end where more may come, or was left out
    whole: bool  #: whether the end of the value was seen; the input may still fail

    def __str__(self) -> str:
        return f"{self.name}: {self.shown}"


def preview(text: str) -> tuple[Field, ...]:
    """The fields of an unfinished JSON object, for a person to look at.

    >>> print(*preview('{"invoice": "INV-17", "amount": 1'), sep=", ")
    invoice: "INV-17", amount: 1…
    """
    text = text[:MAX_TEXT]
    fields: list[Field] = []
    at = _after(text, 0, "{")
    while at >= 0 and len(fields) < MAX_FIELDS:
        name = STRING.match(text, _skip(text, at))
        start = _after(text, name.end(), ":") if name else -1
        if name is None or start < 0:
            break
        start = _skip(text, start)
        end, whole = _value(text, start)
        fields.append(_field(name[0][1:-1], text[start:end], whole))
        at = _after(text, end, ",") if whole else -1
    return tuple(fields)


def _field(name: str, raw: str, whole: bool) -> Field:
    name = name if len(name) <= MAX_NAME else name[:MAX_NAME] + ELLIPSIS
    shown = raw if whole and len(raw) <= MAX_SHOWN else raw[:MAX_SHOWN] + ELLIPSIS
    return Field(name, shown, whole)


def _skip(text: str, at: int) -> int:
    """The place after white space."""
    return _end(SPACE, text, at)


def _end(pattern: re.Pattern[str], text: str, at: int) -> int:
    found = pattern.match(text, at)
    return found.end() if found else at


def _after(text: str, at: int, sign: str) -> int:
    """The place after white space and one sign; -1 where something else stands, or nothing yet."""
    at = _skip(text, at)
    return at + 1 if text.startswith(sign, at) else -1


def _value(text: str, at: int) -> tuple[int, bool]:
    """Where a value ends, and whether that is its end, or only the end of what came."""
    first = text[at : at + 1]
    if first == '"':
        return _string(text, at)
    if first in CLOSING:
        return _nested(text, at)
    end = _end(PLAIN, text, at)
    # At the end of the text no number is whole: its next digit may be on its way.
    return end, end < len(text) and WHOLE_PLAIN.fullmatch(text, at, end) is not None


def _string(text: str, at: int) -> tuple[int, bool]:
    found = STRING.match(text, at)
    return (found.end(), bool(found[1])) if found else (at, False)


def _nested(text: str, at: int) -> tuple[int, bool]:
    """An object or a list, by its brackets; those inside a string are none."""
    expected: list[str] = []
    while found := NEXT_INSIDE.search(text, at):
        sign, at = found[0], found.end()
        if sign == '"':
            at, _ = _string(text, found.start())  # an open one goes on to the end
        elif sign in CLOSING:
            expected.append(CLOSING[sign])
        elif sign != expected.pop():
            return found.start(), False
        if not expected:
            return at, True
    return len(text), False
