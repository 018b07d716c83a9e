"""What a table or a figure is given: a recording, an open file, a script, a path, or many of them.

A path goes through `streams_in`, so a capture's streams are found and masked as everywhere. Each
stream comes with a name: its file's, the key of a mapping, or its place among the others.

Read next: `tables.py`.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, NamedTuple, TypeVar

from streamlab.analysis.plain import counted
from streamlab.errors import UsageError, WireError
from streamlab.streams.importers import About, Opened, streams_in
from streamlab.streams.recording import Recording, RecordingFile
from streamlab.streams.script import Script

__all__ = ["Given", "Many", "Named", "each", "one"]

T = TypeVar("T")

#: One stream, or (a path) a file of streams.
Given = Recording | RecordingFile | Opened | Script | str | os.PathLike[str]

#: The same, to ask for at run time; each is one thing, though some of them can be iterated over.
ONE = (Recording, RecordingFile, Opened, Script, str, os.PathLike)

#: Many: in order, or by names of your own.
Many = Given | Iterable[Given] | Mapping[str, Given]

NOTHING = About()


class Named(NamedTuple):
    """One stream to look at."""

    name: str  #: "" where it has none
    recording: Recording | RecordingFile
    about: About = NOTHING


def one(given: Given, stream: int, use: Callable[[Named], T]) -> T:
    """What `use` makes of one stream; of a file it is the one with that number, the first being 1.

    Raises `UsageError` where there are fewer, `WireError` where a file cannot be read.
    """
    count = 0
    for found in _opened(given):
        count += 1
        if count == stream:
            return use(found)
    raise UsageError(f"stream={stream}: it has {counted(count, 'stream')}, and they count from 1")


def each(given: Many, failed: list[tuple[str, str]] | None = None) -> Iterator[Named]:
    """Every stream, one after another; one that is read piece by piece must be used at once.

    A file that cannot be read goes into `failed` with the reason, and the others still come;
    without such a list it raises.
    """
    for name, given_one in _named(given):
        try:
            for found in _opened(given_one):
                yield found._replace(name=name) if name else found
        except WireError as why:
            if failed is None:
                raise
            failed.append((name or _name(given_one), str(why)))


def _named(given: Many) -> Iterator[tuple[str, Given]]:
    if isinstance(given, ONE):
        yield "", given
    elif isinstance(given, Mapping):
        yield from ((str(name), value) for name, value in given.items())
    else:
        yield from (("", value) for value in given)


def _opened(given: Given) -> Iterator[Named]:
    if isinstance(given, Opened):
        yield Named(_name(given.recording), given.recording, given.about)
    elif isinstance(given, Script):
        yield Named("", given.recording)
    elif isinstance(given, (Recording, RecordingFile)):
        yield Named(_name(given), given)
    elif isinstance(given, (str, os.PathLike)):
        yield from (Named(os.fspath(given), *opened) for opened in streams_in(given))
    else:
        raise UsageError(f"a recording or a path is needed, not a {type(given).__name__}")


def _name(given: Any) -> str:
    if isinstance(given, (str, os.PathLike)):
        return os.fspath(given)
    return given.name if isinstance(given, RecordingFile) else ""
