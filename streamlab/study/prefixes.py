"""What each prefix of a tool's JSON would have meant, had somebody read it there.

`prefixes(pieces, required)` reads every prefix in two ways: strictly, as streamlab does at a
block's stop, and leniently, as the official SDK does after each fragment (the `jiter` parser in its
partial mode). A prefix is *broken*, or it *lacks fields*, or it is *another value*: a valid one,
and not the one that was meant. Only the end has *the value* for certain.

A lenient reading is for looking at, in a lesson. Nothing in streamlab acts on one.
Read next: `consumer/preview.py`, which shows an unfinished input and makes no value of it.
"""

from __future__ import annotations

import html as markup
import json
from collections.abc import Iterable, Iterator, Sequence
from itertools import accumulate, groupby
from typing import Any, Literal

import msgspec

from streamlab.errors import UsageError
from streamlab.wire.payload import NotJSON, parse_input

__all__ = ["Prefix", "Prefixes", "lenient", "prefixes", "strict"]

Object = dict[str, Any]
Verdict = Literal["broken", "lacks fields", "another value", "the value"]

#: Characters of a text that is read again after each piece; what a lesson shows is far shorter.
MOST = 4_000

#: Characters of what was added, and of a value, that a table shows.
ADDED, VALUE = 20, 64

HEAD = ("length", "added last", "strict", "lenient", "the value it reads")
SEEN = ("another value", "the value")


def strict(text: str) -> Object | None:
    """The text as streamlab reads it, at the stop of its block; None where it is no JSON object."""
    try:
        value = parse_input(text) if text.strip() else {}
    except NotJSON:
        return None
    return value if isinstance(value, dict) else None


def lenient(text: str) -> Object | None:
    """The text as the official SDK reads it, after any fragment; None where the SDK would raise."""
    from jiter import from_json  # here: it comes with the SDK, and no browser's Python has it

    if not text:
        return {}  # it does not parse an empty input, and keeps the one from the block's start
    try:
        value = from_json(text.encode(), partial_mode=True)
    except ValueError:  # half a character too
        return None
    return value if isinstance(value, dict) else None


class Prefix(msgspec.Struct, frozen=True):
    """The first pieces of an input, and what they would have meant."""

    text: str
    added: str  #: its last piece
    strict: Object | None
    lenient: Object | None
    verdict: Verdict

    @property
    def looks_valid(self) -> bool:
        """Whether a program that checks for its fields would go ahead."""
        return self.verdict in SEEN


class Prefixes(msgspec.Struct, frozen=True):
    """Every prefix of an input, the whole last. Prints as a table of what changed, and where."""

    rows: tuple[Prefix, ...]

    @property
    def meanings(self) -> tuple[Object, ...]:
        """The different values that looked valid on the way, in order; at most one was meant."""
        found = {_written(row.lenient): row.lenient for row in self.rows if row.looks_valid}
        return tuple(value for value in found.values() if value is not None)

    def __repr__(self) -> str:
        rows = [HEAD, *_table(self.rows)]
        widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
        lines = ["  ".join(map(str.ljust, row, widths)).rstrip() for row in rows]
        return "\n".join([*lines, _count(self)])

    def _repr_html_(self) -> str:
        def row(cells: Sequence[str], tag: str) -> str:
            style = 'style="text-align: left"'
            found = (f"<{tag} {style}>{markup.escape(cell)}</{tag}>" for cell in cells)
            return f"<tr>{''.join(found)}</tr>"

        body = "".join(row(cells, "td") for cells in _table(self.rows))
        return f"<table>{row(HEAD, 'th')}{body}</table><p>{markup.escape(_count(self))}</p>"


def prefixes(pieces: Iterable[str], required: Sequence[str] | None = None) -> Prefixes:
    """Read every prefix of an input that comes in `pieces`; of a text, character by character.

    `required` are the fields without which nobody would act; all of the whole's own, unless given.
    """
    pieces = tuple(pieces)
    whole = "".join(pieces)
    if len(whole) > MOST:  # before the prefixes are made: together they are far longer
        raise UsageError(f"{len(whole)} characters: a table of prefixes is for at most {MOST}")
    meant = strict(whole)
    needs = required if required is not None else tuple(meant or ())
    rows = (
        _prefix(text, piece, meant, needs)
        for text, piece in zip(accumulate(pieces), pieces, strict=True)
    )
    return Prefixes(tuple(rows))


def _prefix(text: str, added: str, meant: Object | None, needs: Sequence[str]) -> Prefix:
    read, loosely = strict(text), lenient(text)
    return Prefix(text, added, read, loosely, _verdict(loosely, meant, needs))


def _verdict(value: Object | None, meant: Object | None, needs: Sequence[str]) -> Verdict:
    if value is None:
        return "broken"
    if not set(needs) <= value.keys():
        return "lacks fields"
    same = meant is not None and _written(value) == _written(meant)
    return "the value" if same else "another value"


def _written(value: Any) -> str:
    """A value as text, so that true is not 1, nor 1.0."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


# --- The table ------------------------------------------------------------------------------------


def _table(rows: Sequence[Prefix]) -> Iterator[tuple[str, ...]]:
    """One line for each stretch of prefixes that mean the same."""

    def reading(row: Prefix) -> tuple[str, str, str]:
        return (
            "refused" if row.strict is None else "a value",
            row.verdict,
            "" if row.lenient is None else _clip(_written(row.lenient), VALUE),
        )

    for read, group in groupby(rows, reading):
        alike = list(group)
        first, last = len(alike[0].text), len(alike[-1].text)
        added = "".join(row.added for row in alike)
        shown = added if len(added) <= ADDED else "…" + added[-ADDED:]
        yield (str(first) if first == last else f"{first}-{last}", repr(shown)[1:-1], *read)


def _clip(text: str, most: int) -> str:
    return text if len(text) <= most else text[:most] + "…"


def _count(table: Prefixes) -> str:
    seen = table.meanings
    if not table.rows:
        return "nothing came"
    meant = any(row.verdict == "the value" for row in table.rows)
    others = len(seen) - meant
    return f"{others} other valid-looking value{'' if others == 1 else 's'} before the end"
