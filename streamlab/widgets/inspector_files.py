"""What an Inspector opens: files, recordings, and the bytes of a file that a page sends in pieces.

Every file goes through `streams_in`, so any form works that an importer knows. The bytes that a
page sends are a stranger's: they are bounded, they land in a folder that only this user may read
and that is gone when they are read, and the name that came with them is a label, never a path.

Read next: `inspector.py`, which shows what is opened here.
"""

from __future__ import annotations

import re
import tempfile
from collections.abc import Sequence
from functools import cached_property
from itertools import islice
from os.path import basename
from pathlib import Path
from typing import Any

from streamlab.analysis.inspection import Inspection, inspection
from streamlab.analysis.plain import clipped, visible
from streamlab.errors import UsageError, WireError
from streamlab.streams.importers import About, streams_in
from streamlab.streams.recording import Recording, RecordingFile

__all__ = ["MAX_FILE", "Incoming", "Source", "Stream", "line", "streams_of"]

#: The most bytes of a file that a page may send.
MAX_FILE = 64 * 1024 * 1024

#: The most streams of one file that can be chosen from.
MAX_STREAMS = 200

#: What of a name is kept for the file in the private folder: forms are told by content, but a
#: reader of a library may look at the suffix.
SUFFIXES = re.compile(r"(?:\.[A-Za-z0-9]{1,8}){1,3}$")

#: What can be opened.
Source = str | Path | Recording | Sequence["str | Path | Recording"]


def line(text: str, most: int = 300) -> str:
    """What went wrong, in one line that fits into a view."""
    one = " ".join(text[: 4 * most].split())
    return one if len(one) <= most else one[:most] + "…"


class Stream:
    """One stream that can be looked at. It is laid out when it is first looked at."""

    def __init__(self, name: str, recording: Recording, about: About = About()) -> None:  # noqa: B008
        self.name, self.about, self._recording = name, about, recording

    @cached_property
    def inspection(self) -> Inspection:
        """The stream, laid out."""
        return inspection(self._recording, self.name, self.about)

    @property
    def label(self) -> str:
        """What a list of streams calls it."""
        about = self.about
        status = "" if about.status is None else str(about.status)
        return clipped(" · ".join(filter(None, (about.where, about.request, status))), 120)


class _Read(Stream):
    """A stream that can be read only once, so it is laid out at once."""

    def __init__(self, name: str, file: RecordingFile, about: About) -> None:
        super().__init__(name, Recording(), about)
        self.inspection = inspection(file, name, about)  # what `cached_property` would keep


def streams_of(source: Source, name: str = "") -> tuple[Stream, ...]:
    """Open a file, a recording, or several of them; `name` is what to call it.

    Raises `WireError` or `UsageError`, with the name that was given to it, where it cannot be read.
    """
    if isinstance(source, Recording):
        return (Stream(name or "a recording", source),)
    if isinstance(source, str | Path):
        return _in_file(Path(source), name or visible(basename(source)))
    if not isinstance(source, Sequence) or not source:
        raise UsageError(f"a file, a recording or a list of them, not {type(source).__name__}")
    found: list[Stream] = []
    for number, each in enumerate(source[:MAX_STREAMS], 1):
        label = f"{name or 'recording'} {number}" if isinstance(each, Recording) else ""
        found += streams_of(each, label)
    for number, stream in enumerate(found, 1):
        if not stream.about.where:
            stream.about = About(where=f"{number}", request=stream.name)
    return tuple(found)


def _in_file(path: Path, name: str) -> tuple[Stream, ...]:
    try:
        found = tuple(
            _Read(name, recording, about)
            if isinstance(recording, RecordingFile)
            else Stream(name, recording, about)
            for recording, about in islice(streams_in(path), MAX_STREAMS)
        )
    except (WireError, OSError) as why:
        raise WireError(line(str(why).replace(str(path), name))) from None
    if not found:
        raise WireError("no stream in it", name)
    return found


class Incoming:
    """A file that comes in pieces, in their order; one at a time."""

    def __init__(self, most: int = MAX_FILE) -> None:
        self.most = most
        self._id: Any = None
        self._size = self._come = 0
        self._folder: tempfile.TemporaryDirectory[str] | None = None
        self._file = Path()

    def take(self, told: dict[str, Any], pieces: Sequence[Any]) -> tuple[Path, str] | None:
        """Take a piece; with the last one, give the file and its label. Then `clear`.

        `told` has the `id` of the file, its `name`, its `size`, and `at`, where the piece begins.
        What does not fit is refused once, with `UsageError`; the pieces after it are ignored.
        """
        if told.get("at") == 0:
            self._begin(told)
        elif told.get("id") != self._id or self._folder is None:
            return None  # a piece of what was refused, or of what a newer file took the place of
        with open(self._file, "ab") as out:
            for piece in pieces:
                self._come += len(memoryview(piece).cast("B"))
                if self._come > self._size:
                    self.clear()
                    raise UsageError(f"more bytes came than the {self._size:,} that were announced")
                out.write(piece)
        if self._come < self._size:
            return None
        return self._file, visible(basename(str(told.get("name") or "a file")))[:120]

    def _begin(self, told: dict[str, Any]) -> None:
        self.clear()
        size = told.get("size")
        if not isinstance(size, int) or size < 0:
            raise UsageError("a file without a size")
        if size > self.most:
            raise UsageError(f"{size:,} bytes are too many: {self.most:,} at most")
        self._id, self._size, self._come = told.get("id"), size, 0
        self._folder = tempfile.TemporaryDirectory(prefix="streamlab-")
        suffixes = SUFFIXES.search(str(told.get("name")))
        self._file = Path(self._folder.name, f"recording{suffixes[0] if suffixes else ''}")

    def clear(self) -> None:
        """Forget the file, and remove it."""
        if self._folder is not None:
            self._folder.cleanup()
        self._folder = None
