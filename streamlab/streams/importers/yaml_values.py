"""YAML from strangers: texts, bytes, lists and mappings, built from the parser's events, bounded.

A cassette needs no more of YAML than that. No tag builds an object, no `<<` merges, and an alias is
the same value again, never a copy: what would make a small file large, or run code, is not there.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from streamlab.errors import WireError
from streamlab.streams.importers.loose import from_base64

__all__ = ["values"]

#: How deep values may be nested, how many there may be, and how long the whole may be.
MAX_DEPTH, MAX_EVENTS, MAX_BYTES = 60, 5_000_000, 128 * 1024 * 1024

_NULLS = ("", "~", "null", "Null", "NULL")


def values(data: bytes, name: str) -> Iterator[Any]:
    """The documents of a YAML file. A plain scalar stays a text, except for null.

    Raises `WireError`, naming the file and the line.
    """
    import yaml  # a cassette is rare

    if len(data) > MAX_BYTES:
        raise WireError(f"more than {MAX_BYTES:,} bytes of YAML", name)
    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    try:
        yield from _documents(yaml.parse(data, Loader=loader), name)
    except yaml.YAMLError as why:
        mark = getattr(why, "problem_mark", None)
        said = getattr(why, "problem", None) or str(why).partition("\n")[0]
        where = f"{name}:{mark.line + 1}" if mark else name
        raise WireError(f"not YAML: {said}", where) from None


def _documents(events: Iterator[Any], name: str) -> Iterator[Any]:
    anchors: dict[str, Any] = {}
    open_: list[Any] = []  # lists; a mapping is one of its keys and values in turn, until it ends
    kinds: list[Any] = []
    document: list[Any] = []
    for number, event in enumerate(events):
        kind = type(event).__name__
        if number > MAX_EVENTS or len(open_) > MAX_DEPTH:
            what = (
                "too many values" if number > MAX_EVENTS else f"nested more than {MAX_DEPTH} deep"
            )
            raise WireError(f"{what} for a cassette", f"{name}:{event.start_mark.line + 1}")
        if kind in ("SequenceStartEvent", "MappingStartEvent"):
            value: Any = [] if kind == "SequenceStartEvent" else {}
            if event.anchor:
                anchors[event.anchor] = value
            open_.append([])
            kinds.append(value)
            continue
        if kind in ("SequenceEndEvent", "MappingEndEvent"):
            value = _filled(kinds.pop(), open_.pop())
        elif kind == "ScalarEvent":
            value = _scalar(event)
            if event.anchor:
                anchors[event.anchor] = value
        elif kind == "AliasEvent":
            value = anchors.get(event.anchor)
        elif kind == "DocumentEndEvent":
            yield document.pop() if document else None
            anchors.clear()
            continue
        else:
            continue
        (open_[-1] if open_ else document).append(value)


def _filled(value: Any, found: list[Any]) -> Any:
    """A list or a mapping with what was found in it; a key that is no text is left out."""
    if isinstance(value, list):
        value.extend(found)
    else:
        value.update(
            (key, each)
            for key, each in zip(found[::2], found[1::2], strict=False)
            if isinstance(key, str)
        )
    return value


def _scalar(event: Any) -> Any:
    if event.tag and event.tag.endswith("binary"):
        return from_base64(event.value)
    plain = event.implicit[0] and event.style in (None, "")
    return None if plain and event.value in _NULLS else event.value
