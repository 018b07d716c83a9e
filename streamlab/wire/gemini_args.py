"""Arguments that stream by path (Vertex), put together into the one object that they mean.

    {"jsonPath": "$.rooms[0].name", "stringValue": "At", "willContinue": true}
    {"jsonPath": "$.rooms[0].name", "stringValue": "las"}       ->  {"rooms": [{"name": "Atlas"}]}

Strings at one path append while they will continue. A piece carries no number, so a lost one shows
only where it leaves a hole: an element without the one before it, a value that is there already, a
string that never ended or that is nothing but its end. All these are `NotJSON`, and so is what is
not understood; nothing is guessed. An index never makes room for more than the next element, so
no path can exhaust memory.

Source: the types of the vendor's Python SDK 3.6 (`PartialArg`).
"""

from __future__ import annotations

import json
import re
from itertools import pairwise
from typing import Any

from .payload import NotJSON, compact, joined

__all__ = ["MAX_STEPS", "MAX_VALUES", "Arguments", "steps"]

#: How deep a path may lead, and how many values and containers one call may have.
MAX_STEPS, MAX_VALUES = 64, 100_000

#: `.name`, `[0]`, `['name']` or `["name"]`.
_STEP = re.compile(
    r"\.([^.\[\]]+)|\[([0-9]{1,9})\]|\['((?:[^'\\]|\\.)*)'\]|\[\"((?:[^\"\\]|\\.)*)\"\]"
)

#: Field of a piece -> the types that its value may have (true is no number).
KINDS: dict[str, tuple[type, ...]] = {
    "stringValue": (str,),
    "numberValue": (int, float),
    "boolValue": (bool,),
    "nullValue": (str, type(None)),
}


class _Text:
    """A string that is being put together."""

    def __init__(self) -> None:
        self.pieces: list[str] = []
        self.open = True


class Arguments:
    """The arguments of one call, as far as they have come.

    >>> found = Arguments()
    >>> found.add({"jsonPath": "$.rooms[0]", "stringValue": "Atlas"})
    >>> found.text()
    '{"rooms":["Atlas"]}'
    """

    def __init__(self) -> None:
        self._root: dict[str, Any] = {}
        self._values = 0
        self._open = 0  # strings that will continue
        self._last: tuple[str, Any] = ("", None)
        self.twice = False  #: whether a piece of text came twice in a row: one that was sent again?

    def add(self, piece: Any) -> None:
        """Take one piece. Raises `NotJSON`."""
        path, value, more = _read(piece)
        last, self._last = self._last, (path, value)
        self.twice = self.twice or bool(value and more and last == self._last)
        places = steps(path)
        box: Any = self._root
        for step, after in pairwise(places):
            box = self._inside(box, step, [] if isinstance(after, int) else {}, path)
        text = isinstance(value, str)
        found = self._inside(box, places[-1], _Text() if text else value, path, leaf=True)
        if text:
            self._append(found, value, more, path)

    def whole(self) -> None:
        """Raise `NotJSON` where a string has not ended."""
        if self._open:
            raise NotJSON(f"{self._open} of its strings never ended")

    def text(self) -> str:
        """What has come so far, as JSON."""
        return compact(_plain(self._root))

    def _inside(self, into: Any, step: str | int, new: Any, path: str, leaf: bool = False) -> Any:
        """The value at one step into a container: `new` where there is none yet."""
        box: Any = into  # a list for an index, a dict for a name
        if not isinstance(into, list if isinstance(step, int) else dict):
            raise NotJSON(f"{path!r:.200} leads into a value of another kind")
        there = step < len(box) if isinstance(step, int) else step in box
        if there:
            old = box[step]
            if type(old) is not type(new) or (leaf and not isinstance(old, _Text)):
                raise NotJSON(f"{path!r:.200} has a value already")
            return old
        if isinstance(step, int) and step > len(box):
            raise NotJSON(f"{path!r:.200}: element {len(box)} has not come; it may be lost")
        self._values += 1
        if self._values > MAX_VALUES:
            raise NotJSON(f"more than {MAX_VALUES} values in one call")
        if isinstance(step, int):
            box.append(new)
        else:
            box[step] = new
        return new

    def _append(self, text: _Text, value: str, more: bool, path: str) -> None:
        if not text.open:
            raise NotJSON(f"{path!r:.200} goes on after its end")
        if not text.pieces:
            if not (value or more):
                raise NotJSON(f"{path!r:.200} is an end alone: its beginning may be lost")
            self._open += 1
        text.pieces.append(value)
        text.open = more
        self._open -= not more


def steps(path: str) -> list[str | int]:
    """The names and indexes that a path leads through. Raises `NotJSON`.

    >>> steps("$.rooms[0]['first name']")
    ['rooms', 0, 'first name']
    """
    found: list[str | int] = []
    at = 1
    while path.startswith("$") and at < len(path) and len(found) < MAX_STEPS:
        step = _STEP.match(path, at)
        if step is None:
            break
        at = step.end()
        name, index, single, double = step.groups()
        if index is not None:
            found.append(int(index))
        elif name is not None:
            found.append(name)
        else:
            found.append(_unquoted(single, double, path))
    if not found or at != len(path):
        limit = f" (of at most {MAX_STEPS} steps)" if len(found) == MAX_STEPS else ""
        raise NotJSON(f"{path!r:.200} is no path to a value{limit}")
    return found


def _unquoted(single: str | None, double: str, path: str) -> str:
    if single is not None:
        double = single.replace("\\'", "'").replace('"', '\\"')
    try:
        return str(json.loads(f'"{double}"', strict=False))
    except ValueError:
        raise NotJSON(f"{path!r:.200} has a name that is not understood") from None


def _read(piece: Any) -> tuple[str, Any, bool]:
    """A piece's path, its value, and whether more of it will come."""
    if not isinstance(piece, dict) or not isinstance(piece.get("jsonPath"), str):
        raise NotJSON("a piece of the arguments without its path")
    path = piece["jsonPath"]
    if strange := piece.keys() - KINDS.keys() - {"jsonPath", "willContinue"}:
        raise NotJSON(f"{path!r:.200} comes with {min(strange)[:80]!r}, not understood")
    kinds = [kind for kind in KINDS if kind in piece]
    if len(kinds) != 1:
        raise NotJSON(f"{path!r:.200} comes with {len(kinds)} values, not one")
    kind, value, more = kinds[0], piece[kinds[0]], piece.get("willContinue") is True
    fits = isinstance(value, KINDS[kind]) and (kind == "boolValue" or not isinstance(value, bool))
    if not fits or (more and kind != "stringValue"):
        raise NotJSON(f"{path!r:.200}: a {kind} that is none")
    return path, None if kind == "nullValue" else value, more


def _plain(node: Any) -> Any:
    if isinstance(node, _Text):
        return joined(node.pieces)
    if isinstance(node, dict):
        return {name: _plain(inner) for name, inner in node.items()}
    return [_plain(inner) for inner in node] if isinstance(node, list) else node
